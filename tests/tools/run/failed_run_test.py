"""Runs that fail or get a signal: the steps until then are saved, and the message about it is true."""

import fcntl
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
import unittest

from support import DOES_NOT_FIT, FAILED, SMALL, STOWAGE, CommandTest, count_in, files_of

MANY = 1000000


class FailedRunTest(CommandTest):
    def start(self, out, *words, small=SMALL):
        process = subprocess.Popen(
            [STOWAGE, *map(str, ["train", *small, "--data", self.text(), "--out", self.path(out), *words])],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.addCleanup(
            lambda: (
                process.poll() is None and process.kill(),
                process.stdout.close(),
                process.stderr.close(),
                process.wait(),
            )
        )
        path = self.folder / out / "metrics.jsonl"
        for _ in range(6000):
            if process.poll() is not None or count_in(path, b"\n") >= 3:
                return process
            time.sleep(0.005)
        self.fail("the run does not get on")

    def steps(self, out):
        return [line["step"] for line in self.metrics(out) if "loss" in line]

    def check_saved(self, out, error):
        """The failure is one line that names the checkpoint, which has the last step."""
        steps = self.steps(out)[-1]
        self.assertEqual(len([line for line in error.splitlines() if line]), 1, error)
        self.assertIn(
            f"saved after batch {steps}, --resume {self.path(out)}",
            error.replace(",", "", 1) if steps > 999 else error,
        )
        inspected = self.run_command("inspect", self.path(out + "/checkpoint.stw")).stdout
        self.assertRegex(inspected, rf"steps +{steps:,}\n")
        return steps

    def test_data_that_is_truncated_during_a_run(self):
        process = self.start("run", "--steps", MANY, "--warmup", 5)
        os.truncate(self.path("text.txt"), 100)
        _, error = process.communicate(timeout=60)
        self.assertEqual(process.returncode, FAILED)
        self.assertIn("text.txt", error.decode())
        steps = self.check_saved("run", error.decode())
        self.run_command(
            "train",
            *SMALL,
            "--data",
            self.text(),
            "--steps",
            steps + 2,
            "--warmup",
            5,
            "--resume",
            self.path("run"),
        )
        self.assertEqual(self.steps("run"), list(range(1, steps + 3)))

    def test_a_step_that_stops_the_run(self):
        result = self.train(
            "run",
            "--steps",
            9,
            "--lr",
            "1e6",
            "--weight-decay",
            "1e6",
            "--clip",
            0,
            "--warmup",
            0,
            "--non-finite",
            "stop",
            expect=FAILED,
        )
        self.assertLess(self.check_saved("run", result.stderr), 9)

    def test_files_that_may_not_grow(self):
        """Whichever file reaches the limit first, SIGXFSZ does not end the run without a message."""

        def limited(size):
            return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

        self.train("run", "--steps", 3)
        kept = files_of(self.path("run"))
        result = subprocess.run(
            [STOWAGE, "train", "--resume", self.path("run"), "--steps", "9"],
            preexec_fn=limited(1 << 20),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            check=False,
        )
        self.assertEqual(result.returncode, FAILED)
        self.assertIn(b"checkpoint.stw", result.stderr)
        self.assertIn(b"File too large", result.stderr)
        self.assertEqual(set(files_of(self.path("run"))), set(kept))
        self.assertEqual(
            (self.folder / "run/checkpoint.stw").read_bytes(), kept[self.path("run/checkpoint.stw")]
        )
        result = subprocess.run(
            [STOWAGE, "train", *SMALL, "--data", self.text(), "--out", self.path("other"), "--steps", "99"],
            preexec_fn=limited(4096),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            check=False,
        )
        self.assertEqual(result.returncode, FAILED)
        self.assertIn(b"metrics.jsonl: cannot write: File too large", result.stderr)

    def test_nothing_is_saved_where_nothing_was_trained(self):
        result = self.train("run", "--steps", 9, "--z-loss", "1e38", "--non-finite", "stop", expect=FAILED)
        self.assertNotIn("saved", result.stderr)
        self.assertFalse(os.path.exists(self.path("run/checkpoint.stw")))

    def test_the_last_evaluation_may_fail(self):
        process = self.start("run", "--steps", 400, "--eval-every", 0, "--warmup", 5)
        whole = (self.folder / "text.txt").read_bytes()
        os.truncate(self.path("text.txt"), len(whole) * 9 // 10)  # the part that is trained on stays
        _, error = process.communicate(timeout=60)
        self.assertEqual(process.returncode, FAILED, error)
        self.assertEqual(self.steps("run")[-1], 400)
        self.assertRegex(self.run_command("inspect", self.path("run/checkpoint.stw")).stdout, r"steps +400\n")

    def test_the_last_evaluation_may_be_killed(self):
        process = self.start("run", "--steps", 5, "--eval-batches", MANY, small=SMALL[:-2])
        for _ in range(6000):
            if os.path.exists(self.path("run/checkpoint.stw")):
                break
            time.sleep(0.005)
        self.assertIsNone(process.poll())
        process.kill()
        process.wait()
        self.assertRegex(self.run_command("inspect", self.path("run/checkpoint.stw")).stdout, r"steps +5\n")

    def test_a_terminal_that_goes_away(self):
        before = signal.signal(signal.SIGHUP, signal.SIG_DFL)  # also under nohup
        try:
            process = self.start("run", "--steps", MANY, "--warmup", 5)
        finally:
            signal.signal(signal.SIGHUP, before)
        process.send_signal(signal.SIGSTOP)
        process.send_signal(signal.SIGHUP)
        process.send_signal(signal.SIGCONT)
        for _ in range(50):  # the kernel, the shell and others may all send it
            if process.poll() is None:
                process.send_signal(signal.SIGHUP)
            time.sleep(0.001)
        out, error = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 129, error)
        self.assertIn(b"stopped after", out)
        self.assertTrue(os.path.exists(self.path("run/checkpoint.stw")))

    def test_nohup(self):
        before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
        try:
            process = self.start("run", "--steps", 300)
        finally:
            signal.signal(signal.SIGHUP, before)
        process.send_signal(signal.SIGHUP)
        out, error = process.communicate(timeout=60)
        self.assertEqual((process.returncode, error), (0, b""))
        self.assertIn(b"trained     300 steps", out)

    def test_ended_at_once(self):
        for out, words, says in (
            ("none", [], b"nothing was saved yet"),
            ("some", ["--save-every", 1], b"last complete checkpoint is unharmed"),
        ):
            process = self.start(out, "--steps", MANY, *words)
            process.send_signal(signal.SIGSTOP)
            process.send_signal(signal.SIGINT)
            process.send_signal(signal.SIGTERM)  # both signals are pending before the step ends
            process.send_signal(signal.SIGCONT)
            _, error = process.communicate(timeout=60)
            self.assertIn(process.returncode, (130, 143), error)
            self.assertIn(says, error)
            self.assertEqual(os.path.exists(self.path(out + "/checkpoint.stw")), out == "some")

    def test_one_run_at_a_time_in_a_folder(self):
        process = self.start("run", "--steps", MANY)
        data = self.path("text.txt")  # the helpers must not write it again while the run reads it
        for words in ([], ["--overwrite"]):
            self.refused(
                "train",
                *SMALL,
                "--data",
                data,
                "--steps",
                2,
                "--out",
                self.path("run"),
                *words,
                says=[self.path("run"), "another run"],
            )
        process.kill()  # the lock ends with the process
        process.wait()
        self.train("run", "--steps", 2, data=data)
        self.assertEqual(self.steps("run"), [1, 2])
        descriptor = os.open(self.path("run"), os.O_RDONLY)
        self.addCleanup(os.close, descriptor)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        self.refused(
            "train", *SMALL, "--data", data, "--steps", 3, "--resume", self.path("run"), says=["another run"]
        )
        self.run_command("inspect", self.path("run"))

    def test_a_replaced_run_is_kept_until_the_new_run_saves(self):
        self.train("run", "--steps", 1)
        before = files_of(self.path("run"))
        data, aside = self.path("text.txt"), self.path("run/replaced-run")
        for _ in range(2):  # the second time it replaces a run that never saved
            process = self.start("run", "--steps", MANY, "--overwrite")
            process.kill()
            process.wait()
            os.unlink(self.path("run/metrics.jsonl"))  # start() waits for the lines of the next run
            kept = files_of(aside)
            self.assertEqual(
                {name.replace("/replaced-run", ""): content for name, content in kept.items()}, before
            )
            self.assertFalse(os.path.exists(self.path("run/README.md")))  # the card was moved too
        words = ["train", *SMALL, "--data", data, "--steps", 3]
        self.refused(*words, "--out", self.path("run"), says=["replaced-run", "--overwrite"])
        self.refused(*words, "--resume", self.path("run"), says=["found no", "replaced-run"])
        self.refused(
            *words, "--resume", aside, "--out", self.path("run"), "--overwrite", says=["--resume", "--out"]
        )
        self.assertEqual(files_of(aside), kept)
        self.run_command("train", "--resume", aside, "--steps", 3, "--out", self.path("goes-on"))
        self.assertEqual(self.steps("goes-on"), [1, 2, 3])
        # A run that is being resumed from there keeps its folder.
        descriptor = os.open(aside, os.O_RDONLY)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        output = self.train("run", "--steps", 1, "--overwrite", data=data).stdout
        self.assertIn(
            f"replacing   an earlier run, which is kept in {aside} until this run has saved\n", output
        )
        self.assertEqual(files_of(aside), kept)
        self.refused(*words, "--out", self.path("run"), "--overwrite", says=[aside, "another run"])
        os.close(descriptor)
        self.write("run/replaced-run/notes.txt", "mine")
        self.train("run", "--steps", 3, "--overwrite", data=data)
        self.assertEqual(os.listdir(aside), ["notes.txt"])
        os.unlink(aside + "/notes.txt")
        self.train("run", "--steps", 1, "--overwrite", data=data)
        self.assertEqual(sorted(files_of(self.path("run"))), sorted(before))
        self.assertFalse(os.path.exists(aside))

    def test_a_kill_while_a_run_is_moved_aside(self):
        """After a kill at any moment, the replaced run can be resumed or replaced, and is complete in one
        place."""
        self.train("older", "--steps", 1, "--seed", 5)
        self.train("run", "--steps", 2)
        run, data = self.folder / "run", self.path("text.txt")
        aside, moving = run / "replaced-run", run / "replaced-run.moving"
        names = [
            "checkpoint.stw",
            "model.safetensors",
            "config.json",
            "plan.json",
            "settings.json",
            "metrics.jsonl",
            "loss.svg",
            "README.md",
        ]
        self.assertEqual(sorted(os.listdir(run)), sorted(names))
        shutil.copytree(self.path("older"), aside)  # left by a run that was killed right after it saved
        self.write("run/replaced-run/notes.txt", "mine")
        before = files_of(run)
        shutil.copytree(run, self.path("whole"))
        self.run_command("train", "--resume", self.path("whole"), "--steps", 4)

        def stop(moved, cleared=0, others=False, whole=False):
            """Makes the state that a process leaves when it is killed after so many steps of the move."""
            shutil.rmtree(run)
            for path, content in before.items():
                self.write(path, content)
            moving.mkdir()
            for name in names[:moved]:
                os.rename(run / name, moving / name)
            for name in names[:cleared]:
                os.unlink(aside / name)
            if others:
                os.rename(aside / "notes.txt", moving / "notes.txt")
            if whole:
                os.rename(moving, aside)

        everything = len(names)
        states = [(moved,) for moved in range(everything + 1)] + [
            (everything, 1),
            (everything, everything),
            (everything, everything, True),
        ]
        old = {name: before[str(run / name)] for name in names}
        for state in states:
            with self.subTest(state=state):
                # A new run is refused there, and no file is missing.
                stop(*state)
                self.refused(
                    "train",
                    *SMALL,
                    "--data",
                    data,
                    "--steps",
                    3,
                    "--out",
                    run,
                    says=["run/checkpoint.stw exists already"],
                )
                self.assertFalse(moving.exists())
                self.assertEqual({name: (run / name).read_bytes() for name in names}, old)
                self.assertEqual((aside / "notes.txt").read_text(), "mine")
                # A run that replaces it keeps it until its own first save.
                stop(*state)
                self.refused(
                    "train",
                    *SMALL,
                    "--data",
                    data,
                    "--steps",
                    3,
                    "--out",
                    run,
                    "--overwrite",
                    "--z-loss",
                    "1e38",
                    "--non-finite",
                    "stop",
                    says=["not finite"],
                )
                self.assertFalse(moving.exists())
                self.assertEqual({name: (aside / name).read_bytes() for name in names}, old)
                self.assertEqual((aside / "notes.txt").read_text(), "mine")
        for state in ((4,), (everything, everything, True)):
            stop(*state)
            self.run_command("train", "--resume", run, "--steps", 4)
            self.assertEqual(self.weights("run"), self.weights("whole"))
        stop(everything, everything, True, whole=True)
        self.refused(
            "train", *SMALL, "--data", data, "--steps", 3, "--out", run, says=["replaced-run", "never saved"]
        )

        stop(3)
        half = files_of(run)
        descriptor = os.open(run, os.O_RDONLY)  # as if the process were still moving
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        self.refused("train", "--resume", run, says=["another run"])
        self.refused(
            "train", *SMALL, "--data", data, "--steps", 3, "--out", run, "--overwrite", says=["another run"]
        )
        os.close(descriptor)
        self.assertEqual(files_of(run), half)
        self.write("run/config.json", "mine too")
        half = files_of(run)
        self.refused(
            "train",
            "--resume",
            run,
            says=["replaced-run.moving/config.json", "run/config.json: move one of them away"],
        )
        self.assertEqual(files_of(run), half)

    def test_the_files_of_an_unfinished_start_are_recognised(self):
        """The plan marks them: it is written first and removed last."""
        self.train("run", "--steps", 1)
        for name in ("checkpoint.stw", "model.safetensors", "config.json", "loss.svg"):
            os.unlink(self.path("run") + "/" + name)
        os.makedirs(self.path("run/loss.svg/in"))  # a folder that cannot be removed
        self.refused(
            "train",
            *SMALL,
            "--data",
            self.text(),
            "--steps",
            1,
            "--out",
            self.path("run"),
            "--overwrite",
            says=["loss.svg", "cannot remove"],
        )
        self.assertTrue(os.path.exists(self.path("run/plan.json")))
        shutil.rmtree(self.path("run/loss.svg"))
        self.train("run", "--steps", 1)

    def test_available_memory_must_hold_offloaded_parameters_too(self):
        """On a CPU, host memory is the same memory."""
        plan = self.plan(
            "--model", "qwen2.5-3b", "--batch", 1, "--seq", 8, "--vram", "4GiB", "--host-memory", "100GiB"
        )
        self.assertGreater(plan["bytes"]["host"], 4 << 30)
        data = self.write("ids.bin", bytes(40000))
        limited = [
            sys.executable,
            "-c",
            "import os, resource, sys; resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30)); "
            "os.execv(sys.argv[1], sys.argv[1:])",
            STOWAGE,
        ]
        result = subprocess.run(
            [
                *limited,
                "train",
                "--model",
                "qwen2.5-3b",
                "--data",
                data,
                "--batch",
                "1",
                "--seq",
                "8",
                "--steps",
                "1",
                "--eval-batches",
                "0",
                "--vram",
                "4GiB",
                "--host-memory",
                "100GiB",
                "--out",
                self.path("none"),
            ],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            text=True,
        )
        self.assertEqual(result.returncode, DOES_NOT_FIT, result.stderr)
        self.assertRegex(
            result.stderr, r"offloads to the same memory, takes \d.* but only .* are free on the device cpu"
        )
        self.assertFalse(os.path.exists(self.path("none")))

    def test_a_run_without_a_step(self):
        result = self.train("run", "--steps", 3, "--z-loss", "1e38", expect=FAILED)
        self.assertIn("no step was applied: all 3 batches were skipped", result.stderr)
        self.assertIn("not finite", result.stderr)


if __name__ == "__main__":
    unittest.main()
