"""Compiles every source file of the library and the command separately. Unity builds can hide a missing
include of a project header, or names that hide others. Standard headers are precompiled (planner/pch), as in
the builds, which halves the time."""

import concurrent.futures
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv[1])
# the compiler with its arguments, which include the folder of CUDA's headers if they are installed
COMPILER = sys.argv[2:]
HAS_CUDA = "-isystem" in COMPILER
WORDS = [
    *COMPILER,
    "-std=c++20",
    "-Wall",
    "-Wextra",
    "-Wshadow",
    "-Werror",
    *(f"-I{ROOT / folder}" for folder in ("", "include", "tools/stowage")),
]


class Alone(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.standard = shutil.copy(ROOT / "planner/pch/standard.h", cls.folder.name)
        subprocess.run([*WORDS, "-x", "c++-header", cls.standard, "-o", cls.standard + ".gch"], check=True)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def complaint(self, path):
        done = subprocess.run(
            [*WORDS, "-fsyntax-only", "-include", self.standard, path], capture_output=True, text=True
        )
        return done.stderr if done.returncode or done.stderr else ""

    def check(self, folder):
        paths = sorted(p for p in (ROOT / folder).rglob("*.cpp") if HAS_CUDA or p.parent != ROOT / "src/cuda")
        self.assertGreater(len(paths), 10)
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            complaints = [text for text in pool.map(self.complaint, paths) if text]
        self.assertFalse(complaints, "\n".join(complaints))


for name in ("planner", "kernels", "src", "tools/stowage", "tests/fuzz"):
    setattr(Alone, "test_" + name.replace("/", "_"), lambda self, folder=name: self.check(folder))

if __name__ == "__main__":
    sys.argv[1:] = []
    unittest.main(verbosity=2)
