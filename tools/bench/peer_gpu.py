"""The PyTorch side of the comparison on a GPU: what a PyTorch user would run for the model of a config.json.

usage: peer_gpu.py train CONFIG SEQ BATCH [--steps N] [--seconds N] [--eager] [--device cpu]
                                              a line of JSON for each configuration: tokens/s
       peer_gpu.py least CONFIG SEQ [--device cpu]
                                              a line of JSON: the least memory in which the model trains
       peer_gpu.py peaks [--device cpu]       a line of JSON: TFLOP/s of a bf16 product and of fused
                                              attention, GB/s of a copy

fp32 parameters under bf16 autocast, fused attention, fused AdamW, a clip of 1, torch.compile; BATCH samples
of SEQ tokens per step. `train` begins with a short run without torch.compile, whose figure is there within 15
s of a warm start. Then come the usual settings: the default mode of torch.compile, micro-batches of 64 or as
many as fit, the vocabulary padded to a multiple of 64, then the vocabulary without padding. If --seconds
allows, it continues with settings that may be faster: micro-batches of 32 and 128, cuDNN's attention, the
mode max-autotune-no-cudagraphs. If torch.compile fails, it measures more without it. The kind of card stands
in every line. A configuration starts only if the time left is at least that of the slowest configuration so
far. `least`: one sample per micro-batch, two per step, every block recomputed (torch.utils.checkpoint), AdamW
with 8-bit states, and the smallest limit of PyTorch's allocator at which two steps succeed; the card's
context is not included. `--device cpu` is for testing the script without a GPU.
"""

import argparse
import contextlib
import gc
import json
import math
import os
import statistics
import sys
import time

if "least" in sys.argv[1:2]:  # must be set before PyTorch is imported; avoids fragmentation
    os.environ.setdefault("PYTORCH_ALLOC_CONF", "expandable_segments:True")
    os.environ.setdefault("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True")

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.checkpoint import checkpoint


def sync(device):
    if device == "cuda":
        torch.cuda.synchronize()


def seconds_of(call, device, rounds=20):
    for _ in range(3):
        call()
    sync(device)
    begin = time.perf_counter()
    for _ in range(rounds):
        call()
    sync(device)
    return (time.perf_counter() - begin) / rounds


class Rotary(nn.Module):
    def __init__(self, positions, depth, base):
        super().__init__()
        angles = torch.outer(
            torch.arange(positions).float(), base ** (-torch.arange(0, depth, 2).float() / depth)
        )
        self.register_buffer("cosine", torch.cat((angles, angles), 1).cos(), persistent=False)
        self.register_buffer("sine", torch.cat((angles, angles), 1).sin(), persistent=False)

    def forward(self, x):
        half = x.shape[-1] // 2
        rotated = torch.cat((-x[..., half:], x[..., :half]), -1)
        t = x.shape[-2]
        return (x * self.cosine[:t] + rotated * self.sine[:t]).to(x.dtype)


class Block(nn.Module):
    """GPT-2 (`rotary` is None) or Llama."""

    def __init__(self, width, inner, heads, kv_heads, epsilon, rotary, qkv_bias):
        super().__init__()
        self.heads, self.kv_heads, self.depth, self.rotary = heads, kv_heads, width // heads, rotary
        norm = (
            (lambda: nn.LayerNorm(width, epsilon)) if rotary is None else (lambda: nn.RMSNorm(width, epsilon))
        )
        self.norm1, self.norm2 = norm(), norm()
        gpt2 = rotary is None
        self.qkv = nn.Linear(width, width + 2 * kv_heads * self.depth, bias=gpt2 or qkv_bias)
        self.attended = nn.Linear(width, width, bias=gpt2)
        self.up = nn.Linear(width, inner if gpt2 else 2 * inner, bias=gpt2)
        self.down = nn.Linear(inner, width, bias=gpt2)

    def forward(self, x):
        batch, seq, width = x.shape
        kv = self.kv_heads * self.depth
        q, k, v = self.qkv(self.norm1(x)).split((width, kv, kv), dim=2)
        q, k, v = (part.view(batch, seq, -1, self.depth).transpose(1, 2) for part in (q, k, v))
        if self.rotary is not None:
            q, k = self.rotary(q), self.rotary(k)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=self.heads != self.kv_heads)
        x = x + self.attended(y.transpose(1, 2).reshape(batch, seq, width))
        y = self.up(self.norm2(x))
        if self.rotary is None:
            return x + self.down(F.gelu(y, approximate="tanh"))
        gate, up = y.chunk(2, dim=2)
        return x + self.down(F.silu(gate) * up)


class Model(nn.Module):
    def __init__(self, config, seq, recompute=False):
        super().__init__()
        self.recompute = recompute
        gpt2 = config["model_type"] == "gpt2"
        width, layers = (
            (config["n_embd"], config["n_layer"])
            if gpt2
            else (config["hidden_size"], config["num_hidden_layers"])
        )
        heads = config["n_head"] if gpt2 else config["num_attention_heads"]
        kv_heads = heads if gpt2 else config.get("num_key_value_heads", heads)
        inner = (config.get("n_inner") or 4 * width) if gpt2 else config["intermediate_size"]
        epsilon = config.get("layer_norm_epsilon", 1e-5) if gpt2 else config.get("rms_norm_eps", 1e-5)
        self.tokens = nn.Embedding(config["vocab_size"], width)
        self.positions = nn.Embedding(seq, width) if gpt2 else None
        rotary = None if gpt2 else Rotary(seq, width // heads, float(config.get("rope_theta", 10000.0)))
        self.blocks = nn.ModuleList(
            Block(width, inner, heads, kv_heads, epsilon, rotary, config["model_type"] == "qwen2")
            for _ in range(layers)
        )
        self.norm = nn.LayerNorm(width, epsilon) if gpt2 else nn.RMSNorm(width, epsilon)
        self.head = nn.Linear(width, config["vocab_size"], bias=False)
        if gpt2 or config.get("tie_word_embeddings"):
            self.head.weight = self.tokens.weight
        for parameter in self.parameters():
            if parameter.dim() == 2:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, tokens, targets):
        x = self.tokens(tokens)
        if self.positions is not None:
            x = x + self.positions.weight[: tokens.shape[1]]
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.recompute else block(x)
        logits = self.head(self.norm(x))
        return F.cross_entropy(logits.view(-1, logits.shape[-1]).float(), targets.view(-1))


class AdamW8(torch.optim.Optimizer):
    """AdamW with 8-bit states: 8 bits per element and a scale for every 256 elements, as in bitsandbytes
    and with as many bytes, and fp32 below 4,096 elements. For machines without bitsandbytes. The codes are
    linear; the second state stores √v. It is slow, and processes a million elements at a time, so that it
    needs no memory in addition to its states."""

    PART, BLOCK, LEAST = 1 << 20, 256, 4096

    def __init__(self, parameters, lr, betas, weight_decay):
        super().__init__(parameters, {"lr": lr, "betas": betas, "weight_decay": weight_decay})

    @staticmethod
    def pack(x, codes, scales, levels):
        padded = F.pad(x, (0, -x.numel() % AdamW8.BLOCK)).view(-1, AdamW8.BLOCK)
        scales.copy_(padded.abs().amax(1))
        codes.copy_((padded / scales.clamp_min(1e-30)[:, None] * levels).round().flatten()[: x.numel()])

    @staticmethod
    def unpack(codes, scales, levels):
        return codes.float() / levels * scales.repeat_interleave(AdamW8.BLOCK)[: codes.numel()]

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                state = self.state[p]
                if not state:
                    n, device = p.numel(), p.device
                    state["step"], state["small"] = 0, n < self.LEAST
                    if state["small"]:
                        state["m"], state["v"] = torch.zeros(n, device=device), torch.zeros(n, device=device)
                    else:
                        blocks = -(-n // self.BLOCK)
                        state["m"], state["v"] = (
                            torch.zeros(n, dtype=torch.int8, device=device),
                            torch.zeros(n, dtype=torch.uint8, device=device),
                        )
                        state["m_scale"], state["v_scale"] = (
                            torch.zeros(blocks, device=device),
                            torch.zeros(blocks, device=device),
                        )
                state["step"] += 1
                for begin in range(0, p.numel(), self.PART):
                    self.update(
                        group,
                        state,
                        p.view(-1)[begin : begin + self.PART],
                        p.grad.view(-1)[begin : begin + self.PART],
                        begin,
                    )

    def update(self, group, state, w, g, begin):
        first, second = group["betas"]
        m, v = (state[name][begin : begin + w.numel()] for name in "mv")
        if state["small"]:
            m.lerp_(g, 1 - first)
            v.lerp_(g * g, 1 - second)
            new_m, root = m, v.sqrt()
        else:
            blocks = slice(begin // self.BLOCK, -(-(begin + w.numel()) // self.BLOCK))
            m_scale, v_scale = state["m_scale"][blocks], state["v_scale"][blocks]
            new_m = self.unpack(m, m_scale, 127).lerp(g, 1 - first)
            root = self.unpack(v, v_scale, 255).square().lerp(g * g, 1 - second).sqrt()
            self.pack(new_m, m, m_scale, 127)
            self.pack(root, v, v_scale, 255)
        w.mul_(1 - group["lr"] * group["weight_decay"])
        w.addcdiv_(
            new_m / (1 - first ** state["step"]),
            root / math.sqrt(1 - second ** state["step"]) + 1e-8,
            value=-group["lr"],
        )


def groups_of(parameters):
    return [
        {"params": [p for p in parameters if p.dim() >= 2], "weight_decay": 0.1},
        {"params": [p for p in parameters if p.dim() < 2], "weight_decay": 0.0},
    ]


def attention_by(backend):
    """Uses PyTorch's own choice, or cuDNN first."""
    others = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]
    return (
        contextlib.nullcontext()
        if backend == "default"
        else sdpa_kernel([SDPBackend.CUDNN_ATTENTION, *others], set_priority=True)
    )


def card_of(device):
    return torch.cuda.get_device_name() if device == "cuda" else device


def steps_of(options, config, micro_batch, mode, short=False):
    """Returns the median seconds of the timed steps, and the tokens of a step. A step includes reading the
    loss, because a training loop logs it. `short`: steps of four micro-batches at most."""
    torch.manual_seed(1)
    device = options.device
    torch.set_float32_matmul_precision("high")
    model = Model(config, options.seq).to(device).train()
    parameters = list(model.parameters())
    optimizer = torch.optim.AdamW(groups_of(parameters), lr=3e-4, betas=(0.9, 0.95), fused=True)
    forward = (
        model
        if mode == "eager"
        else torch.compile(model, dynamic=False)
        if mode == "default"
        else torch.compile(model, dynamic=False, mode=mode)
    )
    tokens = torch.randint(0, config["vocab_size"], (micro_batch, options.seq + 1), device=device)
    inputs, targets = tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()

    def step(count):
        total = torch.zeros((), device=device)
        for _ in range(count):
            with torch.autocast(device, torch.bfloat16):
                loss = forward(inputs, targets) / count
            loss.backward()
            total += loss.detach()
        nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if not math.isfinite(total.item()):
            raise ArithmeticError("the loss is not finite")
        sync(device)

    for _ in range(1 if short else 3):  # compiles, and fills the allocator's pools
        step(2)
    count, seconds = math.ceil(options.batch / micro_batch), []
    if short:
        count = min(count, 4)
    for _ in range(options.steps):
        begin = time.perf_counter()
        step(count)
        seconds.append(time.perf_counter() - begin)
    return statistics.median(seconds), count * micro_batch * options.seq


def train(options):
    begin = time.monotonic()
    with open(options.config, encoding="utf-8") as file:
        config = json.load(file)
    longest, best = 0, None
    padded, own = math.ceil(config["vocab_size"] / 64) * 64, config["vocab_size"]

    def attempt(micro_batch, vocabulary, mode, attention="default", short=False):
        """Returns whether it fits, and prints the result. Also false if there is no time."""
        nonlocal longest, best
        began = time.monotonic()
        if best and is_over():
            return False
        try:
            with attention_by(attention):
                seconds, tokens = steps_of(
                    options, {**config, "vocab_size": vocabulary}, micro_batch, mode, short
                )
            found = {
                "peer": "torch",
                "card": card_of(options.device),
                "version": torch.__version__,
                "mode": ("eager, short" if short else mode)
                if mode == "eager"
                else "compile"
                if mode == "default"
                else "compile " + mode,
                "micro_batch": micro_batch,
                "vocabulary": vocabulary,
                "attention": attention,
                "tokens_per_second": round(tokens / seconds, 1),
                "seconds": round(time.monotonic() - began, 1),
            }
            if options.device == "cuda":
                found["memory_bytes"] = torch.cuda.max_memory_allocated()
            if best is None or found["tokens_per_second"] > best["tokens_per_second"]:
                best = found
            print(json.dumps(found), flush=True)
            return True
        except torch.OutOfMemoryError:
            return False
        finally:
            longest = max(longest, time.monotonic() - began)
            torch._dynamo.reset()
            gc.collect()
            if options.device == "cuda":
                torch.cuda.empty_cache()
                torch.cuda.reset_peak_memory_stats()

    def is_over():
        return bool(options.seconds) and time.monotonic() - begin + longest > options.seconds

    def tried(*configuration):
        """Reports errors other than out-of-memory and continues."""
        try:
            return attempt(*configuration)
        except Exception as error:  # any error of a compiler or a missing kernel
            print(
                f"peer_gpu.py: {configuration}: {type(error).__name__}: {str(error)[-500:]}",
                file=sys.stderr,
                flush=True,
            )
            return False

    mode, micro_batch, is_found = "eager" if options.eager else "default", min(options.batch, 64), False
    first = min(options.batch, 16)
    while first >= 1 and not tried(first, padded, "eager", "default", True):
        first //= 2
    while micro_batch >= 1 and not is_found:
        is_found = tried(micro_batch, padded, mode)
        if is_found or is_over():
            break
        # the memory suffices, so the compiler failed
        if mode != "eager" and tried(micro_batch, padded, "eager"):
            mode, is_found = "eager", True
            break
        micro_batch //= 2
    if best is None:
        raise SystemExit("peer_gpu.py: nothing could be measured")
    if not is_found:
        return
    if own != padded:
        tried(micro_batch, own, mode)
    for other in (micro_batch * 2, micro_batch // 2):
        if 1 <= other <= options.batch and other != micro_batch:
            tried(other, best["vocabulary"], mode)
    if options.device == "cuda":
        tried(best["micro_batch"], best["vocabulary"], mode, "cudnn")
        if mode != "eager":
            tried(best["micro_batch"], best["vocabulary"], "max-autotune-no-cudagraphs", best["attention"])


def small_optimizer(parameters):
    """Returns the 8-bit optimizer and its name."""
    settings = {"lr": 3e-4, "betas": (0.9, 0.95), "weight_decay": 0.1}
    try:
        from bitsandbytes.optim import AdamW8bit

        return AdamW8bit(groups_of(parameters), **settings), "bitsandbytes"
    except ImportError:
        return AdamW8(groups_of(parameters), **settings), "own 8-bit AdamW, bitsandbytes is not here"


def train_small(config, seq, device):
    """Two steps in as little memory as PyTorch's usual means allow. Returns the optimizer's name."""
    torch.manual_seed(1)
    with torch.device(device):
        model = Model(config, seq, recompute=True).train()
    parameters = list(model.parameters())
    optimizer, name = small_optimizer(parameters)
    for _ in range(2):
        for _ in range(2):
            tokens = torch.randint(0, config["vocab_size"], (1, seq + 1), device=device)
            with torch.autocast(device, torch.bfloat16):
                loss = model(tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()) / 2
            loss.backward()
        nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if not math.isfinite(loss.item()):
            raise ArithmeticError("the loss is not finite")
    return name


def least(options):
    with open(options.config, encoding="utf-8") as file:
        config = json.load(file)
    if options.device == "cpu":
        return print(
            json.dumps(
                {"card": "cpu", "least_bytes": 0, "optimizer": train_small(config, options.seq, "cpu")}
            )
        )
    total = torch.cuda.get_device_properties(0).total_memory

    def fits(limit):
        gc.collect()
        torch.cuda.empty_cache()
        torch.cuda.set_per_process_memory_fraction(min(1.0, limit / total))
        try:
            return train_small(config, options.seq, "cuda")
        except torch.OutOfMemoryError:
            return None

    name = fits(total)
    if name is None:
        raise SystemExit("peer_gpu.py: it does not fit the card")
    low, high = 0, torch.cuda.max_memory_reserved()  # `low` is too little, `high` suffices
    while high - low > max(high // 100, 1 << 21):
        middle = (low + high) // 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    print(json.dumps({"card": card_of("cuda"), "least_bytes": high, "optimizer": name}))


def peaks(options):
    device, small = options.device, options.device == "cpu"
    n = 512 if small else 8192
    a, b = (torch.randn(n, n, device=device, dtype=torch.bfloat16) for _ in range(2))
    found = {"card": card_of(device)}
    found |= {"product_tflops": round(2 * n**3 / seconds_of(lambda: a @ b, device) * 1e-12, 3)}
    size = 1 << (20 if small else 31)
    source, target = (
        torch.empty(size, dtype=torch.uint8, device=device),
        torch.empty(size, dtype=torch.uint8, device=device),
    )
    print(json.dumps(found), flush=True)  # printed after each stage, so that a later timeout loses nothing
    found["copy_gbytes_per_second"] = round(
        2 * size / seconds_of(lambda: target.copy_(source), device) * 1e-9, 1
    )
    print(json.dumps(found), flush=True)
    del a, b, source, target
    for seq in (256,) if small else (1024, 4096, 16384):
        heads, depth, samples = 16, 64, max(1, 16384 // seq)
        q, k, v = (
            torch.randn(samples, heads, seq, depth, device=device, dtype=torch.bfloat16, requires_grad=True)
            for _ in range(3)
        )
        gradient = torch.randn_like(q)
        flops = 2 * samples * heads * seq * seq * depth  # causal: half of 4·T²·D
        best = [0, 0]
        for backend in ("default",) if small else ("default", "cudnn"):  # the faster one of each pass
            try:
                with attention_by(backend):
                    forward = seconds_of(
                        lambda: F.scaled_dot_product_attention(q, k, v, is_causal=True), device
                    )
                    out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
                    backward = seconds_of(
                        lambda: torch.autograd.grad(out, (q, k, v), gradient, retain_graph=True), device
                    )
            except (RuntimeError, TypeError) as error:  # PyTorch before 2.6 has no priorities
                print(f"peer_gpu.py: {backend}: {error}", file=sys.stderr)
                continue
            best = [max(best[0], flops / forward * 1e-12), max(best[1], 2.5 * flops / backward * 1e-12)]
        if best[0] > 0:
            found[f"attention_{seq}_tflops"] = [round(speed, 3) for speed in best]
        print(json.dumps(found), flush=True)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    training = commands.add_parser("train")
    training.add_argument("config")
    training.add_argument("seq", type=int)
    training.add_argument("batch", type=int)
    training.add_argument("--steps", type=int, default=4)
    training.add_argument(
        "--seconds", type=float, default=0, help="in which all is to be done, 0: however long it takes"
    )
    training.add_argument("--eager", action="store_true")
    smallest = commands.add_parser("least")
    smallest.add_argument("config")
    smallest.add_argument("seq", type=int)
    for command in (training, smallest, commands.add_parser("peaks")):
        command.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    options = parser.parse_args()
    {"train": train, "least": least, "peaks": peaks}[options.command](options)


if __name__ == "__main__":
    main()
