"""The public headers compile without warnings in every standard that they claim, with every installed
compiler: header_standards_test.py INCLUDE SOURCES... The programs of header_test.cpp also run, and return
whether STW_INIT sets what it should."""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest

INCLUDE, *SOURCES = sys.argv[1:]
WARNINGS = [
    "-Wall",
    "-Wextra",
    "-Wpedantic",
    "-pedantic-errors",
    "-Wmissing-field-initializers",
    "-Wlong-long",
    "-Wconversion",
    "-Wshadow",
    "-Wundef",
    "-Werror",
]
OF_C = ["-Wstrict-prototypes"]
OF_CPP = ["-Wold-style-cast", "-Wnon-virtual-dtor"]
COMPILERS = [
    ("gcc", ".c", ("99", "11", "17")),
    ("clang", ".c", ("99", "11", "17")),
    ("g++", ".cpp", ("98", "11", "14", "17", "20")),
    ("clang++", ".cpp", ("98", "11", "14", "17", "20")),
]


class Standards(unittest.TestCase):
    def check(self, compiler, standard, source):
        is_c = source.endswith(".c")
        words = [
            compiler,
            f"-std={'c' if is_c else 'c++'}{standard}",
            *WARNINGS,
            *(OF_C if is_c else OF_CPP),
            f"-I{INCLUDE}",
        ]
        with tempfile.TemporaryDirectory() as folder:
            program = os.path.join(folder, "program")
            done = subprocess.run(
                [*words, *(["-c"] if is_c else []), source, "-o", program],
                capture_output=True,
                text=True,
                check=False,
            )
            self.assertEqual((done.returncode, done.stderr), (0, ""), words)
            if not is_c:
                self.assertEqual(subprocess.run([program], check=False).returncode, 0, words)

    def test_another_dlpack_may_take_the_place_of_ours(self):
        """The first one counts: both have the standard's include guard."""
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "dlpack.h"), "w", encoding="utf-8") as file:
                file.write(
                    "#ifndef DLPACK_DLPACK_H_\n#define DLPACK_DLPACK_H_\n"
                    "struct DLManagedTensorVersioned { int of_another; };\n#endif\n"
                )
            for order, field in (
                (("dlpack.h", "stowage/dlpack.h"), "of_another"),
                (("stowage/dlpack.h", "dlpack.h"), "flags"),
            ):
                text = (
                    "".join(f'#include "{name}"\n' for name in order)
                    + '#include "stowage.h"\nlong of(struct DLManagedTensorVersioned *t) '
                    f"{{ return (long)t->{field}; }}\n"
                )
                subprocess.run(
                    [
                        "cc",
                        "-std=c99",
                        "-Wall",
                        "-Werror",
                        "-fsyntax-only",
                        f"-I{INCLUDE}",
                        f"-I{folder}",
                        "-xc",
                        "-",
                    ],
                    input=text,
                    text=True,
                    check=True,
                )


found = 0
for name, suffix, standards in COMPILERS:
    if not shutil.which(name):
        continue
    for one in standards:
        for path in SOURCES:
            if path.endswith(suffix):
                found += 1
                setattr(
                    Standards, f"test_{name}_{one}", lambda self, case=(name, one, path): self.check(*case)
                )
assert found, "no compiler was found"

if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
