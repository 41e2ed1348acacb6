"""Tests plan.py with steps that hang, fail, cannot start or have no time, and the files that a killed call
leaves. Tests bundle.py with new, old and truncated bundles."""

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import unittest

import bundle
import plan
from plan import Runner, Step, shown

PYTHON = sys.executable


def printing(words, code=0):
    return lambda _: [PYTHON, "-c", f"import sys; print({words!r}); sys.exit({code})"]


class Steps(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.prefix = os.path.join(self.folder.name, "x")
        self.least, plan.LEAST_SECONDS, self.patience, plan.TO_DIE = plan.LEAST_SECONDS, 0.2, plan.TO_DIE, 1

    def tearDown(self):
        self.folder.cleanup()
        plan.LEAST_SECONDS, plan.TO_DIE = self.least, self.patience

    def run_steps(self, *steps, seconds=60):
        runner = Runner("a call", self.prefix, seconds, io.StringIO())
        good = runner.run(steps)
        self.assertEqual(
            plan.read(self.prefix + "-table.txt").splitlines()[1:], runner.table().splitlines()[1:]
        )
        self.assertTrue(runner.out.getvalue().endswith(runner.table()))
        return good, [(step.name, result) for step, result, _, _ in runner.rows], runner

    def test_the_output_of_steps_is_kept_and_shown(self):
        good, rows, runner = self.run_steps(
            Step("one", 9, printing("tokens/s 7\nmore"), "tokens/s"), Step("two", 9, printing("fine"))
        )
        self.assertTrue(good)
        self.assertEqual(rows, [("one", "ok"), ("two", "ok")])
        self.assertEqual(plan.read(self.prefix + "-one.txt"), "tokens/s 7\nmore\n")
        self.assertRegex(runner.table(), r"(?m)^one +ok +\d\.\d +9   tokens/s 7$")
        self.assertIn("fine", runner.out.getvalue())

    def test_a_step_that_hangs_ends_at_its_cap_and_leaves_its_output(self):
        stubborn = "trap '' TERM; echo half; sleep 60"
        begin = time.monotonic()
        good, rows, _ = self.run_steps(
            Step("hangs", 3, lambda _: ["sh", "-c", stubborn]), Step("next", 9, printing("fine"))
        )
        self.assertFalse(good)
        self.assertEqual(rows, [("hangs", "timed out"), ("next", "ok")])
        self.assertEqual(plan.read(self.prefix + "-hangs.txt"), "half\n")
        self.assertLess(time.monotonic() - begin, 20)

    def test_processes_of_a_step_end_with_it(self):
        """The end of a step kills the step's own process group, and the groups of a script's runs."""
        path = os.path.join(self.folder.name, "alive")
        touch = f"import time\nwhile True:\n open({path!r}, 'w').close()\n time.sleep(0.1)"
        script = (
            f"import sys; sys.path.insert(0, {os.path.dirname(os.path.abspath(plan.__file__))!r}); "
            f"import runs\nwith runs.Runs('.'): runs.call([{PYTHON!r}, '-c', {touch!r}])"
        )
        for command in (["sh", "-c", f'{PYTHON} -c "$0" & wait', touch], [PYTHON, "-c", script]):
            with self.subTest(command=command):
                self.run_steps(Step("starts", 8, lambda _, command=command: command))
                os.remove(path)  # the process was alive
                time.sleep(0.5)
                self.assertFalse(os.path.exists(path))

    def test_a_failed_first_step_stops_the_others(self):
        good, rows, runner = self.run_steps(
            Step("first", 9, printing("FAIL  x: why", 1), stops=True), Step("next", 9, printing(""))
        )
        self.assertFalse(good)
        self.assertEqual(rows, [("first", "FAIL"), ("next", "left out")])
        self.assertIn("FAIL  x: why", runner.table())
        self.assertIn("first failed", runner.table())

    def test_another_step_takes_the_time_of_those_that_follow(self):
        other = Step("other", 600, lambda seconds: printing(f"has {seconds:.0f}")(0), "has")
        good, rows, runner = self.run_steps(
            Step("first", 9, printing("", 1), otherwise=other), Step("next", 9, printing("")), seconds=40
        )
        self.assertFalse(good)
        self.assertEqual(rows, [("first", "FAIL"), ("other", "ok"), ("next", "left out")])
        self.assertRegex(runner.table(), r"other +ok .*has (40|3\d)")
        good, rows, _ = self.run_steps(
            Step("first", 9, printing(""), otherwise=other), Step("next", 9, printing(""))
        )
        self.assertEqual(rows, [("first", "ok"), ("next", "ok")])

    def test_no_step_gets_more_than_is_left(self):
        given = []

        def command(seconds):
            given.append(seconds)
            return ["sleep", "1" if len(given) == 1 else "30"]

        _, rows, _ = self.run_steps(
            Step("one", 9, command), Step("two", 4.8, command), Step("three", 9, command), seconds=6
        )
        self.assertEqual([result for _, result in rows], ["ok", "timed out", "left out"])
        self.assertLessEqual(given[0], 6)
        self.assertLessEqual(given[1], 4.8)

    def test_a_step_that_cannot_begin_fails_alone(self):
        good, rows, runner = self.run_steps(
            Step("one", 9, lambda _: [][0]),
            Step("two", 9, lambda _: ["/there/is/none"]),
            Step("three", 9, lambda _: "there is no such tool"),
            Step("four", 9, printing("")),
        )
        self.assertFalse(good)
        self.assertEqual([result for _, result in rows], ["FAIL", "FAIL", "left out", "ok"])
        for words in ("IndexError", "No such file", "there is no such tool"):
            self.assertIn(words, runner.table())

    def test_a_killed_call_leaves_table_and_results(self):
        script = (
            "import sys; sys.path.insert(0, sys.argv[1]); import plan\nfrom plan import Step\n"
            "plan.Plan.steps = lambda self: [Step('one', 9, lambda _: ['echo', 'found 7'], 'found'), "
            "Step('two', 90, lambda _: ['sh', '-c', 'echo half; sleep 9'])]\n"
            "sys.argv = ['plan.py', 'first', '.']\nplan.main()"
        )
        for number in (signal.SIGTERM, signal.SIGKILL):
            run = subprocess.Popen(
                [PYTHON, "-c", script, os.path.dirname(os.path.abspath(plan.__file__))],
                env={**os.environ, "PREFIX": self.prefix},
                stdout=subprocess.PIPE,
                text=True,
            )
            for line in run.stdout:
                if line == "half\n":
                    break
            run.send_signal(number)
            rest = run.communicate(timeout=20)[0]
            self.assertEqual(run.returncode, 143 if number == signal.SIGTERM else -number)
            self.assertRegex(plan.read(self.prefix + "-table.txt"), r"(?m)^one +ok .*found 7$")
            self.assertEqual(plan.read(self.prefix + "-two.txt"), "half\n")
            if number == signal.SIGTERM:
                self.assertRegex(rest, r"(?ms)stopped from outside.*^one +ok")

    def test_the_plans_fit_their_time(self):
        for part, seconds in plan.SECONDS.items():
            with self.subTest(part=part):
                steps = plan.Plan(part, "build-gpu").steps()
                # the last step takes the remaining time
                self.assertLessEqual(sum(step.cap for step in steps[:-1]), seconds + 25)
                for step in steps:
                    with contextlib.suppress(FileNotFoundError):
                        self.assertIsInstance(step.command(step.cap), (list, str))
        self.assertLessEqual(sum(plan.SECONDS.values()), 15 * 60 - 90 - 120)  # start and transfer; a reserve

    def test_results_of_pytorch_are_shown_fastest_first(self):
        one = {
            "tokens_per_second": 1000.0,
            "mode": "compile",
            "micro_batch": 64,
            "vocabulary": 50304,
            "attention": "default",
        }
        text = (
            "\n".join(map(json.dumps, (one, one | {"tokens_per_second": 2000.0, "vocabulary": 50257})))
            + '\n{"tokens_per_second": cut'
        )
        lines = shown(Step("PyTorch", 9, None, "tokens_per_second"), text, 0)
        self.assertEqual(
            lines,
            [
                "2,000 tokens/s: compile, micro-batch 64, vocabulary 50,257, attention default",
                "1,000 tokens/s: compile, micro-batch 64, vocabulary 50,304, attention default",
            ],
        )

    def test_a_failure_without_a_message_shows_its_last_lines(self):
        self.assertEqual(
            shown(Step("x", 9, None, "nothing"), "a\nb\nTraceback\nValueError: x\n", 1),
            ["b", "Traceback", "ValueError: x"],
        )

    def test_the_cards_peak_is_taken_from_the_first_call(self):
        os.environ["PREFIX"] = os.path.join(self.folder.name, "card-second")
        try:
            self.assertEqual(plan.Plan("second", ".").peak_words(), ())
            with open(os.path.join(self.folder.name, "card-first-probe.txt"), "w", encoding="ascii") as file:
                file.write(
                    "      the card's own bf16 product                        798 TFLOP/s, "
                    "8192 cubed by cuBLASLt; 798 were measured on an H100\n"
                )
            self.assertEqual(plan.Plan("second", ".").peak_words(), ("--product-tflops", "798"))
        finally:
            del os.environ["PREFIX"]


class Bundles(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.build, self.packed = (
            os.path.join(self.folder.name, name) for name in ("build-gpu", "programs.tar.xz")
        )

    def tearDown(self):
        self.folder.cleanup()

    def pack(self, text, programs=bundle.PROGRAMS):
        with tarfile.open(self.packed, "w:xz") as tar:
            for name in programs:
                info = tarfile.TarInfo(name)
                info.size, info.mode = len(text), 0o755
                tar.addfile(info, io.BytesIO(text.encode()))

    def program(self):
        return plan.read(os.path.join(self.build, bundle.PROGRAMS[0]))

    def test_a_bundle_replaces_the_programs_of_an_older_one(self):
        self.pack("old")
        self.assertIn("unpacked", bundle.unpack(self.build, self.packed))
        with open(os.path.join(self.build, "left"), "w", encoding="ascii"):
            pass
        self.assertIn("holds this bundle", bundle.unpack(self.build, self.packed))
        self.assertTrue(os.path.exists(os.path.join(self.build, "left")))
        self.pack("new")
        self.assertIn("unpacked", bundle.unpack(self.build, self.packed))
        self.assertEqual(self.program(), "new")
        self.assertFalse(os.path.exists(os.path.join(self.build, "left")))
        self.assertTrue(os.access(os.path.join(self.build, bundle.PROGRAMS[0]), os.X_OK))

    def test_programs_of_unknown_origin_are_replaced(self):
        os.makedirs(os.path.join(self.build, "tools/stowage"))
        with open(os.path.join(self.build, bundle.PROGRAMS[0]), "w", encoding="ascii") as file:
            file.write("older than stamps are")
        self.pack("new")
        bundle.unpack(self.build, self.packed)
        self.assertEqual(self.program(), "new")

    def test_programs_built_here_are_kept(self):
        os.makedirs(self.build)
        with open(os.path.join(self.build, "build.ninja"), "w", encoding="ascii"):
            pass
        self.pack("new")
        self.assertIn("was built here", bundle.unpack(self.build, self.packed))
        self.assertEqual(self.program(), "")

    def test_without_a_bundle_nothing_stale_runs(self):
        with self.assertRaisesRegex(ValueError, "carry gpu-packages by name"):
            bundle.unpack(self.build, self.packed)
        self.pack("old")
        bundle.unpack(self.build, self.packed)
        os.remove(self.packed)
        with self.assertRaisesRegex(ValueError, "some other bundle's"):
            bundle.unpack(self.build, self.packed)

    def test_a_bundle_that_lacks_a_program_or_is_cut_off_is_refused(self):
        self.pack("new", bundle.PROGRAMS[1:])
        with self.assertRaisesRegex(ValueError, "lacks tools/stowage/stowage"):
            bundle.unpack(self.build, self.packed)
        self.pack("new" * 1000)
        with open(self.packed, "r+b") as file:
            file.truncate(100)
        with self.assertRaises((EOFError, tarfile.TarError, OSError)):
            bundle.unpack(self.build, self.packed)
        self.assertIsNone(bundle.stamp_of(self.build))

    def test_a_bundle_that_is_too_large_is_refused(self):
        script = os.path.join(os.path.dirname(os.path.abspath(bundle.__file__)), "bundle.py")
        for megabytes, code in ((1, 0), (21, 1)):
            with open(os.path.join(self.folder.name, "file"), "wb") as file:
                file.truncate(megabytes << 20)
            done = subprocess.run(
                [PYTHON, "-B", script, "size", self.folder.name],
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
            )
            self.assertEqual(done.returncode, code, done.stdout)
            self.assertIn(f"{megabytes}.0 MiB", done.stdout)


if __name__ == "__main__":
    unittest.main(verbosity=2)
