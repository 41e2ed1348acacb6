#!/usr/bin/env python3
"""Measures the advice for requests that do not fit: how many get a line that fits without host memory,
whether each line gives what it says, and the CPU time of each answer.

    tools/bench/relaxations.py build/tools/stowage/stowage
"""

import json
import resource
import shlex
import subprocess
import sys

# Presets, cards and ways to train that are not those of tests/tools/plans/relaxations_test.py.
REQUESTS = """
--model qwen2.5-3b --batch 64 --seq 4096 --device l4
--model qwen2.5-3b --batch 16 --seq 1024 --device rtx3060
--model qwen2.5-7b --batch 32 --seq 2048 --device rtx4090
--model qwen3-1.7b --batch 64 --seq 2048 --device rtx4060
--model qwen3-4b --batch 32 --seq 4096 --device l4 --states 32
--model qwen3-8b --batch 32 --seq 2048 --device rtx3060
--model llama-3b --batch 32 --seq 2048 --device rtx4090
--model llama-3b --batch 128 --seq 8192 --device rtx5060ti
--model smollm3-3b --batch 64 --seq 4096 --device rtx4090
--model phi-3-mini --batch 32 --seq 2048 --device l4
--model gemma3-4b --batch 16 --seq 2048 --device rtx4090
--model gemma3-1b --batch 32 --seq 2048 --device rtx4060
--model bloom-1b7 --batch 32 --seq 1024 --device rtx3060
--model gpt2-xl --batch 64 --seq 1024 --device rtx4060 --optimizer lion
--model bert-1.3b --labels 4 --batch 64 --seq 512 --device rtx3060
--model bert-large --task masked --batch 256 --seq 512 --device rtx4060 --vram 4GiB
--model modernbert-base --labels 2 --batch 64 --seq 8192 --device rtx4060 --vram 2GiB
--model qwen3-0.6b --labels 5 --batch 64 --seq 1024 --device rtx4060 --vram 6GiB
--model llama-8b --batch 64 --seq 8192 --device rtx5060ti --lora 16
--model qwen3-8b --batch 32 --seq 4096 --device rtx3060 --lora 32 --quantize int8
--model gemma3-12b --batch 16 --seq 4096 --device rtx3060 --vram 9GiB --lora 8 --quantize nf4
--model qwen2.5-1.5b --batch 32 --seq 2048 --device rtx4060 --micro-batch 16 --states 32
--model llama-1b --batch 64 --seq 4096 --device rtx3060 --precision fp16
--model gpt2-large --batch 32 --seq 1024 --device rtx3060 --vram 6GiB --recompute none --gradients bf16
""".strip().splitlines()


def cpu_seconds():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def plan(command, words):
    before = cpu_seconds()
    result = subprocess.run([command, "plan", *words, "--json"], capture_output=True, text=True, check=False)
    seconds = cpu_seconds() - before
    return (json.loads(result.stdout) if result.stdout else result.stderr.strip()), seconds


def with_flags(words, flags):
    """The request with other flags: each replaces the one of its name, or is appended."""
    groups = []
    for word in words + shlex.split(flags):
        if word.startswith("--"):
            groups = [group for group in groups if group[0] != word] + [[word]]
        else:
            groups[-1].append(word)
    return [word for group in groups for word in group]


def difference(line, followed):
    """What following a line gives otherwise than it says; empty: nothing."""
    if not isinstance(followed, dict):
        return followed
    if not followed["fits"]:
        return "does not fit"
    if followed["bytes"]["peak"] != line["peak_bytes"] or followed["bytes"]["host"] != line["host_bytes"]:
        return f"peak {followed['bytes']['peak']} and host {followed['bytes']['host']}, {line}"
    rate = followed["predicted"]["tokens_per_second"]
    if abs(rate / line["tokens_per_second"] - 1) > 0.02:
        return f"{rate} tokens/s instead of {line['tokens_per_second']}"
    return ""


def main():
    command = sys.argv[1]
    helped, lines, wrong, times = 0, 0, 0, []
    for request in REQUESTS:
        words = shlex.split(request)
        answer, seconds = plan(command, words)
        if not isinstance(answer, dict) or answer["fits"]:
            sys.exit(f"{request}: expected a plan that does not fit, found {answer}"[:300])
        times.append(seconds)
        fitting = [line for line in answer["relaxations"] if line["fits"]]
        helped += any("host_memory" not in line["change"] for line in fitting)
        print(f"{seconds:6.2f} s  {request}")
        for line in fitting:
            lines += 1
            problem = difference(line, plan(command, with_flags(words, line["flags"]))[0])
            wrong += problem != ""
            print(f"          {line['flags']}: {line['tokens_per_second']:.0f} tokens/s {problem}")
        if not fitting:
            print("          " + answer["shortage"])
    print(
        f"{helped} of {len(REQUESTS)} have a line that fits without host memory; {lines} lines, {wrong} wrong"
        f"; CPU seconds: median {sorted(times)[len(times) // 2]:.2f}, most {max(times):.2f}, "
        f"{sum(t < 1 for t in times)} under 1"
    )
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
