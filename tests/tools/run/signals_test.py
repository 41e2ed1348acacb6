"""Signals in each phase of the command: it ends soon, with the signal's exit code, and leaves complete
files."""

import os
import pty
import signal
import subprocess
import time
import unittest

from support import SMALL, STOWAGE, CommandTest

# A step that takes some seconds, in four micro-steps.
LONG = [
    "--model",
    "nano",
    "--batch",
    "1024",
    "--seq",
    "64",
    "--micro-batch",
    "256",
    "--vram",
    "8GiB",
    "--threads",
    "2",
    "--eval-batches",
    "1",
]
MOST = 5  # seconds from the signal to the end on a busy machine; on an idle one it takes 0.1


class SignalsTest(CommandTest):
    def start(self, *words):
        process = subprocess.Popen(
            [STOWAGE, *map(str, words)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.stdout.close)
        self.addCleanup(lambda: process.poll() is None and process.kill())
        return process

    def end(self, process, number):
        """Sends the signal and waits for the end, at most MOST seconds. Returns stdout and stderr."""
        begin = time.monotonic()
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
        self.assertLess(time.monotonic() - begin, MOST)
        return out.decode(), err.decode()

    def wait_for_line(self, process, word):
        for line in process.stdout:
            if line.decode().startswith(word):
                return
        self.fail(f"no line that begins with {word}: {process.stderr.read().decode()}")

    def test_within_a_step(self):
        data = self.text(400000)
        for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
            out = self.path(f"run{code}")
            process = self.start("train", *LONG, "--data", data, "--steps", 2, "--out", out)
            self.wait_for_line(process, "memory")
            while not os.path.exists(os.path.join(out, "metrics.jsonl")):  # the run has begun
                time.sleep(0.01)
            time.sleep(0.5)
            printed, err = self.end(process, number)
            self.assertEqual(process.returncode, code, err)
            self.assertIn("stopped after 0 of 2 batches and saved", printed)
            self.assertIn("stopping this step", err)
            self.assertRegex(
                self.run_command("inspect", os.path.join(out, "checkpoint.stw")).stdout, r"steps +0\n"
            )
            self.assertEqual([name for name in os.listdir(out) if ".tmp." in name], [])

    def test_an_interrupted_step_is_repeated(self):
        words = [
            "train",
            *SMALL,
            "--data",
            self.text(),
            "--lr",
            "1e-3",
            "--warmup",
            "2",
            "--schedule",
            "constant",
        ]
        self.run_command(*words, "--steps", 40, "--out", self.path("whole"))
        process = self.start(*words, "--steps", 40, "--out", self.path("run"))
        while not os.path.exists(self.path("run/metrics.jsonl")):
            time.sleep(0.002)
        time.sleep(0.05)
        self.end(process, signal.SIGINT)
        self.assertIn(process.returncode, (0, 130))
        self.run_command(*words, "--steps", 40, "--resume", self.path("run"))
        weights = lambda run: (self.folder / run / "model.safetensors").read_bytes()
        self.assertEqual(weights("run"), weights("whole"))

    def test_before_a_run_and_in_other_commands(self):
        data = self.text(2000000)
        for words in (
            [
                "plan",
                "--model",
                "qwen2.5-7b",
                "--device",
                "rtx4090",
                "--batch",
                64,
                "--seq",
                4096,
                "--vram",
                "24GiB",
                "--host-memory",
                "200GiB",
                "--frontier",
            ],
            [
                "eval",
                "--model",
                "nano",
                "--data",
                data,
                "--seq",
                64,
                "--batch",
                64,
                "--threads",
                2,
                "--eval-batches",
                100000,
            ],
        ):
            process = self.start(*words)
            time.sleep(0.3)
            self.assertIsNone(process.poll(), words)
            _, err = self.end(process, signal.SIGINT)
            self.assertEqual(
                (process.returncode, [line for line in err.splitlines() if "warning" not in line]),
                (130, []),
                words,
            )

    def test_a_pipe_without_a_reader(self):
        process = subprocess.run(
            f"'{STOWAGE}' plan --model nano --vram 64MiB --threads 2 --json | true; echo ${{PIPESTATUS[0]}}",
            shell=True,
            executable="/bin/bash",
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        self.assertIn(process.stdout, ("141\n", "0\n"))  # 0: the pipe held the whole output
        self.assertEqual(process.stderr, "")

    def test_a_terminal_shows_the_progress_of_a_step(self):
        controller, terminal = pty.openpty()
        process = subprocess.Popen(
            [STOWAGE, "train", *LONG, "--data", self.text(400000), "--steps", "2", "--out", self.path("run")],
            stdin=subprocess.DEVNULL,
            stdout=terminal,
            stderr=terminal,
            env={**os.environ, "TERM": "xterm"},
        )
        os.close(terminal)
        shown = b""
        try:
            while piece := os.read(controller, 4096):
                shown += piece
                if b"step 1/2" in shown and b"micro-step 2 of 4" in shown and process.poll() is None:
                    process.send_signal(signal.SIGINT)
                    break
            while piece := os.read(controller, 4096):
                shown += piece
        except OSError:  # the other end is closed
            pass
        os.close(controller)
        self.assertEqual(process.wait(timeout=60), 130)
        self.assertRegex(shown, rb"\rstep 1/2 +[0-9]+ %  micro-step 1 of 4")
        self.assertRegex(shown, rb"\rstep 1/2 +[0-9]+ %  micro-step 2 of 4")


if __name__ == "__main__":
    unittest.main()
