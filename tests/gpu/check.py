"""What tools/gpu-check runs on a machine with a GPU: check.py test|bench BUILD. One line of a table for each check."""
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
        return call([STOWAGE, "train", "--data", self.at("text.txt"), "--out", self.at(out), "--eval-batches", "2", *map(str, words)])

    def weights(self, out):
        with open(self.at(out) + "/model.safetensors", "rb") as file:
            return file.read()


def bits(folder):
    nano = ["--model", "nano", "--batch", 12, "--seq", 64, "--steps", 20, "--states", 32]
    for precision, kernels in (("fp32", "portable"), ("bf16", "portable"), ("bf16", "tensor"), ("fp16", "tensor"), ("bf16", "cublaslt"),
                               ("fp16", "cublaslt"), ("fp32", "cublaslt")):
        numerics = ["--precision", precision, "--kernels", kernels]
        what = f"{precision}, {kernels} kernels"
        code, text, _ = folder.train("a", *nano, *numerics, "--device", "cuda", "--vram", "4GiB")
        if code != 0:
            row(f"E1 twice the same bits, {what}", False, text[-600:])
            continue
        folder.train("b", *nano, *numerics, "--device", "cuda", "--vram", "4GiB")
        row(f"E1 twice the same bits, {what}", folder.weights("a") == folder.weights("b"), "")
        code, text, _ = call([STOWAGE, "plan", *map(str, nano[:6]), "--states", "32", *numerics, "--device", "cuda", "--vram", "1MiB", "--json"])
        least = json.loads(text)["minimum_bytes"] if text.startswith("{") else 0
        folder.train("c", *nano, *numerics, "--device", "cuda", "--vram", least)
        folder.train("d", *nano, *numerics, "--device", "cuda", "--vram", "4GiB", "--micro-batch", 1, "--recompute", "full")
        row(f"E2, E3 any budget and split, {what}", folder.weights("a") == folder.weights("c") == folder.weights("d"), f"least {least} bytes")
        if kernels == "portable":
            folder.train("e", *nano, *numerics, "--device", "cpu", "--vram", "4GiB")
            row(f"the CPU's bits, {what}", folder.weights("a") == folder.weights("e"), "")


def memory(folder):
    for model, words in (("nano", ["--batch", 12, "--seq", 64]), ("gpt2", ["--batch", 16, "--seq", 1024, "--micro-batch", 4])):
        code, text, _ = folder.train("m-" + model, "--model", model, *words, "--steps", 3, "--device", "cuda", *(["--tokenizer", "byte"]))
        found = re.search(r"memory +planned (.*), measured (.*) \((.*) %\)", text)
        row(f"memory of {model}", code == 0 and found is not None, found.group(0) if found else text[-600:])


def test():
    kernels = os.path.join(BUILD, "tests/gpu/gpu_kernel_tests")
    program("kernels", [kernels, "--gtest_filter=-Math.*:*Order*"])
    program("training", [os.path.join(BUILD, "tests/gpu/gpu_trainer_tests")])
    if shutil.which("compute-sanitizer"):
        some = "Norm.*:Add.*:CrossEntropy.Agrees*:EmbeddingGradient.*:Attention.AgreesOnRandom*"
        for tool in ("memcheck", "racecheck"):
            code, text, took = call(["compute-sanitizer", "--tool", tool, "--error-exitcode", "9", kernels, "--gtest_filter=" + some], 120)
            row("compute-sanitizer " + tool, code == 0, f"{took:.0f} s" + ("" if code == 0 else "\n" + text[-1500:]))
    with Folder() as folder:
        bits(folder)
        memory(folder)


def bench():
    runs = (("gpt2", 1024, 512), ("smollm-135m", 2048, 256), ("llama-1b", 2048, 64))
    with Folder() as folder:
        for model, sequence, batch in runs:
            for kernels in ("tensor", "cublaslt", "cublaslt --fast", "portable"):
                out = f"{model}-{kernels.replace(' ', '')}"
                code, text, _ = folder.train(out, "--model", model, "--seq", sequence, "--batch", batch, "--steps", 6, "--device", "cuda",
                                             "--kernels", *kernels.split(), "--tokenizer", "byte")
                speeds = []
                if code == 0:
                    with open(folder.at(out) + "/metrics.jsonl", encoding="utf-8") as file:
                        speeds = [json.loads(line)["tokens_per_second"] for line in file if "tokens_per_second" in line]
                row(f"{model}, T {sequence}, bf16, {kernels}", bool(speeds), f"{statistics.median(speeds[1:]):,.0f} tokens/s" if speeds else text[-400:])


test() if PART == "test" else bench()
print(f"{failures} checks failed")
sys.exit(1 if failures else 0)
