"""The questions about the lines of encoder_lines.py, and the digests of the answers."""

import hashlib
import json

CHARSMAP = "CHARSMAP"
BLOCK = 250  # lines for each digest
WAYS = ["longest_first", "only_first", "only_second"]
LENGTHS = [5, 8, 13, 14, 29]


def questions_of(lines):
    """One question for every line, by kind."""
    pairs, words, texts, plain = [], [], [], []
    for number, line in enumerate(lines):
        second = lines[(number * 7 + 1) % len(lines)]
        truncation = (
            {"max_tokens": LENGTHS[number // 2 % len(LENGTHS)], "truncation": WAYS[number % len(WAYS)]}
            if number % 4
            else {}
        )
        texts.append(
            {
                "text": line,
                "special": True,
                **(
                    {"max_tokens": LENGTHS[number % len(LENGTHS)], "truncation": "longest_first"}
                    if number % 3 == 0
                    else {}
                ),
            }
        )
        plain.append({"text": line, "special": False})
        pairs.append({"text": line, "second": second, "special": number % 5 != 0, **truncation})
        words.append({"words": line.split(" "), "special": True, **(truncation if number % 3 == 0 else {})})
    return {"texts": texts, "plain": plain, "pairs": pairs, "words": words}


def digests(answers):
    blocks = [answers[at : at + BLOCK] for at in range(0, len(answers), BLOCK)]
    return [hashlib.sha256(json.dumps(block, sort_keys=True).encode()).hexdigest()[:12] for block in blocks]
