"""Runs the C example on a small text and checks its output files: example_test.py PROGRAM"""

import json
import os
import struct
import subprocess
import sys
import tempfile


def check(program, environment=None):
    with tempfile.TemporaryDirectory() as folder:
        text = os.path.join(folder, "text.txt")
        with open(text, "w") as file:
            file.write("How much wood would a woodchuck chuck if a woodchuck could chuck wood?\n" * 60)
        done = subprocess.run(
            [program, text, "nano", "5", folder], capture_output=True, text=True, env=environment
        )
        print(done.stdout, done.stderr, sep="")
        assert done.returncode == 0, f"exit code {done.returncode}"
        steps = [line for line in done.stdout.splitlines() if line.startswith("step")]
        losses = [float(line.split("loss ")[1].split()[0]) for line in steps]
        assert len(losses) == 5 and losses[-1] < losses[0], losses
        assert os.path.getsize(os.path.join(folder, "checkpoint.stw")) > 0
        with open(os.path.join(folder, "config.json")) as file:
            assert json.load(file)["model_type"] == "gpt2"
        with open(os.path.join(folder, "model.safetensors"), "rb") as file:
            header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        assert any(name.endswith("wte.weight") for name in header), list(header)
        failed = subprocess.run(
            [program, os.path.join(folder, "none")], capture_output=True, text=True, env=environment
        )
        assert failed.returncode == 1 and "STW_IO_ERROR" in failed.stderr, failed


if __name__ == "__main__":
    check(sys.argv[1])
