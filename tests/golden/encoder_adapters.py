"""Makes the goldens of encoder adapters: folders as PEFT saves them for text, token and masked-token
heads, over models of encoders.py.

Run once by a person (see README.md); the tests read only the files."""

import pathlib
import sys

import torch
from adapters import Adapters, merged_weights, write_config
from classifiers import LABELS, tell, write
from encoders import TYPES, draw_inputs, draw_labels, evaluate, evaluate_in_double
from models import TOLERANCE, relative
from peft import LoraConfig, PeftModel, get_peft_model
from safetensors.torch import load_file
from transformers import (
    AutoConfig,
    AutoModelForMaskedLM,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
)
from transformers.utils import logging


def configurations():
    """Folder name: the model's folder and PEFT's config. Without target_modules PEFT uses the default of
    the model type."""
    shared, of_tokens = (
        {"task_type": "SEQ_CLS", "lora_dropout": 0.0},
        {"task_type": "TOKEN_CLS", "lora_dropout": 0.0},
    )
    return {
        "bert": ("encoder_bert", LoraConfig(**shared, r=4, lora_alpha=8)),
        "bert_dense": (
            "encoder_bert",
            LoraConfig(**shared, r=3, lora_alpha=8, use_rslora=True, target_modules=["dense", "key"]),
        ),
        # The model has no pooler, so PEFT saves one with random weights.
        "bert_pooler": (
            "encoder_bert_mlm",
            LoraConfig(**shared, r=4, lora_alpha=4, target_modules="all-linear", modules_to_save=["pooler"]),
        ),
        "roberta": ("encoder_roberta", LoraConfig(**shared, r=4, lora_alpha=8, target_modules="all-linear")),
        "distilbert": (
            "encoder_distilbert",
            LoraConfig(
                **shared, r=4, lora_alpha=8, target_modules=["q_lin", "k_lin", "out_lin", "lin1", "lin2"]
            ),
        ),
        "electra": ("encoder_electra", LoraConfig(**shared, r=4, lora_alpha=8, target_modules="all-linear")),
        "modernbert": (
            "encoder_modernbert",
            LoraConfig(**shared, r=4, lora_alpha=8, target_modules=["Wqkv", "Wo"]),
        ),
        "bert_tokens": (
            "encoder_bert_tokens",
            LoraConfig(**of_tokens, r=4, lora_alpha=8, target_modules=["query", "key", "dense"]),
        ),
        # The base has no labels.
        "albert_tokens": (
            "encoder_albert_mlm",
            LoraConfig(**of_tokens, r=3, lora_alpha=6, target_modules=["query", "ffn"]),
        ),
        # The first half of the token head is the trained masked-token head.
        "modernbert_tokens": (
            "encoder_modernbert_mlm",
            LoraConfig(
                **of_tokens, r=4, lora_alpha=8, target_modules=["Wqkv", "Wi"], modules_to_save=["head"]
            ),
        ),
        # PEFT has no task_type for masked tokens. "all-linear" also adapts the head's matrix.
        "roberta_mlm": (
            "encoder_roberta_mlm",
            LoraConfig(lora_dropout=0.0, r=4, lora_alpha=8, target_modules="all-linear"),
        ),
        "distilbert_mlm": (
            "encoder_distilbert_mlm",
            LoraConfig(
                lora_dropout=0.0,
                r=3,
                lora_alpha=6,
                task_type="FEATURE_EXTRACTION",
                target_modules=["q_lin", "lin2"],
            ),
        ),
        # The head is trained, except for its matrix that is tied to the word embeddings.
        "modernbert_mlm": (
            "encoder_modernbert_mlm",
            LoraConfig(
                lora_dropout=0.0, r=4, lora_alpha=8, target_modules="all-linear", modules_to_save=["head"]
            ),
        ),
        # The whole head is trained, which unties the matrix from the word embeddings.
        "bert_mlm": (
            "encoder_bert_mlm",
            LoraConfig(
                lora_dropout=0.0,
                r=4,
                lora_alpha=8,
                target_modules=["query", "value"],
                modules_to_save=["cls"],
            ),
        ),
        "albert_mlm": (
            "encoder_albert_mlm",
            LoraConfig(
                lora_dropout=0.0,
                r=3,
                lora_alpha=3,
                target_modules=["query", "dense"],
                modules_to_save=["decoder"],
            ),
        ),
    }


def class_for(config):
    kinds = {"SEQ_CLS": AutoModelForSequenceClassification, "TOKEN_CLS": AutoModelForTokenClassification}
    return kinds.get(config.task_type, AutoModelForMaskedLM)


def base_model(base, kind):
    config = AutoConfig.from_pretrained(base)
    if kind is not AutoModelForMaskedLM and len(config.id2label) != len(LABELS):
        config.id2label, config.label2id = (
            {i: f"LABEL_{i}" for i in range(len(LABELS))},
            {f"LABEL_{i}": i for i in range(len(LABELS))},
        )
    return kind.from_pretrained(base, config=config, attn_implementation="sdpa", dtype=torch.float32)


def plain_name(name):
    """The name in the file. A saved BERT head has one bias under two names; this takes the decoder's."""
    known = name.replace(".modules_to_save.", ".")
    return known if known == name else known.replace("cls.predictions.bias", "cls.predictions.decoder.bias")


def plain(values):
    return {plain_name(name): value for name, value in values.items()}


def generate(name, base_name, config, seed, root):
    base, folder = root / base_name, root / f"adapter_encoder_{name}"
    generator = torch.Generator().manual_seed(seed)
    kind = class_for(config)
    model = Adapters(get_peft_model(base_model(base, kind), config))
    with torch.no_grad():
        for _, parameter in model.named_parameters():
            parameter.copy_(0.1 * torch.randn(parameter.shape, generator=generator))
    model.model.save_pretrained(folder)
    (folder / "README.md").unlink(missing_ok=True)
    write_config(folder, base_name)
    inputs = draw_inputs(generator, model.model.config)
    labels = draw_labels(generator, kind, inputs["tokens"])
    model.config = model.model.config
    values = plain(evaluate_in_double(model, inputs, labels))
    saved = set(load_file(folder / "adapter_model.safetensors"))
    assert {f"base_model.model.{key[5:]}" for key in values if key.startswith("grad.")} == saved - {
        "base_model.model.cls.predictions.bias"
    }
    expected = write(folder, values | merged_weights(model), labels=labels, **inputs)
    stranger = Adapters(PeftModel.from_pretrained(base_model(base, kind), folder, is_trainable=True))
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
        torch.manual_seed(seed)  # parts that no folder has get random weights
        generate(name, base, config, seed, root)


if __name__ == "__main__":
    main()
