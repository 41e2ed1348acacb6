"""Checks the lines of all text files: their length, and blanks that no reader sees."""

import pathlib
import subprocess
import unittest

ROOT = pathlib.Path(__file__).parent.parent

COLUMNS = 110
TAB = 4  # columns, in the sources in Go, the only ones with tabs
# Data that programs write or read. Their lines need not fit a screen.
DATA = {".csv", ".json", ".jsonl", ".svg"}
INPUTS = "tests/fuzz/inputs/"


def texts():
    """The path and the text of every text file. Binary files are not UTF-8."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if answer.returncode != 0:
        raise unittest.SkipTest("this is not a clone of a git repository")
    for path in sorted(filter(None, answer.stdout.split("\0"))):
        file = ROOT / path
        if file.suffix in DATA or path.startswith(INPUTS) or file.is_symlink() or not file.is_file():
            continue
        try:
            yield path, file.read_bytes().decode()
        except UnicodeDecodeError:
            pass


def prose(lines):
    """The lines of Markdown without rows of tables and blocks of code, each with its number. A row of a table
    cannot be broken. A command of a block is copied as one line, and an output is as long as it is."""
    fence = ""
    for number, line in lines:
        mark = line.lstrip()[:3]
        if mark in ("```", "~~~") and fence in ("", mark):
            fence = "" if fence else mark
        elif not fence and not line.lstrip().startswith("|"):
            yield number, line


def faults(path, text):
    """What is wrong in a file: `path:line: reason`."""
    lines = list(enumerate(text.split("\n"), 1))
    for number, line in prose(lines) if path.endswith(".md") else lines:
        width = len(line.expandtabs(TAB))
        if width > COLUMNS:
            yield f"{path}:{number}: {width} columns, the limit is {COLUMNS}"
    for number, line in lines:
        if line != line.rstrip():
            yield f"{path}:{number}: blanks at the end of the line"
        if "\t" in line and not path.endswith(".go"):
            yield f"{path}:{number}: a tab"
    # Templates are exempt: some end without a line break.
    if text and not path.endswith(".in") and (not text.endswith("\n") or text.endswith("\n\n")):
        yield f"{path}: the file does not end with one line break"


class Text(unittest.TestCase):
    def test_of_the_tree(self):
        found = [fault for path, text in texts() for fault in faults(path, text)]
        if found:
            self.fail("\n".join(found))

    def test_a_long_line_is_found(self):
        for path in ("a.cpp", "a.cs", "a.md", "meson.build", "tools/test"):
            self.assertEqual(list(faults(path, "x\n" + "ü" * 110 + "\n")), [])
            self.assertEqual(
                list(faults(path, "x\n" + "ü" * 111 + "\n")), [f"{path}:2: 111 columns, the limit is 110"]
            )
        self.assertEqual(list(faults("a.go", "\t" + "x" * 106 + "\n")), [])
        self.assertEqual(
            list(faults("a.go", "\t" + "x" * 107 + "\n")), ["a.go:1: 111 columns, the limit is 110"]
        )

    def test_tables_and_code_in_markdown_may_be_wider(self):
        wide = "x" * 111
        text = f"| {wide} |\n\n```sh\n{wide}\n```\n  ~~~\n{wide}\n  ~~~\n"
        self.assertEqual(list(faults("a.md", text)), [])
        self.assertEqual(
            list(faults("a.md", f"```\n{wide}\n```\n{wide}\n")), ["a.md:4: 111 columns, the limit is 110"]
        )
        self.assertEqual(len(list(faults("a.py", f"| {wide} |\n"))), 1)

    def test_hidden_blanks_are_found(self):
        self.assertEqual(list(faults("a.cs", "a \n")), ["a.cs:1: blanks at the end of the line"])
        self.assertEqual(list(faults("a.cs", "a\r\n")), ["a.cs:1: blanks at the end of the line"])
        self.assertEqual(list(faults("a.cs", "\ta\n")), ["a.cs:1: a tab"])
        for text in ("a", "a\n\n"):
            self.assertEqual(list(faults("a.cs", text)), ["a.cs: the file does not end with one line break"])
        self.assertEqual(list(faults("a.cs", "")), [])


if __name__ == "__main__":
    unittest.main()
