"""Classifiers: `train`, `eval` and `classify` on texts with labels."""

import csv
import io
import json
import pathlib
import random

from support import DOES_NOT_FIT, FAILED, USAGE, CommandTest

KINDS = {
    "card": ["my card is lost", "where is my card", "the card does not work"],
    "money, refund": ["give it back", "i want a refund", "refund me now"],
    'other "thing"': ["hello there", "who are you", "nice weather today"],
}


class ClassifierTest(CommandTest):
    def rows(self, count=120, seed=3):
        draw = random.Random(seed)
        rows = []
        for _ in range(count):
            label = draw.choice(list(KINDS))
            rows.append((draw.choice(KINDS[label]) + draw.choice(["", "!", " please"]), label))
        return rows

    def table(self, rows, name="texts.csv", header=("text", "label")):
        out = io.StringIO()
        writer = csv.writer(out)
        writer.writerow(header)
        writer.writerows(rows)
        return self.write(name, out.getvalue())

    def lines(self, rows, name="texts.jsonl"):
        return self.write(
            name, "".join(json.dumps({"text": text, "label": label}) + "\n" for text, label in rows)
        )

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

    def test_labels_are_learned(self):
        data = self.table(self.rows())
        output = self.train_on("run", data, "--steps", 60, "--lr", "2e-3").stdout
        self.assertIn("examples    120, each with one of 3 labels\n", output)
        self.assertRegex(output, r"step 60: evaluation loss 0\.\d+ \(accuracy 1\.0000\)\n")
        self.assertRegex(output, r"trained     60 steps on [\d,]+ texts\n")
        self.assertIn(" texts/s ", output)
        last = self.metrics("run")[-1]
        self.assertEqual(last["eval_accuracy"], 1)
        self.assertRegex(
            self.read("run", "loss.svg"), r'(?s)>100 %</text>.*>accuracy</text>.*<rect x="732.5" y="46.5" '
        )  # the last point, at 100 %
        self.assertEqual(json.loads(self.read("run", "labels.json")), sorted(KINDS))
        config = json.loads(self.read("run", "config.json"))
        self.assertEqual(config["architectures"], ["GPT2ForSequenceClassification"])
        self.assertEqual(config["id2label"], {str(i): label for i, label in enumerate(sorted(KINDS))})
        unseen = self.rows(40, seed=9)
        answers = self.classified("run", "--data", self.table(unseen, "unseen.csv"))
        self.assertEqual([answer["label"] for answer in answers], [label for _, label in unseen])
        self.assertTrue(all(0.5 < answer["score"] <= 1 for answer in answers))
        # The same answers from any other kind of file, and from texts one by one.
        texts = [text for text, _ in unseen]
        self.assertEqual(
            self.classified("run", "--data", self.write("lines.txt", "\n".join(texts) + "\n")), answers
        )
        self.assertEqual(self.classified("run", "--data", self.lines(unseen, "unseen.jsonl")), answers)
        self.assertEqual(
            self.classified("run", *[word for text in texts[:3] for word in ("--text", text)]), answers[:3]
        )
        first = self.classified("run", "--text", texts[0], "--top", 9)[0]
        self.assertEqual(first[0], answers[0])
        self.assertEqual(sorted(one["label"] for one in first), sorted(KINDS))
        self.assertAlmostEqual(sum(one["score"] for one in first), 1)
        plain = self.run_command("classify", "--model", self.path("run"), "--text", texts[0]).stdout
        self.assertEqual(plain, f"{answers[0]['label']} {answers[0]['score']:.4f}\n")

    def test_eval_counts_the_answers_of_classify(self):
        self.train_on("run", self.table(self.rows()), "--steps", 12, "--lr", "1e-3")
        unseen = self.rows(50, seed=5)
        data = self.table(unseen, "unseen.csv")
        metrics = json.loads(
            self.run_command("eval", "--model", self.path("run"), "--data", data, "--all", "--json").stdout
        )
        answers = self.classified("run", "--data", data)
        self.assertEqual(
            metrics["accuracy"],
            sum(answer["label"] == label for answer, (_, label) in zip(answers, unseen)) / 50,
        )
        self.assertIn(
            "over the 50 texts of",
            self.run_command("eval", "--model", self.path("run"), "--data", data, "--all").stdout,
        )
        # With two labels, F1 is that of the positive label, which the output names.
        labels = json.loads(self.read("run", "labels.json"))
        if len(labels) == 2:
            for positive in labels:
                output = self.run_command(
                    "eval", "--model", self.path("run"), "--data", data, "--positive-label", positive
                ).stdout
                right = sum(
                    answer["label"] == label == positive for answer, (_, label) in zip(answers, unseen)
                )
                f1 = (
                    2
                    * right
                    / (
                        sum(answer["label"] == positive for answer in answers)
                        + sum(label == positive for _, label in unseen)
                    )
                )
                self.assertIn(f'F1 {f1:.4f} of the label "{positive}", ', output)
            self.assertEqual(metrics["f1"], f1)  # the second one
        self.refused(
            "eval",
            "--model",
            self.path("run"),
            "--data",
            data,
            "--positive-label",
            "nix",
            expect=USAGE,
            says=["--positive-label"],
        )
        self.assertIn(
            "over the texts in 1 samples of",
            self.run_command(
                "eval", "--model", self.path("run"), "--data", data, "--batch", 1, "--eval-batches", 1
            ).stdout,
        )

    def test_names_of_columns_numbers_and_a_file_to_evaluate_on(self):
        numbers = {
            label: str(9 + i) for i, label in enumerate(sorted(KINDS))
        }  # 9, 10, 11: not in alphabetical order
        rows = [(numbers[label], "x", text) for text, label in self.rows()]
        header = ("intent", "id", "query")
        fields = ["--text-field", "query", "--label-field", "intent"]
        output = self.train_on(
            "run",
            self.table(rows, header=header),
            *fields,
            "--eval-data",
            self.table(rows[:20], "held.csv", header),
            "--steps",
            5,
        ).stdout
        self.assertIn("tokens to train on, ", output)
        self.assertIn(" in " + self.path("held.csv"), output)
        self.assertEqual(json.loads(self.read("run", "labels.json")), ["9", "10", "11"])
        # As JSON objects with numbers as labels: the same tokens and labels, so the same bits.
        objects = "".join(json.dumps({"query": text, "intent": int(label)}) + "\n" for label, _, text in rows)
        self.train_on(
            "again",
            self.write("objects.jsonl", objects),
            *fields,
            "--eval-data",
            self.path("held.csv"),
            "--steps",
            5,
        )
        self.assertEqual(self.weights("again"), self.weights("run"))
        # With --eval-data the last tenth is trained on too, so the weights differ.
        self.train_on("tenth", self.table(rows, header=header), *fields, "--steps", 5)
        self.assertNotEqual(self.weights("tenth"), self.weights("run"))
        self.run_command("eval", "--model", self.path("run"), "--data", self.path("objects.jsonl"), *fields)

    def test_the_last_evaluation_covers_all_that_is_held_out(self):
        test = self.table(self.rows(400, seed=8), "test.csv")
        output = self.run_command(
            "train",
            "--model",
            "nano",
            "--data",
            self.table(self.rows()),
            "--eval-data",
            test,
            "--batch",
            2,
            "--seq",
            32,
            "--vram",
            "64MiB",
            "--steps",
            10,
            "--lr",
            "2e-3",
            "--out",
            self.path("run"),
        ).stdout
        metrics = json.loads(
            self.run_command("eval", "--model", self.path("run"), "--data", test, "--all", "--json").stdout
        )
        last = self.metrics("run")[-1]
        self.assertEqual(last["eval_accuracy"], metrics["accuracy"])
        self.assertAlmostEqual(last["eval_loss"], metrics["eval_loss"], places=6)
        for name in ("f1_macro", "f1_micro", "matthews"):
            self.assertEqual(last["eval_" + name], metrics[name])
        self.assertIn(
            f"step 10: evaluation loss {metrics['eval_loss']:.4f} (accuracy {metrics['accuracy']:.4f}, "
            f"F1 {metrics['f1_macro']:.4f} macro)\n",
            output,
        )

    def test_numbers_stand_for_the_names_of_a_model(self):
        self.train_on("run", self.table(self.rows()), "--steps", 3)
        order = sorted(KINDS)
        by_name = self.run_command(
            "eval", "--model", self.path("run"), "--data", self.table(self.rows(), "a.csv"), "--all"
        ).stdout
        by_number = self.run_command(
            "eval",
            "--model",
            self.path("run"),
            "--data",
            self.table([(text, order.index(label)) for text, label in self.rows()], "b.csv"),
            "--all",
        ).stdout
        self.assertEqual(by_name.partition(" of /")[0], by_number.partition(" of /")[0])
        self.refused(
            "eval",
            "--model",
            self.path("run"),
            "--data",
            self.table([("a", 0), ("b", 3)], "c.csv"),
            "--all",
            says=["c.csv:3", '"3" is not one of the model\'s 3 labels'],
        )
        self.refused(
            "eval",
            "--model",
            self.path("run"),
            "--data",
            self.table([("a", "card"), ("b", "1")], "d.csv"),
            "--all",
            says=["d.csv:3", '"1"'],
        )

    def test_every_text_is_answered_in_its_place(self):
        self.train_on("run", self.table(self.rows()), "--steps", 30, "--lr", "2e-3")
        texts = ["my card is lost", "", "give it back", "   ", "who are you"]
        expected = self.classified("run", *[word for text in texts for word in ("--text", text)])
        self.assertEqual(
            expected[1], {"label": None, "score": None}
        )  # without special tokens, an empty text has no token
        self.assertIsNotNone(expected[3]["label"])  # blanks are tokens
        lines = self.write("lines.txt", "\n".join(texts) + "\n")
        self.assertEqual(self.classified("run", "--data", lines), expected)
        self.assertEqual(
            self.classified(
                "run", "--data", self.table([(text,) for text in texts[:3]], "one.csv", ("text",))
            ),
            expected[:3],
        )
        self.assertEqual(
            self.classified(
                "run", "--data", self.write("blank.csv", "text\nmy card is lost\n\ngive it back\n")
            ),
            expected[:3],
        )
        self.assertEqual(
            self.classified(
                "run",
                "--data",
                self.table([(i, text) for i, text in enumerate(texts[:3])], "two.csv", ("id", "text")),
            ),
            expected[:3],
        )
        objects = [json.dumps({"text": text}) for text in texts]
        self.assertEqual(
            self.classified("run", "--data", self.write("o.jsonl", "\n".join(objects) + "\n")), expected
        )
        self.assertEqual(
            self.classified(
                "run", "--data", self.write("blank.jsonl", "\n".join([objects[0], "", objects[2]]) + "\n")
            ),
            expected[:3],
        )
        with open(lines, "rb") as pipe:
            through = self.run_command(
                "classify", "--model", self.path("run"), "--data", "/dev/stdin", stdin=pipe
            )
        self.assertEqual(
            [line.rpartition(" ")[0] for line in through.stdout.splitlines()],
            [one["label"] or "" for one in expected],
        )
        self.assertIn("warning: 1 of 5 texts have no token", through.stderr)
        self.assertEqual(self.classified("run", "--data", lines, "--top", 2)[1], None)
        # An empty text cannot be trained on.
        self.refused(
            "train",
            "--model",
            "nano",
            "--batch",
            4,
            "--seq",
            32,
            "--steps",
            1,
            "--out",
            self.path("none"),
            "--data",
            self.table([("a", "x"), ("", "y")], "e.csv"),
            says=['e.csv:3: "text" is empty'],
        )

    def test_labels_that_look_like_numbers_or_differ_in_case(self):
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
            "--threads",
            2,
            "--steps",
            1,
            "--overwrite",
            "--out",
            self.path("run"),
            "--data",
        ]
        labelled = lambda name, labels: self.table(
            [(f"ship {i}", labels[i % len(labels)]) for i in range(60)], name
        )
        asks = ["its labels are numbers", "--task number", "--task label"]
        for name, labels in (
            ("floats.csv", ["0.5", "1.5"]),
            ("mixed.csv", ["0", "1", "0.0", "1.0"]),
            ("gaps.csv", ["1", "7"]),
            ("signs.csv", ["-1", "1"]),
        ):
            self.refused(*train, labelled(name, labels), expect=USAGE, says=[name, *asks])
        for word in ("nan", "NaN", "inf", "None", "null", "N/A"):
            data = labelled("word.csv", ["0", "1", word])
            self.refused(
                *train,
                data,
                expect=USAGE,
                says=[f'word.csv:4: the label "{word}" is not a number, and the others are', "--task label"],
            )
            self.refused(
                *train,
                data,
                "--task",
                "number",
                says=[f'word.csv:4: expected a finite number, found "{word}"'],
            )
        self.run_command(
            *train, labelled("word.csv", ["0", "1", "nan"]), "--task", "label"
        )  # with --task label, nan is a name
        self.assertEqual(json.loads(self.read("run", "labels.json")), ["0", "1", "nan"])
        self.run_command(*train, labelled("names.csv", ["none", "some"]))
        self.refused(
            *train,
            labelled("mixed.csv", ["0", "1", "0.0"]),
            "--task",
            "label",
            says=['mixed.csv: the labels "0" and "0.0" are the same number', "write them alike"],
        )
        for labels, pair in (
            (["true", "1"], '"1" and "true"'),
            (["True", "0", "FALSE"], '"0" and "FALSE"'),
            (["1.0", "false", "true"], '"1.0" and "true"'),
        ):
            self.refused(
                *train,
                labelled("truths.csv", labels),
                says=[f"truths.csv: the labels {pair} mean the same", "write them alike"],
            )
        self.refused(
            *train,
            self.lines([("a", True), ("b", 0), ("c", 1)], "truths.jsonl"),
            says=['truths.jsonl: the labels "1" and "true" mean the same'],
        )
        for labels, said in ((["true", "1", "2"], True), (["true", "0", "some"], False), (["1", "0"], False)):
            warnings = self.run_command(*train, labelled("others.csv", labels)).stderr
            self.assertEqual('the labels "1" and "true" often mean the same' in warnings, said, labels)
        self.run_command(
            *train, labelled("large.csv", ["18446744073709551614", "18446744073709551615"]), "--task", "label"
        )  # alike as doubles, but two names
        for label in ("", "  "):
            self.refused(
                *train,
                self.lines([("a", "x"), ("b", label)], "empty.jsonl"),
                says=['empty.jsonl, line 2: "label" is empty'],
            )
        warnings = self.run_command(
            *train,
            self.lines([("a b", "Sea"), ("c d", "sea"), ("e f", "air"), ("g h", "air ")] * 15, "case.jsonl"),
        ).stderr
        self.assertIn(
            "warning: "
            + self.path("case.jsonl")
            + ': the labels "Sea" and "sea" differ in case or blanks alone, and are two labels',
            warnings,
        )
        self.assertIn('the labels "air" and "air " differ', warnings)
        self.assertEqual(json.loads(self.read("run", "labels.json")), ["Sea", "air", "air ", "sea"])

    def test_a_resumed_run_has_the_same_bits(self):
        data = self.table(self.rows())
        self.train_on("whole", data, "--schedule", "constant", "--steps", 8)
        self.train_on("parts", data, "--schedule", "constant", "--steps", 5)
        self.run_command("train", "--resume", self.path("parts"), "--steps", 8, "--vram", "32MiB")
        self.assertEqual(self.weights("parts"), self.weights("whole"))
        # The same number of labels with other names is refused.
        self.table([(text, label.upper()) for text, label in self.rows()])
        self.refused(
            "train",
            "--resume",
            self.path("parts"),
            "--steps",
            9,
            says=["its labels are not those of the run", "labels.json"],
        )
        # A new run that begins with the weights of the run has its labels.
        self.table(self.rows())
        self.train_on("further", data, "--steps", 2, model=self.path("whole"))
        self.assertEqual(self.read("further", "labels.json"), self.read("whole", "labels.json"))

    def test_adapters_bring_their_head(self):
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
            3,
            "--eval-batches",
            0,
            "--out",
            self.path("language"),
        )
        output = self.train_on(
            "run",
            self.table(self.rows()),
            "--lora",
            4,
            "--lr",
            "1e-2",
            "--steps",
            60,
            model=self.path("language"),
        ).stdout
        self.assertIn("weights read from files, and a new head for 3 labels\n", output)
        self.assertGreater(self.metrics("run")[-1]["eval_accuracy"], 0.8)
        config = json.loads(self.read("run", "adapter_config.json"))
        self.assertEqual(
            [config["task_type"], config["modules_to_save"]], ["SEQ_CLS", ["classifier", "score"]]
        )
        answers = self.classified("run", "--text", "where is my card", "--text", "i want a refund")
        self.assertEqual([answer["label"] for answer in answers], ["card", "money, refund"])
        self.run_command("merge", "--model", self.path("run"), "--out", self.path("merged"))
        merged = self.classified("merged", "--text", "where is my card", "--text", "i want a refund")
        for ours, theirs in zip(answers, merged):
            self.assertEqual(ours["label"], theirs["label"])
            self.assertAlmostEqual(ours["score"], theirs["score"], places=5)

    def test_plans_know_the_head(self):
        small = ["--model", "nano", "--batch", 4, "--vram", "64MiB", "--threads", 2]
        plan = self.plan(*small, "--labels", 77)
        self.assertEqual(plan["model"]["labels"], 77)
        self.assertEqual(plan["model"]["parameters"] - self.plan(*small)["model"]["parameters"], 77 * 128)
        self.assertNotIn("labels", self.plan(*small)["model"])
        self.refused("plan", *small, "--labels", 0, expect=USAGE, says=["--labels"])
        self.refused("plan", *small, "--labels", 1, expect=USAGE, says=["--labels 1, expected 2"])
        # The plan is the one that `train` makes: its smallest budget works, and `train --plan` accepts it.
        data = self.table(self.rows())
        small = ["--model", "nano", "--batch", 4, "--seq", 32, "--threads", 2]
        least = self.plan(*small, "--labels", 3, "--vram", 1, expect=DOES_NOT_FIT)["minimum_vram_bytes"]
        train = ["train", "--model", "nano", "--data", data, "--steps", 1, "--eval-batches", 2]
        self.run_command(*train, *small[2:], "--vram", least, "--out", self.path("least"))
        self.refused(
            *train,
            *small[2:],
            "--vram",
            least - 1,
            "--out",
            self.path("none"),
            expect=DOES_NOT_FIT,
            says=["smallest"],
        )
        self.run_command(
            *train,
            "--plan",
            self.write("plan.json", json.dumps(self.plan(*small, "--labels", 3, "--vram", least))),
            "--out",
            self.path("planned"),
        )
        self.assertEqual(self.weights("planned"), self.weights("least"))
        self.assertEqual(
            self.plan("--model", self.path("least"), *small[2:], "--vram", 1, expect=DOES_NOT_FIT)[
                "minimum_vram_bytes"
            ],
            least,
        )
        self.assertRegex(
            self.run_command("inspect", self.path("least/checkpoint.stw")).stdout, r"\ntexts +4\n"
        )

    def test_mistakes_are_refused_by_name(self):
        rows = self.rows()
        data = self.table(rows)
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
        self.refused(
            *train,
            self.table(rows, "a.csv", ("text", "category")),
            says=[
                "a.csv",
                'there is no column "label"; there are text, category (--label-field names another)',
            ],
        )
        self.refused(*train, self.table(rows, "a.csv", ("query", "label")), says=['"text"', "--text-field"])
        self.refused(*train, self.table([*rows, ("", "card")], "b.csv"), says=['b.csv:122: "text" is empty'])
        self.refused(*train, self.table([*rows, ("a", "")], "b.csv"), says=['b.csv:122: "label" is empty'])
        self.refused(
            *train,
            self.table([*rows, ("a", "card", "more")], "b.csv"),
            says=["b.csv:122: expected 2 fields", "found 3"],
        )
        self.refused(
            *train,
            self.table([("a", "card"), ("b", "card")], "c.csv"),
            says=['all texts have the label "card"'],
        )
        self.refused(*train, self.table(rows, "h.csv"), "--label-field", "text2", says=['no column "text2"'])
        self.refused(
            *train,
            self.table([("a", "b", "c")], "i.csv", ("text", "label", "label")),
            says=['i.csv: there are several columns "label"'],
        )
        self.refused(
            *train,
            self.write("j.csv", b"text,label\na,caf\xe9\nb,x\n"),
            says=[
                "j.csv, line 2: expected UTF-8, found the byte 0xE9",
                "iconv -f WINDOWS-1252 -t UTF-8",
                "j.utf8.csv",
            ],
        )
        self.refused(
            *train,
            self.write("k.jsonl", '{"text": "a", "label": "a\\u0000b"}\n'),
            says=['k.jsonl, line 1: "label" is not UTF-8, or has a zero byte'],
        )
        self.refused(
            *train,
            self.write("l.jsonl", '{"text": "a", "label": "b"}\n[1]\n'),
            says=["l.jsonl, line 2: expected an object"],
        )
        for long in (
            "text,label" + "\ra,card" * 999,
            'text,label\n"' + "a\r" * 999 + '" b,card\n',
        ):  # carriage returns alone end no line
            self.assertLess(
                len(self.refused(*train, self.write("r.csv", long), says=["r.csv", "…"]).stderr), 400
            )
        self.refused(
            *train,
            self.table([], "d.csv"),
            says=["d.csv: there is no data: the file has a line of column names alone"],
        )
        self.refused(*train, self.write("e.csv", ""), says=["e.csv: there is no data: the file is empty"])
        self.refused(
            *train,
            self.write("f.jsonl", '{"text": "a", "label": "b"}\n{"text": "c"}\n'),
            says=["f.jsonl, line 2: label: expected a label"],
        )
        self.refused(
            *train,
            self.write("f.jsonl", '{"text": "a", "label": [[1]]}\n'),
            says=["f.jsonl, line 1: label[0]: expected a string or a number"],
        )
        self.refused(
            *train,
            self.write("f.jsonl", '{"text": "c", "label": null}\n{"text": "a", "label": "b"}\n'),
            says=["f.jsonl, line 1: label: expected a label"],
        )
        self.refused(
            *train,
            self.write("f.jsonl", '{"text": 4, "label": 1}\n'),
            says=["f.jsonl, line 1: text: expected a string"],
        )
        self.refused(
            *train,
            self.text(),
            "--label-field",
            "x",
            expect=USAGE,
            says=["--label-field: is for .csv, .jsonl and .conll files"],
        )
        self.refused(*train, data, "--document-end", 300, expect=USAGE, says=["--document-end 300"])
        self.train_on("language", self.text(), "--steps", 1)
        self.refused(
            "eval",
            "--model",
            self.path("language"),
            "--data",
            data,
            says=["its texts have labels, and", "is a language model"],
        )
        self.refused(
            "classify",
            "--model",
            self.path("language"),
            "--text",
            "a",
            expect=USAGE,
            says=["is a language model", "`stowage train` makes a classifier"],
        )
        self.train_on("run", data, "--steps", 1)
        self.refused(
            "generate",
            "--model",
            self.path("run"),
            expect=USAGE,
            says=["is a classifier", "stowage classify"],
        )
        self.refused(
            "eval",
            "--model",
            self.path("run"),
            "--data",
            self.text(),
            says=["the model is a classifier with 3 labels: expected a .csv or .jsonl file"],
        )
        self.refused(*train, self.text(), "--model", self.path("run"), expect=USAGE)  # a flag twice
        self.refused(
            "train",
            "--model",
            self.path("run"),
            *train[3:],
            self.text(),
            says=["the model is a classifier with 3 labels"],
        )
        self.refused(
            "train",
            "--resume",
            self.path("run"),
            "--steps",
            3,
            "--data",
            self.text(),
            says=["is of a classifier: expected a .csv or .jsonl file"],
        )
        self.refused(
            "eval",
            "--model",
            self.path("run"),
            "--data",
            self.table([("a", "card")], "m.csv"),
            "--held-out",
            says=["m.csv: too few examples", "evaluate on --all of it"],
        )
        self.refused(
            "classify", "--model", self.path("run"), expect=USAGE, says=["--text or --data is required"]
        )
        self.refused(
            "classify", "--model", self.path("run"), "--data", self.path("none.txt"), says=["none.txt"]
        )
        self.refused(
            "eval",
            "--model",
            self.path("run"),
            "--data",
            self.table([("a", "what")], "g.csv"),
            "--all",
            says=['g.csv:2: "what" is not one of the model\'s 3 labels'],
        )
        self.assertFalse(pathlib.Path(self.path("out")).exists())

    def test_a_label_next_to_other_members_makes_no_classifier(self):
        """Preference data has a member "label" too, and texts may have another name."""
        rows = [{"prompt": "q", "completion": " a", "label": True}] * 30 + [
            {"text": "some text", "label": None}
        ] * 10
        output = self.train_on(
            "run",
            self.write("kto.jsonl", "".join(json.dumps(row) + "\n" for row in rows)),
            "--steps",
            2,
            "--document-end",
            1,
        ).stdout
        self.assertIn("tokens are learned", output)
        self.refused(
            "train",
            "--model",
            "nano",
            "--data",
            self.write(
                "odd.jsonl",
                '{"prompt": "q", "completion": " a"}\n' * 30 + '{"text": "t", "label": "x", "prompt": 1}\n',
            ),
            "--batch",
            4,
            "--seq",
            32,
            "--steps",
            1,
            "--document-end",
            1,
            "--out",
            self.path("none"),
            says=["odd.jsonl, line 31"],
        )
        self.train_on(
            "texts",
            self.write("texts.jsonl", '{"content": "some text"}\n' * 40),
            "--text-field",
            "content",
            "--steps",
            2,
            "--document-end",
            1,
        )

    def test_labels_of_any_kind(self):
        names = ["one\nline", "tab\there", "\u00e9t\u00e9 \U0001f600", "a" * 3000, "1.0", "-1", "01", "1"]
        rows = [(f"text of {i % len(names)}", names[i % len(names)]) for i in range(80)]
        self.train_on("run", self.table(rows), "--steps", 3)
        self.assertEqual(json.loads(self.read("run", "labels.json")), sorted(names))
        self.assertEqual(
            len(
                self.run_command(
                    "classify",
                    "--model",
                    self.path("run"),
                    "--data",
                    self.table(rows, "again.csv"),
                    "--top",
                    8,
                ).stdout.splitlines()
            ),
            80,
        )
        self.assertEqual(
            {one["label"] for one in self.classified("run", "--text", "a", "--top", 8)[0]}, set(names)
        )
        inspected = self.run_command("inspect", self.path("run")).stdout
        self.assertIn("accuracy 0.", inspected)
        self.assertRegex(inspected, r"labels +8: ")

    def test_more_labels_than_a_small_config_holds(self):
        count = 14000
        rows = [(f"{i}", f"customer_intent_number_{i:06}") for i in range(count)]
        self.train_on("run", self.table(rows), "--steps", 1)
        self.assertTrue(self.classified("run", "--text", "a")[0]["label"].startswith("customer_intent"))

    def test_adapters_of_a_language_model_start_a_classifier(self):
        text = [
            "--batch",
            4,
            "--seq",
            32,
            "--vram",
            "64MiB",
            "--steps",
            3,
            "--eval-batches",
            0,
            "--data",
            self.text(),
        ]
        self.run_command("train", "--model", "nano", *text, "--out", self.path("language"))
        self.run_command(
            "train", "--model", self.path("language"), "--lora", 2, *text, "--out", self.path("adapters")
        )
        output = self.train_on(
            "run", self.table(self.rows()), "--steps", 2, model=self.path("adapters")
        ).stdout
        self.assertIn("a new head for 3 labels\n", output)
        self.assertIn("are trained, with those of the head\n", output)
        self.assertIn("labels", self.run_command("inspect", self.path("run")).stdout)

    def test_long_texts_are_cut_and_count(self):
        rows = [("a" * 40 if i % 2 else "b" * 50, "a" if i % 2 else "b") for i in range(60)]
        output = self.train_on("run", self.table(rows), "--steps", 30, "--lr", "1e-3").stdout
        self.assertIn("examples    60, each with one of 2 labels; 60 cut to the length of a sample\n", output)
        self.assertEqual(self.metrics("run")[-1]["eval_accuracy"], 1)
        self.assertEqual(
            [answer["label"] for answer in self.classified("run", "--text", "b" * 200, "--text", "a" * 33)],
            ["b", "a"],
        )


class EvaluationFileTest(CommandTest):
    def test_evaluates_on_a_separate_text(self):
        data = self.text()
        other = self.write("other.txt", self.read(".", "text.txt")[5000:9000])
        output = self.run_command(
            "train",
            "--model",
            "nano",
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
            "--data",
            data,
            "--eval-data",
            other,
            "--steps",
            3,
            "--out",
            self.path("run"),
        ).stdout
        self.assertIn("20,000 tokens to train on, 4,000 to evaluate on, in ", output)
        metrics = json.loads(
            self.run_command("eval", "--model", self.path("run"), "--data", other, "--all", "--json").stdout
        )
        self.assertEqual(metrics["tokens"], 3999)
        self.assertAlmostEqual(
            metrics["eval_loss"], self.metrics("run")[-1]["eval_loss"], delta=0.2
        )  # the run evaluates 8 windows, `eval` all of them
        self.run_command("train", "--resume", self.path("run"), "--steps", 4)  # the file is still known
        self.refused(
            "train",
            "--resume",
            self.path("run"),
            "--steps",
            5,
            "--eval-data",
            self.write("short.txt", "abc"),
            says=["short.txt", "held-out part needs at least"],
        )
        self.refused(
            "train",
            "--resume",
            self.path("run"),
            "--steps",
            5,
            "--no-eval-data",
            expect=USAGE,
            says=["the bits of the run"],
        )
        self.train("without", "--steps", 1)
        self.refused(
            "train",
            "--resume",
            self.path("without"),
            "--steps",
            2,
            "--eval-data",
            other,
            says=["--eval-data: the run in", "was trained without it"],
        )
        self.refused(
            "train",
            "--resume",
            self.path("run"),
            "--steps",
            5,
            "--eval-data",
            self.path("none.txt"),
            expect=FAILED,
            says=["none.txt"],
        )
