"""The part of the data that a run holds out, the output about it, and the part that `eval` covers."""

import json
import random
import re

from support import SMALL, USAGE, CommandTest

END = 1


class HeldOutTest(CommandTest):
    def evaluation(self, *words):
        return json.loads(self.run_command("eval", *words, "--json").stdout)

    def lines(self, rows, name="lines.jsonl"):
        return self.write(name, "".join(json.dumps(row) + "\n" for row in rows))

    def table(self, count, name="table.csv"):
        """A table that is sorted by label, as files often are: the last tenth has only one label."""
        draw = random.Random(3)
        rows = [
            (" ".join(draw.choices(words, k=4)), label)
            for label, words in (("air", ["wind", "west", "turn"]), ("sea", ["ship", "sails", "crew"]))
            for _ in range(count // 2)
        ]
        return self.write(name, "text,label\n" + "".join(f"{text},{label}\n" for text, label in rows))

    def train_on(self, out, data, *more, expect=0):
        return self.run_command(
            "train",
            *SMALL[:-2],
            "--data",
            data,
            "--out",
            self.path(out),
            "--document-end",
            END,
            *more,
            expect=expect,
        ).stdout

    def test_all_of_a_text_is_every_token_once(self):
        self.train("run", "--steps", 5, "--lr", "1e-2")
        content = self.read(".", "text.txt")[:301]  # nine windows of 32 and one of 12
        data = self.write("part.txt", content)
        result = self.evaluation(
            "--model", self.path("run"), "--data", data, "--all", "--seq", 32, "--batch", 4
        )
        self.assertEqual(result["tokens"], 300)
        # Each window alone gives the same losses, whatever the batch and whatever follows the window in the
        # file.
        total = 0
        for begin in range(0, 300, 32):
            window = content[begin : begin + 33]
            one = self.evaluation(
                "--model",
                self.path("run"),
                "--data",
                self.write("window.txt", window),
                "--all",
                "--seq",
                32,
                "--batch",
                1,
            )
            self.assertEqual(one["tokens"], len(window) - 1)
            total += one["eval_loss"] * one["tokens"]
        self.assertAlmostEqual(result["eval_loss"], total / 300, places=6)
        for batch in (1, 7, 64):
            again = self.evaluation(
                "--model", self.path("run"), "--data", data, "--all", "--seq", 32, "--batch", batch
            )
            self.assertAlmostEqual(again["eval_loss"], result["eval_loss"], places=6)
            self.assertEqual(again["tokens"], 300)
        self.assertIn(
            "over 300 tokens of " + data + ", each once, in windows of 32 end to end\n",
            self.run_command(
                "eval", "--model", self.path("run"), "--data", data, "--all", "--seq", 32
            ).stdout,
        )
        # A text shorter than a window, and one that is too short to predict a token.
        self.assertEqual(
            self.evaluation("--model", self.path("run"), "--data", self.write("two.txt", "ab"), "--all")[
                "tokens"
            ],
            1,
        )
        self.refused(
            "eval",
            "--model",
            self.path("run"),
            "--data",
            self.write("one.txt", "a"),
            "--all",
            says=["one.txt: the held-out part needs at least 2 tokens", "found 1"],
        )
        self.refused(
            "eval",
            "--model",
            self.path("run"),
            "--data",
            data,
            "--all",
            "--eval-batches",
            2,
            expect=USAGE,
            says=["--all", "--eval-batches"],
        )

    def test_all_examples_count_once(self):
        data = self.lines([{"prompt": f"q{i}", "completion": "a" * (1 + i % 7)} for i in range(50)])
        output = self.train_on("run", data, "--steps", 3, "--eval-batches", 2)
        self.assertRegex(
            output,
            r"tokens to train on, [\d,]+ held out in 5 of the 50 examples, drawn by a fixed seed; read as ",
        )
        result = self.evaluation("--model", self.path("run"), "--data", data, "--all")
        self.assertEqual(result["tokens"], sum(2 + i % 7 for i in range(50)))  # the document end counts
        self.assertIn(
            f"over the {result['tokens']} tokens that are learned in ",
            self.run_command("eval", "--model", self.path("run"), "--data", data, "--all").stdout,
        )

    def test_without_evaluations_all_is_trained_on(self):
        text = self.text()
        self.assertIn(
            "text.txt: 20,000 tokens to train on, none held out; read as text\n",
            self.train_on("text", text, "--steps", 1, "--eval-batches", 0),
        )
        self.assertIn(
            "18,000 tokens to train on, 2,000 held out, the last ones; read as ",
            self.train_on("held", text, "--steps", 1, "--eval-batches", 1),
        )
        a, b = {"prompt": "Q1:", "completion": " the harbour"}, {"prompt": "Q2:", "completion": " west wind"}
        self.train_on("two", self.lines([a, b]), "--eval-batches", 0, "--steps", 120, "--lr", "1e-2")
        for name, row in (("a", a), ("b", b)):
            self.assertLess(
                self.evaluation(
                    "--model", self.path("two"), "--data", self.lines([row], name + ".jsonl"), "--all"
                )["eval_loss"],
                0.05,
            )
        self.train_on("one", self.lines([a], "one.jsonl"), "--eval-batches", 0, "--steps", 1)
        self.refused(
            "train",
            *SMALL,
            "--data",
            self.path("one.jsonl"),
            "--document-end",
            END,
            "--steps",
            1,
            "--out",
            self.path("none"),
            says=[
                "one.jsonl: too few examples (1) to hold one out for evaluations",
                "--eval-batches 0",
                "--eval-data",
            ],
        )
        # `eval` warns if the run was trained on all of the file.
        result = self.run_command("eval", "--model", self.path("text"), "--data", text, "--document-end", END)
        self.assertIn(
            "warning: the run in " + self.path("text") + " was trained on all of " + text, result.stderr
        )
        self.assertEqual(
            self.run_command(
                "eval", "--model", self.path("text"), "--data", text, "--all", "--document-end", END
            ).stderr,
            "",
        )
        self.assertEqual(
            self.run_command(
                "eval", "--model", self.path("held"), "--data", text, "--document-end", END
            ).stderr,
            "",
        )
        # A resumed run keeps the same part held out.
        self.refused(
            "train",
            "--resume",
            self.path("text"),
            "--steps",
            2,
            "--eval-batches",
            2,
            says=["--eval-batches 2: the run in", "was trained on all of its data"],
        )
        self.refused(
            "train",
            "--resume",
            self.path("held"),
            "--steps",
            2,
            "--eval-batches",
            0,
            says=["--eval-batches 0: the run in", "holds a tenth of its data out"],
        )
        self.run_command("train", "--resume", self.path("held"), "--steps", 2, "--eval-batches", 3)

    def test_the_last_tenth_of_a_file_is_held_out_on_request(self):
        data = self.table(200)
        words = [data, "--steps", 30, "--lr", "2e-3"]
        drawn = self.run_command("train", *SMALL[:-2], "--data", *words, "--out", self.path("drawn")).stdout
        self.assertRegex(drawn, r"held out in \d+ of the 200 texts, drawn by a fixed seed; read as ")
        tail = self.run_command(
            "train", *SMALL[:-2], "--data", *words, "--eval-tail", "--out", self.path("tail")
        ).stdout
        held = int(self.assert_one(r"held out in (\d+) of the 200 texts, the last ones; read as ", tail))
        self.assertNotEqual(self.weights("drawn"), self.weights("tail"))
        # The last evaluation covers these texts, and `eval` evaluates the same ones.
        rows = self.read(".", "table.csv").splitlines()
        last = self.write("last.csv", "\n".join(rows[:1] + rows[-held:]) + "\n")
        of_file = self.evaluation("--model", self.path("tail"), "--data", last, "--all")
        of_run = self.evaluation("--model", self.path("tail"), "--data", data)
        for field in ("eval_loss", "accuracy", "f1_macro", "texts"):
            self.assertAlmostEqual(of_file[field], of_run[field], places=6)
        self.assertEqual(of_run["texts"], held)
        self.assertAlmostEqual(self.metrics("tail")[-1]["eval_loss"], of_run["eval_loss"], places=6)
        self.assertNotEqual(
            of_run["eval_loss"], self.evaluation("--model", self.path("drawn"), "--data", data)["eval_loss"]
        )
        self.refused(
            "train",
            "--resume",
            self.path("drawn"),
            "--steps",
            31,
            "--eval-tail",
            says=["--eval-tail: the run in", "was trained without it"],
        )
        self.refused(
            "train",
            "--resume",
            self.path("tail"),
            "--steps",
            31,
            "--no-eval-tail",
            expect=USAGE,
            says=["the bits of the run"],
        )
        self.run_command("train", "--resume", self.path("tail"), "--steps", 31)
        self.refused(
            "train",
            *SMALL[:-2],
            "--data",
            data,
            "--eval-tail",
            "--eval-batches",
            0,
            "--steps",
            1,
            "--out",
            self.path("no"),
            expect=USAGE,
            says=["--eval-tail"],
        )
        self.refused(
            "train",
            *SMALL[:-2],
            "--data",
            data,
            "--eval-tail",
            "--eval-data",
            last,
            "--steps",
            1,
            "--out",
            self.path("no"),
            expect=USAGE,
            says=["--eval-tail", "--eval-data"],
        )

    def assert_one(self, pattern, text):
        self.assertRegex(text, pattern)
        return re.search(pattern, text).group(1)

    def test_eval_leaves_out_the_data_that_the_run_was_trained_on(self):
        data, other = self.table(200), self.table(60, "other.csv")
        self.run_command("train", *SMALL[:-2], "--data", data, "--out", self.path("run"), "--steps", 10)
        of_run = self.evaluation("--model", self.path("run"), "--data", data)
        self.assertEqual(
            (of_run["part"], of_run["eval_loss"]), ("held_out", self.metrics("run")[-1]["eval_loss"])
        )
        copy = self.evaluation(
            "--model", self.path("run"), "--data", self.write("copy.csv", self.read(".", "table.csv"))
        )  # a copy is recognised by its content
        self.assertEqual({**copy, "data": data}, of_run)
        whole = self.evaluation("--model", self.path("run"), "--data", data, "--all")
        self.assertEqual((whole["part"], whole["texts"]), ("all", 200))
        # Any other file is evaluated as a whole, unless a part is asked for.
        unseen = self.evaluation("--model", self.path("run"), "--data", other)
        self.assertEqual((unseen["part"], unseen["texts"]), ("all", 60))
        self.assertEqual(unseen, self.evaluation("--model", self.path("run"), "--data", other, "--all"))
        part = self.evaluation("--model", self.path("run"), "--data", other, "--held-out")
        self.assertEqual(part["part"], "held_out")
        self.assertLess(part["texts"], 10)
        self.refused(
            "eval",
            "--model",
            self.path("run"),
            "--data",
            other,
            "--all",
            "--held-out",
            expect=USAGE,
            says=["--all", "--held-out"],
        )
        # Only tokens of texts are counted, not the padding of samples.
        self.assertEqual(
            unseen["tokens"],
            sum(len(row.split(",")[0]) for row in self.read(".", "other.csv").splitlines()[1:]),
        )
        some = self.evaluation("--model", self.path("run"), "--data", other, "--eval-batches", 1)
        self.assertLess(some["texts"], 60)
        self.assertAlmostEqual(some["tokens"] / some["texts"], unseen["tokens"] / 60, delta=3)
        # metrics.jsonl counts tokens the same way, and goes on counting in a resumed run.
        lines = [line for line in self.metrics("run") if "loss" in line]
        self.assertEqual(
            lines[-1]["texts"],
            sum(line["texts"] - before["texts"] for before, line in zip([{"texts": 0}, *lines], lines)),
        )
        self.assertAlmostEqual(lines[-1]["tokens"] / lines[-1]["texts"], unseen["tokens"] / 60, delta=3)
        self.run_command("train", "--resume", self.path("run"), "--steps", 12)
        after = [line for line in self.metrics("run") if "loss" in line]
        self.assertEqual(after[:10], lines)
        for before, line in zip(after[9:], after[10:]):
            self.assertLessEqual(line["tokens"] - before["tokens"], 4 * 32)
            self.assertGreater(line["tokens"] - before["tokens"], 2 * 32)
        # The file of --eval-data is evaluated as a whole. The loss is that of the run's last evaluation.
        self.run_command(
            "train",
            *SMALL[:-2],
            "--data",
            data,
            "--eval-data",
            other,
            "--out",
            self.path("apart"),
            "--steps",
            10,
        )
        result = self.evaluation("--model", self.path("apart"), "--data", other)
        self.assertEqual((result["part"], result["texts"]), ("all", 60))
        self.assertAlmostEqual(result["eval_loss"], self.metrics("apart")[-1]["eval_loss"], places=6)
        self.assertIn(
            "was trained on all of",
            self.run_command("eval", "--model", self.path("apart"), "--data", data).stderr,
        )

    def test_eval_of_texts_names_the_part_that_it_covers(self):
        text = self.text()
        self.run_command(
            "train", *SMALL[:-2], "--eval-batches", 3, "--data", text, "--steps", 5, "--out", self.path("run")
        )
        output = self.run_command("eval", "--model", self.path("run"), "--data", text).stdout
        self.assertIn(f"over 384 tokens of {text}, in the part that training on it holds out\n", output)
        self.assertEqual(
            self.evaluation("--model", self.path("run"), "--data", text)["eval_loss"],
            self.metrics("run")[-1]["eval_loss"],
        )
        other = self.write("other.txt", self.read(".", "text.txt")[:2001])
        self.assertIn(
            f"over 2,000 tokens of {other}, each once, in windows of 32 end to end\n",
            self.run_command("eval", "--model", self.path("run"), "--data", other).stdout,
        )
        self.assertIn(
            f"over 256 tokens of {other}, in 2 batches of it\n",
            self.run_command(
                "eval", "--model", self.path("run"), "--data", other, "--eval-batches", 2
            ).stdout,
        )
        # A model and the run that began with it are evaluated on the same part, so that they can be compared.
        self.run_command(
            "train",
            "--model",
            self.path("run"),
            *SMALL[2:],
            "--data",
            text,
            "--steps",
            5,
            "--out",
            self.path("next"),
        )
        before = self.evaluation("--model", self.path("run"), "--data", text, "--eval-batches", 2)
        self.assertEqual(
            before["eval_loss"],
            self.evaluation(
                "--model",
                self.path("run"),
                "--data",
                self.write("again.txt", self.read(".", "text.txt")),
                "--held-out",
                "--eval-batches",
                2,
            )["eval_loss"],
        )

    def test_warns_of_short_epochs(self):
        data = self.table(200)
        words = ["train", "--model", "nano", "--data", data, "--vram", "256MiB", "--threads", 2]
        result = self.run_command(
            *words, "--batch", 8, "--seq", 256, "--epochs", 2, "--out", self.path("run")
        )
        self.assertRegex(
            result.stderr,
            r"warning: --data \S*table.csv: an epoch is 1.\d steps: a batch of 8 samples of 256 tokens "
            r"holds 9\d(.\d)? of the 200 examples; for more steps give a smaller --batch \(or "
            r"--batch-examples\), or a shorter --seq\n",
        )
        self.assertRegex(
            result.stdout,
            r"\nsteps       \d, which go 2\.\d+ times over the data; --epochs asks for 2, "
            r"and every step takes a whole batch\n",
        )
        result = self.run_command(
            *words, "--batch", 2, "--seq", 32, "--epochs", 0.5, "--out", self.path("more")
        )
        self.assertEqual(result.stderr, "")

    def test_a_file_of_one_line(self):
        self.refused(
            "train",
            *SMALL,
            "--data",
            self.write("one.csv", "text,label\nship,sea\n"),
            "--steps",
            1,
            "--out",
            self.path("none"),
            says=['one.csv: all texts have the label "sea"'],
        )
        self.refused(
            "train",
            *SMALL,
            "--data",
            self.write("none.csv", "text,label\n"),
            "--steps",
            1,
            "--out",
            self.path("none"),
            says=["none.csv: there is no data"],
        )
