"""Finds matches of tokenizer patterns with the tokenizers library and writes patterns.jsonl.gz. Each line
has a pattern, a text, and the byte ranges of the matches, or null if the library refuses the pattern. A range
does not include its end. Needs the package `tokenizers`.

    python3 patterns.py [COUNT [SEED]] > patterns.jsonl.gz"""

import gzip
import json
import random
import sys

SETS = [
    "\\s",
    "\\S",
    "\\d",
    "\\D",
    "\\w",
    "\\W",
    "\\h",
    "\\H",
    "\\p{L}",
    "\\p{N}",
    "\\p{Lu}",
    "\\P{L}",
    "\\p{^L}",
    "\\p{Han}",
    "\\p{Latin}",
    "\\p{Letter}",
    "\\p{Upper}",
    "\\p{Alpha}",
    "\\p{Punct}",
    "\\p{M}",
    "\\p{word}",
    "\\p{Script=Han}",
    "\\p{Greek}",
    "\\p{White_Space}",
]
POSIX = [
    "[:alpha:]",
    "[:^alpha:]",
    "[:digit:]",
    "[:space:]",
    "[:punct:]",
    "[:upper:]",
    "[:lower:]",
    "[:alnum:]",
    "[:word:]",
    "[:cntrl:]",
    "[:graph:]",
    "[:print:]",
    "[:blank:]",
    "[:xdigit:]",
    "[:ascii:]",
]
LETTERS = list("aabbcdefilst.,!'-_ 12") + [
    "\n",
    "é",
    "ß",
    "東",
    "京",
    "\u0301",
    "k",
    "K",
    "S",
    "\t",
    "\u00a0",
    "β",
    "Σ",
    "😀",
    "²",
    "\r\n",
]
ESCAPES = [
    "\\n",
    "\\t",
    "\\r",
    "\\x41",
    "\\x{E9}",
    "\\u00e9",
    "\\.",
    "\\-",
    "\\]",
    "\\[",
    "\\\\",
    "\\'",
    "\\e",
    "\\a",
    "\\v",
    "\\f",
    "\\j",
    "\\077",
    "\\o{101}",
    "\\ ",
]
WORDS = [
    "hello",
    "World",
    "don't",
    "we'll",
    "abc",
    "aab",
    "ab",
    "ss",
    "straße",
    "été",
    "e\u0301te\u0301",
    "東京Tower",
    "Ελλάδα",
    "12",
    "1234567",
    "3.14",
    "a_b",
    "x-y",
    "\n",
    "\r\n",
    "\n\n",
    " ",
    "  ",
    "\t",
    "\u00a0",
    "!",
    "...",
    "[x]",
    "(y)",
    "K",
    "S",
    "fi",
    "ﬁ",
    "²",
    "Ⅷ",
    "😀",
    "ab12",
    "AB",
    "ſ",
    "\u2028",
    "\x0b",
    "\u0085",
]


class Patterns:
    def __init__(self, draw):
        self.draw = draw

    def literal(self):
        c = self.draw.choice(LETTERS)
        return "\\" + c if c in ".-" and self.draw.random() < 0.7 else c

    def bracketed(self, depth=0):
        draw = self.draw
        parts = []
        for _ in range(draw.randrange(1, 4)):
            kind = draw.random()
            if kind < 0.3:
                parts.append(self.literal().replace("[", "\\["))
            elif kind < 0.45:
                parts.append(
                    draw.choice(["a-c", "a-z", "A-Z", "0-9", "\\x{41}-\\x{5A}", "à-ÿ", "一-龥", "1-3"])
                )
            elif kind < 0.65:
                parts.append(draw.choice(SETS))
            elif kind < 0.75:
                parts.append(draw.choice(POSIX))
            elif kind < 0.85:
                parts.append(draw.choice(ESCAPES + ["\\b"]))
            elif depth < 2:
                parts.append(self.bracketed(depth + 1))
        if draw.random() < 0.2 and (len(parts) > 1 or draw.random() < 0.1):
            parts.insert(1, "&&")  # rarely with nothing after it
        if draw.random() < 0.05:
            parts.insert(draw.randrange(len(parts) + 1), "-")
        return "[" + ("^" if draw.random() < 0.25 else "") + "".join(parts) + "]"

    def quantifier(self):
        draw = self.draw
        if draw.random() < 0.7:
            return draw.choice(["?", "*", "+", "+", "??", "*?", "+?", "?+", "*+", "++"])
        return draw.choice(
            [
                "{2}",
                "{1,}",
                "{,2}",
                "{1,3}",
                "{2}?",
                "{1,3}?",
                "{1,3}+",
                "{3,1}",
                "{2}+",
                "{,}",
                "{x}",
                "{1,3}*",
            ]
        )

    def atom(self, depth):
        draw = self.draw
        kind = draw.random()
        if kind < 0.35:
            return self.literal()
        if kind < 0.5:
            return draw.choice(SETS + ["."])
        if kind < 0.65:
            return self.bracketed()
        if kind < 0.7:
            return draw.choice(ESCAPES)
        if kind < 0.77:
            return draw.choice(
                ["^", "$", "\\b", "\\B", "\\A", "\\z", "\\Z", "\\R", "\\N", "\\O", "\\K", "\\G"]
            )
        if depth > 2:
            return self.literal()
        opening = draw.choice(
            [
                "(?:",
                "(?:",
                "(",
                "(?=",
                "(?!",
                "(?>",
                "(?<=",
                "(?<!",
                "(?i:",
                "(?m:",
                "(?i-m:",
                "(?<n>",
                "(?x: ",
                "(?-i:",
            ]
        )
        if opening.startswith("(?<") and opening[3] in "=!":
            return opening + self.literal() + ")"
        return opening + self.alternatives(depth + 1) + ")"

    def alternatives(self, depth=0):
        draw = self.draw
        out = []
        for _ in range(draw.choice([1, 1, 1, 2, 3])):
            one = ""
            for _ in range(draw.randrange(1, 4)):
                if draw.random() < 0.03:
                    one += draw.choice(["(?i)", "(?m)", "(?x)", "(?#no)"])
                one += self.atom(depth)
                while draw.random() < 0.3:
                    one += self.quantifier()
            out.append(one)
        return "|".join(out)


def text(draw):
    return "".join(draw.choice(WORDS) + draw.choice(["", "", " "]) for _ in range(draw.randrange(1, 9)))


def matches(tokenizers, pattern, sample):
    try:
        isolated, removed = (
            tokenizers.pre_tokenizers.Split(tokenizers.Regex(pattern), how) for how in ("isolated", "removed")
        )
    except Exception:
        return None

    def ranges(split):
        return [tuple(range_) for _, range_ in split.pre_tokenize_str(sample)]

    gaps = set(ranges(removed))
    begins = [len(sample[:i].encode()) for i in range(len(sample) + 1)]
    return [[begins[a], begins[b]] for a, b in ranges(isolated) if (a, b) not in gaps]


def main(count=5000, seed=1):
    import tokenizers

    draw = random.Random(int(seed))
    patterns = Patterns(draw)
    lines = []
    while len(lines) < int(count):
        pattern, sample = patterns.alternatives(), text(draw)
        try:
            found = matches(tokenizers, pattern, sample)
        except BaseException as failed:  # the library gives up on some patterns
            if type(failed).__name__ != "PanicException":
                raise
            continue
        lines.append(
            json.dumps({"pattern": pattern, "text": sample, "matches": found}, ensure_ascii=False) + "\n"
        )
    sys.stdout.buffer.write(gzip.compress("".join(lines).encode(), 9, mtime=0))


if __name__ == "__main__":
    main(*sys.argv[1:])
