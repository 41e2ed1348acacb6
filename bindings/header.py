"""What include/stowage.h declares, for those who write it down in another language: generate_abi.py of each.

The header is regular enough to be read by a few patterns; what none of them takes is an error, so nothing is left out in silence.
"""
import re
import sys

DECLARATION = re.compile(
    r"\s*(?:"
    r"enum \{(?P<enum>[^}]*)\};"
    r"|typedef struct (?P<opaque>\w+) (?P=opaque);"
    r"|struct (?P<foreign>\w+);"
    r"|typedef struct (?P<struct>\w+) \{(?P<fields>[^}]*)\} (?P=struct);"
    r"|typedef (?P<returned>[\w *]+?)\(\*(?P<callback>\w+)\)\((?P<taken>(?:[^()]|\([^()]*\))*)\);"
    r"|typedef (?P<scalar>\w+) (?P<alias>\w+);"
    r"|STW_API (?P<result>[\w *]+?)(?P<function>\w+)\((?P<arguments>(?:[^()]|\([^()]*\))*)\) STW_NOEXCEPT;"
    r")\s*")


class Header:
    def __init__(self, text):
        self.structs, self.callbacks, self.functions, self.constants, self.opaque, self.statuses = {}, {}, {}, {}, [], set()
        self.docs = {found[1]: dict(remarks(found[2])) for found in re.finditer(r"typedef struct (\w+) \{((?:[^}/]|/\*.*?\*/|/)*)\} \1;", text, flags=re.S)}
        text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
        body = re.search(r"typedef int32_t stw_status;(.*)#ifdef __cplusplus", text, flags=re.S)[1]
        self.constants = {name: int(value) for name, value in re.findall(r"#define (STW_VERSION_\w+) (\d+)", text)}
        at = 0
        while at < len(body.rstrip()):
            found = DECLARATION.match(body, at)
            if not found:
                sys.exit(f"not understood: {' '.join(body[at:at + 200].split())}")
            self.take(found)
            at = found.end()

    def take(self, found):
        if found["enum"]:
            is_status = not self.statuses   # which come first
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
            self.structs[found["struct"]] = [member for line in found["fields"].split(";") if line.strip() for member in members(line)]
        elif found["callback"]:
            self.callbacks[found["callback"]] = (found["returned"], found["taken"])
        elif found["function"]:
            self.functions[found["function"]] = (found["result"], found["arguments"])
        else:
            sys.exit(f"not understood: {found[0]}")


def remarks(body):
    """What a struct says of its fields: a comment is of the declaration whose line it ends; one on a line of its own is of several."""
    for code, comment in re.findall(r"((?:[^/]|/(?!\*))*)(?:/\*(.*?)\*/|$)", body, flags=re.S):
        *_, declared, gap = ["", *code.rsplit(";", 1)]
        if comment and declared.strip() and "\n" not in gap:
            for name, _, _ in members(declared.rsplit(";", 1)[-1]):
                yield name, " ".join(comment.split())


def split(declaration):
    """The type in front of a declaration's name, the name, and the elements of an array."""
    found = re.fullmatch(r"\s*(.*?[ *])(\w+)(?:\[(\w+)\])?\s*", " ".join(declaration.split()))
    return found[1].strip(), found[2], found[3]


def members(line):
    """Of "uint64_t offset, bytes" or "void *data": names, types and lengths."""
    first, *others = line.split(",")
    kind, name, count = split(first)
    yield name, kind, count
    for other in others:
        stars, other_name, other_count = re.fullmatch(r"\s*(\**)(\w+)(?:\[(\w+)\])?\s*", other).groups()
        yield other_name, kind.rstrip("* ") + stars, other_count
