"""Advices of the command: each message that names a flag, and what comes of following it.

A row has the words of the message, a command that prints it, and the commands that follow it, each with
checks of what comes out. `{}` in the words stands for any text. The commands run in a folder with the files
of the test. In them, OUT is a new folder, and COPY:NAME a new copy of NAME."""

import dataclasses
import importlib
import json
import math
import pathlib
import re
import shlex
import shutil
import tempfile

from support import CommandTest

BLANKS = re.compile(r"  +")
PREFIX = re.compile(r"stowage: (error|warning|note): ")


@dataclasses.dataclass
class Way:
    """A command that follows an advice. `command` makes it from the command that printed the advice."""

    command: object
    checks: tuple


def run(words, *checks):
    return Way(lambda wrong: words, checks)


def plus(words, *checks):
    return Way(lambda wrong: f"{wrong} {words}", checks)


def instead(old, new, *checks):
    def command(wrong):
        assert f" {old} " in f" {wrong} ", (old, wrong)
        return f" {wrong} ".replace(f" {old} ", f" {new} ").strip()

    return Way(command, checks)


def without(words, *checks):
    def command(wrong):
        assert f" {words} " in f" {wrong} ", (words, wrong)
        return f" {wrong} ".replace(f" {words} ", " ").strip()

    return Way(command, checks)


class Advice:
    def __init__(self, message, wrong, *ways):
        self.message, self.wrong, self.ways = message, wrong, ways
        self.pattern = re.compile(".*?".join(re.escape(part) for part in message.split("{}")))

    def is_in(self, lines):
        return any(
            self.pattern.fullmatch(BLANKS.sub(" ", PREFIX.sub("", line.strip(), count=1))) for line in lines
        )


@dataclasses.dataclass
class Done:
    """What a command left: its output, and the folder OUT."""

    words: str
    stdout: str
    stderr: str
    out: pathlib.Path

    def read(self, name):
        return (self.out / name).read_text(encoding="utf-8")

    def lines(self):
        return (self.stdout + "\n" + self.stderr).splitlines()

    def metrics(self):
        return [json.loads(line) for line in self.read("metrics.jsonl").splitlines()]


# Checks: called with the test and what the command left.


def steps(count):
    """The run made so many steps with finite losses, and wrote its weights."""

    def check(test, done):
        losses = [line["loss"] for line in done.metrics() if "loss" in line]
        test.assertEqual(len(losses), count)
        test.assertTrue(all(math.isfinite(loss) for loss in losses))
        test.assertTrue(list(done.out.glob("*model.safetensors")))

    return check


def same_as(command):
    """The same losses, rates and weights as those of another command."""

    def check(test, done):
        test.assertNotEqual(done.words, command)  # else the run is compared with itself
        other = test.once(command)

        def figures(one):
            names = ("step", "loss", "eval_loss", "lr", "tokens")
            return [[line.get(name) for name in names] for line in one.metrics()]

        def weights(one):
            return [path.read_bytes() for path in sorted(one.out.glob("*model.safetensors"))]

        test.assertEqual(figures(done), figures(other))
        test.assertEqual(weights(done), weights(other))

    return check


def other_than(command):
    """Other weights than those of another command."""

    def check(test, done):
        other = test.once(command)
        name = "model.safetensors"
        test.assertNotEqual((done.out / name).read_bytes(), (other.out / name).read_bytes())

    return check


def prints(*patterns):
    def check(test, done):
        for pattern in patterns:
            test.assertRegex(done.stdout, pattern)

    return check


def labels(*names):
    def check(test, done):
        found = json.loads(done.read("labels.json"))
        test.assertEqual(tuple(found if isinstance(found, list) else found["labels"]), names)

    return check


def planned(**fields):
    """Fields of the plan that the run wrote, or that the command printed as JSON."""

    def check(test, done):
        is_json = done.stdout.startswith("{")
        plan = json.loads(done.stdout if is_json else done.read("plan.json"))
        flat = {**plan["bytes"], **plan["request"], **plan, **plan["numerics"]}
        for name, value in fields.items():
            test.assertEqual(flat[name], value, name)

    return check


def shows(**fields):
    """Fields of the JSON object that the command printed."""

    def check(test, done):
        found = json.loads(done.stdout)
        for name, value in fields.items():
            test.assertEqual(found[name], value, name)

    return check


def wrote(name):
    return lambda test, done: test.assertTrue((pathlib.Path(test.folder) / name).exists(), name)


class AdviceTest(CommandTest):
    """Follows the rows of `rows`. `files` are names with contents. `prepare` are commands that make models in
    folders with names of their own, once for all rows."""

    rows = ()
    files = {}
    prepare = ()

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.shared = pathlib.Path(tempfile.mkdtemp(prefix="stowage-"))
        cls.addClassCleanup(shutil.rmtree, cls.shared, ignore_errors=True)
        cls.done = {}  # what commands left that run once
        cls.count = 0  # of folders

    def setUp(self):
        super().setUp()
        self.folder = self.shared

    def call(self, words, anyhow=False):
        parts, out = [], None
        for word in shlex.split(words):
            if word == "OUT" or word.startswith("COPY:"):
                type(self).count += 1
                out = self.folder / f"out-{self.count}"
                if word != "OUT":
                    shutil.copytree(self.folder / word[5:], out)
                word = out.name
            parts.append(word)
        result = self.run_words(parts, cwd=self.folder)
        if not anyhow:
            self.assertEqual(result.returncode, 0, f"{words}\n{result.stdout}\n{result.stderr}")
        return Done(words, result.stdout, result.stderr, out)

    def once(self, words):
        """What the command left, which runs once for all rows."""
        if words not in self.done:
            self.done[words] = self.call(words)
        return self.done[words]

    def follow(self, row):
        wrong = self.call(row.wrong, anyhow=True)
        self.assertTrue(
            row.is_in(wrong.lines()), f"{row.wrong}\n{row.message}\nis not in\n{wrong.stdout}\n{wrong.stderr}"
        )
        self.assertTrue(row.ways, row.message)
        for way in row.ways:
            words = way.command(row.wrong)
            with self.subTest(follows=words):
                right = self.call(words)
                self.assertFalse(row.is_in(right.lines()), f"{words}\n{right.stdout}\n{right.stderr}")
                self.assertTrue(way.checks, words)
                for check in way.checks:
                    check(self, right)

    def prepare_more(self):
        """Makes what no command makes."""

    def follow_rows(self):
        for name, content in self.files.items():
            self.write(name, content)
        for words in self.prepare:
            self.call(words)
        self.prepare_more()
        for row in self.rows:
            with self.subTest(message=row.message):
                self.follow(row)
        self.assertTrue(self.rows)


def all_rows():
    """The rows of all files of this folder."""
    rows = []
    for path in sorted(pathlib.Path(__file__).parent.glob("*_test.py")):
        module = importlib.import_module(f"{__package__}.{path.stem}")
        rows += getattr(module, "ALL_ROWS", module.ROWS)
    return rows
