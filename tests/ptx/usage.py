"""Compares registers, stack and static shared memory of every kernel, as ptxas reported them during a build
(kernels/cuda/compile_kernels.py), with tests/ptx/usage.csv:

    usage.py BUILD            compares; fails if a kernel spills, differs, is new or is missing
    usage.py BUILD --write    writes what the build found into the table; and the memory traffic of training
                              steps into traffic.csv, if the build has ptx_trainer_tests, which compares it

The table is for compute capability 9.0. It has the figures of two builds: with -Dquick_kernels=true, whose
assembler optimises less, and without. Each build compares and writes its own. Kernels with wgmma are compiled
alike in both, and have figures of the second kind alone. Without optimisation, a few bytes of stack mean
little: they are compared, but need not be 0. Another version of the compiler than the table's gives other
figures: then only the stack is checked. Shared memory is rounded up to 16 bytes: in two clones of one commit,
the same compiler gave a kernel 7,688 and 7,696 bytes."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

TABLE = pathlib.Path(__file__).with_name("usage.csv")
FIGURES = ("registers", "stack", "shared")
HEADER = "quick registers,quick stack,quick shared,registers,stack,shared,kernel"
TRAFFIC = pathlib.Path(__file__).with_name("traffic.csv")
TRAFFIC_HEADER = "step,launches,bytes accessed,loaded,copied,stored,kernel"


def compiler():
    nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    text = subprocess.run([nvcc, "--version"], stdout=subprocess.PIPE, text=True, check=True).stdout
    return "nvcc " + re.search(r"V(\d+\.\d+\.\d+)", text).group(1)


def compiler_of_table():
    return TABLE.read_text(encoding="ascii").splitlines()[0] if TABLE.exists() else ""


def options_of(build):
    options = json.loads((build / "meson-info/intro-buildoptions.json").read_text(encoding="utf-8"))
    return {option["name"]: option["value"] for option in options}


def readable(names):
    """The names without parameters and without namespaces that all kernels share."""
    text = subprocess.run(
        ["c++filt"], input="\n".join(names), stdout=subprocess.PIPE, text=True, check=True
    ).stdout.splitlines()
    short = []
    for name in text:
        name = re.sub(r"stw::kernels::(cuda::)?|^void ", "", name)
        name = re.sub(r"\(DType\)([012])", lambda dtype: ("f32", "bf16", "f16")[int(dtype.group(1))], name)
        short.append(re.sub(r"\((?!\w+\)\d)[^<>]*\)$", "", name).replace("> >", ">>"))
    return short


QUICK, FULL = 0, 1  # the columns


def found_in(build, is_quick):
    """Column and figures by name. Kernels of headers are in several files: the largest figures."""
    lines = []
    for path in sorted((build / "kernels").glob("*.usage")):
        lines += [line.split() for line in path.read_text(encoding="ascii").splitlines()]
    lines = [line for line in lines if line[0] in ("sm_90", "sm_90a")]
    kernels = {}
    for name, line in zip(readable([line[5] for line in lines]), lines):
        column = QUICK if is_quick and line[0] == "sm_90" else FULL
        figures = (int(line[1]), max(int(line[2]), int(line[3])), -(-int(line[4]) // 16) * 16)
        kernels[name] = max((column, figures), kernels.get(name, (column, figures)))
    return kernels


def read_table():
    """By name: the figures of a quick build and of a full one, each None if there are none."""
    rows = {}
    if TABLE.exists():
        for line in TABLE.read_text(encoding="ascii").splitlines()[2:]:
            *words, name = line.split(",", 2 * len(FIGURES))
            rows[name] = [
                None if figures[0] == "-" else tuple(map(int, figures))
                for figures in (words[: len(FIGURES)], words[len(FIGURES) :])
            ]
    return rows


def write_table(rows):
    lines = [compiler(), HEADER]
    for name, pair in sorted(rows.items()):
        words = [word for figures in pair for word in (figures or ("-",) * len(FIGURES))]
        lines.append(",".join(map(str, (*words, name))))
    TABLE.write_text("\n".join(lines) + "\n", encoding="ascii")


def write_traffic(program):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "traffic")
        subprocess.run(
            [program, "--gtest_filter=*TrafficOfAStep*", "--gtest_brief=1"],
            env={**os.environ, "STW_TRAFFIC": str(path)},
            stdout=subprocess.DEVNULL,
            check=True,
        )
        rows = sorted(path.read_text(encoding="ascii").splitlines())
    TRAFFIC.write_text("\n".join([TRAFFIC_HEADER, *rows]) + "\n", encoding="ascii")


def text_of(figures):
    return ", ".join(f"{value} {what}" for value, what in zip(figures, FIGURES)) if figures else "nothing"


def column_of(pair, is_quick):
    return QUICK if is_quick and pair[QUICK] else FULL


def faults_of(found, rows, is_quick, is_same_compiler):
    faults = []
    for name in sorted({*found, *rows}):
        column, figures = found.get(name, (None, None))
        if column == FULL and figures[1] > 0:
            faults.append(f"{name}: {figures[1]} bytes of registers are spilled to local memory")
        pair = rows.get(name, [None, None])
        expected = pair[column_of(pair, is_quick) if column is None else column]
        if is_same_compiler and figures != expected:
            faults.append(f"{name}: the table has {text_of(expected)}; found {text_of(figures)}")
    return faults


def updated(rows, found):
    new = {}
    for name, (column, figures) in found.items():
        new[name] = list(rows.get(name, [None, None]))
        new[name][column] = figures
    return new


def main():
    build = pathlib.Path(sys.argv[1])
    options = options_of(build)
    if "90" not in options["gpu_architectures"]:
        print("no kernels for compute capability 9.0: they are not compared")
        return 77
    is_quick = options["quick_kernels"]
    found, rows = found_in(build, is_quick), read_table()
    if not found:
        print(f"{build}/kernels has no .usage files: build it first")
        return 1
    if "--write" in sys.argv[2:]:
        write_table(updated(rows, found))
        rows = read_table()
        program = build / "tests/ptx/ptx_trainer_tests"
        if program.exists():
            write_traffic(program)
    is_same_compiler = compiler() == compiler_of_table()
    if not is_same_compiler:
        print(f"{compiler_of_table()} made the table, not {compiler()}: only the stack is checked")
    faults = faults_of(found, rows, is_quick, is_same_compiler)
    for fault in faults:
        print(fault)
    print(f"{len(found)} kernels, {len(faults)} faults")
    if faults:
        print(f"If this is intended: python3 tests/ptx/usage.py {build} --write, and commit {TABLE.name}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
