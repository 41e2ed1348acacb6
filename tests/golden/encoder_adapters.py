"""Owns the goldens of adapters of encoders: folders as PEFT saves them for classifiers, over the models that encoders.py makes.

Run once by a person (see README.md); the tests read only the files. The texts and labels are those of the model's folder.
"""
import pathlib
import sys

import torch
from adapters import Adapters, merged_weights, write_config
from classifiers import LABELS, tell, write
from encoders import TYPES, draw_inputs, draw_labels, evaluate
from models import TOLERANCE, evaluate_double, relative
from peft import LoraConfig, PeftModel, get_peft_model
from safetensors.torch import load_file
from transformers import AutoConfig, AutoModelForSequenceClassification
from transformers.utils import logging


def configurations():
    """By the folder's name: the model's folder, and what PEFT adds. Without target_modules it takes those of the model's type."""
    shared = {"task_type": "SEQ_CLS", "lora_dropout": 0.0}
    return {
        "bert": ("encoder_bert", LoraConfig(**shared, r=4, lora_alpha=8)),
        "bert_dense": ("encoder_bert", LoraConfig(**shared, r=3, lora_alpha=8, use_rslora=True, target_modules=["dense", "key"])),
        # The model has no pooler, and so PEFT has to save the one that it draws.
        "bert_pooler": ("encoder_bert_mlm", LoraConfig(**shared, r=4, lora_alpha=4, target_modules="all-linear", modules_to_save=["pooler"])),
        "roberta": ("encoder_roberta", LoraConfig(**shared, r=4, lora_alpha=8, target_modules="all-linear")),
        "distilbert": ("encoder_distilbert", LoraConfig(**shared, r=4, lora_alpha=8, target_modules=["q_lin", "k_lin", "out_lin", "lin1", "lin2"])),
        "electra": ("encoder_electra", LoraConfig(**shared, r=4, lora_alpha=8, target_modules="all-linear")),
    }


def base_model(base):
    config = AutoConfig.from_pretrained(base)
    if len(config.id2label) != len(LABELS):
        config.id2label, config.label2id = {i: f"LABEL_{i}" for i in range(len(LABELS))}, {f"LABEL_{i}": i for i in range(len(LABELS))}
    return AutoModelForSequenceClassification.from_pretrained(base, config=config, attn_implementation="sdpa", dtype=torch.float32)


def plain(values):
    return {key.replace(".modules_to_save.", "."): value for key, value in values.items()}


def generate(name, base_name, config, seed, root):
    base, folder = root / base_name, root / f"adapter_encoder_{name}"
    generator = torch.Generator().manual_seed(seed)
    model = Adapters(get_peft_model(base_model(base), config))
    with torch.no_grad():
        for _, parameter in model.named_parameters():
            parameter.copy_(0.1 * torch.randn(parameter.shape, generator=generator))
    model.model.save_pretrained(folder)
    (folder / "README.md").unlink(missing_ok=True)
    write_config(folder, base_name)
    inputs = draw_inputs(generator, model.model.config)
    labels = draw_labels(generator, AutoModelForSequenceClassification, inputs["tokens"])
    model.config = model.model.config
    values = plain(evaluate_double(model, inputs, labels, evaluate))
    saved = set(load_file(folder / "adapter_model.safetensors"))
    assert {f"base_model.model.{key[5:]}" for key in values if key.startswith("grad.")} == saved
    expected = write(folder, values | merged_weights(model), labels=labels, **inputs)
    stranger = Adapters(PeftModel.from_pretrained(base_model(base), folder, is_trainable=True))
    stranger.config = stranger.model.config
    actual = plain(evaluate(stranger, expected, expected["labels"])) | merged_weights(stranger)
    assert set(actual) | {"tokens", "labels", "lengths"} == set(expected) - {TYPES}
    worst = max((relative(value, expected[key]), key) for key, value in actual.items())
    assert worst[0] < TOLERANCE, worst
    tell(folder, expected, worst)


def main():
    torch.use_deterministic_algorithms(True)
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent)
    for seed, (name, (base, config)) in enumerate(configurations().items(), start=20400):
        torch.manual_seed(seed)   # parts that no folder has are drawn
        generate(name, base, config, seed, root)


if __name__ == "__main__":
    main()
