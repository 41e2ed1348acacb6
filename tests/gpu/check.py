"""Checks the correctness of training on a machine with a GPU. tools/gpu-check runs it.

    check.py BUILD [--seconds N] [PART...]   PART: `libraries`, `kernels`, `training`, `sanitizers`
                                             (or `memcheck`, `racecheck`, `synccheck`), `bits`,
                                             `samples`, `budgets`, `offload`, `memory`; default: all,
                                             in N seconds together (570)
    check.py BUILD --tiny CONFIG [...]       with a tiny model on an emulated device, to test this script

Four parts run only if named: `quick` is `kernels` without the tests that read large operands across the bus;
`wgmma` checks that wgmma keeps its bits on smollm-135m, computes right values and has the loss of mma.sync;
`eighty` compares training with a large budget and with 8 GiB; `products` runs only the product tests under
memcheck.

Prints one line of a table for each check. The whole output of failing programs goes to a file next to the
table: FAILURES or failures.txt."""

import json
import os
import re
import shutil
import sys
import time

from decisions import LOSS_APART
from isolated import run_if_any_runs, run_isolated
from runs import Runs, Table, call, card_bytes_in_use, clipped, figure, figures, left, options

BUILD, is_limited = sys.argv[1], False  # is_limited: --seconds was given
table = Table()
row = table.row


def program(name, path, first=None, chosen="*"):
    """Runs a GoogleTest program. Reports its counts, the names of the failed tests, and the output of the
    first one. Suites that a time limit leaves out are named and do not count as failures."""
    begin = time.monotonic()
    outcome = run_if_any_runs(path, first, chosen) if first else run_isolated(path, chosen)
    good = outcome.is_good() or (is_limited and not outcome.failed and bool(outcome.left_out))
    figure(f"failures of {name}", len(outcome.failed) if outcome.passed or outcome.failed else 1)
    row(
        name,
        None if good and not outcome.is_good() else good,
        f"{outcome}"
        if outcome.failed or outcome.skipped or outcome.left_out
        else f"{outcome} in {time.monotonic() - begin:.0f} s",
    )
    for words in outcome.words[:2]:
        print("".join("        " + line + "\n" for line in words.splitlines()[-25:]), end="", flush=True)
    for words in outcome.words:
        keep(name, words)


def keep(name, words):
    with open(os.environ.get("FAILURES", "failures.txt"), "a", encoding="utf-8") as file:
        file.write(f"== {time.strftime('%FT%TZ', time.gmtime())} {name}\n{clipped(words)}\n\n")


def libraries(folder, model):
    """Checks NVIDIA's libraries. If a machine lacks them, their tests skip."""
    for kernels, words in (
        ("cuBLASLt", ["--kernels", "cublaslt"]),
        ("cuDNN", ["--kernels", "tensor", "--attention", "cudnn"]),
    ):
        code, text, _ = folder.train(
            "a", *model, "--precision", "bf16", *words, "--device", "cuda", "--vram", "4GiB"
        )
        replaced = [line for line in text.splitlines() if "our own kernels" in line]
        row(
            "NVIDIA's " + kernels,
            code == 0 and not replaced,
            "\n".join(replaced) if code == 0 else text[-400:],
        )


NANO = ["--model", "nano", "--batch", 12, "--seq", 64, "--steps", 20, "--states", 32]
LONG = [
    "--model",
    "smollm-135m",
    "--batch",
    4,
    "--seq",
    512,
    "--steps",
    3,
    "--states",
    32,
    "--tokenizer",
    "byte",
]
GPT2 = ["--model", "gpt2", "--batch", 64, "--seq", 1024, "--steps", 2, "--states", 32, "--tokenizer", "byte"]
CHAIN = 256  # kernels::chain_terms: loss chunks of a sample begin at multiples of it
LARGE = [("nano", ["--batch", 12, "--seq", 64]), ("gpt2", ["--batch", 16, "--seq", 1024, "--micro-batch", 4])]


def same_bits(folder, model, precision, kernels, host="16GiB", name=""):
    """E1: two runs give the same bits. E2 and E3: the least memory, and single samples with full
    recomputation, give the same bits. Returns whether all hold."""
    numerics = ["--precision", precision, "--kernels", *kernels.split()]
    what = f"{precision}, {kernels} kernels" + (f", {name}" if name else "")
    code, text, _ = folder.train("a", *model, *numerics, "--device", "cuda", "--vram", host)
    if code != 0:
        row(f"E1 twice the same bits, {what}", False, text[-600:])
        return False
    folder.train("b", *model, *numerics, "--device", "cuda", "--vram", host)
    twice = folder.weights("a") == folder.weights("b")
    row(f"E1 twice the same bits, {what}", twice, "")
    least = folder.least_budget(*model[:6], "--states", 32, *numerics)
    folder.train("c", *model, *numerics, "--device", "cuda", "--vram", least)
    folder.train(
        "d", *model, *numerics, "--device", "cuda", "--vram", host, "--micro-batch", 1, "--recompute", "full"
    )
    cut = folder.weights("a") == folder.weights("c") == folder.weights("d")
    row(f"E2, E3 any budget and split, {what}", cut, f"least {least} bytes")
    return twice and cut


def bits(folder, nano, long, deep):
    """Checks a small model with all kinds of kernels, and `deep`, whose heads of 64 suit wgmma's
    attention, with tensor-core kernels."""
    wgmma = (
        [("bf16", "wgmma"), ("fp16", "wgmma"), ("bf16", "cublaslt-wgmma")]
        if folder.has_wgmma(*NANO[:6])
        else []
    )
    for precision, kernels in (
        ("fp32", "portable"),
        ("bf16", "portable"),
        ("bf16", "tensor"),
        ("fp16", "tensor"),
        *wgmma,
        ("bf16", "cublaslt"),
        ("fp16", "cublaslt"),
        ("fp32", "cublaslt"),
        ("bf16", "tensor --attention cudnn"),
        ("fp16", "tensor --attention cudnn"),
        ("bf16", "tensor --optimizer muon"),
    ):
        if not same_bits(folder, nano, precision, kernels, "4GiB"):
            continue
        numerics = ["--precision", precision, "--kernels", *kernels.split()]
        what = f"{precision}, {kernels} kernels"
        if kernels == "portable":
            folder.train("e", *nano, *numerics, "--device", "cpu", "--vram", "4GiB")
            row(f"the CPU's bits, {what}", folder.weights("a") == folder.weights("e"), "")
        # samples long enough for the library's weight gradients and for several blocks of queries
        if "cublaslt" in kernels or "cudnn" in kernels:
            for out, samples in (("f", long[long.index("--batch") + 1]), ("g", 1)):
                folder.train(
                    out, *long, *numerics, "--device", "cuda", "--vram", "16GiB", "--micro-batch", samples
                )
            row(f"E3 samples of 512 tokens, {what}", folder.weights("f") == folder.weights("g"), "")
    for precision, kernels in (("bf16", "tensor"), *wgmma[:1]):
        same_bits(folder, deep, precision, kernels, name="heads of 64")


def wgmma_bits(folder, deep, probe):
    """Results that decide, with tokens/s, whether wgmma becomes the default on cards that have it
    (decisions.py): bits, values, and the loss of training beside that of mma.sync."""
    if not folder.has_wgmma(*deep[:6]):
        return row("E1 to E3 with wgmma", False, "there is no wgmma here")
    holds = same_bits(folder, deep, "bf16", "wgmma", name="heads of 64")
    figure("bits of wgmma", holds)
    row("E1 to E3 with wgmma on smollm-135m", holds, "")
    code, text, _ = folder.train(
        "t", *deep, "--precision", "bf16", "--kernels", "tensor", "--device", "cuda", "--vram", "16GiB"
    )
    losses = [folder.losses(out) for out in "at"]
    if code != 0 or not all(losses) or len(losses[0]) != len(losses[1]):
        row("the loss of wgmma and of mma.sync", False, text[-400:])
    else:
        apart = max(abs(x - y) for x, y in zip(*losses))
        figure("loss of wgmma, difference", apart)
        row(
            "the loss of wgmma and of mma.sync",
            apart <= LOSS_APART,
            f"at most {apart:.2e} apart in {len(losses[0])} steps, limit {LOSS_APART}",
        )
    if "values wgmma" not in figures():  # of an earlier call
        _, text, _ = call([*probe, "--seconds", min(20, left() - 3), "attention", "products"], left())
        print(text, flush=True)
        found = figures().get("values wgmma", [])
        row("values of wgmma", bool(found) and min(found) == 1, f"{len(found)} results")


def odd_samples(folder, model, deep):
    """Samples whose length is not a multiple of the tensor cores' steps. Samples of `deep` are longer than
    a chain of additions, so that loss chunks begin inside of them."""
    has_wgmma = folder.has_wgmma(*NANO[:6])
    odd_samples_of(
        folder, model, 33, ("tensor", "wgmma", "cublaslt") if has_wgmma else ("tensor", "cublaslt"), ""
    )
    odd_samples_of(folder, deep, 301, ("tensor", "wgmma") if has_wgmma else ("tensor",), ", heads of 64")


def odd_samples_of(folder, model, sequence, all_kernels, name):
    for kernels in all_kernels:
        numerics = ["--precision", "bf16", "--kernels", kernels]
        shape = [*model[:4], "--seq", sequence]
        code, text, _ = folder.train(
            "a",
            *shape,
            *model[6:],
            *numerics,
            "--device",
            "cuda",
            "--vram",
            "16GiB" if sequence > CHAIN else "4GiB",
        )
        for micro_batch in (model[3], 2):
            tight = ["--micro-batch", micro_batch]
            least = folder.least_budget(*shape, "--states", 32, *numerics, *tight)
            folder.train("b", *shape, *model[6:], *numerics, *tight, "--device", "cuda", "--vram", least)
            chunks, are_cut = folder.plan("b")["loss_chunks"], sequence > CHAIN
            row(
                f"E2, E3 {sequence} tokens, micro-batch {micro_batch}, {kernels} kernels{name}",
                (chunks > 1 or not are_cut) and folder.weights("a") == folder.weights("b"),
                f"{chunks} loss chunks" if code == 0 else text[-600:],
            )


def two_budgets(folder, model, small, large, kinds=("tensor", "wgmma")):
    """Compares training on a card of 8 GiB with training on one of 80 GiB."""
    has_wgmma = folder.has_wgmma(*NANO[:6])
    for kernels in [k for k in kinds if has_wgmma or k != "wgmma"] or ["tensor"]:
        plans = []
        for out, budget in (("a", small), ("b", large)):
            code, text, _ = folder.train(
                out, *model, "--kernels", kernels, "--device", "cuda", "--vram", budget
            )
            if code != 0:
                break
            plans.append("micro-batch {micro_batch}, {accumulation_steps} steps".format(**folder.plan(out)))
        row(
            f"E2, E3 {small} and {large}, {kernels} kernels",
            code == 0 and folder.weights("a") == folder.weights("b"),
            "; ".join(plans) if code == 0 else text[-600:],
        )


def offload(folder, model):
    for precision, kernels in (("bf16", "tensor"), ("fp32", "portable")):
        numerics = ["--precision", precision, "--kernels", kernels]
        host = ["--host-memory", "4GiB"]
        code, text, _ = folder.train("a", *model, *numerics, "--device", "cuda", "--vram", "4GiB")
        least = folder.least_budget(*model[:6], "--states", 32, *numerics, *host)
        folder.train("b", *model, *numerics, *host, "--device", "cuda", "--vram", least)
        offloaded = len(folder.plan("b")["offload"])
        row(
            f"E2 in host memory, {precision}, {kernels} kernels",
            offloaded > 0 and folder.weights("a") == folder.weights("b"),
            f"least {least} bytes, {offloaded} kinds of tensors" if code == 0 else text[-600:],
        )


def memory(folder, models):
    """Compares the memory of the whole process, including context, kernels and graphs, with the plan's
    peak, first with the reserve that the card's profile assumes and then with the one that a calibration
    measured. Other processes must not use the card meanwhile."""
    for model, words in models:
        code, text, _ = call(
            [
                folder.stowage,
                "calibrate",
                "--model",
                model,
                *words,
                "--device",
                "cuda",
                "--out",
                folder.at("card.json"),
            ]
        )
        measured = re.search("outside the arena .*", text)
        row(
            f"calibration of {os.path.basename(model)}",
            code == 0,
            (measured[0] if measured else "the reserve is as assumed") if code == 0 else text[-600:],
        )
        for device in ["cuda"] + ([folder.at("card.json")] if code == 0 else []):
            memory_of(folder, model, words, device)


def memory_of(folder, model, words, device):
    name = f"memory of {os.path.basename(model)}" + (", calibrated" if device != "cuda" else "")
    before, most = card_bytes_in_use(), 0

    def watch():
        nonlocal most
        most = max(most, card_bytes_in_use() or 0)

    speeds, why = folder.speeds(
        "m",
        20,
        "--model",
        model,
        *words,
        "--device",
        device,
        "--tokenizer",
        "byte",
        watch=None if before is None else watch,
    )
    if speeds is None or before is None:
        row(name, speeds is not None, why or "nvidia-smi does not tell")
        return
    planned = folder.plan("m")["bytes"]
    used, apart = most - before, most - before - planned["peak"]
    row(
        name,
        abs(apart) <= max(planned["peak"] // 100, 32 << 20),
        f"arena {planned['arena'] >> 20} and reserve {planned['reserve'] >> 20} MiB planned, "
        f"{used >> 20} MiB in use: {(used - planned['arena']) >> 20} outside of the arena",
    )


SOME = (
    "Norm.*:Adapter.Random*:Scale.*:QkNorm.*:QkNormGradient.Cut*:Add.*:CrossEntropy.Agrees*:"
    "EmbeddingGradient.*:Attention.AgreesOnRandom*"
)
BY_WARPS = "TensorProduct.*:TensorAttention.Agrees*:TensorAdapter.*"
PRODUCTS = "TensorProduct.*:Linear.*"


def sanitizers(kernels, tools=("memcheck", "racecheck", "synccheck"), runs_of=None, least=60):
    if not shutil.which("compute-sanitizer"):
        return row("compute-sanitizer", False, "is not there")
    # tests/kernels/cuda_device.cpp: skips NVIDIA's libraries, which would take minutes under the tool
    os.environ["STW_OWN_KERNELS"] = "1"
    # registered.cpp: the memory after a buffer is not accessible to the device
    os.environ["STW_GUARDED"] = "1"
    for tool, chosen in runs_of or (
        ("memcheck", SOME),
        ("memcheck", BY_WARPS),
        ("racecheck", SOME),
        ("racecheck", BY_WARPS),
        ("synccheck", SOME + ":" + BY_WARPS),
    ):
        if tool not in tools:
            continue
        if tool != "memcheck":
            os.environ.pop("STW_GUARDED", None)
        name = f"compute-sanitizer {tool} of {chosen.split('.')[0]}…"
        if left() < least:
            row(name, None, "left out for want of time")
            continue
        # Failing runtime calls are not reported: the tests see them, and handle some.
        code, text, took = call(
            [
                "compute-sanitizer",
                "--tool",
                tool,
                "--report-api-errors",
                "no",
                "--error-exitcode",
                "9",
                kernels,
                "--gtest_filter=" + chosen,
            ],
            left() - 5 if runs_of else 120,
        )
        if "Device not supported" in text:  # some sandboxes do not let tools inspect the device
            return row(name, True, "left out: compute-sanitizer does not support this machine")
        # later errors are consequences
        first = [line for line in text.splitlines() if line.startswith("=========")][:25]
        row(
            name,
            code == 0,
            f"{took:.0f} s" + ("" if code == 0 else "\n" + "\n".join(first) + "\n" + text[-300:]),
        )
        if code != 0:
            keep(name, text)


def with_wide_heads(folder, config):
    """A tiny model with heads of 64."""
    with open(config, encoding="utf-8") as file:
        wide = json.load(file) | {"n_embd": 64, "n_head": 1, "n_positions": 301}
    with open(folder.at("wide.json"), "w", encoding="utf-8") as file:
        json.dump(wide, file)
    return folder.at("wide.json")


def main():
    global is_limited
    words, tiny = sys.argv[2:], None
    given = options(words, "tiny")
    tiny, is_limited = given.get("tiny"), "seconds" in given
    kernels, trainer = (
        os.path.join(BUILD, "tests/gpu", name) for name in ("gpu_kernel_tests", "gpu_trainer_tests")
    )
    with Runs(BUILD) as folder:
        shape = ["--model", tiny, "--batch", 3, "--seq", 32, "--steps", 2, "--states", 32] if tiny else NANO
        deep = (
            [
                "--model",
                with_wide_heads(folder, tiny),
                "--batch",
                3,
                "--seq",
                32,
                "--steps",
                1,
                "--states",
                32,
            ]
            if tiny
            else LONG
        )
        budgets = (shape, "1026MiB", "2GiB") if tiny else (GPT2, "8GiB", "80GiB")
        parts = {
            "bits": lambda: bits(folder, shape, shape if tiny else LONG, deep),
            "samples": lambda: odd_samples(folder, shape, deep),
            "budgets": lambda: two_budgets(folder, *budgets),
            "offload": lambda: offload(folder, shape),
            "memory": lambda: memory(folder, [(tiny, shape[2:6])] if tiny else LARGE),
            "libraries": lambda: libraries(folder, shape),
        }
        # on an emulated device only a few, to see that they run
        some = (
            {"kernels": "Add.*:Scale.*", "training": "DeviceTrainingCases.*"}
            if tiny
            else {"kernels": "*", "training": "*"}
        )
        quick = some["kernels"] if tiny else "*-ProductTiles.*"
        probe = [
            os.path.join(BUILD, "tests/gpu/gpu_probe"),
            *(("--small",) if tiny else ()),
            *(("--figures", os.environ["FIGURES"]) if "FIGURES" in os.environ else ()),
        ]
        programs = {
            "kernels": lambda: program("kernels", kernels, "Add.*", some["kernels"]),
            "training": lambda: program("training", trainer, None, some["training"]),
        }
        if not tiny:
            # the slowest part comes last
            parts = {
                "libraries": parts.pop("libraries"),
                **programs,
                **parts,
                "sanitizers": lambda: sanitizers(kernels),
            }
        every = (
            parts
            | programs
            | {
                tool: lambda tool=tool: sanitizers(kernels, (tool,))
                for tool in ("memcheck", "racecheck", "synccheck")
            }
            | {
                "quick": lambda: program("kernels", kernels, "Add.*", quick),
                "wgmma": lambda: wgmma_bits(folder, deep, probe),
                "eighty": lambda: two_budgets(
                    folder, budgets[0], budgets[1], "2GiB" if tiny else "60GiB", ("wgmma",)
                ),
                "products": lambda: sanitizers(
                    kernels, runs_of=(("memcheck", "Add.*" if tiny else PRODUCTS),), least=5
                ),
            }
        )
        for word in words:
            if word not in every:
                sys.exit(f"check.py: {word}: expected one of {', '.join(every)}")
        for name in words or parts:
            table.part(name, every[name])
    sys.exit(table.end())


main()
