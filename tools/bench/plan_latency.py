"""Measures the CPU seconds of `stowage plan` on random requests, and compares two builds of the command.

usage: plan_latency.py STOWAGE [OLD] [--count N] [--seed N] [--host] [--limit SECONDS] [--only INDEX,...]
  STOWAGE: the command, built in release; OLD: another build, whose plans are compared with those of STOWAGE
  --host: every request offers host memory; otherwise one of four does
  --limit: wall-clock seconds after which a plan is stopped (300)

The requests follow from the seed alone. A plan is better if it fits where the other does not, or if its step
is predicted to be faster; among equal steps, if its bound is closer. `less` marks a plan that is worse."""

import argparse
import json
import random
import resource
import subprocess

MODELS = """
gpt2 gpt2-medium gpt2-large gpt2-xl smollm-135m smollm-360m qwen2.5-0.5b qwen2.5-1.5b qwen2.5-3b
qwen2.5-7b qwen3-0.6b qwen3-1.7b qwen3-4b qwen3-8b llama-1b llama-3b llama-8b smollm3-3b phi-3-mini
bloom-560m bloom-1b7 gemma3-270m gemma3-1b gemma3-4b gemma3-12b bert-base bert-large modernbert-base
roberta-base
""".split()
POSITIONS = {"bert": 512, "roberta": 512, "gpt2": 1024, "bloom": 2048, "smollm": 2048}
DEVICES = {
    "rtx3060": 12,
    "rtx4060": 8,
    "rtx4090": 24,
    "rtx5060ti": 16,
    "rtx5090": 32,
    "a100-40gb": 40,
    "a100-80gb": 80,
    "l4": 24,
    "l40s": 48,
    "h100": 80,
    "orin": 32,
}


def request(draw, host):
    model, device = draw.choice(MODELS), draw.choice(list(DEVICES))
    longest = POSITIONS.get(model.split("-")[0], 4096)
    length = draw.choice([n for n in [128, 256, 512, 1024, 2048, 4096] if n <= longest])
    words = ["--model", model, "--device", device, "--seq", length]
    words += ["--batch", draw.choice([1, 8, 16, 32, 48, 64, 128, 256, 512, 768, 1000])]
    words += ["--vram", f"{int(DEVICES[device] * 1024 * draw.uniform(0.2, 1))}MiB"]
    if "bert" in model:
        words += ["--task", "label", "--labels", 4]
    if draw.random() < 0.4:
        words += ["--lora", draw.choice([8, 16, 64])]
        if draw.random() < 0.5:
            words += ["--quantize", draw.choice(["nf4", "int8"])]
    elif draw.random() < 0.4:
        words += ["--states", draw.choice([8, 32])]
    if draw.random() < 0.25 or host:
        words += ["--host-memory", f"{draw.choice([2, 4, 8, 16, 32, 64])}GiB"]
    if draw.random() < 0.2:
        words += ["--kernels", draw.choice(["portable", "tensor", "cublaslt"])]
    if draw.random() < 0.1:
        words += ["--optimizer", draw.choice(["sgd", "lion"])]
    if draw.random() < 0.1:
        words += ["--master", "split8"]
    return [str(word) for word in words]


def plan(stowage, words, limit):
    """The plan, or what the command says instead; and its CPU seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    try:
        done = subprocess.run(
            [stowage, "plan", *words, "--json"], capture_output=True, text=True, timeout=limit
        )
        answer = json.loads(done.stdout) if done.returncode in (0, 3) else done.stderr.strip()
    except subprocess.TimeoutExpired:
        answer = f"more than {limit} s"
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return answer, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def figures(answer):
    """Whether the plan fits, its step, its bound, and its peak."""
    if isinstance(answer, str):
        return None
    step = answer["predicted"]["step_seconds"]
    return answer["fits"], step, answer["search"]["bound_seconds"], answer["bytes"]["peak"]


def compare(new, old):
    a, b = figures(new), figures(old)
    if a is None or b is None:
        return "same" if new == old else "other"
    if a[0] != b[0]:
        return "fits" if a[0] else "less: does not fit"
    if a[1] != b[1]:
        return f"{'faster' if a[1] < b[1] else 'less: slower'} {100 * (a[1] / b[1] - 1):+.4f} %"
    if a[3] != b[3]:
        return f"{'smaller' if a[3] < b[3] else 'less: larger'} {a[3] - b[3]:+d} bytes"
    if a[2] != b[2]:
        return "closer bound" if a[2] > b[2] else "less: bound"
    if not a[0] and new["minimum_vram_bytes"] != old["minimum_vram_bytes"]:
        return f"minimum {new['minimum_vram_bytes'] - old['minimum_vram_bytes']:+d}"
    if new["fingerprint"] != old["fingerprint"]:
        return "equal figures, another plan"
    return "same" if new == old else "same plan, other advice"


def quantiles(seconds):
    ordered = sorted(seconds)

    def at(share):
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))]

    return (
        f"median {at(0.5):.2f} s, 95 % {at(0.95):.2f} s, most {ordered[-1]:.2f} s, sum {sum(ordered):.1f} s"
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("stowage")
    parser.add_argument("old", nargs="?")
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--host", action="store_true")
    parser.add_argument("--limit", type=float, default=300)
    parser.add_argument("--only", type=lambda text: [int(part) for part in text.split(",")])
    options = parser.parse_args()
    draw = random.Random(options.seed)
    times, old_times = [], []
    for index in range(options.count):
        words = request(draw, options.host)
        if options.only and index not in options.only:
            continue
        answer, seconds = plan(options.stowage, words, options.limit)
        times.append(seconds)
        line = f"{index:3} {seconds:6.2f} s  "
        found = figures(answer)
        if found:
            line += f"{'fits   ' if found[0] else 'too big'} {100 * answer['search']['gap']:7.3f} % "
            line += f"{'proven' if answer['search']['proven'] else '      '}  "
        else:
            line += f"{answer}  "
        if options.old:
            old, old_seconds = plan(options.old, words, options.limit)
            old_times.append(old_seconds)
            line += f"old {old_seconds:6.2f} s"
            line += f" {100 * old['search']['gap']:7.3f} %  " if figures(old) else "  "
            line += compare(answer, old) + "  "
        print(line + " ".join(words), flush=True)
    print("new" if options.old else "", quantiles(times))
    if options.old:
        print("old", quantiles(old_times))


if __name__ == "__main__":
    main()
