"""Runs `tools/gpu-check first` and `second` here as they will run on a card: in a tree of its own, from a
bundle in gpu-packages/, with the emulated device (tests/simt) and a tiny model. Then tests failures: a
missing bundle, a command that cannot train, a probe that finds wrong bits or hangs, too little time.
nvidia-smi, ncu and compute-sanitizer are replaced by scripts that run their arguments.

    rehearse.py BUILD    BUILD: a build with tests and the CUDA Toolkit's headers"""

import os
import re
import shutil
import stat
import subprocess
import sys
import tarfile
import tempfile
import time

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
# Each of the replaced programs' options has a value.
STAND_IN = """#!/bin/sh
while case "$1" in --*) true ;; *) false ;; esac; do shift 2; done
"$@" || exit
echo "    {output}"
"""
FAILING_PROBE = "#!/bin/sh\necho 'FAIL  forward 4096 x 768 -> 2304   other bits'\nexit 1\n"
STEPS = {
    "first": (
        "unpack",
        "libraries",
        "probe",
        "kernel tests",
        "tokens/s of gpt2",
        "ops of gpt2",
        "ncu of six kernels",
    ),
    "second": (
        "unpack",
        "PyTorch",
        "training tests",
        "wgmma's bits on smollm-135m",
        "gpt2 in 8 GiB and in all",
        "llama-1b by wgmma",
    ),
}


class Rehearsal:
    def __init__(self, build, tree):
        self.build, self.tree, self.wrong = build, tree, []
        for name in os.listdir(ROOT):
            if not name.startswith((".git", "build", "gpu-packages", "tools", "out")):
                os.symlink(os.path.join(ROOT, name), os.path.join(tree, name))
        os.mkdir(os.path.join(tree, "tools"))
        for name in os.listdir(os.path.join(ROOT, "tools")):
            if name != "gpu-check":
                os.symlink(os.path.join(ROOT, "tools", name), os.path.join(tree, "tools", name))
        # it finds its tree by its own location
        shutil.copy(os.path.join(ROOT, "tools/gpu-check"), os.path.join(tree, "tools/gpu-check"))
        self.put("bin/nvidia-smi", "#!/bin/sh\necho 'Emulated GPU, 9.0'\n")
        self.put("bin/ncu", STAND_IN.format(output="Compute (SM) Throughput 0 %"))
        self.put("bin/compute-sanitizer", STAND_IN.format(output="========= ERROR SUMMARY: 0 errors"))
        self.put("tiny.json", CONFIG)
        os.mkdir(os.path.join(tree, "gpu-packages"))
        self.put("gpu-packages/commit", "rehearsed\n")

    def put(self, path, text):
        path = os.path.join(self.tree, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, stat.S_IRWXU)

    def pack(self, **texts):
        """Packs the bundle, with scripts in place of some programs. Not compressed, to save time."""
        with tarfile.open(os.path.join(self.tree, "gpu-packages/programs.tar.xz"), "w") as tar:
            for name, source in PROGRAMS.items():
                text = texts.get(os.path.basename(name))
                source = os.path.join(self.build, source)
                if text is not None:
                    source = os.path.join(self.tree, "stand-in")
                    self.put("stand-in", text)
                tar.add(os.path.realpath(source), name)

    def call(self, part, *words):
        """Returns the exit status, the table's rows by step, and the table."""
        out = os.path.join(self.tree, "out-" + part)
        shutil.rmtree(out, ignore_errors=True)
        os.mkdir(out)
        environment = {
            **os.environ,
            "PATH": os.path.join(self.tree, "bin") + ":" + os.environ["PATH"],
            "OUT": out,
        }
        environment.pop("LD_LIBRARY_PATH", None)  # Meson sets it, and it would replace the bundle's library
        done = subprocess.run(
            ["tools/gpu-check", part, "--tiny", os.path.join(self.tree, "tiny.json"), *words],
            cwd=self.tree,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
        )
        tables = [name for name in os.listdir(out) if name.endswith("-table.txt")]
        table = ""
        if len(tables) == 1:
            with open(os.path.join(out, tables[0]), encoding="utf-8") as file:
                table = file.read()
        if not table or table not in done.stdout:
            self.fail(f"{part}: no table", done.stdout)
        rows = {
            found[1].strip(): found[2]
            for found in re.finditer(r"^(\S.{29}) (ok|FAIL|timed out|left out) ", table, re.M)
        }
        return done.returncode, rows, table, done.stdout

    def fail(self, what, text):
        self.wrong.append(what)
        print(f"FAIL  {what}\n{text[-6000:]}\n", flush=True)

    def expect(self, what, called, code, rows, *lines):
        """Checks the named rows, and lines that the table must contain."""
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
        print(f"ok    {what}\n", flush=True)


def main():
    begin = time.monotonic()
    build = os.path.abspath(sys.argv[1])
    missing = [source for source in PROGRAMS.values() if not os.path.exists(os.path.join(build, source))]
    if missing:
        sys.exit(
            f"rehearse.py: {build} lacks {', '.join(missing)}: build it with tests, "
            "and with the CUDA Toolkit's headers"
        )
    with tempfile.TemporaryDirectory(prefix="stowage-rehearsal-") as tree:
        r = Rehearsal(build, tree)
        r.expect(
            "a bundle that is missing",
            r.call("first"),
            1,
            {"unpack": "FAIL", "libraries": "left out", "ncu of six kernels": "left out"},
            "carry gpu-packages by name",
        )
        r.pack()
        r.expect(
            "first",
            r.call("first"),
            0,
            dict.fromkeys(STEPS["first"], "ok"),
            r"unpacked bundle",
            r"NVIDIA's cuDNN",
            r"together .* expected 1506",
            r" 0 of \d+ results are wrong",
            r"kernels +\d+ passed, 0 failed",
            r"gpt2, T 1024, bf16, wgmma --attention cudnn +[0-9,]+ tokens/s",
            r"linear_weight_gradient +.*TFLOP/s",
            r"Throughput",
        )
        r.expect(
            "second",
            r.call("second", "--peer", "60"),
            0,
            dict.fromkeys(STEPS["second"], "ok") | {"PyTorch": ("ok", "left out")},
            r"holds this bundle",
            r"training +\d+ passed, 0 failed",
            r"E1 to E3 with wgmma on smollm-135m +yes: flip wgmma_is_default",
            r"E2, E3 .*, wgmma kernels",
            r"llama-1b, T 2048, bf16, wgmma +[0-9,]+ tokens/s",
        )
        r.pack(gpu_probe=FAILING_PROBE)
        r.expect(
            "a probe that fails",
            r.call("first"),
            1,
            {
                "unpack": "ok",
                "probe": "FAIL",
                "memcheck of products": "ok",
                "kernel tests": "left out",
                "ncu of six kernels": "left out",
            },
            r"FAIL  forward 4096",
            r"compute-sanitizer memcheck of Add",
        )
        r.pack(gpu_probe="#!/bin/sh\necho 'ok    forward 4096'\nsleep 60\n")
        r.expect(
            "a probe that hangs",
            r.call("first", "--seconds", "16"),
            1,
            {"unpack": "ok", "probe": "timed out", "kernel tests": "left out"},
            r"timed out .*forward 4096",
            r"no time",
        )
        r.pack(stowage="#!/bin/sh\necho 'no device' >&2\nexit 1\n")
        r.expect(
            "a command that cannot train",
            r.call("first"),
            1,
            {"unpack": "ok", "libraries": "FAIL", "probe": "left out", "tokens/s of gpt2": "left out"},
            r"no device",
        )
        r.expect(
            "no time",
            r.call("second", "--seconds", "5"),
            0,
            dict.fromkeys(STEPS["second"], "left out"),
            r"no time",
        )
    print(f"{len(r.wrong)} of 7 rehearsals went wrong; {time.monotonic() - begin:.0f} s")
    sys.exit(1 if r.wrong else 0)


main()
