"""Advices about the files of --data: their format, their texts, and the room for them."""

import json
import struct

from .rows import (
    Advice,
    AdviceTest,
    instead,
    planned,
    plus,
    prints,
    run,
    same_as,
    shows,
    steps,
    without,
    wrote,
)

SIZES = "--batch 2 --seq 32 --vram 32MiB --threads 1 --steps 2"
BEGIN = f"train --model nano {SIZES} --out OUT --eval-batches 1 --data"
SHOW = "train --model nano --batch 2 --seq 32 --vram 32MiB --threads 1 --steps 2 --show-examples 3 --data"
EVAL = "eval --model nano --batch 2 --seq 32 --vram 32MiB --threads 1 --json --data"
ENCODER = BEGIN.replace("nano", "bert --from-scratch")
TEXT = "".join(f"{i} ships lie in the hold where the plan says {i * 7 % 11}.\n" for i in range(200))


def lines(rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


def table(header, row, count=40):
    return header + "\n" + "".join(row(i) + "\n" for i in range(count))


def counted(what):
    return prints(rf"\n(examples|texts|pairs|data) +{what}")


def ids(form, count=2000, most=250):
    return struct.pack(f"<{count}{form}", *((i * i * 7 + i) % most for i in range(count)))


def array(count=500):
    head = "{'descr': '<u2', 'fortran_order': False, 'shape': (%d,), }" % count
    head += " " * (117 - len(head)) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + ids("H", count)


def shares(count, word="ship"):
    return lines({"prompt": f"{word} {i}? ", "completion": f"hold {i}."} for i in range(count))


SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = ["ship", "hold", "plan", "the", "a", "in", "is", "no", "yes", "sea", "wind", "crew"]
BERT = {
    "model_type": "bert",
    "architectures": ["BertModel"],
    "vocab_size": 40,
    "hidden_size": 32,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "max_position_embeddings": 48,
    "type_vocab_size": 2,
    "pad_token_id": 0,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
}
BERT_FILES = {
    "bert/config.json": json.dumps(BERT),
    "bert/vocab.txt": "".join(word + "\n" for word in SPECIAL + WORDS),
}

FILES = {
    **BERT_FILES,
    "text.txt": TEXT,
    "short.txt": TEXT[:1000],
    "labels.csv": table("text,label", lambda i: f"ship {i} sails,{'abc'[i % 3]}"),
    "queries.csv": table("query,intent", lambda i: f"ship {i} sails,{'abc'[i % 3]}"),
    "two.csv": table("text,topic,label", lambda i: f"ship {i} sails,{'ab'[i % 2]},id {i}"),
    "examples.jsonl": shares(40),
    "examples.csv": table("prompt,completion", lambda i: f"ship {i}?,hold {i}."),
    "few.jsonl": shares(1),
    "long.jsonl": shares(40, "a ship with a very long name that fills all of a sample"),
    "beyond.jsonl": shares(40, "ship " * 60),
    "pairs.jsonl": lines(
        {"prompt": f"ship {i}? ", "chosen": f"yes {i}.", "rejected": f"no {i}, never."} for i in range(40)
    ),
    "long-pairs.jsonl": lines(
        {"prompt": "a ship with a very long name, number %d? " % i, "chosen": "yes.", "rejected": "no."}
        for i in range(40)
    ),
    "turns.jsonl": lines(
        {"messages": [{"role": "user", "content": f"ship {i}?"}, {"role": "assistant", "content": "yes"}]}
        for i in range(40)
    ),
    "turns.jinja": "{% for m in messages %}[{{ m.role }}]{{ m.content }}\n{% endfor %}",
    "texts.jsonl": lines({"text": "the ship is in the hold " * (1 + i % 3)} for i in range(40)),
    "notes.txt": lines({"note": f"ship {i} lies in the hold"} for i in range(100)),
    "half.txt": "".join(
        (line if (i + 1) % 3 else "a line of text\n") for i, line in enumerate(shares(60).splitlines(True))
    ),
    "table.jsonl": table("prompt,completion", lambda i: f"ship {i}?,hold {i}."),
    "columns.txt": table("text,label", lambda i: f"ship {i} sails,{'abc'[i % 3]}"),
    "folder/a.jsonl": shares(20),
    "folder/b/c.jsonl": shares(20, "crew"),
    "ids.bin": ids("H"),
    "signed.bin": ids("i"),
    "big.bin": b"".join(bytes([0, i % 200]) for i in range(2000)),
    "ids.npy": array(),
    "wide.bin": ids("I"),
    "sides.csv": table("premise,hypothesis,label", lambda i: f"ship {i},hold,{'ab'[i % 2]}"),
    "four.csv": table("premise,hypothesis,s1,s2,label", lambda i: f"ship {i},hold,sea,no,{'ab'[i % 2]}"),
    "replies.csv": table("remark,reply,label", lambda i: f"the ship {i} is in,a hold,{'ab'[i % 2]}"),
}

ROWS = [
    # Formats.
    Advice(
        "{}: {} of its first {} lines are objects of JSON with examples, the others are not; --data-format "
        "jsonl "
        "reads the file in that format and names the first error, --data-format text learns it as it is "
        "written",
        f"{BEGIN} half.txt --document-end 0",
        plus("--data-format text", counted(r"half\.txt: [\d,]+ tokens"), steps(2)),
    ),
    Advice(
        "{}: its lines are objects of JSON without a member that is known here; they are learned as they are "
        "written; --text-field NAME learns one of their members",
        f"{BEGIN} notes.txt --document-end 0",
        plus("--text-field note", counted("100,"), steps(2)),
    ),
    Advice(
        "{}: expected JSON lines, and it looks like a table with the columns {}; --data-format csv reads "
        "it as one",
        f"{BEGIN} table.jsonl --data-format jsonl --document-end 0",
        instead(
            "--data-format jsonl", "--data-format csv", same_as(f"{BEGIN} examples.csv --document-end 0")
        ),
    ),
    Advice(
        "{}: is read as {} because of its content, and not as {}; --data-format overrides this",
        f"{BEGIN} columns.txt",
        plus("--data-format text", counted(r"columns\.txt: [\d,]+ tokens to train on")),
    ),
    Advice(
        "--data {}: ** is not supported; name each folder, as in a/*.jsonl b/*.jsonl",
        f"{BEGIN} 'folder/**' --document-end 0",
        instead("'folder/**'", "'folder/*.jsonl' 'folder/b/*.jsonl'", counted("40,")),
    ),
    Advice(
        "--data: {} is {}, and {} is {}; files of one kind are read together (--data-format says which)",
        f"{BEGIN} examples.jsonl text.txt --document-end 0",
        plus("--data-format text", prints("tokens to train on"), steps(2)),
        without("text.txt", counted("40,")),
    ),
    Advice(
        "--data: one of {} and {} has columns of examples, and the other one has texts with labels; files of "
        "one kind are read together",
        f"{BEGIN} examples.csv labels.csv --document-end 0",
        without("labels.csv", counted("40,")),
        without("examples.csv", counted("40, each with one of 3 labels")),
    ),
    Advice(
        "--data {}: holds examples ({}), which `train` and `eval` read themselves; --data-format text "
        "takes it as "
        "it is written",
        "tokenize --model bert --data texts.jsonl --out texts-1.bin",
        run(
            "tokenize --model bert --data texts.jsonl --data-format text --out texts-2.bin",
            wrote("texts-2.bin"),
        ),
    ),
    Advice(
        "--data {}: expected text, found token ids, as its name or --data-format says",
        "tokenize --model bert --data text.txt --data-format tokens --out text-1.bin",
        run("tokenize --model bert --data text.txt --data-format text --out text-2.bin", wrote("text-2.bin")),
    ),
    Advice(
        "--data {}: is --out {}, which would be replaced",
        "tokenize --model bert --data signed.bin --data-format text --out signed.bin --overwrite",
        run("tokenize --model bert --data text.txt --out text-3.bin", wrote("text-3.bin")),
    ),
    Advice(
        "{} exists already: replace it with --overwrite, or give another --out",
        "tokenize --model bert --data text.txt --out ids.npy.bin",
        run("tokenize --model bert --data text.txt --out ids.npy.bin --overwrite", wrote("ids.npy.bin")),
        run("tokenize --model bert --data text.txt --out text-4.bin", wrote("text-4.bin")),
    ),
    Advice(
        "--out {}: expected a name that ends in .bin, the ending of files of token ids",
        "tokenize --model bert --data text.txt --out text.ids",
        run("tokenize --model bert --data text.txt --out text-5.bin", wrote("text-5.bin")),
    ),
    Advice(
        "--document-end {}: outside of the vocabulary of {}",
        "tokenize --model bert --data text.txt --document-end 40 --out text-6.bin",
        run("tokenize --model bert --data text.txt --document-end 39 --out text-6.bin", wrote("text-6.bin")),
    ),
    # Token ids.
    Advice(
        "{}: its ids look like {}, and are read as {}: say so by --token-type {}, or if {} is right, by "
        "--token-type {}",
        f"{BEGIN} signed.bin",
        plus("--token-type int32", same_as(f"{BEGIN} ids.bin")),
        plus("--token-type uint16", counted("signed.bin: 3,600 tokens to train on")),
    ),
    Advice(
        "{}: its ids look like big-endian numbers of {} bits, and are read as {}: write them "
        "little-endian, or if {} is "
        "right, by --token-type {}",
        f"train --model wide.json --from-scratch {SIZES} --out OUT --eval-batches 1 --data big.bin",
        instead("big.bin", "ids.bin", steps(2)),
        run(
            "train --model large.json --from-scratch --batch 1 --seq 8 --vram 256MiB --threads 1 --steps 1 "
            "--out OUT "
            "--eval-batches 0 --data big.bin --token-type uint16",
            steps(1),
        ),
    ),
    Advice(
        "{}: its header says that its ids are {}, and --token-type {}",
        f"{BEGIN} ids.npy --token-type int32",
        without("--token-type int32", counted("ids.npy: 450 tokens to train on")),
        instead("--token-type int32", "--token-type uint16", counted("ids.npy: 450 tokens to train on")),
    ),
    Advice(
        "--token-type {}: is for files of token ids (.bin, or --data-format tokens), and --data {} is not "
        "one",
        f"{BEGIN} text.txt --token-type uint16",
        without("--token-type uint16", counted(r"text\.txt: [\d,]+ tokens to train on"), steps(2)),
        instead("text.txt", "ids.bin", same_as(f"{BEGIN} ids.bin")),
    ),
    Advice(
        '{}: --show-examples reads no NumPy array; write its ids by tofile("ids.bin"), and name their '
        "--token-type",
        f"{SHOW} ids.npy",
        instead("ids.npy", "ids.bin --token-type uint16", prints("8 30 66 116")),
    ),
    Advice(
        "{}: is a text; there is no tokenizer (--tokenizer)",
        f"{BEGIN} labels.csv --tokenizer ids",
        instead("--tokenizer ids", "--tokenizer byte", same_as(f"{BEGIN} labels.csv")),
    ),
    Advice(
        "{}: is for text; there is no tokenizer (--tokenizer)",
        f"{BEGIN} turns.jsonl --tokenizer ids --document-end 0 --chat-template turns.jinja",
        instead("--tokenizer ids", "--tokenizer byte", counted("40,")),
    ),
    Advice(
        "--tokenizer {}: is for texts, but {} holds token ids, as its name or --data-format says",
        f"{ENCODER} ids.bin --task masked --tokenizer bert",
        instead("ids.bin", "text.txt", steps(2)),
    ),
    Advice(
        "{}: a tokenizer of bytes has no mask token, which a masked language model needs; name another with "
        "--tokenizer",
        f"train --model bytes --from-scratch {SIZES} --out OUT --eval-batches 1 --data texts.jsonl --task "
        "masked "
        "--tokenizer byte",
        instead("--tokenizer byte", "--tokenizer bert/vocab.txt", prints(r"texts +40 with")),
    ),
    Advice(
        "--tokenizer byte needs a vocabulary of at least 256, the model's has {}",
        f"{ENCODER} labels.csv --tokenizer byte",
        without("--tokenizer byte", counted("40, each with one of 3 labels")),
    ),
    Advice(
        "{}: expected a .bin file of token ids: {} is a preset, a shape without weights and tokenizer; "
        "give --model "
        "a folder that has them, or --tokenizer the path of a tokenizer.json",
        "train --model gpt2 --data text.txt --batch 1 --seq 16 --vram 8GiB --steps 1 --eval-batches 0 "
        "--show-examples 1",
        run(f"{ENCODER} text.txt --task masked", steps(2)),
        plus("--tokenizer bert", prints("[A-Za-z]")),
    ),
    Advice(
        "{}: expected a .bin file of token ids for the model's vocabulary of {}, found another name, and "
        "no {} or {} "
        "in the model's folder; --tokenizer byte takes its bytes as tokens",
        f"train --model wide.json --from-scratch {SIZES} --out OUT --eval-batches 1 --data text.txt",
        plus("--tokenizer byte", counted(r"text\.txt: [\d,]+ tokens to train on"), steps(2)),
    ),
    Advice(
        "{}: there is no {} or {} in this model's folder; give one with --tokenizer",
        "tokenize --model wide.json --data text.txt --out text-7.bin",
        run(
            "tokenize --model wide.json --data text.txt --tokenizer bert --out text-7.bin",
            wrote("text-7.bin"),
        ),
    ),
    # Room.
    Advice(
        "{}: nothing to learn in samples of {} tokens: all {} examples are left out, {}; use a longer "
        "--seq: {} is "
        "the least that helps{}",
        f"{BEGIN} long.jsonl --document-end 0",
        instead("--seq 32", "--seq 64", counted("40,")),
    ),
    Advice(
        "{}: no pair has two answers left in the {} tokens of a sample: all {} pairs are left out, {}; use "
        "a longer "
        "--seq: {} is the least that helps",
        f"{BEGIN} long-pairs.jsonl --document-end 0",
        instead("--seq 32", "--seq 91", counted("40 of chosen and rejected answers")),
    ),
    Advice(
        "{}: the held-out part needs at least {} tokens (a window of {} and one target more), found {}; "
        "use a shorter "
        "--seq, or train on all of it with --eval-batches 0, or evaluate on another file with --eval-data",
        f"{BEGIN.replace('--seq 32', '--seq 128')} short.txt",
        instead("--seq 128", "--seq 64", steps(2)),
        instead("--eval-batches 1", "--eval-batches 0", counted("short.txt: 1,000 tokens")),
        plus("--eval-data text.txt", counted("short.txt: 1,000 tokens")),
    ),
    Advice(
        "{}: the held-out part needs at least {} tokens (a window of {} and one target more), found {}; "
        "use a shorter "
        "--seq, or evaluate on --all of it",
        f"{EVAL.replace('--seq 32', '--seq 128')} short.txt --held-out --eval-batches 1",
        instead("--seq 128", "--seq 64", shows(part="held_out")),
        instead("--held-out --eval-batches 1", "--all", shows(part="all")),
    ),
    Advice(
        "{}: nothing to evaluate: nothing is learned of the held-out part; evaluate on --all of it",
        f"{EVAL} ends.txt --held-out --document-end 10",
        instead("--held-out", "--all", shows(part="all")),
    ),
    Advice(
        "{}: the {} part needs at least {} tokens (a window of {} and one target more), found {}; use a "
        "shorter "
        "--seq",
        f"{BEGIN.replace('--seq 32', '--seq 250')} tiny.txt",
        instead("--seq 250", "--seq 8", steps(2)),
    ),
    Advice(
        "{}: too few examples ({}) to hold one out for evaluations{}; train on all of it with "
        "--eval-batches 0, or "
        "evaluate on another file with --eval-data",
        f"{BEGIN} few.jsonl --document-end 0",
        instead("--eval-batches 1", "--eval-batches 0", counted("1,"), steps(2)),
        plus("--eval-data examples.jsonl", counted("1,"), steps(2)),
    ),
    Advice(
        "{}: too few examples ({}) to hold one out for evaluations; evaluate on --all of it",
        f"{EVAL} few.jsonl --document-end 0 --held-out",
        instead("--held-out", "--all", shows(part="all")),
    ),
    Advice(
        "--data {}: an epoch is {} step{}: a batch of {} sample{} of {} tokens holds {} of the {} {}; for "
        "more steps "
        "give a smaller --batch (or --batch-examples), or a shorter --seq",
        f"{BEGIN.replace('--batch 2 --seq 32', '--batch 4 --seq 64')} examples.jsonl --document-end 0",
        instead("--batch 4", "--batch 1", steps(2)),
        instead("--batch 4", "--batch-examples 2", steps(2)),
        instead("--seq 64", "--seq 32", prints("go 0.235 times over the data")),  # it went 0.5 times before
    ),
    Advice(
        "--data {}: an epoch is {} step{}: a batch of {} samples of {} tokens holds {} of the {} {}; for "
        "more steps give "
        "a smaller --batch (or --batch-examples)",
        f"{BEGIN.replace('--batch 2 --seq 32', '--batch 4 --seq 16')} examples.jsonl --document-end 0",
        instead("--batch 4", "--batch 2", steps(2)),
        instead("--batch 4", "--batch-examples 2", steps(2)),
    ),
    Advice(
        "--data {}: an epoch is {} step{}: a batch of 1 sample of {} tokens holds {} of the {} {}; for "
        "more steps "
        "give a shorter --seq",
        f"{BEGIN.replace('--batch 2 --seq 32', '--batch 1 --seq 128')} examples.jsonl --document-end 0",
        instead("--seq 128", "--seq 32", steps(2)),
    ),
    Advice(
        "--batch-examples {}: is for files of examples, and --data {} is one text; give --batch, in samples",
        f"{BEGIN.replace('--batch 2', '--batch-examples 2')} text.txt",
        instead(
            "--batch-examples 2", "--batch 2", counted(r"text\.txt: [\d,]+ tokens to train on"), steps(2)
        ),
    ),
    Advice(
        "--batch excludes --batch-examples",
        f"{BEGIN} labels.csv --batch-examples 3",
        without("--batch-examples 3", planned(global_batch=2)),
        without("--batch 2", planned(global_batch=2), prints(r"batch +2 samples of 32 tokens, which hold 4")),
    ),
    # The end of an example, and conversations.
    Advice(
        "{}: {} has no end of text (eos_token_id); name the token that ends an example with --document-end",
        f"{BEGIN} examples.jsonl",
        plus("--document-end 0", counted("40,"), planned(inputs=["positions"])),
    ),
    Advice(
        "{}: token {}, which ends an example, is outside of the model's vocabulary of {}; name another with "
        "--document-end",
        "train --model ends --from-scratch --plan ends.json --threads 1 --steps 2 --out OUT --eval-batches 1 "
        "--data examples.jsonl",
        plus("--document-end 0", counted("40,"), steps(2)),
    ),
    Advice(
        "--document-end {}: this is outside the model's vocabulary of {}; if it is not given, it is the "
        "model's "
        "eos_token_id",
        f"train --model ends --from-scratch {SIZES} --out OUT --eval-batches 1 --data examples.jsonl",
        plus("--document-end 0", counted("40,"), steps(2)),
    ),
    Advice(
        "{}: the folder of the model's tokenizer has neither a chat_template.jinja nor a chat_template in "
        "its "
        "tokenizer_config.json; give one with --chat-template",
        f"{BEGIN} turns.jsonl --document-end 0",
        plus("--chat-template turns.jinja", counted("40,")),
    ),
    Advice(
        "{}: writes no end-of-turn token after an answer, but {}: the model does not learn where an answer "
        "ends, and "
        "`generate --chat` goes on up to --tokens",
        f"{BEGIN} turns.jsonl --document-end 0 --chat-template turns.jinja",
        instead("turns.jinja", "ends.jinja", counted("40,")),
    ),
    # Columns of texts.
    Advice(
        '{}: there is no column "text"; there are {} (--text-field names another, and --pair-field the '
        "second text of "
        "a pair); examples to learn have prompt and completion, or chosen and rejected, or text alone",
        f"{BEGIN} queries.csv --label-field intent",
        plus("--text-field query", same_as(f"{BEGIN} labels.csv")),
    ),
    Advice(
        '{}: there is no column "{}"; there are {} (--label-field names another); examples to learn have '
        "prompt "
        "and completion, or chosen and rejected, or text alone",
        f"{BEGIN} queries.csv --text-field query",
        plus("--label-field intent", same_as(f"{BEGIN} labels.csv")),
    ),
    Advice(
        '{}: there is no column "{}"; there are {} (--pair-field names another)',
        f"{ENCODER} sides.csv --text-field premise --pair-field x",
        instead("--pair-field x", "--pair-field hypothesis", same_as(f"{ENCODER} sides.csv")),
    ),
    Advice(
        '{}: expected one pair of texts, found "{}" and "{}", "{}" and "{}"; name one with --text-field and '
        "--pair-field",
        f"{ENCODER} four.csv",
        plus("--text-field premise --pair-field hypothesis", same_as(f"{ENCODER} sides.csv")),
    ),
    Advice(
        "--pair-field {}: is the first text of a pair too (--text-field)",
        f"{ENCODER} sides.csv --text-field premise --pair-field premise",
        without("--pair-field premise", same_as(f"{ENCODER} sides.csv")),
    ),
    Advice(
        '--text-field {}: the other text of the pair, "{}", is left out; --text-field {} reads both, and '
        "--pair-field {} reads it as the second one",
        f"{ENCODER} sides.csv --text-field hypothesis",
        instead("--text-field hypothesis", "--text-field premise", same_as(f"{ENCODER} sides.csv")),
        plus("--pair-field premise", steps(2)),
    ),
    Advice(
        '--text-field {}: "{}" has texts too, and is left out; --pair-field {} reads it as the second text '
        "of a pair",
        f"{ENCODER} replies.csv --text-field remark",
        plus("--pair-field reply", counted("40, each with one of 2 labels"), steps(2)),
    ),
    Advice(
        "{}: has two texts, which the model does not tell apart: it has no types of tokens; --pair-field "
        "none leaves "
        "the second text out",
        f"{BEGIN} sides.csv",
        plus("--pair-field none", counted("40, each with one of 2 labels"), steps(2)),
    ),
    Advice(
        "{}: has two texts, which a tokenizer of bytes does not tell apart: name a tokenizer with "
        "--tokenizer",
        f"train --model bytes --from-scratch {SIZES} --out OUT --eval-batches 1 --data sides.csv "
        "--tokenizer byte",
        instead("--tokenizer byte", "--tokenizer bert", counted("40, each with one of 2 labels"), steps(2)),
    ),
    Advice(
        "--pair-field {}: is for texts with labels, and --data {} has none",
        f"{BEGIN} examples.jsonl --document-end 0 --pair-field completion",
        without("--pair-field completion", counted("40,")),
    ),
    Advice(
        "--text-field: is for .csv, .jsonl and .conll files, and --data {} is not one",
        f"{BEGIN} text.txt --text-field text",
        without("--text-field text", counted(r"text\.txt: [\d,]+ tokens to train on"), steps(2)),
    ),
    Advice(
        "--label-field: is for .csv, .jsonl and .conll files, and --data {} is not one",
        f"{BEGIN} text.txt --label-field label",
        without("--label-field label", counted(r"text\.txt: [\d,]+ tokens to train on"), steps(2)),
    ),
    Advice(
        "--pair-field: is for .csv, .jsonl and .conll files, and --data {} is not one",
        f"{BEGIN} text.txt --pair-field pair",
        without("--pair-field pair", counted(r"text\.txt: [\d,]+ tokens to train on"), steps(2)),
    ),
    # Hidden tokens and preferences.
    Advice(
        "--data {}: has {}, and {} is an encoder, which does not generate text: give it texts with labels "
        '("text" and '
        '"label"; --label-field names another), words with tags, or plain texts with --task masked',
        f"{ENCODER} texts.jsonl",
        plus("--task masked", prints("texts +40 with")),
        instead("texts.jsonl", "labels.csv", counted("40, each with one of 3 labels")),
        instead("texts.jsonl", "two.csv --label-field topic", counted("40, each with one of 2 labels")),
    ),
    Advice(
        "--mask-rate: is for masked language models (--task masked)",
        f"{BEGIN} text.txt --mask-rate 0.2",
        without("--mask-rate 0.2", counted(r"text\.txt: [\d,]+ tokens to train on"), steps(2)),
        run(f"{ENCODER} texts.jsonl --mask-rate 0.2 --task masked", prints("a share of 0.2 is hidden")),
    ),
    Advice(
        "--mask-whole-words: is for masked language models (--task masked)",
        f"{BEGIN} text.txt --mask-whole-words",
        run(f"{ENCODER} texts.jsonl --mask-whole-words --task masked", prints("hidden")),
    ),
    Advice(
        "--document-end: is for language models; texts with hidden tokens are documents in any case",
        f"{ENCODER} texts.jsonl --task masked --document-end 3",
        without("--document-end 3", prints(r"texts +40 with"), steps(2)),
    ),
    Advice(
        "--label-field: is for texts with labels, and a masked language model looks at texts alone",
        f"{ENCODER} labels.csv --task masked --label-field label",
        without("--label-field label", steps(2), prints("hidden")),
        without("--task masked", counted("40, each with one of 3 labels")),
    ),
    Advice(
        "--seq {}: expected more than the {} tokens that the tokenizer puts around a text",
        f"{ENCODER.replace('--seq 32', '--seq 2')} texts.jsonl --task masked",
        instead("--seq 2", "--seq 16", steps(2)),
    ),
    Advice(
        '--preference {}: is for a .jsonl file of pairs of answers, {"prompt": …, "chosen": …, "rejected": '
        "…}; "
        "--data {} is not one",
        f"{BEGIN} examples.jsonl --document-end 0 --preference dpo",
        without("--preference dpo", counted("40,")),
        instead("examples.jsonl", "pairs.jsonl", counted("40 of chosen and rejected answers, for dpo")),
    ),
    Advice(
        "--beta: is for pairs of answers, and --data {} has no pairs",
        f"{BEGIN} text.txt --beta 0.2",
        without("--beta 0.2", counted(r"text\.txt: [\d,]+ tokens to train on"), steps(2)),
    ),
    Advice(
        "--answer-share: is for pairs of answers, and --data {} has no pairs",
        f"{BEGIN} text.txt --answer-share 0.2",
        without("--answer-share 0.2", counted(r"text\.txt: [\d,]+ tokens to train on"), steps(2)),
    ),
    Advice(
        "--margin: is for --preference simpo, not for {}",
        f"{BEGIN} pairs.jsonl --document-end 0 --margin 1",
        without("--margin 1", counted("40 of chosen and rejected answers, for dpo")),
        plus("--preference simpo", counted("40 of chosen and rejected answers, for simpo")),
    ),
    Advice(
        "--margin: is for pairs of answers, and --data {} has no pairs",
        f"{BEGIN} text.txt --margin 1",
        without("--margin 1", counted(r"text\.txt: [\d,]+ tokens to train on"), steps(2)),
    ),
    Advice(
        "--z-loss: is for the losses of single tokens, but a preference compares pairs; leave it out",
        f"{BEGIN} pairs.jsonl --document-end 0 --z-loss 0.1",
        without("--z-loss 0.1", counted("40 of chosen and rejected answers, for dpo")),
    ),
    Advice(
        "--label-smoothing: is for --preference dpo and simpo, not for {}",
        f"{BEGIN} pairs.jsonl --document-end 0 --preference orpo --label-smoothing 0.1",
        instead("orpo", "dpo", counted("40 of chosen and rejected answers, for dpo")),
        instead("orpo", "simpo", counted("40 of chosen and rejected answers, for simpo")),
        without("--label-smoothing 0.1", counted("40 of chosen and rejected answers, for orpo")),
    ),
    Advice(
        "--label-smoothing: expected a share of pairs of less than 0.5",
        f"{BEGIN} pairs.jsonl --document-end 0 --label-smoothing 0.5",
        instead("--label-smoothing 0.5", "--label-smoothing 0.4", steps(2)),
    ),
    Advice(
        "--text-field: is for texts; --data {} has pairs of answers",
        f"{BEGIN} pairs.jsonl --document-end 0 --text-field prompt",
        without("--text-field prompt", counted("40 of chosen and rejected answers")),
    ),
    Advice(
        "{}: is a safetensors file of weights, expected text: give it to --weights",
        f"{BEGIN} weights.data",
        instead("weights.data", "text.txt --weights weights.safetensors", steps(2)),
    ),
]


class DataTest(AdviceTest):
    rows = ROWS
    files = {
        **FILES,
        "tiny.txt": TEXT[:100],
        "ends.txt": "the hold\n" * 400 + "\n" * 500,
        "ids.npy.bin": ids("H"),
        "large.json": json.dumps(
            {
                "model_type": "gpt2",
                "vocab_size": 65000,
                "n_positions": 8,
                "n_embd": 4,
                "n_layer": 1,
                "n_head": 1,
            }
        ),
        "wide.json": json.dumps(
            {
                "model_type": "gpt2",
                "vocab_size": 300,
                "n_positions": 64,
                "n_embd": 32,
                "n_layer": 1,
                "n_head": 2,
            }
        ),
        "ends/config.json": json.dumps(
            {
                **{"model_type": "gpt2", "vocab_size": 256, "n_positions": 64, "n_embd": 32, "n_layer": 1},
                **{"n_head": 2, "eos_token_id": 50256},
            }
        ),
        "ends.jinja": "{% for m in messages %}[{{ m.role }}]{{ m.content }}\u00ff{% endfor %}",
        "bytes/config.json": json.dumps({**BERT, "vocab_size": 256}),
    }
    prepare = (f"{BEGIN.replace('OUT', 'done')} text.txt",)

    def prepare_more(self):
        weights = (self.folder / "done/model.safetensors").read_bytes()
        plan = "plan --model ends --batch 2 --seq 32 --vram 32MiB --threads 1 --document-end 0 --json"
        self.write("ends.json", self.call(plan).stdout)
        self.write("weights.data", weights)
        self.write("weights.safetensors", weights)

    def test_rows(self):
        self.follow_rows()

    def test_a_longer_sample_is_advised_only_if_the_model_has_the_positions(self):
        self.write("beyond.jsonl", FILES["beyond.jsonl"])
        said = self.call(f"{BEGIN} beyond.jsonl --document-end 0", anyhow=True).stderr
        self.assertIn(
            "samples of 304 tokens would help, but the model has 256 positions: shorten the prompts", said
        )
