"""Measures planning time against the number of blocks and the number of micro-batch sizes tried.

usage: plan.py STOWAGE [ROUNDS]     STOWAGE: the command, built in release

Times whole processes and takes the best of ROUNDS (5). Optimizer states are fixed at 32 bits, so that only
one search runs."""

import json
import pathlib
import subprocess
import sys
import tempfile
import time


def config(blocks, width):
    return {
        "model_type": "gpt2",
        "vocab_size": 50257,
        "n_positions": 1024,
        "n_embd": width,
        "n_layer": blocks,
        "n_head": width // 64,
        "embd_pdrop": 0.0,
        "attn_pdrop": 0.0,
        "resid_pdrop": 0.0,
    }


def measure(command, rounds):
    best, text = float("inf"), ""
    for _ in range(rounds):
        begin = time.perf_counter()
        text = subprocess.run(
            [str(word) for word in command], check=True, capture_output=True, text=True
        ).stdout
        best = min(best, time.perf_counter() - begin)
    return best, json.loads(text)


def main():
    stowage, rounds = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 5
    with tempfile.TemporaryDirectory() as folder:
        print("blocks  batch  budget   ms  micro-batch  recompute  gap       layout gap")
        for blocks, batch in [(n, 64) for n in (10, 32, 100, 320, 1000)] + [
            (32, b) for b in (1, 8, 512, 4096)
        ]:
            path = pathlib.Path(folder) / "config.json"
            path.write_text(json.dumps(config(blocks, 768)))
            words = [
                stowage,
                "plan",
                "--model",
                path,
                "--device",
                "h200",
                "--batch",
                batch,
                "--seq",
                1024,
                "--states",
                32,
                "--json",
            ]
            frontier = json.loads(
                subprocess.run(
                    [str(w) for w in [*words, "--vram", "1000TiB", "--frontier"]],
                    check=True,
                    capture_output=True,
                    text=True,
                ).stdout
            )["frontier"]
            # A budget that needs much recomputation: a third of the way from the smallest to that of the
            # first knee.
            knee = next((p for p in frontier if p["knee"]), frontier[-1])["peak_bytes"]
            budget = frontier[0]["peak_bytes"] + (knee - frontier[0]["peak_bytes"]) // 3
            seconds, plan = measure([*words, "--vram", budget], rounds)
            print(
                f"{blocks:6} {batch:6} {budget / 2**30:7.2f} {1000 * seconds:5.0f}  "
                f"{plan['micro_batch']:11}  {100 * plan['predicted']['recompute_fraction']:8.1f}%  "
                f"{plan['search']['gap']:.1e}  {plan['layout']['gap']:.1e}"
            )


if __name__ == "__main__":
    main()
