"""Writes src/abi.rs from include/stowage.h: python generate_abi.py HEADER > src/abi.rs"""

import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from header import Header, broken, comment, split  # noqa: E402

SCALARS = {
    "uint8_t": "u8",
    "uint32_t": "u32",
    "int32_t": "i32",
    "uint64_t": "u64",
    "int64_t": "i64",
    "size_t": "usize",
    "float": "f32",
    "double": "f64",
    "char": "c_char",
    "void": "c_void",
    "stw_status": "stw_status",
}
KEYWORDS = {
    "type",
    "in",
    "ref",
    "move",
    "match",
    "loop",
    "use",
    "mod",
    "impl",
    "fn",
    "box",
    "final",
    "where",
    "yield",
}
FUNCTION = re.compile(r"void \(\*(\w+)\)\(([^()]*)\)")


def name_of(field):
    return f"r#{field}" if field in KEYWORDS else field


def documented(text):
    """Escapes the characters that rustdoc would take for links or marks."""
    return re.sub(r"([\[\]<>*_`|])", r"\\\1", text)


class Writer:
    def __init__(self, header):
        self.header = header

    def type(self, kind):
        """The Rust type of a C type. A pointer is `*const` if it points to a constant. An outermost `const`
        is ignored."""
        words = re.findall(r"\w+|\*", kind.replace("struct ", " "))
        base = next(word for word in words if word not in ("const", "*"))
        if base in self.header.callbacks or base in self.header.opaque or base in self.header.structs:
            rust = base
        elif base in SCALARS:
            rust = SCALARS[base]
        else:
            sys.exit(f"no type is known for {kind}")
        constant = words[0] == "const"
        for word in words[words.index(base) + 1 :]:
            if word == "const":
                constant = True
            else:
                rust = f"*{'const' if constant else 'mut'} {rust}"
                constant = False
        return rust

    def arguments(self, text):
        """`name: type` of each argument, including arguments that are functions."""
        functions = {name: taken for name, taken in FUNCTION.findall(text)}
        taken = []
        for part in FUNCTION.sub(r"void *\1", text).split(","):
            if part.strip() == "void":
                continue
            kind, name, _ = split(part)
            taken.append(
                f"{name_of(name)}: "
                f"{self.function(functions[name], 'void') if name in functions else self.type(kind)}"
            )
        return taken

    def function(self, taken, returned):
        result = "" if returned.strip() == "void" else f" -> {self.type(returned)}"
        return f'Option<unsafe extern "C" fn({", ".join(self.arguments(taken))}){result}>'

    def field(self, kind, count):
        if count and kind == "char":
            return f"Text<{count}>"
        return f"[{self.type(kind)}; {count}]" if count else self.type(kind)

    def write(self):
        header = self.header
        lines = [
            "//! The C API for Rust. Written by generate_abi.py from include/stowage.h: do not edit it.",
            "#![allow(non_camel_case_types)]",
            "use crate::text::Text;",
            "use std::os::raw::{c_char, c_void};",
            "",
            "pub type stw_status = i32;",
        ]
        lines += [
            f"pub const {name}: {'stw_status' if name in header.statuses else 'u32'} = {value};"
            for name, value in header.constants.items()
        ]
        for name in header.opaque:
            if name == "DLManagedTensorVersioned":
                lines += ["", f"pub use crate::dlpack::{name};"]
            else:
                lines += [
                    "",
                    "#[repr(C)]",
                    f"pub struct {name} {{",
                    "    _private: [u8; 0],",
                    "    _shared_only_as_the_header_says:",
                    "        std::marker::PhantomData<(*mut u8, std::marker::PhantomPinned)>,",
                    "}",
                ]
        for name, (returned, taken) in header.callbacks.items():
            lines += ["", f"pub type {name} = {self.function(taken, returned)};"]
        for name, fields in header.structs.items():
            derived = "Clone, Copy" + (
                ""
                if any(kind.strip("* ") in header.callbacks for _, kind, _ in fields)
                else ", Debug, PartialEq"
            )
            lines += ["", "#[repr(C)]", f"#[derive({derived})]", f"pub struct {name} {{"]
            for field, kind, count in fields:
                remark = header.docs[name].get(field)
                lines += [
                    *(comment(documented(remark), "    /// ") if remark else []),
                    f"    pub {name_of(field)}: {self.field(kind, count)},",
                ]
            size = (
                "made.struct_size = std::mem::size_of::<Self>() as u32; "
                if fields and fields[0][0] == "struct_size"
                else ""
            )
            lines += [
                "}",
                "",
                f"impl Default for {name} {{",
                "    /// Zero, but for its size.",
                "    fn default() -> Self {",
                f"        let {'mut ' if size else ''}made: Self = unsafe {{ std::mem::zeroed() }};",
                *([f"        {size.strip()}"] if size else []),
                "        made",
                "    }",
                "}",
            ]
        lines += ["", 'extern "C" {']
        for name, (result, taken) in header.functions.items():
            returned = "" if result.strip() == "void" else f" -> {self.type(result)}"
            lines += [f"    pub fn {name}({', '.join(self.arguments(taken))}){returned};"]
        lines += [
            "}",
            "",
            "/// Struct, field (none: the whole struct), offset or size: as this compiler has them.",
            "#[doc(hidden)]",
            "pub fn layout() -> Vec<(&'static str, &'static str, usize)> {",
            "    let mut found = Vec::new();",
            "    macro_rules! of {",
            "        ($kind:ident $(, $field:ident)*) => {",
            '            found.push((stringify!($kind), "", std::mem::size_of::<$kind>()));',
            "            let _at = std::mem::MaybeUninit::<$kind>::uninit();",
            "            $(",
            "                let member = unsafe { std::ptr::addr_of!((*_at.as_ptr()).$field) } as usize;",
            "                let offset = member - _at.as_ptr() as usize;",
            "                found.push((stringify!($kind), stringify!($field), offset));",
            "            )*",
            "        };",
            "    }",
        ]
        lines += [
            f"    of!({name}, {', '.join(name_of(field) for field, _, _ in fields)});"
            for name, fields in header.structs.items()
        ]
        lines += ["    found", "}"]
        return "\n".join(part for line in lines for part in broken(line)) + "\n"


if __name__ == "__main__":
    sys.stdout.write(Writer(Header(pathlib.Path(sys.argv[1]).read_text(encoding="utf-8"))).write())
