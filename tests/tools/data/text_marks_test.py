"""Texts with labels, numbers and tags, and texts with hidden tokens, that are marked out of the loss."""

import csv
import io
import json

from support import SMALL, CommandTest

OUT = ({"weight": 0}, {"weight": 0.0}, {"train": False}, {"masked": True}, {"weight": 0, "train": False})
KEPT = ({"weight": 1}, {"train": True}, {"masked": False}, {"weight": None})
BERT = {
    "model_type": "bert",
    "architectures": ["BertForMaskedLM"],
    "vocab_size": 40,
    "hidden_size": 32,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "max_position_embeddings": 48,
    "type_vocab_size": 2,
    "pad_token_id": 0,
}


class TextMarksTest(CommandTest):
    def lines(self, rows, name="x.jsonl"):
        return self.write(name, "".join(json.dumps(row) + "\n" for row in rows))

    def rows(self, kind):
        tasks = {
            "label": lambda i: {"text": f"ship {i}", "label": "ab"[i // 2 % 2]},
            "labels": lambda i: {"text": f"ship {i}", "labels": ["ab"[i // 2 % 2], "c"]},
            "number": lambda i: {"text": f"ship {i}", "label": i / 7},
            "tokens": lambda i: {"tokens": ["a", "ship"], "tags": ["O", "AB"[i // 2 % 2]]},
        }
        return [tasks[kind](i) for i in range(60)]

    def words(self, data, kind, model="nano"):
        return [
            "train",
            "--model",
            model,
            *SMALL[2:],
            "--task",
            kind,
            "--steps",
            1,
            "--overwrite",
            "--out",
            self.path("run"),
            "--data",
            data,
        ]

    def test_marked_texts_are_left_out(self):
        for kind in ("label", "labels", "number", "tokens"):
            for mark in (*OUT, *KEPT):
                rows = [row if i % 2 else {**row, **mark} for i, row in enumerate(self.rows(kind))]
                output = self.run_command(*self.words(self.lines(rows), kind)).stdout
                if mark in OUT:
                    self.assertRegex(
                        output, r"examples    30, .*; 30 more left out: 30 marked out of the loss\n"
                    )
                else:
                    self.assertRegex(output, r"examples    60, ")
                    self.assertNotIn("left out", output)

    def test_eval_counts_marked_texts(self):
        for kind in ("label", "labels", "number", "tokens"):
            rows = [{**row, "weight": int(i % 3 > 0)} for i, row in enumerate(self.rows(kind))]
            data = self.lines(rows)
            self.run_command(*self.words(data, kind))
            for part in ("--all", "--held-out"):
                evaluate = ["eval", "--model", self.path("run"), "--data", data, part]
                output = self.run_command(*evaluate).stdout.splitlines()[0]
                self.assertTrue(output.endswith("; 20 more left out: 20 marked out of the loss"), output)
                report = json.loads(self.run_command(*evaluate, "--json").stdout)
                self.assertEqual((report["examples"], report["left_out"]["marked"]), (40, 20))
            whole = self.lines(self.rows(kind), "whole.jsonl")
            output = self.run_command("eval", "--model", self.path("run"), "--data", whole).stdout
            self.assertNotIn("left out", output)

    def test_marks_with_other_values_are_refused(self):
        for kind in ("label", "labels", "number", "tokens"):
            for mark, name in (
                ({"weight": 0.5}, "weight"),
                ({"weight": "high"}, "weight"),
                ({"train": 2}, "train"),
                ({"loss_mask": [1, 0]}, "loss_mask"),
                ({"token_weights": [0.5]}, "token_weights"),
            ):
                rows = self.rows(kind)
                rows[6].update(mark)
                self.refused(*self.words(self.lines(rows), kind), says=[f"x.jsonl, line 7: {name}: expected"])
            rows = [{**row, "weight": 0} for row in self.rows(kind)]
            self.refused(
                *self.words(self.lines(rows), kind), says=["all 60 texts are marked out of the loss"]
            )

    def test_columns_of_tables(self):
        out = io.StringIO()
        csv.writer(out).writerows(
            [("text", "label", "weight")]
            + [(f"ship {i}", "ab"[i // 2 % 2], ("0", "1.0", "", "FALSE")[i % 4]) for i in range(60)]
        )
        output = self.run_command(*self.words(self.write("x.csv", out.getvalue()), "label")).stdout
        self.assertIn("examples    30, each with one of 2 labels; 30 more left out", output)
        self.refused(
            *self.words(self.write("y.csv", "text,label,weight\na,x,1\nb,y,0.3\n"), "label"),
            says=["y.csv:3: weight: expected 0 or 1", "found 0.3"],
        )
        # A column that a flag names is no mark.
        output = self.run_command(
            *self.words(self.write("z.csv", "text,weight\na,70.5\nb,81\n" * 1 + "c,60\n" * 30), "number"),
            "--label-field",
            "weight",
        ).stdout
        self.assertIn("examples    32, each with a number\n", output)

    def test_answers_ignore_marks(self):
        self.run_command(*self.words(self.lines(self.rows("label")), "label"))
        rows = [{"text": "a", "weight": 0}, {"text": "b", "weight": 0.5}]
        answers = self.run_command(
            "classify", "--model", self.path("run"), "--data", self.lines(rows, "c.jsonl")
        )
        self.assertEqual(len(answers.stdout.splitlines()), 2)

    def test_hidden_tokens(self):
        words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "ship", "sails"]
        self.write("bert/vocab.txt", "\n".join(words) + "\n")
        self.write("bert/config.json", json.dumps(BERT))
        rows = [{"text": "a ship sails", "weight": i % 2} for i in range(60)]
        output = self.run_command(*self.words(self.lines(rows), "masked", self.path("bert"))).stdout
        self.assertRegex(output, r"texts       30 with .*; 30 more left out: 30 marked out of the loss\n")
        evaluate = ["eval", "--model", self.path("run"), "--data", self.path("x.jsonl"), "--all"]
        output = self.run_command(*evaluate).stdout
        self.assertRegex(output, r"hidden tokens.*; 30 more left out: 30 marked out of the loss\n")
        report = json.loads(self.run_command(*evaluate, "--json").stdout)
        self.assertEqual((report["examples"], report["left_out"]["marked"]), (30, 30))
