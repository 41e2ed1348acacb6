"""Prompts and completions: `train` and `eval` on a .jsonl file."""

import json
import pathlib
import random
import unittest

from support import FAILED, USAGE, CommandTest
from tokenizer import tokenizer_test  # if its class were imported, its tests would run here too
from tokenizer.tokenizer_test import GOLDENS

END = 1  # a byte that is in no text
COLOURS = {"sky": "blue", "grass": "green", "snow": "white", "coal": "black", "blood": "red", "sun": "yellow"}


class ExamplesTest(CommandTest):
    model = tokenizer_test.TokenizerTest.model
    tokens = tokenizer_test.TokenizerTest.tokens

    def examples(self, rows, name="examples.jsonl"):
        return self.write(
            name, "".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows)
        )

    def colours(self, count=300, name="examples.jsonl"):
        draw = random.Random(3)
        things = [draw.choice(list(COLOURS)) for _ in range(count)]
        return self.examples(
            ({"prompt": f"{thing}:", "completion": COLOURS[thing]} for thing in things), name
        )

    def train_on(self, out, data, *more, model="nano", **how):
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
            **how,
        )

    def test_answers_are_learned(self):
        output = self.train_on(
            "run", self.colours(), "--document-end", END, "--steps", 120, "--lr", "3e-3"
        ).stdout
        learned = sum(
            len(COLOURS[json.loads(line)["prompt"][:-1]]) + 1
            for line in self.read(".", "examples.jsonl").splitlines()
        )
        self.assertIn(f"examples    300, of which {learned:,} tokens are learned\n", output)
        for thing, colour in COLOURS.items():
            words = [
                "generate",
                "--model",
                self.path("run"),
                "--prompt",
                f"{thing}:",
                "--tokens",
                20,
                "--temperature",
                0,
            ]
            self.assertEqual(self.run_command(*words).stdout, f"{thing}:{colour}\n")  # and no more
        self.assertIn(chr(END), self.run_command(*words, "--ignore-end").stdout)
        # Prompts are not learned, so their random part does not add to the loss.
        self.assertLess(self.metrics("run")[-1]["eval_loss"], 0.01)

    def test_eval_and_resume_use_the_settings_of_the_run(self):
        data = self.colours()
        self.train_on("whole", data, "--document-end", END, "--schedule", "constant", "--steps", 8)
        self.train_on("parts", data, "--document-end", END, "--schedule", "constant", "--steps", 5)
        self.run_command("train", "--resume", self.path("parts"), "--steps", 8, "--vram", "32MiB")
        self.assertEqual(self.weights("parts"), self.weights("whole"))
        metrics = json.loads(
            self.run_command(
                "eval", "--model", self.path("whole"), "--data", data, "--eval-batches", 2, "--json"
            ).stdout
        )
        self.assertAlmostEqual(metrics["eval_loss"], self.metrics("whole")[-1]["eval_loss"], places=6)

    def test_epochs_are_steps(self):
        data = self.examples(
            {"prompt": "ab", "completion": "cdefg"} for _ in range(80)
        )  # 8 tokens each, four in a sample, 72 examples to train on
        end = ["--document-end", END, "--schedule", "constant"]
        output = self.train_on("epochs", data, *end, "--epochs", 2).stdout
        self.assertIn("steps       9, which go 2 times over the data\n", output)
        self.assertEqual(self.metrics("epochs")[-1]["step"], 9)
        self.assertEqual(
            sum(line.get("tokens", 0) for line in self.metrics("epochs")[8:9]), 2 * 72 * 6
        )  # all learned tokens, twice
        self.train_on("steps", data, *end, "--steps", 9)
        self.assertEqual(self.weights("epochs"), self.weights("steps"))
        self.run_command("train", "--resume", self.path("epochs"), "--epochs", 3)
        self.run_command("train", "--resume", self.path("steps"), "--steps", 14)  # 13.5, rounded up
        self.assertEqual(self.weights("epochs"), self.weights("steps"))
        self.run_command("train", "--resume", self.path("epochs"), "--steps", 15)
        self.run_command("train", "--resume", self.path("steps"), "--epochs", 3.3)
        self.assertEqual(self.weights("epochs"), self.weights("steps"))
        output = self.train("text", "--epochs", "0.01").stdout  # 18,000 tokens, batches of 128
        self.assertIn(
            "steps       2, which go 0.0142 times over the data; --epochs asks for 0.01, "
            "and every step takes a whole batch\n",
            output,
        )
        self.refused(
            "train",
            "--model",
            "nano",
            "--data",
            data,
            "--steps",
            1,
            "--epochs",
            1,
            "--out",
            self.path("both"),
            expect=USAGE,
            says=["--steps", "--epochs"],
        )
        self.refused(
            "train",
            "--model",
            "nano",
            "--data",
            data,
            "--out",
            self.path("none"),
            expect=USAGE,
            says=["--steps is required", "--epochs"],
        )
        self.refused(
            "train",
            "--model",
            "nano",
            "--data",
            data,
            *end,
            "--epochs",
            0.1,
            "--warmup",
            9,
            "--out",
            self.path("none"),
            expect=USAGE,
            says=["--warmup 9"],
        )

    def test_strings_are_encoded_by_the_tokenizer(self):
        for name in ("gpt2", "llama2", "llama3"):
            with self.subTest(name):
                golden = GOLDENS[name]
                model = self.model("model", golden["tokenizer"])
                texts = [text for text, ids, _ in golden["cases"] if len(text) > 3 and ids]
                rows, ids = [], []
                for number, text in enumerate(texts * 3):
                    cut = 1 + number % (len(text) - 1)
                    parts = {"prompt": text[:cut], "completion": text[cut:]} if number % 3 else {"text": text}
                    rows.append(parts)
                    runs = []
                    for part in (text, text[:cut]):
                        self.run_command(
                            "tokenize",
                            "--model",
                            model,
                            "--data",
                            self.write("t", part),
                            "--out",
                            self.path("t.bin"),
                            "--overwrite",
                        )
                        runs.append(self.tokens(self.path("t.bin")))
                    whole, prompt = runs
                    common = next(
                        (i for i, pair in enumerate(zip(whole, prompt)) if pair[0] != pair[1]),
                        min(len(whole), len(prompt)),
                    )
                    ids.append(
                        {"prompt": whole[:common], "completion": whole[common:]}
                        if "prompt" in parts
                        else {"text": whole}
                    )
                end = ["--document-end", 998, "--steps", 2, "--overwrite"]
                self.train_on("of-text", self.examples(rows), *end, model=model)
                self.train_on(
                    "of-ids", self.examples(ids, "ids.jsonl"), "--tokenizer", "ids", *end, model=model
                )
                self.assertEqual(self.weights("of-text"), self.weights("of-ids"))

    def test_the_models_end_of_text_ends_an_example(self):
        data = self.colours(60)
        model = self.model("model", vocabulary=256)
        config = json.loads(self.read("model", "config.json"))
        self.write("model/config.json", json.dumps({**config, "eos_token_id": END}))
        self.train_on("of-config", data, "--steps", 2, model=model)
        self.train_on("of-flag", data, "--steps", 2, "--document-end", END, model=model)
        self.assertEqual(self.weights("of-config"), self.weights("of-flag"))
        output = self.run_command(
            "eval", "--model", self.path("of-config"), "--data", data, "--eval-batches", 2
        ).stdout
        self.assertRegex(
            output, r"over the \d+ tokens that are learned in 2 samples of "
        )  # the number of examples varies
        # The run stores its document end. Resuming it and training from it use the same end, whatever other
        # files contain.
        self.assertEqual(
            json.loads(self.read("of-config", "settings.json"))["options"]["document-end"], [str(END)]
        )
        self.refused(
            "train",
            "--resume",
            self.path("of-config"),
            "--steps",
            3,
            "--document-end",
            2,
            says=["--document-end", "has 1, found 2"],
        )
        self.train_on("again", data, "--steps", 2, model=self.path("of-flag"))
        self.assertEqual(
            json.loads(self.read("again", "settings.json"))["options"]["document-end"], [str(END)]
        )
        self.write("model/config.json", json.dumps({**config, "eos_token_id": 65536 + END}))
        self.refused(
            "train",
            "--model",
            model,
            "--data",
            data,
            "--batch",
            4,
            "--steps",
            2,
            "--out",
            self.path("beyond"),
            expect=USAGE,
            says=["65537", "vocabulary of 256", "--document-end"],
        )
        self.train("of-text", "--steps", 1)
        self.refused(
            "train",
            "--resume",
            self.path("of-text"),
            "--steps",
            3,
            "--data",
            data,
            "--document-end",
            END,
            says=["--document-end", "without it"],
        )

    def test_lines_that_are_no_examples_are_refused_by_number(self):
        good = {"prompt": "a", "completion": "b"}
        for row, *says in (
            ("{", "damaged"),
            ("[]", "an object"),
            ({}, "found none of them"),
            ({"prompt": "a"}, '"completion"', 'found "prompt"'),
            ({"messages": []}, "chat_template"),
            ({"prompt": None, "completion": "b"}, 'found "completion"'),
            ({**good, "text": "c"}, '"text"'),
            ({"prompt": "a", "completion": 7}, "completion", "a string"),
            ({"text": ["a"]}, "text", "a string"),
        ):
            with self.subTest(row=row):
                data = self.examples([good, "", row])
                self.refused(
                    "train",
                    "--model",
                    "nano",
                    "--data",
                    data,
                    "--document-end",
                    END,
                    "--steps",
                    1,
                    "--out",
                    self.path("run"),
                    says=["examples.jsonl, line 3", *says],
                )
        ids = self.examples([{"prompt": [1], "completion": [256]}])
        self.refused(
            "train",
            "--model",
            "nano",
            "--data",
            ids,
            "--tokenizer",
            "ids",
            "--document-end",
            END,
            "--steps",
            1,
            "--out",
            self.path("run"),
            says=["line 1", "completion", "whole number"],
        )
        self.refused(
            "train",
            "--model",
            "nano",
            "--data",
            self.examples(["", " "]),
            "--document-end",
            END,
            "--steps",
            1,
            "--out",
            self.path("run"),
            says=["only blank lines"],
        )
        self.assertFalse((self.folder / "run").exists())

    def test_flags_that_examples_need(self):
        data = self.colours()
        out = ["--steps", 1, "--out", self.path("run")]
        self.refused(
            "train",
            "--model",
            "nano",
            "--data",
            data,
            *out,
            expect=USAGE,
            says=["examples.jsonl", "no end of text", "--document-end"],
        )
        few = [
            "train",
            "--model",
            "nano",
            "--data",
            self.colours(1, "few.jsonl"),
            "--document-end",
            END,
            *out,
        ]
        self.refused(*few, says=["few.jsonl", "too few examples", "--eval-batches 0"])
        self.run_command(*few[:-1], self.path("few"), "--eval-batches", 0)  # far less than a sample
        self.refused(
            "tokenize",
            "--model",
            self.model("model", GOLDENS["gpt2"]["tokenizer"]),
            "--data",
            data,
            "--out",
            self.path("o.bin"),
            expect=FAILED,
            says=["holds examples"],
        )
        planned = [
            "plan",
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
            "--json",
        ]
        for more in ([], ["--document-end", END]):
            self.write("plan.json", self.run_command(*planned, *more).stdout)
            words = [
                "train",
                "--model",
                "nano",
                "--data",
                data,
                "--plan",
                self.path("plan.json"),
                "--document-end",
                END,
                *out,
            ]
            if more:
                self.run_command(*words)
            else:
                self.refused(*words, expect=USAGE, says=["--document-end", "plan.json was made without"])
        self.refused("inspect", data, says=["examples.jsonl", "metrics of a run"])
        for odd in ("null", "[1]", "7"):
            self.refused(
                "train",
                "--model",
                "nano",
                "--data",
                self.examples([odd], "odd.jsonl"),
                "--document-end",
                END,
                *out,
                says=["odd.jsonl, line 1: expected an object"],
            )
        cut = self.examples([{"prompt": "p" * 40, "completion": "c"}] * 9, "cut.jsonl")
        self.refused(
            "train",
            "--model",
            "nano",
            "--data",
            cut,
            "--seq",
            32,
            "--document-end",
            END,
            *out,
            says=[
                "nothing to learn in samples of 32 tokens",
                "all 9 examples are left out, 9 whose prompts fill a sample",
                "--seq: 40 is the least that helps, 41 has room for all of them",
            ],
        )
        long = self.examples([{"prompt": "p" * 40, "completion": "c"}] * 9 + [{"text": "x" * 9}] * 40)
        output = self.train_on("long", long, "--document-end", END, "--steps", 1).stdout
        self.assertIn(
            "examples    40, of which 360 tokens are learned; 9 more left out: "
            "9 whose prompts fill a sample\n",
            output,
        )
        marked = self.write(
            "marked.JSONL", b"\xef\xbb\xbf" + pathlib.Path(data).read_bytes().replace(b"\n", b"\r\n")
        )
        self.train_on("plain", data, "--document-end", END, "--steps", 1)
        self.train_on("marked", marked, "--document-end", END, "--steps", 1)
        self.assertEqual(self.weights("marked"), self.weights("plain"))


if __name__ == "__main__":
    unittest.main()
