"""Checks that exported adapters of a model with a head for labels or masked tokens open in PEFT without
missing or unused tensors.

Usage: load_adapters.py FOLDER TOKEN... prints one line of JSON with the logits of that text, or of its
tokens. The folder's adapter_config.json names the model."""

import json
import pathlib
import sys
import warnings

import torch
from peft import PeftConfig, PeftModel, get_peft_model_state_dict
from safetensors.torch import load_file
from transformers import (
    AutoModelForMaskedLM,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
)
from transformers.utils import logging


def main():
    if len(sys.argv) < 3:
        sys.exit("usage: load_adapters.py FOLDER TOKEN TOKEN...")
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    folder, tokens = pathlib.Path(sys.argv[1]), torch.tensor([[int(token) for token in sys.argv[2:]]])
    config = PeftConfig.from_pretrained(folder)
    kinds = {"SEQ_CLS": AutoModelForSequenceClassification, "TOKEN_CLS": AutoModelForTokenClassification}
    written = json.loads((folder / "labels.json").read_text()) if config.task_type in kinds else []
    labels = written if isinstance(written, list) else written["labels"]
    count = {"num_labels": len(labels)} if labels else {}
    base = kinds.get(config.task_type, AutoModelForMaskedLM).from_pretrained(
        config.base_model_name_or_path, dtype=torch.float32, **count
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = PeftModel.from_pretrained(base, folder).eval()
    stored, loaded = load_file(folder / "adapter_model.safetensors"), get_peft_model_state_dict(model)
    problems = sorted(set(stored) ^ set(loaded)) + [
        name
        for name in stored
        if name in loaded and not torch.equal(stored[name].float(), loaded[name].float())
    ]
    problems += [str(warning.message) for warning in caught if "adapter keys" in str(warning.message)]
    with torch.no_grad():
        logits = model(input_ids=tokens).logits[0]
    print(
        json.dumps(
            {
                "architecture": type(base).__name__,
                "problems": problems,
                "logits": logits.tolist(),
                "scores": logits.softmax(-1).tolist(),
                "labels": labels,
            }
        )
    )
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
