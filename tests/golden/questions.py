"""Prints references for questions and their answers. Run once by a person (see README.md).

    python tests/golden/questions.py answers > tests/golden/answers.h
    python tests/golden/questions.py ranges > tests/golden/ranges.json

answers: exact match and F1 of answers by torchmetrics (1.9), which counts them as SQuAD 1.1's script does,
except for answers that have no word.

ranges: digests of the places of tokens in the lines of encoder_lines.py, by the library tokenizers (0.23).
The tokenizers are those of encoder_tokens.json whose normalizers keep characters apart: if characters are put
together, the library has several ways."""

import json
import pathlib
import random
import sys

from encoder_asking import digests
from encoder_lines import lines

PARTS = "the The a an ship Ship's ship-yard $5 hold the. (a) a_b red - ... 1 2 U.S. us".split(" ")
PARTS += [
    "\u00c4ther",
    "\u00c4THER",
    "the\u0301",
    "\u0130stanbul",
    "\u03a3\u038a\u03a3\u03a5\u03a6\u039f\u03a3",
]
PARTS += ["\u00bd", "\u201cred\u201d", "\u4f60\u597d", "caf\u00e9", "cafe\u0301", "the\u2014ship"]
PARTS += ["THE ", "1,000", "a\u00a0b", "b\u3000c", "red red", "\t", "an,d", "\x1cx\x1fy"]
FIXED = [
    (["The ship"], "ship"),
    (["a"], ""),
    (["the"], "an"),
    (["red ship", "the red"], "red"),
    (["Ship's hold"], "ships hold"),
    (["red red red"], "red red"),
    (["x"], ""),
    (["U.S."], "us"),
    (["1,000"], "1000"),
    (["\u03a3\u038a\u03a3\u03a5\u03a6\u039f\u03a3"], "\u03c3\u03af\u03c3\u03c5\u03c6\u03bf\u03c2"),
]


def cases():
    draw = random.Random(5)
    yield from FIXED
    for _ in range(150):
        words = [draw.choice(PARTS) for _ in range(draw.randrange(1, 6))]
        gold = [" ".join(words)]
        if draw.randrange(3) == 0:
            gold.append(" ".join(draw.choice(PARTS) for _ in range(draw.randrange(1, 4))))
        kept = [word for word in words if draw.randrange(4)] + [draw.choice(PARTS)] * draw.randrange(2)
        yield gold, draw.choice([" ", "  ", ", "]).join(kept)


def score(gold, found):
    from torchmetrics.functional.text import squad

    values = squad(
        [{"prediction_text": found, "id": "1"}],
        [{"answers": {"text": gold, "answer_start": [0] * len(gold)}, "id": "1"}],
    )
    return float(values["exact_match"]), float(values["f1"])


def quoted(text):
    """A string of C, in ASCII."""
    out = ""
    for byte in text.encode():
        plain = 32 <= byte < 127 and chr(byte) not in '"\\'
        out += chr(byte) if plain else f"\\{byte:03o}"  # three digits end the escape
    return f'"{out}"'


def print_answers():
    print("// Exact match and F1 of answers by torchmetrics. Made by tests/golden/questions.py.")
    print("#pragma once\n\nnamespace command::golden {\n")
    print(
        "struct AnswerCase {\n  const char *gold, *other, *found;  // other: a second known answer, or null"
    )
    print("  double exact, f1;\n};\n\ninline constexpr AnswerCase answer_cases[] = {")
    for gold, found in cases():
        exact, f1 = score(gold, found)
        other = quoted(gold[1]) if len(gold) > 1 else "nullptr"
        print(f"    {{{quoted(gold[0])}, {other}, {quoted(found)}, {exact:.9g}, {f1:.9g}}},")
    print("};\n\n}  // namespace command::golden")


NAMES = ["bert cased, cut at the left", "roberta", "bloom"]


def ranges(text, offsets):
    """As bytes, without white space at both ends."""
    bytes_before = [0]
    for character in text:
        bytes_before.append(bytes_before[-1] + len(character.encode()))
    found = []
    for begin, end in offsets:
        # Python takes four control characters for white space, Unicode does not.
        while begin < end and text[begin].isspace() and not "\x1c" <= text[begin] <= "\x1f":
            begin += 1
        while begin < end and text[end - 1].isspace() and not "\x1c" <= text[end - 1] <= "\x1f":
            end -= 1
        found.append([bytes_before[begin], bytes_before[end]] if begin < end else [0, 0])
    return found


def print_ranges():
    from tokenizers import Tokenizer

    golden = json.loads((pathlib.Path(__file__).parent / "encoder_tokens.json").read_text())["tokenizers"]
    all_of_them = {}
    for name in NAMES:
        tokenizer = Tokenizer.from_str(json.dumps(golden[name]["tokenizer"]))
        tokenizer.no_truncation()
        answers = []
        for text in lines():
            encoding = tokenizer.encode(text, add_special_tokens=False)
            answers.append({"tokens": encoding.ids, "ranges": ranges(text, encoding.offsets)})
        all_of_them[name] = digests(answers)
    print(json.dumps(all_of_them, indent=0))


if __name__ == "__main__":
    {"answers": print_answers, "ranges": print_ranges}[sys.argv[1]]()
