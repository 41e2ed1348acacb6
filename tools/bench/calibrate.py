"""Measures the benefit of calibration: predicted and measured step times, before and after, for the
calibrated plan and for others.

usage: calibrate.py STOWAGE [MODEL ...]     STOWAGE: the command, built in release; MODEL: nano, smollm-135m

For each model the machine is calibrated once, with the plan that the planner chooses. Then that plan and
others of the same model (smaller micro-batches, full recomputation, other sequence lengths) are trained
for some steps on synthetic tokens. The measured time is the median of the steps after the first three."""

import json
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile

# Steps to train, arguments of the calibration, and further plans to train.
MODELS = {
    "nano": (
        40,
        ["--batch", 12, "--seq", 64],
        [
            [],
            ["--micro-batch", 4],
            ["--micro-batch", 1],
            ["--recompute", "full"],
            ["--seq", 256],
            ["--batch", 48],
        ],
    ),
    "smollm-135m": (
        8,
        ["--batch", 4, "--seq", 128],
        [[], ["--micro-batch", 1], ["--recompute", "full"], ["--seq", 512, "--batch", 1]],
    ),
}
SHARED = ["--threads", 2, "--states", 32, "--vram", "8GiB"]


def run(*words):
    return subprocess.run([str(word) for word in words], check=True, stdout=subprocess.PIPE, text=True).stdout


def plan(stowage, words, file):
    text = run(stowage, "plan", *words, "--json")
    file.write_text(text)
    return json.loads(text)["predicted"]["step_seconds"]


def measured(stowage, model, steps, folder):
    run(
        stowage,
        "train",
        "--model",
        model,
        "--from-scratch",
        "--plan",
        folder / "plan.json",
        "--data",
        folder / "data.bin",
        "--steps",
        steps,
        "--out",
        folder / "out",
        "--overwrite",
        "--eval-batches",
        0,
        "--threads",
        2,
    )
    lines = [json.loads(line) for line in (folder / "out" / "metrics.jsonl").read_text().splitlines()]
    return statistics.median(line["seconds"] for line in lines[3:] if "seconds" in line)


def merged(base, more):
    """Merges flags. Later ones replace earlier ones."""
    flags = dict(zip(base[::2], base[1::2]))
    flags.update(zip(more[::2], more[1::2]))
    return [word for pair in flags.items() for word in pair]


def main():
    stowage, models = sys.argv[1], sys.argv[2:] or list(MODELS)
    for model in models:
        steps, base, others = MODELS[model]
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            draw = random.Random(1)
            (folder / "data.bin").write_bytes(
                b"".join(draw.randrange(256).to_bytes(2, "little") for _ in range(50000))
            )
            profile = folder / "here.json"
            print(run(stowage, "calibrate", "--model", model, *SHARED, *base, "--out", profile))
            print(f"{'milliseconds a step':<40}{'before':>10}{'':>9}{'after':>10}{'':>9}{'measured':>10}")
            for more in others:
                words = ["--model", model, *SHARED, *merged(base, more)]
                # The calibrated plan is trained. The other plan is pinned as far as flags allow.
                after = plan(stowage, [*words, "--device", profile], folder / "plan.json")
                chosen = json.loads((folder / "plan.json").read_text())["micro_batch"]
                before = plan(stowage, merged(words, ["--micro-batch", chosen]), folder / "before.json")
                truth = measured(stowage, model, steps, folder)
                name = " ".join(map(str, merged(base, more)))
                print(
                    f"{name:<40}{1e3 * before:>10.2f}{100 * (before / truth - 1):>+7.1f} %"
                    f"{1e3 * after:>10.2f}{100 * (after / truth - 1):>+7.1f} %{1e3 * truth:>10.2f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
