"""Makes tokenizers.json: small tokenizers of every kind that the command reads, and the results of Hugging
Face's library for texts.

    python tests/golden/text_tokens.py         (tokenizers 0.23)

{name: {"tokenizer": a tokenizer.json, "cases": [[text, ids, decoded text without special tokens], ...],
        "drawn": [[ids, decoded text], ...]}}"""

import json
import pathlib
import random

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, processors, trainers
from tokenizers.pre_tokenizers import ByteLevel, Digits, Metaspace, Sequence, Split

# As in the files of Llama 3, Qwen 2 and GPT-4o.
LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN2 = LLAMA3.replace("{1,3}", "")
UPPER, LOWER, ENDING = (
    r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]",
    r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]",
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
)
GPT4O = "|".join(
    [
        rf"[^\r\n\p{{L}}\p{{N}}]?{UPPER}*{LOWER}+{ENDING}",
        rf"[^\r\n\p{{L}}\p{{N}}]?{UPPER}+{LOWER}*{ENDING}",
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    ]
)
MARK = "\u2581"

CORPUS = [
    "the ship sails where the hold lies before the word, and the words of the ship are what the ship says"
] * 9 + [
    "Größe naïve façade señor Ωμέγα слово привет 你好世界 你好 안녕 हिन्दी ไทย 1234 1250 don't I'll we've "
    "if(x==1){return a[0];}//c"
] * 5

TEXTS = [
    "the ship",
    " the ship sails  where\tthe\n\nhold   lies \n",
    "I'll say DON'T, we'VE 'S sworn; it's \u017f'\u017f",
    "a1b22c333d4444 ٣٤٥ ½ Ⅷ 3.14-15",
    "Größe Gro\u0308ße e\u0301\u00e9 Å\u212b \u1100\u1161\u11a8각 ﬁ ½",
    "你好世界 こんにちは안녕 हिन्दी ไทย مرحبا",
    "🙂👩\u200d👩\u200d👧 \U0001f1e9\U0001f1ea\U000e0041",
    "<|endoftext|>the<|im_start|>user\nwhat<|im_end|><s> <unk> </s><0x41>",
    "Left  Left the Right  word words sword word. both bothmore both more",
    "if(x==1){return a[0];}//c\r\n\r\n  }\n",
    "a\u00a0b\u3000c\u2028d\x85e\u200bf\u180eg\ufeffh",
    "▁▁the_ship _ ▁",
    "\x00\x01\x7f\x80ÿĀ",
    "--- a-b -- -",
    "q" * 70,
    "...!?\n\n\n...",
    "   ",
    "\n",
    "x",
    "The KINGdom ofTheShip HTTPServer",
    "<|begin_of_text|>",
    "Ā ġĠ",
]


def of(normalizer, pre_tokenizer, decoder, size=300, alphabet=True, special=(), **model):
    tokenizer = Tokenizer(models.BPE(**model))
    if normalizer:
        tokenizer.normalizer = normalizer
    if pre_tokenizer:
        tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.train_from_iterator(
        CORPUS,
        trainers.BpeTrainer(
            vocab_size=size,
            special_tokens=list(special),
            initial_alphabet=ByteLevel.alphabet() if alphabet else [],
            show_progress=False,
        ),
    )
    tokenizer.decoder = decoder
    return tokenizer


def plain(**more):
    return ByteLevel(add_prefix_space=False, **more)


def around(template, **ids):
    return processors.TemplateProcessing(
        single=template, pair=template + " $B", special_tokens=list(ids.items())
    )


def changed(tokenizer, change):
    text = json.loads(tokenizer.to_str())
    change(text)
    return Tokenizer.from_str(json.dumps(text))


def tokenizers():
    gpt2 = of(None, plain(), decoders.ByteLevel(), special=["<|endoftext|>"])
    gpt2.post_processor = processors.ByteLevel(trim_offsets=False)
    yield "gpt2", gpt2

    roberta = of(None, ByteLevel(add_prefix_space=True), decoders.ByteLevel(), special=["<s>", "</s>"])
    roberta.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> $B </s>", special_tokens=[("<s>", 0), ("</s>", 1)]
    )
    yield "space before", roberta

    qwen2 = of(
        normalizers.NFC(),
        Sequence([Split(Regex(QWEN2), "isolated"), plain(use_regex=False)]),
        decoders.ByteLevel(),
    )
    qwen2.add_special_tokens(["<|endoftext|>", "<|im_start|>", "<|im_end|>"])
    qwen2.post_processor = processors.ByteLevel(trim_offsets=False)
    yield "qwen2", qwen2

    llama3 = of(
        None,
        Sequence([Split(Regex(LLAMA3), "isolated"), plain(use_regex=False)]),
        decoders.ByteLevel(),
        special=["<|begin_of_text|>"],
    )
    # The vocabulary has the whole word, but not the merges that would make it.
    llama3 = changed(
        llama3,
        lambda text: text["model"].update(
            ignore_merges=True, vocab={**text["model"]["vocab"], "qqqqq": 300, "Ġsworn": 301}
        ),
    )
    llama3.post_processor = processors.Sequence(
        [processors.ByteLevel(trim_offsets=False), around("<|begin_of_text|> $A", **{"<|begin_of_text|>": 0})]
    )
    yield "llama3", llama3

    yield (
        "smollm",
        of(
            None,
            Sequence([Digits(individual_digits=True), plain()]),
            decoders.ByteLevel(),
            special=["<|endoftext|>", "<|im_start|>"],
        ),
    )
    yield (
        "gpt4o",
        of(None, Sequence([Split(Regex(GPT4O), "isolated"), plain(use_regex=False)]), decoders.ByteLevel()),
    )

    yield (
        "merged cuts",
        of(
            normalizers.NFKC(),
            Sequence(
                [
                    Digits(individual_digits=False),
                    Split(Regex(r"\p{Han}+"), "merged_with_previous"),
                    Split("-", "merged_with_next"),
                    plain(),
                ]
            ),
            decoders.ByteLevel(),
        ),
    )

    added = of(
        normalizers.NFD(),
        Sequence(
            [
                Split(Regex(r"\s+"), "removed"),
                Split(Regex("[A-Z]+"), "contiguous", invert=True),
                plain(use_regex=False),
            ]
        ),
        decoders.ByteLevel(),
    )
    added.add_tokens(
        [
            AddedToken("Left", lstrip=True, normalized=False),
            AddedToken("Right", rstrip=True, normalized=False),
            AddedToken("word", single_word=True, normalized=False),
            AddedToken("Größe", normalized=True),
            AddedToken("both", lstrip=True, rstrip=True, normalized=True),
            AddedToken("both more", normalized=False),
        ]
    )
    yield "added tokens", added

    as_bytes = [f"<0x{byte:02X}>" for byte in range(256)]
    llama2 = of(
        normalizers.Sequence([normalizers.Prepend(MARK), normalizers.Replace(" ", MARK)]),
        None,
        decoders.Sequence(
            [decoders.Replace(MARK, " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
        ),
        size=380,
        alphabet=False,
        special=["<unk>", "<s>", "</s>", *as_bytes],
        unk_token="<unk>",
        fuse_unk=True,
        byte_fallback=True,
    )
    llama2 = changed(llama2, lambda text: text.update(added_tokens=text["added_tokens"][:3]))
    llama2.post_processor = around("<s> $A", **{"<s>": 1})
    yield "llama2", llama2

    # Gemma: spaces are marked, and a word includes the space after it.
    gemma = of(
        normalizers.Replace(" ", MARK),
        Split(" ", "merged_with_previous"),
        decoders.Sequence([decoders.Replace(MARK, " "), decoders.ByteFallback(), decoders.Fuse()]),
        size=400,
        alphabet=False,
        special=["<pad>", "<eos>", "<bos>", "<unk>", *as_bytes],
        unk_token="<unk>",
        fuse_unk=True,
        byte_fallback=True,
    )
    gemma = changed(gemma, lambda text: text.update(added_tokens=text["added_tokens"][:4]))
    gemma.post_processor = around("<bos> $A", **{"<bos>": 2})
    yield "gemma", gemma

    for scheme, split, fused in (("first", False, True), ("always", True, False), ("never", True, True)):
        space = {"replacement": MARK, "prepend_scheme": scheme, "split": split}
        yield (
            f"space {scheme}",
            of(
                None,
                Metaspace(**space),
                decoders.Metaspace(**space),
                size=120,
                alphabet=False,
                special=["<unk>", "<s>"],
                unk_token="<unk>",
                fuse_unk=fused,
            ),
        )

    yield (
        "nothing for unknowns",
        of(
            normalizers.NFKD(),
            Metaspace(replacement="_", prepend_scheme="always", split=True),
            decoders.Metaspace(replacement="_"),
            size=100,
            alphabet=False,
        ),
    )


# Random tokens, as an untrained model generates them. Most of the bytes are not valid UTF-8.
def drawn_tokens(draw, tokenizer):
    vocabulary = tokenizer.get_vocab(with_added_tokens=True)
    bytes_ = [
        id_
        for token, id_ in vocabulary.items()
        if len(token) == 1 and ord(token) > 126 or token.startswith("<0x")
    ] or [0]
    of_text = [tokenizer.encode(text, add_special_tokens=False).ids for text in TEXTS[4:7]]
    for _ in range(30):
        ids = []
        for _ in range(draw.randrange(1, 5)):
            kind = draw.random()
            if kind < 0.4:
                ids += draw.choices(bytes_, k=draw.randrange(1, 5))
            elif kind < 0.6:
                ids.append(draw.randrange(max(vocabulary.values()) + 2))
            else:
                words = draw.choice(of_text)
                begin = draw.randrange(max(1, len(words)))
                ids += words[begin : begin + draw.randrange(1, 6)]
        yield ids


def main():
    goldens = {}
    draw = random.Random(9)
    for name, tokenizer in tokenizers():
        cases = []
        for text in TEXTS:
            ids = tokenizer.encode(text).ids
            cases.append([text, ids, tokenizer.decode(ids, skip_special_tokens=True)])
        drawn = [
            [ids, tokenizer.decode(ids, skip_special_tokens=True)] for ids in drawn_tokens(draw, tokenizer)
        ]
        goldens[name] = {"tokenizer": json.loads(tokenizer.to_str()), "cases": cases, "drawn": drawn}
    out = pathlib.Path(__file__).with_name("tokenizers.json")
    out.write_text(
        "{\n"
        + ",\n".join(
            f"{json.dumps(name)}: {json.dumps(golden, separators=(',', ':'))}"
            for name, golden in goldens.items()
        )
        + "\n}\n"
    )
    print(f"{out}: {len(goldens)} tokenizers, {len(TEXTS)} texts, {out.stat().st_size} bytes")


main()
