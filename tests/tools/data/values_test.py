"""Texts with several labels, and with numbers: `train`, `eval` and `classify`."""

import csv
import io
import json
import math
import pathlib
import random
import statistics

from support import USAGE, CommandTest

WORDS = {"card": "my card", "refund": "a refund", "praise": "thank you"}


class ValuesTest(CommandTest):
    def texts(self, count=120, seed=3):
        """Texts with several labels each: those that its words name."""
        draw = random.Random(seed)
        rows = []
        for _ in range(count):
            labels = [label for label in WORDS if draw.random() < 0.5]
            rows.append((", ".join(WORDS[label] for label in labels) or "nothing", labels))
        return rows

    def lists(self, rows, name="texts.jsonl", key="labels"):
        return self.write(
            name, "".join(json.dumps({"text": text, key: labels}) + "\n" for text, labels in rows)
        )

    def table(self, rows, name="texts.csv", header=("text", "label")):
        out = io.StringIO()
        csv.writer(out).writerows([header, *rows])
        return self.write(name, out.getvalue())

    def scores(self, count=120, seed=4):
        draw = random.Random(seed)
        return [
            (" ".join(["good"] * stars + ["bad"] * (4 - stars)), stars - 1.5)
            for stars in (draw.randrange(5) for _ in range(count))
        ]

    def train_on(self, out, data, *more, model="nano", expect=0):
        return self.run_command(
            "train",
            "--model",
            model,
            "--data",
            data,
            "--batch",
            4,
            "--seq",
            32,
            "--vram",
            "64MiB",
            "--threads",
            2,
            "--eval-batches",
            2,
            "--out",
            self.path(out),
            *more,
            expect=expect,
        )

    def classified(self, model, *words):
        return [
            json.loads(line)
            for line in self.run_command(
                "classify", "--model", self.path(model), *words, "--json"
            ).stdout.splitlines()
        ]

    def test_several_labels_are_learned(self):
        output = self.train_on("run", self.lists(self.texts()), "--steps", 150, "--lr", "3e-3").stdout
        self.assertIn("examples    120, each with any of 3 labels\n", output)
        self.assertRegex(
            output, r"step 150: evaluation loss 0\.\d+ \(accuracy [\d.]+(, F1 [01]\.\d+( macro)?)?\)\n"
        )
        self.assertGreater(self.metrics("run")[-1]["eval_accuracy"], 0.7)
        self.assertEqual(
            json.loads(self.read("run", "labels.json")), {"task": "labels", "labels": sorted(WORDS)}
        )
        config = json.loads(self.read("run", "config.json"))
        self.assertEqual(
            [config["problem_type"], config["architectures"]],
            ["multi_label_classification", ["GPT2ForSequenceClassification"]],
        )
        unseen = self.texts(40, seed=9)
        data = self.lists(unseen, "unseen.jsonl")
        answers = [[one["label"] for one in answer] for answer in self.classified("run", "--data", data)]
        every = self.classified("run", "--data", data, "--top", 3)
        for answer, all_of_text in zip(answers, every):
            self.assertEqual(answer, [one["label"] for one in all_of_text if one["score"] > 0.5])
            self.assertEqual(len(all_of_text), 3)
        # The plain output has one line for each text. Some are empty.
        plain = self.run_command("classify", "--model", self.path("run"), "--data", data).stdout.splitlines()
        self.assertEqual(
            [[part.rsplit(" ", 1)[0] for part in line.split("\t") if part] for line in plain], answers
        )
        self.assertEqual(
            sum(len(one) for one in self.classified("run", "--data", data, "--threshold", 0)), 120
        )
        self.assertEqual(self.classified("run", "--data", data, "--threshold", 1), [[]] * 40)
        # `eval` counts the same answers.
        metrics = json.loads(
            self.run_command("eval", "--model", self.path("run"), "--data", data, "--all", "--json").stdout
        )
        self.assertAlmostEqual(
            metrics["accuracy"],
            sum(sorted(answer) == sorted(labels) for answer, (_, labels) in zip(answers, unseen)) / 40,
        )
        right, expected, given = (
            {
                label: sum(test(label, answer, labels) for answer, (_, labels) in zip(answers, unseen))
                for label in WORDS
            }
            for test in (
                lambda label, answer, labels: label in answer and label in labels,
                lambda label, answer, labels: label in labels,
                lambda label, answer, labels: label in answer,
            )
        )
        f1 = lambda right, both: 2 * right / both if both else 0
        self.assertAlmostEqual(
            metrics["f1_macro"], sum(f1(right[label], expected[label] + given[label]) for label in WORDS) / 3
        )
        self.assertAlmostEqual(
            metrics["f1_micro"], f1(sum(right.values()), sum(expected.values()) + sum(given.values()))
        )
        self.assertIn(
            "accuracy counts texts whose labels are all right",
            self.run_command("eval", "--model", self.path("run"), "--data", data, "--all").stdout,
        )

    def test_forms_of_files_give_the_same_bits(self):
        rows = self.texts(40)
        self.train_on("lists", self.lists(rows), "--steps", 4)
        self.train_on("label", self.lists(rows, "label.jsonl", "label"), "--steps", 4)
        self.train_on(
            "table",
            self.table([(text, " | ".join(labels)) for text, labels in rows]),
            "--label-separator",
            "|",
            "--steps",
            4,
        )
        self.assertEqual(self.weights("label"), self.weights("lists"))
        self.assertEqual(self.weights("table"), self.weights("lists"))
        # A resumed run keeps its task and refuses another one.
        self.train_on(
            "parts", self.path("texts.csv"), "--label-separator", "|", "--steps", 2, "--schedule", "constant"
        )
        self.train_on(
            "whole", self.path("texts.csv"), "--label-separator", "|", "--steps", 4, "--schedule", "constant"
        )
        self.run_command("train", "--resume", self.path("parts"), "--steps", 4)
        self.assertEqual(self.weights("parts"), self.weights("whole"))
        self.refused(
            "train",
            "--resume",
            self.path("parts"),
            "--steps",
            5,
            "--no-label-separator",
            expect=USAGE,
            says=["the bits of the run"],
        )
        self.train_on("number", self.table(self.scores(40), "scores.csv"), "--task", "number", "--steps", 2)
        self.refused(
            "train",
            "--resume",
            self.path("number"),
            "--steps",
            5,
            "--task",
            "label",
            says=["--task: the run in", "has number, found label"],
        )
        self.refused(
            "train",
            "--resume",
            self.path("lists"),
            "--steps",
            5,
            "--data",
            self.table([("a", "b"), ("b", "c")] * 20, "names.csv"),
            says=["learns the task labels"],
        )

    def test_numbers_are_learned(self):
        data = self.table(self.scores(), header=("text", "stars"))
        fields = ["--label-field", "stars"]
        output = self.train_on(
            "run", data, *fields, "--task", "number", "--steps", 150, "--lr", "3e-3"
        ).stdout
        self.assertIn("examples    120, each with a number\n", output)
        self.assertRegex(output, r"step 150: evaluation loss 0\.\d+ \(RMSE 0\.\d+\)\n")
        self.assertNotIn("eval_accuracy", self.metrics("run")[-1])
        self.assertEqual(json.loads(self.read("run", "config.json"))["problem_type"], "regression")
        unseen = self.scores(40, seed=9)
        test = self.table(unseen, "unseen.csv", ("text", "stars"))
        answers = [answer["number"] for answer in self.classified("run", "--data", test)]
        self.assertEqual(
            [
                float(line)
                for line in self.run_command(
                    "classify", "--model", self.path("run"), "--data", test
                ).stdout.split()
            ],
            answers,
        )
        metrics = json.loads(
            self.run_command(
                "eval", "--model", self.path("run"), "--data", test, *fields, "--all", "--json"
            ).stdout
        )
        errors = [answer - number for answer, (_, number) in zip(answers, unseen)]
        self.assertAlmostEqual(metrics["mse"], sum(e * e for e in errors) / 40, places=5)
        self.assertAlmostEqual(metrics["eval_loss"], metrics["mse"], places=5)
        self.assertAlmostEqual(metrics["rmse"], math.sqrt(metrics["eval_loss"]), places=5)
        self.assertAlmostEqual(metrics["mae"], sum(map(abs, errors)) / 40, places=5)
        self.assertAlmostEqual(
            metrics["pearson"], statistics.correlation(answers, [number for _, number in unseen]), places=5
        )
        ranks = [
            [
                sum(other < x for other in all_of_them) + sum(other == x for other in all_of_them) / 2
                for x in all_of_them
            ]
            for all_of_them in (answers, [number for _, number in unseen])
        ]
        self.assertAlmostEqual(metrics["spearman"], statistics.correlation(*ranks), places=6)
        self.assertGreater(metrics["spearman"], 0.8)
        self.assertNotIn("accuracy", metrics)
        self.assertIn(
            "(Spearman)",
            self.run_command("eval", "--model", self.path("run"), "--data", test, *fields, "--all").stdout,
        )
        # If all texts are equal, there is no correlation.
        alike = self.table([("good good", 1.5)] * 20, "alike.csv", ("text", "stars"))
        self.assertIsNone(
            json.loads(
                self.run_command(
                    "eval", "--model", self.path("run"), "--data", alike, *fields, "--all", "--json"
                ).stdout
            )["pearson"]
        )

    def test_several_numbers(self):
        rows = [(text, [stars, -stars]) for text, stars in self.scores(60)]
        self.train_on("run", self.lists(rows), "--task", "number", "--steps", 3)
        self.assertEqual(len(self.classified("run", "--text", "good")[0]["numbers"]), 2)
        self.assertEqual(
            len(
                self.run_command("classify", "--model", self.path("run"), "--text", "good").stdout.split("\t")
            ),
            2,
        )
        self.train_on(
            "table",
            self.table([(text, f"{a}; {b}") for text, (a, b) in rows]),
            "--task",
            "number",
            "--label-separator",
            ";",
            "--steps",
            3,
        )
        self.assertEqual(self.weights("table"), self.weights("run"))
        inspected = self.run_command("inspect", self.path("run")).stdout
        self.assertRegex(inspected, r"task +number")
        self.assertIn("RMSE", inspected)

    def test_a_folder_of_adapters_keeps_its_task(self):
        self.run_command(
            "train",
            "--model",
            "nano",
            "--data",
            self.text(),
            "--batch",
            4,
            "--seq",
            32,
            "--vram",
            "64MiB",
            "--steps",
            2,
            "--eval-batches",
            0,
            "--out",
            self.path("language"),
        )
        for task, data in (("labels", self.lists(self.texts(40))), ("number", self.table(self.scores(40)))):
            out = f"adapters-{task}"
            output = self.train_on(
                out, data, "--task", task, "--lora", 2, "--steps", 3, model=self.path("language")
            ).stdout
            self.assertIn(
                "a new head for 3 labels\n" if task == "labels" else "a new head for 1 number\n", output
            )
            self.assertEqual(json.loads(self.read(out, "adapter_config.json"))["task_type"], "SEQ_CLS")
            self.assertEqual(json.loads(self.read(out, "labels.json"))["task"], task)
            answer = self.classified(out, "--text", "my card")[0]
            self.run_command("merge", "--model", self.path(out), "--out", self.path(f"merged-{task}"))
            merged = self.classified(f"merged-{task}", "--text", "my card")[0]
            self.assertEqual(type(answer), type(merged))
            if task == "number":
                self.assertAlmostEqual(answer["number"], merged["number"], places=4)
            self.run_command("train", "--resume", self.path(out), "--steps", 4)
            # It can be trained further with the same task.
            self.train_on(f"further-{task}", data, "--steps", 1, model=self.path(out))

    def test_plans_know_the_task(self):
        small = ["--model", "nano", "--batch", 4, "--seq", 32, "--threads", 2, "--vram", "64MiB"]
        self.plan(*small, "--labels", 1, "--task", "number")
        self.refused("plan", *small, "--labels", 1, expect=USAGE, says=["--labels 1, expected 2"])
        data = self.lists(self.texts(40))
        plan = self.write("plan.json", json.dumps(self.plan(*small, "--labels", 3, "--task", "labels")))
        self.run_command(
            "train",
            "--model",
            "nano",
            "--data",
            data,
            "--plan",
            plan,
            "--steps",
            1,
            "--eval-batches",
            2,
            "--out",
            self.path("planned"),
        )

    def test_mistakes_are_refused_by_name(self):
        train = [
            "train",
            "--model",
            "nano",
            "--batch",
            4,
            "--seq",
            32,
            "--vram",
            "64MiB",
            "--steps",
            2,
            "--out",
            self.path("out"),
            "--data",
        ]
        rows = self.texts(30)
        # Numbers may be values or names of classes, so --task must decide, unless they are 0, 1, 2, ….
        self.refused(
            *train,
            self.table(self.scores(30), "a.csv"),
            expect=USAGE,
            says=["a.csv: its labels are numbers", "--task number", "--task label"],
        )
        self.refused(
            *train,
            self.table([("a", 1), ("b", 3)] * 20, "gap.csv"),
            expect=USAGE,
            says=["gap.csv: its labels are numbers"],
        )
        self.refused(
            *train,
            self.lists([("a", [1, 2])] * 20, "b.jsonl"),
            expect=USAGE,
            says=["b.jsonl: its labels are numbers", "--task labels"],
        )
        self.train_on(
            "names", self.table([("a", 1), ("b", 3)] * 20, "c.csv"), "--task", "label", "--steps", 1
        )
        self.assertEqual(json.loads(self.read("names", "labels.json")), ["1", "3"])
        # Flags and data that do not belong to the task.
        self.refused(
            *train,
            self.lists(rows, "d.jsonl"),
            "--task",
            "label",
            says=["d.jsonl, line 1: has a list of labels", "--task labels"],
        )
        self.refused(
            *train,
            self.lists([*self.scores(20), ("x", "many")], "e.jsonl", "label"),
            "--task",
            "number",
            says=['e.jsonl, line 21: expected a finite number, found "many"'],
        )
        self.refused(
            *train,
            self.table([*self.scores(20), ("x", "nan")], "f.csv"),
            "--task",
            "number",
            says=['f.csv:22: expected a finite number, found "nan"'],
        )
        self.refused(
            *train,
            self.table([*self.scores(20), ("x", "1e39")], "f.csv"),
            "--task",
            "number",
            says=['f.csv:22: expected a finite number, found "1e39"'],
        )
        self.refused(
            *train,
            self.write("g.jsonl", '{"text": "a", "label": 1.5}\n{"text": "b", "label": NaN}\n'),
            "--task",
            "number",
            says=["g.jsonl, line 2: label: expected a string or a finite number, found NaN"],
        )
        self.refused(
            *train,
            self.lists([("a", [1, 2]), ("b", [1])] * 10, "h.jsonl"),
            "--task",
            "number",
            says=["h.jsonl, line 2: expected 2 numbers, as many as the first text has, found 1"],
        )
        self.refused(
            *train,
            self.lists([("a", [])] * 20, "i.jsonl"),
            "--task",
            "number",
            says=["i.jsonl, line 1: expected a number, found none"],
        )
        self.refused(*train, self.lists([("a", [])] * 20, "j.jsonl"), says=["j.jsonl: no text has a label"])
        self.refused(
            *train, self.lists([("a", ["x", ""])] * 20, "k.jsonl"), says=['k.jsonl, line 1: "label" is empty']
        )
        self.refused(
            *train,
            self.lists([("a", ["x", None])] * 20, "k.jsonl"),
            says=["k.jsonl, line 1: labels[1]: expected a string or a number"],
        )
        self.refused(
            *train,
            self.write("l.jsonl", '{"text": "a", "label": "x", "labels": ["y"]}\n'),
            says=["l.jsonl, line 1: label: expected one of", "found both"],
        )
        self.refused(
            *train,
            self.table([(text, "|".join(labels)) for text, labels in rows if labels], "m.csv"),
            "--task",
            "labels",
            expect=USAGE,
            says=["m.csv", "--label-separator"],
        )
        self.refused(
            *train,
            self.lists(rows, "n.jsonl"),
            "--label-separator",
            "|",
            expect=USAGE,
            says=["--label-separator: is for .csv files"],
        )
        self.refused(
            *train, self.text(), "--task", "labels", expect=USAGE, says=["--task labels", "has no labels"]
        )
        self.refused(
            *train,
            self.lists(rows, "o.jsonl"),
            "--label-smoothing",
            0.1,
            expect=USAGE,
            says=["--label-smoothing: is for losses over a softmax"],
        )
        self.refused(
            *train,
            self.lists(rows, "p.jsonl"),
            "--z-loss",
            0.1,
            expect=USAGE,
            says=["--z-loss: is for losses over a softmax"],
        )
        self.assertFalse(pathlib.Path(self.path("out")).exists())
        # Tasks that contradict the task of an existing model.
        self.train_on("several", self.lists(rows), "--steps", 1)
        self.train_on("number", self.table(self.scores(30)), "--task", "number", "--steps", 1)
        evaluate = ["eval", "--all", "--model"]
        self.refused(
            *evaluate,
            self.path("several"),
            "--data",
            self.lists([("a", ["card", "what"])], "q.jsonl"),
            says=['q.jsonl, line 1: "what" is not one of the model\'s 3 labels'],
        )
        self.refused(
            *evaluate,
            self.path("number"),
            "--data",
            self.lists([("a", ["card"])], "r.jsonl"),
            says=['r.jsonl, line 1: expected a finite number, found "card"'],
        )
        self.refused(
            *evaluate,
            self.path("number"),
            "--data",
            self.lists([("a", [1, 2])], "s.jsonl"),
            says=["s.jsonl, line 1: expected 1 numbers, as many as the model gives, found 2"],
        )
        self.refused(
            *evaluate,
            self.path("names"),
            "--data",
            self.lists([("a", ["1"])], "t.jsonl"),
            says=["t.jsonl, line 1: has a list of labels, but the model gives each text one label"],
        )
        self.refused(
            "classify",
            "--model",
            self.path("number"),
            "--text",
            "a",
            "--top",
            2,
            expect=USAGE,
            says=["--top: is for labels"],
        )
        self.refused(
            "classify",
            "--model",
            self.path("number"),
            "--text",
            "a",
            "--threshold",
            0.5,
            expect=USAGE,
            says=["--threshold: is for models that give a text any number of labels"],
        )
        self.refused(
            "classify",
            "--model",
            self.path("names"),
            "--text",
            "a",
            "--threshold",
            0.5,
            expect=USAGE,
            says=["gives it one"],
        )
        self.refused(
            "classify",
            "--model",
            self.path("several"),
            "--text",
            "a",
            "--threshold",
            0.5,
            "--top",
            1,
            expect=USAGE,
            says=["--threshold"],
        )
        self.refused(
            "eval",
            "--model",
            self.path("number"),
            "--data",
            self.text(),
            says=["the model gives texts 1 number: expected a .csv or .jsonl file"],
        )
        self.refused("generate", "--model", self.path("number"), expect=USAGE, says=["is a classifier"])
