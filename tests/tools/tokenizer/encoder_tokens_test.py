"""Tokenizers of encoder models: WordPiece and Unigram, pairs, words and truncation."""

import base64
import json
import lzma
import os
import pathlib
import struct
import subprocess
import sys
import unittest

from support import FAILED, GOLDEN, CommandTest

sys.path.insert(0, str(GOLDEN))
from encoder_asking import BLOCK, CHARSMAP, digests, questions_of  # noqa: E402
from encoder_lines import lines  # noqa: E402

ENCODE_TEXTS = os.environ.get("ENCODE_TEXTS", "encode_texts")
GOLDENS = json.loads((GOLDEN / "encoder_tokens.json").read_text())
RULES = base64.b64encode(lzma.decompress(base64.b85decode(GOLDENS["charsmap"]))).decode()

LETTERS = {
    "type": "WordPiece",
    "unk_token": "?",
    "continuing_subword_prefix": "##",
    "max_input_chars_per_word": 100,
    "vocab": {"?": 0, "a": 1, "b": 2, "##b": 3, "ab": 4, "[": 5, "]": 6},
}
SCORES = {
    "type": "Unigram",
    "unk_id": 0,
    "vocab": [["?", 0], ["a", -1.5], ["b", -2], ["ab", -3]],
    "byte_fallback": False,
}


class EncoderTokensTest(CommandTest):
    def tokenizer(self, **parts):
        return self.write("tokenizer.json", json.dumps({"model": LETTERS, **parts}))

    def path_of(self, golden):
        """Writes the golden tokenizer and returns its path."""
        if "tokenizer" in golden:
            return self.write("tokenizer.json", json.dumps(golden["tokenizer"]).replace(CHARSMAP, RULES))
        if golden["config"] is not None:
            self.write("tokenizer_config.json", json.dumps(golden["config"]))
        return self.write("vocab.txt", "".join(f"{token}\n" for token in golden["vocabulary"]))

    def ask(self, tokenizer, questions):
        result = subprocess.run(
            [ENCODE_TEXTS, tokenizer],
            input="".join(json.dumps(question) + "\n" for question in questions).encode(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            timeout=600,
            check=False,
        )
        self.assertEqual(result.returncode, 0, result.stderr.decode())
        answers = [json.loads(line) for line in result.stdout.decode().split("\n")[:-1]]
        self.assertEqual(len(answers), len(questions))
        return answers

    def ids(self, tokenizer, text, **more):
        return self.ask(tokenizer, [{"text": text, **more}])[0]["tokens"]

    def refuses(self, *says, name="t.json", **files):
        for file, content in files.items():
            self.write(file.replace("__", "."), content if isinstance(content, str) else json.dumps(content))
        result = subprocess.run(
            [ENCODE_TEXTS, self.path(name)],
            input=b'{"text": "ab"}\n',
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            timeout=600,
            check=False,
        )
        self.assertEqual(result.returncode, FAILED, result.stdout)
        for part in (name, *says):
            self.assertIn(part, result.stderr.decode())

    def test_tokens_agree_with_the_libraries(self):
        questions = questions_of(list(lines()))
        for name, golden in GOLDENS["tokenizers"].items():
            path = self.path_of(golden)
            for kind, of_kind in questions.items():
                with self.subTest(name, kind=kind):
                    answers = self.ask(path, of_kind)
                    for question, answer in zip(of_kind, answers):
                        if "max_tokens" in question:
                            answer.pop("text", None)  # the cut may lie inside a character
                    problems = {answer["error"] for answer in answers if "error" in answer}
                    self.assertTrue(
                        all("cannot be truncated to" in problem for problem in problems), problems
                    )
                    found = digests([None if "error" in answer else answer for answer in answers])
                    self.assertEqual(
                        [
                            number * BLOCK
                            for number, pair in enumerate(zip(found, golden["digests"][kind]))
                            if pair[0] != pair[1]
                        ],
                        [],
                        "blocks of lines from these on",
                    )
                    self.assertEqual(len(found), len(golden["digests"][kind]))
            for file in self.folder.iterdir():
                file.unlink()

    def ranges(self, tokenizer, texts):
        """The tokens and their places in bytes; [0, 0] for tokens without a text of their own."""
        answers = self.ask(tokenizer, [{"ranges": text} for text in texts])
        for answer in answers:
            answer["ranges"] = [[begin, end] if begin < end else [0, 0] for begin, end in answer["ranges"]]
        return answers

    def test_places_of_tokens_agree_with_the_library(self):
        for name, expected in json.loads((GOLDEN / "ranges.json").read_text()).items():
            with self.subTest(name):
                path = self.path_of(GOLDENS["tokenizers"][name])
                self.assertEqual(digests(self.ranges(path, list(lines()))), expected)
            for file in self.folder.iterdir():
                file.unlink()

    def test_places_of_tokens_follow_what_normalization_changes(self):
        path = self.path_of(GOLDENS["tokenizers"]["bert uncased"])

        def words(text):
            """The texts of the tokens' places."""
            (answer,) = self.ranges(path, [text])
            return [text.encode()[begin:end].decode() for begin, end in answer["ranges"]]

        # An accent belongs to its letter, also if it is a character of its own. Controls are dropped.
        self.assertEqual(
            "".join(words("Würde \u00c9t\u00e9 e\u0301 a\x00b")), "WürdeÉtée\u0301a\x00b".replace("\x00", "")
        )
        self.assertEqual(words("\u4f60\u597d ,")[-1], ",")
        self.assertEqual("".join(words("\u4f60\u597d")), "\u4f60\u597d")
        path = self.path_of(GOLDENS["tokenizers"]["xlm-roberta"])
        # Half-width letters and their marks are put together.
        self.assertEqual("".join(words("the \uff76\uff9e ship")), "the\uff76\uff9eship")
        self.assertEqual(words("")[:1], [])

    def test_a_folder_with_vocab_txt_alone_has_a_tokenizer(self):
        golden = GOLDENS["tokenizers"]["vocab.txt alone"]
        config = {
            "model_type": "gpt2",
            "architectures": ["GPT2LMHeadModel"],
            "vocab_size": 1000,
            "n_positions": 64,
            "n_embd": 16,
            "n_layer": 1,
            "n_head": 2,
        }
        self.write("model/config.json", json.dumps(config))
        self.write("model/vocab.txt", "".join(f"{token}\n" for token in golden["vocabulary"]))
        text = self.text(4000)
        self.run_command(
            "tokenize", "--model", self.path("model"), "--data", text, "--out", self.path("o.bin")
        )
        content = (self.folder / "o.bin").read_bytes()
        expected = self.ids(self.path("model/vocab.txt"), pathlib.Path(text).read_text())
        self.assertEqual(list(struct.unpack(f"<{len(content) // 2}H", content)), expected)
        # A run keeps vocab.txt under its name, even if the model also has a tokenizer.json.
        self.write("model/tokenizer.json", json.dumps({"model": LETTERS}))
        words = [
            "train",
            "--model",
            self.path("model"),
            "--data",
            text,
            "--batch",
            2,
            "--seq",
            16,
            "--vram",
            "64MiB",
            "--threads",
            2,
            "--steps",
            2,
            "--eval-batches",
            1,
        ]
        self.run_command(*words, "--tokenizer", self.path("model/vocab.txt"), "--out", self.path("run"))
        self.assertEqual(
            (self.folder / "run/vocab.txt").read_text(), (self.folder / "model/vocab.txt").read_text()
        )
        self.assertFalse((self.folder / "run/tokenizer.json").exists())
        output = self.run_command(
            "generate", "--model", self.path("run"), "--prompt", "the hold", "--tokens", 1, "--temperature", 0
        ).stdout
        self.assertTrue(output.startswith("the hold"), output)

    def test_words_may_have_no_tokens(self):
        path = self.tokenizer(
            pre_tokenizer={"type": "WhitespaceSplit"},
            post_processor={"type": "BertProcessing", "sep": ["]", 6], "cls": ["[", 5]},
        )
        for words, tokens, numbers in (
            (["ab", "", " ", "bb"], [5, 4, 2, 3, 6], [-1, 0, 3, 3, -1]),
            ([], [5, 6], [-1, -1]),
            ([""], [5, 6], [-1, -1]),
        ):
            answer = self.ask(path, [{"words": words}])[0]
            self.assertEqual((answer["tokens"], answer["words"]), (tokens, numbers))

    def test_files_without_a_type_of_model_are_known_by_their_parts(self):
        for model, ids in ((LETTERS, [4]), (SCORES, [3])):
            untyped = {key: value for key, value in model.items() if key != "type"}
            self.assertEqual(self.ids(self.write("t.json", json.dumps({"model": untyped})), "ab"), ids)

    def test_metaspace_of_old_and_new_files(self):
        """Files before 2024 have add_prefix_space, later ones prepend_scheme and split."""
        model = {**SCORES, "vocab": [["?", 0], ["\u2581a", -1], ["a", -1], ["\u2581", -1], ["a\u2581a", 0]]}
        for how, ids in (
            ({}, [1, 1]),
            ({"add_prefix_space": True}, [1, 1]),
            ({"add_prefix_space": False}, [2, 1]),
            ({"prepend_scheme": "never"}, [2, 1]),
            ({"prepend_scheme": "never", "split": False}, [4]),
            ({"add_prefix_space": True, "prepend_scheme": "first", "split": False}, [3, 4]),
        ):
            cut = {"type": "Metaspace", "replacement": "\u2581", **how}
            self.assertEqual(
                self.ids(self.write("t.json", json.dumps({"model": model, "pre_tokenizer": cut})), "a a"),
                ids,
                how,
            )

    def test_the_lengths_of_truncated_pairs(self):
        path = self.tokenizer(
            pre_tokenizer={"type": "WhitespaceSplit"},
            post_processor={"type": "BertProcessing", "sep": ["]", 6], "cls": ["[", 5]},
        )

        def lengths(first, second, most, how):
            answer = self.ask(
                path, [{"text": "a " * first, "second": "b " * second, "max_tokens": most, "truncation": how}]
            )[0]
            if "error" in answer:
                return None
            self.assertEqual(answer["cut"], most < first + second + 3)
            self.assertEqual(
                answer["types"], [0] * (answer["tokens"].count(1) + 2) + [1] * (answer["tokens"].count(2) + 1)
            )
            return answer["tokens"].count(1), answer["tokens"].count(2)

        self.assertEqual(lengths(4, 9, 16, "longest_first"), (4, 9))
        self.assertEqual(lengths(4, 9, 15, "longest_first"), (4, 8))
        self.assertEqual(lengths(9, 4, 10, "longest_first"), (4, 3))
        self.assertEqual(lengths(9, 9, 10, "longest_first"), (3, 4))
        # Both texts are longer than the limit, and the room is odd: the longer one gets one token more.
        self.assertEqual(lengths(40, 30, 16, "longest_first"), (7, 6))
        self.assertEqual(lengths(30, 40, 16, "longest_first"), (6, 7))
        self.assertEqual(lengths(30, 30, 16, "longest_first"), (6, 7))
        self.assertEqual(lengths(4, 9, 3, "longest_first"), (0, 0))
        self.assertEqual(lengths(4, 9, 2, "longest_first"), None)
        self.assertEqual(lengths(4, 9, 13, "only_first"), (1, 9))
        self.assertEqual(lengths(4, 9, 12, "only_first"), None)
        self.assertEqual(lengths(4, 9, 8, "only_second"), (4, 1))
        self.assertEqual(lengths(4, 9, 7, "only_second"), None)
        self.assertIn(
            "6 tokens, of which 2 are special",
            self.ask(path, [{"text": "a " * 9, "max_tokens": 6, "truncation": "only_second"}])[0]["error"],
        )

    def test_texts_that_are_not_utf8_are_refused(self):
        path = self.tokenizer()
        self.write(
            "bare/config.json",
            json.dumps(
                {
                    "model_type": "gpt2",
                    "vocab_size": 1000,
                    "n_positions": 64,
                    "n_embd": 16,
                    "n_layer": 1,
                    "n_head": 2,
                }
            ),
        )
        self.refused(
            "tokenize",
            "--model",
            self.path("bare"),
            "--tokenizer",
            path,
            "--data",
            self.write("data", b"ab\xff"),
            "--out",
            self.path("o.bin"),
            says=["data: expected UTF-8, found none at byte 2"],
        )

    def test_damaged_and_unknown_parts_are_refused(self):
        self.refuses("model", '"WordLevel" is not supported', t__json={"model": {"type": "WordLevel"}})
        self.refuses(
            "model.unk_token",
            '"x" is not in the vocabulary',
            t__json={"model": {**LETTERS, "unk_token": "x"}},
        )
        self.refuses(
            "model.continuing_subword_prefix",
            "a string",
            t__json={"model": {**LETTERS, "continuing_subword_prefix": None}},
        )
        self.refuses(
            "model.max_input_chars_per_word",
            "whole number",
            t__json={"model": {**LETTERS, "max_input_chars_per_word": -1}},
        )
        self.refuses(
            "model.vocab",
            "at most 4096 bytes",
            "with 4097",
            t__json={"model": {**LETTERS, "vocab": {**LETTERS["vocab"], "a" * 4097: 5}}},
        )
        self.refuses(
            "model.vocab[0]", "a token and its score", t__json={"model": {**SCORES, "vocab": [["a"]]}}
        )
        self.refuses("model.vocab[0]", "a number", t__json={"model": {**SCORES, "vocab": [["a", "1"]]}})
        for score in ("1e400", "1e999999999", "10" * 200):
            self.refuses(
                "model.vocab[0]",
                "a finite number",
                t__json='{"model": {"type": "Unigram", "vocab": [["a", %s]]}}' % score,
            )
        self.refuses("model.unk_id", "whole number up to 3", t__json={"model": {**SCORES, "unk_id": 4}})
        self.refuses(
            "normalizer", '"Nmt" is not supported', t__json={"model": LETTERS, "normalizer": {"type": "Nmt"}}
        )
        self.refuses(
            "pre_tokenizer",
            '"UnicodeScripts" is not supported',
            t__json={"model": LETTERS, "pre_tokenizer": {"type": "UnicodeScripts"}},
        )
        self.refuses(
            "pre_tokenizer",
            '"ByteLevel" is not supported',
            t__json={"model": LETTERS, "pre_tokenizer": {"type": "ByteLevel"}},
        )
        self.refuses(
            "pre_tokenizer.prepend_scheme",
            '"never", as add_prefix_space is false',
            t__json={
                "model": LETTERS,
                "pre_tokenizer": {"type": "Metaspace", "prepend_scheme": "first", "add_prefix_space": False},
            },
        )
        self.refuses(
            "decoder", '"CTC" is not supported', t__json={"model": LETTERS, "decoder": {"type": "CTC"}}
        )
        self.refuses(
            "truncation.direction",
            '"Left" or "Right"',
            t__json={"model": LETTERS, "truncation": {"direction": "Up"}},
        )
        self.refuses(
            "the pattern (?s)a",
            "undefined group option",
            t__json={
                "model": LETTERS,
                "pre_tokenizer": {"type": "Split", "pattern": {"Regex": "(?s)a"}, "behavior": "Isolated"},
            },
        )

    def test_invalid_templates_are_refused(self):
        def refuses(*says, **parts):
            self.refuses(*says, t__json={"model": LETTERS, "post_processor": parts})

        text, second, special = (
            {"Sequence": {"id": "A", "type_id": 0}},
            {"Sequence": {"id": "B", "type_id": 1}},
            {"SpecialToken": {"id": "[", "type_id": 0}},
        )
        known = {"[": {"id": "[", "ids": [5], "tokens": ["["]}}
        refuses(
            "post_processor.special_tokens.[.ids",
            "an array",
            type="TemplateProcessing",
            single=[special, text],
            special_tokens={},
        )
        refuses(
            "post_processor.single",
            "expected the text",
            type="TemplateProcessing",
            single=[special],
            special_tokens=known,
        )
        refuses(
            "post_processor.single[0].Sequence.id",
            '"A"',
            type="TemplateProcessing",
            single=[second],
            special_tokens=known,
        )
        refuses(
            "post_processor.pair",
            "expected both texts",
            type="TemplateProcessing",
            single=[text],
            pair=[text],
            special_tokens=known,
        )
        refuses(
            "post_processor.single",
            "at most 64 pieces",
            type="TemplateProcessing",
            single=[special] * 65,
            special_tokens=known,
        )
        refuses(
            "post_processor.single",
            "each text once",
            type="TemplateProcessing",
            single=[text, special, text],
            special_tokens=known,
        )
        refuses("post_processor.cls", "an array", type="BertProcessing", sep=["]", 6])
        refuses(
            "post_processor.processors[1]",
            '"BertProcessing" is not supported',
            type="Sequence",
            processors=[
                {"type": kind, "sep": ["]", 6], "cls": ["[", 5]}
                for kind in ("RobertaProcessing", "BertProcessing")
            ],
        )

    def test_damaged_charsmaps_are_refused(self):
        def refuses(content):
            self.refuses(
                "normalizer.precompiled_charsmap",
                t__json={
                    "model": LETTERS,
                    "normalizer": {"type": "Precompiled", "precompiled_charsmap": content},
                },
            )

        good = base64.b64decode(RULES)
        for bytes_of_it in (
            b"",
            b"\1\0\0\0",
            struct.pack("<II", 400, 0),
            struct.pack("<I", 0),
            good[:5000],
            good + b"\xff",
        ):
            refuses(base64.b64encode(bytes_of_it).decode())
        for text in ("a", "????", RULES[:-1]):
            refuses(text)
        size = struct.unpack("<I", good[:4])[0]
        broken = (
            struct.pack("<I", size) + struct.pack("<I", 0xFFFFFC00) * (size // 4) + good[4 + size :]
        )  # every entry of the table points outside
        path = self.tokenizer(
            normalizer={"type": "Precompiled", "precompiled_charsmap": base64.b64encode(broken).decode()}
        )
        self.assertIn("precompiled_charsmap: damaged", self.ask(path, [{"text": "ab"}])[0]["error"])

    def test_unknown_characters_of_a_model_without_a_token_for_them(self):
        path = self.write("t.json", json.dumps({"model": {**SCORES, "unk_id": None}}))
        answers = self.ask(path, [{"text": "aab"}, {"text": "aéb"}])
        self.assertEqual(answers[0]["tokens"], [1, 3])
        self.assertIn('no token matches "é" of the text', answers[1]["error"])

    def test_a_vocab_txt_that_contradicts_its_folder_is_refused(self):
        tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a"]
        vocabulary = "".join(f"{token}\n" for token in tokens)

        def refuses(*says, vocabulary=vocabulary, config=None, **more):
            files = {name.replace("__", "."): content for name, content in more.items()}
            self.write("tokenizer_config.json", json.dumps(config or {}))
            for name, content in files.items():
                self.write(name, json.dumps(content))
            self.write("vocab.txt", vocabulary)
            result = subprocess.run(
                [ENCODE_TEXTS, self.path("vocab.txt")],
                input=b"",
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                timeout=60,
                check=False,
            )
            self.assertEqual(result.returncode, FAILED)
            for part in says:
                self.assertIn(part, result.stderr.decode())
            for name in files:
                os.unlink(self.path(name))

        refuses(
            'the mask_token "[MASK]" among its lines',
            vocabulary="".join(f"{token}\n" for token in tokens if token != "[MASK]"),
        )
        refuses('the cls_token "<s>" among its lines', special_tokens_map__json={"cls_token": "<s>"})
        refuses(
            "tokenizer_config.json: tokenizer_class",
            '"MPNetTokenizer" is not supported',
            config={"tokenizer_class": "MPNetTokenizer"},
        )
        refuses("do_basic_tokenize", config={"do_basic_tokenize": False})
        refuses("never_split", config={"never_split": ["a"]})
        refuses("additional_special_tokens", config={"additional_special_tokens": ["<x>"]})
        refuses(
            "added_tokens_decoder.6",
            "the number of",
            config={"added_tokens_decoder": {"6": {"content": "a"}}},
        )
        refuses("added_tokens.json", '"new" is not supported', added_tokens__json={"new": 6})
        refuses("truncation_side", '"left" or "right"', config={"truncation_side": "up"})
        refuses("strip_accents", "true or false", config={"strip_accents": "yes"})
        refuses("expected UTF-8", vocabulary="\udcff".encode(errors="surrogateescape"))
        refuses("tokenizer_config.json: expected an object", tokenizer_config__json="no object")

    def test_texts_of_a_single_word_take_no_longer_than_others(self):
        """A search that tried every prefix of the rest of a word would take hours."""
        word = "ab" * 200000
        for model in (
            {**LETTERS, "max_input_chars_per_word": 10**9, "vocab": {**LETTERS["vocab"], "##ab": 7}},
            SCORES,
        ):
            path = self.write("t.json", json.dumps({"model": model}))
            self.assertEqual(len(self.ids(path, word)), 200000)


if __name__ == "__main__":
    unittest.main()
