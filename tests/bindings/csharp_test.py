"""bindings/csharp against the library, by mono, whose cases are in csharp/: csharp_test.py SOURCE_ROOT BUILD_FOLDER LIBRARY"""
import re
import shutil
import sys

from compiled import Binding

csharp = Binding("csharp", sys.argv[1:])
abi = csharp.folder / "Abi.cs"
sources = sorted(csharp.folder.glob("*.cs"))
by_hand = [path for path in sources if path != abi]
csharp.is_made(abi)
# It calls the entries that take a watch in place of these.
csharp.names_all(by_hand, but={"stw_model_export", "stw_plan_frontier", "stw_plan_picture"})
# What the library tells, too: who takes a struct of results reads all of it.
text = "\n".join(path.read_text(encoding="utf-8") for path in by_hand)
readers = {found[1]: set(re.findall(r"\btold\.(\w+)", found[2])) for found in re.finditer(r"\bstw_(\w+) told[,)](.*?)(?=\bstw_\w+ told[,)]|\Z)", text, flags=re.S)}
given = {"error", "batch", "parameter_group", "buffer_lifetime", "buffer_gap", "buffer_constraint"}   # or read elsewhere
for struct, fields in csharp.header.structs.items():
    name = struct[len("stw_"):]
    for field in [] if name in given or name.endswith("_options") else [field for field, _, _ in fields if field not in ("struct_size", "reserved", "ndim")]:
        if field not in readers.get(name, ()):
            csharp.fail(f"csharp does not tell {struct}.{field}")
out = csharp.build / "csharp"
out.mkdir(exist_ok=True)
compiler = ["mcs", "-warn:4", "-warnaserror", "-debug"]
library, tests, train = out / "Stowage.dll", out / "csharp_test.exe", out / "Train.exe"
run = ["mono", "--debug"]
csharp.finish("mcs" if shutil.which("mono") else "mono", {},
              [(out, [*compiler, "-unsafe", "-target:library", f"-doc:{out / 'Stowage.xml'}", f"-out:{library}", *sources]),   # whatever has no remark is an error
               (out, [*compiler, f"-r:{library}", f"-out:{tests}", *sorted((csharp.root / "tests/bindings/csharp").glob("*.cs"))]),
               (out, [*compiler, f"-r:{library}", f"-out:{train}", csharp.folder / "example/Train.cs"]),
               (out, [*run, tests, csharp.root / "tests/api/abi_test.c"]),
               (out, [*run, train, csharp.build / "text.txt", "nano", "3", out])])
