"""Tests isolated.py with programs that imitate GoogleTest and misbehave: they break the device, hang, or
fail at their end."""

import concurrent.futures
import contextlib
import io
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
import unittest

from isolated import run_if_any_runs, run_isolated, tests_of
import runs
from runs import Table, clipped

# In each process, the device is broken from the first failing test on.
PROGRAM = """#!{python}
import fnmatch, sys, time
SUITES = {suites!r}
chosen = next(word.split("=", 1)[1] for word in sys.argv if word.startswith("--gtest_filter=")).split(":")
wanted = lambda name: any(fnmatch.fnmatchcase(name, one) for one in chosen)
listing = "--gtest_list_tests" in sys.argv
print("Running main() from gtest_main.cc")
broken = False
for suite, tests in SUITES.items():
    if listing and any(wanted(suite + name) for name in tests):
        print(suite + ("  # TypeParam = int" if "/" in suite else ""))
    for name, what in tests.items():
        if not wanted(suite + name): continue
        if listing: print("  " + name + ("  # GetParam() = 3" if "/" in name else "")); continue
        print("[ RUN      ]", suite + name, flush=True)
        if what == "hang": time.sleep(60)
        if what == "crash": sys.exit(134)
        broken |= what in ("break", "fail") or (what == "together" and ":".join(chosen) != suite + name)
        if what == "silent": continue
        end = "[  SKIPPED ]" if what == "skip" else "[  FAILED  ]" if broken else "[       OK ]"
        print(end, suite + name, "(1 ms)")
sys.exit(3 if "end" in SUITES else 1 if broken else 0)
"""


# A command that takes three steps of a second each and then hangs.
STEPS = """#!{python}
import os, sys, time
out = sys.argv[sys.argv.index("--out") + 1]
os.makedirs(out)
for speed in (10, 20, 30):
    time.sleep(1)
    with open(out + "/metrics.jsonl", "a") as file: file.write('{{"tokens_per_second": %d}}\\n' % speed)
print("the last one", flush=True)
time.sleep(60)
"""


class Isolated(unittest.TestCase):
    def run_on(self, suites, first=None, **limits):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "tests")
            with open(path, "w", encoding="utf-8") as file:
                file.write(PROGRAM.format(python=sys.executable, suites=suites))
            os.chmod(path, stat.S_IRWXU)
            self.listed, self.output = tests_of(path)
            return run_if_any_runs(path, first) if first else run_isolated(path, **limits)

    def test_all_is_well(self):
        outcome = self.run_on({"A.": {"x": "", "y": ""}, "All/B.": {"z/0": "", "z/1": ""}})
        self.assertEqual(self.listed, {"A.": ["x", "y"], "All/B.": ["z/0", "z/1"]})
        self.assertTrue(outcome.is_good())
        self.assertEqual(str(outcome), "4 passed, 0 failed")

    def test_a_suite_that_breaks_the_device_breaks_no_other(self):
        outcome = self.run_on(
            {
                "A.": {"x": "", "bad": "break", "y": "", "z": ""},
                "B.": {"x": ""},
                "C.": {"x": "", "bad": "crash", "y": ""},
            }
        )
        self.assertFalse(outcome.is_good())
        self.assertEqual((outcome.passed, outcome.failed), (6, ["A.bad", "C.bad"]))
        self.assertIn("A.bad", outcome.words[0])

    def test_a_suite_that_never_ends_is_stopped(self):
        outcome = self.run_on(
            {"A.": {"x": "", "bad": "hang", "y": ""}, "B.": {"x": ""}}, suite_seconds=2, test_seconds=2
        )
        self.assertEqual((outcome.passed, outcome.failed), (3, ["A.bad"]))
        self.assertIn("ran past its time", outcome.words[0])

    def test_a_suite_that_fails_at_its_end_fails(self):
        outcome = self.run_on({"A.": {"x": ""}, "end": {}})
        self.assertEqual((outcome.passed, outcome.failed), (1, ["A.* (together)"]))

    def test_a_suite_that_the_time_limit_cuts_off_has_not_failed(self):
        outcome = self.run_on({"A.": {"x": "", "y": "hang"}, "B.": {"x": "hang"}}, all_seconds=3, at_once=2)
        self.assertEqual((outcome.passed, outcome.failed), (1, []))
        self.assertEqual(outcome.left_out, ["A.* (cut off)", "B.* (cut off)"])
        outcome = self.run_on({"A.": {"bad": "fail", "y": "hang"}}, all_seconds=3)
        self.assertEqual((outcome.passed, len(outcome.failed)), (0, 1))
        self.assertIn("A.bad", outcome.failed[0])

    def test_suites_without_time_are_named(self):
        outcome = self.run_on({"A.": {"x": ""}, "B.": {"x": ""}}, all_seconds=-1)
        self.assertFalse(outcome.is_good())
        self.assertEqual(outcome.left_out, ["A.*", "B.*"])

    def test_a_program_without_tests_fails(self):
        outcome = self.run_on({})
        self.assertFalse(outcome.is_good())
        self.assertIn("Running main()", outcome.words[0])

    def test_a_test_that_fails_only_together_with_others_fails(self):
        outcome = self.run_on({"A.": {"x": "", "bad": "together"}, "B.": {"x": "", "y": "silent"}})
        self.assertEqual(
            (outcome.passed, outcome.failed), (3, ["A.bad (with its suite; it passes alone)", "B.y"])
        )
        self.assertFalse(outcome.is_good())

    def test_if_the_first_tests_fail_the_others_are_not_tried(self):
        outcome = self.run_on({"A.": {"x": "", "bad": "break"}, "B.": {"x": ""}}, first="B.*")
        self.assertEqual((outcome.passed, outcome.failed), (2, ["A.bad"]))
        outcome = self.run_on({"A.": {"x": ""}, "B.": {"bad": "break"}}, first="B.*")
        self.assertEqual((outcome.passed, outcome.failed), (0, ["B.bad"]))
        self.assertIn("not tried", str(outcome))

    def test_long_output_is_clipped(self):
        self.assertEqual(clipped("abc", 4), "abc")
        text = clipped("a" * 1000 + "b" * 1000, 100)
        self.assertTrue(
            text.startswith("a" * 50 + "\n") and text.endswith("\n" + "b" * 50) and " 1900 " in text
        )

    def test_skipped_tests_are_named(self):
        outcome = self.run_on({"A.": {"x": "", "y": "skip"}, "B.": {"x": "skip", "bad": "fail"}})
        self.assertEqual((outcome.passed, outcome.skipped, outcome.failed), (1, ["A.y", "B.x"], ["B.bad"]))
        self.assertIn("2 skipped", str(outcome))
        self.assertFalse(self.run_on({"A.": {"x": "skip"}}).is_good())

    def test_processes_end_at_the_time_limit(self):
        begin, runs.SECONDS = time.monotonic(), 0
        with self.assertRaises(runs.OutOfTime):
            runs.call(["sleep", "60"])
        runs.SECONDS = 570
        child = os.fork()
        if child == 0:
            try:
                with runs.Runs("."), concurrent.futures.ThreadPoolExecutor(2) as pool:
                    list(pool.map(lambda n: runs.call(["sleep", "60"]), range(4)))
            except SystemExit as end:
                os._exit(end.code)
            os._exit(0)
        time.sleep(1)
        os.kill(child, signal.SIGTERM)
        _, status = os.waitpid(child, 0)
        self.assertEqual(os.waitstatus_to_exitcode(status), 143)
        self.assertLess(time.monotonic() - begin, 20)

    def test_a_run_that_hangs_is_given_up(self):
        begin = time.monotonic()
        with tempfile.TemporaryDirectory() as build:
            path = os.path.join(build, "tools/stowage/stowage")
            os.makedirs(os.path.dirname(path))
            with open(path, "w", encoding="utf-8") as file:
                file.write(STEPS.format(python=sys.executable))
            os.chmod(path, stat.S_IRWXU)
            with runs.Runs(build) as folder:
                self.assertEqual(folder.speeds("run", 3, patience=8), ([10, 20, 30], ""))
                found, why = folder.speeds("run", 4, patience=8)
                runs.SECONDS = time.monotonic() - runs.BEGIN + 5
                try:
                    with self.assertRaisesRegex(runs.OutOfTime, "cut off: no time left, after 3 steps"):
                        folder.speeds("run", 4, patience=60)
                finally:
                    runs.SECONDS = 570
        self.assertIsNone(found)
        self.assertIn("the last one", why)
        self.assertIn("hangs after 3 steps", why)
        self.assertLess(time.monotonic() - begin, 90)

    def test_options_come_first_and_set_the_limit(self):
        words, before = ["--tiny", "c.json", "--seconds", "9.5", "bits", "--seconds"], runs.SECONDS
        try:
            self.assertEqual(runs.options(words, "tiny"), {"tiny": "c.json", "seconds": "9.5"})
            self.assertEqual((words, runs.SECONDS), (["bits", "--seconds"], 9.5))
        finally:
            runs.SECONDS = before
        with self.assertRaises(SystemExit):
            runs.options(["--seconds"])

    def test_an_exception_ends_only_its_part(self):
        table, done = Table(), []

        def late():
            raise runs.OutOfTime("cut off")

        with contextlib.redirect_stdout(io.StringIO()) as output:
            table.part("bad", lambda: [][0])
            table.part("late", late)
            table.part("good", lambda: done.append(True))
        self.assertEqual((table.failures, done), (1, [True]))
        self.assertIn("IndexError", output.getvalue())
        self.assertRegex(output.getvalue(), r"(?m)^cut +late +cut off$")

    def test_the_kind_of_card_stands_in_every_row(self):
        table = Table()
        table.card = "A card"
        with contextlib.redirect_stdout(io.StringIO()) as output:
            table.row("one", True, "figures\nmore")
            table.row("two", False, "figures")
        self.assertRegex(
            output.getvalue(), r"(?m)^ok +one +figures  \[A card\]\nmore\nFAIL +two +figures  \[A card\]$"
        )


@unittest.skipUnless(shutil.which("xz") and shutil.which("git"), "there is no xz or no git")
class Packed(unittest.TestCase):
    """tools/gpu-check in a tree of its own. The build makes no program, and the programs do nothing."""

    ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
    SOURCE = "src/cuda/one.cpp"

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.tree = folder.name
        self.put("tests/ptx/usage.py", "")  # this build has no kernels
        for path in ("tools/gpu-check", "tests/gpu/bundle.py"):
            self.put(path, "")
            shutil.copy(os.path.join(self.ROOT, path), os.path.join(self.tree, path))
        self.tool("meson")
        self.tool("ninja")
        self.tool("nvidia-smi", "echo 'A card, 9.0'")
        self.put(
            "tests/gpu/check.py",
            "import subprocess, sys\nprint(subprocess.run([sys.argv[1] + '/tools/stowage/stowage'], "
            "stdout=subprocess.PIPE).stdout.decode())\n",
        )
        self.put(".gitignore", "/bin/\n/build-gpu/\n/gpu-packages/\n/log\n*.txt\n*.pyc\n")
        self.put(self.SOURCE, "// one\n")
        self.git("init", "--quiet")
        self.commit()
        self.put("gpu-packages/commit", "abc123\n")
        self.put("build-gpu/build.ninja", "")
        self.put(
            "build-gpu/tools/stowage/stowage",
            '#!/bin/sh\ncat "$(dirname "$0")/../../src/libstowage.so.0"\n',
        )
        for path in (
            "src/libstowage.so.0.1.0",
            "src/libstowage.so.0.1.0.p/large.o",
            "tests/gpu/gpu_probe",
            "tests/gpu/gpu_kernel_tests",
            "tests/gpu/gpu_trainer_tests",
            "meson-logs/meson-log.txt",
            ".ninja_log",
        ):
            self.put("build-gpu/" + path, "the library")
        os.symlink("libstowage.so.0.1.0", self.tree + "/build-gpu/src/libstowage.so.0")

    def put(self, path, text):
        path = os.path.join(self.tree, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, stat.S_IRWXU)

    def tool(self, name, script=""):
        """A program that logs its call."""
        self.put("bin/" + name, f'#!/bin/sh\necho {name} "$@" >> "{self.tree}/log"\n{script}\n')

    def logged(self):
        with open(self.tree + "/log", encoding="utf-8") as file:
            lines = file.read().splitlines()
        os.remove(self.tree + "/log")
        return lines

    def git(self, *words):
        return subprocess.run(
            ["git", "-c", "user.name=x", "-c", "user.email=x@x", *words],
            cwd=self.tree,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        ).stdout.strip()

    def commit(self):
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", "x")
        return self.git("describe", "--always", "--exclude", "*")

    def check(self, *words):
        return subprocess.run(
            ["tools/gpu-check", *words],
            cwd=self.tree,
            env={**os.environ, "PATH": self.tree + "/bin:" + os.environ["PATH"], "OUT": self.tree},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )

    def works(self, *words):
        done = self.check(*words)
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout

    def on_the_card(self):
        """A call on a machine that has no programs yet."""
        shutil.move(self.tree + "/build-gpu", self.tree + "/bin/built")
        try:
            return self.check("test")
        finally:
            shutil.rmtree(self.tree + "/build-gpu", ignore_errors=True)
            shutil.move(self.tree + "/bin/built", self.tree + "/build-gpu")

    def refuses(self, *says):
        done = self.on_the_card()
        self.assertEqual(done.returncode, 1, done.stdout)
        for text in says:
            self.assertIn(text, done.stdout)

    def runs(self):
        done = self.on_the_card()
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("the library", done.stdout)
        return done.stdout

    def of_bundle(self, name):
        with open(f"{self.tree}/gpu-packages/{name}", encoding="utf-8") as file:
            return file.read().strip()

    def test_programs_come_from_another_machine(self):
        commit = self.git("describe", "--always", "--exclude", "*")
        self.works("build", "90")
        shutil.rmtree(self.tree + "/build-gpu")
        shutil.rmtree(self.tree + "/.git")
        tested = self.works("test")
        self.assertIn(f"commit {commit}\n", tested.splitlines()[0] + "\n")
        self.assertIn("there is no git here to compare it with", tested)
        self.assertIn("the library", tested)
        self.assertTrue(os.path.exists(self.tree + "/build-gpu/tests/gpu/gpu_trainer_tests"))
        self.assertFalse(os.path.exists(self.tree + "/build-gpu/src/libstowage.so.0.1.0.p"))
        self.works("test", "--seconds", "99", "kernels")
        self.assertTrue(
            [name for name in os.listdir(self.tree) if name.endswith(f"-{commit}-test-kernels.txt")],
            os.listdir(self.tree),
        )
        shutil.rmtree(self.tree + "/build-gpu")
        os.remove(self.tree + "/gpu-packages/programs.tar.xz")
        self.assertIn("run 'tools/gpu-check build' first", self.check("test").stdout)

    def test_a_build_names_its_commit(self):
        self.works("build", "90")
        self.assertEqual(self.of_bundle("commit"), self.git("describe", "--always", "--exclude", "*"))
        self.assertEqual(self.of_bundle("capability"), "90")
        self.put(self.SOURCE, "// two\n")
        self.works("build")  # for the card of this machine
        self.assertRegex(self.of_bundle("commit"), "-dirty$")

    def test_if_xz_fails_there_is_no_bundle(self):
        self.works("build", "90")
        self.put("build-gpu/tests/gpu/gpu_probe", "large" * 100000)
        for script in ("cat > /dev/null; exit 3", "exit 3", "head -c 1000; exit 3"):
            self.tool("xz", script)
            failed = self.check("build", "90")
            self.assertEqual(failed.returncode, 1, failed.stdout)
            self.assertIn("xz failed with exit status 3", failed.stdout)
            self.assertEqual(sorted(os.listdir(self.tree + "/gpu-packages")), ["capability", "commit"])

    def test_a_bundle_of_other_sources_is_refused(self):
        first = self.commit_of_new_source("// two\n")
        self.works("build", "90")
        self.runs()
        self.put("tests/gpu/other.py", "# a script\n")
        self.put("README.md", "Words.\n")
        self.commit()
        self.runs()
        self.put(self.SOURCE, "// three\n")
        self.refuses(f"the bundle is of commit {first}, the tree is ", "-dirty (in src/cuda/one.cpp): run ")
        second = self.commit_of_new_source("// three\n")
        self.refuses(f"of commit {first}, the tree is {second} (in src/cuda/one.cpp): run 'tools/gpu-check r")
        self.works("rebuild")
        self.runs()
        self.put(self.SOURCE, "// four\n")  # not committed
        self.works("rebuild")
        self.assertIn(f"commit {second}-dirty for", self.runs())
        self.put(self.SOURCE, "// five\n")
        self.refuses(f"of commit {second}-dirty, the tree is {second}-dirty (in src/cuda/one.cpp): run ")

    def commit_of_new_source(self, text):
        self.put(self.SOURCE, text)
        return self.commit()

    def test_a_bundle_of_an_unknown_commit_is_refused(self):
        self.works("build", "90")
        commit = self.of_bundle("commit")
        shutil.rmtree(self.tree + "/.git")
        self.put("other", "")
        self.git("init", "--quiet")
        other = self.commit()
        self.refuses(f"the bundle is of commit {commit}, the tree is {other}: run 'tools/gpu-check rebuild'")

    def test_rebuild_neither_configures_nor_leaves_the_bundle_old(self):
        self.works("build", "90")
        self.assertEqual([line.split()[:2] for line in self.logged()], [["meson", "setup"], ["ninja", "-k"]])
        self.put(self.SOURCE, "// two\n")
        self.tool("ninja", "printf ' of today' >> build-gpu/src/libstowage.so.0.1.0")
        self.assertIn("carry it by name", self.works("rebuild"))
        self.assertEqual(
            self.logged(),
            [
                "ninja -C build-gpu tools/stowage/stowage tests/gpu/gpu_probe tests/gpu/gpu_kernel_tests "
                "tests/gpu/gpu_trainer_tests"
            ],
        )
        self.assertRegex(self.of_bundle("commit"), "-dirty$")
        self.assertIn("the library of today", self.runs())
        self.tool("ninja", "exit 1")
        self.assertNotEqual(self.check("rebuild").returncode, 0)
        self.tool("ninja", f"echo '// three' > {self.SOURCE}")
        changed = self.check("rebuild")
        self.assertEqual(changed.returncode, 1)
        self.assertIn("the sources changed while they were built (src/cuda/one.cpp)", changed.stdout)
        os.remove(self.tree + "/gpu-packages/capability")
        self.assertIn("run 'tools/gpu-check bundle' first", self.check("rebuild").stdout)


if __name__ == "__main__":
    unittest.main(verbosity=2)
