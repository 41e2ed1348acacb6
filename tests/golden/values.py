"""Makes the goldens of models with several labels for a text, or with numbers, as transformers saves them.

Run once by a person (see README.md); the tests read only the files. Texts have different lengths and are
padded at their end. If a model has token types, each text is a pair: a run of type 0, then a run of type
1."""

import pathlib
import sys

import torch
from classifiers import LENGTHS, tell
from encoders import TYPES, draw_inputs, evaluate_in_double, is_key_bias
from models import TOLERANCE, randomise, relative
from safetensors.torch import load_file, save_file
from transformers import (
    AlbertConfig,
    AutoModelForSequenceClassification,
    BertConfig,
    ElectraConfig,
    LlamaConfig,
    ModernBertConfig,
    RobertaConfig,
)
from transformers.utils import logging

VOCABULARY, WIDTH, INNER, HEADS, LAYERS, POSITIONS = 131, 24, 40, 3, 2, 24
LABELS = ["anger", "joy", "card \u201clost\u201d", "top up", "other"]
NUMBERS = ["stars", "length", "price"]


def configurations():
    """Name, configuration, names of the outputs. One number without a problem_type follows transformers'
    default."""
    shared = {
        "vocab_size": VOCABULARY,
        "hidden_size": WIDTH,
        "intermediate_size": INNER,
        "num_attention_heads": HEADS,
        "num_hidden_layers": LAYERS,
    }
    encoder = {
        **shared,
        "hidden_act": "gelu",
        "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0,
    }
    bert = {**encoder, "max_position_embeddings": POSITIONS, "type_vocab_size": 2, "pad_token_id": 0}
    roberta = {
        **encoder,
        "max_position_embeddings": POSITIONS + 2,
        "type_vocab_size": 1,
        "bos_token_id": 0,
        "pad_token_id": 1,
        "eos_token_id": 2,
    }
    llama = {
        **shared,
        "num_key_value_heads": 1,
        "max_position_embeddings": POSITIONS,
        "pad_token_id": 0,
        "bos_token_id": 1,
        "eos_token_id": 2,
    }
    modernbert = {**shared, "max_position_embeddings": POSITIONS, "local_attention": 6, "pad_token_id": 0}
    several, numbers = {"problem_type": "multi_label_classification"}, {"problem_type": "regression"}
    return {
        "labels_bert": (BertConfig(**bert, **several), LABELS),
        "labels_roberta": (RobertaConfig(**roberta, **several), LABELS),
        "labels_llama": (LlamaConfig(**llama, **several), LABELS),
        "number_bert": (BertConfig(**bert, **numbers), NUMBERS),
        "number_roberta": (RobertaConfig(**roberta), ["LABEL_0"]),
        "number_llama": (LlamaConfig(**llama, **numbers), ["similarity"]),
        "labels_electra": (ElectraConfig(**bert, embedding_size=17, **several), LABELS),
        "number_electra": (ElectraConfig(**bert, embedding_size=17, **numbers), NUMBERS),
        "labels_albert": (
            AlbertConfig(**bert, embedding_size=11, classifier_dropout_prob=0.0, **several),
            LABELS,
        ),
        "number_albert": (
            AlbertConfig(**bert, embedding_size=11, classifier_dropout_prob=0.0, **numbers),
            NUMBERS,
        ),
        "labels_modernbert": (ModernBertConfig(**modernbert, **several), LABELS),
        "number_modernbert": (
            ModernBertConfig(**modernbert, classifier_pooling="mean", classifier_bias=True, **numbers),
            NUMBERS,
        ),
    }


def evaluate(model, inputs, labels):
    model.zero_grad(set_to_none=True)
    tokens = inputs["tokens"].long()
    types = {"token_type_ids": inputs[TYPES].long()} if TYPES in inputs else {}
    output = model(
        input_ids=tokens,
        attention_mask=(tokens != model.config.pad_token_id).long(),
        labels=labels.to(model.dtype),
        **types,
    )
    output.loss.backward()
    values = {"logits": output.logits.detach(), "loss": output.loss.detach().reshape(1)}
    return values | {
        f"grad.{name}": parameter.grad.detach().clone() for name, parameter in model.named_parameters()
    }


def check(model, expected):
    """Checks that transformers, in fp32 and without patches, gives the stored results for the folder."""
    actual = evaluate(model.eval(), expected, expected["labels"])
    assert set(actual) | {"tokens", "labels", "lengths"} == set(expected) - {TYPES}
    for name in [name for name in actual if is_key_bias(name)]:
        assert (
            actual.pop(name).abs().max() < TOLERANCE * expected[name.replace(".key.", ".query.")].abs().max()
        ), name
    worst = max((relative(value, expected[name]), name) for name, value in actual.items())
    assert worst[0] < TOLERANCE, worst
    return worst


def generate(name, config, outputs, seed, root):
    folder = root / name
    config.id2label, config.label2id = dict(enumerate(outputs)), {label: i for i, label in enumerate(outputs)}
    generator = torch.Generator().manual_seed(seed)
    attention = "sdpa"
    model = AutoModelForSequenceClassification.from_config(
        config, attn_implementation=attention, dtype=torch.float32
    ).eval()
    randomise(model, generator)
    model.save_pretrained(folder)
    inputs = draw_inputs(generator, config)
    shape = (len(LENGTHS), len(outputs))
    # Labels are 0 or 1. One text has fractions for all labels, and one has no label.
    labels = (
        torch.randint(0, 2, shape, generator=generator).float()
        if name.startswith("labels")
        else 3 * torch.randn(shape, generator=generator)
    )
    if name.startswith("labels"):
        labels[1], labels[2] = 0, torch.rand(len(outputs), generator=generator)
    values = evaluate_in_double(model, inputs, labels, evaluate)
    assert all(value.dtype == torch.float64 for value in values.values())
    expected = {key: value.float().contiguous() for key, value in values.items() if key != "loss"}
    expected |= {
        "loss": values["loss"],
        "labels": labels,
        "lengths": torch.tensor(LENGTHS, dtype=torch.int32),
    }
    expected |= {key: value.int() for key, value in inputs.items()}
    save_file(expected, folder / "expected.safetensors")
    for file in folder.iterdir():
        file.chmod(0o644)
    expected = load_file(folder / "expected.safetensors")
    worst = check(
        AutoModelForSequenceClassification.from_pretrained(
            folder, attn_implementation=attention, dtype=torch.float32
        ),
        expected,
    )
    tell(folder, {key: value for key, value in expected.items() if not is_key_bias(key)}, worst)


def main():
    torch.use_deterministic_algorithms(True)
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent)
    chosen = sys.argv[2:]  # the given names, or all
    for seed, (name, (config, outputs)) in enumerate(configurations().items(), start=20300):
        if chosen and name not in chosen:
            continue
        generate(name, config, outputs, seed, root)


if __name__ == "__main__":
    main()
