"""Encoders: `train`, `eval` and `classify` on texts and pairs of texts, from a folder with BERT's
vocab.txt."""

import csv
import io
import json
import os
import pathlib
import random
import re

from support import DOES_NOT_FIT, FAILED, USAGE, CommandTest

COLOURS = ["red", "green", "blue"]
WORDS = COLOURS + ["a", "the", "box", "ball", "is", "not", "here", "big", "small"]
BERT = {
    "model_type": "bert",
    "architectures": ["BertModel"],
    "vocab_size": 40,
    "hidden_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 96,
    "max_position_embeddings": 48,
    "type_vocab_size": 2,
    "pad_token_id": 0,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
}
DISTILBERT = {
    "model_type": "distilbert",
    "architectures": ["DistilBertModel"],
    "vocab_size": 40,
    "dim": 48,
    "n_layers": 2,
    "n_heads": 4,
    "hidden_dim": 96,
    "max_position_embeddings": 48,
    "pad_token_id": 0,
    "dropout": 0.0,
    "attention_dropout": 0.0,
    "seq_classif_dropout": 0.0,
}
MODERNBERT = {
    "model_type": "modernbert",
    "architectures": ["ModernBertForMaskedLM"],
    "vocab_size": 40,
    "hidden_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "max_position_embeddings": 48,
    "pad_token_id": 0,
    "local_attention": 8,
    "classifier_pooling": "mean",
}


class EncoderTest(CommandTest):
    def model_folder(self, config=BERT, name="bert"):
        special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
        self.write(
            f"{name}/vocab.txt",
            "".join(word + "\n" for word in special + WORDS + ["##" + letter for letter in "abcdefghij"]),
        )
        self.write(f"{name}/config.json", json.dumps(config))
        return self.path(name)

    # Texts with one colour each, which is the label.
    def rows(self, count, seed):
        draw = random.Random(seed)
        rows = []
        for _ in range(count):
            words = [draw.choice(WORDS[3:]) for _ in range(draw.randrange(2, 9))]
            colour = draw.choice(COLOURS)
            words.insert(draw.randrange(len(words) + 1), colour)
            rows.append((" ".join(words).capitalize(), colour))
        return rows

    # Pairs of texts. The label is the colour of the second text.
    def pairs(self, count, seed):
        draw = random.Random(seed)
        return [
            (f"the {draw.choice(COLOURS)} box", f"a {colour} ball", colour)
            for colour in (draw.choice(COLOURS) for _ in range(count))
        ]

    def table(self, rows, name, header):
        out = io.StringIO()
        writer = csv.writer(out)
        writer.writerow(header)
        writer.writerows(rows)
        return self.write(name, out.getvalue())

    def train_on(self, data, *more, model=None, out="run", expect=0):
        return self.run_command(
            "train",
            "--model",
            model or self.model_folder(),
            "--data",
            data,
            "--batch",
            8,
            "--seq",
            48,
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

    def classified(self, *words):
        return [
            json.loads(line)
            for line in self.run_command(
                "classify", "--model", self.path("run"), *words, "--json"
            ).stdout.splitlines()
        ]

    # The loss reads one row of each text, so that the rows after the last attention are as many as --texts.
    def test_number_of_texts_in_a_sample(self):
        data = self.table(self.rows(60, 1), "texts.csv", ["text", "label"])
        self.train_on(data, "--steps", 2, "--texts", 2)
        plan = json.loads(self.read("run", "plan.json"))
        self.assertEqual(plan["numerics"]["texts"], 2)
        # By default an eighth of the tokens of a sample. A run goes on with its own number.
        self.train_on(data, "--steps", 2, out="eighth")
        self.assertEqual(json.loads(self.read("eighth", "plan.json"))["numerics"]["texts"], 6)
        self.run_command("train", "--resume", self.path("run"), "--steps", 4)
        self.assertEqual(json.loads(self.read("run", "plan.json"))["numerics"]["texts"], 2)
        self.assertEqual(len(self.classified("--data", data)), 60)
        failed = self.run_command("plan", "--model", "nano", "--texts", 4, expect=USAGE).stderr
        self.assertIn("texts is for encoders with an output for each text", failed)

    # Samples of 512 tokens hold many texts at once. With less memory, `classify` reads fewer.
    def test_classify_works_in_little_memory(self):
        data = self.table(self.rows(60, 1), "texts.csv", ["text", "label"])
        self.train_on(data, "--steps", 2, model=self.model_folder({**BERT, "max_position_embeddings": 512}))
        words = ["classify", "--model", self.path("run"), "--data", data, "--threads", 1]
        failed = self.run_command(*words, "--vram", "1KiB", expect=DOES_NOT_FIT).stderr
        least = int(re.search(r"\(([0-9,]+) bytes\)", failed)[1].replace(",", ""))
        self.assertLess(least, 700 << 10)
        answers = self.run_command(*words, "--vram", least).stdout
        self.assertEqual(answers, self.run_command(*words).stdout)

    def test_texts_with_labels(self):
        output = self.train_on(
            self.table(self.rows(400, 1), "texts.csv", ["text", "label"]), "--steps", 120, "--lr", "3e-3"
        ).stdout
        self.assertIn("bert, 2 layers", output)
        self.assertIn("examples    400, each with one of 3 labels\n", output)
        self.assertRegex(
            output,
            r"step 120: evaluation loss 0\.\d+ \(accuracy (1\.0000|0\.9\d+)(, F1 [01]\.\d+( macro)?)?\)\n",
        )
        config = json.loads(self.read("run", "config.json"))
        self.assertEqual(config["architectures"], ["BertForSequenceClassification"])
        self.assertEqual(config["id2label"], {str(i): colour for i, colour in enumerate(sorted(COLOURS))})
        self.assertIn("[CLS]", self.read("run", "vocab.txt"))
        unseen = self.rows(300, 2)
        answers = self.classified("--data", self.table(unseen, "unseen.csv", ["text", "label"]))
        right = sum(answer["label"] == label for answer, (_, label) in zip(answers, unseen))
        self.assertEqual(len(answers), len(unseen))
        self.assertGreaterEqual(right, 290)
        # A text alone in its sample has the same answer to the last digit.
        for (text, _), answer in list(zip(unseen, answers))[:5]:
            self.assertEqual(self.classified("--text", text), [answer])
        evaluated = json.loads(
            self.run_command(
                "eval", "--model", self.path("run"), "--data", self.path("unseen.csv"), "--all", "--json"
            ).stdout
        )
        self.assertAlmostEqual(evaluated["accuracy"], right / len(unseen), places=6)
        self.check_metrics(evaluated, [label for _, label in unseen], [answer["label"] for answer in answers])

    # Compares the metrics with their definitions, label by label and text by text.
    def check_metrics(self, evaluated, labels, answers):
        def f1(of):
            both = sum(label == of and answer == of for label, answer in zip(labels, answers))
            either = labels.count(of) + answers.count(of)
            return 2 * both / either

        self.assertAlmostEqual(evaluated["f1_macro"], sum(map(f1, COLOURS)) / len(COLOURS), places=9)
        self.assertAlmostEqual(evaluated["f1_micro"], evaluated["accuracy"], places=6)

        # Matthews' coefficient is a correlation: a covariance over the product of two standard deviations.
        def covariance(xs, ys):
            n = len(xs)
            return (
                sum((xs[i] == of) * (ys[i] == of) for i in range(n) for of in COLOURS) / n
                - sum(xs.count(of) * ys.count(of) for of in COLOURS) / n**2
            )

        expected = (
            covariance(labels, answers) / (covariance(labels, labels) * covariance(answers, answers)) ** 0.5
        )
        self.assertAlmostEqual(evaluated["matthews"], expected, places=9)

    def test_a_batch_may_be_cut_in_any_way(self):
        data = self.table(self.rows(100, 1), "texts.csv", ["text", "label"])
        self.train_on(data, "--steps", 6, out="whole")
        self.train_on(data, "--steps", 6, "--micro-batch", 3, out="cut")
        self.assertEqual(self.weights("whole"), self.weights("cut"))

    def test_pairs_of_texts(self):
        data = self.table(self.pairs(600, 3), "pairs.csv", ["text", "text_pair", "label"])
        output = self.train_on(data, "--steps", 120, "--lr", "3e-3").stdout
        self.assertRegex(
            output,
            r"step 120: evaluation loss 0\.\d+ \(accuracy (1\.0000|0\.9\d+)(, F1 [01]\.\d+( macro)?)?\)\n",
        )
        unseen = self.pairs(100, 4)
        lines = "".join(
            json.dumps({"text": one, "text_pair": other, "label": label}) + "\n"
            for one, other, label in unseen
        )
        answers = self.classified("--data", self.write("unseen.jsonl", lines))
        self.assertGreaterEqual(
            sum(answer["label"] == label for answer, (_, _, label) in zip(answers, unseen)), 95
        )

    # A dataset's marks hold the types 0 and 1.
    def test_a_third_type_of_tokens_is_refused(self):
        folder = self.model_folder({**BERT, "type_vocab_size": 3}, "typed")
        names = pathlib.Path(folder, "vocab.txt").read_text().splitlines()
        os.remove(pathlib.Path(folder, "vocab.txt"))
        part = lambda kind, name, of: {kind: {"id": name, "type_id": of}}
        separator = {"[SEP]": {"id": "[SEP]", "ids": [names.index("[SEP]")], "tokens": ["[SEP]"]}}
        for of in (1, 2):
            single = [part("Sequence", "A", 0), part("SpecialToken", "[SEP]", 0)]
            pair = [*single, part("Sequence", "B", of), part("SpecialToken", "[SEP]", of)]
            template = {
                "type": "TemplateProcessing",
                "single": single,
                "pair": pair,
                "special_tokens": separator,
            }
            tokenizer = {
                "version": "1.0",
                "added_tokens": [],
                "normalizer": None,
                "pre_tokenizer": {"type": "WhitespaceSplit"},
                "post_processor": template,
                "decoder": None,
                "model": {
                    "type": "WordPiece",
                    "unk_token": "[UNK]",
                    "continuing_subword_prefix": "##",
                    "max_input_chars_per_word": 100,
                    "vocab": {name: number for number, name in enumerate(names)},
                },
            }
            self.write("typed/tokenizer.json", json.dumps(tokenizer))
            data = self.table(self.pairs(40, 3), "pairs.csv", ["text", "text_pair", "label"])
            if of == 1:
                self.train_on(data, "--steps", 1, model=folder)
                continue
            message = self.train_on(data, "--steps", 1, model=folder, out="no", expect=1).stderr
            self.assertRegex(
                message, r"pairs\.csv:\d+: the tokenizer gives tokens the type 2; train and eval know"
            )

    # Models without token types tell the texts apart by the separator between them.
    def test_pairs_without_types_of_tokens(self):
        data = self.table(self.pairs(600, 3), "pairs.csv", ["text", "text_pair", "label"])
        for config in [DISTILBERT, MODERNBERT]:
            kind = config["model_type"]
            output = self.train_on(
                data, "--steps", 120, "--lr", "3e-3", model=self.model_folder(config, kind), out=f"run-{kind}"
            ).stdout
            self.assertIn(f"{kind}, 2 layers", output)
            self.assertRegex(
                output,
                r"step 120: evaluation loss 0\.\d+ \(accuracy (1\.0000|0\.9\d+)(, "
                r"F1 [01]\.\d+( macro)?)?\)\n",
            )
        self.assertEqual(
            json.loads(self.read("run-modernbert", "config.json"))["architectures"],
            ["ModernBertForSequenceClassification"],
        )

    def test_pairs_are_for_encoders(self):
        data = self.table(self.pairs(20, 3), "pairs.csv", ["text", "text_pair", "label"])
        message = self.train_on(data, "--steps", 1, model="nano", expect=FAILED).stderr
        self.assertIn(
            "has two texts, which the model does not tell apart: it has no types of tokens", message
        )
        empty = self.table(
            [("the box", " ", "same"), ("a", "b", "other")], "empty.csv", ["text", "text_pair", "label"]
        )
        self.assertIn('"text_pair" is empty', self.train_on(empty, "--steps", 1, expect=FAILED).stderr)

    def test_longer_texts_are_cut_and_counted(self):
        rows = [("the " * 100 + colour, colour) for colour in COLOURS] + self.rows(40, 5)
        output = self.train_on(self.table(rows, "texts.csv", ["text", "label"]), "--steps", 1).stdout
        self.assertRegex(output, r"3 (of them )?.*(longer|cut)")
        message = self.run_command(
            "train",
            "--model",
            self.model_folder(),
            "--data",
            self.path("texts.csv"),
            "--batch",
            8,
            "--seq",
            49,
            "--steps",
            1,
            "--out",
            self.path("long"),
            expect=USAGE,
        ).stderr
        self.assertIn("the model has 48 positions", message)

    def test_an_encoder_needs_labels(self):
        text = self.write("text.txt", "the red box is here\n" * 100)
        message = self.train_on(text, "--steps", 1, expect=FAILED).stderr
        self.assertIn(
            f"--data {text}: has text without labels, and {self.path('bert')} is an encoder, "
            "which does not generate text: give it texts with labels",
            message,
        )
        for rows, what in (
            ([{"prompt": "red", "completion": "box"}] * 9, "examples without labels"),
            ([{"messages": [{"role": "user", "content": "red"}]}] * 9, "examples without labels"),
            ([{"prompt": "a", "chosen": "red", "rejected": "box"}] * 9, "pairs of answers"),
            ([{"text": "red"}] * 9, "examples without labels"),
        ):
            data = self.write("rows.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
            message = self.train_on(data, "--steps", 1, expect=FAILED).stderr
            self.assertIn(f"rows.jsonl: has {what}, and ", message)
            self.assertIn("plain texts with --task masked", message)
        self.train_on(text, "--steps", 1, "--task", "masked", out="masked")
        # Commands that cannot give it a head name none of the flags that can.
        config = json.loads((self.folder / "masked/config.json").read_text())
        self.write("masked/config.json", json.dumps({**config, "architectures": ["BertModel"]}))
        table = self.table(self.rows(20, 1), "labelled.csv", ["text", "label"])
        body = ["--model", self.path("masked"), "--vram", "32MiB"]
        for words in (
            ["eval", *body, "--data", table],
            ["eval", *body, "--data", text],
            ["eval", *body, "--data", data],
            ["generate", *body, "--prompt", "red"],
            ["calibrate", *body, "--batch", 2, "--seq", 32, "--out", self.path("profile.json")],
        ):
            message = self.refused(
                *words, expect=USAGE, says=["is an encoder without a head: `stowage train` gives it one"]
            )
            self.assertNotIn("--", message.stderr.replace(self.path("masked"), ""))
        self.assertIn(
            "is an encoder without labels",
            self.run_command(
                "classify", "--model", self.model_folder(), "--text", "red", expect=USAGE
            ).stderr,
        )

    # A classifier after a few steps.
    def base(self, config=BERT, name="base"):
        self.train_on(
            self.table(self.rows(60, 7), "base.csv", ["text", "label"]),
            "--steps",
            2,
            model=self.model_folder(config, f"untrained_{name}"),
            out=name,
        )
        return self.path(name)

    def tensors(self, run):
        data = self.weights(run)
        size = int.from_bytes(data[:8], "little")
        header = json.loads(data[8 : 8 + size])
        return {
            name: data[8 + size + about["data_offsets"][0] : 8 + size + about["data_offsets"][1]]
            for name, about in header.items()
            if name != "__metadata__"
        }

    def adapters(self, run):
        return (self.folder / run / "adapter_model.safetensors").read_bytes()

    def test_adapters_learn_resume_and_merge(self):
        base, data = self.base(), self.table(self.rows(400, 1), "texts.csv", ["text", "label"])
        words = [
            "--lora",
            8,
            "--lora-targets",
            "query,value,output.dense",
            "--schedule",
            "constant",
            "--warmup",
            0,
            "--lr",
            "1e-2",
        ]
        output = self.train_on(data, *words, "--steps", 60, model=base).stdout
        self.assertRegex(
            output,
            r"adapters    rank 8, [\d,]+ parameters of the [\d,]+ are trained, with those of the head\n",
        )
        self.assertRegex(
            output,
            r"step 60: evaluation loss 0\.\d+ \(accuracy (1\.0000|0\.[89]\d+)(, F1 [01]\.\d+( macro)?)?\)\n",
        )
        config = json.loads(self.read("run", "adapter_config.json"))
        self.assertEqual(
            (config["task_type"], config["modules_to_save"], config["target_modules"]),
            ("SEQ_CLS", ["classifier", "score"], ["output.dense", "query", "value"]),
        )
        texts = ["--text", "a red box", "--text", "the big ball is green"]
        answers = self.classified(*texts)
        self.run_command("merge", "--model", self.path("run"), "--out", self.path("merged"))
        merged = [
            json.loads(line)
            for line in self.run_command(
                "classify", "--model", self.path("merged"), *texts, "--json"
            ).stdout.splitlines()
        ]
        self.assertEqual([answer["label"] for answer in merged], [answer["label"] for answer in answers])
        self.train_on(data, *words, "--steps", 25, model=base, out="parts")
        self.run_command("train", "--resume", self.path("parts"), "--steps", 60, "--micro-batch", 1)
        self.assertEqual(self.adapters("parts"), self.adapters("run"))

    def test_adapters_over_quantized_weights(self):
        base, data = self.base(DISTILBERT), self.table(self.rows(100, 1), "texts.csv", ["text", "label"])
        words = ["--lora", 4, "--quantize", "nf4", "--quantize-embeddings", "int8", "--schedule", "constant"]
        output = self.train_on(data, *words, "--steps", 6, model=base).stdout
        self.assertIn("the matrices below them are nf4; embeddings are int8\n", output)
        self.train_on(data, *words, "--steps", 3, "--micro-batch", 2, model=base, out="parts")
        self.run_command("train", "--resume", self.path("parts"), "--steps", 6)
        self.assertEqual(self.adapters("parts"), self.adapters("run"))
        self.assertEqual(len(self.classified("--text", "a red box")), 1)

    def test_frozen_lower_parts_do_not_change(self):
        base, data = self.base(), self.table(self.rows(100, 1), "texts.csv", ["text", "label"])
        self.train_on(data, "--steps", 3, "--freeze", "embeddings,blocks.0", model=base)
        before, after = self.tensors("base"), self.tensors("run")
        for name, values in after.items():
            self.assertEqual(values == before[name], "embeddings" in name or "layer.0." in name, name)
        self.assertIn(
            "embeddings, blocks, blocks.0-1",
            self.train_on(
                data, "--steps", 3, "--freeze", "layers", model=base, out="none", expect=USAGE
            ).stderr,
        )

    def test_plans(self):
        plan = json.loads(
            self.run_command(
                "plan",
                "--model",
                "bert-large",
                "--labels",
                2,
                "--batch",
                32,
                "--seq",
                512,
                "--device",
                "a100-80gb",
                "--json",
            ).stdout
        )
        self.assertTrue(plan["fits"] and plan["search"]["proven"])
        self.assertEqual(plan["model"]["architecture"], "bert")
        result = self.run_command(
            "plan",
            "--model",
            "bert-base",
            "--labels",
            2,
            "--batch",
            8,
            "--vram",
            "64MiB",
            expect=DOES_NOT_FIT,
        )
        self.assertIn("the smallest budget that works is", result.stdout)
        self.assertIn(
            "it needs labels",
            self.run_command("plan", "--model", "bert-base", "--batch", 8, expect=FAILED).stderr,
        )
