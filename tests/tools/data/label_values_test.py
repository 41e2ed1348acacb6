"""Labels that are values: ones and zeros, numbers as text, lists as text; and labels that look wrong."""

import csv
import io
import json

from support import SMALL, USAGE, CommandTest

NAMES = ["storm", "calm", "fog"]


class LabelValuesTest(CommandTest):
    def lines(self, labels, name="x.jsonl", **more):
        rows = [{"text": f"ship {i} sails", "label": label, **more} for i, label in enumerate(labels)]
        return self.write(name, "".join(json.dumps(row) + "\n" for row in rows))

    def table(self, labels, name="x.csv"):
        out = io.StringIO()
        csv.writer(out).writerows(
            [("text", "label"), *((f"ship {i} sails", label) for i, label in enumerate(labels))]
        )
        return self.write(name, out.getvalue())

    def words(self, data, *more):
        return [
            "train",
            *SMALL,
            "--steps",
            1,
            "--overwrite",
            "--out",
            self.path("run"),
            "--data",
            data,
            *more,
        ]

    def learned(self, data, *more):
        result = self.run_command(*self.words(data, *more))
        return json.loads(self.read("run", "labels.json")), result

    def shown(self, data, *more):
        """The labels of the first texts, as --show-examples prints them."""
        output = self.run_command(
            "train", "--model", "nano", "--seq", 32, "--data", data, "--show-examples", 4, *more
        ).stdout
        return [line.split(" tokens, ")[1] for line in output.splitlines() if line.startswith("text ")]

    def test_ones_and_zeros_need_names(self):
        bits = [[i & 1, i >> 1 & 1, i >> 2 & 1] for i in range(60)]
        forms = {
            "int.jsonl": self.lines(bits, "int.jsonl"),
            "float.jsonl": self.lines([[float(b) for b in row] for row in bits], "float.jsonl"),
            "bool.jsonl": self.lines([[bool(b) for b in row] for row in bits], "bool.jsonl"),
            "text.jsonl": self.lines([[str(b) for b in row] for row in bits], "text.jsonl"),
            "list.csv": self.table([str(row) for row in bits], "list.csv"),
            "numpy.csv": self.table(
                ["[" + " ".join(f"{b}." for b in row) + "]" for row in bits], "numpy.csv"
            ),
            "tuple.csv": self.table([str(tuple(map(bool, row))) for row in bits], "tuple.csv"),
        }
        for name, data in forms.items():
            for task in ((), ("--task", "labels")):
                self.refused(
                    *self.words(data, *task),
                    expect=USAGE,
                    says=[name, "3 ones and zeros, one for each label", "--label-names NAME,…"],
                )
            # The advice of the message is right.
            labels, result = self.learned(data, "--label-names", ",".join(NAMES))
            self.assertEqual(labels, {"task": "labels", "labels": NAMES})
            self.assertIn("examples    60, each with any of 3 labels\n", result.stdout)
            self.assertEqual(
                self.shown(data, "--label-names", ",".join(NAMES)),
                ["labels none", 'labels "storm"', 'labels "calm"', 'labels "storm", "calm"'],
            )
            self.run_command("eval", "--model", self.path("run"), "--data", data, "--all")
        self.refused(
            *self.words(forms["int.jsonl"], "--label-names", "a,b"),
            expect=USAGE,
            says=["--label-names: expected 3 names, one for each of the ones and zeros", "found 2"],
        )
        separated = self.table(["|".join(map(str, row)) for row in bits], "bars.csv")
        self.refused(
            *self.words(separated, "--label-separator", "|"), expect=USAGE, says=["3 ones and zeros"]
        )
        self.refused(
            *self.words(self.lines([*bits[:9], [1, 1]], "short.jsonl")),
            says=['short.jsonl, line 1: has the label "0" twice', "lists of as many ones and zeros"],
        )
        # One zero too many for the model is no index.
        self.learned(forms["int.jsonl"], "--label-names", ",".join(NAMES))
        self.refused(
            "eval",
            "--model",
            self.path("run"),
            "--all",
            "--data",
            self.lines([[0, 0, 1, 1]], "long.jsonl"),
            says=["long.jsonl, line 1: has the label 0 twice", "3 ones and zeros"],
        )

    def test_numbers_of_labels_get_names(self):
        labels, _ = self.learned(self.lines([i % 3 for i in range(60)]), "--label-names", ",".join(NAMES))
        self.assertEqual(labels, NAMES)
        lists = self.lines([[0], [0, 1], [2], []] * 15)
        labels, _ = self.learned(lists, "--label-names", ",".join(NAMES))
        self.assertEqual(labels, {"task": "labels", "labels": NAMES})
        self.assertEqual(
            self.shown(lists, "--label-names", ",".join(NAMES))[:3],
            ['labels "storm"', 'labels "storm", "calm"', 'labels "fog"'],
        )
        alone = self.lines([[0], [1], [0, 1]] * 20)
        self.refused(
            *self.words(alone), expect=USAGE, says=["its labels are 0 and 1 alone", "--label-names NAME,NAME"]
        )
        self.learned(alone, "--label-names", "no,yes")
        for names, says in (("1,2", "a number"), ("a,a", '"a" twice'), ("a", "two names or more")):
            self.refused(
                *self.words(alone, "--label-names", names), expect=USAGE, says=["--label-names", says]
            )
        self.refused(
            *self.words(self.lines([1, 2, 3] * 20), "--label-names", ",".join(NAMES)),
            says=['"3" is not one of the model\'s 3 labels (storm, calm, fog), which count from 0'],
        )
        self.refused(
            *self.words(self.lines([0.5, 1.5] * 20), "--task", "number", "--label-names", "a,b"),
            expect=USAGE,
            says=["--label-names: is for labels"],
        )
        # Truth values are two labels.
        self.assertEqual(self.learned(self.lines([True, False] * 30))[0], ["false", "true"])

    def test_a_label_that_is_there_twice(self):
        lists = [["fog", "calm"], ["calm", "storm"], ["fog"]] * 20
        self.learned(self.lines(lists))
        lists[7] = ["calm", "storm", "calm"]
        says = 'has the label "calm" twice: expected each label once'
        twice = self.lines(lists, "twice.jsonl")
        self.refused(*self.words(twice), says=[f"twice.jsonl, line 8: {says}"])
        self.refused("eval", "--model", self.path("run"), "--data", twice, "--all", says=[says])
        table = self.table(["|".join(row) for row in lists], "twice.csv")
        self.refused(*self.words(table, "--label-separator", "|"), says=[f"twice.csv:9: {says}"])
        tagged = self.write("tags.jsonl", '{"tokens": ["a", "b"], "tags": ["O", "X"]}\n' * 40)
        self.refused(
            *self.words(tagged, "--label-names", "O,X,O"),
            expect=USAGE,
            says=['--label-names: expected different names, found "O" twice'],
        )

    def test_numbers_as_text_are_numbers(self):
        asks = ["its labels are numbers", "--task number", "--task label"]
        values = [i * 0.25 - 3 for i in range(60)]
        forms = {
            "text": [str(v) for v in values],
            "comma": [str(v).replace(".", ",") for v in values],
            "signs": [f"{v:+}" for v in values],
            "minus": [str(v).replace("-", "\u2212") for v in values],
            "quotes": [f'"{v}"' for v in values],
            "blanks": [f" {v} " for v in values],
        }
        for name, labels in forms.items():
            for data in (self.lines(labels, name + ".jsonl"), self.table(labels, name + ".csv")):
                self.refused(*self.words(data), expect=USAGE, says=[name, *asks])
                output = self.run_command(*self.words(data, "--task", "number")).stdout
                self.assertIn("examples    60, each with a number\n", output)
                self.assertEqual(
                    self.shown(data, "--task", "number"),
                    ["number -3", "number -2.75", "number -2.5", "number -2.25"],
                )
        for label, advice in (
            ("85%", "write it without the percent sign"),
            ("1,234", "write a point as the decimal sign, and no commas between thousands"),
            ("1e999", "its size is beyond that of a double"),
            ("1,234,567.5", "no commas between thousands"),
        ):
            data = self.lines([*forms["text"], label])
            self.refused(
                *self.words(data),
                expect=USAGE,
                says=["its labels are numbers", f'not as "{label}" in', advice],
            )
            self.refused(
                *self.words(data, "--task", "number"),
                says=[f'x.jsonl, line 61: expected a finite number, found "{label}"; ', advice],
            )
        self.refused(
            *self.words(self.lines([[0.5, 0.5], [0.25, 1]] * 20)),
            expect=USAGE,
            says=["learn them as numbers with --task number"],
        )

    def test_lists_as_text_are_lists(self):
        rows = [["storm", "fog"], ["calm"], [], ["it's, so"]] * 15
        for data in (
            self.table([str(row) for row in rows]),
            self.table([json.dumps(row) for row in rows]),
            self.lines([str(row) for row in rows]),
        ):
            self.assertEqual(
                self.learned(data)[0], {"task": "labels", "labels": ["calm", "fog", "it's, so", "storm"]}
            )
        self.refused(
            *self.words(self.table(["calm", "['storm', 'fog']"] * 20)),
            says=["x.csv:3", "is a list as text", "x.csv:2", "write lists for all texts"],
        )
        self.assertEqual(self.learned(self.table(["[calm]", "(fog)"] * 20))[0], ["(fog)", "[calm]"])

    def test_a_separator_that_separates_nothing(self):
        data = self.table(["storm;fog", "calm;fog"] * 20)
        self.refused(
            *self.words(data, "--label-separator", "|"),
            expect=USAGE,
            says=['--label-separator "|": no field "label" of', "leave it out", "--task labels"],
        )
        one = self.table(["fog", "calm"] * 20)
        self.assertEqual(self.learned(one)[0], ["calm", "fog"])
        self.assertEqual(
            self.learned(one, "--label-separator", "|", "--task", "labels")[0]["labels"], ["calm", "fog"]
        )

    def test_labels_that_look_wrong_get_a_warning(self):
        warnings = lambda labels, *more: [
            line for line in self.learned(self.lines(labels), *more)[1].stderr.splitlines() if "label" in line
        ]
        self.assertEqual(warnings(["fog", "calm"] * 30), [])
        self.assertIn(
            "its 60 texts have 60 different labels: a label with fewer than 5 texts is hardly learned",
            warnings([f"id {i}" for i in range(60)])[0],
        )
        # A small file gets only the warning that held-out labels are not learned.
        (small,) = warnings([f"id {i}" for i in range(20)])
        self.assertIn("are in no text that is trained on", small)
        (numbers,) = warnings([1, 2, 3] * 20)
        self.assertIn("its 3 labels are numbers, and are learned as names without an order", numbers)
        self.assertIn("--task number", numbers)
        self.run_command(*self.words(self.lines([1, 2, 3] * 20), "--task", "number"))
        self.assertEqual(warnings([1, 2, 3] * 20, "--task", "label"), [])
        for pair in (
            ("caf\u00e9", "cafe\u0301"),
            ("new york", "new  york"),
            ("new york", "new\u00a0york"),
            ("fog", "fo\u200bg"),
            ("fog", "\ufefffog"),
            ("ﬁg", "fig"),
        ):
            (warning,) = warnings(list(pair) * 30)
            self.assertIn("differ in blanks, Unicode form or invisible characters alone", warning)
        self.assertEqual(len(warnings([f"{'a' * i} b{' ' * j}" for i in range(30) for j in range(2)] * 5)), 6)
