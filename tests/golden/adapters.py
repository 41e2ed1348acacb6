"""Makes the goldens of low-rank adapters: folders as PEFT saves them, over three of the models of
models.py.

Run once by a person (see README.md); the tests read only the files. Tokens and targets are those of the
model's folder."""

import json
import pathlib
import sys

import torch
from models import TOLERANCE, attentions, evaluate, evaluate_double, relative
from peft import LoraConfig, PeftModel, get_peft_model
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM
from transformers.utils import logging

MERGED_LAYER = ".0."  # the layer whose merged matrices are stored


def configurations():
    shared = {"task_type": "CAUSAL_LM", "lora_dropout": 0.0}
    return {
        "gpt2": LoraConfig(
            **shared, r=4, lora_alpha=8, target_modules=["c_attn", "c_proj"], fan_in_fan_out=True
        ),
        "llama": LoraConfig(**shared, r=8, lora_alpha=8, target_modules=["q_proj", "v_proj"]),
        "qwen3": LoraConfig(**shared, r=4, lora_alpha=16, use_rslora=True, target_modules="all-linear"),
        "bloom": LoraConfig(**shared, r=4, lora_alpha=8, target_modules=["query_key_value", "dense_4h_to_h"]),
    }


class Adapters(torch.nn.Module):
    """A model whose only parameters are its adapters, named as in their file without `base_model.model.`."""

    def __init__(self, model):
        super().__init__()
        self.model = model.eval()

    def forward(self, **inputs):
        return self.model(**inputs)

    def named_parameters(self, *arguments, **options):
        for name, parameter in self.model.named_parameters(*arguments, **options):
            if parameter.requires_grad:
                yield name.removeprefix("base_model.model.").replace(".default.", "."), parameter


def randomise(model, generator):
    with torch.no_grad():
        for _, parameter in model.named_parameters():
            parameter.copy_(0.1 * torch.randn(parameter.shape, generator=generator))


def merged_weights(model):
    """Merged weights of one layer's adapted matrices. The model has no adapters after this."""
    modules = {name.partition(".lora_")[0] for name, _ in model.named_parameters() if MERGED_LAYER in name}
    weights = model.model.merge_and_unload().state_dict()
    return {f"{module}.weight.merged": weights[f"{module}.weight"].detach() for module in sorted(modules)}


def write_config(folder, base):
    """Rewrites PEFT's config: the base is a relative path, and the list of modules, which PEFT makes from
    a set, is sorted."""
    config = json.loads((folder / "adapter_config.json").read_text())
    config["base_model_name_or_path"] = f"../{base}"
    config["target_modules"].sort()
    (folder / "adapter_config.json").write_text(json.dumps(config, indent=2, sort_keys=True))


def load(folder, base, attention, dtype):
    model = AutoModelForCausalLM.from_pretrained(base, attn_implementation=attention, dtype=dtype)
    return Adapters(PeftModel.from_pretrained(model, folder, is_trainable=True))


def check(folder, base, expected):
    """Checks that PEFT, in fp32 and without patches, gives the stored results for the folders, merged and
    unmerged."""
    model = load(folder, base, attentions(base.name)[0], torch.float32)
    weights = load_file(folder / "adapter_model.safetensors")
    assert {f"base_model.model.{name}" for name, _ in model.named_parameters()} == set(weights)
    tokens = expected["tokens"].long()
    actual = evaluate(model, tokens, expected["targets"].long())
    actual |= merged_weights(model)
    assert set(actual) | {"tokens", "targets"} == {
        name for name in expected if not name.startswith("bf16_error.")
    }
    worst = max((relative(value, expected[name]), name) for name, value in actual.items())
    assert worst[0] < TOLERANCE, worst
    with torch.no_grad():
        assert relative(model(input_ids=tokens, use_cache=False).logits, expected["logits"]) < TOLERANCE
    return worst


def reference_errors(folder, base, expected):
    """Errors of PEFT itself with a model in bf16 and adapters in fp32, as in models.py."""
    errors = {}
    for attention in attentions(base.name):
        model = load(folder, base, attention, torch.bfloat16)
        actual = evaluate(model, expected["tokens"].long(), expected["targets"].long())
        for name, value in actual.items():
            errors[name] = max(errors.get(name, 0), relative(value, expected[name]))
    return {
        f"bf16_error.{name}": torch.tensor([error], dtype=torch.float64) for name, error in errors.items()
    }


def generate(name, config, seed, root):
    base, folder = root / name, root / f"adapter_{name}"
    batch = load_file(base / "expected.safetensors")
    tokens, targets = batch["tokens"], batch["targets"]
    model = AutoModelForCausalLM.from_pretrained(
        base, attn_implementation=attentions(name)[0], dtype=torch.float32
    )
    model = Adapters(get_peft_model(model, config))
    randomise(model, torch.Generator().manual_seed(seed))
    model.model.save_pretrained(folder)
    (folder / "README.md").unlink(missing_ok=True)
    write_config(folder, name)
    values = evaluate_double(model, tokens.long(), targets.long())
    values |= merged_weights(model)
    expected = {key: value.float().contiguous() for key, value in values.items() if key != "loss"}
    expected |= {"loss": values["loss"].double(), "tokens": tokens, "targets": targets}
    expected |= reference_errors(folder, base, expected)
    save_file(expected, folder / "expected.safetensors")
    error, tensor = check(folder, base, load_file(folder / "expected.safetensors"))
    for file in folder.iterdir():
        file.chmod(0o644)
    gradients = [value.abs().max().item() for key, value in expected.items() if key.startswith("grad.")]
    print(
        f"{folder.name}: loss {expected['loss'].item():.9f} (of the model alone {batch['loss'].item():.9f}), "
        f"logits std {expected['logits'].std().item():.3f}, max|gradient| "
        f"{min(gradients):.2e}..{max(gradients):.2e}, worst fp32 error {error:.1e} ({tensor}), "
        f"{sum(file.stat().st_size for file in folder.iterdir())} bytes"
    )


def main():
    torch.use_deterministic_algorithms(True)
    logging.disable_progress_bar()
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent)
    for seed, (name, config) in enumerate(configurations().items(), start=20250):
        if not sys.argv[2:] or name in sys.argv[2:]:  # the given names, or all
            generate(name, config, seed, root)


if __name__ == "__main__":
    main()
