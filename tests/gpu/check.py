"""What tools/gpu-check runs on a machine with a GPU to see that it trains what it should:

    check.py BUILD [PART...]             PART: `libraries`, `kernels`, `training`, `sanitizers` (or `memcheck`, `racecheck`, `synccheck`), `bits`, `samples`, `budgets`, `offload`, `memory`; all of them
    check.py BUILD --tiny CONFIG [...]   with a tiny model, on an emulated device: whether this script works

One line of a table for each check. What failing programs said goes whole to a file beside the table, SAID or said.txt.
"""
import os
import re
import shutil
import sys
import time

from isolated import run_if_any_runs, run_isolated
from runs import Runs, Table, call, card_bytes_in_use, clipped, left

BUILD = sys.argv[1]
table = Table()
row = table.row


def program(name, path, first=None):
    """A GoogleTest program: its counts, the names of what failed, and what the first of these said."""
    begin = time.monotonic()
    outcome = run_if_any_runs(path, first) if first else run_isolated(path)
    row(name, outcome.is_good(), f"{outcome}" if outcome.failed or outcome.skipped else f"{outcome} in {time.monotonic() - begin:.0f} s")
    for words in outcome.words[:2]:
        print("".join("        " + line + "\n" for line in words.splitlines()[-25:]), end="", flush=True)
    for words in outcome.words:
        keep(name, words)


def keep(name, words):
    with open(os.environ.get("SAID", "said.txt"), "a", encoding="utf-8") as file:
        file.write(f"== {time.strftime('%FT%TZ', time.gmtime())} {name}\n{clipped(words)}\n\n")


def libraries(folder, model):
    """NVIDIA's, which a machine may lack: tests of them skip then."""
    for kernels, words in (("cuBLASLt", ["--kernels", "cublaslt"]), ("cuDNN", ["--kernels", "tensor", "--attention", "cudnn"])):
        code, text, _ = folder.train("a", *model, "--precision", "bf16", *words, "--device", "cuda", "--vram", "4GiB")
        told = [line for line in text.splitlines() if "our own kernels" in line]
        row("NVIDIA's " + kernels, code == 0 and not told, "\n".join(told) if code == 0 else text[-400:])


NANO = ["--model", "nano", "--batch", 12, "--seq", 64, "--steps", 20, "--states", 32]
LONG = ["--model", "smollm-135m", "--batch", 4, "--seq", 512, "--steps", 3, "--states", 32, "--tokenizer", "byte"]
GPT2 = ["--model", "gpt2", "--batch", 64, "--seq", 1024, "--steps", 2, "--states", 32, "--tokenizer", "byte"]
LARGE = [("nano", ["--batch", 12, "--seq", 64]), ("gpt2", ["--batch", 16, "--seq", 1024, "--micro-batch", 4])]


def bits(folder, nano, long):
    wgmma = [("bf16", "wgmma"), ("fp16", "wgmma")] if folder.has_wgmma(*NANO[:6]) else []
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
        least = folder.least_budget(*nano[:6], "--states", 32, *numerics)
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
    for kernels in ("tensor", "wgmma", "cublaslt") if folder.has_wgmma(*NANO[:6]) else ("tensor", "cublaslt"):
        numerics = ["--precision", "bf16", "--kernels", kernels]
        shape = [*model[:4], "--seq", 33]
        code, text, _ = folder.train("a", *shape, *model[6:], *numerics, "--device", "cuda", "--vram", "4GiB")
        for micro_batch in (model[3], 2):
            tight = ["--micro-batch", micro_batch]
            least = folder.least_budget(*shape, "--states", 32, *numerics, *tight)
            folder.train("b", *shape, *model[6:], *numerics, *tight, "--device", "cuda", "--vram", least)
            chunks = folder.plan("b")["loss_chunks"]
            row(f"E2, E3 33 tokens, micro-batch {micro_batch}, {kernels} kernels", chunks > 1 and folder.weights("a") == folder.weights("b"),
                f"{chunks} loss chunks" if code == 0 else text[-600:])


def two_budgets(folder, model, small, large):
    """What a card of 8 GiB trains, and one of 80 GiB."""
    for kernels in ("tensor", "wgmma") if folder.has_wgmma(*NANO[:6]) else ("tensor",):
        plans = []
        for out, budget in (("a", small), ("b", large)):
            code, text, _ = folder.train(out, *model, "--kernels", kernels, "--device", "cuda", "--vram", budget)
            if code != 0:
                break
            plans.append("micro-batch {micro_batch}, {accumulation_steps} steps".format(**folder.plan(out)))
        row(f"E2, E3 {small} and {large}, {kernels} kernels", code == 0 and folder.weights("a") == folder.weights("b"), "; ".join(plans) if code == 0 else text[-600:])


def offload(folder, model):
    for precision, kernels in (("bf16", "tensor"), ("fp32", "portable")):
        numerics = ["--precision", precision, "--kernels", kernels]
        host = ["--host-memory", "4GiB"]
        code, text, _ = folder.train("a", *model, *numerics, "--device", "cuda", "--vram", "4GiB")
        least = folder.least_budget(*model[:6], "--states", 32, *numerics, *host)
        folder.train("b", *model, *numerics, *host, "--device", "cuda", "--vram", least)
        offloaded = len(folder.plan("b")["offload"])
        row(f"E2 in host memory, {precision}, {kernels} kernels", offloaded > 0 and folder.weights("a") == folder.weights("b"),
            f"least {least} bytes, {offloaded} kinds of tensors" if code == 0 else text[-600:])


def memory(folder, models):
    """The whole process, context and kernels and graphs included, against the plan's peak, with the reserve that the card's profile assumes
    and with the one that a calibration measured. Others must leave the card alone."""
    for model, words in models:
        code, text, _ = call([folder.stowage, "calibrate", "--model", model, *words, "--device", "cuda", "--out", folder.at("card.json")])
        told = re.search("outside the arena .*", text)
        row(f"calibration of {os.path.basename(model)}", code == 0, (told[0] if told else "the reserve is as assumed") if code == 0 else text[-600:])
        for device in ["cuda"] + ([folder.at("card.json")] if code == 0 else []):
            memory_of(folder, model, words, device)


def memory_of(folder, model, words, device):
    name = f"memory of {os.path.basename(model)}" + (", calibrated" if device != "cuda" else "")
    before, most = card_bytes_in_use(), 0

    def watch():
        nonlocal most
        most = max(most, card_bytes_in_use() or 0)
    speeds, why = folder.speeds("m", 20, "--model", model, *words, "--device", device, "--tokenizer", "byte", watch=None if before is None else watch)
    if speeds is None or before is None:
        row(name, speeds is not None, why or "nvidia-smi does not tell")
        return
    planned = folder.plan("m")["bytes"]
    used, apart = most - before, most - before - planned["peak"]
    row(name, abs(apart) <= max(planned["peak"] // 100, 32 << 20),
        f"arena {planned['arena'] >> 20} and reserve {planned['reserve'] >> 20} MiB planned, {used >> 20} MiB in use: {(used - planned['arena']) >> 20} outside of the arena")


def sanitizers(kernels, tools=("memcheck", "racecheck", "synccheck")):
    if not shutil.which("compute-sanitizer"):
        return row("compute-sanitizer", False, "is not there")
    some = "Norm.*:Adapter.Random*:Scale.*:QkNorm.*:QkNormGradient.Cut*:Add.*:CrossEntropy.Agrees*:EmbeddingGradient.*:Attention.AgreesOnRandom*"
    by_warps = "TensorProduct.*:TensorAttention.Agrees*:TensorAdapter.*"
    os.environ["STW_OWN_KERNELS"] = "1"   # tests/kernels/cuda_device.cpp: minutes of a tool's time would go into NVIDIA's
    os.environ["STW_GUARDED"] = "1"   # registered.cpp: what lies behind a buffer is no memory of the device's
    for tool, chosen in (("memcheck", some), ("memcheck", by_warps), ("racecheck", some), ("racecheck", by_warps), ("synccheck", some + ":" + by_warps)):
        if tool not in tools:
            continue
        if tool != "memcheck":
            os.environ.pop("STW_GUARDED", None)
        name = f"compute-sanitizer {tool} of {chosen.split('.')[0]}…"
        if left() < 60:
            row(name, False, "left out for want of time")
            continue
        # Calls of the runtime that fail the tests see by themselves, and cope with some.
        code, text, took = call(["compute-sanitizer", "--tool", tool, "--report-api-errors", "no", "--error-exitcode", "9", kernels, "--gtest_filter=" + chosen], 120)
        if "Device not supported" in text:   # some sandboxes let no tool look into the device
            return row(name, True, "left out: compute-sanitizer does not support this machine")
        first = [line for line in text.splitlines() if line.startswith("=========")][:25]   # what follows is the consequence
        row(name, code == 0, f"{took:.0f} s" + ("" if code == 0 else "\n" + "\n".join(first) + "\n" + text[-300:]))
        if code != 0:
            keep(name, text)


def main():
    words, tiny = sys.argv[2:], None
    if words[:1] == ["--tiny"]:
        tiny, words = words[1], words[2:]
    kernels = os.path.join(BUILD, "tests/gpu/gpu_kernel_tests")
    shape = ["--model", tiny, "--batch", 3, "--seq", 32, "--steps", 2, "--states", 32] if tiny else NANO
    budgets = (shape, "1026MiB", "2GiB") if tiny else (GPT2, "8GiB", "80GiB")
    with Runs(BUILD) as folder:
        parts = {"bits": lambda: bits(folder, shape, shape if tiny else LONG), "samples": lambda: odd_samples(folder, shape),
                 "budgets": lambda: two_budgets(folder, *budgets), "offload": lambda: offload(folder, shape),
                 "memory": lambda: memory(folder, [(tiny, shape[2:6])] if tiny else LARGE), "libraries": lambda: libraries(folder, shape)}
        if not tiny:
            parts = {"libraries": parts.pop("libraries"), "kernels": lambda: program("kernels", kernels, "Add.*"),
                     "training": lambda: program("training", os.path.join(BUILD, "tests/gpu/gpu_trainer_tests")), **parts,
                     "sanitizers": lambda: sanitizers(kernels)}   # the slowest comes last
            alone = {tool: lambda tool=tool: sanitizers(kernels, (tool,)) for tool in ("memcheck", "racecheck", "synccheck")}   # parts of the last one
        every = parts | ({} if tiny else alone)
        for word in words:
            if word not in every:
                sys.exit(f"check.py: {word}: expected one of {', '.join(every)}")
        for name in words or parts:
            table.part(name, every[name])
    sys.exit(table.end())


main()
