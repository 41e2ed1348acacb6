"""Writes stowage/_abi.py from include/stowage.h: python generate_abi.py HEADER > stowage/_abi.py"""

import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from header import Header, broken, split  # noqa: E402

SCALARS = {
    "uint8_t": "c_uint8",
    "uint32_t": "c_uint32",
    "int32_t": "c_int32",
    "uint64_t": "c_uint64",
    "int64_t": "c_int64",
    "size_t": "c_size_t",
    "float": "c_float",
    "double": "c_double",
    "char": "c_char",
    "stw_status": "stw_status",
}


class Writer:
    def __init__(self, header):
        self.header = header

    def type(self, kind):
        kind = re.sub(r"\bconst\b", " ", kind).replace("struct ", " ")
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
            sys.exit(f"no type is known for {kind}")
        return "POINTER(" * depth + base + ")" * depth

    def arguments(self, text):
        """The types of the arguments. An argument that is a function becomes a pointer."""
        text = re.sub(r"void \(\*(\w+)\)\([^()]*\)", r"void *\1", text)
        return [] if text.strip() == "void" else [self.type(split(part)[0]) for part in text.split(",")]

    def write(self):
        lines = [
            '"""The C API for ctypes. Written by generate_abi.py from include/stowage.h: do not edit it."""',
            "from ctypes import (CFUNCTYPE, POINTER, Structure, c_char, c_char_p, c_double, c_float,",
            "                    c_int32, c_int64, c_size_t, c_uint8, c_uint32, c_uint64, c_void_p)",
            "",
            "stw_status = c_int32",
            "",
        ]
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
                lines.append(
                    f"{name} = CFUNCTYPE({', '.join([self.type(returned), *self.arguments(taken)])})"
                )
                return
            fields = self.header.structs[name]
            for _, kind, _ in fields:
                for other in re.findall(r"stw_\w+", kind):
                    if other in needed:
                        emit(other)
            lines.extend(["", "", f"class {name}(Structure):", "    _fields_ = ["])
            lines.extend(
                f'        ("{field}", {self.type(kind)}{f" * {count}" if count else ""}),'
                for field, kind, count in fields
            )
            lines.extend(["    ]", "", ""])

        lines.append("")
        for name in needed:
            emit(name)
        lines.extend(["", "", "FUNCTIONS = {   # name: (type of the result, types of the arguments)"])
        lines.extend(
            f'    "{name}": ({self.type(result)}, [{", ".join(self.arguments(arguments))}]),'
            for name, (result, arguments) in self.header.functions.items()
        )
        lines.append("}")
        lines = [part for line in lines for part in broken(line)]
        return re.sub(r"\n{4,}", "\n\n\n", "\n".join(lines)) + "\n"


if __name__ == "__main__":
    sys.stdout.write(Writer(Header(pathlib.Path(sys.argv[1]).read_text(encoding="utf-8"))).write())
