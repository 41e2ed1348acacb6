"""Measures the cost of contract E3: the same global batch in ever smaller micro-batches, which changes
only the speed, not the bits.

usage: exact.py STOWAGE [ROUNDS [MODEL]]     STOWAGE: the command, built in release; MODEL: nano, llama, long

Two models, one of them with short and with long samples, are trained for some steps with micro-batches of
the whole batch, half of it, a quarter, and 1, for ROUNDS (5) rounds, alternately in forward and reverse
order. A round's figure is the median of the steps after the third. The result is the median of the rounds'
ratios to the whole batch. The second ratio uses the fastest tenth of the steps of all rounds, which slow
phases of the machine do not affect. The resulting weights must be the same bytes."""

import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

LLAMA = {
    "model_type": "llama",
    "vocab_size": 256,
    "hidden_size": 384,
    "intermediate_size": 1024,
    "num_hidden_layers": 6,
    "num_attention_heads": 6,
    "num_key_value_heads": 6,
    "max_position_embeddings": 512,
    "rms_norm_eps": 1e-5,
    "tie_word_embeddings": False,
}
MODELS = {
    "nano": ({}, 12, 64, 100),
    "llama": (LLAMA, 8, 128, 12),
    "long": (LLAMA, 4, 512, 8),
}  # config, batch, sequence, steps; 0.9 and 10.8 M parameters


def train(stowage, words, out, steps):
    """Tokens per second: the median, and that of the fastest tenth of the steps; and the weights."""
    subprocess.run(
        [str(word) for word in [stowage, "train", "--from-scratch", *words, "--steps", steps, "--out", out]],
        check=True,
        stdout=subprocess.PIPE,
    )
    lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    speeds = sorted(line["tokens_per_second"] for line in lines[3:])
    return statistics.median(speeds), speeds[len(speeds) * 9 // 10], (out / "model.safetensors").read_bytes()


def main():
    stowage = sys.argv[1]
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    print(
        f"{'model':<8}{'batch':>7}{'micro-batch':>13}{'tokens/s':>10}{'of the whole':>14}{'lowest':>9}"
        f"{'highest':>9}{'by fastest':>12}"
    )
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "text").write_text("The quick brown fox jumps over the lazy dog. " * 4000)
        for name, (config, batch, sequence, steps) in MODELS.items():
            if len(sys.argv) > 3 and name != sys.argv[3]:
                continue
            source = name
            if config:
                source = folder / "config.json"
                source.write_text(json.dumps(config))
            words = [
                "--model",
                source,
                "--batch",
                batch,
                "--seq",
                sequence,
                "--states",
                32,
                "--threads",
                2,
                "--vram",
                "4GiB",
                "--data",
                folder / "text",
                "--eval-batches",
                0,
                "--overwrite",
            ]
            cuts = sorted({batch, batch // 2, batch // 4, 1}, reverse=True)
            speeds, fastest, weights = {cut: [] for cut in cuts}, dict.fromkeys(cuts, 0), set()
            for count in range(rounds):
                for cut in cuts[::-1] if count % 2 else cuts:
                    speed, fast, trained = train(
                        stowage, [*words, "--micro-batch", cut], folder / "out", steps
                    )
                    fastest[cut] = max(fastest[cut], fast)
                    speeds[cut].append(speed)
                    weights.add(trained)
            if len(weights) != 1:
                sys.exit(f"{name}: {len(weights)} different models came out")
            for cut in cuts:
                ratios = [speed / whole for speed, whole in zip(speeds[cut], speeds[batch])]
                print(
                    f"{name:<8}{batch:>7}{cut:>13}{statistics.median(speeds[cut]):>10.0f}"
                    f"{statistics.median(ratios):>14.3f}{min(ratios):>9.3f}{max(ratios):>9.3f}"
                    f"{fastest[cut] / fastest[batch]:>12.3f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
