"""Makes the goldens of whole models: one small random model for each family, with logits, loss and
gradients in fp64.

Run once by a person (see README.md); the tests read only the files. The forward pass must be fp64 from end
to end, except for the rotary tables: their convention is fp32, so the fp64 model uses the same fp32
cosines and sines."""

import json
import pathlib
import sys

import torch
from safetensors.torch import load_file, save_file
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    BloomConfig,
    Gemma3Config,
    Gemma3TextConfig,
    GPT2Config,
    LlamaConfig,
    MistralConfig,
    Phi3Config,
    Qwen2Config,
    Qwen3Config,
    SiglipVisionConfig,
    SmolLM3Config,
)
from transformers.models.gemma3 import modeling_gemma3
from transformers.models.llama import modeling_llama
from transformers.models.mistral import modeling_mistral
from transformers.models.phi3 import modeling_phi3
from transformers.models.qwen2 import modeling_qwen2
from transformers.models.qwen3 import modeling_qwen3
from transformers.models.smollm3 import modeling_smollm3
from transformers.utils import logging

VOCABULARY = 97
ROWS, LENGTH = 3, 16
IGNORED = -100
TOLERANCE = 1e-5  # max|difference| / max|reference|, per tensor

LLAMA_ROPE_SCALING = {
    # Wavelengths of head_dim 8 are 6.3, 63, 628 and 6283: kept, blended, divided, divided.
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 128,
}


def configurations():
    shared = {
        "vocab_size": VOCABULARY,
        "hidden_size": 32,
        "intermediate_size": 56,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "hidden_act": "silu",
        "attention_dropout": 0.0,
        "bos_token_id": 1,
        "eos_token_id": 2,
    }
    # Only the first layer has a window, and its angles differ. The scale of the scores does not come from the
    # head size.
    gemma3 = Gemma3TextConfig(
        **{**shared, "hidden_act": None},
        head_dim=12,
        rms_norm_eps=1e-6,
        max_position_embeddings=128,
        tie_word_embeddings=True,
        sliding_window=5,
        layer_types=["sliding_attention", "full_attention"],
        query_pre_attn_scalar=10,
        rope_parameters={
            "full_attention": {"rope_theta": 1000000.0, "rope_type": "linear", "factor": 8.0},
            "sliding_attention": {"rope_theta": 10000.0, "rope_type": "default"},
        },
    )
    return {
        "gpt2": GPT2Config(
            vocab_size=VOCABULARY,
            n_positions=32,
            n_embd=32,
            n_layer=2,
            n_head=4,
            activation_function="gelu_new",
            resid_pdrop=0.0,
            embd_pdrop=0.0,
            attn_pdrop=0.0,
            bos_token_id=1,
            eos_token_id=2,
            tie_word_embeddings=True,
        ),
        "llama": LlamaConfig(
            **shared,
            head_dim=8,
            rms_norm_eps=1e-5,
            max_position_embeddings=1024,
            attention_bias=False,
            mlp_bias=False,
            tie_word_embeddings=False,
            rope_parameters={"rope_theta": 10000.0, **LLAMA_ROPE_SCALING},
        ),
        "qwen2": Qwen2Config(
            **shared,
            rms_norm_eps=1e-6,
            max_position_embeddings=128,
            tie_word_embeddings=True,
            use_sliding_window=False,
            rope_parameters={"rope_theta": 1000000.0, "rope_type": "default"},
        ),
        # The window hides tokens further back. The heads do not fill the width, as in Mistral Nemo.
        "mistral": MistralConfig(
            **shared,
            head_dim=12,
            rms_norm_eps=1e-5,
            max_position_embeddings=128,
            tie_word_embeddings=False,
            sliding_window=6,
            rope_parameters={"rope_theta": 1000000.0, "rope_type": "default"},
        ),
        "qwen3": Qwen3Config(
            **shared,
            head_dim=20,
            rms_norm_eps=1e-6,
            max_position_embeddings=128,
            tie_word_embeddings=True,
            rope_parameters={"rope_theta": 1000000.0, "rope_type": "default"},
        ),
        # The second layer has no position encoding.
        "smollm3": SmolLM3Config(
            **shared,
            rms_norm_eps=1e-6,
            max_position_embeddings=128,
            tie_word_embeddings=True,
            no_rope_layers=[1, 0],
            pad_token_id=None,
            rope_parameters={"rope_theta": 2000000.0, "rope_type": "default"},
        ),
        # Half of each head is rotated, by angles of its own. There is a window.
        "phi3": Phi3Config(
            **shared,
            rms_norm_eps=1e-5,
            max_position_embeddings=128,
            original_max_position_embeddings=64,
            tie_word_embeddings=False,
            pad_token_id=None,
            sliding_window=9,
            rope_parameters={
                "rope_theta": 10000.0,
                "rope_type": "longrope",
                "partial_rotary_factor": 0.5,
                "short_factor": [1.0, 1.25],
                "long_factor": [4.0, 9.5],
            },
        ),
        "gemma3_text": gemma3,
        # The same inside of a model that also takes images, which are not used here.
        "gemma3": Gemma3Config(
            text_config=gemma3,
            mm_tokens_per_image=4,
            image_token_index=94,
            boi_token_index=95,
            eoi_token_index=96,
            vision_config=SiglipVisionConfig(
                hidden_size=8,
                intermediate_size=8,
                num_hidden_layers=1,
                num_attention_heads=1,
                image_size=28,
                patch_size=14,
            ),
        ),
        # Six heads: the slopes of ALiBi come from two powers of 2.
        "bloom": BloomConfig(
            vocab_size=VOCABULARY,
            hidden_size=36,
            n_layer=2,
            n_head=6,
            hidden_dropout=0.0,
            attention_dropout=0.0,
            seq_length=64,
            bos_token_id=1,
            eos_token_id=2,
            pad_token_id=3,
            tie_word_embeddings=True,
        ),
    }


def attentions(name):
    """All attention implementations of transformers for a model. The first one computes the goldens."""
    return ["eager"] if "bloom" in name else ["sdpa", "eager"]


def rms_norm(self, hidden):
    """The published forward casts to fp32. This one keeps the type of its input, so that fp64 stays fp64."""
    variance = hidden.pow(2).mean(-1, keepdim=True)
    return self.weight * (hidden * torch.rsqrt(variance + self.variance_epsilon))


def gemma_norm(self, hidden):
    return self._norm(hidden) * (1.0 + self.weight)


def randomise(model, generator):
    """Chooses scales that keep logits and gradients of order one, and no weight at a value that hides a
    missing term."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            is_norm = any(part in name.lower() for part in ("ln_", "norm"))
            if name.endswith("bias"):
                parameter.copy_(0.1 * noise)
            elif is_norm:
                parameter.copy_((0.0 if "gemma" in model.config.model_type else 1.0) + 0.1 * noise)
            else:
                parameter.copy_(0.18 * noise)


def batch(generator):
    """Targets are already shifted. The masked ones are a prefix, a hole and a tail, so the mean's divisor
    is 41, not 48."""
    stream = torch.randint(0, VOCABULARY, (ROWS, LENGTH + 1), generator=generator)
    stream[0, 9] = stream[0, 4]
    tokens, targets = stream[:, :-1].contiguous(), stream[:, 1:].clone()
    targets[1, :4] = IGNORED
    targets[0, 7] = IGNORED
    targets[2, -2:] = IGNORED
    return tokens, targets


def evaluate(model, tokens, targets):
    model.zero_grad(set_to_none=True)
    logits = model(input_ids=tokens, use_cache=False).logits
    loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=IGNORED)
    loss.backward()
    values = {"logits": logits.detach(), "loss": loss.detach().reshape(1)}
    # A language model inside of another is stored under the names that it has alone. The other parts have no
    # gradients.
    values |= {
        f"grad.{name.replace('model.language_model.', 'model.')}": parameter.grad.detach().clone()
        for name, parameter in model.named_parameters()
        if parameter.grad is not None
    }
    return values


def relative(actual, reference):
    reference = reference.double()
    return ((actual.double() - reference).abs().max() / reference.abs().max()).item()


def evaluate_double(model, tokens, targets, evaluate=evaluate):
    # Uses SDPA because the eager path of Llama and Qwen2 computes its softmax in fp32 whatever the type of
    # its input.
    norms = (
        modeling_llama.LlamaRMSNorm,
        modeling_mistral.MistralRMSNorm,
        modeling_phi3.Phi3RMSNorm,
        modeling_qwen2.Qwen2RMSNorm,
        modeling_qwen3.Qwen3RMSNorm,
        modeling_smollm3.SmolLM3RMSNorm,
        modeling_gemma3.Gemma3RMSNorm,
    )
    published = [norm.forward for norm in norms]
    softmax = torch.nn.functional.softmax  # BLOOM's attention asks for fp32
    torch.nn.functional.softmax = lambda x, dim, dtype=None: softmax(x, dim=dim)
    for norm in norms:
        norm.forward = gemma_norm if norm is modeling_gemma3.Gemma3RMSNorm else rms_norm
    try:
        return evaluate(model.double(), tokens, targets)
    finally:
        torch.nn.functional.softmax = softmax
        for norm, forward in zip(norms, published):
            norm.forward = forward


def write_legacy_config(folder):
    """The same configuration as most published folders spell it: rope_theta and rope_scaling at the top
    level."""
    whole = json.loads((folder / "config.json").read_text())
    whole["torch_dtype"] = whole.pop("dtype")
    config = whole.get("text_config", whole)
    rope = config.pop("rope_parameters")
    if "full_attention" in rope:
        config["rope_local_base_freq"] = rope["sliding_attention"]["rope_theta"]
        config["sliding_window_pattern"] = config.pop("layer_types").index("full_attention") + 1
        rope = rope["full_attention"]
    config["rope_theta"] = rope.pop("rope_theta")
    if "partial_rotary_factor" in rope:
        config["partial_rotary_factor"] = rope.pop("partial_rotary_factor")
    config["rope_scaling"] = None if rope["rope_type"] == "default" else rope
    (folder / "config_legacy.json").write_text(json.dumps(whole, indent=2, sort_keys=True) + "\n")


def check(folder, expected, config=None):
    """Checks that transformers, in fp32 and without patches, gives the stored results for the folder."""
    model = AutoModelForCausalLM.from_pretrained(
        folder, config=config, attn_implementation=attentions(folder.name)[0], dtype=torch.float32
    )
    actual = evaluate(model.eval(), expected["tokens"].long(), expected["targets"].long())
    worst = max((relative(value, expected[name]), name) for name, value in actual.items())
    assert set(actual) | {"tokens", "targets"} == {
        name for name in expected if not name.startswith("bf16_error.")
    }
    assert worst[0] < TOLERANCE, worst
    return worst


def reference_errors(folder, expected):
    """Errors of transformers itself in bf16: for each value a tensor with one number, `bf16_error.<name>`.

    The larger error of two attentions: "eager" rounds to bf16 between the ops, "sdpa" on a CPU computes in
    fp32."""
    errors = {}
    for attention in attentions(folder.name):
        model = AutoModelForCausalLM.from_pretrained(
            folder, attn_implementation=attention, dtype=torch.bfloat16
        )
        actual = evaluate(model.eval(), expected["tokens"].long(), expected["targets"].long())
        for name, value in actual.items():
            errors[name] = max(errors.get(name, 0), relative(value, expected[name]))
    return {
        f"bf16_error.{name}": torch.tensor([error], dtype=torch.float64) for name, error in errors.items()
    }


def generate(name, config, seed, root):
    folder = root / name
    generator = torch.Generator().manual_seed(seed)
    model = AutoModelForCausalLM.from_config(
        config, attn_implementation=attentions(name)[0], dtype=torch.float32
    ).eval()
    randomise(model, generator)
    model.save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)
    tokens, targets = batch(generator)
    values = evaluate_double(model, tokens, targets)
    expected = {key: value.float().contiguous() for key, value in values.items() if key != "loss"}
    expected |= {"loss": values["loss"].double(), "tokens": tokens.int(), "targets": targets.int()}
    expected |= reference_errors(folder, expected)
    save_file(expected, folder / "expected.safetensors")
    stored = load_file(folder / "expected.safetensors")
    error, tensor = check(folder, stored)
    if name not in ("bloom", "gpt2"):
        write_legacy_config(folder)
        check(folder, stored, AutoConfig.from_pretrained(folder / "config_legacy.json"))
    for file in folder.iterdir():
        file.chmod(0o644)
    gradients = [value.abs().max().item() for key, value in expected.items() if key.startswith("grad.")]
    print(
        f"{name}: loss {expected['loss'].item():.9f}, logits std {expected['logits'].std().item():.3f}, "
        f"max|gradient| {min(gradients):.2e}..{max(gradients):.2e}, worst fp32 error {error:.1e} ({tensor}), "
        f"{sum(file.stat().st_size for file in folder.iterdir())} bytes"
    )


def main():
    torch.use_deterministic_algorithms(True)
    logging.disable_progress_bar()
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent)
    for seed, (name, config) in enumerate(configurations().items(), start=20240):
        if not sys.argv[2:] or name in sys.argv[2:]:  # the given names, or all
            generate(name, config, seed, root)


if __name__ == "__main__":
    main()
