"""Tests plan.py with steps that hang, fail, cannot start or have no time, and the files that a killed call
leaves. Tests decisions.py. Tests bundle.py with new, old and truncated bundles."""

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
import decisions
import plan
import runs
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
        self.log = {}

        def call(command, seconds, path, real=runner.call):
            code = real(command, seconds, path)
            self.log[os.path.basename(path).removesuffix(".txt")] = plan.read(path)
            return code

        runner.call = call
        good = runner.run(steps)
        whole = runner.table() + "\n" + runner.block()
        self.assertEqual(plan.read(self.prefix + "-table.txt").splitlines()[1:], whole.splitlines()[1:])
        self.assertTrue(runner.out.getvalue().endswith(whole))
        self.assertFalse(os.path.exists(runner.logs))
        return good, [(step.name, result) for step, result, _, _ in runner.rows], runner

    def test_the_output_of_steps_is_kept_and_shown(self):
        good, rows, runner = self.run_steps(
            Step("one", 9, printing("tokens/s 7\nmore"), "tokens/s"), Step("two", 9, printing("fine"))
        )
        self.assertTrue(good)
        self.assertEqual(rows, [("one", "ok"), ("two", "ok")])
        self.assertEqual(self.log["one"], "tokens/s 7\nmore\n")
        with tarfile.open(self.prefix + "-logs.tgz") as tar:
            self.assertEqual(tar.extractfile("logs/one.txt").read(), b"tokens/s 7\nmore\n")
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
        self.assertEqual(self.log["hangs"], "half\n")
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

    def test_no_other_failed_step_stops_the_others(self):
        good, rows, _ = self.run_steps(Step("first", 9, printing("", 1)), Step("next", 9, printing("")))
        self.assertFalse(good)
        self.assertEqual(rows, [("first", "FAIL"), ("next", "ok")])

    def test_a_command_without_a_limit_of_its_own_is_cut_off(self):
        step = Step("long", 2, lambda _: ["sleep", "60"], ends_itself=False)
        good, rows, _ = self.run_steps(step)
        self.assertTrue(good)
        self.assertEqual(rows, [("long", "cut off")])

    def test_a_process_that_survives_sigkill_is_named(self):
        class Immortal:
            pid, args = os.getpid(), ["x"]

            def wait(self, seconds):
                raise subprocess.TimeoutExpired("x", seconds)

            def poll(self):
                return None

        runner = Runner("a call", self.prefix, 9, io.StringIO())
        runner.running, killed, real = Immortal(), [], os.killpg
        os.killpg = lambda pid, number: killed.append(number)
        try:
            runner.end()
            with contextlib.redirect_stdout(io.StringIO()) as output:
                runs.stop(Immortal())
        finally:
            os.killpg = real
        self.assertEqual(killed, [signal.SIGTERM, signal.SIGKILL, signal.SIGKILL])
        self.assertIn("did not end within 5 s of SIGKILL", runner.out.getvalue())
        self.assertIn("did not end within 5 s of SIGKILL", output.getvalue())

    def test_figures_reach_the_folder_of_results(self):
        path = os.path.join(self.folder.name, "figures.tsv")
        os.environ.update(FIGURES=path, CARD="A card")
        try:
            line = json.dumps(
                {"tokens_per_second": 7, "card": "A card", "mode": "eager", "micro_batch": 1}
                | {"vocabulary": 8, "attention": "default"}
            )
            self.run_steps(Step("PyTorch", 9, printing(line), "tokens_per_second"))
            runs.figure("x y", 0.5)
            runs.figure("x y", True)
            with open(path, "a", encoding="utf-8") as file:
                file.write("cut off\t1")
            self.assertEqual(runs.figures(), {"tokens/s of PyTorch": [7.0], "x y": [0.5, 1.0]})
            self.assertEqual(plan.read(self.prefix + "-figures.tsv"), "A card\ttokens/s of PyTorch\t7\n")
        finally:
            del os.environ["FIGURES"], os.environ["CARD"]

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
            if number == signal.SIGTERM:
                self.assertRegex(rest, r"(?ms)stopped from outside.*^one +ok")

    def test_the_plans_fit_their_time(self):
        os.environ["FIGURES"] = os.path.join(self.folder.name, "figures.tsv")
        try:
            for part, seconds in plan.SECONDS.items():
                with self.subTest(part=part):
                    steps = plan.Plan(part, "build-gpu", {}).steps()
                    # What has to be measured. Further steps get the time that is left, before the state.
                    needed = {"first": 4, "second": 7, "third": 4}[part]
                    # a bundle is unpacked in 5 s, of at most 20
                    self.assertLessEqual(sum(step.cap for step in steps[1:needed]) + 5, seconds)
                    for step in steps:
                        with contextlib.suppress(FileNotFoundError, RuntimeError):
                            self.assertIsInstance(step.command(step.cap), (list, str))
        finally:
            del os.environ["FIGURES"]
        # Three starts of 90 s, and transfers.
        self.assertLessEqual(sum(plan.SECONDS.values()) + 3 * 90, 15 * 60 - 60)

    def test_results_of_pytorch_are_shown_fastest_first(self):
        one = {
            "tokens_per_second": 1000.0,
            "card": "A card",
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
                "2,000 tokens/s on A card: compile, micro-batch 64, vocabulary 50,257, attention default",
                "1,000 tokens/s on A card: compile, micro-batch 64, vocabulary 50,304, attention default",
            ],
        )

    def test_a_failure_without_a_message_shows_its_last_lines(self):
        self.assertEqual(
            shown(Step("x", 9, None, "nothing"), "a\nb\nTraceback\nValueError: x\n", 1),
            ["b", "Traceback", "ValueError: x"],
        )


class Decisions(unittest.TestCase):
    """Each switch is decided by figures, and says which line of the sources it changes."""

    GOOD = {
        "bits of wgmma": [1.0],
        "values wgmma": [1.0, 1.0],
        "loss of wgmma, difference": [1e-3],
        decisions.GPT2 + "wgmma": [560e3],
        decisions.GPT2 + "tensor": [380e3],
    }

    def line(self, name, figures):
        return next(line for line in decisions.decided(figures) if line.startswith(name))

    def test_places_are_there(self):
        root = os.path.join(os.path.dirname(os.path.abspath(plan.__file__)), "../..")
        for switch in decisions.SWITCHES:
            path, word = switch.place.split(", ")
            self.assertIn(word, plan.read(os.path.join(root, path)), switch)

    def test_without_figures_every_switch_is_open(self):
        for line in decisions.decided({}):
            self.assertIn("open: no figure of", line)

    def test_wgmma_needs_bits_values_loss_and_speed(self):
        self.assertRegex(self.line("wgmma", self.GOOD), r"CHANGE to wgmma: .* 1.47 times")
        for name, value, why in (
            ("bits of wgmma", 0.0, "its bits differ"),
            ("values wgmma", 0.0, "its values are wrong"),
            ("loss of wgmma, difference", 0.02, "its loss is 2.0e-02 away"),
            (decisions.GPT2 + "wgmma", 370e3, "it is no faster than tensor"),
        ):
            self.assertIn(f"keep tensor: {why}", self.line("wgmma", self.GOOD | {name: [value]}))
            lacking = {n: v for n, v in self.GOOD.items() if n != name}
            self.assertIn("open: no figure of", self.line("wgmma", lacking))
        # one wrong result among right ones
        self.assertIn("values", self.line("wgmma", self.GOOD | {"values wgmma": [1.0, 0.0, 1.0]}))

    def test_gains_decide(self):
        six = "gain of 6 stages of 64x128, "
        for attended, qkv, up, words in (
            (1.1, 1.0, 1.0, "keep 6 stages for few"),
            (0.9, 1.0, 1.0, "CHANGE: 4 stages always"),
            (1.1, 1.1, 1.1, "CHANGE: 6 stages always"),
        ):
            figures = {six + "attended": [attended], six + "qkv": [qkv], six + "up": [up]}
            self.assertIn(words, self.line("stages of 64x128", figures))
        for gain, bits, words in (
            (1.05, 1, "CHANGE to true"),
            (0.99, 1, "keep false: 0.990"),
            (2, 0, "OTHER"),
        ):
            figures = {"gain of the branch": [gain], "bits of the branch": [bits]}
            self.assertIn(words, self.line("dW on a branch", figures))
        for regrets, words in (([0.0, 0.04], "keep"), ([0.0, 0.2], "CHANGE: .* 1 of 2 products")):
            self.assertRegex(self.line("tiles of wgmma", {"tile regret wgmma": regrets}), words)
        for outside, words in ((1500, "CHANGE to 1,500"), (900, "keep 1024"), (400, "CHANGE to 440")):
            self.assertIn(words, self.line("reserve", {"MiB outside of the arena": [outside]}))
        for gain, words in ((1.08, "CHANGE: totals"), (1.02, "keep 256")):
            figures = {"gain of one chain, attended": [1.0], "gain of one chain, up": [gain]}
            self.assertIn(words, self.line("terms of a chain", figures))
        for gains, words in (([1.01, 1.05], "CHANGE: a producer"), ([1.0, 1.02], "keep the fence")):
            self.assertIn(words, self.line("fence", {"gain of without the fence, up": gains}))

    def test_what_to_do_next(self):
        text = decisions.block("first", "A card", self.GOOD, [])
        self.assertIn("on A card", text)
        self.assertIn("Call at once, on the same card: tools/gpu-check second", text)
        self.assertIn("Give the card back", decisions.block("first", "", {"values wgmma": [0.0]}, ["probe"]))
        self.assertIn("mma.sync are wrong", decisions.block("first", "", {"values tensor": [0.0]}, ["probe"]))
        self.assertIn("Make 1 changes", decisions.block("second", "", self.GOOD, []))
        self.assertIn("tests/gpu/results/", decisions.block("third", "", self.GOOD, []))
        text = decisions.block(
            "third", "", {"share of the peak of llama-1b, T 2048, bf16, wgmma": [0.55]}, []
        )
        self.assertIn("llama-1b: 55.0 % of the card's product peak, mark 60 %: NOT REACHED", text)
        self.assertIn("Nothing ran", decisions.block("third", "", self.GOOD, ["unpack"]))


class Bundles(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.packages = os.path.join(self.folder.name, "gpu-packages")
        os.mkdir(self.packages)
        self.build, self.packed = (
            os.path.join(self.folder.name, name) for name in ("build-gpu", "gpu-packages/programs.tar.xz")
        )
        self.real, bundle.output = bundle.output, self.answer
        self.answers = {"nvidia-smi": "9.0\n8.6"}

    def tearDown(self):
        bundle.output = self.real
        self.folder.cleanup()

    def answer(self, *command):
        """The first card's capability, and no git."""
        return self.answers.get(command[0])

    def pack(self, text, programs=bundle.PROGRAMS, **about):
        files = {name: text.encode() for name in programs} | {"src/libstowage.so.0": text.encode()}
        about = about or {"commit": "abc", "revision": "abcdef", "capability": "90"}
        if "commit" in about:
            files = {bundle.ABOUT: json.dumps(about).encode()} | files
            for name in ("commit", "capability"):
                bundle.write(os.path.join(self.packages, name), about[name])
        with tarfile.open(self.packed, "w:xz") as tar:
            for name, content in files.items():
                info = tarfile.TarInfo(name)
                info.size, info.mode = len(content), 0o755
                tar.addfile(info, io.BytesIO(content))

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

    def test_a_bundle_without_a_description_is_refused(self):
        self.pack("new", unknown="")
        with self.assertRaisesRegex(ValueError, "does not name its commit and its compute capability"):
            bundle.unpack(self.build, self.packed)

    def test_programs_for_another_card_are_not_unpacked(self):
        about = {"commit": "abc", "revision": "abcdef", "capability": "90"}
        self.pack("new", **about)
        self.answers["nvidia-smi"] = "8.6"
        with self.assertRaisesRegex(ValueError, "compute capability 90, this card has 86"):
            bundle.unpack(self.build, self.packed)
        self.assertFalse(os.path.exists(self.build))
        self.answers["nvidia-smi"] = "9.0"
        self.assertRegex(bundle.unpack(self.build, self.packed), "commit abc .*no git here")
        self.answers["nvidia-smi"] = "8.6"  # the next call got another card
        with self.assertRaisesRegex(ValueError, "this card has 86"):
            bundle.unpack(self.build, self.packed)

    def test_the_size_is_that_of_a_whole_bundle(self):
        about = {"commit": "abc", "revision": "abcdef", "capability": "90"}
        with self.assertRaisesRegex(ValueError, "there is no "):
            bundle.size(self.packages)
        self.pack("new" * 1000, **about)
        self.assertIn("of commit abc for compute capability 90", bundle.size(self.packages))
        whole = os.path.getsize(self.packed)
        for length in (whole - 1, whole - 30, whole // 2, 100):
            with open(self.packed, "r+b") as file:
                file.truncate(length)
            with self.assertRaises((EOFError, tarfile.TarError, OSError), msg=length):
                bundle.size(self.packages)
            self.pack("new" * 1000, **about)
        for name in about:
            if name != "revision":
                bundle.write(os.path.join(self.packages, name), "other")
                with self.assertRaisesRegex(ValueError, f"has the {name} {about[name]}, .* has other: run"):
                    bundle.size(self.packages)
                bundle.write(os.path.join(self.packages, name), about[name])
        self.pack("new", bundle.PROGRAMS[:2], **about)
        with self.assertRaisesRegex(ValueError, "lacks tests/gpu/gpu_kernel_tests, .*gpu_trainer_tests: run"):
            bundle.size(self.packages)
        self.pack("new", unknown="")
        with self.assertRaisesRegex(ValueError, "has the commit none"):
            bundle.size(self.packages)

    def test_a_bundle_that_is_too_large_is_refused(self):
        script = os.path.join(os.path.dirname(os.path.abspath(bundle.__file__)), "bundle.py")
        self.pack("new", commit="abc", revision="abcdef", capability="90")
        for megabytes, code in ((1, 0), (20, 1)):
            with open(os.path.join(self.packages, "file"), "wb") as file:
                file.truncate(megabytes << 20)
            done = subprocess.run(
                [PYTHON, "-B", script, "size"],
                cwd=self.folder.name,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
            )
            self.assertEqual(done.returncode, code, done.stdout)
            self.assertIn(f"{megabytes}.0 MiB", done.stdout)
            self.assertEqual("too much to be carried" in done.stdout, code == 1)


if __name__ == "__main__":
    unittest.main(verbosity=2)
