"""Measures the quality cost of compact storage: final evaluation losses compared with full storage, over
five seeds.

usage: formats.py STOWAGE TEXT FORMAT [STEPS [BETA2]]   TEXT: such as tinyshakespeare's input.txt; STEPS: 1000
  FORMAT  states8     8-bit optimizer states
          gradients   bf16 with 16-bit gradients
          least       bf16 with all compact formats: 8-bit states, 24-bit masters, 16-bit gradients;
                      7.03 bytes a parameter

`nano`, 12 x 64, AdamW at 1e-3, cosine, one uninterrupted run each: the compact numbers are never converted
back in between. For a seed, both formats see the same random weights and the same windows. The spread is
the standard deviation over the seeds. Two runs proceed at a time, each on one thread: threads change no
bit."""

import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

SEEDS = (1, 2, 3, 4, 5)
SETTINGS = [
    "--model",
    "nano",
    "--batch",
    12,
    "--seq",
    64,
    "--vram",
    "1GiB",
    "--threads",
    1,
    "--lr",
    "1e-3",
    "--eval-every",
    0,
    "--eval-batches",
    100,
    "--overwrite",
]
# Flags of both runs, of the full format, and of the compact format.
FORMATS = {
    "states8": ([], ["--states", 32], ["--states", 8]),
    "gradients": (["--precision", "bf16", "--states", 32], [], ["--gradients", "bf16"]),
    "least": (
        ["--precision", "bf16"],
        ["--states", 32],
        ["--states", 8, "--master", "split8", "--gradients", "bf16"],
    ),
}


def final_loss(stowage, text, out, *words):
    """The last evaluation's loss, and the bytes of parameters, gradients and states."""
    words = [stowage, "train", "--data", text, "--out", out, *SETTINGS, *words]
    subprocess.run([str(word) for word in words], check=True, stdout=subprocess.PIPE)
    last = json.loads((out / "metrics.jsonl").read_text().splitlines()[-1])
    taken = json.loads((out / "plan.json").read_text())["bytes"]
    return last["eval_loss"], taken["parameters"] + taken["gradients"] + taken["optimizer"]


def main():
    stowage, text, name = sys.argv[1:4]
    both, full, short = FORMATS[name]
    words = [*both, "--steps", sys.argv[4] if len(sys.argv) > 4 else 1000]
    if len(sys.argv) > 5:
        words += ["--beta2", sys.argv[5]]
    kinds = {"full": full, "short": short}
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(2) as pool:
        runs = {
            (kind, seed): pool.submit(
                final_loss,
                stowage,
                text,
                pathlib.Path(folder) / f"{kind}-{seed}",
                *flags,
                "--seed",
                seed,
                *words,
            )
            for seed in SEEDS
            for kind, flags in kinds.items()
        }
        results = {run: result.result() for run, result in runs.items()}
    print(
        f"{name:>14}{'MiB':>8}"
        + "".join(f"{f'seed {seed}':>10}" for seed in SEEDS)
        + f"{'mean':>10}{'spread':>10}"
    )
    losses = {kind: [results[kind, seed][0] for seed in SEEDS] for kind in kinds}
    for kind, measured in losses.items():
        print(
            f"{kind:>14}{results[kind, SEEDS[0]][1] / 2**20:>8.2f}"
            + "".join(f"{loss:>10.4f}" for loss in measured)
            + f"{statistics.mean(measured):>10.4f}{statistics.stdev(measured):>10.4f}"
        )
    apart = [few - many for few, many in zip(losses["short"], losses["full"])]
    mean, spread = statistics.mean(apart), statistics.stdev(losses["full"])
    print(
        f"{'short - full':>14}{'':>8}"
        + "".join(f"{loss:>+10.4f}" for loss in apart)
        + f"{mean:>+10.4f}{statistics.stdev(apart):>10.4f}"
    )
    print(
        f"the difference of the means lies {'within' if abs(mean) <= spread else 'OUTSIDE'} the spread "
        "of the full one"
    )


if __name__ == "__main__":
    main()
