"""Measures the regret of the cost model: the step time of the chosen plan, compared with the best of all
plans that fit.

usage: regret.py STOWAGE [STEPS [ROUNDS [MODEL]]]
  STOWAGE: the command, built in release; MODEL: nano or llama, by default both

For two models, every plan of the frontier is trained for STEPS (30) steps in ROUNDS (3) interleaved
rounds. A plan's time is the best of the rounds' medians. Its fastest step is given too: on a shared
machine, where other programs only add time, the fastest of many steps is more reliable. For each plan's
own budget, the regret is its time over that of the fastest plan whose peak fits the same budget."""

import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

MODELS = {
    "nano": ({}, ["--batch", 12, "--seq", 64]),
    "llama": (
        {
            "model_type": "llama",
            "vocab_size": 256,
            "hidden_size": 256,
            "intermediate_size": 688,
            "num_hidden_layers": 6,
            "num_attention_heads": 8,
            "num_key_value_heads": 4,
            "max_position_embeddings": 512,
            "rms_norm_eps": 1e-5,
            "tie_word_embeddings": False,
        },
        ["--batch", 16, "--seq", 128],
    ),
}


def run(*words):
    return subprocess.run([str(word) for word in words], check=True, capture_output=True, text=True).stdout


def step_seconds(stowage, model, plan, text, out, steps):
    run(
        stowage,
        "train",
        "--model",
        model,
        "--from-scratch",
        "--plan",
        plan,
        "--data",
        text,
        "--steps",
        steps,
        "--out",
        out,
        "--overwrite",
        "--eval-batches",
        0,
        "--tokenizer",
        "byte",
        "--threads",
        2,
    )
    lines = [json.loads(line) for line in (pathlib.Path(out) / "metrics.jsonl").read_text().splitlines()]
    times = [line["seconds"] for line in lines[3:] if "seconds" in line]
    return statistics.median(times), min(times)


def main():
    stowage = sys.argv[1]
    steps = int(sys.argv[2]) if len(sys.argv) > 2 else 30
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 3
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "text").write_text("The quick brown fox jumps over the lazy dog. " * 4000)
        for name, (config, words) in MODELS.items():
            if len(sys.argv) > 4 and name != sys.argv[4]:
                continue
            model = name
            if config:
                model = folder / f"{name}.json"
                model.write_text(json.dumps(config))
            words = [stowage, "plan", "--model", model, *words, "--states", 32, "--threads", 2, "--json"]
            points = json.loads(run(*words, "--vram", "1TiB", "--frontier"))["frontier"]
            points = points[:: max(1, len(points) // 12)]
            for index, point in enumerate(points):
                (folder / f"{index}.json").write_text(run(*words, "--vram", point["peak_bytes"]))
            times = [[] for _ in points]
            for _ in range(rounds):
                for index in range(len(points)):
                    times[index].append(
                        step_seconds(
                            stowage, model, folder / f"{index}.json", folder / "text", folder / "out", steps
                        )
                    )
            # medians, fastest steps
            figures = [[min(time[which] for time in each) for each in times] for which in range(2)]
            print(f"{name}: budget MiB, micro-batch, predicted ms; median ms, regret; fastest ms, regret")
            for index, point in enumerate(points):
                line = (
                    f"  {point['peak_bytes'] / 2**20:8.1f} {point['micro_batch']:4} "
                    f"{1000 * point['step_seconds']:8.2f} "
                )
                for measured in figures:
                    regret = measured[index] / min(measured[: index + 1]) - 1
                    line += f"  {1000 * measured[index]:8.2f} {100 * regret:6.1f} %"
                print(line)


if __name__ == "__main__":
    main()
