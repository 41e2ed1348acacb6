"""The thread sanitizer over the emulated machine: it finds the planted races, and no race in the kernels."""

import subprocess
import sys
import unittest

PROGRAM = sys.argv.pop(1)


class Races(unittest.TestCase):
    def run_it(self, what):
        return subprocess.run(
            [PROGRAM, what],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            timeout=600,
            check=False,
        )

    def test_the_kernels_have_no_races(self):
        result = self.run_it("clean")
        self.assertEqual((result.returncode, result.stdout.strip()), (0, "done"), result.stderr[:4000])

    def test_a_missing_barrier_is_reported(self):
        result = self.run_it("barrier")
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("data race", result.stderr)
        self.assertIn("neighbours<false>", result.stderr)

    def test_two_blocks_that_write_one_word_are_reported(self):
        result = self.run_it("blocks")
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("data race", result.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
