"""Lets every system call fail, one at a time. The command reports it in one line or goes on. It loses no
saved state, and the same command can be run again."""

import errno
import os
import pathlib
import re
import shutil
import socket
import subprocess
import tempfile
import unittest

from support import DONE, FAILED, STOWAGE, CommandTest, files_of, from_scratch

FAIL_CALL = os.environ.get("FAIL_CALL", "fail_call")
NO_TRACING = 77
# The calls that fail, each with an error that no earlier call would have reported.
ERRORS = {
    "openat": errno.EMFILE,
    "read": errno.EIO,
    "pread64": errno.EIO,
    "write": errno.ENOSPC,
    "pwrite64": errno.ENOSPC,
    "fsync": errno.EIO,
    "close": errno.EIO,
    "ftruncate": errno.ENOSPC,
    "fallocate": errno.ENOSPC,
    "flock": errno.EIO,
    "fchmod": errno.EPERM,
    "getdents64": errno.EIO,
    "rename": errno.EIO,
    "renameat2": errno.EIO,
    "mkdir": errno.ENOSPC,
    "unlink": errno.EIO,
    "rmdir": errno.EIO,
}
TINY = (
    '{"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "vocab_size": 256, "n_positions": 32, '
    '"n_embd": 16, "n_layer": 1, "n_head": 2, "eos_token_id": 0}'
)


class FaultsTest(CommandTest):
    @classmethod
    def setUpClass(cls):
        # In a file system in memory, if possible: the tests sync thousands of files.
        cls.shared = pathlib.Path(
            tempfile.mkdtemp(prefix="stowage-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
        )
        cls.addClassCleanup(shutil.rmtree, cls.shared, ignore_errors=True)

    def setUp(self):
        self.folder = self.shared
        self.write("model/config.json", TINY)
        self.model = self.path("model")
        self.small = [
            "--model",
            self.model,
            "--data",
            self.text(4000),
            "--batch",
            2,
            "--seq",
            16,
            "--threads",
            1,
            "--vram",
            "16MiB",
            "--eval-batches",
            1,
        ]

    def fresh(self, before):
        """Makes the folder "in" anew: a copy of the folder `before`, or empty. The commands run in it."""
        shutil.rmtree(self.path("in"), ignore_errors=True)
        if before:
            shutil.copytree(self.path(before), self.path("in"))
        else:
            os.mkdir(self.path("in"))

    def call(self, words, call="none", n=0, error=0):
        report = self.path("report")
        result = subprocess.run(
            [
                FAIL_CALL,
                report,
                self.path("in"),
                call,
                str(n),
                str(error),
                shutil.which(STOWAGE),
                *from_scratch(list(map(str, words))),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            timeout=60,
            check=False,
            text=True,
            env={**os.environ, "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"},
        )  # LeakSanitizer needs ptrace itself
        if result.returncode == NO_TRACING:
            self.skipTest("nothing may be traced here")
        counts = dict(line.split() for line in pathlib.Path(report).read_text(encoding="utf-8").splitlines())
        self.assertNotIn("signal", counts, f"{words} {call} {n}: {result.stderr}")
        return result, {name: int(count) for name, count in counts.items()}

    def each_fault(self, words, check, before=None, leave=()):
        """Runs a command once for each of its calls, and lets that call fail. Then calls check(whether it
        succeeded)."""
        self.fresh(before)
        result, counts = self.call(words)
        self.assertEqual(result.returncode, DONE, result.stderr)
        self.assertGreater(sum(counts.values()), 5)
        for call, count in counts.items():
            for n in range(
                1, count + 1 if call not in leave else 1, 1 + count // 50
            ):  # if a call is made many times, only some of them fail
                with self.subTest(call=call, n=n):
                    self.fresh(before)
                    result, _ = self.call(words, call, n, ERRORS[call])
                    if result.returncode != DONE:
                        self.assertEqual(result.returncode, FAILED, result.stderr)
                        lines = result.stderr.splitlines()
                        self.assertEqual(len(lines), 1, result.stderr)
                        self.assertTrue(lines[0].startswith("stowage: error: "), lines)
                        self.assertIn(self.path("in"), lines[0])
                        self.assertIn(os.strerror(ERRORS[call]), lines[0])
                    check(result.returncode == DONE)

    def leftovers(self):
        return [name for name in files_of(self.path("in")) if ".tmp." in name]

    def test_train(self):
        words = ["train", *self.small, "--steps", 2, "--out", self.path("in/run")]
        self.fresh(None)
        self.run_command(*words)
        whole = self.weights("in/run")

        def check(is_done):
            if not is_done:
                self.assertEqual(self.leftovers(), [])
                saved = os.path.exists(self.path("in/run/checkpoint.stw"))
                self.run_command(*words, *(["--resume", self.path("in/run")] if saved else []))
            self.assertEqual(self.weights("in/run"), whole)

        self.each_fault(words, check, leave=("close",))

    def test_resume(self):
        self.run_command(
            "train", *self.small, "--steps", 1, "--schedule", "constant", "--out", self.path("base/run")
        )
        words = ["train", "--resume", self.path("in/run"), "--data", self.path("text.txt"), "--steps", 2]
        self.fresh("base")
        old = self.weights("in/run")
        self.run_command(*words)
        new, config = self.weights("in/run"), self.read("in/run", "config.json")

        def check(is_done):
            self.assertIn(self.weights("in/run"), (old, new))
            self.assertEqual(self.read("in/run", "config.json"), config)
            if not is_done:
                self.run_command(*words)
            self.assertEqual(self.weights("in/run"), new)
            self.assertEqual([line["step"] for line in self.metrics("in/run") if "loss" in line], [1, 2])

        self.each_fault(words, check, "base", leave=("close",))

    def test_overwrite(self):
        self.run_command("train", *self.small, "--steps", 1, "--out", self.path("older/run"))
        words = ["train", *self.small, "--steps", 2, "--seed", 5, "--overwrite", "--out", self.path("in/run")]
        self.fresh("older")
        old = (self.weights("in/run"), (self.folder / "in/run/checkpoint.stw").read_bytes())
        self.run_command(*words)
        new = self.weights("in/run")

        def check(is_done):
            # The old run stays complete until the new one has saved.
            saved = self.folder / "in/run/checkpoint.stw"
            if not saved.exists() or saved.read_bytes() == old[1]:
                self.assertLessEqual(set(old), set(files_of(self.path("in")).values()))
            if not is_done:
                self.run_command(*words)
            self.assertEqual(self.weights("in/run"), new)

        self.each_fault(words, check, "older", leave=("close",))

    def test_a_call_interrupted_by_a_signal_is_repeated(self):
        """A call that fails with EINTR is made again."""
        self.run_command(
            "train", *self.small, "--steps", 1, "--schedule", "constant", "--out", self.path("before/run")
        )
        words = ["train", "--resume", self.path("in/run"), "--data", self.path("text.txt"), "--steps", 2]
        self.fresh("before")
        _, counts = self.call(words)
        new = self.weights("in/run")
        for name in ("openat", "read", "pread64", "write", "pwrite64", "fsync", "close", "flock"):
            for n in range(1, counts.get(name, 0) + 1, 1 + counts.get(name, 0) // 12):
                with self.subTest(call=name, n=n):
                    self.fresh("before")
                    result, _ = self.call(words, name, n, errno.EINTR)
                    self.assertEqual(result.returncode, DONE, result.stderr)
                    self.assertEqual(self.weights("in/run"), new)

    def test_file_systems_without_locks(self):
        """A lock file replaces the lock and keeps other runs out."""
        words, lock = (
            ["train", *self.small, "--steps", 2, "--out", self.path("in/run")],
            self.path("in/run/.stowage-lock"),
        )
        for error in (errno.ENOLCK, errno.EOPNOTSUPP):
            self.fresh(None)
            result, _ = self.call(words, "flock", 1, error)
            self.assertEqual(result.returncode, DONE, result.stderr)
            self.assertIn("has no locks", result.stderr)
            self.assertFalse(os.path.exists(lock))
        gone = subprocess.Popen(["true"])
        gone.wait()
        for holder, is_free in (
            (f"{socket.gethostname()} {gone.pid}\n", True),
            (f"{socket.gethostname()} 1\n", False),
            ("elsewhere 77\n", False),
            ("", False),
        ):
            self.fresh(None)
            self.write("in/run/.stowage-lock", holder)
            result, _ = self.call(words, "flock", 1, errno.ENOLCK)
            self.assertEqual(result.returncode, DONE if is_free else FAILED, result.stderr)
            if not is_free:
                self.assertIn(f"another run is writing into this folder, according to {lock}", result.stderr)
                self.assertEqual(pathlib.Path(lock).read_text(encoding="utf-8"), holder)

    def test_data_that_cannot_be_read(self):
        """The message names the error of the disk. It does not ask for a shorter --seq."""
        self.fresh(None)
        self.write("in/ids.bin", bytes(i % 200 if i % 2 == 0 else 0 for i in range(8000)))
        words = [
            "train",
            *self.small[:2],
            "--data",
            self.path("in/ids.bin"),
            *self.small[4:],
            "--steps",
            1,
            "--out",
            self.path("out"),
            "--overwrite",
        ]
        _, counts = self.call(words)
        for n in range(1, counts["pread64"] + 1):
            result, _ = self.call(words, "pread64", n, errno.EIO)
            # The command succeeds if only the check for a saved web page failed.
            self.assertIn(result.returncode, (DONE, FAILED))
            self.assertEqual(os.strerror(errno.EIO) in result.stderr, result.returncode == FAILED)
            self.assertNotIn("--seq", result.stderr)

    def test_merge(self):
        self.run_command("train", *self.small, "--steps", 1, "--out", self.path("whole"))
        self.run_command(
            "train",
            "--model",
            self.path("whole"),
            *self.small[2:],
            "--lora",
            2,
            "--steps",
            1,
            "--out",
            self.path("adapters"),
        )
        self.write("adapters/tokenizer_config.json", "{}")
        words = ["merge", "--model", self.path("adapters"), "--out", self.path("in/merged")]
        self.fresh(None)
        self.run_command(*words)
        whole = files_of(self.path("in"))

        def check(is_done):
            if not is_done:
                self.assertLessEqual(
                    {pathlib.Path(name).name for name in files_of(self.path("in"))},
                    {"tokenizer_config.json", "README.md"},
                )
                self.run_command(*words)
            self.assertEqual(files_of(self.path("in")), whole)

        self.each_fault(words, check)

    def test_files_that_are_asked_for(self):
        self.write("before/page.html", "old")
        words = [
            "plan",
            "--model",
            self.model,
            "--batch",
            2,
            "--seq",
            16,
            "--vram",
            "16MiB",
            "--threads",
            1,
            "--html",
            self.path("in/page.html"),
        ]
        self.fresh("before")
        self.run_command(*words)
        new = self.read("in", "page.html")

        def check(is_done):
            self.assertIn(self.read("in", "page.html"), (new,) if is_done else ("old", new))
            self.assertEqual(self.leftovers(), [])

        self.each_fault(words, check, "before")

    def test_locks(self):
        """A file system may have no locks, and a signal may interrupt the call. Any other error is
        reported."""
        words = ["train", *self.small, "--steps", 1, "--out", self.path("in/run")]
        for error in (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINTR):
            self.fresh(None)
            self.assertEqual(self.call(words, "flock", 1, error)[0].returncode, DONE)
        for error in (errno.EIO, errno.ENOMEM):
            self.fresh(None)
            result, _ = self.call(words, "flock", 1, error)
            self.assertEqual(result.returncode, FAILED)
            self.assertIn(f"in/run: cannot lock the folder: {os.strerror(error)}", result.stderr)

    def test_a_step_whose_line_cannot_be_written_stops_the_run(self):
        words = ["train", *self.small, "--steps", 40, "--eval-every", 0, "--out", self.path("in/run")]
        self.fresh(None)
        _, counts = self.call(words)
        whole = self.weights("in/run")
        for n in range(counts["write"] // 2, counts["write"]):
            self.fresh(None)
            result, _ = self.call(words, "write", n, errno.ENOSPC)
            if "metrics.jsonl" in result.stderr:
                break
        found = re.search(
            r"metrics.jsonl: cannot write: No space left on device; saved after batch (\d+), "
            r"--resume .* continues from there$",
            result.stderr,
        )
        self.assertEqual(
            [line["step"] for line in self.metrics("in/run")], list(range(1, int(found[1]) + 1))
        )  # there was room for these lines after the save
        self.assertLess(int(found[1]), 40)
        self.run_command(*words, "--resume", self.path("in/run"))
        self.assertEqual(
            [line["step"] for line in self.metrics("in/run") if "loss" in line], list(range(1, 41))
        )
        self.assertEqual(self.weights("in/run"), whole)


if __name__ == "__main__":
    unittest.main()
