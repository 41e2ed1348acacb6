"""What tools/gpu-check runs on a machine with a GPU: check.py test BUILD [CONFIG], check.py bench BUILD [MODEL...].

One line of a table for each check. CONFIG: of a tiny model, with which an emulated device shows that this script works.
"""
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

PART, BUILD = sys.argv[1], sys.argv[2]
STOWAGE = os.path.join(BUILD, "tools/stowage/stowage")
failures = 0


def row(name, passed, text):
    global failures
    failures += not passed
    print(f"{'ok  ' if passed else 'FAIL'}  {name:<44} {text}", flush=True)


def call(words, seconds=500):
    begin = time.monotonic()
    try:
        done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", timeout=seconds, check=False)
        return done.returncode, done.stdout, time.monotonic() - begin
    except subprocess.TimeoutExpired as late:
        return -1, str(late.stdout or "") + "\nran past its time", seconds


def program(name, words, seconds=500):
    """A GoogleTest program: its counts, and the names of what failed."""
    code, text, took = call(words, seconds)
    passed = len(re.findall(r"^\[ +OK \] ", text, re.M))
    failed = sorted(set(re.findall(r"^\[ +FAILED +\] (\S+?),? .*\(\d+ ms\)$", text, re.M)))
    row(name, code == 0, f"{passed} passed, {len(failed)} failed in {took:.0f} s" + "".join("\n        " + f for f in failed))
    if code != 0:
        print("\n".join("        " + line for line in text.splitlines()[-25:]))


class Folder:
    def __enter__(self):
        self.path = tempfile.mkdtemp(prefix="stowage-gpu-")
        with open(self.at("text.txt"), "w", encoding="ascii") as file:
            for i in range(60000):
                file.write(f"{i * i % 977} ships lie in the hold.\n")
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.path, ignore_errors=True)

    def at(self, name):
        return os.path.join(self.path, name)

    def train(self, out, *words):
        shutil.rmtree(self.at(out), ignore_errors=True)   # what fails leaves no weights of the run before
        return call([STOWAGE, "train", "--data", self.at("text.txt"), "--out", self.at(out), "--eval-batches", "2", *map(str, words)])

    def weights(self, out):
        try:
            with open(self.at(out) + "/model.safetensors", "rb") as file:
                return file.read()
        except OSError:
            return f"{out} was not trained"

    def plan(self, out):
        try:
            with open(self.at(out) + "/plan.json", encoding="utf-8") as file:
                return json.load(file)
        except OSError:
            return {"loss_chunks": 0, "offload": []}


def least_budget(*words):
    """The smallest that works, in bytes, as the command says that a smaller one does not."""
    _, text, _ = call([STOWAGE, "plan", *map(str, words), "--device", "cuda", "--vram", "1KiB"])
    found = re.search(r"\(([\d,]+) bytes\)", text)
    return int(found[1].replace(",", "")) if found else 0


NANO = ["--model", "nano", "--batch", 12, "--seq", 64, "--steps", 20, "--states", 32]
LONG = ["--model", "smollm-135m", "--batch", 4, "--seq", 512, "--steps", 3, "--states", 32, "--tokenizer", "byte"]
LARGE = [("nano", ["--batch", 12, "--seq", 64]), ("gpt2", ["--batch", 16, "--seq", 1024, "--micro-batch", 4])]


def has_wgmma():
    code, _, _ = call([STOWAGE, "plan", *map(str, NANO[:6]), "--device", "cuda", "--kernels", "wgmma"])
    return code == 0


def bits(folder, nano, long):
    wgmma = [("bf16", "wgmma"), ("fp16", "wgmma")] if has_wgmma() else []
    for precision, kernels in (("fp32", "portable"), ("bf16", "portable"), ("bf16", "tensor"), ("fp16", "tensor"), *wgmma, ("bf16", "cublaslt"),
                               ("fp16", "cublaslt"), ("fp32", "cublaslt"), ("bf16", "tensor --attention cudnn"), ("fp16", "tensor --attention cudnn"),
                               ("bf16", "tensor --optimizer muon")):
        numerics = ["--precision", precision, "--kernels", *kernels.split()]
        what = f"{precision}, {kernels} kernels"
        code, text, _ = folder.train("a", *nano, *numerics, "--device", "cuda", "--vram", "4GiB")
        if code != 0:
            row(f"E1 twice the same bits, {what}", False, text[-600:])
            continue
        folder.train("b", *nano, *numerics, "--device", "cuda", "--vram", "4GiB")
        row(f"E1 twice the same bits, {what}", folder.weights("a") == folder.weights("b"), "")
        least = least_budget(*nano[:6], "--states", 32, *numerics)
        folder.train("c", *nano, *numerics, "--device", "cuda", "--vram", least)
        folder.train("d", *nano, *numerics, "--device", "cuda", "--vram", "4GiB", "--micro-batch", 1, "--recompute", "full")
        row(f"E2, E3 any budget and split, {what}", folder.weights("a") == folder.weights("c") == folder.weights("d"), f"least {least} bytes")
        if kernels == "portable":
            folder.train("e", *nano, *numerics, "--device", "cpu", "--vram", "4GiB")
            row(f"the CPU's bits, {what}", folder.weights("a") == folder.weights("e"), "")
        if "cublaslt" in kernels or "cudnn" in kernels:   # samples long enough for the library's weight gradients, and for several blocks of queries
            for out, samples in (("f", long[long.index("--batch") + 1]), ("g", 1)):
                folder.train(out, *long, *numerics, "--device", "cuda", "--vram", "16GiB", "--micro-batch", samples)
            row(f"E3 samples of 512 tokens, {what}", folder.weights("f") == folder.weights("g"), "")


def odd_samples(folder, model):
    """Samples that are no multiples of the tensor cores' steps, with loss chunks that begin inside of them."""
    for kernels in ("tensor", "wgmma", "cublaslt") if has_wgmma() else ("tensor", "cublaslt"):
        numerics = ["--precision", "bf16", "--kernels", kernels]
        shape = [*model[:4], "--seq", 33]
        code, text, _ = folder.train("a", *shape, *model[6:], *numerics, "--device", "cuda", "--vram", "4GiB")
        for micro_batch in (model[3], 2):
            tight = ["--micro-batch", micro_batch]
            least = least_budget(*shape, "--states", 32, *numerics, *tight)
            folder.train("b", *shape, *model[6:], *numerics, *tight, "--device", "cuda", "--vram", least)
            chunks = folder.plan("b")["loss_chunks"]
            row(f"E2, E3 33 tokens, micro-batch {micro_batch}, {kernels} kernels", chunks > 1 and folder.weights("a") == folder.weights("b"),
                f"{chunks} loss chunks" if code == 0 else text[-600:])


def offload(folder, model):
    for precision, kernels in (("bf16", "tensor"), ("fp32", "portable")):
        numerics = ["--precision", precision, "--kernels", kernels]
        host = ["--host-memory", "4GiB"]
        code, text, _ = folder.train("a", *model, *numerics, "--device", "cuda", "--vram", "4GiB")
        least = least_budget(*model[:6], "--states", 32, *numerics, *host)
        folder.train("b", *model, *numerics, *host, "--device", "cuda", "--vram", least)
        offloaded = len(folder.plan("b")["offload"])
        row(f"E2 in host memory, {precision}, {kernels} kernels", offloaded > 0 and folder.weights("a") == folder.weights("b"),
            f"least {least} bytes, {offloaded} kinds of tensors" if code == 0 else text[-600:])


def memory(folder, models):
    for model, words in models:
        code, text, _ = folder.train("m", "--model", model, *words, "--steps", 3, "--device", "cuda", "--tokenizer", "byte")
        found = re.search(r"memory +planned (.*), measured (.*) \((.*) %\)", text)
        row(f"memory of {model}", code == 0 and found is not None, found.group(0) if found else text[-600:])


def test(tiny):
    if tiny:   # of another model, on the emulated device: whether this script works
        shape = ["--model", tiny, "--batch", 3, "--seq", 32, "--steps", 2, "--states", 32]
        with Folder() as folder:
            bits(folder, shape, shape)
            odd_samples(folder, shape)
            offload(folder, shape)
            memory(folder, [(tiny, shape[2:6])])
        return
    kernels = os.path.join(BUILD, "tests/gpu/gpu_kernel_tests")
    program("kernels", [kernels, "--gtest_filter=-Math.*:*Order*"])
    program("training", [os.path.join(BUILD, "tests/gpu/gpu_trainer_tests")])
    if shutil.which("compute-sanitizer"):
        some = "Norm.*:Add.*:CrossEntropy.Agrees*:EmbeddingGradient.*:Attention.AgreesOnRandom*"
        for tool in ("memcheck", "racecheck"):
            code, text, took = call(["compute-sanitizer", "--tool", tool, "--error-exitcode", "9", kernels, "--gtest_filter=" + some], 120)
            row("compute-sanitizer " + tool, code == 0, f"{took:.0f} s" + ("" if code == 0 else "\n" + text[-1500:]))
    with Folder() as folder:
        bits(folder, NANO, LONG)
        odd_samples(folder, NANO)
        offload(folder, NANO)
        memory(folder, LARGE)


PEER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tools/bench/peer_gpu.py")
MODELS = (("gpt2", 1024, 512), ("smollm-135m", 2048, 256), ("llama-1b", 2048, 64))   # sequence, batch
KERNELS = ("tensor", "wgmma", "wgmma --attention cudnn", "cublaslt", "cublaslt --fast", "cublaslt --fast --attention cudnn", "portable")


def peer(*words, seconds):
    """What PyTorch reaches, as a dictionary, or why it does not."""
    code, text, _ = call([sys.executable, PEER, *map(str, words)], seconds)
    lines = [line for line in text.splitlines() if line.startswith("{")]
    return (json.loads(lines[-1]), "") if code == 0 and lines else (None, text[-400:])


def flops_of_token(config, sequence):
    """6 for every weight of a product, and causal attention forward and backward."""
    gpt2 = config["model_type"] == "gpt2"
    width, layers = (config["n_embd"], config["n_layer"]) if gpt2 else (config["hidden_size"], config["num_hidden_layers"])
    inner = (config.get("n_inner") or 4 * width) if gpt2 else config["intermediate_size"]
    shared = 1 if gpt2 else config.get("num_key_value_heads", config["num_attention_heads"]) / config["num_attention_heads"]
    block = width * width * (2 + 2 * shared) + width * inner * (2 if gpt2 else 3)
    return 6 * (layers * block + width * config["vocab_size"]) + 6 * layers * sequence * width


def speed_of(folder, model, sequence, batch, kernels):
    """Tokens/s, and the run's folder, or why there is none."""
    out = f"{model}-{kernels.replace(' ', '')}"
    code, text, _ = folder.train(out, "--model", model, "--seq", sequence, "--batch", batch, "--steps", 6, "--device", "cuda",
                                 "--kernels", *kernels.split(), "--tokenizer", "byte")
    if code != 0:
        return None, text[-400:]
    with open(folder.at(out) + "/metrics.jsonl", encoding="utf-8") as file:
        speeds = [json.loads(line)["tokens_per_second"] for line in file if "tokens_per_second" in line]
    return statistics.median(speeds[1:]), folder.at(out)


def bench(models):
    """Side by side with PyTorch, in one run; what would take longer than ten minutes is left out, and said."""
    begin = time.monotonic()
    peaks, why = peer("peaks", seconds=120)
    row("the card, by PyTorch", True, json.dumps(peaks) if peaks else "no PyTorch here: " + why.strip().splitlines()[-1] if why.strip() else "")
    with Folder() as folder:
        for model, sequence, batch in models:
            best, config = None, None
            for kernels in KERNELS if has_wgmma() else [k for k in KERNELS if "wgmma" not in k] + ["tensor --attention cudnn"]:
                what = f"{model}, T {sequence}, bf16, {kernels}"
                if time.monotonic() - begin > 420:
                    row(what, True, "left out: no time")
                    continue
                speed, found = speed_of(folder, model, sequence, batch, kernels)
                if speed is None:
                    row(what, False, found)
                    continue
                with open(found + "/config.json", encoding="utf-8") as file:
                    config = found + "/config.json", json.load(file)
                share = ""
                if peaks:
                    share = f", {speed * flops_of_token(config[1], sequence) / peaks['product_tflops'] * 1e-10:.1f} % of the card's bf16 products"
                row(what, True, f"{speed:,.0f} tokens/s{share}")
                best = max(best or 0, speed)
            left = 560 - (time.monotonic() - begin)
            if config and peaks and left > 60:
                theirs, why = peer("train", config[0], sequence, batch, seconds=left)
                row(f"{model}, PyTorch", True, f"{theirs['tokens_per_second']:,.0f} tokens/s ({theirs['mode']}, micro-batch {theirs['micro_batch']}), "
                    f"ratio {best / theirs['tokens_per_second']:.3f}" if theirs else why)


test(sys.argv[3] if len(sys.argv) > 3 else None) if PART == "test" else bench([m for m in MODELS if len(sys.argv) < 4 or m[0] in sys.argv[3:]])
print(f"{failures} checks failed")
sys.exit(1 if failures else 0)
