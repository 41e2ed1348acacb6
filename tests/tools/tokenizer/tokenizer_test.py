"""A model's tokenizer.json: `tokenize`, and text for `train`, `eval` and `generate`."""

import gzip
import itertools
import json
import os
import pathlib
import struct
import subprocess
import unittest

from support import GOLDEN, USAGE, CommandTest

GOLDENS = json.loads((GOLDEN / "tokenizers.json").read_text())
FOLDERS = GOLDEN / "tokenizer_folders.jsonl.gz"
END = 999  # a token id that no tokenizer gives


class TokenizerTest(CommandTest):
    def model(self, name, tokenizer=None, vocabulary=1000, positions=256):
        self.write(
            f"{name}/config.json",
            json.dumps(
                {
                    "model_type": "gpt2",
                    "architectures": ["GPT2LMHeadModel"],
                    "vocab_size": vocabulary,
                    "n_positions": positions,
                    "n_embd": 16,
                    "n_layer": 1,
                    "n_head": 2,
                }
            ),
        )
        if tokenizer:
            self.write(f"{name}/tokenizer.json", json.dumps(tokenizer))
        return self.path(name)

    def tokens(self, path, width="H"):
        content = pathlib.Path(path).read_bytes()
        return list(struct.unpack(f"<{len(content) // struct.calcsize(width)}{width}", content))

    def train_model(self, out, model, data, *more, **how):
        return self.run_command(
            "train",
            "--model",
            model,
            "--data",
            data,
            "--batch",
            2,
            "--seq",
            16,
            "--vram",
            "64MiB",
            "--threads",
            2,
            "--steps",
            3,
            "--eval-batches",
            1,
            "--out",
            self.path(out),
            *more,
            **how,
        )

    def test_tokens_agree_with_the_library(self):
        for name, golden in GOLDENS.items():
            with self.subTest(name):
                model = self.model("model", golden["tokenizer"])
                files = [self.write(f"text{i}", text) for i, (text, _, _) in enumerate(golden["cases"])]
                output = self.run_command(
                    "tokenize",
                    "--model",
                    model,
                    "--data",
                    *files,
                    "--document-end",
                    END,
                    "--out",
                    self.path("o.bin"),
                    "--overwrite",
                ).stdout
                got, expected = (
                    self.tokens(self.path("o.bin")),
                    [[*ids, END] for _, ids, _ in golden["cases"]],
                )
                for (text, _, _), ids in zip(golden["cases"], expected):
                    self.assertEqual(got[: len(ids)], ids, repr(text))
                    del got[: len(ids)]
                self.assertEqual(got, [])
                self.assertIn(
                    f"{sum(map(len, expected)):,} tokens of "
                    f"{sum(len(t.encode()) for t, _, _ in golden['cases']):,} bytes",
                    output,
                )

    def test_decoded_text_agrees_with_the_library(self):
        for name, golden in GOLDENS.items():
            model = self.model("model", golden["tokenizer"])
            for text, ids, back in golden["cases"][1::3]:
                if ids and "\0" not in text:
                    with self.subTest(name, text=text):
                        words = [
                            "generate",
                            "--model",
                            model,
                            "--tokens",
                            1,
                            "--temperature",
                            0,
                            "--threads",
                            1,
                            "--prompt",
                        ]
                        output = self.run_command(*words, text, "--tokenizer", model).stdout
                        self.assertEqual(output[: len(back)], back)

    # Random folders (tokenizer_folders.py): files with other tokens and settings than tokenizer.json, and
    # pairs of vocab.json and merges.txt.
    def test_folders_are_read_as_transformers_reads_them(self):
        with gzip.open(FOLDERS, "rt", encoding="utf-8") as file:
            rows = [json.loads(line) for line in file]
        refused = 0
        for number, row in enumerate(rows):
            folder = self.folder / str(number)
            folder.mkdir()
            for name, content in row["files"].items():
                (folder / name).write_text(content, encoding="utf-8")
            lines = "".join(json.dumps({"text": text}) + "\n" for text, _ in row["cases"])
            tokenizer = folder / ("tokenizer.json" if "tokenizer.json" in row["files"] else "vocab.json")
            result = subprocess.run(
                [os.environ["ENCODE_TEXTS"], tokenizer], input=lines, capture_output=True, encoding="utf-8"
            )
            if result.returncode != 0:  # refused by name
                self.assertRegex(
                    result.stderr,
                    "tokenizer_config.json: (add_prefix_space is (true|false), "
                    "but the tokenizer's own file says|split_special_tokens: "
                    '"split_special_tokens" is not supported)',
                )
                refused += 1
                continue
            self.assertEqual(
                [json.loads(line)["tokens"] for line in result.stdout.splitlines()],
                [ids for _, ids in row["cases"]],
                row,
            )
        self.assertLess(refused, len(rows) // 8)

    def test_settings_that_contradict_the_tokenizer_are_refused(self):
        pieces = {
            "model": {
                "type": "WordPiece",
                "vocab": {"[UNK]": 0, "a": 1, "A": 2},
                "unk_token": "[UNK]",
                "continuing_subword_prefix": "##",
                "max_input_chars_per_word": 100,
            },
            "normalizer": {"type": "BertNormalizer", "lowercase": True},
        }
        model = self.model("model", pieces)
        words = [
            "tokenize",
            "--model",
            model,
            "--data",
            self.write("text", "A"),
            "--out",
            self.path("o.bin"),
            "--overwrite",
        ]
        self.write(
            "model/tokenizer_config.json", '{"tokenizer_class": "BertTokenizer", "do_lower_case": false}'
        )
        self.refused(
            *words,
            says=[
                "model/tokenizer_config.json: do_lower_case is false, but the tokenizer's own file says true"
            ],
        )
        for config, says in (
            (
                {"tokenizer_class": "BertTokenizer", "strip_accents": False},
                "strip_accents is false, but the tokenizer's own file says true",
            ),
            (
                {"tokenizer_class": "BertTokenizerFast", "tokenize_chinese_chars": False},
                "tokenize_chinese_chars is false, but the tokenizer's own file says true",
            ),
        ):
            self.write("model/tokenizer_config.json", json.dumps(config))
            self.refused(*words, says=[f"model/tokenizer_config.json: {says}"])
        # BERT's classes of transformers 5 use their defaults for settings that are missing, whatever
        # tokenizer.json contains.
        for normalizer, says in (
            (
                {"lowercase": False},
                "do_lower_case is not set, which BertTokenizer takes as true, "
                "but the tokenizer's own file says false",
            ),
            (
                {"lowercase": True, "strip_accents": False},
                "strip_accents is not set, which BertTokenizer takes as true, "
                "but the tokenizer's own file says false",
            ),
            (
                {"lowercase": True, "handle_chinese_chars": False},
                "tokenize_chinese_chars is not set, which BertTokenizer takes as true, "
                "but the tokenizer's own file says false",
            ),
        ):
            other = self.model("other", {**pieces, "normalizer": {"type": "BertNormalizer", **normalizer}})
            self.write("other/tokenizer_config.json", '{"tokenizer_class": "BertTokenizer"}')
            self.refused("tokenize", "--model", other, *words[3:], says=[says])
            self.write(
                "other/tokenizer_config.json",
                json.dumps(
                    {
                        "tokenizer_class": "BertTokenizer",
                        "do_lower_case": normalizer["lowercase"],
                        "strip_accents": normalizer.get("strip_accents"),
                        "tokenize_chinese_chars": normalizer.get("handle_chinese_chars", True),
                    }
                ),
            )
            self.run_command("tokenize", "--model", other, *words[3:])
        for agrees in (
            '{"tokenizer_class": "BertTokenizer", "do_lower_case": true, "strip_accents": null, '
            '"tokenize_chinese_chars": true}',
            '{"tokenizer_class": "BertTokenizer", "do_lower_case": true}',
            '{"tokenizer_class": "PreTrainedTokenizerFast", "do_lower_case": false}',
        ):
            self.write("model/tokenizer_config.json", agrees)
            self.run_command(*words)
            self.assertEqual(self.tokens(self.path("o.bin")), [1])

    def test_steps_of_unigram_classes_follow_their_settings(self):
        pieces = {
            "model": {"type": "Unigram", "unk_id": 0, "vocab": [["?", 0], ["a", -1], ["\u2581a", -1]]},
            "pre_tokenizer": {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always"},
        }
        words = ["--data", self.write("text", "a"), "--out", self.path("o.bin"), "--overwrite"]
        model = self.model("unigram", pieces)
        for setting, value in (
            ("do_lower_case", True),
            ("split_by_punct", True),
            ("add_prefix_space", False),
        ):
            for other in (None, not value):
                config = {"tokenizer_class": "DebertaV2Tokenizer", setting: other}
                self.write("unigram/tokenizer_config.json", json.dumps(config))
                self.run_command("tokenize", "--model", model, *words)
                self.assertEqual(self.tokens(self.path("o.bin")), [2])
            config[setting] = value
            self.write("unigram/tokenizer_config.json", json.dumps(config))
            is_set, is_not = str(value).lower(), str(not value).lower()
            says = f"{setting} is {is_set}, but the tokenizer's own file says {is_not}"
            self.refused("tokenize", "--model", model, *words, says=[says])

    def test_other_kinds_of_tokenizers_are_refused_with_a_way_to_convert_them(self):
        for name in ("tokenizer.model", "spiece.model", "spm.model", "tekken.json"):
            model = self.model(name.replace(".", "-"))
            self.write(f"{name.replace('.', '-')}/{name}", "x")
            self.refused(
                "tokenize",
                "--model",
                model,
                "--data",
                self.text(),
                "--out",
                self.path("o.bin"),
                says=[name, "AutoTokenizer", "save_pretrained"],
            )
        model = self.model("pair")
        self.write("pair/vocab.json", '{"a": 0}')
        self.write("pair/merges.txt", "#version: 0.2\na b c\n")
        self.refused(
            "tokenize",
            "--model",
            model,
            "--data",
            self.text(),
            "--out",
            self.path("o.bin"),
            says=["pair/merges.txt: line 2: expected two tokens"],
        )
        self.write("pair/tokenizer_config.json", '{"tokenizer_class": "CTRLTokenizer"}')
        self.refused(
            "tokenize",
            "--model",
            model,
            "--data",
            self.text(),
            "--out",
            self.path("o.bin"),
            says=["vocab.json", "CTRLTokenizer", "save_pretrained"],
        )

    # Decoded at once and token by token, also if the bytes are not valid UTF-8.
    def test_characters_are_whole(self):
        for name, golden in GOLDENS.items():
            with self.subTest(name):
                file = self.write("tokenizer.json", json.dumps(golden["tokenizer"]))
                lines = "".join(json.dumps({"decode": ids}) + "\n" for ids, _ in golden["drawn"])
                result = subprocess.run(
                    [os.environ["ENCODE_TEXTS"], file],
                    input=lines,
                    capture_output=True,
                    encoding="utf-8",
                    check=True,
                )
                for (ids, text), line in zip(golden["drawn"], result.stdout.split("\n")[:-1], strict=True):
                    self.assertEqual(json.loads(line), {"text": text, "slowly": text}, ids)

    # An untrained model generates arbitrary bytes.
    def test_generated_text_is_utf8(self):
        model = self.model(
            "model",
            GOLDENS["gpt2"]["tokenizer"],
            vocabulary=max(GOLDENS["gpt2"]["tokenizer"]["model"]["vocab"].values()) + 1,
        )
        for seed in range(1, 5):
            words = [
                "generate",
                "--model",
                model,
                "--from-scratch",
                "--prompt",
                "the ship",
                "--threads",
                1,
                "--seq",
                16,
                "--tokens",
                60,
                "--temperature",
                5,
                "--seed",
                seed,
            ]
            text = subprocess.run(
                [os.environ["STOWAGE"], *map(str, words)], capture_output=True, check=True
            ).stdout.decode()
            self.assertTrue(text.startswith("the ship"))
            self.assertIn("\ufffd", text)

    # The tokenizers library gives added tokens new ids, from the size of the vocabulary on.
    def test_added_tokens_have_the_ids_that_the_library_gives(self):
        vocabulary = {"a": 0, "b": 1, "The": 2}

        def added(*tokens):
            return [
                {
                    "id": id_,
                    "content": content,
                    "single_word": False,
                    "lstrip": False,
                    "rstrip": False,
                    "normalized": False,
                    "special": False,
                }
                for id_, content in tokens
            ]

        cases = [
            ("a gap", added((9, "<x>")), "a<x>b", [0, 3, 1]),
            ("out of order", added((4, "<x>"), (3, "<y>")), "a<x>b<y>", [0, 3, 1, 4]),
            ("another one's id", added((0, "<x>")), "a<x>b", [0, 3, 1]),
            ("in the vocabulary", added((3, "The"), (4, "<x>")), "The<x>", [2, 3]),
            ("given twice", added((3, "<x>"), (7, "<x>"), (8, "<y>")), "<x><y>", [3, 4]),
        ]
        for name, tokens, text, expected in cases:
            with self.subTest(name):
                model = self.model(
                    "model",
                    {"model": {"type": "BPE", "vocab": vocabulary, "merges": []}, "added_tokens": tokens},
                )
                self.run_command(
                    "tokenize",
                    "--model",
                    model,
                    "--data",
                    self.write("text", text),
                    "--out",
                    self.path("o.bin"),
                    "--overwrite",
                )
                self.assertEqual(self.tokens(self.path("o.bin")), expected)

    def test_a_byte_order_mark_is_not_text(self):
        model = self.model("model", GOLDENS["gpt2"]["tokenizer"])
        for name, content in (("plain", b"what lies where"), ("marked", b"\xef\xbb\xbfwhat lies where")):
            self.run_command(
                "tokenize",
                "--model",
                model,
                "--data",
                self.write(name, content),
                "--out",
                self.path(name + ".bin"),
            )
        self.assertEqual(self.tokens(self.path("marked.bin")), self.tokens(self.path("plain.bin")))

    def test_a_pipe_is_read_as_a_text(self):
        """A pipe can be read only once."""
        model, text, pipe = self.model("model", GOLDENS["gpt2"]["tokenizer"]), self.text(), self.path("pipe")
        self.train_model("of-text", model, text)
        os.mkfifo(pipe)
        writer = subprocess.Popen(["cp", text, pipe])
        self.train_model("of-pipe", model, pipe)
        self.assertEqual(writer.wait(), 0)
        self.assertEqual(self.weights("of-pipe"), self.weights("of-text"))

    def test_a_text_trains_as_its_tokens_do(self):
        model = self.model("model", GOLDENS["gpt2"]["tokenizer"])
        text = self.text()
        output = self.train_model("of-text", model, text).stdout
        self.run_command("tokenize", "--model", model, "--data", text, "--out", self.path("t.bin"))
        tokens = len(self.tokens(self.path("t.bin")))
        self.assertIn(f"{tokens - tokens // 10:,} tokens to train on, {tokens // 10:,} held out", output)
        self.train_model("of-tokens", model, self.path("t.bin"))
        os.rename(self.path("model/tokenizer.json"), self.path("other.json"))
        self.train_model("given", self.model("bare"), text, "--tokenizer", self.path("other.json"))
        self.assertEqual(self.read("given", "tokenizer.json"), self.read("of-text", "tokenizer.json"))
        os.rename(self.path("other.json"), self.path("model/tokenizer.json"))
        self.assertEqual(self.weights("of-text"), self.weights("of-tokens"))
        self.assertEqual(self.weights("of-text"), self.weights("given"))
        self.run_command("train", "--resume", self.path("of-text"), "--steps", 5)
        self.run_command("train", "--resume", self.path("of-tokens"), "--steps", 5)
        self.assertEqual(self.weights("of-text"), self.weights("of-tokens"))
        words = ["--eval-batches", 2, "--json"]
        losses = [
            json.loads(self.run_command("eval", "--model", self.path(run), "--data", data, *words).stdout)[
                "eval_loss"
            ]
            for run, data in (("of-text", text), ("of-tokens", self.path("t.bin")), ("given", text))
        ]
        self.assertEqual(losses[0], losses[1])
        self.refused(
            "eval",
            "--model",
            self.path("of-text"),
            "--data",
            self.path("t.bin"),
            "--tokenizer",
            model,
            expect=USAGE,
            says=["is for texts", "t.bin"],
        )

    def test_runs_on_text_take_and_give_text_and_runs_on_ids_ids(self):
        model = self.model("model", GOLDENS["gpt2"]["tokenizer"])
        self.run_command("tokenize", "--model", model, "--data", self.text(), "--out", self.path("t.bin"))
        self.train_model("of-text", model, self.text())
        self.train_model("of-tokens", model, self.path("t.bin"))
        words = ["generate", "--tokens", 3, "--threads", 1, "--model"]
        output = self.run_command(*words, self.path("of-text"), "--prompt", "the hold").stdout
        self.assertTrue(output.startswith("the hold"), output)
        of_tokens = self.path("of-tokens")
        ids = self.run_command(*words, of_tokens, "--prompt", "10 11 12").stdout.split()
        self.assertEqual(ids[:3], ["10", "11", "12"])
        self.assertEqual(len(ids), 6)
        self.refused(
            *words, of_tokens, "--prompt", "the hold", expect=USAGE, says=["token ids", "--tokenizer"]
        )
        self.assertEqual(
            self.run_command(*words, model, "--prompt", "10 11 12").stdout[:8], "10 11 12"
        )  # a folder with a tokenizer takes text
        self.assertEqual(
            len(self.run_command(*words, model, "--prompt", "10 11 12", "--tokenizer", "ids").stdout.split()),
            6,
        )
        self.assertEqual(
            self.run_command(
                *words, self.path("of-tokens"), "--tokenizer", model, "--prompt", "the hold"
            ).stdout[:8],
            "the hold",
        )
        self.assertEqual(
            len(
                self.run_command(
                    *words, self.path("of-text"), "--tokenizer", "ids", "--prompt", "1 2"
                ).stdout.split()
            ),
            5,
        )
        self.refused(
            *words,
            self.path("of-text"),
            "--prompt",
            "",
            expect=USAGE,
            says=["--prompt", "at least one token"],
        )

    def test_text_ends_at_the_models_end_of_text(self):
        model = self.model("model", GOLDENS["gpt2"]["tokenizer"])
        words = ["generate", "--model", model, "--tokens", 40, "--threads", 1]
        of_ids = [*words, "--prompt", "10 11 12", "--tokenizer", "ids"]
        ids = [int(i) for i in self.run_command(*of_ids).stdout.split()][3:]
        letters = {token: id for token, id in GOLDENS["gpt2"]["tokenizer"]["model"]["vocab"].items()}
        prompt = "".join(next(token for token, id in letters.items() if id == i) for i in (10, 11, 12))
        of_text = [*words, "--prompt", prompt, "--tokenizer", model]
        whole = self.run_command(*of_text).stdout
        config = json.loads((self.folder / "model/config.json").read_text())
        for name, ends in (("config.json", ids[20]), ("generation_config.json", [ids[10], 7000])):
            self.write(f"model/{name}", json.dumps({**config, "eos_token_id": ends}))
            short = self.run_command(*of_text).stdout
            self.assertLess(len(short), len(whole))
            self.assertTrue(whole.startswith(short[:-1]))
            self.assertEqual(self.run_command(*of_text, "--ignore-end").stdout, whole)
            self.assertEqual(len(self.run_command(*of_ids).stdout.split()), 43)  # ids do not end
        self.write("model/generation_config.json", '{"eos_token_id": "x"}')
        self.refused(*of_text, says=["generation_config.json", "eos_token_id", "whole number"])

    def test_a_run_has_only_its_own_tokenizer(self):
        model = self.model("model", GOLDENS["gpt2"]["tokenizer"])
        self.write("model/tokenizer_config.json", "{}")
        self.write("model/vocab.json", '{"the": 1}')
        self.write("model/README.md", "no")
        output = self.train_model("run", model, self.text()).stdout
        self.assertIn("loss.svg, tokenizer.json, tokenizer_config.json, vocab.json, README.md", output)
        for name in ("tokenizer.json", "tokenizer_config.json", "vocab.json"):
            self.assertEqual(self.read("run", name), self.read("model", name))
        self.assertNotEqual(
            self.read("run", "README.md"), "no"
        )  # the model card of the run, not that of the model
        # Replaced by a run of the same model, then by a run on bytes, which must not keep the tokenizer.
        self.train_model("run", model, self.text(), "--overwrite")
        self.assertEqual(self.read("run", "vocab.json"), self.read("model", "vocab.json"))
        self.assertFalse((self.folder / "run/replaced-run").exists())
        self.train("run", "--steps", 2, "--overwrite")
        self.assertFalse((self.folder / "run/tokenizer.json").exists())
        self.assertEqual(
            self.read("run/replaced-run", "tokenizer.json"), self.read("model", "tokenizer.json")
        )
        output = self.run_command(
            "generate", "--model", self.path("run"), "--prompt", "the hold", "--tokens", 2
        ).stdout
        self.assertTrue(output.startswith("the hold"))

    def test_a_folder_called_like_a_preset_is_a_folder(self):
        self.model("nano", GOLDENS["gpt2"]["tokenizer"])
        words = ["train", "--data", self.text(), "--batch", 4, "--seq", 32, "--steps", 2, "--eval-batches", 2]
        here = {"cwd": self.folder}
        self.run_command(*words, "--model", "nano", "--out", "gpt2", **here)
        self.run_command(*words, "--model", "./nano", "--out", "other", **here)
        self.assertEqual(self.weights("gpt2"), self.weights("other"))
        self.assertEqual(self.read("gpt2", "tokenizer.json"), self.read("nano", "tokenizer.json"))
        self.assertEqual(
            json.loads(self.read("gpt2", "settings.json"))["options"]["model"],
            [os.path.realpath(self.path("nano"))],
        )
        outputs = [
            self.run_command(
                "generate", "--model", name, "--prompt", "the hold", "--tokens", 4, **here
            ).stdout
            for name in ("gpt2", "./gpt2")
        ]
        self.assertEqual(outputs[0], outputs[1])
        self.run_command("train", "--resume", "gpt2", "--steps", 3, **here)
        self.refused(
            "train",
            "--model",
            "nano",
            "--data",
            self.text(),
            "--steps",
            1,
            "--out",
            "none",
            expect=USAGE,
            says=["--batch"],
            **here,
        )  # the defaults of the preset do not apply

    def test_an_existing_tokenizer_file_is_kept(self):
        self.write("run/tokenizer.json", "mine")
        self.train_model("run", self.model("model", GOLDENS["gpt2"]["tokenizer"]), self.text())
        self.assertEqual(self.read("run", "tokenizer.json"), "mine")

    def test_large_vocabularies_take_four_bytes(self):
        model = self.model("model", GOLDENS["qwen2"]["tokenizer"], vocabulary=65537)
        text, ids, _ = GOLDENS["qwen2"]["cases"][1]
        self.run_command(
            "tokenize", "--model", model, "--data", self.write("t", text), "--out", self.path("t.bin")
        )
        self.assertEqual(self.tokens(self.path("t.bin"), "I"), ids)

    def test_long_words_take_no_longer_than_short_ones(self):
        """An algorithm that looks at every pair again after each merge would take hours."""
        model = self.model("model", GOLDENS["llama2"]["tokenizer"])
        words = "the ship sails where the hold lies before the word " * 20000  # one word for this tokenizer
        self.run_command(
            "tokenize", "--model", model, "--data", self.write("t", words), "--out", self.path("t.bin")
        )
        tokens = self.tokens(self.path("t.bin"))
        self.assertLess(len(tokens), len(words))
        self.assertEqual(
            tokens[1:10], tokens[1 + (len(tokens) - 2) // 20000 : 10 + (len(tokens) - 2) // 20000]
        )

    def test_many_added_tokens_take_no_longer_than_few(self):
        """Finds the longest of the added tokens that begin at a place. Trying each of them would take minutes
        here."""

        def added(*contents):
            flags = {
                "single_word": False,
                "lstrip": False,
                "rstrip": False,
                "normalized": False,
                "special": False,
            }
            return {
                **GOLDENS["gpt2"]["tokenizer"],
                "added_tokens": [
                    {"id": 1000 + i, "content": content, **flags} for i, content in enumerate(contents)
                ],
            }

        model = self.model(
            "model",
            added("z", "zzz", "zz", "zzzzq", *(f"z{i:05}" for i in range(30000)), "y" + "z" * 9999),
            vocabulary=40000,
        )
        text = "zzzzq zzzz z00042 " + "z" * 300000 + "y" + "z" * 9999
        self.run_command(
            "tokenize", "--model", model, "--data", self.write("t", text), "--out", self.path("t.bin")
        )
        first = len(
            GOLDENS["gpt2"]["tokenizer"]["model"]["vocab"]
        )  # it has "z" already; the ids of the others follow
        places = [token - first for token in self.tokens(self.path("t.bin")) if token >= first]
        self.assertEqual(
            [(place, len([*same])) for place, same in itertools.groupby(places)],
            [(2, 1), (0, 1), (3 + 42, 1), (0, 100000), (30003, 1)],
        )
        self.refuses(added("z" * 10001), "added token", "at most 10000 bytes, found 10001")

    def refuses(self, tokenizer, *says, data="text"):
        self.model("model")
        path = self.write(
            "t.json", tokenizer if isinstance(tokenizer, (str, bytes)) else json.dumps(tokenizer)
        )
        self.refused(
            "tokenize",
            "--model",
            self.path("model"),
            "--tokenizer",
            path,
            "--data",
            self.write("data", data),
            "--out",
            self.path("o.bin"),
            says=["t.json" if data == "text" else "data", *says],
        )
        self.assertFalse((self.folder / "o.bin").exists())

    def test_damaged_and_unknown_files_are_refused(self):
        good = {"model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]}}
        model = good["model"]
        self.refuses("", "damaged", "an empty file")
        self.refuses(json.dumps(good)[:-1], "damaged")
        self.refuses("[" * 100000, "nested too deeply")
        self.refuses("[]", "expected an object")
        self.refuses(b'{"model": "\xff"}', "expected UTF-8, found none at byte 11")
        self.refuses({"model": {}}, "model.vocab", "expected an object")
        self.refuses(
            {"model": {"type": "WordLevel"}}, "model", '"WordLevel" is not supported', "--tokenizer ids"
        )
        self.refuses({"model": {**model, "dropout": 0.1}}, "model.dropout")
        self.refuses({"model": {**model, "end_of_word_suffix": "</w>"}}, "model.end_of_word_suffix")
        self.refuses({"model": {**model, "vocab": {"a": -1}}}, "model.vocab", "whole number")
        self.refuses({"model": {**model, "vocab": {"a": 2**31}}}, "model.vocab", "whole number")
        for merges in (["a"], ["a b c"], [["a"]], [["a", 1]], [7]):
            self.refuses({"model": {**model, "merges": merges}}, "model.merges")
        self.refuses({"model": {**model, "merges": ["b a"]}}, "model.merges", "pair 0")
        self.refuses(
            {"model": {**model, "unk_token": "?"}}, "model.unk_token", '"?" is not in the vocabulary'
        )
        for part, kind in (
            ("normalizer", "Nmt"),
            ("pre_tokenizer", "FixedLength"),
            ("post_processor", "Unheard"),
            ("decoder", "CTC"),
        ):
            self.refuses({**good, part: {"type": kind}}, part, f'"{kind}" is not supported')
        self.refuses(
            {**good, "pre_tokenizer": {"type": "Split", "pattern": {"Regex": "(a"}, "behavior": "Isolated"}},
            "the pattern (a",
        )
        self.refuses(
            {**good, "pre_tokenizer": {"type": "Split", "pattern": {"String": ""}, "behavior": "Isolated"}},
            "expected a pattern",
        )
        self.refuses(
            {**good, "pre_tokenizer": {"type": "Split", "pattern": {"String": "a"}, "behavior": "Odd"}},
            "behavior",
            "Odd",
        )
        self.refuses(
            {
                **good,
                "pre_tokenizer": {
                    "type": "Sequence",
                    "pretokenizers": [{"type": "ByteLevel"}, {"type": "Digits"}],
                },
            },
            "pretokenizers[1]",
            "the last",
        )
        self.refuses(
            {**good, "pre_tokenizer": {"type": "Split", "pattern": {"Regex": "\\C"}, "behavior": "Isolated"}},
            "the pattern \\C",
        )
        self.refuses(
            {**good, "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Digits"}] * 20000}},
            "pretokenizers[64]",
            "at most 64 steps",
        )
        self.refuses(
            {**good, "decoder": {"type": "Strip", "content": "", "start": 2**31 - 1, "stop": 0}},
            "decoder.content",
            "a character",
        )
        # A small file must not turn a text into gigabytes.
        tenfold = {"type": "Replace", "pattern": {"String": "a"}, "content": "a" * 10}
        self.refuses(
            {**good, "normalizer": {"type": "Sequence", "normalizers": [tenfold] * 12}},
            "far too long",
            data="aaaa",
        )
        self.refuses(
            {
                **good,
                "normalizer": {"type": "Sequence", "normalizers": [tenfold] * 12},
                "added_tokens": [{"id": 3, "content": "aaaa", "normalized": True}],
            },
            "added token 3",
            "far too long",
        )
        self.refuses(
            {
                **good,
                "pre_tokenizer": {
                    "type": "Sequence",
                    "pretokenizers": [{"type": "Metaspace", "replacement": " " * 10}] * 12,
                },
            },
            "far too long",
            data="a b",
        )
        long = "a" * 1000000  # one step is enough
        self.refuses(
            {**good, "normalizer": {"type": "Replace", "pattern": {"String": "a"}, "content": long}},
            "far too long",
            data="a" * 60000,
        )
        self.refuses(
            {**good, "pre_tokenizer": {"type": "Metaspace", "replacement": long}},
            "far too long",
            data=" a" * 60000,
        )
        # The match of such a lookbehind begins before the place of the search.
        lookbehind = {"Regex": "(?<=(e\\K)x)|b"}
        why = "its pattern cannot be matched: a match begins before where it is looked for"
        self.refuses(
            {**good, "normalizer": {"type": "Replace", "pattern": lookbehind, "content": "q"}},
            why,
        )
        split = {"type": "Split", "pattern": lookbehind, "behavior": "Removed", "invert": True}
        self.refuses({**good, "pre_tokenizer": split}, why)
        self.refuses({**good, "added_tokens": [{"id": 3}]}, "added_tokens[0].content", "a string")
        self.refuses(good, "expected UTF-8, found none at byte 2", data=b"ab\xff")
        self.refuses(
            {"model": {**model, "vocab": {"a": 0, "b": 1, "ab": 1000}}},
            "gives token 1000",
            "vocabulary of 1,000",
            data="aab",
        )

    def test_requested_tokenizers_must_exist(self):
        text = self.text()
        model = self.model("model", GOLDENS["gpt2"]["tokenizer"])
        out = ["--out", self.path("o.bin")]
        self.refused(
            "tokenize",
            "--model",
            self.model("bare"),
            "--data",
            text,
            *out,
            says=["bare", "no tokenizer.json"],
        )
        self.refused("tokenize", "--model", model, "--data", self.path("none"), *out, says=["none"])
        self.refused(
            "tokenize",
            "--model",
            model,
            "--data",
            text,
            "--out",
            self.path("o.txt"),
            expect=USAGE,
            says=[".bin"],
        )
        self.refused(
            "tokenize",
            "--model",
            model,
            "--data",
            text,
            *out,
            "--document-end",
            1000,
            expect=USAGE,
            says=["1000", "1,000"],
        )
        self.refused(
            "tokenize", "--model", model, "--data", self.write("empty", ""), *out, says=["expected some text"]
        )
        self.run_command("tokenize", "--model", model, "--data", text, *out)
        self.refused(
            "tokenize", "--model", model, "--data", text, *out, says=["exists already", "--overwrite"]
        )
        self.refused(
            "tokenize",
            "--model",
            model,
            "--data",
            self.path("o.bin"),
            *out,
            "--overwrite",
            says=["would be replaced"],
        )
        self.refused(
            "train",
            "--model",
            self.path("bare"),
            "--data",
            text,
            "--batch",
            2,
            "--steps",
            1,
            "--out",
            self.path("r"),
            says=["expected a .bin file", "tokenizer.json", "--tokenizer byte"],
        )
        self.refused(
            "train",
            "--model",
            model,
            "--data",
            self.write("short", "the ship"),
            "--batch",
            2,
            "--steps",
            1,
            "--seq",
            64,
            "--out",
            self.path("r"),
            says=["short", "65 tokens", "found 2", "shorter --seq"],
        )


if __name__ == "__main__":
    unittest.main()
