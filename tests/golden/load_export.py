"""Checks that an exported folder opens in transformers without missing or unused tensors.

Usage: load_export.py FOLDER TOKEN... prints one line of JSON; the loss is the mean of predicting each next
token."""

import json
import sys

import torch
from transformers import AutoModelForCausalLM
from transformers.utils import logging


def main():
    if len(sys.argv) < 4:
        sys.exit("usage: load_export.py FOLDER TOKEN TOKEN...")
    logging.disable_progress_bar()
    folder, tokens = sys.argv[1], torch.tensor([[int(token) for token in sys.argv[2:]]])
    model, loading = AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, output_loading_info=True
    )
    with torch.no_grad():
        logits = model.eval()(input_ids=tokens, use_cache=False).logits[0]
    last = logits[-1]
    problems = {name: sorted(map(str, keys)) for name, keys in loading.items() if keys}
    print(
        json.dumps(
            {
                "architecture": type(model).__name__,
                "parameters": sum(parameter.numel() for parameter in model.parameters()),
                "loading_problems": problems,
                "loss": torch.nn.functional.cross_entropy(logits[:-1], tokens[0, 1:]).item(),
                "logits": {
                    "shape": list(logits.shape),
                    "mean": logits.mean().item(),
                    "std": logits.std().item(),
                    "min": logits.min().item(),
                    "max": logits.max().item(),
                },
                "last_position": {"argmax": last.argmax().item(), "first_values": last[:4].tolist()},
            }
        )
    )
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
