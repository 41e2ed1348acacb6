"""Masked language models: `train`, `eval` and `--resume` on texts with hidden tokens, from folders with
BERT's vocab.txt or a tokenizer.json."""

import json
import random

from support import FAILED, USAGE, CommandTest

WORDS = ["red", "green", "blue", "a", "the", "box", "ball", "is", "not", "here", "big", "small"]
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
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
    "hidden_dropout_prob": 0.1,
    "attention_probs_dropout_prob": 0.1,
}
RUN = ["--batch", 8, "--seq", 32, "--vram", "64MiB", "--threads", 2, "--eval-batches", 2, "--lr", "3e-3"]


class MaskedTest(CommandTest):
    def model_folder(self, name="bert", special=SPECIAL, **changes):
        self.write(
            f"{name}/vocab.txt",
            "".join(word + "\n" for word in special + WORDS + ["##" + letter for letter in "abcdefghij"]),
        )
        self.write(f"{name}/config.json", json.dumps(BERT | changes))
        return self.path(name)

    # Texts of many lengths, in which each word determines the next one.
    def texts(self, count=200, seed=1, name="texts.jsonl"):
        draw = random.Random(seed)
        lines = ""
        for _ in range(count):
            at = draw.randrange(len(WORDS))
            words = []
            for _ in range(draw.randrange(2, 40)):
                words.append(WORDS[at])
                at = (at * 5 + 1) % len(WORDS)
            lines += json.dumps({"text": " ".join(words)}) + "\n"
        return self.write(name, lines)

    def train_on(self, data, *more, model=None, out="run", **expected):
        return self.run_command(
            "train",
            "--model",
            model or self.model_folder(),
            "--data",
            data,
            "--out",
            self.path(out),
            *RUN,
            *more,
            **expected,
        )

    def test_training(self):
        output = self.train_on(self.texts(), "--task", "masked", "--steps", 120).stdout
        self.assertIn("bert, 2 layers", output)
        self.assertRegex(
            output,
            r"texts       200 with [\d,]+ tokens, of which a share of 0\.15 is hidden; "
            r"\d+ longer than a sample, each cut into several\n",
        )
        self.assertRegex(output, r"step 120: evaluation loss [01]\.\d+ \(accuracy 0\.\d+\)\n")
        self.assertRegex(output, r"trained     120 steps on [\d,]+ hidden tokens\n")
        self.assertEqual(json.loads(self.read("run", "config.json"))["architectures"], ["BertForMaskedLM"])
        evaluated = json.loads(
            self.run_command(
                "eval", "--model", self.path("run"), "--data", self.path("texts.jsonl"), "--json"
            ).stdout
        )
        self.assertEqual(
            {"model", "data", "eval_loss", "perplexity", "accuracy", "mask_rate", "tokens", "part"}
            | {"examples", "left_out"},
            set(evaluated),
        )
        self.assertEqual(evaluated["examples"], 200)
        self.assertLess(evaluated["eval_loss"], 1.8)
        self.assertGreater(evaluated["accuracy"], 0.15)  # a random guess has 1 of 12
        self.assertEqual(evaluated["mask_rate"], 0.15)
        self.assertEqual(
            evaluated,
            json.loads(
                self.run_command(
                    "eval", "--model", self.path("run"), "--data", self.path("texts.jsonl"), "--json"
                ).stdout
            ),
        )
        words = self.run_command(
            "eval",
            "--model",
            self.path("run"),
            "--data",
            self.path("texts.jsonl"),
            "--all",
            "--mask-rate",
            0.4,
            "--mask-whole-words",
        ).stdout
        self.assertRegex(
            words,
            r"^evaluation loss \d\.\d+, perplexity \d+\.?\d* and accuracy 0\.\d+ of the [\d,]+ hidden "
            r"tokens in \d+ samples of ",
        )
        self.refused(
            "generate",
            "--model",
            self.path("run"),
            "--prompt",
            "the red",
            expect=USAGE,
            says=["is a masked language model, which cannot continue a text"],
        )
        self.refused(
            "classify",
            "--model",
            self.path("run"),
            "--text",
            "the red",
            expect=USAGE,
            says=["is a masked language model"],
        )
        # The folder records the task. Training on texts with labels makes a classifier of the same body.
        output = self.train_on(
            self.texts(40, 2, "other.jsonl"), "--steps", 2, model=self.path("run"), out="further"
        ).stdout
        self.assertIn("weights read from files\n", output)
        self.assertIn(" is hidden", output)
        table = self.write(
            "labelled.csv",
            "text,label\n" + "".join(f"the {colour} box,{colour}\n" for colour in WORDS[:3] * 10),
        )
        self.assertIn(
            "a new head for 3 labels",
            self.train_on(table, "--steps", 1, model=self.path("run"), out="classifier").stdout,
        )
        self.assertEqual(
            json.loads(self.read("classifier", "config.json"))["architectures"],
            ["BertForSequenceClassification"],
        )
        message = self.train_on(
            table, "--steps", 1, "--task", "masked", model=self.path("classifier"), out="no", expect=USAGE
        ).stderr
        self.assertIn("has a head for the task label; begin with a model without it", message)
        self.assertIn(
            " is hidden",
            self.train_on(
                table, "--steps", 1, "--task", "masked", model=self.path("run"), out="again"
            ).stdout,
        )

    def test_albert_and_modernbert(self):
        shared = {
            "vocab_size": 40,
            "hidden_size": 36,
            "intermediate_size": 52,
            "num_hidden_layers": 2,
            "num_attention_heads": 3,
            "max_position_embeddings": 48,
            "pad_token_id": 0,
        }
        for name, config in {
            "albert": {"embedding_size": 20, "hidden_dropout_prob": 0.1},
            "modernbert": {"local_attention": 8, "sparse_prediction": True},
        }.items():
            self.model_folder(name)
            self.write(f"{name}/config.json", json.dumps(shared | config | {"model_type": name}))
            output = self.train_on(
                self.texts(), "--task", "masked", "--steps", 120, model=self.path(name), out=f"run-{name}"
            ).stdout
            self.assertRegex(
                output, r"step 120: evaluation loss [012]\.\d+ \(accuracy 0\.\d+\)\n"
            )  # log 40 is 3.7
            self.assertIn(
                "weights read from files\n",
                self.train_on(
                    self.path("texts.jsonl"),
                    "--steps",
                    1,
                    model=self.path(f"run-{name}"),
                    out=f"again-{name}",
                ).stdout,
            )
        self.assertEqual(
            json.loads(self.read("run-albert", "config.json"))["architectures"], ["AlbertForMaskedLM"]
        )
        self.assertEqual(
            json.loads(self.read("run-modernbert", "config.json"))["architectures"], ["ModernBertForMaskedLM"]
        )
        self.write(
            "modernbert/config.json",
            json.dumps(
                shared
                | {"model_type": "modernbert", "sparse_prediction": True, "sparse_pred_ignore_index": 0}
            ),
        )
        self.refused(
            "train",
            "--model",
            self.path("modernbert"),
            "--data",
            self.path("texts.jsonl"),
            "--task",
            "masked",
            "--steps",
            1,
            "--out",
            self.path("no"),
            *RUN,
            expect=FAILED,
            says=["sparse_pred_ignore_index 0 is not supported"],
        )

    def test_a_body_gets_a_new_head_and_the_output_names_it(self):
        self.train_on(self.texts(), "--task", "masked", "--steps", 1)
        self.write("run/config.json", json.dumps(BERT))  # a body's config; the weights still contain a head
        self.assertIn(
            "weights read from files\n",
            self.train_on(
                self.path("texts.jsonl"), "--task", "masked", "--steps", 1, model=self.path("run"), out="b"
            ).stdout,
        )
        table = self.write("labelled.csv", "text,label\n" + "the red box,red\na blue ball,blue\n" * 10)
        self.train_on(table, "--steps", 1, out="classifier")
        self.write("classifier/config.json", json.dumps(BERT))
        self.assertIn(
            "weights read from files, and a new head from seed 1337\n",
            self.train_on(
                self.path("texts.jsonl"),
                "--task",
                "masked",
                "--steps",
                1,
                model=self.path("classifier"),
                out="c",
            ).stdout,
        )

    def test_a_text_file_is_one_text(self):
        text = self.write("text.txt", "the red box is not here\n" * 400)
        output = self.train_on(
            text, "--task", "masked", "--steps", 2, "--mask-rate", 0.3, "--mask-whole-words"
        ).stdout
        self.assertIn(
            "texts       1 with 2,400 tokens, of which a share of 0.3 is hidden, by whole words; "
            "1 longer than a sample, each cut into several\n",
            output,
        )

    def test_splits_and_resuming_change_no_bit(self):
        data = self.texts()
        self.train_on(data, "--task", "masked", "--steps", 6, out="whole")
        self.train_on(data, "--task", "masked", "--steps", 6, "--micro-batch", 3, out="cut")
        self.assertEqual(self.weights("whole"), self.weights("cut"))
        self.train_on(
            data,
            "--task",
            "masked",
            "--steps",
            6,
            "--save-every",
            3,
            "--schedule",
            "constant",
            out="straight",
        )
        self.train_on(
            data, "--task", "masked", "--steps", 3, "--schedule", "constant", "--warmup", 0, out="two"
        )
        self.train_on(
            data, "--task", "masked", "--steps", 6, "--schedule", "constant", "--warmup", 0, out="one"
        )
        self.run_command("train", "--resume", self.path("two"), "--steps", 6)
        self.assertEqual(self.weights("one"), self.weights("two"))
        for words, says in [
            (
                ["--mask-rate", 0.2],
                [
                    "--mask-rate: the run in",
                    "has 0.15, found 0.2; another value would change the trained bits",
                ],
            ),
            (["--mask-whole-words"], ["--mask-whole-words: the run in", "was trained without it"]),
            (["--task", "label"], ["--task label: expected a .csv or .jsonl file of texts with labels"]),
        ]:
            message = self.run_command(
                "train",
                "--resume",
                self.path("two"),
                "--steps",
                8,
                *words,
                expect=USAGE if "label" in words else FAILED,
            ).stderr
            for part in says:
                self.assertIn(part, message)

    def test_adapters(self):
        data = self.texts()
        self.train_on(data, "--task", "masked", "--steps", 60, out="base")
        words = [
            "--lora",
            16,
            "--quantize",
            "nf4",
            "--quantize-embeddings",
            "int8",
            "--schedule",
            "constant",
            "--warmup",
            0,
        ]
        self.train_on(data, *words, "--steps", 60, model=self.path("base"), out="whole")
        config = json.loads(self.read("whole", "adapter_config.json"))
        self.assertEqual((config["task_type"], config["modules_to_save"]), (None, None))
        self.train_on(data, *words, "--steps", 25, model=self.path("base"), out="parts")
        self.run_command("train", "--resume", self.path("parts"), "--steps", 60, "--vram", "700KiB")
        self.assertEqual(
            *[(self.folder / out / "adapter_model.safetensors").read_bytes() for out in ("whole", "parts")]
        )
        loss = {}
        for model in ["base", "whole", "merged"]:
            if model == "merged":
                self.run_command("merge", "--model", self.path("whole"), "--out", self.path("merged"))
            loss[model] = json.loads(
                self.run_command(
                    "eval",
                    "--model",
                    self.path(model),
                    "--tokenizer",
                    self.path("base"),
                    "--data",
                    data,
                    "--json",
                ).stdout
            )["eval_loss"]
        self.assertLess(loss["whole"], loss["base"] - 0.05)
        self.assertAlmostEqual(
            loss["merged"], loss["whole"], delta=0.1
        )  # adapters are merged into the weights of the files, not into the quantized ones

    def test_words_by_a_tokenizer_json(self):
        marks = {
            "id": 3,
            "content": "<mask>",
            "single_word": False,
            "lstrip": True,
            "rstrip": False,
            "normalized": False,
            "special": True,
        }
        pieces = [
            "<s>",
            "</s>",
            "<unk>",
            "<mask>",
            "\u2581",
            *["\u2581" + word for word in WORDS],
            *"abcdefghijklmnopqrstuvwxyz",
        ]
        tokenizer = {
            "version": "1.0",
            "added_tokens": [marks | {"id": i, "content": pieces[i], "lstrip": False} for i in range(3)]
            + [marks],
            "normalizer": None,
            "pre_tokenizer": {
                "type": "Metaspace",
                "replacement": "\u2581",
                "prepend_scheme": "always",
                "split": True,
            },
            "post_processor": {
                "type": "TemplateProcessing",
                "single": [
                    {"SpecialToken": {"id": "<s>", "type_id": 0}},
                    {"Sequence": {"id": "A", "type_id": 0}},
                    {"SpecialToken": {"id": "</s>", "type_id": 0}},
                ],
                "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 0}}],
                "special_tokens": {
                    "<s>": {"id": "<s>", "ids": [0], "tokens": ["<s>"]},
                    "</s>": {"id": "</s>", "ids": [1], "tokens": ["</s>"]},
                },
            },
            "decoder": None,
            "model": {
                "type": "Unigram",
                "unk_id": 2,
                "vocab": [[piece, -float(i + 1)] for i, piece in enumerate(pieces)],
                "byte_fallback": False,
            },
        }
        self.write("model/tokenizer.json", json.dumps(tokenizer))
        self.write("model/config.json", json.dumps(BERT | {"vocab_size": len(pieces)}))
        output = self.train_on(
            self.texts(), "--task", "masked", "--steps", 1, "--mask-whole-words", model=self.path("model")
        ).stdout
        self.assertIn(", by whole words", output)
        tokenizer["pre_tokenizer"] = {"type": "WhitespaceSplit"}
        self.write("model/tokenizer.json", json.dumps(tokenizer))
        message = self.train_on(
            self.texts(),
            "--task",
            "masked",
            "--steps",
            1,
            "--mask-whole-words",
            model=self.path("model"),
            out="b",
            expect=FAILED,
        ).stderr
        self.assertIn("tokenizer.json does not show which tokens continue a word", message)
        tokenizer["added_tokens"][3]["content"] = tokenizer["model"]["vocab"][3][0] = "<hidden>"
        self.write("model/tokenizer.json", json.dumps(tokenizer))
        message = self.train_on(
            self.texts(), "--task", "masked", "--steps", 1, model=self.path("model"), out="b", expect=FAILED
        ).stderr
        self.assertIn("tokenizer.json: has no mask token", message)
        self.write("model/tokenizer_config.json", '{"mask_token": {"content": "<hidden>"}}')
        self.train_on(self.texts(), "--task", "masked", "--steps", 1, model=self.path("model"), out="b")
        self.write("model/tokenizer_config.json", '{"mask_token": "<other>"}')
        message = self.train_on(
            self.texts(), "--task", "masked", "--steps", 1, model=self.path("model"), out="c", expect=FAILED
        ).stderr
        self.assertIn(
            "its mask token 43 is outside of the model's vocabulary of 43", message
        )  # the token is added, as by transformers

    def test_contradictory_settings_are_refused(self):
        data, model = self.texts(), self.model_folder()
        base = ["train", "--model", model, "--data", data, "--out", self.path("run"), "--steps", 1, *RUN]
        for words, expect, says in [
            (["--task", "masked", "--mask-rate", "0"], USAGE, ["--mask-rate"]),
            (["--task", "masked", "--mask-rate", "1.5"], USAGE, ["--mask-rate"]),
            (["--task", "masked", "--mask-rate", "nan"], USAGE, ["--mask-rate"]),
            (["--mask-rate", "0.2"], USAGE, ["--mask-rate: is for masked language models (--task masked)"]),
            (
                ["--mask-whole-words"],
                USAGE,
                ["--mask-whole-words: is for masked language models (--task masked)"],
            ),
            (["--task", "masked", "--document-end", 3], USAGE, ["--document-end: is for language models"]),
            (
                ["--task", "masked", "--label-field", "text"],
                USAGE,
                ["--label-field: is for texts with labels"],
            ),
            (["--task", "masked", "--preference", "dpo"], USAGE, ["--preference dpo"]),
            (["--task", "masked", "--tokenizer", "byte"], FAILED, ["a vocabulary of at least 256"]),
            (["--task", "guess"], USAGE, ["--task"]),
        ]:
            self.refused(*base, *words, expect=expect, says=says)
        self.refused(
            "train",
            "--model",
            "nano",
            "--task",
            "masked",
            "--data",
            data,
            "--out",
            self.path("run"),
            "--steps",
            1,
            says=[
                "a model of type gpt2 has no head for masked tokens: the task masked-language-model is "
                "not supported"
            ],
        )
        self.refused(
            "train",
            "--model",
            model,
            "--task",
            "masked",
            "--data",
            self.write("ids.bin", bytes(4000)),
            "--out",
            self.path("run"),
            "--steps",
            1,
            *RUN,
            says=["found token ids, and it is not known which of them are special"],
        )
        self.refused(
            "train",
            "--model",
            model,
            "--task",
            "masked",
            "--data",
            self.write("empty.jsonl", '{"text": "   "}\n'),
            "--out",
            self.path("run"),
            "--steps",
            1,
            *RUN,
            says=["empty.jsonl"],
        )

    def test_plans(self):
        plan = json.loads(
            self.run_command(
                "plan",
                "--model",
                "bert-base",
                "--task",
                "masked",
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
        self.assertIn(
            "the task masked-language-model",
            self.run_command("plan", "--model", "bert-base", "--batch", 8, expect=FAILED).stderr,
        )
