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
TOO_OLD = ", which is installed, is too old for "


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
            if "error" in answer:
                self.assertTrue(answer["error"].startswith("file: the pattern " + row["pattern"] + ": "))
                self.assertTrue(row["matches"] is None or TOO_OLD in answer["error"], (row, answer))
                continue
            self.assertEqual(answer["matches"], row["matches"], (row["pattern"], row["text"]))
            same += 1
        self.assertGreater(same, 3400)

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
            (r"a(?i)b|c", "aB ac C", ["aB", "ac"]),
            (r"a{,2}", "aaab", ["aa", "a"]),
            (r"a{2}?", "aaa", ["aa"]),
            (r"a**", "aab", ["aa"]),
            (r"\p{^L}+|\p{Letter}+", "ab12", ["ab", "12"]),
            (r"\p{Greek}+", "αβ\u0342c", ["αβ"]),
            (r"\u00e9\x41\x{42}\o{103}\n", "éABC\n", ["éABC\n"]),
            (r" ?[ab]?+\W", " a", [" "]),
            (r"\X", "e\u0301\U0001f1eb\U0001f1f7x", ["e\u0301", "\U0001f1eb\U0001f1f7", "x"]),
            (r"(?~ab)", "xxabyy", ["xx", "byy"]),
            (r"(?i)ss", "ss ß SS", ["ss", "ß", "SS"]),
            (r"(?i:[^ß]+)", "asSßb", ["asS", "b"]),
            (r"(?<=ab?)c", "abc ac c", ["c", "c"]),
            (r"(?<p>\((?:[^()]|\g<p>)*\))", "(a(b)c) (d", ["(a(b)c)"]),
            (r"(?<n>a)\k<n>", "aab", ["aa"]),
            (r"\p{InCyrillic}+", "abвг", ["вг"]),
            (r"\xE3\x81\x82", "いあ", ["あ"]),
            (r"\p{Punct}", "a+.", ["."]),
            ("\\\\R", "a\\R\n", ["\\R"]),
        ]
        for (pattern, _, expected), found in zip(cases, self.found(cases), strict=True):
            self.assertEqual(found, expected, pattern)

    # The texts of the matches, or the error.
    def found(self, cases):
        texts = [text.encode() for _, text, _ in cases]
        for text, answer in zip(texts, answers([(pattern, text) for pattern, text, _ in cases]), strict=True):
            yield answer.get("error") or [text[begin:end].decode() for begin, end in answer["matches"]]

    def test_an_old_oniguruma_is_named_or_finds_the_same(self):
        cases = [
            (r"\R", "a\r\nb\u2028", ["\r\n", "\u2028"]),
            (r"\R+", "a\n\n", ["\n\n"]),
            ("\\\\\\R", "\\\n", ["\\\n"]),
            (r"[[:punct:]]", "a+.", ["+", "."]),
            (r"[[:^punct:]]", "+a", ["a"]),
            (r"(?i:b)[[:^punct:]]", "b+ba", ["ba"]),
            (r"\p{word}", "²", ["²"]),
            (r"\P{^WORD}", "²", ["²"]),
            (r"\p{ Wo_r-d }", "²", ["²"]),
        ]
        for (pattern, _, expected), found in zip(cases, self.found(cases), strict=True):
            if found != expected:
                self.assertRegex(
                    found, "^file: the pattern " + re.escape(pattern) + r": Oniguruma \d+\.\d+\.\d+" + TOO_OLD
                )

    def test_a_pattern_that_gives_up_is_named(self):
        cases = [
            (r"(?:a|aa)+$", "a" * 60 + ".", "retry-limit-in-match"),
            (r"(?:a|b)+$", "a" * 15000 + ".", "retry-limit-in-search"),
            (r"\p{L}+", "a" * 17_000_000, "match-stack limit"),
            (r"(?<=(a\K)t)|b", "atat", "a match begins before where it is looked for"),
        ]
        for (pattern, _, why), found in zip(cases, self.found(cases), strict=True):
            self.assertIn("file: its pattern cannot be matched: " + why, found, pattern)
        self.assertEqual([*self.found([(r"(?:a|b)+$", "a" * 3000 + ".", None)])], [[]])

    def test_malformed_patterns_are_refused(self):
        refused = {
            r"(a": "unmatched parenthesis",
            r"a)": "unmatched close parenthesis",
            r"[a": "premature end of char-class",
            r"*a": "target of repeat operator is not specified",
            r"[[:foo:]]": "POSIX bracket",
            r"\p{Age=6.0}": "Age=6.0",
            r"(?s)a": "undefined group option",
            r"\k<n>": "undefined name <n>",
            r"\b+": "target of repeat operator is invalid",
            r"[z-a]": "empty range",
            r"\xE3\x81": "too short multibyte",
            r"\2(a)": "invalid backref number",
            "a\\": "end pattern at escape",
            r"[a-\d]": "end of range",
            "(" * 5000 + ")" * 5000: "parse depth limit",
        }
        for (pattern, why), answer in zip(
            refused.items(), answers([(pattern, "text") for pattern in refused]), strict=True
        ):
            self.assertIn("error", answer, pattern)
            self.assertTrue(answer["error"].startswith("file: the pattern " + pattern + ": "), answer)
            self.assertIn(why, answer["error"])


if __name__ == "__main__":
    unittest.main()
