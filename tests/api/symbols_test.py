"""The shared library exports exactly the symbols of symbols.txt, and needs only the C and C++ runtime.

symbols_test.py NM READELF LIBRARY SYMBOLS HEADER
"""

import re
import subprocess
import sys

ALLOWED = re.compile(r"(libstdc\+\+|libc\+\+|libm|libgcc_s|libc|ld-linux[-\w]*)\.so(\.\d+)*$")


def main():
    nm, readelf, library, symbols, header = sys.argv[1:]

    def output(*command):
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    lines = [line.split() for line in output(nm, "-D", "--defined-only", library).splitlines()]
    found = sorted(line[-1].split("@")[0] for line in lines if line[-2] != "A")
    with open(symbols) as file:
        expected = file.read().split()
    with open(header) as file:
        declared = sorted(set(re.findall(r"^STW_API [^(;]*?\b(stw_\w+)\(", file.read(), re.M)))
    problems = [f"not exported: {name}" for name in sorted(set(expected) - set(found))]
    problems += [f"exported, but not in symbols.txt: {name}" for name in sorted(set(found) - set(expected))]
    problems += [
        f"only in one of stowage.h and symbols.txt: {name}" for name in sorted(set(declared) ^ set(expected))
    ]
    problems += [f"no stw_ name: {name}" for name in found if not name.startswith("stw_")]
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", output(readelf, "-d", library))
    problems += [f"needs {name}" for name in needed if not ALLOWED.match(name)]
    if not needed:
        problems.append("readelf shows no needed library at all")
    print("\n".join(problems) or f"{len(found)} symbols; needs {', '.join(needed)}")
    return 1 if problems else 0


sys.exit(main())
