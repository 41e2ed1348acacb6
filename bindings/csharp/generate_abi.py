"""Writes Abi.cs from include/stowage.h: python generate_abi.py HEADER > Abi.cs"""

import pathlib
import re
import sys
from xml.sax.saxutils import escape

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from header import COLUMNS, Header, broken, comment, split  # noqa: E402

SCALARS = {
    "uint8_t": "byte",
    "uint32_t": "uint",
    "int32_t": "int",
    "uint64_t": "ulong",
    "int64_t": "long",
    "size_t": "UIntPtr",
    "float": "float",
    "double": "double",
    "char": "byte",
    "void": "void",
    "stw_status": "int",
}
KEYWORDS = {"base", "event", "fixed", "in", "lock", "object", "operator", "out", "params", "ref", "string"}
FUNCTION = re.compile(r"void \(\*(\w+)\)\(([^()]*)\)")


def name_of(field):
    return f"@{field}" if field in KEYWORDS else field


class Writer:
    def __init__(self, header):
        self.header = header

    def type(self, kind):
        """The C# type of a C type. A callback is the address of a delegate (IntPtr). `const` is dropped."""
        base, *stars = [
            word for word in re.findall(r"\w+|\*", kind.replace("struct ", " ")) if word != "const"
        ]
        if base in self.header.callbacks:
            return "IntPtr"
        if base not in SCALARS and base not in self.header.opaque and base not in self.header.structs:
            sys.exit(f"no type is known for {kind}")
        return SCALARS.get(base, base) + "".join(stars)

    def arguments(self, text):
        """`type name` of each argument. An argument that is a function is an address."""
        functions = {name for name, _ in FUNCTION.findall(text)}
        for part in FUNCTION.sub(r"void *\1", text).split(","):
            if part.strip() != "void":
                kind, name, _ = split(part)
                yield f"{'IntPtr' if name in functions else self.type(kind)} {name_of(name)}"

    def field(self, field, kind, count):
        return (
            f"fixed {self.type(kind)} {name_of(field)}[{count}]"
            if count
            else f"{self.type(kind)} {name_of(field)}"
        )

    def summary(self, text):
        line = f"        /// <summary>{text}</summary>"
        if len(line) <= COLUMNS:
            return [line]
        return ["        /// <summary>", *comment(text, "        /// "), "        /// </summary>"]

    def struct(self, name, fields):
        yield from ["", "    [StructLayout(LayoutKind.Sequential)]", f"    public struct {name}", "    {"]
        for field, kind, count in fields:
            summary = self.header.docs[name].get(field)
            yield from self.summary(escape(summary)) if summary else []
            yield f"        public {self.field(field, kind, count)};"
        if fields[0][0] == "struct_size":
            yield from [
                "",
                "        /// <summary>Zero, but for its size.</summary>",
                f"        public static {name} Sized()",
                "        {",
                f"            return new {name} {{ struct_size = (uint)sizeof({name}) }};",
                "        }",
            ]
        yield "    }"

    def write(self):
        header = self.header
        lines = [
            "// The C API for C#. Written by generate_abi.py from include/stowage.h: do not edit it.",
            "using System;",
            "using System.Runtime.InteropServices;",
            "",
            "namespace Stowage",
            "{",
            "internal static unsafe class Abi",
            "{",
            '    public const string Library = "stowage";   // libstowage.so, stowage.dll, libstowage.dylib',
        ]
        lines += [
            f"    public const {'int' if name in header.statuses else 'uint'} {name} = {value};"
            for name, value in header.constants.items()
        ]
        lines += [
            line
            for name in header.opaque
            if name != "DLManagedTensorVersioned"
            for line in ("", f"    public struct {name}", "    {", "    }")
        ]
        for name, (returned, taken) in header.callbacks.items():
            lines += [
                "",
                "    [UnmanagedFunctionPointer(CallingConvention.Cdecl)]",
                f"    public delegate {self.type(returned)} {name}({', '.join(self.arguments(taken))});",
            ]
        for name, fields in header.structs.items():
            lines += self.struct(name, fields)
        for name, (result, taken) in header.functions.items():
            lines += [
                "",
                "    [DllImport(Library, CallingConvention = CallingConvention.Cdecl, ExactSpelling = true)]",
                f"    public static extern {self.type(result)} {name}({', '.join(self.arguments(taken))});",
            ]
        return "\n".join(part for line in [*lines, "}", "}"] for part in broken(line)) + "\n"


if __name__ == "__main__":
    sys.stdout.write(Writer(Header(pathlib.Path(sys.argv[1]).read_text(encoding="utf-8"))).write())
