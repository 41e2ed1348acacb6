"""gpu_probe on the emulated device, at small sizes: every part works, and a part that fails does not end the
others."""

import os
import re
import subprocess
import tempfile
import unittest

PROBE = os.environ["PROBE"]
PARTS = (
    "the card's own copy",
    "the card's own bf16 product",
    "forward 144 x 80 -> 272, tensor",
    "dX 144 x 80 -> 272, wgmma",
    "dW 144 x 80 -> 272, wgmma",
    "dW 96 x 24 -> 24, transposed, 6 stages of 64x128",
    "dW 96 x 24 -> 96, transposed, one chain",
    "tiles of qkv, forward 96 x 24 -> 72, transposed, wgmma",
    "tiles of head, dW 48 x 24 -> 264, tensor",
    "attention 2 x 80",
    "attention 2 x 72",
    "dW of 4096 tokens, tensor",
    "dW of 4096 tokens, wgmma",
    "dW of 4096 tokens, cublaslt fast",
    "head, dW",
    "cross-entropy 6 x 50257, fast",
    "cross-entropy 6 x 50304",
    "AdamW, 32-bit",
    "AdamW, 8-bit",
    "LayerNorm",
    "RMSNorm",
    "steps of GPT-2, weight gradients on a branch",
)


FIGURES = (
    "copy GB/s",
    "product TFLOP/s",
    "gain of the branch",
    "bits of the branch",
    "gain of 6 stages of 64x128, attended",
    "gain of 6 stages of 128x128, up",
    "gain of one chain, up",
    "tile regret tensor",
    "tile regret wgmma",
)


def run(*words):
    done = subprocess.run(
        [PROBE, "--small", *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    return done.returncode, done.stdout


class Probe(unittest.TestCase):
    def test_every_part_passes(self):
        with tempfile.TemporaryDirectory() as folder:
            path, figures = os.path.join(folder, "lines.txt"), os.path.join(folder, "figures.tsv")
            code, text = run(
                *("--seconds", "250", "--part-seconds", "200", "--out", path, "--figures", figures)
            )
            self.assertEqual(code, 0, text)
            with open(path, encoding="utf-8") as file:
                self.assertEqual(file.read(), text)
            with open(figures, encoding="utf-8") as file:
                found = dict(line.rstrip("\n").split("\t") for line in file)
        for name in FIGURES:
            self.assertGreaterEqual(float(found[name]), 0, name)
        self.assertEqual(
            {found["values " + kind] for kind in ("tensor", "wgmma", "cublaslt", "cuDNN")}, {"1"}
        )
        progress, table = text.split("All results", 1)
        for part in PARTS:
            self.assertIn(" " + part, progress)
            self.assertIn(" " + part, table)
        tiles = (
            "wgmma 128x256",
            "wgmma 128x192",
            "wgmma 128x128",
            "wgmma 64x128",
            "mma 128x128",
            "mma 96x192",
            "mma 64x64",
        )
        for product, without in (
            ("forward 144", ("wgmma 128x192", "mma 96x192")),
            ("dX 144", ("wgmma 128x192", "mma 96x192")),
            ("dW 144", ("wgmma 128x256",)),
        ):
            for kind, prefix in (("tensor", "mma"), ("wgmma", "wgmma")):
                row = f" {product} x 80 -> 272, {kind} "
                line = next(line for line in progress.splitlines() if row in line)
                expected = [tile for tile in tiles if tile.startswith(prefix) and tile not in without]
                self.assertEqual(line.split(row)[1].strip(), ", ".join(expected), line)
        self.assertRegex(
            table, r"tiles of qkv, .*wgmma +chosen wgmma \d+x\d+ takes [0-9.]+ % longer than wgmma"
        )
        self.assertRegex(table, r"the head's three products +\d+ +expected +354, pessimistic +440")
        self.assertRegex(table, r"(?m)^0 of \d+ results are wrong")

    def test_a_broken_part_breaks_no_other(self):
        code, text = run("--crash", "losses", "losses", "norms")
        self.assertEqual(code, 1, text)
        self.assertRegex(text, r"FAIL +losses +ended by signal 6")
        self.assertRegex(text, r"ok +RMSNorm")
        code, text = run("--part-seconds", "1.5", "--hang", "losses", "losses", "updates")
        self.assertEqual(code, 1, text)
        self.assertRegex(text, r"FAIL +losses +ran past its time")
        # The second form is for slow machines.
        self.assertRegex(text, r"ok +AdamW, 8-bit|FAIL +updates +ran past")

    def test_a_fault_of_wgmma_costs_no_other_kernel_its_figures(self):
        """The part is repeated without wgmma, and later parts do not use it. Right rows appear once."""
        for words, why in (
            (("--crash", "wgmma"), "ended by signal 6"),
            (("--hang", "wgmma", "--part-seconds", "4"), "ran past its time"),
        ):
            with tempfile.TemporaryDirectory() as folder, self.subTest(why=why):
                figures = os.path.join(folder, "figures.tsv")
                code, text = run(*words, "--figures", figures, "copy", "chain", "products")
                self.assertEqual(code, 1, text)
                table = text.split("All results", 1)[1]
                self.assertRegex(table, rf"FAIL +chain, wgmma +{why}")
                self.assertEqual(len(re.findall(r"(?m)^ok +dW of 4096 tokens, tensor", table)), 1)
                self.assertRegex(table, r"ok +head, dW 48 x 24 -> 264, tensor")
                self.assertNotRegex(table, r"(?m)^ok .*wgmma")
                self.assertRegex(table, r"(?m)^1 of \d+ results are wrong")
                with open(figures, encoding="utf-8") as file:
                    found = file.read()
                self.assertIn("values wgmma\t0\n", found)
                self.assertIn("values tensor\t1\n", found)

    def test_a_part_that_the_end_of_all_time_interrupts_has_not_failed(self):
        code, text = run("--hang", "losses", "--seconds", "2.5", "--part-seconds", "60", "losses", "norms")
        self.assertEqual(code, 0, text)
        self.assertRegex(text, r"(?m)^cut +losses +cut off: no time")
        self.assertRegex(text, r"norms +left out: no time")

    def test_parts_without_time_are_named(self):
        code, text = run("--seconds", "1", "norms")
        self.assertEqual(code, 0, text)
        self.assertRegex(text, r"norms +left out: no time")

    def test_invalid_arguments(self):
        for words in (("--fast",), ("norm",), ("--seconds",)):
            code, text = run(*words)
            self.assertEqual(code, 2, text)
            self.assertIn("usage", text)

    def test_a_profiler_sees_each_kernel_once(self):
        code, text = run("--here", "once")
        self.assertEqual(code, 0, text)
        self.assertIn("once", text)


if __name__ == "__main__":
    unittest.main(verbosity=2)
