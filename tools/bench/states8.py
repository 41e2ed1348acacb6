"""What 8-bit optimizer states cost in quality: final evaluation losses beside those of 32-bit states, over five seeds.

usage: states8.py STOWAGE TEXT [STEPS [BETA2]]     TEXT: such as tinyshakespeare's input.txt; STEPS: 1000; BETA2: the default

`nano`, 12 x 64, AdamW at 1e-3, cosine, one uninterrupted run each: nothing brings the states back to 32 bits in between. Both
formats see the same random weights and the same windows of a seed. The spread is the standard deviation from seed to seed.
Two runs go on at a time, each on one thread: threads change no bit.
"""
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

SEEDS = (1, 2, 3, 4, 5)
SETTINGS = ["--model", "nano", "--batch", 12, "--seq", 64, "--vram", "1GiB", "--threads", 1, "--lr", "1e-3", "--eval-every", 0,
            "--eval-batches", 100, "--overwrite"]


def final_loss(stowage, text, out, *words):
    """Of the last evaluation, and the bytes that the states take."""
    words = [stowage, "train", "--data", text, "--out", out, *SETTINGS, *words]
    subprocess.run([str(word) for word in words], check=True, stdout=subprocess.PIPE)
    last = json.loads((out / "metrics.jsonl").read_text().splitlines()[-1])
    return last["eval_loss"], json.loads((out / "plan.json").read_text())["bytes"]["optimizer"]


def main():
    stowage, text = sys.argv[1:3]
    words = ["--steps", sys.argv[3] if len(sys.argv) > 3 else 1000]
    if len(sys.argv) > 4:
        words += ["--beta2", sys.argv[4]]
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(2) as pool:
        runs = {(bits, seed): pool.submit(final_loss, stowage, text, pathlib.Path(folder) / f"{bits}-{seed}", "--states", bits,
                                          "--seed", seed, *words) for seed in SEEDS for bits in (32, 8)}
        results = {run: result.result() for run, result in runs.items()}
    print(f"{'states':>6}{'MiB':>8}" + "".join(f"{f'seed {seed}':>10}" for seed in SEEDS) + f"{'mean':>10}{'spread':>10}")
    losses = {bits: [results[bits, seed][0] for seed in SEEDS] for bits in (32, 8)}
    for bits, measured in losses.items():
        print(f"{bits:>6}{results[bits, SEEDS[0]][1] / 2**20:>8.2f}" + "".join(f"{loss:>10.4f}" for loss in measured) +
              f"{statistics.mean(measured):>10.4f}{statistics.stdev(measured):>10.4f}")
    apart = [eight - full for eight, full in zip(losses[8], losses[32])]
    mean, spread = statistics.mean(apart), statistics.stdev(losses[32])
    print(f"{'8 - 32':>14}" + "".join(f"{loss:>+10.4f}" for loss in apart) + f"{mean:>+10.4f}{statistics.stdev(apart):>10.4f}")
    print(f"the difference of the means lies {'within' if abs(mean) <= spread else 'OUTSIDE'} the spread of 32-bit states")


if __name__ == "__main__":
    main()
