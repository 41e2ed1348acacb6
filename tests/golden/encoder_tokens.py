"""Makes encoder_tokens.json: small tokenizers of the kinds that encoder models have, and how Hugging Face's
libraries encode the lines of encoder_lines.py.

    python tests/golden/encoder_tokens.py         (tokenizers 0.23.3, transformers 5.24, sentencepiece 0.2.3)

{"charsmap": SentencePiece's rules nmt_nfkc, compressed;
 "tokenizers": {name: {"tokenizer": a tokenizer.json in which CHARSMAP stands for the rules,
                       or "vocabulary": the lines of a vocab.txt and "config": a tokenizer_config.json;
                       "digests": {kind of question: one digest for each block of lines}}}}
"""

import base64
import io
import json
import lzma
import pathlib
import tempfile

import sentencepiece
from encoder_asking import BLOCK, CHARSMAP, digests, questions_of
from encoder_lines import SENTENCES, WORDS, lines
from sentencepiece import sentencepiece_model_pb2
from tokenizers import (
    AddedToken,
    Regex,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)
from transformers import BertTokenizer

MARK = "\u2581"
CORPUS = SENTENCES * 3 + [sentence.lower() for sentence in SENTENCES]
BERT = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
XLM = ["<s>", "<pad>", "</s>", "<unk>"]


def charsmap():
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(WORDS * 3),
        model_writer=model,
        vocab_size=400,
        normalization_rule_name="nmt_nfkc",
        hard_vocab_limit=False,
        minloglevel=2,
    )
    proto = sentencepiece_model_pb2.ModelProto()
    proto.ParseFromString(model.getvalue())
    return proto.normalizer_spec.precompiled_charsmap


def changed(tokenizer, change):
    text = json.loads(tokenizer.to_str())
    change(text)
    return Tokenizer.from_str(json.dumps(text))


def template(single, pair, tokenizer, *tokens):
    return processors.TemplateProcessing(
        single=single, pair=pair, special_tokens=[(token, tokenizer.token_to_id(token)) for token in tokens]
    )


def word_pieces(normalizer, pre_tokenizer, decoder, size=900, special=BERT, **model):
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]", **model))
    tokenizer.normalizer, tokenizer.pre_tokenizer, tokenizer.decoder = normalizer, pre_tokenizer, decoder
    prefix = model.get("continuing_subword_prefix", "##")
    tokenizer.train_from_iterator(
        CORPUS,
        trainers.WordPieceTrainer(
            vocab_size=size,
            special_tokens=special,
            show_progress=False,
            continuing_subword_prefix=prefix,
            limit_alphabet=500,
        ),
    )
    return tokenizer


def unigram(normalizer, pre_tokenizer, decoder, size=800, special=XLM):
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer, tokenizer.pre_tokenizer, tokenizer.decoder = normalizer, pre_tokenizer, decoder
    tokenizer.train_from_iterator(
        CORPUS,
        trainers.UnigramTrainer(
            vocab_size=size, special_tokens=special, unk_token="<unk>", show_progress=False
        ),
    )
    return tokenizer


def byte_pairs(pre_tokenizer, size=900, special=()):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizer, decoders.ByteLevel()
    tokenizer.train_from_iterator(
        CORPUS,
        trainers.BpeTrainer(
            vocab_size=size,
            special_tokens=list(special),
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )
    return tokenizer


def mask(token="<mask>", **how):
    return AddedToken(token, lstrip=True, special=True, normalized=False, **how)


def tokenizers(rules):
    bert = word_pieces(
        normalizers.BertNormalizer(lowercase=True), pre_tokenizers.BertPreTokenizer(), decoders.WordPiece()
    )
    bert.post_processor = processors.BertProcessing(
        ("[SEP]", bert.token_to_id("[SEP]")), ("[CLS]", bert.token_to_id("[CLS]"))
    )
    yield "bert uncased", bert

    cased = word_pieces(
        normalizers.BertNormalizer(lowercase=False),
        pre_tokenizers.BertPreTokenizer(),
        decoders.WordPiece(cleanup=False),
        max_input_chars_per_word=30,
    )
    cased.post_processor = template(
        "[CLS]:0 $A:0 [SEP]:0", "[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1", cased, "[CLS]", "[SEP]"
    )
    cased.add_tokens(
        [AddedToken("Große Tokens", normalized=True), AddedToken("the", single_word=True, normalized=False)]
    )
    cased.enable_truncation(20, direction="left")
    yield "bert cased, cut at the left", cased

    odd = word_pieces(
        normalizers.Sequence(
            [
                normalizers.NFKC(),
                normalizers.Lowercase(),
                normalizers.StripAccents(),
                normalizers.Strip(),
                normalizers.Prepend("the"),
            ]
        ),
        pre_tokenizers.Sequence([pre_tokenizers.Whitespace(), pre_tokenizers.Digits(individual_digits=True)]),
        decoders.WordPiece(prefix="@@"),
        continuing_subword_prefix="@@",
        size=700,
    )
    yield "words and signs", odd

    space = {"replacement": MARK, "prepend_scheme": "always", "split": True}
    xlm = unigram(
        normalizers.Sequence([normalizers.Precompiled(rules), normalizers.Replace(Regex(" {2,}"), " ")]),
        pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(**space)]),
        decoders.Metaspace(**space),
    )
    xlm.add_special_tokens([mask()])
    xlm.post_processor = template("<s> $A </s>", "<s> $A </s> </s> $B </s>", xlm, "<s>", "</s>")
    yield "xlm-roberta", xlm

    space = {"replacement": MARK, "prepend_scheme": "first", "split": True}
    albert = unigram(
        normalizers.Sequence(
            [
                normalizers.Replace("``", '"'),
                normalizers.Replace("''", '"'),
                normalizers.NFKD(),
                normalizers.StripAccents(),
                normalizers.Lowercase(),
                normalizers.Precompiled(rules),
                normalizers.Replace(Regex(" {2,}"), " "),
            ]
        ),
        pre_tokenizers.Metaspace(**space),
        decoders.Metaspace(**space),
        special=["<pad>", "<unk>", "[CLS]", "[SEP]"],
    )
    albert.add_special_tokens([mask("[MASK]")])
    albert.post_processor = template(
        "[CLS]:0 $A:0 [SEP]:0", "[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1", albert, "[CLS]", "[SEP]"
    )
    yield "albert", albert

    space = {"replacement": MARK, "prepend_scheme": "always", "split": False}
    as_bytes = [f"<0x{byte:02X}>" for byte in range(256)]
    deberta = unigram(
        normalizers.Sequence(
            [normalizers.Strip(), normalizers.Precompiled(rules), normalizers.Replace(Regex(" {2,}"), " ")]
        ),
        pre_tokenizers.Sequence(
            [pre_tokenizers.Punctuation("merged_with_previous"), pre_tokenizers.Metaspace(**space)]
        ),
        decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace(**space)]),
        special=["<pad>", "<unk>", "[CLS]", "[SEP]", *as_bytes],
        size=1100,
    )
    deberta = changed(
        deberta,
        lambda text: (
            text["model"].update(byte_fallback=True),
            text.update(added_tokens=text["added_tokens"][:4]),
        ),
    )
    deberta.post_processor = template("$A [SEP]:0", "$B:1 [SEP]:1 $A:3 [CLS]:2", deberta, "[CLS]", "[SEP]")
    yield "deberta, whole texts", deberta

    roberta = byte_pairs(
        pre_tokenizers.ByteLevel(add_prefix_space=False), special=["<s>", "<pad>", "</s>", "<unk>"]
    )
    roberta.add_special_tokens([mask()])
    roberta.post_processor = processors.RobertaProcessing(
        ("</s>", 2), ("<s>", 0), trim_offsets=True, add_prefix_space=False
    )
    yield "roberta", roberta

    bloom = byte_pairs(
        pre_tokenizers.Sequence(
            [
                pre_tokenizers.Split(Regex(r" ?[^(\s|[.,!?…。，、।۔،])]+"), "isolated"),
                pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
            ]
        ),
        special=["<unk>", "<s>", "</s>", "<pad>"],
    )
    bloom.post_processor = processors.ByteLevel(trim_offsets=False)
    yield "bloom", bloom


def vocabularies():
    """Folders with a vocab.txt, some of them with a tokenizer_config.json."""
    words = word_pieces(normalizers.BertNormalizer(lowercase=True), pre_tokenizers.BertPreTokenizer(), None)
    vocabulary = sorted(words.get_vocab(), key=words.get_vocab().get)
    yield "vocab.txt alone", vocabulary, None
    renamed = [{"[CLS]": "<s>", "[SEP]": "</s>"}.get(token, token) for token in vocabulary] + [
        "Große",
        "##ße",
    ]
    yield (
        "vocab.txt and its config",
        renamed,
        {
            "do_lower_case": False,
            "strip_accents": True,
            "tokenize_chinese_chars": False,
            "cls_token": "<s>",
            "tokenizer_class": "BertTokenizer",
            "sep_token": {
                "__type": "AddedToken",
                "content": "</s>",
                "lstrip": False,
                "rstrip": False,
                "normalized": False,
                "single_word": False,
            },
            "truncation_side": "left",
            "mask_token": {
                "__type": "AddedToken",
                "content": "[MASK]",
                "lstrip": True,
                "rstrip": True,
                "normalized": False,
                "single_word": False,
            },
        },
    )


def of_folder(vocabulary, config):
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "vocab.txt").write_text("".join(f"{token}\n" for token in vocabulary))
        if config is not None:
            pathlib.Path(folder, "tokenizer_config.json").write_text(json.dumps(config))
        return BertTokenizer.from_pretrained(folder).backend_tokenizer


def encoded(tokenizer, question, side):
    """The library's answer in the form of the command's."""
    if "max_tokens" in question:
        tokenizer.enable_truncation(question["max_tokens"], strategy=question["truncation"], direction=side)
    else:
        tokenizer.no_truncation()
    try:
        if "words" in question:
            encoding = tokenizer.encode(
                question["words"], is_pretokenized=True, add_special_tokens=question["special"]
            )
        else:
            encoding = tokenizer.encode(
                question["text"], question.get("second"), add_special_tokens=question["special"]
            )
    except Exception as problem:  # pylint: disable=broad-exception-caught
        if "Truncation error" not in str(problem):
            raise
        return None
    answer = {
        "tokens": encoding.ids,
        "types": encoding.type_ids,
        "words": [-1 if word is None else word for word in encoding.word_ids] if "words" in question else [],
    }
    if "max_tokens" in question:
        whole = encoded(
            tokenizer, {key: value for key, value in question.items() if key != "max_tokens"}, side
        )
        return {**answer, "cut": len(whole["tokens"]) > len(encoding.ids)}
    return {
        **answer,
        "cut": False,
        "text": tokenizer.decode(encoding.ids, skip_special_tokens=True),
    }  # the text of a truncated encoding may end inside a character


def golden(tokenizer, side):
    return {
        kind: digests([encoded(tokenizer, question, side) for question in questions])
        for kind, questions in questions_of(list(lines())).items()
    }


def main():
    rules = charsmap()
    all_of_them = {}
    for name, tokenizer in tokenizers(rules):
        side = tokenizer.truncation["direction"] if tokenizer.truncation else "right"
        text = tokenizer.to_str().replace(base64.b64encode(rules).decode(), CHARSMAP)
        all_of_them[name] = {"tokenizer": json.loads(text), "digests": golden(tokenizer, side)}
        print(name, tokenizer.get_vocab_size(), flush=True)
    for name, vocabulary, config in vocabularies():
        side = (config or {}).get("truncation_side", "right")
        all_of_them[name] = {
            "vocabulary": vocabulary,
            "config": config,
            "digests": golden(of_folder(vocabulary, config), side),
        }
        print(name, len(vocabulary), flush=True)
    out = pathlib.Path(__file__).with_name("encoder_tokens.json")
    parts = [
        f"{json.dumps(name)}: {json.dumps(part, separators=(',', ':'), ensure_ascii=False)}"
        for name, part in all_of_them.items()
    ]
    packed = base64.b85encode(lzma.compress(rules, preset=9)).decode()
    out.write_text(f'{{"charsmap": {json.dumps(packed)},\n"tokenizers": {{\n' + ",\n".join(parts) + "\n}}\n")
    print(f"{out}: {len(all_of_them)} tokenizers, blocks of {BLOCK} lines, {out.stat().st_size} bytes")


main()
