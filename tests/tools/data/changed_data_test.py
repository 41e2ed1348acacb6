"""A run whose data changes holds out the same texts again."""

import json
import pathlib
import random

from support import FAILED, SMALL, CommandTest


def pair(i):
    return {"prompt": f"say {i:03} ", "chosen": f"yes {i * 7 % 100}", "rejected": f"no {i * 3 % 50}"}


KINDS = {
    "label": (lambda i: {"text": f"ship {i:03} sails", "label": "ab"[i % 2]}, ()),
    "labels": (lambda i: {"text": f"ship {i:03} sails", "labels": [["a"], ["a", "b"], []][i % 3]}, ()),
    "number": (
        lambda i: {"text": f"ship {i:03} sails", "label": i * 37 % 100 / 10},
        ("--task", "number"),
    ),
    "tags": (lambda i: {"tokens": ["ship", f"{i:03}"], "tags": ["O", ["B-X", "B-Y"][i % 2]]}, ()),
    "example": (
        lambda i: {"prompt": f"count {i:03}", "completion": f" is {i * 7 % 100}"},
        ("--document-end", 0),
    ),
    "pair": (pair, ("--preference", "simpo", "--document-end", 0)),
}


class ChangedDataTest(CommandTest):
    def lines(self, rows):
        return self.write("x.jsonl", "".join(json.dumps(row) + "\n" for row in rows))

    def resume(self, steps, *more):
        result = self.run_command("train", "--resume", self.path("run"), "--steps", steps, *more)
        return [line.replace(f"{self.folder}/", "") for line in result.stderr.splitlines()]

    def evaluated(self, *more):
        words = ("eval", "--model", self.path("run"), "--data", self.path("x.jsonl"))
        return json.loads(self.run_command(*words, *more, "--json").stdout)

    def test_the_same_texts_are_held_out_again(self):
        for kind, (row, flags) in KINDS.items():
            with self.subTest(kind):
                rows = [row(i) for i in range(60)]
                data = self.lines(rows)
                words = ["train", *SMALL, "--steps", 2, "--data", data, "--out", self.path("run")]
                self.run_command(*words, "--overwrite", *flags)
                held_out = self.read("run", "held-out.txt").splitlines()
                self.assertTrue(4 <= len(held_out) <= 8, held_out)
                before = self.evaluated()
                # Others are added, the order changes, and one that was trained on goes.
                rows += [row(i) for i in range(60, 100)]
                random.Random(1).shuffle(rows)
                self.lines(rows)
                after = self.evaluated()
                self.assertAlmostEqual(after["eval_loss"], before["eval_loss"], delta=1e-5)
                warnings = self.resume(3)
                self.assertEqual(
                    warnings,
                    [
                        "stowage: warning: x.jsonl: gives other tokens than the run in run was trained on, "
                        "so the result is not that of an uninterrupted run",
                        f"stowage: warning: x.jsonl: has {len(held_out)} of the {len(held_out)} texts that "
                        "the run held out; they are held out again",
                    ],
                )
                self.assertEqual(self.read("run", "held-out.txt").splitlines(), held_out)
                last = self.metrics("run")[-1]["eval_loss"]
                self.assertAlmostEqual(self.evaluated()["eval_loss"], last, delta=1e-5)
                # Now this is the data of the run.
                self.assertEqual(self.resume(4), [])
                self.assertEqual(self.read("run", "held-out.txt").splitlines(), held_out)

    def test_other_data(self):
        row = KINDS["label"][0]
        data = self.lines([row(i) for i in range(60)])
        self.run_command("train", *SMALL, "--steps", 2, "--data", data, "--out", self.path("run"))
        held_out = self.read("run", "held-out.txt").splitlines()
        other = self.write("y.jsonl", "".join(json.dumps(row(i)) + "\n" for i in range(100, 160)))
        warnings = self.resume(3, "--data", other)
        self.assertIn("y.jsonl: gives other tokens than the run in run was trained on", warnings[0])
        self.assertIn(
            "y.jsonl: a tenth of it is held out now, and the run may have been trained on parts of that "
            "tenth",
            warnings[1],
        )
        self.assertEqual(len(warnings), 2)
        now = self.read("run", "held-out.txt").splitlines()
        self.assertFalse(set(now) & set(held_out))
        # A text that was held out once is held out once.
        twice = [row(i) for i in range(100, 160)] * 2
        pathlib.Path(other).write_text("".join(json.dumps(one) + "\n" for one in twice), encoding="utf-8")
        self.resume(4)
        self.assertEqual(self.read("run", "held-out.txt").splitlines(), now)

    def test_nothing_is_held_out(self):
        row = KINDS["label"][0]
        data = self.lines([row(i) for i in range(60)])
        small = SMALL[: SMALL.index("--eval-batches")]
        self.run_command(
            "train", *small, "--eval-batches", 0, "--steps", 2, "--data", data, "--out", self.path("run")
        )
        self.assertFalse(pathlib.Path(self.path("run/held-out.txt")).exists())
        self.lines([row(i) for i in range(80)])
        (warning,) = self.resume(3)
        self.assertIn("gives other tokens than the run", warning)

    def test_a_damaged_list(self):
        row = KINDS["label"][0]
        data = self.lines([row(i) for i in range(60)])
        self.run_command("train", *SMALL, "--steps", 2, "--data", data, "--out", self.path("run"))
        self.write("run/held-out.txt", "0123\n")
        self.refused(
            "train",
            "--resume",
            self.path("run"),
            "--steps",
            3,
            expect=FAILED,
            says=["held-out.txt", "damaged"],
        )
        self.refused(
            "eval",
            "--model",
            self.path("run"),
            "--data",
            data,
            expect=FAILED,
            says=["held-out.txt:1: expected 16 hexadecimal digits"],
        )
