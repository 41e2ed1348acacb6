"""Makes the goldens of text classifiers: folders as transformers saves them, and adapters with a head as
PEFT saves them.

Run once by a person (see README.md); the tests read only the files. Texts have different lengths and are
padded at their end. In `tokens_…` most tokens have a label."""

import json
import pathlib
import sys

import torch
from adapters import Adapters, merged_weights
from models import (
    IGNORED,
    TOLERANCE,
    VOCABULARY,
    attentions,
    configurations,
    evaluate_double,
    randomise,
    relative,
)
from peft import LoraConfig, PeftModel, get_peft_model
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, AutoModelForSequenceClassification, AutoModelForTokenClassification
from transformers.utils import logging

LABELS = ["arrival", "refund", "top up", "card \u201clost\u201d", "other"]
LENGTHS = [16, 5, 11, 1]
PADDING = 0


def batch(generator):
    tokens = torch.randint(1, VOCABULARY, (len(LENGTHS), max(LENGTHS)), generator=generator)
    for row, length in enumerate(LENGTHS):
        tokens[row, length:] = PADDING
    return tokens, torch.randint(0, len(LABELS), (len(LENGTHS),), generator=generator)


def token_labels(generator, tokens):
    labels = torch.randint(0, len(LABELS), tokens.shape, generator=generator)
    labels[(torch.rand(tokens.shape, generator=generator) >= 0.8) | (tokens == PADDING)] = IGNORED
    return labels


def evaluate(model, tokens, labels):
    model.zero_grad(set_to_none=True)
    output = model(
        input_ids=tokens, attention_mask=(tokens != PADDING).long(), labels=labels, use_cache=False
    )
    output.loss.backward()
    values = {"logits": output.logits.detach(), "loss": output.loss.detach().reshape(1)}
    values |= {
        f"grad.{name}": parameter.grad.detach().clone() for name, parameter in model.named_parameters()
    }
    return values


def check(model, expected):
    """Checks that transformers, in fp32 and without patches, gives the stored results for the folder."""
    actual = evaluate(model.eval(), expected["tokens"].long(), expected["labels"].long())
    assert set(actual) | {"tokens", "labels", "lengths"} == set(expected)
    worst = max((relative(value, expected[name]), name) for name, value in actual.items())
    assert worst[0] < TOLERANCE, worst
    return worst


def write(folder, values, tokens, labels, **inputs):
    expected = {key: value.float().contiguous() for key, value in values.items() if key != "loss"}
    expected |= {
        "loss": values["loss"].double(),
        "tokens": tokens.int(),
        "labels": labels.int(),
        "lengths": torch.tensor(LENGTHS, dtype=torch.int32),
    }
    expected |= {key: value.int() for key, value in inputs.items()}
    save_file(expected, folder / "expected.safetensors")
    for file in folder.iterdir():
        file.chmod(0o644)
    return load_file(folder / "expected.safetensors")


def tell(folder, expected, worst):
    gradients = [value.abs().max().item() for key, value in expected.items() if key.startswith("grad.")]
    print(
        f"{folder.name}: loss {expected['loss'].item():.9f}, logits std "
        f"{expected['logits'].std().item():.3f}, max|gradient| "
        f"{min(gradients):.2e}..{max(gradients):.2e}, worst fp32 error {worst[0]:.1e} ({worst[1]}), "
        f"{sum(file.stat().st_size for file in folder.iterdir())} bytes"
    )


def generate(name, seed, root, of_tokens=False):
    folder = root / f"{'tokens' if of_tokens else 'classifier'}_{name}"
    kind = AutoModelForTokenClassification if of_tokens else AutoModelForSequenceClassification
    config = configurations()[name]
    config.id2label, config.label2id = dict(enumerate(LABELS)), {label: i for i, label in enumerate(LABELS)}
    config.pad_token_id = PADDING
    generator = torch.Generator().manual_seed(seed)
    attention = attentions(name)[0]
    model = kind.from_config(config, attn_implementation=attention, dtype=torch.float32).eval()
    randomise(model, generator)
    model.save_pretrained(folder)
    tokens, labels = batch(generator)
    if of_tokens:
        labels = token_labels(generator, tokens)
    expected = write(folder, evaluate_double(model, tokens, labels, evaluate), tokens, labels)
    tell(
        folder,
        expected,
        check(kind.from_pretrained(folder, attn_implementation=attention, dtype=torch.float32), expected),
    )


def base_model(base, kind):
    config = AutoConfig.from_pretrained(base, num_labels=len(LABELS), pad_token_id=PADDING)
    return kind.from_pretrained(base, config=config, attn_implementation="sdpa", dtype=torch.float32)


def generate_adapters(name, seed, root, of_tokens=False):
    base, folder = root / name, root / f"adapter_{'tokens' if of_tokens else 'classifier'}_{name}"
    kind = AutoModelForTokenClassification if of_tokens else AutoModelForSequenceClassification
    generator = torch.Generator().manual_seed(seed)
    config = LoraConfig(
        task_type="TOKEN_CLS" if of_tokens else "SEQ_CLS",
        lora_dropout=0.0,
        r=4,
        lora_alpha=8,
        target_modules=["q_proj", "v_proj", "down_proj"],
    )
    model = Adapters(get_peft_model(base_model(base, kind), config))
    with torch.no_grad():
        for _, parameter in model.named_parameters():
            parameter.copy_(0.1 * torch.randn(parameter.shape, generator=generator))
    model.model.save_pretrained(folder)
    (folder / "README.md").unlink(missing_ok=True)
    written = json.loads((folder / "adapter_config.json").read_text())
    written["base_model_name_or_path"] = f"../{name}"
    written["target_modules"].sort()
    (folder / "adapter_config.json").write_text(json.dumps(written, indent=2, sort_keys=True))
    tokens, labels = batch(generator)
    if of_tokens:
        labels = token_labels(generator, tokens)
    values = {
        key.replace(".modules_to_save.", "."): value
        for key, value in evaluate_double(model, tokens, labels, evaluate).items()
    }
    if of_tokens:
        values |= merged_weights(model)
    expected = write(folder, values, tokens, labels)
    stranger = Adapters(PeftModel.from_pretrained(base_model(base, kind), folder, is_trainable=True))
    actual = evaluate(stranger, tokens, labels)
    worst = max(
        (relative(value, expected[key.replace(".modules_to_save.", ".")]), key)
        for key, value in actual.items()
    )
    assert worst[0] < TOLERANCE, worst
    assert {f"base_model.model.{key[5:]}" for key in expected if key.startswith("grad.")} == set(
        load_file(folder / "adapter_model.safetensors")
    )
    tell(folder, expected, worst)


def main():
    torch.use_deterministic_algorithms(True)
    logging.disable_progress_bar()
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent)
    chosen = sys.argv[2:]  # the given names, or all
    for seed, name in enumerate(("gpt2", "llama", "qwen3", "bloom"), start=20260):
        if not chosen or name in chosen:
            generate(name, seed, root)
    for seed, name in enumerate(("gpt2", "llama", "bloom"), start=20275):
        if not chosen or f"tokens_{name}" in chosen:
            generate(name, seed, root, of_tokens=True)
    if not chosen or "adapters" in chosen:
        generate_adapters("llama", 20270, root)
        generate_adapters("llama", 20271, root, of_tokens=True)


if __name__ == "__main__":
    main()
