"""Figures of plans in the guide's tables: those of Stowage are computed here, those of others are given."""

import json
import math
import pathlib
import unittest

from support import DOES_NOT_FIT, DONE, CommandTest

DOCS = pathlib.Path(__file__).parents[3] / "docs"
GIB = 2**30
BERT = "--model bert-1.3b --labels 2 --batch 32 --seq 512 --precision fp16"
DEBERTA = (
    "--model deberta-v3-base --labels 2 --batch 64 --seq 512 --precision bf16 --states 8 "
    "--freeze embeddings,blocks.0-1"
)
BLOOM = "--model bloom-560m --labels 2 --batch 16 --seq 1024 --precision fp16"


class GuideTest(CommandTest):
    def of(self, run, device, flags="", result=DONE):
        return self.plan(*run.split(), "--device", device, *flags.split(), expect=result)

    def slower(self, plan, fastest):
        return 100 * (plan["predicted"]["step_seconds"] / fastest["predicted"]["step_seconds"] - 1)

    def split(self, plan):
        return f"{plan['micro_batch']} × {plan['accumulation_steps']}"

    def peak(self, plan):
        return plan["bytes"]["peak"] / GIB

    def test_long_samples(self):
        words = "--model qwen2.5-0.5b --device rtx4060 --states 8 --batch 8".split()
        longest = json.loads(self.run_command("plan", *words, "--max", "seq", "--json").stdout)
        self.in_guide("plan.md", f"samples of up to {longest['longest_sequence']:,} tokens;", is_row=False)

    def least(self, words):
        return self.plan(*words.split())["minimum_vram_bytes"] / GIB

    def rows(self, first, cells):
        """The rows of memory.md that begin with this cell and have so many."""
        lines = (DOCS / "memory.md").read_text(encoding="utf-8").splitlines()
        rows = [line.strip("|").split("|") for line in lines if line.startswith(f"| {first} |")]
        return [[cell.strip() for cell in row] for row in rows if len(row) == cells]

    def test_adapters(self):
        for model in ("qwen2.5-3b", "qwen2.5-7b", "llama-8b", "qwen3-8b"):
            words = (
                f"--model {model} --device rtx4060 --lora 16 --batch 16 --seq 1024 --vram 40GiB --quantize"
            )
            least = [self.least(f"{words} {code}") for code in ("none", "int8", "nf4")]
            least.append(self.least(f"{words} nf4 --quantize-embeddings int8"))
            row = [f"`{model}`", *(f"{gib:.2f}" for gib in least)]
            self.assertEqual(self.rows(row[0], 5), [row])

    def test_token_tables(self):
        rows = [
            *((model, 16, 1024, "") for model in ("gemma3-270m", "qwen3-0.6b", "gemma3-1b")),
            *((model, 32, 128, "--labels 2") for model in ("bert-base", "deberta-v3-base")),
            ("llama-1b", 16, 1024, "--labels 2"),
            *((model, 16, 1024, "") for model in ("phi-3-mini", "qwen2.5-7b", "llama-8b", "qwen3-8b")),
        ]
        for model, batch, sequence, flags in rows:
            plan = self.least(f"--model {model} --device h200 --batch {batch} --seq {sequence} {flags}")
            first = f"`{model}`{', classifier' if flags else ''}"
            self.assertEqual([row[-1] for row in self.rows(first, 4)], [f"{plan:.2f}"], model)

    def test_bert(self):
        fastest = self.of(BERT, "a100-80gb")
        self.assertTrue(fastest["search"]["proven"])
        self.assertEqual(fastest["search"]["unlimited_seconds"], fastest["predicted"]["step_seconds"])
        self.assertEqual(fastest["recompute"], [])
        hand = self.of(BERT, "a100-80gb", "--micro-batch 8")
        small = self.of(BERT, "a100-80gb", "--vram 24GiB")
        least = [
            self.of(BERT, "a100-80gb", f"--vram 1GiB --states {bits}", DOES_NOT_FIT)["minimum_vram_bytes"]
            for bits in (32, 8)
        ]
        card = self.of(BERT, "a100-80gb", "--vram 8GiB", DOES_NOT_FIT)
        host = min(
            r["least_host_bytes"] for r in card["relaxations"] if r["flags"].startswith("--host-memory")
        )
        self.in_guide(
            "plan.md",
            f"| `{BERT}`, an A100 of 80 GB; reported: 62 GB at 8 × 4 | "
            f"{math.ceil(10 * self.peak(fastest)) / 10:.1f} GiB or more | the fastest plan: "
            f"{self.split(fastest)}, nothing recomputed. A plan with {self.split(hand)} takes "
            f"{self.peak(hand):.1f} GiB and is {self.slower(hand, fastest):.1f} % slower |",
            f"| | 24 GiB | {self.split(small)}, {self.slower(small, fastest):.1f} % slower than the "
            "fastest |",
            f"| | the smallest | {least[0] / GIB:.1f} GiB; with 8-bit states {least[1] / GIB:.1f} GiB. With "
            f"8 GiB on the card it needs {host / GIB:.1f} GiB of host memory in addition |",
        )

    def test_bloom(self):
        fastest = self.of(BLOOM, "l4", "--vram 15GB")
        self.assertTrue(fastest["search"]["proven"])
        one = self.of(BLOOM, "l4", "--vram 15GB --micro-batch 1")
        all_at_once = self.of(BLOOM, "l4", "--vram 15GB --micro-batch 16")
        self.assertGreater(all_at_once["predicted"]["recompute_fraction"], 0)
        tight = self.of(BLOOM, "l4", "--vram 8GB")
        self.assertEqual(tight["numerics"]["state_bits"], 8)
        least = self.of(BLOOM, "l4", "--vram 6GB", DOES_NOT_FIT)["minimum_vram_bytes"]
        host, least_host = (self.of(BLOOM, "l4", f"--vram {size}GB --host-memory 8GB") for size in (8, 6))
        self.in_guide(
            "plan.md",
            f"| `{BLOOM}`, an L4 | 15 GB | the fastest plan: {self.split(fastest)}, "
            f"{self.peak(fastest):.1f} GiB. {self.split(one)} takes {self.peak(one):.1f} GiB and is "
            f"{self.slower(one, fastest):.1f} % slower. {self.split(all_at_once)} recomputes and is "
            f"{self.slower(all_at_once, fastest):.1f} % slower |",
            f"| | 8 GB | {self.split(tight)} with 8-bit states, {self.slower(tight, fastest):.1f} % slower. "
            f"With `--host-memory 8GB`: {self.split(host)} with {host['numerics']['state_bits']}-bit states, "
            f"{self.slower(host, fastest):.1f} % slower |",
            f"| | the smallest | {least / GIB:.2f} GiB, {least / 1e9:.2f} GB. With 6 GB on the card "
            f"and `--host-memory 8GB`: {self.split(least_host)} "
            f"with {least_host['numerics']['state_bits']}-bit states, "
            f"{self.slower(least_host, fastest):.1f} % slower |",
        )

    def test_deberta(self):
        for card, budget, of_pytorch in (("rtx3060", 6, 6), ("rtx4060", 8, 10), ("rtx5060ti", 16, 22)):
            flags = f"--vram {budget}GB"
            plan = self.of(DEBERTA, card, flags)
            self.assertTrue(plan["search"]["proven"])
            self.assertEqual(plan["recompute"], [])
            steps, micro, batch = plan["accumulation_steps"], plan["micro_batch"], 64
            last = f" and {batch - micro}" if steps == 2 else ""
            self.in_guide(
                "classifiers.md",
                f"| `--device {card} {flags}` | {micro}{last} samples "
                f"| nothing | {self.peak(plan):.2f} GiB | {plan['predicted']['step_seconds']:.2f} s "
                f"| {of_pytorch} samples |",
            )
        least = self.of(DEBERTA, "rtx3060", "--vram 1GiB", DOES_NOT_FIT)["minimum_vram_bytes"]
        self.in_guide("classifiers.md", f"for this batch is {least / GIB:.2f} GiB.", is_row=False)

    def in_guide(self, page, *rows, is_row=True):
        text = (DOCS / page).read_text(encoding="utf-8")
        lines = text.splitlines() if is_row else text
        for row in rows:
            self.assertIn(row, lines)


if __name__ == "__main__":
    unittest.main()
