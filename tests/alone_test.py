"""Every source file of the library and the command compiles by itself: builds that put files together, and headers that are
compiled before them, hide an include that is missing, and names that hide others."""
import concurrent.futures
import os
import pathlib
import subprocess
import sys
import unittest

ROOT = pathlib.Path(sys.argv[1])
COMPILER = sys.argv[2:]   # with its arguments; where CUDA's headers are, their folder among them
HAS_CUDA = "-isystem" in COMPILER
WARNINGS = ["-Wall", "-Wextra", "-Wshadow", "-Werror"]
INCLUDES = [f"-I{ROOT / folder}" for folder in ("", "include", "tools/stowage")]


def complaint(path):
    done = subprocess.run([*COMPILER, "-std=c++20", "-fsyntax-only", *WARNINGS, *INCLUDES, path], capture_output=True, text=True)
    return done.stderr if done.returncode or done.stderr else ""


class Alone(unittest.TestCase):
    def check(self, folder):
        paths = sorted(p for p in (ROOT / folder).rglob("*.cpp") if HAS_CUDA or p.parent != ROOT / "src/cuda")
        self.assertGreater(len(paths), 10)
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            complaints = [text for text in pool.map(complaint, paths) if text]
        self.assertFalse(complaints, "\n".join(complaints))


for name in ("planner", "kernels", "src", "tools/stowage"):
    setattr(Alone, "test_" + name.replace("/", "_"), lambda self, folder=name: self.check(folder))

if __name__ == "__main__":
    sys.argv[1:] = []
    unittest.main(verbosity=2)
