"""Makes random templates of values, filters and methods, and their results in Jinja2, set up as
transformers does (chat_templates.py). Prints jinja_values.jsonl.gz: each line has a template and its text,
or null if Jinja2 fails. Needs jinja2.

    python3 jinja_values.py [COUNT [SEED]] > jinja_values.jsonl.gz"""

import gzip
import json
import random
import sys
import warnings

from chat_templates import environment

CHARACTERS = list("abcxyzABC019 _-.,:;/'\"\\(<[{") + [
    "\n",
    "\r\n",
    "\r",
    "\t",
    "\v",
    "\f",
    "\x1c",
    "\x1e",
    "\x1f",
    "\x00",
    "\x7f",
    "\x85",
    "\xa0",
    "\xad",
    "\u3000",
    "\u200b",
    "\u2028",
    "\u2029",
    "\ufeff",
    "\ue000",
    "\u0378",
    "\U000e0001",
    "\U0001f600",
    "é",
    "e\u0301",
    "ß",
    "İ",
    "ı",
    "Σ",
    "σ",
    "ς",
    "ΑΣ",
    "ΑΣ.",
    "ﬁ",
    "ﬃ",
    "ŉ",
    "ǅ",
    "ǆ",
    "ΐ",
    "ᾳ",
    "ᾼ",
    "և",
    "ẞ",
    "ª",
    "ⅷ",
    "Ⅷ",
    "ⓐ",
    "Ꭰ",
    "ꭰ",
    "ა",
    "Ა",
    "東京",
    "Д",
    "д",
    "٣",
    "²",
    "½",
    "𝟘",
    "𐐀",
    "ʰ",
    "ͅ",
]
WORDS = [
    "hello World",
    "straße",
    "ΌΔΟΣ",
    "don't",
    "x-y (z) [w]",
    'it\'s "so"',
    "a,b,,c",
    " pad ",
    "",
    "FIﬁ",
    "ǆ and Ǆ",
    "one\ntwo\r\nthree\n",
    "\u2028",
    "O'Neil",
    "a.b'c",
]
NUMBERS = [
    "42",
    " 42 ",
    "1.9",
    "-1.9",
    "1_0",
    "1__0",
    "_1",
    "1_",
    "0x1F",
    "0b11",
    "0o7",
    "010",
    "1e3",
    "1E-2",
    "inf",
    "-Infinity",
    "nan",
    "٣٤",
    "+5",
    "- 5",
    "1_0.5_0",
    "1_.5",
    ".5",
    "5.",
    ".",
    "",
    "x",
    "12abc",
    "\u30005\u3000",
    "99",
    "2.5",
    "-0.5",
    "1e400",
    "ff",
    "ZZ",
    "1.5e",
    "0_1",
    "\n7",
]


class Templates:
    def __init__(self, draw):
        self.draw = draw

    def quoted(self, text):
        """A literal of Jinja."""
        quote = self.draw.choice("'\"")
        out = ""
        for c in text:
            if c in "\\" + quote:
                out += "\\" + c
            elif c in "\n\r" or self.draw.random() < 0.1:
                code = ord(c)
                out += {"\n": "\\n", "\r": "\\r", "\t": "\\t"}.get(c) or (
                    f"\\x{code:02x}"
                    if code < 256
                    else f"\\u{code:04x}"
                    if code < 0x10000
                    else f"\\U{code:08x}"
                )
            else:
                out += c
        return quote + out + quote

    def text(self):
        draw = self.draw
        if draw.random() < 0.3:
            return self.quoted(draw.choice(WORDS))
        return self.quoted("".join(draw.choice(CHARACTERS) for _ in range(draw.randrange(7))))

    def whole(self):
        return str(
            self.draw.choice(
                [0, 1, 2, 3, 5, 7, 10, 15, 25, 35, 45, 123, 1250, 1350, 65536, 10**15, -1, -2, -5, -15, -25]
            )
        )

    def real(self):
        return self.draw.choice(
            [
                "0.5",
                "1.5",
                "2.5",
                "3.5",
                "0.125",
                "0.375",
                "2.675",
                "1.005",
                "1e16",
                "1e15",
                "123456789.125",
                "1e-05",
                "0.0001",
                "1e22",
                "1e300",
                "0.1",
                "-0.5",
                "-1.5",
                "-2.5",
                "7.0",
                "1.25",
                "1.35",
                "-0.0",
                "12.3456789",
                "1234.5",
                "1250.0",
                "5e-324",
                "15.0",
                "0.30000000000000004",
                "100.0",
            ]
        )

    def scalar(self):
        return self.draw.choice(
            [
                self.text,
                self.text,
                self.text,
                self.whole,
                self.real,
                lambda: self.draw.choice(["true", "false", "none"]),
            ]
        )()

    def key(self):
        return self.quoted(self.draw.choice(["a", "b", "B", "ä", "k\u3000", "it's", "x y", "Z"]))

    def items(self, depth=0):
        draw = self.draw
        parts = [self.value(depth + 1) for _ in range(draw.randrange(4))]
        return (
            "[" + ", ".join(parts) + "]"
            if draw.random() < 0.7
            else "(" + ", ".join(parts) + ("," if len(parts) == 1 else "") + ")"
        )

    def mapping(self, depth=0):
        return (
            "{"
            + ", ".join(f"{self.key()}: {self.value(depth + 1)}" for _ in range(self.draw.randrange(4)))
            + "}"
        )

    def value(self, depth=0):
        kind = self.draw.random()
        return (
            self.scalar()
            if depth > 2 or kind < 0.6
            else self.items(depth)
            if kind < 0.8
            else self.mapping(depth)
        )

    def texts(self):
        return "[" + ", ".join(self.text() for _ in range(self.draw.randrange(1, 5))) + "]"

    def numbers(self):
        return (
            "["
            + ", ".join(self.draw.choice([self.whole, self.real])() for _ in range(self.draw.randrange(5)))
            + "]"
        )

    def records(self):
        return (
            "["
            + ", ".join(
                f"{{'r': {self.text()}, 'n': {self.whole()}, 'in': {{'v': {self.real()}}}}}"
                for _ in range(self.draw.randrange(4))
            )
            + "]"
        )

    def expression(self):
        draw = self.draw
        kind = draw.randrange(12)
        if kind == 0:
            return draw.choice([self.items, self.mapping, self.scalar])()
        if kind == 1:
            how = draw.choice(
                [
                    "",
                    "(indent=2)",
                    "(ensure_ascii=true)",
                    "(sort_keys=true)",
                    "(indent='\\t')",
                    "(separators=(',', ':'))",
                    "(true, 1)",
                    "(indent=0)",
                    "(indent=4, sort_keys=true, separators=(' ;', ' = '))",
                    "(false, none, none, true)",
                ]
            )
            return f"{self.value()}|tojson{how}"
        if kind == 2:
            case = draw.choice(["upper", "lower", "title", "capitalize"])
            return self.text() + draw.choice(
                [
                    f"|{case}",
                    f".{case}()",
                    ".casefold()",
                    ".swapcase()",
                    f".{case}()|tojson",
                    " is upper",
                    " is lower",
                    ".islower()",
                    ".isupper()",
                ]
            )
        if kind == 3:
            return self.text() + draw.choice(
                [
                    ".splitlines()",
                    ".splitlines(true)",
                    ".splitlines(keepends=false)",
                    ".split()",
                    "|indent(2)",
                    "|indent('> ', true)",
                    "|indent(1, false, true)",
                    "|indent(width=3, first=true, blank=true)",
                    ".strip()",
                    "|trim",
                    "|trim('a ')",
                    ".lstrip()",
                    ".rstrip('\\n')",
                    ".split('\\n')",
                    ".split(none, 1)",
                    ".rsplit('a', 1)",
                ]
            )
        if kind == 4:
            number = (
                self.quoted(draw.choice(NUMBERS))
                if draw.random() < 0.7
                else draw.choice([self.whole, self.real, self.value])()
            )
            return number + draw.choice(
                [
                    "|int",
                    "|int",
                    "|int(7)",
                    "|int('no')",
                    "|int(0, 16)",
                    "|int(base=0)",
                    "|int(-1, 36)",
                    "|int(base=2)",
                    "|float",
                    "|float(2.5)",
                    "|float('no')",
                ]
            )
        if kind == 5:
            number = draw.choice([self.real, self.real, self.whole])()
            digits = draw.choice(
                [
                    "",
                    "",
                    "(1)",
                    "(2)",
                    "(3)",
                    "(-1)",
                    "(-2)",
                    "(precision=1)",
                    "(0, 'floor')",
                    "(0, 'ceil')",
                    "(1, 'ceil')",
                    "(2, 'floor')",
                    "(-1, 'ceil')",
                    "(-1, 'floor')",
                    "(method='floor')",
                    "(1, 'common')",
                    "(1, 'half')",
                    "(-3)",
                    "(15)",
                ]
            )
            return f"{number}|round{digits}" if not number.startswith("-") else f"({number})|round{digits}"
        if kind == 6:
            return draw.choice([self.texts, self.numbers, self.items])() + draw.choice(
                [
                    "|sort",
                    "|sort(reverse=true)",
                    "|sort(case_sensitive=true)",
                    "|unique|list",
                    "|unique(true)|join('|')",
                    "|max",
                    "|min",
                    "|max(true)",
                    "|sum",
                    "|sum(start=1.5)",
                    "|join('-')",
                    "|first",
                    "|last",
                    "|length",
                    "|reverse|list",
                    "|list",
                    "|map('upper')|list",
                    "|map('string')|join",
                    "|select('string')|list",
                    "|reject('odd')|list",
                    "|select|list",
                    "|map('int', 3)|list",
                    "[1:]",
                    "[::-1]",
                    "|map('tojson')|join(',')",
                    "|map('upper')|last",
                    "|map('upper')|length",
                    "|reverse|last",
                    "|select('number')|sum",
                    "|map('upper')|first",
                    "|first is defined",
                    " * 2",
                    "|count",
                ]
            )
        if kind == 7:
            return self.records() + draw.choice(
                [
                    "|map(attribute='r')|list",
                    "|selectattr('n', 'gt', 2)|list",
                    "|rejectattr('n', 'odd')|map(attribute='r')|join(', ')",
                    "|sort(attribute='r')|map(attribute='r')|list",
                    "|map(attribute='in.v')|sum",
                    "|sum(attribute='n')",
                    "|selectattr('r', 'equalto', '')|list|length",
                    "|map(attribute='no', default='d')|join",
                    "|max(attribute='n')",
                    "|join(',', attribute='r')",
                    "|unique(attribute='r')|list|length",
                    "|groupby('r')|list",
                    "|selectattr('r')|list|length",
                    "|map(attribute='r')|map('length')|list",
                ]
            )
        if kind == 8:
            return self.mapping() + draw.choice(
                [
                    ".items()",
                    ".keys()",
                    ".values()",
                    "|dictsort",
                    "|dictsort(reverse=true)",
                    "|dictsort(false, 'value')",
                    "|items|list",
                    ".items()|list",
                    ".get('a')",
                    ".get('q', 3)",
                    "|length",
                    "|list",
                    ".keys()|join(',')",
                    ".keys()|length",
                    ".values()|list",
                    ".items()[0]",
                    "|string",
                    "|first",
                    "|last",
                    "|reverse|list",
                    "['a']",
                    ".a",
                ]
            )
        if kind == 9:
            left, right = draw.choice([self.whole, self.real])(), draw.choice([self.whole, self.real])()
            return f"({left}) {draw.choice(['+', '-', '*', '/', '//', '%', '<', '==', '>='])} ({right})"
        if kind == 10:
            left, right = self.value(), self.value()
            return f"{left} {draw.choice(['==', '!=', '<', '+', '~', 'in', '*', 'and', 'or'])} {right}"
        test = draw.choice(
            [
                "string",
                "number",
                "integer",
                "float",
                "mapping",
                "iterable",
                "sequence",
                "none",
                "boolean",
                "defined",
                "true",
                "odd",
                "divisibleby 3",
                "eq 1",
                "in [1, 'a']",
            ]
        )
        return f"({self.value()}) is {'not ' if draw.random() < 0.2 else ''}{test}"

    def template(self):
        if self.draw.random() < 0.1:
            return (
                f"{{% set g = {self.texts()}|map('upper') %}}{{{{ g|join('+') }}}};"
                f"{{{{ g|join('+') }}}};{{{{ 'y' if g }}}}"
            )
        if self.draw.random() < 0.1:
            return f"{{% for x in {self.expression()} %}}<{{{{ x }}}}>{{% else %}}none{{% endfor %}}"
        return "{{ " + self.expression() + " }}"


def main(count=4000, seed=1):
    warnings.simplefilter("ignore")
    jinja = environment()
    templates = Templates(random.Random(int(seed)))
    rows = {}
    while len(rows) < int(count):
        template = templates.template()
        try:
            text = jinja.from_string(template).render()
        except Exception:  # Jinja's errors, and Python's errors inside of a template
            text = None
        if text is None or " object at 0x" not in text:
            rows[template] = text
    lines = "".join(json.dumps([template, text]) + "\n" for template, text in rows.items())
    sys.stdout.buffer.write(gzip.compress(lines.encode(), 9, mtime=0))


if __name__ == "__main__":
    main(*sys.argv[1:])
