"""Shared by the tests of the command: running it, a temporary folder, small data and models."""

import functools
import json
import os
import pathlib
import pty
import random
import re
import shutil
import subprocess
import tempfile
import unittest

STOWAGE = os.environ.get("STOWAGE", "stowage")
ROOT = pathlib.Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "golden"
DONE, FAILED, USAGE, DOES_NOT_FIT = 0, 1, 2, 3

# Flags for a run of nano that takes a fraction of a second.
SMALL = [
    "--model",
    "nano",
    "--batch",
    "4",
    "--seq",
    "32",
    "--vram",
    "64MiB",
    "--threads",
    "2",
    "--eval-batches",
    "2",
]


def from_scratch(words, cwd=None):
    """A command line with --from-scratch added if its model is a config without weights, as in most tests."""
    others = ("--weights", "--adapter", "--lora", "--resume", "--from-scratch")
    if (
        not words
        or words[0] not in ("train", "eval", "generate", "classify")
        or "--model" not in words[:-1]
        or any(word.split("=")[0] in others for word in words)
    ):
        return words
    model = pathlib.Path(cwd or ".") / words[words.index("--model") + 1]
    names = os.listdir(model) if model.is_dir() else []
    is_config = model.is_file() or (
        "config.json" in names
        and not any(
            name.endswith((".safetensors", ".index.json", ".incomplete", ".gguf", ".pth"))
            or name.startswith("pytorch_model")
            for name in names
        )
    )
    return [*words, "--from-scratch"] if is_config else words


FLAG = re.compile(r"(?<![\w-])--[a-z]")


def advices(words, result):
    """The printed lines that name a flag. What a user or a model wrote does not count."""
    shown = result.stderr.splitlines()
    if (
        words
        and words[0] in ("plan", "train", "eval", "calibrate", "merge", "pack")
        and "--help" not in words
    ):
        shown += result.stdout.splitlines()
    return [line for line in shown if FLAG.search(line)]


@functools.cache
def rows_of_advice():
    from advice.rows import all_rows  # these modules import this one

    return all_rows()


def is_tried(line):
    return any(row.is_in([line]) for row in rows_of_advice())


class CommandTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="stowage-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def path(self, name):
        return str(self.folder / name)

    def write(self, name, content):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return str(path)

    def text(self, size=20000):
        """A text with regularities to learn, the same every time."""
        draw = random.Random(7)
        words = ["plan", "what", "lies", "where", "in", "the", "hold", "before", "ship", "sails"]
        out = ""
        while len(out) < size:
            out += draw.choice(words) + draw.choice([" ", " ", " ", ".\n"])
        return self.write("text.txt", out[:size])

    def run_words(self, words, stdin=subprocess.DEVNULL, cwd=None):
        """Runs the command with exactly these words."""
        result = subprocess.run(
            [STOWAGE, *words],
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            timeout=600,
            check=False,
            cwd=cwd,
        )
        result.stdout = result.stdout.decode(errors="replace")
        result.stderr = result.stderr.decode(errors="replace")
        return result

    def run_command(self, *words, expect=DONE, stdin=subprocess.DEVNULL, cwd=None):
        result = self.run_words(from_scratch(list(map(str, words)), cwd), stdin, cwd)
        for line in advices(words, result):
            self.assertTrue(is_tried(line), f"no row in tests/tools/advice tries this advice: {line}")
        self.assertEqual(result.returncode, expect, f"{words}\n{result.stdout}\n{result.stderr}")
        return result

    def refused(self, *words, expect=FAILED, says=(), cwd=None):
        """The command fails with one line that contains all of `says`."""
        result = self.run_command(*words, expect=expect, cwd=cwd)
        lines = [line for line in result.stderr.splitlines() if line]
        self.assertEqual(len(lines), 1, result.stderr)
        self.assertTrue(lines[0].startswith("stowage: error: "), lines[0])
        for part in says:
            self.assertIn(part, lines[0])
        return result

    def on_terminal(self, stream, *words):
        """Runs the command with a terminal as "stdout" or "stderr". Returns the text on it and that on the
        other one."""
        controller, terminal = pty.openpty()
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, stream: terminal}
        run = subprocess.Popen(
            [STOWAGE, *map(str, words)],
            stdin=subprocess.DEVNULL,
            env={**os.environ, "TERM": "xterm"},
            **streams,
        )
        os.close(terminal)
        shown = b""
        try:
            while piece := os.read(controller, 4096):
                shown += piece
        except OSError:  # the other end is closed
            pass
        os.close(controller)
        answer, complaint = run.communicate(timeout=60)
        self.assertEqual(run.returncode, DONE)
        return shown, answer if stream == "stderr" else complaint

    def plan(self, *words, expect=DONE):
        return json.loads(self.run_command("plan", *words, "--json", expect=expect).stdout)

    def train(self, out, *words, **more):
        data = more.pop("data", None) or self.text()
        return self.run_command("train", *SMALL, "--data", data, "--out", self.path(out), *words, **more)

    def weights(self, out):
        return (self.folder / out / "model.safetensors").read_bytes()

    def read(self, out, name):
        return (self.folder / out / name).read_text(encoding="utf-8")

    def metrics(self, out):
        with open(self.path(out) + "/metrics.jsonl", encoding="utf-8") as file:
            return [json.loads(line) for line in file]


def count_in(path, text):
    """How often a text is in a file that a run writes: 0 while the run has not made it or moves it away."""
    try:
        return pathlib.Path(path).read_bytes().count(text)
    except FileNotFoundError:
        return 0


def files_of(folder):
    """Every file below a folder with its content, to check that none changed."""
    return {
        str(path): path.read_bytes() for path in sorted(pathlib.Path(folder).rglob("*")) if path.is_file()
    }
