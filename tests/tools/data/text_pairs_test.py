"""Pairs of texts, found by the names of their columns, or named by --pair-field."""

import json

from support import SMALL, USAGE, CommandTest

BERT = {
    "model_type": "bert",
    "architectures": ["BertModel"],
    "vocab_size": 40,
    "hidden_size": 32,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "max_position_embeddings": 48,
    "type_vocab_size": 2,
    "pad_token_id": 0,
}


class TextPairsTest(CommandTest):
    def setUp(self):
        super().setUp()
        words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "ship", "sails", "the", "mate", "said"]
        self.write("bert/vocab.txt", "\n".join(words) + "\n")
        self.write("bert/config.json", json.dumps(BERT))

    def data(self, first, second, name="x.csv", separator=","):
        rows = [("a ship sails", "the mate said a ship", "ab"[i % 2]) for i in range(40)]
        header = (first, second, "label")
        if name.endswith("jsonl"):
            lines = (json.dumps(dict(zip(header, row))) for row in rows)
        else:
            lines = (separator.join(row) for row in (header, *rows))
        return self.write(name, "\n".join(lines) + "\n")

    def shown(self, data, *more, model="bert"):
        """What is read of the first text, and the warnings."""
        result = self.run_command(
            "train",
            "--model",
            self.path("bert"),
            "--from-scratch",
            "--seq",
            32,
            "--data",
            data,
            "--show-examples",
            1,
            *more,
        )
        warnings = "".join(line for line in result.stderr.splitlines() if "warning" in line)
        return result.stdout.splitlines()[0].split(": ")[-1].split(",")[0], warnings

    def test_names_that_are_known(self):
        for first, second in (
            ("text", "text_pair"),
            ("sentence1", "sentence2"),
            ("Sentence1", "Sentence2"),
            ("premise", "hypothesis"),
            ("question", "sentence"),
            ("question1", "question2"),
            ("text", "text2"),
            ("text1", "text2"),
            ("text_a", "text_b"),
            ("query", "passage"),
        ):
            for data in (
                self.data(first, second),
                self.data(first, second, "x.tsv", "\t"),
                self.data(first, second, "y.csv", ";"),
                self.data(first, second, "x.jsonl"),
                self.data(first, second, "x.txt", "|"),
            ):
                for more in ((), ("--text-field", first), ("--pair-field", second)):
                    self.assertEqual(self.shown(data, *more), ("11 tokens", ""), (first, data, more))

    def test_a_text_that_is_left_out_is_named(self):
        data = self.data("premise", "hypothesis")
        tokens, warning = self.shown(data, "--text-field", "hypothesis")
        self.assertEqual(tokens, "7 tokens")
        self.assertIn(
            'the other text of the pair, "premise", is left out; --text-field premise reads both', warning
        )
        self.assertEqual(self.shown(data, "--text-field", "premise"), ("11 tokens", ""))
        self.assertEqual(
            self.shown(data, "--text-field", "hypothesis", "--pair-field", "premise"), ("11 tokens", "")
        )
        self.assertEqual(
            self.shown(data, "--text-field", "premise", "--pair-field", "none"), ("5 tokens", "")
        )
        for name in ("u.csv", "u.jsonl"):
            unknown = self.data("remark", "reply", name)
            tokens, warning = self.shown(unknown, "--text-field", "remark")
            self.assertEqual(tokens, "5 tokens")
            self.assertIn('"reply" has texts too, and is left out; --pair-field reply reads it', warning)
            self.assertEqual(
                self.shown(unknown, "--text-field", "remark", "--pair-field", "reply"), ("11 tokens", "")
            )

    def test_the_flag_in_other_commands(self):
        data = self.data("remark", "reply")
        fields = ["--text-field", "remark", "--pair-field", "reply"]
        model = ["--model", self.path("bert"), "--from-scratch"]
        self.run_command(
            "train", *SMALL[2:], *model, "--steps", 1, "--out", self.path("run"), "--data", data, *fields
        )
        self.assertEqual(json.loads(self.read("run", "settings.json"))["options"]["pair-field"], ["reply"])
        run = ["--model", self.path("run")]
        self.run_command("eval", *run, "--data", data, *fields)
        pairs = self.run_command("classify", *run, "--json", "--data", data, *fields).stdout
        known = self.run_command("classify", *run, "--json", "--data", self.data("s1", "s2", "k.csv")).stdout
        self.assertEqual(pairs, known)
        self.assertEqual(len(pairs.splitlines()), 40)
        halves = self.run_command("classify", *run, "--json", "--data", data, *fields[:2])
        self.assertNotEqual(halves.stdout, pairs)
        self.assertIn('"reply" has texts too', halves.stderr)
        self.refused(
            "classify", *run, "--text", "a", "--pair-field", "b", expect=USAGE, says=["--pair-field: is for"]
        )

    def test_mistakes_are_named(self):
        train = ["train", *SMALL, "--steps", 1, "--out", self.path("out"), "--data"]
        data = self.data("premise", "hypothesis")
        self.refused(
            *train,
            self.data("remark", "reply", "u.csv"),
            says=['no column "text"; there are remark, reply, label', "--text-field", "--pair-field"],
        )
        self.refused(*train, data, "--pair-field", "x", says=['no column "x"', "--pair-field names another"])
        self.refused(
            *train,
            data,
            "--text-field",
            "premise",
            "--pair-field",
            "premise",
            expect=USAGE,
            says=["--pair-field premise: is the first text"],
        )
        self.refused(*train, data, says=["--pair-field none leaves the second text out"])
        self.run_command(*train, data, "--text-field", "premise", "--pair-field", "none")
        self.refused(
            *train,
            self.write("two.csv", "premise,hypothesis,s1,s2,label\na,b,c,d,e\n"),
            says=['found "s1" and "s2"', '"premise" and "hypothesis"', "--text-field and --pair-field"],
        )
        self.refused(
            *train, self.text(), "--pair-field", "x", expect=USAGE, says=["--pair-field: is for .csv"]
        )
        self.refused(
            *train,
            self.write("e.jsonl", '{"prompt": "a", "completion": "b"}\n' * 30),
            "--pair-field",
            "x",
            expect=USAGE,
            says=["--pair-field x: is for texts with labels"],
        )
