"""Compares the fine-tuning of a pretrained encoder on labelled texts: `stowage train` and transformers
(peer_texts.py, eager and `torch.compile`), in turns on the same machine with the same threads.

Both train the model of one folder on the same file, in fp32 with AdamW and a clip of 1. transformers pads
batches of similar length; stowage places texts end to end in samples. The figure is tokens of texts per
second, so that neither counts padding."""

import argparse
import csv
import functools
import json
import pathlib
import random
import subprocess
import sys
import tempfile

import rounds


def arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--stowage", required=True, help="command under test")
    parser.add_argument(
        "--torch-python", default=sys.executable, help="Python that has torch and transformers"
    )
    parser.add_argument(
        "--model", required=True, type=pathlib.Path, help="folder with weights and a tokenizer"
    )
    parser.add_argument(
        "--data", required=True, type=pathlib.Path, help="folder with train.csv, such as banking77"
    )
    parser.add_argument("--text-field", default="text")
    parser.add_argument("--label-field", default="category")
    parser.add_argument("--join", type=int, default=1, help="texts of the file that make one text")
    parser.add_argument("--batch", type=int, default=32, help="texts of a batch of the peer's")
    parser.add_argument("--samples", type=int, default=4, help="samples of a batch of stowage's")
    parser.add_argument("--seq", type=int, default=128, help="tokens of a sample, and of the longest text")
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--ways", nargs="+", choices=["eager", "compile"], default=["eager", "compile"])
    return parser.parse_args()


def write_texts(options, folder):
    """Writes train.csv and test.csv with joined texts."""
    with open(options.data / "train.csv", newline="", encoding="utf-8") as file:
        rows = [(row[options.text_field], row[options.label_field]) for row in csv.DictReader(file)]
    random.Random(1).shuffle(rows)
    joined = [
        (" ".join(text for text, _ in rows[at : at + options.join]), rows[at][1])
        for at in range(0, len(rows) - options.join + 1, options.join)
    ]
    for name, part in [("train.csv", joined), ("test.csv", joined[: options.batch])]:
        with open(folder / name, "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow([options.text_field, options.label_field])
            writer.writerows(part)


def peer_speed(options, folder, way):
    warmup = 20 if way == "compile" else 5
    words = ["--model", options.model, "--data", folder, "--text-field", options.text_field]
    words += ["--label-field", options.label_field, "--batch", options.batch, "--seq", options.seq]
    words += ["--steps", options.steps + warmup, "--warmup", warmup, "--threads", options.threads]
    words += ["--seed", "1"] + (["--compile"] if way == "compile" else [])
    script = pathlib.Path(__file__).parent / "peer_texts.py"
    done = subprocess.run(
        [options.torch_python, script, *map(str, words)], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        sys.exit(done.stderr[-3000:])
    return json.loads(done.stdout.splitlines()[-1])["runs"][0]["tokens_per_second"]


def stowage_speed(options, folder):
    out = folder / "out"
    words = ["--model", options.model, "--data", folder / "train.csv", "--text-field", options.text_field]
    words += ["--label-field", options.label_field, "--batch", options.samples, "--seq", options.seq]
    words += ["--steps", options.steps + 5, "--threads", options.threads, "--device", "cpu"]
    words += ["--precision", "fp32", "--eval-batches", 0, "--overwrite", "--out", out]
    subprocess.run([options.stowage, "train", *map(str, words)], check=True, capture_output=True)
    steps = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    return (steps[-1]["tokens"] - steps[4]["tokens"]) / sum(step["seconds"] for step in steps[5:])


def main(options):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        write_texts(options, folder)
        peers = {way: functools.partial(peer_speed, options, folder, way) for way in options.ways}
        rounds.compare(options.rounds, lambda: stowage_speed(options, folder), peers, "tokens/s")


if __name__ == "__main__":
    main(arguments())
