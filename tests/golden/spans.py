"""Makes the goldens of models that find an answer in a text, as transformers saves them
(…ForQuestionAnswering).

Run once by a person (see README.md); the tests read only the files. Texts have different lengths. Each is
evaluated alone, because transformers' softmax runs over the padding of a batch too, and ours does not. If a
model has token types, each text is a pair: a run of type 0, then a run of type 1."""

import pathlib
import sys

import torch
from classifiers import LENGTHS, tell
from encoders import TYPES, attention_of, draw_inputs, evaluate_in_double
from models import TOLERANCE, randomise, relative
from safetensors.torch import load_file, save_file
from transformers import (
    AlbertConfig,
    AutoModelForQuestionAnswering,
    BertConfig,
    DebertaV2Config,
    DistilBertConfig,
    ElectraConfig,
    ModernBertConfig,
    RobertaConfig,
)
from transformers.utils import logging

VOCABULARY, WIDTH, INNER, HEADS, LAYERS, POSITIONS = 131, 24, 40, 3, 2, 24


def configurations():
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
    distilbert = {
        "vocab_size": VOCABULARY,
        "dim": WIDTH,
        "hidden_dim": INNER,
        "n_heads": HEADS,
        "n_layers": LAYERS,
        "max_position_embeddings": POSITIONS,
        "dropout": 0.0,
        "attention_dropout": 0.0,
        "qa_dropout": 0.0,
        "pad_token_id": 0,
    }
    modernbert = {**shared, "max_position_embeddings": POSITIONS, "local_attention": 6, "pad_token_id": 0}
    return {
        "spans_bert": BertConfig(**bert),
        "spans_roberta": RobertaConfig(**roberta),
        "spans_modernbert": ModernBertConfig(**modernbert, classifier_bias=True, norm_bias=True),
        "spans_albert": AlbertConfig(**bert, embedding_size=11, classifier_dropout_prob=0.0),
        "spans_electra": ElectraConfig(**bert, embedding_size=17),
        "spans_distilbert": DistilBertConfig(**distilbert),
        "spans_deberta": DebertaV2Config(
            **encoder,
            max_position_embeddings=POSITIONS,
            relative_attention=True,
            position_buckets=6,
            max_relative_positions=12,
            norm_rel_ebd="layer_norm",
            share_att_key=True,
            pos_att_type="p2c|c2p",
            position_biased_input=False,
            pad_token_id=0,
        ),
    }


def evaluate(model, inputs, spans):
    """The mean loss of the texts, its gradients, and logits (texts, tokens, 2), 0 at padding."""
    model.zero_grad(set_to_none=True)
    tokens = inputs["tokens"].long()
    logits = torch.zeros(*tokens.shape, 2, dtype=model.dtype)
    loss = 0
    for text, length in enumerate(LENGTHS):
        types = {"token_type_ids": inputs[TYPES][text : text + 1, :length].long()} if TYPES in inputs else {}
        output = model(
            input_ids=tokens[text : text + 1, :length],
            attention_mask=torch.ones(1, length, dtype=torch.long),
            start_positions=spans[text : text + 1, 0].long(),
            end_positions=spans[text : text + 1, 1].long(),
            **types,
        )
        loss = loss + output.loss / len(LENGTHS)
        logits[text, :length] = torch.stack([output.start_logits[0], output.end_logits[0]], -1).detach()
    loss.backward()
    values = {"logits": logits, "loss": loss.detach().reshape(1)}
    return values | {
        f"grad.{name}": parameter.grad.detach().clone() for name, parameter in model.named_parameters()
    }


def is_zero(name, value):
    """Whether a gradient is zero up to rounding: a key's bias, or one that adds the same number to all logits
    of a softmax."""
    return name.startswith("grad.") and value.abs().max() < 1e-12


def check(model, expected):
    """Checks that transformers, in fp32 and without patches, gives the stored results for the folder."""
    actual = evaluate(model.eval(), expected, expected["labels"])
    assert set(actual) | {"tokens", "labels", "lengths"} == set(expected) - {TYPES}
    for name in [name for name in actual if is_zero(name, expected[name])]:
        weight = expected[name.replace("bias", "weight")]
        assert actual.pop(name).abs().max() < TOLERANCE * weight.abs().max(), name
    worst = max((relative(value, expected[name]), name) for name, value in actual.items())
    assert worst[0] < TOLERANCE, worst
    return worst


def generate(name, config, seed, root):
    folder = root / name
    generator = torch.Generator().manual_seed(seed)
    attention = attention_of(config)
    model = AutoModelForQuestionAnswering.from_config(
        config, attn_implementation=attention, dtype=torch.float32
    ).eval()
    randomise(model, generator)
    model.save_pretrained(folder)
    inputs = draw_inputs(generator, config)
    # The first token and the last one of each text's answer. The second text has none: both are the first.
    spans = torch.zeros(len(LENGTHS), 2)
    for text, length in enumerate(LENGTHS):
        ends = torch.randint(0, length, (2,), generator=generator).sort().values
        spans[text] = 0 if text == 1 else ends.float()
    values = evaluate_in_double(model, inputs, spans, evaluate)
    assert all(value.dtype == torch.float64 for value in values.values())
    expected = {key: value.float().contiguous() for key, value in values.items() if key != "loss"}
    expected |= {
        "loss": values["loss"],
        "labels": spans,
        "lengths": torch.tensor(LENGTHS, dtype=torch.int32),
    }
    expected |= {key: value.int() for key, value in inputs.items()}
    save_file(expected, folder / "expected.safetensors")
    for file in folder.iterdir():
        file.chmod(0o644)
    expected = load_file(folder / "expected.safetensors")
    worst = check(
        AutoModelForQuestionAnswering.from_pretrained(
            folder, attn_implementation=attention, dtype=torch.float32
        ),
        expected,
    )
    tell(folder, {key: value for key, value in expected.items() if not is_zero(key, value)}, worst)


def main():
    torch.use_deterministic_algorithms(True)
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent)
    chosen = sys.argv[2:]  # the given names, or all
    for seed, (name, config) in enumerate(configurations().items(), start=20400):
        if chosen and name not in chosen:
            continue
        generate(name, config, seed, root)


if __name__ == "__main__":
    main()
