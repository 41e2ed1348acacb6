"""Checks that the sources are formatted as tools/format formats them."""

import pathlib
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).parent.parent


class Format(unittest.TestCase):
    def check(self, language):
        answer = subprocess.run(
            [sys.executable, "-B", ROOT / "tools/format", "--check", language], capture_output=True, text=True
        )
        if answer.returncode == 77:
            self.skipTest(answer.stderr.strip())
        self.assertEqual(answer.returncode, 0, answer.stdout + answer.stderr + "run tools/format")

    def test_cpp(self):
        self.check("cpp")

    def test_python(self):
        self.check("python")

    def test_rust(self):
        self.check("rust")

    def test_go(self):
        self.check("go")

    def test_a_wrong_name_is_refused(self):
        answer = subprocess.run([sys.executable, "-B", ROOT / "tools/format", "fortran"], capture_output=True)
        self.assertEqual(answer.returncode, 2)


if __name__ == "__main__":
    unittest.main()
