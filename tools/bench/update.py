"""Measures how close the optimizers' updates come to the memory bandwidth.

usage: update.py STOWAGE [MODEL]     STOWAGE: the command, built in release; MODEL: gpt2

`stowage calibrate` times every op of a step; this reads the ops that update parameters from its output.
The bytes are the least that an update can move: parameters, states and masters are read and written,
gradients are read. The ratio compares with memcpy on as many threads, before and after each row. The bytes
of a copy are those that it reads and those that it writes."""

import ctypes
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time

THREADS = 2
UPDATES = ("adamw", "adamw8", "sgd", "lion", "lion8", "muon", "adafactor")  # ops, not optimizers
CASES = (("adamw", 32), ("adamw", 8), ("lion", 32), ("lion", 8), ("sgd", 32), ("adafactor", 32), ("muon", 32))


class Copy:
    """A copy that is larger than every cache, on all threads at once."""

    SIZE = 256 << 20  # bytes per thread

    def __init__(self):
        self.memcpy = ctypes.CDLL(None).memcpy
        self.memcpy.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
        self.buffers = [
            (ctypes.create_string_buffer(self.SIZE), ctypes.create_string_buffer(self.SIZE))
            for _ in range(THREADS)
        ]

    def once(self):
        threads = [
            threading.Thread(target=self.memcpy, args=(to, source, self.SIZE)) for to, source in self.buffers
        ]
        begin = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return 2 * self.SIZE * THREADS / (time.perf_counter() - begin)

    def bytes_per_second(self):
        self.once()
        return statistics.median(self.once() for _ in range(9))


def run(*words, seconds):
    return subprocess.run(
        [str(word) for word in words], check=True, stdout=subprocess.PIPE, text=True, timeout=seconds
    ).stdout


def time_of_update(stowage, profile, *words, seconds=None):
    """Parameters, the least bytes that their update moves, and the seconds it takes. `words`: flags of
    `stowage plan` and `calibrate`; `profile`: path of the output file."""
    plan = json.loads(run(stowage, "plan", *words, "--json", seconds=seconds))
    size = plan["bytes"]
    run(stowage, "calibrate", *words, "--out", profile, seconds=seconds)
    with open(profile, encoding="utf-8") as file:
        ops = json.load(file)["ops"]
    seconds = sum(ops[name]["nanoseconds"] for name in UPDATES if name in ops) * 1e-9
    return (
        plan["model"]["parameters"],
        2 * size["parameters"] + size["gradients"] + 2 * size["optimizer"],
        seconds,
    )


def main():
    stowage, model = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "gpt2"
    copy = Copy()
    print(
        f"{'optimizer':<10}{'states':>8}{'precision':>11}{'bytes each':>12}{'ms per 1e9':>12}{'GB/s':>8}"
        f"{'copy':>8}{'ratio':>8}"
    )
    with tempfile.TemporaryDirectory() as folder:
        for precision in ("fp32", "bf16"):
            for optimizer, bits in CASES:
                before = copy.bytes_per_second()
                count, moved, seconds = time_of_update(
                    stowage,
                    os.path.join(folder, "here.json"),
                    "--model",
                    model,
                    "--batch",
                    1,
                    "--seq",
                    16,
                    "--threads",
                    THREADS,
                    "--vram",
                    "8GiB",
                    "--optimizer",
                    optimizer,
                    "--states",
                    bits,
                    "--precision",
                    precision,
                )
                speed = statistics.mean((before, copy.bytes_per_second()))
                print(
                    f"{optimizer:<10}{bits:>8}{precision:>11}{moved / count:>12.1f}"
                    f"{1e3 * seconds / count * 1e9:>12.0f}{moved / seconds * 1e-9:>8.1f}"
                    f"{speed * 1e-9:>8.1f}{moved / seconds / speed:>8.2f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
