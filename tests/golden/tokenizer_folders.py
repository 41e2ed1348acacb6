"""Makes random tokenizer folders whose files contradict each other, and the ids that transformers'
AutoTokenizer gives. Prints tokenizer_folders.jsonl.gz: each line is {"files": {name: content}, "cases":
[[text, ids], ...]}; "cases" is null if transformers refuses the folder. Needs transformers.

    python3 tokenizer_folders.py [COUNT [SEED]] > tokenizer_folders.jsonl.gz"""

import gzip
import json
import os
import pathlib
import random
import sys
import tempfile

os.environ.update(TRANSFORMERS_VERBOSITY="critical", HF_HUB_OFFLINE="1")

LETTERS = sorted(set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789<>|_/[].,!'Ġ"))
MERGES = ["t h", "th e", "Ġ the", "i n", "Ġ s", "e r", "e n"]
WHOLE = ["<|whole|>", "<pad>", "<s>", "</s>", "<unk>", "<mask>"]  # in the vocabulary, but not added tokens
TOKENS = [
    "<|im_start|>",
    "<|im_end|>",
    "<s>",
    "</s>",
    "<pad>",
    "[PAD]",
    "<unk>",
    "<|whole|>",
    "<|endoftext|>",
    "<mask>",
    "<a>",
    "<b>",
    "the",
    "in",
    "<|x|>",
    "er s",
]
CLASSES = [
    "PreTrainedTokenizerFast",
    "TokenizersBackend",
    "GPT2Tokenizer",
    "GPT2TokenizerFast",
    "LlamaTokenizerFast",
]
NAMES = ["bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"]


def text(draw):
    return "".join(
        draw.choice(TOKENS + ["the ", " the sin", "in", " ", "  ", "a.b", "<|", "|>", "her "])
        for _ in range(draw.randrange(1, 9))
    )


class Folders:
    def __init__(self, draw):
        self.draw = draw

    def maybe(self, chance=0.3):
        return self.draw.random() < chance

    def options(self, content):
        return {
            "content": content,
            "lstrip": self.maybe(0.2),
            "rstrip": self.maybe(0.2),
            "normalized": self.maybe(0.2),
            "single_word": self.maybe(0.1),
        }

    def token(self):
        content = self.draw.choice(TOKENS)
        return (
            content
            if self.maybe(0.6)
            else {
                "__type": "AddedToken",
                **self.options(content),
                **({"special": self.maybe()} if self.maybe() else {}),
            }
        )

    def tokens(self):
        return self.draw.sample(TOKENS, self.draw.randrange(1, 4))

    def vocabulary(self):
        vocabulary = {token: id_ for id_, token in enumerate(LETTERS)}
        for merge in MERGES:
            vocabulary[merge.replace(" ", "")] = len(vocabulary)
        for token in WHOLE:
            if self.maybe(0.6):
                vocabulary[token] = len(vocabulary)
        return vocabulary

    def tokenizer(self, vocabulary):
        added = (
            [{**self.options(content), "special": self.maybe(0.7)} for content in self.tokens()]
            if self.maybe(0.7)
            else []
        )
        new = [token["content"] for token in added if token["content"] not in vocabulary]
        for token in added:
            token["id"] = (
                vocabulary[token["content"]]
                if token["content"] in vocabulary
                else len(vocabulary) + new.index(token["content"])
            )
        ends = [content for content in ("<s>", "</s>") if content in vocabulary]
        around = None
        if len(ends) == 2 and self.maybe():
            single = [
                {"SpecialToken": {"id": "<s>", "type_id": 0}},
                {"Sequence": {"id": "A", "type_id": 0}},
            ] + ([{"SpecialToken": {"id": "</s>", "type_id": 0}}] if self.maybe(0.5) else [])
            around = {
                "type": "TemplateProcessing",
                "single": single,
                "pair": single + [{"Sequence": {"id": "B", "type_id": 1}}],
                "special_tokens": {
                    end: {"id": end, "ids": [vocabulary[end]], "tokens": [end]} for end in ends
                },
            }
        return {
            "version": "1.0",
            "truncation": None,
            "padding": None,
            "added_tokens": added,
            "normalizer": None,
            "pre_tokenizer": {
                "type": "ByteLevel",
                "add_prefix_space": self.maybe(0.2),
                "trim_offsets": True,
                "use_regex": True,
            },
            "post_processor": around,
            "decoder": {
                "type": "ByteLevel",
                "add_prefix_space": True,
                "trim_offsets": True,
                "use_regex": True,
            },
            "model": {
                "type": "BPE",
                "dropout": None,
                "unk_token": None,
                "continuing_subword_prefix": None,
                "end_of_word_suffix": None,
                "fuse_unk": False,
                "byte_fallback": False,
                "vocab": vocabulary,
                "merges": MERGES,
            },
        }

    def config(self, size, is_pair):
        draw, config = self.draw, {}
        if is_pair or self.maybe(0.8):
            config["tokenizer_class"] = draw.choice(
                ["GPT2Tokenizer", "GPT2TokenizerFast", "RobertaTokenizer"] if is_pair else CLASSES
            )
        if self.maybe():
            config["added_tokens_decoder"] = {
                str(size + draw.randrange(6)): {**self.options(content), "special": self.maybe(0.6)}
                for content in self.tokens()
            }
        for name in NAMES:
            if self.maybe(0.2):
                config[name] = self.token()
        if self.maybe(0.2):
            config["additional_special_tokens"] = self.tokens()
        if self.maybe(0.1):
            config["extra_special_tokens"] = (
                self.tokens() if self.maybe(0.5) else {"video_token": draw.choice(TOKENS)}
            )
        if self.maybe(0.1):
            config["image_token"] = draw.choice(TOKENS)
        for flag in ("add_bos_token", "add_eos_token", "add_prefix_space"):
            if self.maybe(0.15):
                config[flag] = self.maybe(0.5)
        if self.maybe(0.1):
            config["clean_up_tokenization_spaces"] = True
        if self.maybe(0.03):
            config["split_special_tokens"] = True
        return config

    def files(self):
        vocabulary, files = self.vocabulary(), {}
        is_pair = self.maybe(0.3)
        if is_pair:
            files["vocab.json"] = json.dumps(vocabulary, ensure_ascii=False)
            files["merges.txt"] = "#version: 0.2\n" + "".join(merge + "\n" for merge in MERGES)
        else:
            files["tokenizer.json"] = json.dumps(self.tokenizer(vocabulary), ensure_ascii=False)
        files["config.json"] = json.dumps({"model_type": "llama"})
        if is_pair or self.maybe(0.85):
            files["tokenizer_config.json"] = json.dumps(self.config(len(vocabulary), is_pair))
        if self.maybe(0.3):
            files["special_tokens_map.json"] = json.dumps(
                {
                    name: (
                        lambda t: (
                            t
                            if isinstance(t, str)
                            else {k: v for k, v in t.items() if k not in ("__type", "special")}
                        )
                    )(self.token())
                    for name in NAMES
                    if self.maybe(0.3)
                }
            )
        if self.maybe(0.2):
            files["added_tokens.json"] = json.dumps(
                {content: len(vocabulary) + i for i, content in enumerate(self.tokens())}
            )
        return files


def main(count=400, seed=1):
    import transformers

    draw = random.Random(int(seed))
    folders, lines = Folders(draw), []
    while len(lines) < int(count):
        files, texts = folders.files(), [text(draw) for _ in range(4)]
        with tempfile.TemporaryDirectory() as folder:
            for name, content in files.items():
                (pathlib.Path(folder) / name).write_text(content, encoding="utf-8")
            try:
                tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
                cases = [[one, tokenizer(one)["input_ids"]] for one in texts]
            except Exception:  # transformers fails in many ways
                cases = None
        lines.append(json.dumps({"files": files, "cases": cases}) + "\n")
    sys.stdout.buffer.write(gzip.compress("".join(lines).encode(), 9, mtime=0))


if __name__ == "__main__":
    main(*sys.argv[1:])
