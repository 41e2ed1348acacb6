"""Tests bindings/csharp with the library on mono. The cases are in csharp/. Usage: csharp_test.py
SOURCE_ROOT BUILD_FOLDER LIBRARY"""

import re
import shutil
import sys

from compiled import Binding

csharp = Binding("csharp", sys.argv[1:])
abi = csharp.folder / "Abi.cs"
sources = sorted(csharp.folder.glob("*.cs"))
by_hand = [path for path in sources if path != abi]
csharp.is_generated(abi)
# The binding calls the variants of these entries that take a watch.
csharp.names_all(by_hand, but={"stw_model_export", "stw_plan_frontier", "stw_plan_picture"})
# Code that reads a struct of results must read all of its fields.
text = "\n".join(path.read_text(encoding="utf-8") for path in by_hand)
readers = {
    found[1]: set(re.findall(r"\bnative\.(\w+)", found[2]))
    for found in re.finditer(r"\bstw_(\w+) native[,)](.*?)(?=\bstw_\w+ native[,)]|\Z)", text, flags=re.S)
}
# structs that the binding writes, or reads in other ways
given = {"error", "batch", "parameter_group", "buffer_lifetime", "buffer_gap", "buffer_constraint"}
for struct, fields in csharp.header.structs.items():
    name = struct[len("stw_") :]
    for field in (
        []
        if name in given or name.endswith("_options")
        else [
            field
            for field, _, _ in fields
            if field not in ("struct_size", "reserved", "reserved_end", "ndim")
        ]
    ):
        if field not in readers.get(name, ()):
            csharp.fail(f"csharp does not tell {struct}.{field}")
out = csharp.build / "csharp"
out.mkdir(exist_ok=True)
compiler = ["mcs", "-warn:4", "-warnaserror", "-debug"]
library, tests, train = out / "Stowage.dll", out / "csharp_test.exe", out / "Train.exe"
run = ["mono", "--debug"]
csharp.finish(
    "mcs" if shutil.which("mono") else "mono",
    {},
    # a missing documentation comment is an error
    [
        (
            out,
            [
                *compiler,
                "-unsafe",
                "-target:library",
                f"-doc:{out / 'Stowage.xml'}",
                f"-out:{library}",
                *sources,
            ],
        ),
        (
            out,
            [
                *compiler,
                f"-r:{library}",
                f"-out:{tests}",
                *sorted((csharp.root / "tests/bindings/csharp").glob("*.cs")),
            ],
        ),
        (out, [*compiler, f"-r:{library}", f"-out:{train}", csharp.folder / "example/Train.cs"]),
        (out, [*run, tests, csharp.root / "tests/api/abi_test.c"]),
        (out, [*run, train, csharp.build / "text.txt", "nano", "3", out]),
    ],
)
