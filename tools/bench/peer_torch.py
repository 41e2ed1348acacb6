"""The PyTorch side of the training comparison: what a PyTorch user would run for the same model on this
CPU.

Prints one line of JSON: tokens/s of the median step, for the fastest way that the options allow. `--mode
best` tries eager with both AdamW kernels, then torch.compile with the better one, and lists every figure
under "candidates"."""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time

MODELS = {
    "nano": {
        "layers": 4,
        "heads": 4,
        "width": 128,
        "vocabulary": 256,
        "batch": 12,
        "seq": 64,
        "positions": 64,
    },
    "gpt2": {
        "layers": 12,
        "heads": 12,
        "width": 768,
        "vocabulary": 50257,
        "batch": 4,
        "seq": 256,
        "positions": 1024,
    },
    "smollm-135m": {
        "layers": 30,
        "heads": 9,
        "kv_heads": 3,
        "width": 576,
        "intermediate": 1536,
        "vocabulary": 49152,
        "batch": 4,
        "seq": 256,
        "positions": 2048,
    },
}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", choices=MODELS, default="nano")
    parser.add_argument(
        "--config",
        help="folder with the config.json of any language model that transformers knows, in place of --model",
    )
    parser.add_argument("--batch", type=int, help="sequences a step (nano 12, else 4)")
    parser.add_argument("--seq", type=int, help="tokens a sequence (nano 64, else 256)")
    parser.add_argument("--steps", type=int, default=20, help="timed steps, after the warm-up")
    parser.add_argument("--warmup", type=int, default=5, help="steps left out of the figure")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--mode", choices=["eager", "compile", "best"], default="best")
    parser.add_argument("--adamw", choices=["fused", "foreach"], default="fused", help="not with --mode best")
    parser.add_argument("--implementation", choices=["plain", "transformers"], default="plain")
    parser.add_argument(
        "--lora",
        type=int,
        default=0,
        help="train only adapters of this rank by PEFT, at all matrices of blocks",
    )
    parser.add_argument(
        "--quantize",
        choices=["none", "nf4"],
        default="none",
        help="the matrices below adapters, by bitsandbytes",
    )
    options = parser.parse_args()
    if (options.config or "kv_heads" in MODELS[options.model]) and options.implementation != "transformers":
        parser.error(
            f"{'--config' if options.config else f'--model {options.model}'} needs --implementation "
            "transformers"
        )
    if options.quantize != "none" and (
        options.config or not options.lora or "kv_heads" not in MODELS[options.model]
    ):
        parser.error("--quantize needs --lora, and a --model of the Llama family")
    if options.lora and options.implementation != "transformers":
        parser.error("--lora needs --implementation transformers")
    for name in ("batch", "seq"):
        if getattr(options, name) is None:
            setattr(
                options,
                name,
                {"batch": 4, "seq": 256}[name] if options.config else MODELS[options.model][name],
            )
    if min(options.batch, options.seq, options.steps, options.threads) < 1 or options.warmup < 1:
        parser.error("batch, seq, steps, warmup and threads must be at least 1")
    return options


OPTIONS = arguments()
os.environ["OMP_NUM_THREADS"] = str(OPTIONS.threads)  # read once, when torch loads its OpenMP

import torch  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.attended = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        batch, seq, width = x.shape
        q, k, v = (
            part.view(batch, seq, self.heads, -1).transpose(1, 2)
            for part in self.qkv(self.norm1(x)).split(width, dim=2)
        )
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.attended(y.transpose(1, 2).reshape(batch, seq, width))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class Gpt2(nn.Module):
    """GPT-2 with a tied head; returns the mean loss."""

    def __init__(self, layers, heads, width, vocabulary, positions):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(positions, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.tokens.weight
        for parameter in self.parameters():
            if parameter.dim() == 2:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, tokens, targets):
        x = self.tokens(tokens) + self.positions.weight[: tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.norm(x))
        return F.cross_entropy(logits.view(-1, logits.shape[-1]), targets.view(-1))


class TransformersGpt2(nn.Module):
    def __init__(self, layers, heads, width, vocabulary, positions):
        super().__init__()
        from transformers import GPT2Config, GPT2LMHeadModel

        self.model = GPT2LMHeadModel(
            GPT2Config(
                vocab_size=vocabulary,
                n_positions=positions,
                n_embd=width,
                n_layer=layers,
                n_head=heads,
                resid_pdrop=0.0,
                embd_pdrop=0.0,
                attn_pdrop=0.0,
                use_cache=False,
                attn_implementation="sdpa",
            )
        )

    def forward(self, tokens, targets):
        logits = self.model(input_ids=tokens, use_cache=False).logits
        return F.cross_entropy(logits.view(-1, logits.shape[-1]), targets.view(-1))


class TransformersLlama(nn.Module):
    """If requested, all matrices of the blocks are in 4 bits: saved and read again by bitsandbytes, with
    nested scales as usual."""

    def __init__(self, layers, heads, width, vocabulary, positions, kv_heads, intermediate):
        super().__init__()
        from transformers import BitsAndBytesConfig, LlamaConfig, LlamaForCausalLM

        self.model = LlamaForCausalLM(
            LlamaConfig(
                vocab_size=vocabulary,
                max_position_embeddings=positions,
                hidden_size=width,
                num_hidden_layers=layers,
                num_attention_heads=heads,
                num_key_value_heads=kv_heads,
                intermediate_size=intermediate,
                tie_word_embeddings=True,
                use_cache=False,
                attn_implementation="sdpa",
            )
        )
        if OPTIONS.quantize == "none":
            return
        with tempfile.TemporaryDirectory() as folder:
            self.model.save_pretrained(folder)
            self.model = LlamaForCausalLM.from_pretrained(
                folder,
                dtype=torch.float32,
                attn_implementation="sdpa",
                device_map={"": "cpu"},
                quantization_config=BitsAndBytesConfig(
                    load_in_4bit=True,
                    bnb_4bit_quant_type="nf4",
                    bnb_4bit_use_double_quant=True,
                    bnb_4bit_compute_dtype=torch.float32,
                ),
            )

    def forward(self, tokens, targets):
        logits = self.model(input_ids=tokens, use_cache=False).logits
        return F.cross_entropy(logits.view(-1, logits.shape[-1]), targets.view(-1))


class TransformersModel(nn.Module):
    """Any language model that transformers supports, from its config.json."""

    def __init__(self, folder):
        super().__init__()
        from transformers import AutoConfig, AutoModelForCausalLM

        config = AutoConfig.from_pretrained(folder)
        config.use_cache = False
        self.model = AutoModelForCausalLM.from_config(config, attn_implementation="sdpa", dtype=torch.float32)
        self.vocabulary = config.vocab_size

    def forward(self, tokens, targets):
        logits = self.model(input_ids=tokens, use_cache=False).logits
        return F.cross_entropy(logits.view(-1, logits.shape[-1]), targets.view(-1))


def model_of(shape):
    if OPTIONS.config:
        return TransformersModel(OPTIONS.config)
    sizes = {name: shape[name] for name in ("layers", "heads", "width", "vocabulary")} | {
        "positions": max(shape["positions"], OPTIONS.seq)
    }
    if "kv_heads" in shape:
        return TransformersLlama(**sizes, kv_heads=shape["kv_heads"], intermediate=shape["intermediate"])
    return (TransformersGpt2 if OPTIONS.implementation == "transformers" else Gpt2)(**sizes)


def seconds_of_steps(mode, adamw, steps):
    """Seconds of each timed step: forward, backward, clip, update, and reading the loss, as a training
    loop logs it."""
    torch.manual_seed(1)
    shape = MODELS[OPTIONS.model]
    model = model_of(shape).train()
    vocabulary = model.vocabulary if OPTIONS.config else shape["vocabulary"]
    if OPTIONS.lora:
        from peft import LoraConfig, get_peft_model

        is_gpt2 = not OPTIONS.config and "kv_heads" not in shape
        model.model = get_peft_model(
            model.model,
            LoraConfig(
                r=OPTIONS.lora,
                lora_alpha=2 * OPTIONS.lora,
                fan_in_fan_out=is_gpt2,
                task_type="CAUSAL_LM",
                target_modules=["c_attn", "c_proj", "c_fc"] if is_gpt2 else "all-linear",
            ),
        )
    parameters = [p for p in model.parameters() if p.requires_grad]
    groups = [
        {"params": [p for p in parameters if p.dim() >= 2], "weight_decay": 0.1},
        {"params": [p for p in parameters if p.dim() < 2], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=3e-4, betas=(0.9, 0.95), **{adamw: True})
    forward = torch.compile(model) if mode == "compile" else model
    seconds = []
    for _ in range(OPTIONS.warmup + steps):
        tokens = torch.randint(0, vocabulary, (OPTIONS.batch, OPTIONS.seq + 1))
        start = time.perf_counter()
        loss = forward(tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous())
        loss.backward()
        nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        assert loss.item() == loss.item(), "the loss is not a number"
        seconds.append(time.perf_counter() - start)
    return seconds[OPTIONS.warmup :]


def measure(mode, adamw, steps):
    """A candidate with its figure, or with the reason for its failure."""
    candidate = {"mode": mode, "adamw": adamw}
    try:
        seconds = statistics.median(seconds_of_steps(mode, adamw, steps))
        return candidate | {"tokens_per_second": round(OPTIONS.batch * OPTIONS.seq / seconds, 1)}
    except (
        Exception
    ) as error:  # torch.compile needs a working C++ compiler; a missing one is a result, not a crash
        return candidate | {
            "failed": f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
        }


def main():
    torch.set_num_threads(OPTIONS.threads)
    if OPTIONS.mode == "best":
        candidates = [measure("eager", adamw, OPTIONS.steps) for adamw in ("fused", "foreach")]
        better = max(candidates, key=lambda candidate: candidate.get("tokens_per_second", 0.0))
        candidates.append(measure("compile", better["adamw"], OPTIONS.steps))
    else:
        candidates = [measure(OPTIONS.mode, OPTIONS.adamw, OPTIONS.steps)]
    best = max(candidates, key=lambda candidate: candidate.get("tokens_per_second", 0.0))
    if "failed" in best:
        sys.exit(f"no candidate ran: {candidates}")
    print(
        json.dumps(
            {
                "peer": "torch",
                "version": torch.__version__,
                "model": OPTIONS.config or OPTIONS.model,
                "batch": OPTIONS.batch,
                "seq": OPTIONS.seq,
                "tokens_per_second": best["tokens_per_second"],
                "threads": OPTIONS.threads,
                "mode": best["mode"],
                "adamw": best["adamw"],
                "implementation": OPTIONS.implementation,
                "steps": OPTIONS.steps,
                "candidates": candidates,
            }
        )
    )


if __name__ == "__main__":
    main()
