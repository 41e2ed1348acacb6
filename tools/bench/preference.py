"""Compares preference training: `stowage train` on pairs of answers, and TRL's DPOTrainer, alternately.

Both train the same GPT-2 over bytes on the same pairs, in fp32, by DPO with beta 0.1, AdamW and a clip of
1. Both compute the reference's log-probabilities once before the first step, which is not timed. The peer
pads the answers of a batch to the longest; stowage packs them end to end into samples. The figure is pairs
per second."""

import argparse
import json
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--stowage", help="command under test")
    parser.add_argument(
        "--torch-python", default=sys.executable, help="Python that has torch, transformers and trl"
    )
    parser.add_argument(
        "--pairs", help="a .jsonl file of them; default: pieces of this project's texts, of many lengths"
    )
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--width", type=int, default=384)
    parser.add_argument("--batch", type=int, default=8, help="pairs of a batch of the peer's")
    parser.add_argument("--seq", type=int, default=1024, help="tokens of a sample")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peer", action="store_true", help="run the peer alone")
    return parser.parse_args()


def config(options):
    return {
        "architectures": ["GPT2LMHeadModel"],
        "model_type": "gpt2",
        "vocab_size": 256,
        "n_positions": options.seq,
        "n_embd": options.width,
        "bos_token_id": 0,
        "eos_token_id": 0,
        "n_layer": options.layers,
        "n_head": options.width // 64,
        "embd_pdrop": 0.0,
        "attn_pdrop": 0.0,
        "resid_pdrop": 0.0,
    }


def made_up_pairs(count=200):
    """Answers of 20 to 400 bytes to prompts of 20 to 200 bytes."""
    text = "".join(c for c in (ROOT / "README.md").read_text(encoding="utf-8") if " " <= c <= "~")
    draw = random.Random(4)

    def piece(least, most):
        length = int(least * (most / least) ** draw.random())
        at = draw.randrange(len(text) - length)
        return text[at : at + length]

    return [
        {"prompt": piece(20, 200) + "\n", "chosen": piece(20, 400), "rejected": piece(20, 400)}
        for _ in range(count)
    ]


def peer(options):
    import torch
    from datasets import Dataset
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast, TrainerCallback
    from trl import DPOConfig, DPOTrainer

    torch.set_num_threads(options.threads)
    rows = [json.loads(line) for line in pathlib.Path(options.pairs).read_text(encoding="utf-8").splitlines()]
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE(vocab={letter: i for i, letter in enumerate(letters)}, merges=[]))
    tokenizer.pre_tokenizer, tokenizer.decoder = (
        pre_tokenizers.ByteLevel(add_prefix_space=False),
        decoders.ByteLevel(),
    )
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token=letters[0], pad_token=letters[0]
    )
    names = {
        key: value for key, value in config(options).items() if key not in ("architectures", "model_type")
    }
    model = GPT2LMHeadModel(GPT2Config(**names))
    times = []

    class Clock(TrainerCallback):
        def on_step_begin(self, *_, **__):
            self.begin = time.perf_counter()

        def on_step_end(self, *_, **__):
            times.append(time.perf_counter() - self.begin)

    with tempfile.TemporaryDirectory() as folder:
        arguments_of_run = DPOConfig(
            output_dir=folder,
            per_device_train_batch_size=options.batch,
            max_steps=options.steps + 5,
            learning_rate=3e-4,
            beta=0.1,
            max_length=None,
            precompute_ref_log_probs=True,
            optim="adamw_torch_fused",
            max_grad_norm=1.0,
            use_cpu=True,
            bf16=False,
            gradient_checkpointing=False,
            report_to=[],
            save_strategy="no",
            logging_strategy="no",
            disable_tqdm=True,
        )
        DPOTrainer(
            model=model,
            args=arguments_of_run,
            train_dataset=Dataset.from_list(rows),
            processing_class=tokenizer,
            callbacks=[Clock()],
        ).train()
    print(json.dumps({"pairs_per_second": options.batch * len(times[5:]) / sum(times[5:])}))


def peer_speed(options, pairs):
    words = ["--peer", "--pairs", pairs]
    for name in ("layers", "width", "batch", "seq", "steps", "threads"):
        words += [f"--{name}", str(getattr(options, name))]
    done = subprocess.run(
        [options.torch_python, __file__, *words], capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout.splitlines()[-1])["pairs_per_second"]


def stowage_speed(options, pairs, folder):
    model, out = folder / "config.json", folder / "out"
    model.write_text(json.dumps(config(options)))
    rows = [json.loads(line) for line in pathlib.Path(pairs).read_text(encoding="utf-8").splitlines()]
    mean = statistics.mean(
        2 * len(row["prompt"]) + len(row["chosen"]) + len(row["rejected"]) + 2 for row in rows
    )
    # about as many pairs per step as the peer has
    samples = max(1, round(options.batch * mean / options.seq))
    subprocess.run(
        [
            options.stowage,
            "train",
            "--model",
            model,
            "--from-scratch",
            "--data",
            pairs,
            "--tokenizer",
            "byte",
            "--document-end",
            "0",
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
    return (steps[-1]["tokens"] - steps[4]["tokens"]) / sum(step["seconds"] for step in steps[5:])


def main(options):
    if options.peer:
        return peer(options)
    if not options.stowage:
        sys.exit("--stowage is required")
    ratios = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        pairs = options.pairs
        if not pairs:
            pairs = str(folder / "pairs.jsonl")
            pathlib.Path(pairs).write_text(
                "".join(json.dumps(pair) + "\n" for pair in made_up_pairs()), encoding="utf-8"
            )
        for number in range(options.rounds):
            ours, theirs = stowage_speed(options, pairs, folder), peer_speed(options, pairs)
            ratios.append(ours / theirs)
            print(
                f"round {number + 1}: stowage {ours:.2f} pairs/s, TRL {theirs:.2f}, "
                f"ratio {ours / theirs:.2f}",
                flush=True,
            )
    print(f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})")
    return None


if __name__ == "__main__":
    main(arguments())
