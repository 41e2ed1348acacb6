"""Checks that functions are short: CONTRIBUTING.md, section "Style", has the limit."""

import bisect
import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(sys.argv.pop(1)) if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent

MOST_LINES = 80  # from the first line of a definition (its template line, if any) to its closing brace
FOLDERS = ("planner", "kernels", "src", "tools", "bindings/cpp")
# Text that is not code, or that the compiler reads as one word: comments, raw strings, strings, characters,
# directives. A digit before an apostrophe separates thousands.
NO_CODE = re.compile(
    r"//(?:\\\n|[^\n])*"
    r"|/\*.*?\*/"
    r'|R"(?P<mark>[^(\s]*)\(.*?\)(?P=mark)"'
    r'|"(?:\\.|[^"\\\n])*"'
    r"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'"
    r"|^[ \t]*#(?:\\\n|[^\n])*",
    re.S | re.M,
)
SCOPE = re.compile(r"\b(namespace|class|struct|union|enum|extern)\b")


def code_of(text):
    """Replaces comments, strings and directives by blanks. Lines keep their numbers."""

    def blank(found):
        blanks = re.sub(r"[^\n]", " ", found.group())
        return blanks if found.group().lstrip().startswith(("/", "#")) else "_" + blanks[1:]

    return NO_CODE.sub(blank, text)


def kind_of(head):
    """The meaning of an opening brace after this text, outside of functions: a scope, a function, or
    values."""
    words = re.sub(r"<[^<>]*>", "", re.sub(r"<[^<>]*>", "", head))  # without template lists
    if SCOPE.search(re.sub(r"\(.*", "", words, flags=re.S)) and not re.search(
        r"\)\s*(const|noexcept|override|\s)*$", words
    ):
        return "values" if words.rstrip().endswith("=") else "scope"
    if "(" not in words or words.rstrip().endswith(("=", ",", "(", "return")):
        return "values"
    return "function"


def functions(text):
    """(first line, last line, first words) of each function that is defined outside of functions."""
    code = code_of(text)
    ends = [found.start() for found in re.finditer("\n", code)]
    line = lambda place: bisect.bisect_left(ends, place) + 1
    open_braces = []  # (kind, start of the head)
    start, round_depth = 0, 0
    found = []
    for place, sign in ((m.start(), m.group()) for m in re.finditer(r"[{}();]", code)):
        inside = open_braces and open_braces[-1][0] != "scope"
        if sign in "()":
            round_depth += 0 if inside else (1 if sign == "(" else -1)
        elif sign == "{":
            kind = "inner" if inside or round_depth else kind_of(code[start:place])
            open_braces.append((kind, start))
            if kind == "scope":
                start = place + 1
        elif sign == "}":
            kind, head = open_braces.pop()
            after = code[place + 1 :].lstrip()[:1] if kind == "function" else ""
            # Before a comma or another brace, it is the initializer of a member before the body.
            if kind == "function" and after not in (",", "{"):
                words = re.sub(r"^(\s|(public|private|protected):)*", "", code[head:place])
                first = code.index(words, head) if words else head
                found.append((line(first), line(place), " ".join(words.split())[:200]))
                start = place + 1
            elif kind == "scope":
                start = place + 1
        elif not inside and not round_depth:
            start = place + 1
    assert not open_braces and not round_depth, "braces do not match"
    return found


def name_of(words):
    """The name of a function from the first words of its definition."""
    return re.findall(r"[~\w]+(?=\s*\()", re.sub(r"\b__\w+\([^)]*\)", "", words))[0]


class FunctionLength(unittest.TestCase):
    def test_functions_are_short(self):
        longer, count = [], 0
        for folder in FOLDERS:
            for path in sorted((ROOT / folder).rglob("*")):
                if path.suffix not in {".h", ".hpp", ".cpp", ".cu"}:
                    continue
                for first, last, words in functions(path.read_text(encoding="utf-8")):
                    count += 1
                    if last - first + 1 > MOST_LINES:
                        place = path.relative_to(ROOT)
                        longer.append(f"{place}:{first}: {name_of(words)} has {last - first + 1} lines")
        self.assertGreater(count, 4000)
        self.assertEqual(
            longer, [], f"functions of more than {MOST_LINES} lines: divide them into named phases"
        )

    def test_functions_are_found(self):
        body = "\n".join(["  f();"] * 90)
        text = (
            "namespace a {\nstruct B {\n  int c() const { return 1; }\n};\n"
            "template <class T>\nstatic __global__ void __launch_bounds__(T::threads, 1)\n"
            "    kernel(Args args) {\n"
            + body
            + "\n}\nconstexpr Row rows[] = {\n"
            + "\n".join(["    {1, 2},"] * 90)
            + '\n};\nconst char* text = R"(\n'
            + "{\n" * 90
            + ')";\n}  // namespace a\n'
        )
        found = functions(text)
        self.assertEqual([name_of(words) for _, _, words in found], ["c", "kernel"])
        self.assertEqual([last - first + 1 for first, last, _ in found], [1, 94])


if __name__ == "__main__":
    unittest.main()
