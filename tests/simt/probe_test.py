"""gpu_probe on the emulated device, at small sizes: every part works, and a part that fails does not end the
others."""

import os
import subprocess
import tempfile
import unittest

PROBE = os.environ["PROBE"]
PARTS = (
    "the card's own copy",
    "the card's own bf16 product",
    "forward 144",
    "dX 144",
    "dW 144",
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


def run(*words):
    done = subprocess.run(
        [PROBE, "--small", *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    return done.returncode, done.stdout


class Probe(unittest.TestCase):
    def test_every_part_passes(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "lines.txt")
            code, text = run("--seconds", "250", "--part-seconds", "200", "--out", path)
            self.assertEqual(code, 0, text)
            with open(path, encoding="utf-8") as file:
                self.assertEqual(file.read(), text)
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
            line = next(line for line in progress.splitlines() if product in line)
            self.assertEqual(
                [tile for tile in tiles if f" {tile} " in line],
                [tile for tile in tiles if tile not in without],
                line,
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
