"""Makes the goldens of PEFT's adapters over a model in 4 bits, as transformers and bitsandbytes quantize
and save it.

Run once by a person (see README.md); the tests read only the files. The reference is computed in fp64 from
the values that bitsandbytes dequantizes in fp32. The results of transformers, PEFT and bitsandbytes
together must agree with it. All rows are whole blocks, because bitsandbytes 0.50 uses wrong scales for
others on a CPU (dequantize_4bit)."""

import json
import pathlib
import sys
import tempfile

import bitsandbytes.functional
import models
import torch
from adapters import Adapters, randomise, write_config
from models import TOLERANCE, evaluate, evaluate_double, relative
from peft import LoraConfig, PeftModel, get_peft_model
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM, BitsAndBytesConfig, LlamaConfig
from transformers.utils import logging

NAME, SEED = "llama_nf4", 20260
KEPT = "model.layers.1.mlp.down_proj"  # not quantized, like the head
# stored before and after quantization
STORED = ("model.layers.0.self_attn.k_proj.weight", "model.layers.1.mlp.up_proj.weight")
CONFIG = LlamaConfig(
    vocab_size=models.VOCABULARY,
    hidden_size=64,
    intermediate_size=128,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    head_dim=16,
    rms_norm_eps=1e-5,
    max_position_embeddings=128,
    tie_word_embeddings=False,
    rope_parameters={"rope_theta": 10000.0, "rope_type": "default"},
    bos_token_id=1,
    eos_token_id=2,
)
QUANTIZATION = BitsAndBytesConfig(
    load_in_4bit=True,
    bnb_4bit_quant_type="nf4",
    bnb_4bit_use_double_quant=True,
    bnb_4bit_compute_dtype=torch.float32,
    llm_int8_skip_modules=["lm_head", KEPT],
)


def load(folder, dtype, attention="sdpa", **more):
    model = AutoModelForCausalLM.from_pretrained(
        folder, attn_implementation=attention, dtype=dtype, device_map={"": "cpu"}, **more
    )
    for module in model.modules():
        module.support_avx512bf16_for_cpu = False  # otherwise it computes in bf16 whatever type is asked for
    return model


def values_of(model):
    """The dequantized values."""
    values = {}
    for name, parameter in model.named_parameters():
        state = getattr(parameter, "quant_state", None)
        values[name] = (
            parameter.detach()
            if state is None
            else bitsandbytes.functional.dequantize_4bit(parameter.detach(), state)
        )
    return values


def reference_errors(folder, base, expected):
    """Errors of the libraries in bf16: for each value a tensor with one number, as in models.py."""
    errors = {}
    for attention in ("eager", "sdpa"):
        model = load(base, torch.bfloat16, attention)
        for module in model.modules():
            if hasattr(module, "compute_dtype"):
                module.compute_dtype = torch.bfloat16  # the folder says fp32
        model = Adapters(PeftModel.from_pretrained(model, folder, is_trainable=True))
        for name, value in evaluate(model, expected["tokens"].long(), expected["targets"].long()).items():
            errors[name] = max(errors.get(name, 0), relative(value, expected[name]))
    return {
        f"bf16_error.{name}": torch.tensor([error], dtype=torch.float64) for name, error in errors.items()
    }


def main():
    torch.use_deterministic_algorithms(True)
    logging.disable_progress_bar()
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent)
    base, folder = root / NAME, root / f"adapter_{NAME}"
    generator = torch.Generator().manual_seed(SEED)
    plain = AutoModelForCausalLM.from_config(CONFIG, attn_implementation="sdpa", dtype=torch.float32)
    models.randomise(plain, generator)
    sources = {name: plain.state_dict()[name].clone() for name in STORED}
    with tempfile.TemporaryDirectory() as numbers:
        plain.save_pretrained(numbers)
        model = load(numbers, torch.float32, quantization_config=QUANTIZATION)
    model.save_pretrained(base)
    (base / "generation_config.json").unlink(missing_ok=True)
    values = values_of(model)
    assert sum(values[name].shape != parameter.shape for name, parameter in model.named_parameters()) == 13

    plain.load_state_dict(values)
    plain = Adapters(
        get_peft_model(
            plain,
            LoraConfig(
                task_type="CAUSAL_LM", lora_dropout=0.0, r=4, lora_alpha=4, target_modules="all-linear"
            ),
        )
    )
    randomise(plain, generator)
    plain.model.save_pretrained(folder)
    (folder / "README.md").unlink(missing_ok=True)
    write_config(folder, NAME)
    tokens, targets = models.batch(generator)
    results = evaluate_double(plain, tokens, targets)
    expected = {key: value.float().contiguous() for key, value in results.items() if key != "loss"}
    expected |= {"loss": results["loss"].double(), "tokens": tokens.int(), "targets": targets.int()}
    expected |= {f"source.{name}": sources[name] for name in STORED} | {
        f"value.{name}": values[name].contiguous() for name in STORED
    }
    expected |= reference_errors(folder, base, expected)
    save_file(expected, folder / "expected.safetensors")

    stranger = Adapters(PeftModel.from_pretrained(load(base, torch.float32), folder, is_trainable=True))
    actual = evaluate(stranger, tokens, targets)
    error, tensor = max((relative(value, expected[name]), name) for name, value in actual.items())
    assert error < TOLERANCE, (error, tensor)
    for file in (*folder.iterdir(), *base.iterdir()):
        file.chmod(0o644)
    assert json.loads((base / "config.json").read_text())["quantization_config"]["bnb_4bit_use_double_quant"]
    print(
        f"{folder.name}: loss {expected['loss'].item():.9f}, logits std "
        f"{expected['logits'].std().item():.3f}, worst fp32 error {error:.1e} ({tensor}), "
        f"{sum(file.stat().st_size for file in (*folder.iterdir(), *base.iterdir()))} bytes"
    )


if __name__ == "__main__":
    main()
