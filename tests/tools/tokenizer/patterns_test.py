"""Patterns of tokenizers, in Oniguruma's syntax: the same matches as by the tokenizers library
(tests/golden/patterns.py)."""

import gzip
import json
import os
import re
import subprocess
import unittest

from support import GOLDEN

PATTERNS = GOLDEN / "patterns.jsonl.gz"


def answers(questions):
    lines = "".join(json.dumps({"pattern": pattern, "text": text}) + "\n" for pattern, text in questions)
    result = subprocess.run(
        [os.environ["FIND_MATCHES"]],
        input=lines,
        capture_output=True,
        encoding="utf-8",
        check=True,
        timeout=300,
    )
    return [json.loads(line) for line in result.stdout.split("\n") if line]


class PatternsTest(unittest.TestCase):
    def test_the_library_finds_the_same(self):
        with gzip.open(PATTERNS, "rt", encoding="utf-8", newline="\n") as file:
            rows = [json.loads(line) for line in file]
        self.assertEqual(len(rows), 5000)
        same = 0
        for row, answer in zip(rows, answers([(row["pattern"], row["text"]) for row in rows]), strict=True):
            if "error" in answer:  # refused by name; other matches would be an error
                self.assertRegex(
                    answer["error"],
                    "^file: (the pattern "
                    + re.escape(row["pattern"])
                    + ": |its pattern cannot be matched: match limit)",
                )
                continue
            self.assertEqual(answer["matches"], row["matches"], (row["pattern"], row["text"]))
            same += 1
        self.assertGreater(same, 3300)

    # Pattern, text, matches. Each was once parsed wrongly or is in a published tokenizer.
    def test_patterns_of_tokenizers(self):
        cases = [
            (r"[\p{Han}]+|[\p{L}&&[^\p{Han}]]+", "of 東京Tower", ["of", "東京", "Tower"]),
            (r"\p{N}{1,3}+", "in 1234567", ["1234567"]),
            (r"\p{N}{1,3}", "in 1234567", ["123", "456", "7"]),
            (r"\w$", "ab\ncd", ["b", "d"]),
            (r"^\w", "ab\ncd", ["a", "c"]),
            (r"(?m)b.c", "ab\ncd", ["b\nc"]),
            (r"\h+", "in the hold 98", ["e", "d", "98"]),
            (r" ?[^(\s|[.,!])]+", "Hello, world.", ["Hello", " world"]),
            (r"[[:alpha:]]+|[[:^alpha:]]", "aé1", ["aé", "1"]),
            (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)", "It'S we'Ll", ["'S", "'Ll"]),
            (r"\w+", "e\u0301te\u0301 Ⅷ ²", ["e\u0301te\u0301", "Ⅷ", "²"]),
            (r"[\w]+", "Ⅷ ²", ["Ⅷ"]),
            (r"\R", "a\r\nb\u2028", ["\r\n", "\u2028"]),
            (r"a(?i)b|c", "aB ac C", ["aB", "ac"]),
            (r"a{,2}", "aaab", ["aa", "a"]),
            (r"a{2}?", "aaa", ["aa"]),
            (r"a**", "aab", ["aa"]),
            (r"\p{^L}+|\p{Letter}+", "ab12", ["ab", "12"]),
            (r"\p{Greek}+", "αβ\u0342c", ["αβ"]),
            (r"\u00e9\x41\x{42}\o{103}\n", "éABC\n", ["éABC\n"]),
            (r" ?[ab]?+\W", " a", [" "]),
        ]
        for (pattern, text, expected), answer in zip(
            cases, answers([(pattern, text) for pattern, text, _ in cases]), strict=True
        ):
            self.assertIn("matches", answer, answer)
            self.assertEqual(
                [text.encode()[begin:end].decode() for begin, end in answer["matches"]], expected, pattern
            )

    def test_unsupported_patterns_are_refused_by_name(self):
        refused = {
            r"(a": "a parenthesis without its other one",
            r"a)": "a closing parenthesis",
            r"[a": "a class without an end",
            r"*a": "a quantifier with nothing before it",
            r"[[:foo:]]": "[:foo:]",
            r"\X": r"\X is not supported",
            r"\p{Age=6.0}": "Age=6.0",
            r"\p{InBasicLatin}": "InBasicLatin",
            r"(?~ab)": "(?~",
            r"(?s)a": "(?s",
            r"\k<n>": r"\k",
            r"(?i)ss": "ss and ß",
            r"\b+": "matches no characters",
            r"[z-a]": "ends before it begins",
            r"\xE3\x81\x82": "a byte of a character",
            r"\2(a)": "the number of a group",
            "a\\": "ends with a backslash",
            r"[a-\d]": "a set at the end of a range",
            r"(?<=a+)b": "lookbehind",
        }
        for (pattern, why), answer in zip(
            refused.items(), answers([(pattern, "text") for pattern in refused]), strict=True
        ):
            self.assertIn("error", answer, pattern)
            self.assertTrue(answer["error"].startswith("file: the pattern " + pattern + ": "), answer)
            self.assertIn(why, answer["error"])


if __name__ == "__main__":
    unittest.main()
