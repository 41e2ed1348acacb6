"""Runs the three calls of tools/gpu-check here as they will run on a card: in a tree of its own, from a
bundle in gpu-packages/. nvidia-smi, ncu and compute-sanitizer are replaced by scripts.

    rehearse.py BUILD names    with the real names and sizes of models, over stand-ins for the programs
                               (stand_ins.py) that are healthy, fail, hang, are slow or give wrong values
    rehearse.py BUILD tiny     with a tiny model, on the emulated device (tests/simt); then with a missing
                               bundle, a command that cannot train, and too little time
    rehearse.py BUILD          both

BUILD: a build with tests and the CUDA Toolkit's headers."""

import json
import os
import re
import shutil
import stat
import subprocess
import sys
import tarfile
import tempfile
import time

import bench
import bundle
import runs
import stand_ins
from decisions import SWITCHES

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
# Heads of 64, which wgmma's attention supports.
CONFIG = """{"model_type": "gpt2", "vocab_size": 256, "n_positions": 33, "n_embd": 64, "n_layer": 1, \
"n_head": 1,
            "embd_pdrop": 0.1, "attn_pdrop": 0.0, "resid_pdrop": 0.1}"""
PROGRAMS = {
    "tools/stowage/stowage": "tools/stowage/stowage",
    "src/libstowage.so.0": "tests/simt/libstowage.so.0",
    "tests/gpu/gpu_probe": "tests/simt/simt_gpu_probe",
    "tests/gpu/gpu_kernel_tests": "tests/simt/simt_kernel_tests",
    "tests/gpu/gpu_trainer_tests": "tests/simt/simt_trainer_tests",
}
STAND_INS = {
    "tools/stowage/stowage": stand_ins.STOWAGE,
    "tests/gpu/gpu_probe": stand_ins.PROBE,
    "tests/gpu/gpu_kernel_tests": stand_ins.TESTS,
    "tests/gpu/gpu_trainer_tests": stand_ins.TESTS,
}
MOST_FILES = 8  # that come back from a card
RIGHT = {"memcheck of products": "left out"}
STEPS = {
    "first": ("unpack", "tokens/s of gpt2", "probe", "libraries", "kernel tests", "state of the card"),
    "second": (
        "unpack",
        "peaks",
        "PyTorch",
        "tokens/s of gpt2",
        "wgmma's bits on smollm-135m",
        "gpt2 in 8 GiB and in 60",
        "ops of gpt2",
        "ncu of six kernels",
        "state of the card",
    ),
    "third": (
        "unpack",
        "repaired",
        "tokens/s of gpt2",
        "llama-1b",
        "training tests",
        "state of the card",
    ),
}


class Rehearsal:
    def __init__(self, build, tree):
        self.build, self.tree, self.wrong, self.count = build, tree, [], 0
        self.begin = time.monotonic()
        for name in os.listdir(ROOT):
            if not name.startswith((".git", "build", "gpu-packages", "tools", "out")):
                os.symlink(os.path.join(ROOT, name), os.path.join(tree, name))
        for folder in ("tools", "tools/bench"):
            os.mkdir(os.path.join(tree, folder))
            for name in os.listdir(os.path.join(ROOT, folder)):
                if name not in ("gpu-check", "bench"):
                    os.symlink(os.path.join(ROOT, folder, name), os.path.join(tree, folder, name))
        # it finds its tree by its own location
        shutil.copy(os.path.join(ROOT, "tools/gpu-check"), os.path.join(tree, "tools/gpu-check"))
        self.script("bin/ncu", stand_ins.NCU.format(output="Compute (SM) Throughput 0 %"))
        self.script(
            "bin/compute-sanitizer", stand_ins.RUN_IT.format(output="========= ERROR SUMMARY: 0 errors")
        )
        self.script("bin/nvidia-smi", stand_ins.NVIDIA_SMI.format(python=sys.executable))
        os.mkdir(os.path.join(tree, "gpu-packages"))
        self.script("gpu-packages/commit", "rehearsed\n")

    def script(self, path, text):
        path = os.path.join(self.tree, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if os.path.islink(path):
            os.remove(path)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, stat.S_IRWXU)

    def pack(self, **texts):
        """Packs the bundle, with scripts in place of some programs. Not compressed, to save time."""
        with tarfile.open(os.path.join(self.tree, "gpu-packages/programs.tar.xz"), "w") as tar:
            about = {"commit": "rehearsed", "revision": "rehearsed", "capability": "90"}
            self.script("about", json.dumps(about))
            tar.add(os.path.join(self.tree, "about"), bundle.ABOUT)
            for name, source in PROGRAMS.items():
                text = texts.get(os.path.basename(name))
                source = os.path.join(self.build, source)
                if text is not None:
                    source = os.path.join(self.tree, "stand-in")
                    self.script("stand-in", text)
                tar.add(os.path.realpath(source), name)

    def call(self, part, *words, **environment):
        """Returns the exit status, the table's rows by step, the table with the last block, the output."""
        out = os.path.join(self.tree, "out-" + part)
        shutil.rmtree(out, ignore_errors=True)
        os.mkdir(out)
        environment = {
            **os.environ,
            "PATH": os.path.join(self.tree, "bin") + ":" + os.environ["PATH"],
            "OUT": out,
            "REHEARSAL_TREE": self.tree,
            "PYTHONDONTWRITEBYTECODE": "1",
            **environment,
        }
        environment.pop("LD_LIBRARY_PATH", None)  # Meson sets it, and it would replace the bundle's library
        done = subprocess.run(
            ["tools/gpu-check", part, *words],
            cwd=self.tree,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
        )
        files = os.listdir(out)
        if len(files) > MOST_FILES:
            self.fail(f"{part}: {len(files)} files", " ".join(files))
        tables = [name for name in files if name.endswith("-table.txt")]
        table = ""
        if len(tables) == 1:
            with open(os.path.join(out, tables[0]), encoding="utf-8") as file:
                table = file.read()
        if not table or table.splitlines()[1] not in done.stdout:
            self.fail(f"{part}: no table", done.stdout)
        rows = {
            found[1].strip(): found[2]
            for found in re.finditer(r"^(\S.{29}) (ok|FAIL|timed out|cut off|left out) ", table, re.M)
        }
        return done.returncode, rows, table, done.stdout

    def fail(self, what, text):
        self.wrong.append(what)
        print(f"FAIL  {what}\n{text[-9000:]}\n", flush=True)

    def expect(self, what, called, code, rows, *lines):
        """Checks the named rows, and lines that the table must contain."""
        self.count += 1
        got_code, got, table, text = called
        wrong = [f"exit status {got_code}"] if got_code != code else []
        wrong += [
            f"{name}: {got.get(name)}, not {result}"
            for name, result in rows.items()
            if got.get(name) not in (result if isinstance(result, tuple) else (result,))
        ]
        wrong += [f"no line {line}" for line in lines if not re.search(line, table, re.M)]
        if wrong:
            return self.fail(f"{what}: {'; '.join(wrong)}", text + "\n" + table)
        print(table, flush=True)
        print(f"ok    {what}, at {time.monotonic() - self.begin:.0f} s\n", flush=True)


def all_ok(part):
    return dict.fromkeys(STEPS[part], "ok") | (RIGHT if part != "second" else {})


def with_names(r):
    """The stand-in of the probe repeats what the probe on the emulated device prints."""
    with open(os.path.join(r.tree, "probe-lines.txt"), "wb") as lines:
        subprocess.run(
            [
                os.path.join(r.build, PROGRAMS["tests/gpu/gpu_probe"]),
                *("--small", "--seconds", "250", "--part-seconds", "200"),
                *("--figures", os.path.join(r.tree, "probe-figures.tsv")),
                *("copy", "peak", "attention", "variants", "costs", "branch", "products"),
            ],
            stdout=lines,
            check=True,
        )
    r.script("tools/bench/peer_gpu.py", stand_ins.PEER)
    r.script("modules/torch/__init__.py", "")  # peer_gpu.py above takes its place

    def call(mode, part, *words):
        if part == "first" or mode == "wrong":  # a new bundle has no figures of an older one
            r.pack(
                **{
                    os.path.basename(name): text.format(python=sys.executable)
                    for name, text in STAND_INS.items()
                }
            )
        return r.call(
            part,
            *words,
            REHEARSED=mode,
            REAL_STOWAGE=os.path.join(r.build, PROGRAMS["tools/stowage/stowage"]),
            PYTHONPATH=os.path.join(r.tree, "modules"),
        )

    folder = runs.Runs(r.build)
    for name in {**bench.MODELS, **bench.MARKS}:
        if not bench.flops_of_token(folder.config(name), 1024) > 1e8:
            r.fail(f"the config of {name}", "")
    h100 = r"\[NVIDIA H100 80GB HBM3\]"
    r.expect(
        "healthy, first",
        call("healthy", "first"),
        0,
        all_ok("first"),
        r"gpt2, T 1024, bf16, tensor +380,000 tokens/s.*6[34]\d MiB outside of the arena.*" + h100,
        r"gpt2, T 1024, bf16, wgmma +560,000 tokens/s",
        r"6 stages of 64x128 +.*times as fast",
        r"tiles of qkv, .*chosen .* takes .* longer than",
        r"weight gradients on a branch",
        r"^kernel tests +ok .*[34] passed, 0 failed",
        r"Call at once.*gpu-check second --seconds 280 --peer 105",
        r"wgmma by default +open: no figure of bits",
    )
    r.expect(
        "healthy, second",
        call("healthy", "second"),
        0,
        all_ok("second"),
        r"455,000 tokens/s on NVIDIA H100 80GB HBM3: compile",
        r"cublaslt-wgmma --fast --attention cudnn +[0-9,]+ tokens/s",
        r"linear_weight_gradient +.*TFLOP/s",
        r"E2, E3 8GiB and 60GiB, wgmma kernels",
        r"wgmma by default +CHANGE to wgmma: .*1.47 times.*wgmma_is_default",
        r"gpt2: 560,000 tokens/s by wgmma, mark 500,000: reached",
        r"gpt2: 1.231 x PyTorch's 455,000 tokens/s, mark 1.15: reached",
        r"reserve +CHANGE to 70\d MiB",
        r"Throughput",
        r"gpu-check third --seconds 130",
        *(rf"^  {switch.name} +(?!open)" for switch in SWITCHES),
    )
    r.expect(
        "healthy, third",
        call("healthy", "third", "--repaired", "tiles,attention"),
        0,
        all_ok("third"),
        r"llama-1b, T 2048, bf16, wgmma +560,000 tokens/s",
        r"training +4 passed, 0 failed",
        r"Keep the tables under tests/gpu/results/",
    )
    broken = {"tokens/s of gpt2": "FAIL", "probe": "FAIL", "libraries": "ok", "memcheck of products": "ok"}
    tensor = r"gpt2, T 1024, bf16, tensor +380,000 tokens/s"
    r.expect(
        "failing, first",
        call("failing", "first"),
        1,
        broken | {"kernel tests": "ok"},
        tensor,
        r"FAIL +gpt2, T 1024, bf16, wgmma +.*illegal instruction",
        r"Kernels with wgmma are wrong or hang",
        r"Give the card back",
    )
    r.expect(
        "failing, second",
        call("failing", "second"),
        1,
        {"PyTorch": "ok", "tokens/s of gpt2": "FAIL", "ops of gpt2": "FAIL", "ncu of six kernels": "ok"},
        tensor,
        r"bf16, wgmma --attention cudnn +left out: wgmma failed",
        r"bf16, cublaslt --fast --attention cudnn +520,000 tokens/s",
        r"wgmma by default +keep tensor: .*its values are wrong",
        r"gpt2: 380,000 tokens/s by tensor",
    )
    r.expect(
        "hanging, first",
        call("hanging", "first", "--patience", "3"),
        1,
        broken | {"kernel tests": "ok"},
        tensor,
        r"FAIL +gpt2, T 1024, bf16, wgmma +hangs after 0 steps",
        r"Kernels with wgmma are wrong or hang",
    )
    r.expect(
        "slow, first",
        call("slow", "first", "--seconds", "40"),
        0,
        {"tokens/s of gpt2": "ok", "probe": "ok", "libraries": "ok", "kernel tests": "ok"},
        r"cut +kernels +2 passed, 0 failed, 1 suites left out or cut off",
        r"Call at once",
    )
    r.expect(
        "slow, second",
        call("slow", "second"),
        0,
        all_ok("second"),
        r"wgmma by default +keep tensor: it is no faster than tensor",
    )
    r.expect(
        "wrong, second",
        call("wrong", "second"),
        1,
        {"PyTorch": "ok", "peaks": "FAIL", "tokens/s of gpt2": "ok", "wgmma's bits on smollm-135m": "FAIL"},
        r"wgmma by default +keep tensor: its values are wrong, its loss is 5.0e-01 away",
    )
    r.expect(
        "wrong, third",
        call("wrong", "third"),
        1,
        {"repaired": "FAIL", "llama-1b": "ok", "training tests": "FAIL", "memcheck of products": "FAIL"},
        r"Repair: wgmma",
    )


def with_tiny_models(r):
    tiny = os.path.join(r.tree, "tiny.json")
    r.script("tiny.json", CONFIG)

    def call(part, *words):
        return r.call(part, "--tiny", tiny, *words)

    r.expect(
        "a bundle that is missing",
        call("first"),
        1,
        {"unpack": "FAIL", "libraries": "left out", "kernel tests": "left out"},
        "carry gpu-packages by name",
        "Nothing ran",
    )
    r.pack()
    r.expect(
        "first",
        call("first", "--seconds", "280"),
        0,
        all_ok("first"),
        r"unpacked bundle",
        r"NVIDIA's cuDNN",
        r"together .* expected 1506",
        r" 0 of \d+ results are wrong",
        r"kernels +\d+ passed, 0 failed",
        r"gpt2, T 1024, bf16, wgmma +[0-9,]+ tokens/s",
    )
    r.expect(
        "second",
        call("second", "--peer", "60"),
        0,
        all_ok("second") | {"PyTorch": ("ok", "left out")},
        r"holds this bundle",
        r"gpt2, T 1024, bf16, wgmma --attention cudnn +[0-9,]+ tokens/s",
        r"E1 to E3 with wgmma on smollm-135m",
        r"the loss of wgmma and of mma.sync +at most",
        r"E2, E3 .*, wgmma kernels",
        r"linear_weight_gradient +.*TFLOP/s",
        r"Throughput",
    )
    r.expect(
        "third",
        call("third", "--repaired", "attention"),
        0,
        all_ok("third"),
        r"llama-1b, T 2048, bf16, wgmma +[0-9,]+ tokens/s",
        r"training +\d+ passed, 0 failed",
    )
    r.pack(stowage="#!/bin/sh\necho 'no device' >&2\nexit 1\n")
    r.expect(
        "a command that cannot train",
        call("first", "--seconds", "60"),
        1,
        {"unpack": "ok", "tokens/s of gpt2": "FAIL", "libraries": "FAIL", "kernel tests": "ok"},
        r"no device",
    )
    r.expect("no time", call("second", "--seconds", "5"), 0, {"PyTorch": "left out"}, r"no time")


def main():
    build, chosen = os.path.abspath(sys.argv[1]), sys.argv[2:] or ["names", "tiny"]
    missing = [source for source in PROGRAMS.values() if not os.path.exists(os.path.join(build, source))]
    if missing:
        sys.exit(
            f"rehearse.py: {build} lacks {', '.join(missing)}: build it with tests, "
            "and with the CUDA Toolkit's headers"
        )
    wrong = count = 0
    for name in chosen:
        with tempfile.TemporaryDirectory(prefix="stowage-rehearsal-") as tree:
            r = Rehearsal(build, tree)
            {"names": with_names, "tiny": with_tiny_models}[name](r)
            wrong, count = wrong + len(r.wrong), count + r.count
            print(f"{name}: {time.monotonic() - r.begin:.0f} s", flush=True)
    print(f"{wrong} of {count} rehearsals went wrong")
    sys.exit(1 if wrong else 0)


main()
