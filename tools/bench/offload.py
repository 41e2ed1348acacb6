#!/usr/bin/env python3
"""Plans for cards of 16 and 24 GB with a batch of 488 x 1024 tokens in bf16: without host memory and with
it. All figures come from the planner's model of the card; nothing is measured.

    python3 tools/bench/offload.py STOWAGE [HOST_GIB]"""

import json
import subprocess
import sys
import time

CASES = [
    ("rtx4090", 24, "qwen2.5-0.5b"),
    ("rtx4090", 24, "qwen2.5-1.5b"),
    ("rtx4090", 24, "qwen2.5-3b"),
    ("rtx4090", 24, "qwen2.5-7b"),
    ("rtx5060ti", 16, "qwen2.5-0.5b"),
    ("rtx5060ti", 16, "qwen2.5-1.5b"),
]


def plan(stowage, device, gib, model, *more):
    words = [
        stowage,
        "plan",
        "--json",
        "--device",
        device,
        "--vram",
        f"{gib}GiB",
        "--model",
        model,
        "--batch",
        "488",
        "--seq",
        "1024",
        "--states",
        "32",
        *more,
    ]
    begin = time.perf_counter()
    result = subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if result.returncode not in (0, 3):
        sys.exit(result.stderr)
    return json.loads(result.stdout), time.perf_counter() - begin


def text_of(plan):
    away = (
        ", ".join(
            f"{e['tensors']} {len(e['blocks']) and e['blocks'][1] + 1}{'+' if e['outside_blocks'] else ''}"
            for e in plan["offload"]
        )
        or "-"
    )
    again = plan["predicted"]["recompute_fraction"] * 100
    return (
        f"micro-batch {plan['micro_batch']:>2} x {plan['accumulation_steps']:<3} recompute {again:4.1f} %  "
        f"{plan['predicted']['tokens_per_second']:7.0f} tokens/s  gap {plan['search']['gap'] * 100:4.1f} %  "
        f"host {plan['bytes']['host'] / 2**30:6.1f} GiB  {away}"
    )


def main():
    stowage, host = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "200"
    for device, gib, model in CASES:
        alone, _ = plan(stowage, device, gib, model)
        helped, seconds = plan(stowage, device, gib, model, "--host-memory", f"{host}GiB")
        print(f"{model} on {device}, {gib} GiB")
        print(
            "  alone      ",
            text_of(alone) if alone["fits"] else f"needs {alone['minimum_vram_bytes'] / 2**30:.1f} GiB",
        )
        print(
            "  with host  ",
            text_of(helped) if helped["fits"] else f"needs {helped['minimum_vram_bytes'] / 2**30:.1f} GiB",
            f" ({seconds:.1f} s)",
        )


main()
