"""Measures speed and memory on a machine with a GPU, compared with PyTorch if it is installed.
tools/gpu-check runs it.

    bench.py BUILD [--seconds N] [WHAT...]   WHAT: names of MODELS, `ops`, `attention`, `optimizers`,
                                             `budgets`, `marks`; default: all
    bench.py BUILD --tiny CONFIG [...]       with a tiny model on an emulated device, to test this script

Prints one line of a table for each figure. Near the end of its N seconds (570) it starts nothing more and
names the parts that it left out; run these alone. Four parts for the first minutes on a card run only if
named, and do not use PyTorch: `speed`, gpt2 with our own kinds of kernels; `headline`, gpt2 with the most
important kinds of all; `profile`, the ops of the fastest exact kind; `llama`, three steps of llama-1b.
`--peer N`: seconds for PyTorch's training of a model."""

import collections
import importlib.util
import json
import os
import statistics
import subprocess
import sys

import runs
from runs import Runs, Table, call, card_bytes_in_use, figure, figures, left

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
BENCH = os.path.join(ROOT, "tools/bench")
sys.path.insert(0, BENCH)
from update import CASES as OPTIMIZERS, time_of_update  # noqa: E402

MODELS = {"gpt2": (1024, 512), "smollm-135m": (2048, 256), "llama-1b": (2048, 64)}  # sequence, batch
# Goals in tokens/s on an H100 or H200 with samples of 1,024 tokens; batch; flags that a card of 80 GB needs
# for that batch.
MARKS = {
    "gpt2": (500_000, 512, ()),
    "qwen2.5-0.5b": (150_000, 128, ()),
    "qwen2.5-1.5b": (59_000, 64, ()),
    "qwen2.5-3b": (31_000, 64, ("--states", 8)),
    "qwen2.5-7b": (14_000, 32, ("--states", 8, "--gradients", "bf16")),
}
# Kinds measured before PyTorch, and kinds measured after it. The most important come first.
KERNELS = (
    ("tensor", "wgmma", "wgmma --attention cudnn"),
    (
        "cublaslt",
        "cublaslt --fast",
        "cublaslt --fast --attention cudnn",
        "cublaslt-wgmma --fast --attention cudnn",
        "cublaslt-wgmma",
        "portable",
    ),
)
ATTENTION = ("tensor", "wgmma", "tensor --attention cudnn")
# mma.sync comes first, because wgmma may hang. NVIDIA's libraries come last, because they may load slowly.
OWN = ("tensor", "wgmma")
HEADLINE = (
    *OWN,
    "wgmma --attention cudnn",
    "cublaslt --fast --attention cudnn",
    "cublaslt-wgmma --fast --attention cudnn",
)
SECONDS_TO_BEGIN = 30  # with less time left nothing starts; at most an eighth of all time
SECONDS_AFTER_PEER = 150  # time reserved for the kinds measured after PyTorch, however long PyTorch compiles
SPEED_MARK, BANDWIDTH_MARK, UPDATE_MARK, BUDGET_MARK = 1.15, 0.85, 1.3, 0.6
# The fastest plans use all of a card's memory except the reserve, which the profiles estimate at 1 GiB
# (`check.py memory` measures it). A context, kernels, graphs and NVIDIA's libraries may need more than that,
# and then there would be no figures at all. With this reserve, gpt2's predicted step is 0.02 % longer; the
# other models' steps do not change.
RESERVE = "2GiB"
# least bytes of an op that is measured: twice the second-level cache of an H200
BEYOND_THE_CACHE = 100_000_000


def flops_of_token(config, sequence):
    """6 for every weight of a matrix product, and causal attention forward and backward."""
    gpt2 = config["model_type"] == "gpt2"
    width, layers = (
        (config["n_embd"], config["n_layer"])
        if gpt2
        else (config["hidden_size"], config["num_hidden_layers"])
    )
    inner = (config.get("n_inner") or 4 * width) if gpt2 else config["intermediate_size"]
    shared = (
        1
        if gpt2
        else config.get("num_key_value_heads", config["num_attention_heads"]) / config["num_attention_heads"]
    )
    block = width * width * (2 + 2 * shared) + width * inner * (2 if gpt2 else 3)
    return 6 * (layers * block + width * config["vocab_size"]) + 6 * layers * sequence * width


def marked(good):
    return "" if good else "   BELOW ITS MARK"


def describe(theirs):
    """PyTorch's speed, and the configuration that reached it."""
    return (
        f"{theirs['tokens_per_second']:,.0f} tokens/s ({theirs['mode']}, "
        f"micro-batch {theirs['micro_batch']}, vocabulary {theirs['vocabulary']:,}, "
        f"attention {theirs['attention']}{', cut off' if 'cut' in theirs else ''})"
    )


class Bench:
    def __init__(self, folder, tiny, wants_peaks=True, peaks=None):
        self.folder, self.tiny, self.peer_seconds = folder, tiny, runs.SECONDS
        self.table, self.failed_kinds = Table(), []  # failed_kinds: kinds that hang or do not train
        model = tiny or "gpt2"
        self.wgmma = False
        self.table.part(
            "wgmma",
            lambda: setattr(
                self, "wgmma", folder.has_wgmma("--model", model, "--batch", 1, "--seq", 32 if tiny else 1024)
            ),
        )
        self.has_pytorch, self.peaks = importlib.util.find_spec("torch") is not None, peaks or {}
        if not wants_peaks:
            return
        peaks, why = (
            self.peer("peaks", seconds=120) if self.has_pytorch else (None, "there is no PyTorch here")
        )
        self.peaks |= peaks or {}  # only the peaks that were measured
        self.table.row(
            "the card, by PyTorch",
            bool(peaks or tiny),
            json.dumps(peaks) if peaks else (why.strip().splitlines() or ["-"])[-1],
        )

    def may_begin(self, what):
        if left() > min(SECONDS_TO_BEGIN, runs.SECONDS / 8):
            return True
        self.table.row(what, None, "left out: no time")
        return False

    def kinds(self, all_of_them):
        return [k for k in all_of_them if self.wgmma or "wgmma" not in k]

    def may_try(self, what, kernels):
        """After wgmma has failed, no kind with wgmma is tried."""
        failed = next((k for k in self.failed_kinds if "wgmma" in k and "wgmma" in kernels), None)
        if failed:
            self.table.row(what, None, f"left out: {failed} failed")
        return not failed

    def peer(self, *words, seconds):
        """PyTorch's result as a dictionary, or the reason for a failure."""
        device = ("--device", "cpu") if self.tiny else ()
        # PyTorch uses its own libraries, not the ones that gpu-check found for us.
        environment = {
            **os.environ,
            "LD_LIBRARY_PATH": os.environ.get("PEER_LIBRARY_PATH", os.environ.get("LD_LIBRARY_PATH", "")),
        }
        limit = ("--seconds", max(seconds - 5, 1)) if words[0] == "train" else ()
        code, text, _ = call(
            [sys.executable, os.path.join(BENCH, "peer_gpu.py"), *words, *limit, *device],
            seconds,
            environment,
        )
        # Each finding is a line. The fastest of the timed configurations counts. Other results are
        # cumulative, so the last line counts.
        findings = []
        for line in text.splitlines():
            try:
                findings.append(json.loads(line))
            except ValueError:
                continue
        findings = [found for found in findings if isinstance(found, dict)]
        if not findings:
            return None, text[-400:]
        best = (
            max(findings, key=lambda found: found["tokens_per_second"])
            if "tokens_per_second" in findings[-1]
            else findings[-1]
        )
        return best | ({} if code == 0 else {"cut": True}), ""

    def shape(self, name, sequence, batch):
        """Path of the config, sequence and batch. A tiny model replaces every model."""
        if self.tiny:
            return self.tiny, 32, 2
        path = self.folder.at(name + ".json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(self.folder.config(name), file)
        return path, sequence, batch

    def run(self, model, sequence, batch, kernels, *words, steps, patience=None, watch=None):
        """The tokens/s of each step, or None and the reason for a failure."""
        with open(model, encoding="utf-8") as file:
            vocabulary = json.load(file)["vocab_size"]
        return self.folder.speeds(
            "run",
            steps,
            "--model",
            model,
            "--seq",
            sequence,
            "--batch",
            batch,
            "--device",
            "cuda",
            "--reserve",
            RESERVE,
            "--kernels",
            *kernels.split(),
            *words,
            data=self.folder.tokens(vocabulary),
            patience=patience,
            watch=watch,
        )

    def speed(self, what, shape, kernels, *words, mark=None, steps=6):
        """Adds a row to the table. Returns the median tokens/s without the first step."""
        if not self.may_try(what, kernels):
            return None
        before, most = card_bytes_in_use(), 0

        def watch():
            nonlocal most
            most = max(most, card_bytes_in_use() or 0)

        speeds, why = self.run(
            *shape,
            kernels,
            *words,
            steps=3 if self.tiny else steps,
            patience=200 if mark else None,  # initializing billions of weights takes time
            watch=None if before is None else watch,
        )
        if speeds is None:
            self.failed_kinds.append(kernels)
            self.table.row(what, False, why)
            return None
        figure("tokens/s of " + what, statistics.median(speeds[1:]))
        outside = "" if before is None else self.outside(most - before, kernels)
        speed, share = statistics.median(speeds[1:]), ""
        if "product_tflops" in self.peaks:
            with open(shape[0], encoding="utf-8") as file:
                flops = flops_of_token(json.load(file), shape[1])
            of_peak = speed * flops / self.peaks["product_tflops"] * 1e-12
            figure("share of the peak of " + what, of_peak)
            share = f", {100 * of_peak:.1f} % of the card's bf16 products"
        self.table.row(
            what,
            True,
            f"{speed:,.0f} tokens/s{share}"
            + (f", mark {mark:,}{marked(speed >= mark)}" if mark else "")
            + outside,
        )
        return speed

    def outside(self, used, kernels):
        """The memory in use outside of the arena, which the plan's reserve has to hold."""
        planned = self.folder.plan("run").get("bytes")
        if not planned:
            return ""
        outside = (used - planned["arena"]) / 2**20
        figure("MiB outside of the arena", outside)
        return f", {outside:,.0f} MiB outside of the arena"

    def model(self, name):
        """Trains with stowage and PyTorch."""
        shape, speeds = self.shape(name, *MODELS[name]), {}

        def measure(all_of_them):
            for kernels in self.kinds(all_of_them):
                what = f"{name}, T {MODELS[name][0]}, bf16, {kernels}"
                if self.may_begin(what):
                    # portable is by far the slowest
                    speed = self.speed(what, shape, kernels, steps=3 if kernels == "portable" else 6)
                    speeds.update({kernels: speed} if speed else {})

        def compare(theirs):
            """The fastest kind of each mode. Modes differ in their bits and in what the bits depend on."""
            text = ""
            for mode, kinds in (
                ("exact", [k for k in speeds if "--fast" not in k]),
                ("fast", [k for k in speeds if "--fast" in k]),
            ):
                if kinds:
                    best = max(kinds, key=speeds.get)
                    ratio = speeds[best] / theirs["tokens_per_second"]
                    text += f"; stowage {mode}, {best}: {ratio:.3f}{marked(ratio >= SPEED_MARK)}"
            return text

        measure(KERNELS[0] if self.wgmma else ("tensor", "tensor --attention cudnn"))
        theirs = None
        if self.has_pytorch and self.may_begin(f"{name}, PyTorch"):
            theirs, why = self.peer(
                "train",
                *shape,
                *(("--eager",) if self.tiny else ()),
                seconds=min(self.peer_seconds, max(left() - SECONDS_AFTER_PEER, left() / 2)),
            )
            if theirs:
                self.table.row(f"{name}, PyTorch", True, describe(theirs) + compare(theirs))
            else:
                self.table.row(f"{name}, PyTorch", False, why)
        measure(KERNELS[1])
        if theirs and speeds:
            self.table.row(f"{name}, of all kinds", True, compare(theirs).removeprefix("; "))

    def marks(self):
        # all models with one kind of kernels, then the next kind
        for kernels in self.kinds(
            ("wgmma --attention cudnn", "cublaslt --fast --attention cudnn", "wgmma", "tensor")
        ):
            for name, (mark, batch, words) in MARKS.items():
                what = f"{name}, T 1024, bf16, {kernels} {' '.join(map(str, words))}".strip()
                if self.may_begin(what):
                    self.speed(what, self.shape(name, 1024, batch), kernels, *words, mark=mark, steps=4)

    def events(self, model, sequence, batch, kernels):
        """The ops of a step with one micro-batch, as `--profile` measures them: name, flops, bytes,
        microseconds."""
        trace = self.folder.at("trace.json")
        speeds, why = self.run(
            model, sequence, batch, kernels, "--micro-batch", batch, "--profile", trace, steps=1
        )
        if speeds is None:
            return None, why
        with open(trace, encoding="utf-8") as file:
            events = json.load(file)["traceEvents"]
        return [
            (e["name"], e["args"]["flops"], e["args"]["bytes"], e["args"]["measured_us"])
            for e in events
            if e.get("tid") == 1 and e["ph"] == "X"
        ], ""

    def speed_of_own(self):
        self.headline(OWN)

    def headline(self, kinds=HEADLINE):
        """Training speed of gpt2, four steps for each kind of kernels."""
        shape = self.shape("gpt2", *MODELS["gpt2"])
        for kernels in self.kinds(kinds):
            what = f"gpt2, T 1024, bf16, {kernels}"
            if self.may_begin(what):
                self.speed(what, shape, kernels, steps=4)

    def llama(self):
        shape = self.shape("llama-1b", *MODELS["llama-1b"])
        for kernels in reversed(self.kinds(OWN)):  # wgmma; if that fails, mma.sync
            if self.speed(f"llama-1b, T 2048, bf16, {kernels}", shape, kernels, steps=3):
                break

    def profile(self):
        self.ops((("gpt2", 1024, 64),), self.kinds(("wgmma",)) or ("tensor",))

    def ops(
        self,
        models=(("gpt2", 1024, 64), ("llama-1b", 2048, 16)),
        kinds=("tensor", "wgmma", "cublaslt", "cublaslt-wgmma"),
    ):
        """Bandwidth of memory-bound ops and speed of matrix products, measured inside of a step. Bytes are
        those of the plan."""
        for name, sequence, batch in models[: 1 if self.tiny else 2]:
            for kernels in self.kinds(kinds):
                what = f"{name}, {batch} x {sequence}, {kernels}"
                if not self.may_begin(what):
                    continue
                events, why = self.events(*self.shape(name, sequence, batch), kernels)
                if events is None:
                    self.table.row(what, False, why)
                    continue
                sums = collections.defaultdict(lambda: [0, 0, 0.0, 0])
                for op, flops, size, microseconds in events:
                    if size < BEYOND_THE_CACHE and not self.tiny:
                        continue
                    for total, x in enumerate((flops, size, microseconds, 1)):
                        sums[op][total] += x
                for op, (flops, size, microseconds, count) in sums.items():
                    product = (
                        (op.startswith("linear") and op != "linear_bias_gradient")
                        or op.startswith("attention")
                        or op == "muon"
                    )
                    if kernels != kinds[0] and not product:
                        continue  # the same kernels for every kind
                    text = f"{count} of {microseconds / count:,.0f} us: "
                    if product:
                        text += f"{flops / microseconds * 1e-6:,.3g} TFLOP/s"
                        if "product_tflops" in self.peaks and op.startswith("linear"):
                            share = flops / microseconds * 1e-4 / self.peaks["product_tflops"]
                            text += f", {share:.0f} % of 8192 cubed"
                    else:
                        text += f"{size / microseconds * 1e-3:,.4g} GB/s"
                        if "copy_gbytes_per_second" in self.peaks:
                            share = size / microseconds * 1e-3 / self.peaks["copy_gbytes_per_second"]
                            text += f", {100 * share:.0f} % of a copy{marked(share >= BANDWIDTH_MARK)}"
                    self.table.row(f"{what}: {op}", True, text)

    def attention(self):
        """16 heads of 64, causal, 16,384 tokens: forward, backward."""
        tokens, heads = (128, 1) if self.tiny else (16384, 16)
        for sequence in (64,) if self.tiny else (1024, 4096, 16384):
            config = {
                "model_type": "gpt2",
                "vocab_size": 256,
                "n_positions": sequence,
                "n_embd": 64 * heads,
                "n_layer": 1,
                "n_head": heads,
                "embd_pdrop": 0.0,
                "attn_pdrop": 0.0,
                "resid_pdrop": 0.0,
            }
            path = self.folder.at(f"attention-{sequence}.json")
            with open(path, "w", encoding="utf-8") as file:
                json.dump(config, file)
            theirs = self.peaks.get(f"attention_{sequence}_tflops")
            for kernels in self.kinds(ATTENTION):
                what = f"attention, T {sequence}, {kernels}"
                if not self.may_begin(what):
                    continue
                samples = tokens // sequence
                events, why = self.events(path, sequence, samples, kernels)
                if events is None:
                    self.table.row(what, False, why)
                    continue
                # causal: half of 4·T²·D, as PyTorch's flops are counted
                flops = 2 * samples * heads * sequence * sequence * 64
                text = []
                for op, times, peer in (("attention", 1, 0), ("attention_gradient", 2.5, 1)):
                    speed = times * flops / sum(us for name, _, _, us in events if name == op) * 1e-6
                    text.append(
                        f"{speed:,.4g} TFLOP/s"
                        + (
                            f" ({speed / theirs[peer]:.2f} of PyTorch's {theirs[peer]:,.0f})"
                            if theirs
                            else ""
                        )
                    )
                self.table.row(what, True, "forward {}, backward {}".format(*text))

    def optimizers(self):
        """The update of gpt2 by each optimizer, compared with copies, and 8-bit states compared with
        32-bit states."""
        whole = {}
        for optimizer, bits in OPTIMIZERS[:2] if self.tiny else OPTIMIZERS:
            what = f"update of gpt2, bf16, {optimizer}, {bits}-bit states"
            if not self.may_begin(what):
                continue
            try:
                count, moved, seconds = time_of_update(
                    self.folder.stowage,
                    self.folder.at("here.json"),
                    "--model",
                    self.tiny or "gpt2",
                    "--batch",
                    1,
                    "--seq",
                    16,
                    "--device",
                    "cuda",
                    "--optimizer",
                    optimizer,
                    "--states",
                    bits,
                    seconds=left(),
                )
            except (OSError, ValueError, subprocess.SubprocessError) as error:
                self.table.row(what, False, str(error))
                continue
            whole[optimizer, bits] = seconds
            text = f"{1e12 * seconds / count:,.0f} ms per 1e9 parameters, {moved / seconds * 1e-9:,.0f} GB/s"
            if "copy_gbytes_per_second" in self.peaks:
                ratio = seconds * self.peaks["copy_gbytes_per_second"] * 1e9 / moved
                text += (
                    f", {ratio:.2f} times a copy's time"
                    f"{marked(ratio <= UPDATE_MARK or bits == 8 or optimizer in ('adafactor', 'muon'))}"
                )
            if bits == 8 and (optimizer, 32) in whole:
                ratio = seconds / whole[optimizer, 32]
                text += f", {ratio:.2f} times that of 32-bit states{marked(ratio <= 1)}"
            self.table.row(what, True, text)

    def budgets(self):
        """The least memory for training a model. Both sides use recomputation, 8-bit states and an fp32
        master."""
        for name in list(MODELS)[:1] if self.tiny else MODELS:
            what = f"least memory of {name}, T {MODELS[name][0]}"
            if not self.may_begin(what):
                continue
            model, sequence, batch = self.shape(name, MODELS[name][0], 2)
            shape = ["--model", model, "--seq", sequence, "--batch", batch, "--states", 8]
            least = self.folder.least_budget(*shape)
            speeds, why = self.folder.speeds(
                "run", 2, *shape, "--device", "cuda", "--vram", least, "--tokenizer", "byte"
            )
            if speeds is None:
                self.table.row(what, False, why)
                continue
            arena = self.folder.plan("run")["bytes"]["arena"]
            text = f"{arena / 2**20:,.1f} MiB in the arena"
            theirs, why = (
                self.peer("least", model, sequence, seconds=left()) if self.has_pytorch else (None, "")
            )
            if theirs and theirs["least_bytes"]:
                ratio = arena / theirs["least_bytes"]
                text += (
                    f", PyTorch {theirs['least_bytes'] / 2**20:,.0f} MiB in its allocator "
                    f"({theirs['optimizer']}), ratio {ratio:.2f}{marked(ratio <= BUDGET_MARK)}"
                )
            self.table.row(what, not why, text + why)


def main():
    build, words = sys.argv[1], sys.argv[2:]
    given = runs.options(words, "tiny", "peer")
    early = ("speed", "headline", "profile", "llama")
    parts = ("ops", "attention", "optimizers", "budgets", "marks")
    for word in words:
        if word not in MODELS and word not in parts and word not in early:
            sys.exit(f"bench.py: {word}: expected one of {', '.join((*MODELS, *parts, *early))}")
    with Runs(build) as folder:
        measured = figures().get("product TFLOP/s")  # the card's own peak, by gpu_probe
        peaks = {"product_tflops": measured[-1]} if measured else {}
        bench = Bench(folder, given.get("tiny"), not words or any(word not in early for word in words), peaks)
        bench.peer_seconds = float(given.get("peer", runs.SECONDS))
        for name in words or (*MODELS, *parts):
            part = (
                (lambda: bench.model(name))
                if name in MODELS
                else bench.speed_of_own
                if name == "speed"
                else getattr(bench, name)
            )
            bench.table.part(name, part)
    sys.exit(bench.table.end())


if __name__ == "__main__":
    main()
