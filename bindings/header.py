"""Reads the declarations of include/stowage.h, for the generate_abi.py of each binding.

The header is regular enough to be read with a few patterns. Text that no pattern matches is an error, so that
nothing is left out silently.
"""

import re
import sys
import textwrap

COLUMNS = 110  # the longest line of a generated file

DECLARATION = re.compile(
    r"\s*(?:"
    r"enum \{(?P<enum>[^}]*)\};"
    r"|typedef struct (?P<opaque>\w+) (?P=opaque);"
    r"|struct (?P<foreign>\w+);"
    r"|typedef struct (?P<struct>\w+) \{(?P<fields>[^}]*)\} (?P=struct);"
    r"|typedef (?P<returned>[\w *]+?)\(\*(?P<callback>\w+)\)\((?P<taken>(?:[^()]|\([^()]*\))*)\);"
    r"|typedef (?P<scalar>\w+) (?P<alias>\w+);"
    r"|STW_API (?P<result>[\w *]+?)(?P<function>\w+)\((?P<arguments>(?:[^()]|\([^()]*\))*)\) STW_NOEXCEPT;"
    r")\s*"
)


class Header:
    def __init__(self, text):
        self.structs, self.callbacks, self.functions, self.constants, self.opaque, self.statuses = (
            {},
            {},
            {},
            {},
            [],
            set(),
        )
        self.docs = {
            found[1]: dict(remarks(found[2]))
            for found in re.finditer(
                r"typedef struct (\w+) \{((?:[^}/]|/\*.*?\*/|/)*)\} \1;", text, flags=re.S
            )
        }
        text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
        body = re.search(r"typedef int32_t stw_status;(.*)#ifdef __cplusplus", text, flags=re.S)[1]
        self.constants = {
            name: int(value) for name, value in re.findall(r"#define (STW_VERSION_\w+) (\d+)", text)
        }
        at = 0
        while at < len(body.rstrip()):
            found = DECLARATION.match(body, at)
            if not found:
                sys.exit(f"not understood: {' '.join(body[at : at + 200].split())}")
            self.take(found)
            at = found.end()

    def take(self, found):
        if found["enum"]:
            is_status = not self.statuses  # the first enum of the header
            for one in found["enum"].split(","):
                constant = re.fullmatch(r"\s*(STW_\w+) = (-?\d+)\s*", one)
                if not constant or re.fullmatch(r"-?0\d+", constant[2]):
                    sys.exit(f"not understood: enum {' '.join(one.split())}")
                self.constants[constant[1]] = int(constant[2])
                if is_status:
                    self.statuses.add(constant[1])
        elif found["opaque"] or found["foreign"]:
            self.opaque.append(found["opaque"] or found["foreign"])
        elif found["struct"]:
            self.structs[found["struct"]] = [
                member for line in found["fields"].split(";") if line.strip() for member in members(line)
            ]
        elif found["callback"]:
            self.callbacks[found["callback"]] = (found["returned"], found["taken"])
        elif found["function"]:
            self.functions[found["function"]] = (found["result"], found["arguments"])
        else:
            sys.exit(f"not understood: {found[0]}")


def remarks(body):
    """The comments of a struct's fields. A comment at the end of a line belongs to the declaration on that
    line. A comment on a line of its own belongs to several fields, and is left out."""
    for code, comment in re.findall(r"((?:[^/]|/(?!\*))*)(?:/\*(.*?)\*/|$)", body, flags=re.S):
        *_, declared, gap = ["", *code.rsplit(";", 1)]
        if comment and declared.strip() and "\n" not in gap:
            for name, _, _ in members(declared.rsplit(";", 1)[-1]):
                yield name, " ".join(comment.split())


def split(declaration):
    """A declaration's type, its name, and the number of elements of an array."""
    found = re.fullmatch(r"\s*(.*?[ *])(\w+)(?:\[(\w+)\])?\s*", " ".join(declaration.split()))
    return found[1].strip(), found[2], found[3]


def members(line):
    """The names, types and lengths of a declaration such as "uint64_t offset, bytes" or "void *data"."""
    first, *others = line.split(",")
    kind, name, count = split(first)
    yield name, kind, count
    for other in others:
        stars, other_name, other_count = re.fullmatch(r"\s*(\**)(\w+)(?:\[(\w+)\])?\s*", other).groups()
        yield other_name, kind.rstrip("* ") + stars, other_count


def broken(line):
    """The lines of a declaration. A long one is broken after commas and goes on indented."""
    lines = [""]
    indent = " " * (len(line) - len(line.lstrip()) + 4)
    for part in re.split(r"(?<=, )", line):
        if lines[-1].strip() and len(lines[-1] + part.rstrip()) > COLUMNS:
            lines.append(indent)
        lines[-1] += part
    return [one.rstrip() for one in lines]


def comment(text, mark):
    """The lines of a comment. No line but the first begins with a sign that would make it a list."""
    glued = re.sub(r" (?=(?:[-+*>#]|\d+[.)]) )", "\0", text)
    lines = textwrap.wrap(
        glued,
        COLUMNS,
        initial_indent=mark,
        subsequent_indent=mark,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [line.replace("\0", " ") for line in lines]
