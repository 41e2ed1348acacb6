"""Shared by the tests of bindings in compiled languages: checks that the binding covers the header, looks
for the compiler, and runs the programs."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

SKIPPED = 77  # Meson's exit code for a skipped test
TEXT = "to be or not to be, that is the question. " * 400  # training data of the programs


class Binding:
    def __init__(self, folder, arguments):
        self.root, self.build, self.library = map(pathlib.Path, arguments)
        self.folder = self.root / "bindings" / folder
        sys.path.insert(0, str(self.root / "bindings"))
        from header import Header

        self.header = Header((self.root / "include/stowage.h").read_text(encoding="utf-8"))
        self.failed = False

    def fail(self, text):
        print(text)
        self.failed = True

    def names_all(self, files, but=(), entries_alone=False):
        """Checks that these files name every entry of the header. Unless `entries_alone`, they must also
        name every constant and every option."""
        text = "\n".join(path.read_text(encoding="utf-8") for path in files)
        words = set(re.findall(r"\w+", text))
        options = [
            field
            for name, fields in self.header.structs.items()
            if name.endswith("_options")
            for field, _, _ in fields
            if field not in ("struct_size", "reserved", "reserved_end")
        ]
        for name in [*self.header.functions, *([] if entries_alone else [*self.header.constants, *options])]:
            if name not in words and name not in but:
                self.fail(f"{self.folder.name} lacks {name}")

    def is_generated(self, path):
        """Checks that generate_abi.py makes the file from the header."""
        result = subprocess.run(
            [sys.executable, "-B", self.folder / "generate_abi.py", self.root / "include/stowage.h"],
            capture_output=True,
            text=True,
            check=True,
        )
        if result.stdout != path.read_text(encoding="utf-8"):
            self.fail(f"{path.name} is not made of stowage.h: run {self.folder.name}/generate_abi.py")

    def end_if_failed(self):
        if self.failed:
            sys.exit(1)

    def finish(self, compiler, environment, commands):
        """Runs the commands, each in a folder, until one fails. Then ends the program."""
        self.end_if_failed()
        if not shutil.which(compiler):
            print(f"skipped: there is no {compiler}")
            sys.exit(SKIPPED)
        (self.build / "text.txt").write_text(TEXT, encoding="utf-8")
        environment = os.environ | {"LD_LIBRARY_PATH": str(self.library.parent)} | environment
        sys.exit(
            next(
                (
                    code
                    for folder, command in commands
                    if (code := subprocess.run(command, cwd=folder, env=environment, check=False).returncode)
                ),
                0,
            )
        )
