"""Prints ranges.json: digests of the places of tokens in the lines of encoder_lines.py, by the library
tokenizers (0.23). Run once by a person (see README.md). The tokenizers are those of encoder_tokens.json whose
normalizers keep characters apart: if characters are put together, the library has several ways."""

import json
import pathlib

from encoder_asking import digests
from encoder_lines import lines
from tokenizers import Tokenizer

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


def main():
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
    main()
