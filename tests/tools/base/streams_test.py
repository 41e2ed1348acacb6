"""Standard streams that are closed or full, or that have no reader: exit codes stay the same, and no file
gets the descriptor of a closed stream."""

import json
import os
import subprocess
import unittest

from support import DOES_NOT_FIT, DONE, FAILED, SMALL, STOWAGE, USAGE, CommandTest

NANO = ["plan", "--model", "nano", "--vram"]
FULL = "/dev/full"


class StreamsTest(CommandTest):
    def shell(self, words, redirect, expect, **more):
        """The command in a shell, which can close a stream."""
        line = f'"$0" "$@" {redirect}'
        result = subprocess.run(
            ["sh", "-c", line, STOWAGE, *map(str, words)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            timeout=600,
            check=False,
            **more,
        )
        self.assertEqual(result.returncode, expect, f"{words} {redirect}\n{result.stderr.decode()}")
        return result

    def test_a_message_that_cannot_be_written_changes_no_exit_code(self):
        bad = self.write("bad.csv", "id,lower,upper,size\n1,4,4,9\n")
        for redirect in ("2>&-", f"2>{FULL}"):
            self.shell([*NANO, "1KiB"], redirect, DOES_NOT_FIT)
            self.shell([*NANO, "none"], redirect, USAGE)
            self.shell(["inspect", self.path("none")], redirect, FAILED)
            self.shell(["pack", bad], redirect, DONE)
            self.shell([*NANO, "900TiB"], redirect, DONE)  # with a warning

    def test_a_log_that_cannot_be_written_ends_no_run(self):
        words = [
            "train",
            *SMALL,
            "--data",
            self.text(),
            "--steps",
            40,
            "--precision",
            "fp16",
            "--loss-scale",
            2**40,
        ]
        for redirect in ("2>&-", f"2>{FULL}"):
            out = redirect.replace("/", "")
            self.shell([*words, "--out", self.path(out)], redirect, DONE)
            self.assertTrue(
                any(line.get("skip_reason") == "not_finite" for line in self.metrics(out))
            )  # which is logged

    def test_an_answer_that_cannot_be_given_is_a_failure(self):
        for words in (
            ["--help"],
            ["plan", "--help"],
            ["--version"],
            [*NANO, "64MiB"],
            [*NANO, "64MiB", "--json"],
            ["devices"],
            ["generate", "--model", "nano", "--tokens", 3],
            ["inspect", "nano"],
        ):
            for redirect in (">&-", f">{FULL}", "<&- >&-"):
                result = self.shell(words, redirect, FAILED)
                self.assertIn(
                    b"standard output: cannot write" if words[0] in ("--help", "plan") else b"stowage: error",
                    result.stderr,
                )
        self.shell([*NANO, "1KiB", "--json"], f">{FULL}", DOES_NOT_FIT)

    def test_no_file_gets_the_number_of_a_closed_stream(self):
        words = ["train", *SMALL, "--data", self.text(), "--steps", 4, "--out"]
        for number, redirect in enumerate(("<&- >&-", ">&- 2>&-", "<&- >&- 2>&-")):
            out = f"run{number}"
            self.shell([*words, self.path(out)], redirect, FAILED)
            self.assertEqual([line["step"] for line in self.metrics(out) if "loss" in line], [1, 2, 3, 4])
            json.loads((self.folder / out / "plan.json").read_text())
        self.shell(["pack", "-"], "<&-", FAILED)

    def test_a_run_outlives_its_reader(self):
        process = subprocess.Popen(
            [
                STOWAGE,
                "train",
                *SMALL,
                "--data",
                self.text(),
                "--steps",
                "60",
                "--eval-every",
                "1",
                "--out",
                self.path("run"),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        process.stdout.readline()
        process.stdout.close()
        err = process.stderr.read()
        process.stderr.close()
        self.assertEqual(process.wait(timeout=600), FAILED)
        self.assertEqual(err, b"stowage: error: standard output: cannot write\n")
        self.assertEqual(len([line for line in self.metrics("run") if "loss" in line]), 60)
        for name in ("checkpoint.stw", "model.safetensors", "loss.svg"):
            self.assertTrue(os.path.exists(self.path("run/" + name)), name)


if __name__ == "__main__":
    unittest.main()
