"""The archive defines exactly the symbols of symbols.txt, so that no name of a program can clash with its
contents, and a C compiler links the C example with it: archive_test.py NM ARCHIVE SYMBOLS SOURCE HEADER CC
RUNTIME... CUDA"""

import os
import subprocess
import sys
import tempfile

import example_test


def main():
    nm, archive, symbols, source, header, cc, *runtime, cuda = sys.argv[1:]
    lines = subprocess.run(
        [nm, "-g", "--defined-only", archive], check=True, capture_output=True, text=True
    ).stdout.splitlines()
    found = sorted(line.split()[-1] for line in lines if len(line.split()) == 3)
    with open(symbols) as file:
        expected = sorted(file.read().split())
    assert found == expected, set(found) ^ set(expected)
    if cuda:
        runtime += [
            f"-L{cuda}/lib64",
            f"-L{cuda}/targets/x86_64-linux/lib",
            "-lcudart_static",
            "-ldl",
            "-lrt",
        ]
    with tempfile.TemporaryDirectory() as root:
        program = os.path.join(root, "train")
        subprocess.run(
            [
                cc,
                "-std=c99",
                "-I" + os.path.dirname(header),
                source,
                "-o",
                program,
                archive,
                *runtime,
                "-pthread",
            ],
            check=True,
        )
        example_test.check(program)


main()
