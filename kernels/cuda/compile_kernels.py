"""Runs the compiler on kernels. Writes what ptxas reports of each kernel to OBJECT.usage, a line a kernel:
architecture, registers, bytes of stack, of spills and of static shared memory, name. tests/ptx/usage.py
compares them with a table. Everything else that the compiler says is passed on."""

import re
import subprocess
import sys

REPORT = re.compile(
    r"^ptxas info\s*: (Compiling entry function|Function properties for|Used \d+ registers|"
    r"Compile time = |\d+ bytes gmem).*\n|^ +\d+ bytes stack frame.*\n",
    re.MULTILINE,
)
KERNEL = re.compile(
    r"Compiling entry function '(\S+)' for '(\w+)'\n.*\n"
    r" +(\d+) bytes stack frame, (\d+) bytes spill stores.*\n"
    r"ptxas info\s*: Used (\d+) registers([^\n]*)"
)


def usage_of(report):
    lines = []
    for name, architecture, stack, spills, registers, rest in KERNEL.findall(report):
        shared = re.search(r"(\d+) bytes smem", rest)
        lines.append(
            f"{architecture} {registers} {stack} {spills} {shared.group(1) if shared else 0} {name}\n"
        )
    return "".join(lines)


def main():
    command = sys.argv[1:]
    run = subprocess.run(
        [*command, "-Xptxas=-v"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    if run.returncode == 0 and "-o" in command:
        with open(command[command.index("-o") + 1] + ".usage", "w", encoding="ascii") as file:
            file.write(usage_of(run.stdout))
    sys.stderr.write(REPORT.sub("", run.stdout))
    sys.exit(run.returncode)


if __name__ == "__main__":
    main()
