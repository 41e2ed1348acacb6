"""Compares the training of classifiers: `stowage train` on texts with labels, and the equivalent with
transformers, alternately.

Both train the same GPT-2 over bytes on the same texts, in fp32 with AdamW and a clip of 1. The peer pads
each batch to its longest text, with batches at random and grouped by length (`group_by_length` of the
Trainer). stowage packs texts end to end into samples. The figure is texts per second, so both count the
same text."""

import argparse
import csv
import functools
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import time

import rounds


def arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--stowage", help="command under test")
    parser.add_argument(
        "--torch-python", default=sys.executable, help="Python that has torch and transformers"
    )
    parser.add_argument("--data", required=True, help="a CSV file")
    parser.add_argument("--text-field", default="text")
    parser.add_argument("--label-field", default="label")
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--width", type=int, default=384)
    parser.add_argument("--batch", type=int, default=32, help="texts of a batch of the peer's")
    parser.add_argument("--seq", type=int, default=256, help="tokens of a sample, and of the longest text")
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peer", choices=["random", "length"], help="run the peer alone")
    return parser.parse_args()


def config(options):
    return {
        "architectures": ["GPT2LMHeadModel"],
        "model_type": "gpt2",
        "vocab_size": 256,
        "n_positions": options.seq,
        "n_embd": options.width,
        "n_layer": options.layers,
        "n_head": options.width // 64,
        "embd_pdrop": 0.0,
        "attn_pdrop": 0.0,
        "resid_pdrop": 0.0,
    }


def peer(options):
    import torch
    from transformers import GPT2Config, GPT2ForSequenceClassification

    torch.set_num_threads(options.threads)
    with open(options.data, newline="", encoding="utf-8") as file:
        rows = [
            (list(row[options.text_field].encode())[: options.seq], row[options.label_field])
            for row in csv.DictReader(file)
        ]
    labels = {name: i for i, name in enumerate(sorted({label for _, label in rows}))}
    draw = random.Random(1)
    draw.shuffle(rows)
    if options.peer == "length":  # in groups of fifty batches, as in transformers
        group = 50 * options.batch
        rows = [
            row
            for at in range(0, len(rows), group)
            for row in sorted(rows[at : at + group], key=lambda row: -len(row[0]))
        ]
        batches = [rows[at : at + options.batch] for at in range(0, len(rows), options.batch)]
        draw.shuffle(batches)
    else:
        batches = [rows[at : at + options.batch] for at in range(0, len(rows), options.batch)]
    names = {
        key: value for key, value in config(options).items() if key not in ("architectures", "model_type")
    }
    model = GPT2ForSequenceClassification(GPT2Config(**names, num_labels=len(labels), pad_token_id=0))
    adamw = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
    seconds, texts = 0.0, 0
    for step in range(options.steps + 5):
        batch = batches[step % len(batches)]
        longest = max(len(text) for text, _ in batch)
        tokens = torch.tensor([text + [0] * (longest - len(text)) for text, _ in batch])
        begin = time.perf_counter()
        loss = model(
            input_ids=tokens,
            attention_mask=(tokens != 0).long(),
            labels=torch.tensor([labels[label] for _, label in batch]),
        ).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        adamw.step()
        adamw.zero_grad(set_to_none=True)
        loss.item()
        if step >= 5:
            seconds, texts = seconds + time.perf_counter() - begin, texts + len(batch)
    print(json.dumps({"texts_per_second": texts / seconds}))


def peer_speed(options, order):
    words = [
        "--data",
        options.data,
        "--text-field",
        options.text_field,
        "--label-field",
        options.label_field,
        "--peer",
        order,
    ]
    for name in ("layers", "width", "batch", "seq", "steps", "threads"):
        words += [f"--{name}", str(getattr(options, name))]
    done = subprocess.run(
        [options.torch_python, __file__, *words], capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout.splitlines()[-1])["texts_per_second"]


def stowage_speed(options, folder):
    model, out = folder / "config.json", folder / "out"
    model.write_text(json.dumps(config(options)))
    # About as many tokens per step as the peer's texts have.
    samples = max(1, options.batch * 60 // options.seq)
    subprocess.run(
        [
            options.stowage,
            "train",
            "--model",
            model,
            "--from-scratch",
            "--data",
            options.data,
            "--text-field",
            options.text_field,
            "--label-field",
            options.label_field,
            "--tokenizer",
            "byte",
            "--batch",
            str(samples),
            "--seq",
            str(options.seq),
            "--steps",
            str(options.steps + 5),
            "--threads",
            str(options.threads),
            "--device",
            "cpu",
            "--precision",
            "fp32",
            "--eval-batches",
            "0",
            "--overwrite",
            "--out",
            out,
        ],
        check=True,
        capture_output=True,
    )
    steps = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    return (steps[-1]["texts"] - steps[4]["texts"]) / sum(step["seconds"] for step in steps[5:])


def main(options):
    if options.peer:
        return peer(options)
    if not options.stowage:
        sys.exit("--stowage is required")
    peers = {order: functools.partial(peer_speed, options, order) for order in ("random", "length")}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        rounds.compare(options.rounds, lambda: stowage_speed(options, folder), peers, "texts/s")
    return None


if __name__ == "__main__":
    main(arguments())
