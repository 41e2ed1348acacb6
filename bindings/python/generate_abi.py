"""Makes stowage/_abi.py of include/stowage.h: python generate_abi.py HEADER > stowage/_abi.py

The header is regular enough to be read by a few patterns; what none of them takes is an error, so nothing is left out in silence.
"""
import pathlib
import re
import sys

SCALARS = {"uint8_t": "c_uint8", "uint32_t": "c_uint32", "int32_t": "c_int32", "uint64_t": "c_uint64", "int64_t": "c_int64", "size_t": "c_size_t",
           "float": "c_float", "double": "c_double", "char": "c_char", "stw_status": "stw_status"}
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
        self.structs, self.callbacks, self.functions, self.constants, self.opaque = {}, {}, {}, {}, []
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
            for one in found["enum"].split(","):
                constant = re.fullmatch(r"\s*(STW_\w+) = (-?\d+)\s*", one)
                if not constant or re.fullmatch(r"-?0\d+", constant[2]):
                    sys.exit(f"not understood: enum {' '.join(one.split())}")
                self.constants[constant[1]] = int(constant[2])
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


class Writer:
    def __init__(self, header):
        self.header = header

    def type(self, kind):
        kind = kind.replace("const", " ").replace("struct ", " ")
        name, stars = re.fullmatch(r"\s*(\w+)\s*((?:\*\s*)*)", kind).groups()
        depth = stars.count("*")
        if name in self.header.opaque or name == "void":
            base, depth = "c_void_p", depth - 1
            if depth < 0:
                return "None"
        elif name == "char" and depth > 0:
            base, depth = "c_char_p", depth - 1
        elif name in SCALARS or name in self.header.structs or name in self.header.callbacks:
            base = SCALARS.get(name, name)
        else:
            sys.exit(f"no type is known of {kind}")
        return "POINTER(" * depth + base + ")" * depth

    def arguments(self, text):
        """A function inside of a list of arguments is a pointer like any other."""
        text = re.sub(r"void \(\*(\w+)\)\([^()]*\)", r"void *\1", text)
        return [] if text.strip() == "void" else [self.type(split(part)[0]) for part in text.split(",")]

    def write(self):
        lines = ['"""The C API as ctypes sees it: made by generate_abi.py of include/stowage.h, not by hand."""', "from ctypes import (CFUNCTYPE, POINTER, Structure, c_char, c_char_p, c_double, c_float, c_int32, c_int64,",
                 "                    c_size_t, c_uint8, c_uint32, c_uint64, c_void_p)", "", "stw_status = c_int32", ""]
        lines += [f"{name} = {value}" for name, value in self.header.constants.items()]
        needed = dict.fromkeys([*self.header.callbacks, *self.header.structs])
        done = set()

        def emit(name):
            if name in done:
                return
            done.add(name)
            if name in self.header.callbacks:
                returned, taken = self.header.callbacks[name]
                for other in re.findall(r"stw_\w+", taken):
                    if other in needed:
                        emit(other)
                lines.append(f"{name} = CFUNCTYPE({', '.join([self.type(returned), *self.arguments(taken)])})")
                return
            fields = self.header.structs[name]
            for _, kind, _ in fields:
                for other in re.findall(r"stw_\w+", kind):
                    if other in needed:
                        emit(other)
            lines.extend(["", "", f"class {name}(Structure):", "    _fields_ = ["])
            lines.extend(f'        ("{field}", {self.type(kind)}{f" * {count}" if count else ""}),' for field, kind, count in fields)
            lines.extend(["    ]", "", ""])

        lines.append("")
        for name in needed:
            emit(name)
        lines.extend(["", "", "FUNCTIONS = {   # name: what it returns, what it takes"])
        lines.extend(f'    "{name}": ({self.type(result)}, [{", ".join(self.arguments(arguments))}]),' for name, (result, arguments) in self.header.functions.items())
        lines.append("}")
        return re.sub(r"\n{4,}", "\n\n\n", "\n".join(lines)) + "\n"


if __name__ == "__main__":
    sys.stdout.write(Writer(Header(pathlib.Path(sys.argv[1]).read_text(encoding="utf-8"))).write())
