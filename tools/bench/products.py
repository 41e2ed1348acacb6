"""Measures the cost of exact products: the matrix products of training, compared with the fastest ones
without the contract.

usage: products.py STOWAGE PYTHON [THREADS [ROUNDS]]     PYTHON: an interpreter with torch and numpy

stowage trains one Llama block in fp32 and reports the time of each product (`train --profile`). The peers
multiply matrices of the same sizes with torch (MKL) and with numpy (OpenBLAS), which may sum in any order.
They take turns for ROUNDS (5) rounds. The best time of each counts."""

import json
import pathlib
import subprocess
import sys
import tempfile

WIDTH, HIDDEN, BATCH, SEQUENCE = 768, 2048, 8, 128
CONFIG = {
    "model_type": "llama",
    "vocab_size": 256,
    "hidden_size": WIDTH,
    "intermediate_size": HIDDEN,
    "num_hidden_layers": 1,
    "num_attention_heads": 12,
    "num_key_value_heads": 12,
    "max_position_embeddings": SEQUENCE,
    "rms_norm_eps": 1e-5,
    "tie_word_embeddings": False,
}
WEIGHTS = {
    "qkv": (WIDTH, 3 * WIDTH),
    "out": (WIDTH, WIDTH),
    "gate, up": (WIDTH, 2 * HIDDEN),
    "down": (HIDDEN, WIDTH),
}
OPS = ("linear", "linear_input_gradient", "linear_weight_gradient")

PEER = """
import json, sys, time
import numpy, torch
threads, rows, weights = int(sys.argv[1]), int(sys.argv[2]), json.loads(sys.argv[3])
torch.set_num_threads(threads)
def best(run, sets):
    times = []
    for i in range(4 * len(sets)):
        begin = time.perf_counter()
        run(*sets[i % len(sets)])
        times.append(time.perf_counter() - begin)
    return min(times[len(sets):])
out = {}
for name, (inputs, features) in weights.items():
    # So many that no cache holds them from one use to the next, as in training.
    shapes = ((rows, inputs), (features, inputs), (rows, features))
    sets = [[torch.rand(shape) for shape in shapes] for _ in range(6)]
    arrays = [[tensor.numpy() for tensor in each] for each in sets]
    out[name] = {
        "linear": [best(lambda x, w, y: torch.mm(x, w.T, out=y), sets),
                   best(lambda x, w, y: numpy.matmul(x, w.T, out=y), arrays)],
        "linear_input_gradient": [best(lambda x, w, y: torch.mm(y, w, out=x), sets),
                                  best(lambda x, w, y: numpy.matmul(y, w, out=x), arrays)],
        "linear_weight_gradient": [best(lambda x, w, y: torch.addmm(w, y.T, x, out=w), sets),
                                   best(lambda x, w, y: numpy.matmul(y.T, x, out=w), arrays)]}
print(json.dumps(out))
"""


def ours(stowage, folder, threads):
    """The least seconds of each product, by op and number of operations."""
    trace = folder / "trace.json"
    subprocess.run(
        [
            stowage,
            "train",
            "--model",
            folder / "model.json",
            "--from-scratch",
            "--data",
            folder / "text",
            "--tokenizer",
            "byte",
            "--batch",
            str(BATCH),
            "--micro-batch",
            str(BATCH),
            "--seq",
            str(SEQUENCE),
            "--steps",
            "6",
            "--eval-batches",
            "0",
            "--threads",
            str(threads),
            "--device",
            "cpu",
            "--out",
            folder / "out",
            "--overwrite",
            "--profile",
            trace,
        ],
        check=True,
        stdout=subprocess.PIPE,
    )
    times = {}
    for event in json.loads(trace.read_text())["traceEvents"]:
        if event.get("tid") == 1 and event.get("name") in OPS and event["args"]["place"].startswith("block"):
            key = event["name"], event["args"]["flops"]
            times[key] = min(times.get(key, 1e9), event["dur"] / 1e6)
    return times


def main():
    stowage, python = sys.argv[1:3]
    threads = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    rounds = int(sys.argv[4]) if len(sys.argv) > 4 else 5
    rows = BATCH * SEQUENCE
    best = {}
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "model.json").write_text(json.dumps(CONFIG))
        (folder / "text").write_text("The quick brown fox jumps over the lazy dog. " * 4000)
        environment = {
            "OMP_NUM_THREADS": str(threads),
            "OPENBLAS_NUM_THREADS": str(threads),
            "MKL_NUM_THREADS": str(threads),
        }
        for _ in range(rounds):
            mine = ours(stowage, folder, threads)
            peers = json.loads(
                subprocess.run(
                    [python, "-c", PEER, str(threads), str(rows), json.dumps(WEIGHTS)],
                    check=True,
                    capture_output=True,
                    text=True,
                    env=environment,
                ).stdout
            )
            for name, (inputs, features) in WEIGHTS.items():
                for op in OPS:
                    seconds = [mine[op, 2 * rows * inputs * features], *peers[name][op]]
                    best[name, op] = [min(pair) for pair in zip(best.get((name, op), seconds), seconds)]
    print(f"{rows} rows, {threads} threads, GFLOP/s")
    print(f"{'weight':<10}{'op':<24}{'stowage':>9}{'torch':>9}{'numpy':>9}{'of the faster':>15}")
    for (name, op), seconds in best.items():
        inputs, features = WEIGHTS[name]
        speeds = [2e-9 * rows * inputs * features / each for each in seconds]
        print(
            f"{name:<10}{op:<24}{speeds[0]:9.1f}{speeds[1]:9.1f}{speeds[2]:9.1f}"
            f"{speeds[0] / max(speeds[1:]):15.2f}"
        )


if __name__ == "__main__":
    main()
