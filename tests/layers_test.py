"""Checks which files may include which others. The rules are those of CONTRIBUTING.md, section "Folders"."""

import functools
import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(sys.argv.pop(1)) if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent

# Folder -> folders of the project whose files it may include.
ALLOWED = {
    "include": set(),
    "kernels": {"kernels"},
    "planner": {"planner", "kernels/contract"},
    "src": {"src", "planner", "kernels", "include"},
    "tools": {"tools", "include", "planner/base"},
    "bindings": {"include"},
}
# Inside a layer: folder -> folders of the same layer whose files it may include. Cycles are not allowed.
FLOORS = {
    "kernels": {
        "contract": set(),
        "lanes": {"contract"},
        "common": {"contract", "lanes"},
        "cpu": {"contract", "lanes", "common"},
        "cuda": {"contract", "lanes", "common"},
        "none": {"contract", "cuda"},
    },
    "planner": {
        "base": set(),
        "graph": {"base"},
        "pack": {"base"},
        "program": {"base", "graph", "pack"},
        "device": {"base", "graph"},
        "plan": {"base", "graph", "program", "device"},
        "picture": {"base", "plan"},
        "search": {"base", "graph", "program", "device", "plan"},
    },
    "src": {
        "base": set(),
        "files": {"base"},
        "models": {"base"},
        "device": {"base", "files"},
        "none": {"device"},
        "execute": {"base", "device"},
        "cpu": {"base", "device", "execute"},
        "cuda": {"base", "device", "execute"},
        "data": {"base", "files", "execute"},
        "weights": {"base", "files", "models", "device", "execute"},
        "trainer": {"base", "files", "data", "device", "execute", "weights"},
        "api": {"base", "files", "data", "device", "models", "weights", "trainer"},
    },
    "tools/stowage": {
        "base": set(),
        "tokenizer": {"base"},
        "chat": {"base", "tokenizer"},
        "flags": {"base"},
        "data": {"base", "tokenizer", "chat", "flags"},
        "plans": {"base", "flags", "data"},
        "evaluation": {"base", "tokenizer", "flags", "data"},
        "run": {"base", "flags", "data", "plans", "evaluation"},
        "commands": {"base", "tokenizer", "chat", "flags", "data", "plans", "evaluation", "run"},
    },
}
MOST_FILES = 25  # of one kind in one folder
# Headers of other projects that a folder may include.
FOREIGN = {
    "include": {"stddef.h", "stdint.h"},
    "kernels": {"immintrin.h", "arm_neon.h"},
    "kernels/cuda": {"cuda_runtime.h"},
    "kernels/lanes": {"cuda_runtime.h"},
    "src": {"xxhash.h"},
    "src/cuda": {"cuda.h", "cuda_runtime_api.h", "nvtx3/nvToolsExt.h"},
}
STANDARD = re.compile(r"^(c?[a-z_0-9]+|(sys/)?[a-z_0-9]+\.h)$")
PLANNER_FORBIDDEN = {
    "fstream",
    "iostream",
    "chrono",
    "ctime",
    "thread",
    "mutex",
    "random",
    "unordered_map",
    "unordered_set",
    "filesystem",
    "cstdlib",
    "csignal",
    "future",
    "syncstream",
    "print",
}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.M)


def files(folder):
    return sorted(p for p in (ROOT / folder).rglob("*") if p.suffix in {".h", ".cpp", ".c", ".cu", ".cuh"})


@functools.cache
def reached(path):
    """The project's files that a file includes, directly and indirectly."""
    direct = {name for bracket, name in INCLUDE.findall(path.read_text()) if bracket == '"'}
    return direct.union(*(reached(ROOT / name) for name in direct))


class Layers(unittest.TestCase):
    def test_the_tree_is_there(self):
        for folder in ALLOWED:
            self.assertTrue(files(folder), folder)

    def test_includes(self):
        for folder, allowed in ALLOWED.items():
            for path in files(folder):
                for bracket, name in INCLUDE.findall(path.read_text()):
                    where = f"{path.relative_to(ROOT)} includes {name}"
                    if bracket == '"':
                        first = next((a for a in allowed if name.startswith(a + "/")), name)
                        neighbour = (path.parent / name).resolve()  # as the compiler resolves it
                        if folder == "tools" and (ROOT / "tools/stowage" / name).is_file():
                            continue
                        # A binding includes files of its language. cgo generates its own file next to them.
                        own = {
                            "tools": ROOT / "tools",
                            "bindings": ROOT.joinpath(*path.relative_to(ROOT).parts[:2]),
                        }.get(folder)
                        if own and (
                            name in ("stowage.h", "stowage/dlpack.h", "_cgo_export.h")
                            or (neighbour.is_file() and neighbour.is_relative_to(own.resolve()))
                        ):
                            continue
                        self.assertIn(first, allowed, where)
                    elif folder == "include":
                        self.assertIn(name, FOREIGN["include"], where)
                    elif folder == "tools":
                        self.assertFalse(name.startswith(("planner/", "kernels/", "src/")), where)
                    else:
                        inner = "/".join(path.relative_to(ROOT).parts[:2])
                        foreign = FOREIGN.get(folder, set()) | FOREIGN.get(inner, set())
                        self.assertTrue(
                            name in foreign or (STANDARD.match(name) and not name.startswith("cuda_")), where
                        )

    def test_floors(self):
        for layer, floors in FLOORS.items():
            reached = {}  # floor -> floors that it reaches through any number of includes
            for floor in floors:
                reach, left = set(), [floor]
                while left:
                    new = floors[left.pop()] - reach
                    reach |= new
                    left += new
                reached[floor] = reach
            prefix = "" if layer == "tools/stowage" else layer + "/"  # how its files are included
            for path in files(layer):
                floor = path.relative_to(ROOT / layer).parts[0]
                if floor == "pch":
                    continue
                self.assertIn(floor, floors, path)
                self.assertNotIn(floor, reached[floor], f"{layer}/{floor} reaches back to itself")
                for name in re.findall(rf'#\s*include "{prefix}([^/"]+)/', path.read_text()):
                    if prefix == "" and name not in floors:
                        continue  # a folder of the library
                    self.assertIn(
                        name,
                        floors[floor] | {floor},
                        f"{path.relative_to(ROOT)} includes a file of {layer}/{name}",
                    )

    def test_folders_are_small(self):
        for layer in ("include", "kernels", "planner", "src", "tools", "bindings", "tests", "docs"):
            counts = {}
            for path in (ROOT / layer).rglob("*.*"):
                if path.suffix not in {".pyc", ".json", ".o"}:
                    key = (str(path.parent.relative_to(ROOT)), path.suffix)
                    counts[key] = counts.get(key, 0) + 1
            for key, count in counts.items():
                self.assertLessEqual(count, MOST_FILES, key)

    def test_precompiled_headers_hold_nothing_of_ours(self):
        # ccache ignores comments. After a comment of a header changed it may return an older precompiled
        # header, in which `#pragma once` then does not recognize the file.
        headers = sorted(ROOT.glob("*/pch/*.h"))
        self.assertTrue(headers)
        for path in headers:
            for bracket, name in INCLUDE.findall(path.read_text()):
                self.assertEqual(bracket, "<", f"{path.relative_to(ROOT)} includes {name}")

    def test_planner_does_not_depend_on_the_table_of_kernels(self):
        # The contract headers that the planner includes change rarely. The kernels' arguments change with
        # every kernel.
        for path in files("planner"):
            self.assertNotIn("kernels/contract/kernels.h", reached(path), path)

    def test_planner_has_no_clock_no_files_and_no_unordered_iteration(self):
        for path in files("planner") + files("kernels/contract"):
            for bracket, name in INCLUDE.findall(path.read_text()):
                self.assertNotIn(name, PLANNER_FORBIDDEN, path)
                if bracket == "<":  # of the system's headers only these two
                    self.assertNotIn(".", name.removesuffix("stdint.h").removesuffix("stddef.h"), path)

    def test_kernels_of_an_instruction_set_use_no_templates_of_the_standard_library(self):
        # The linker could keep the copy of an inline function that was compiled for AVX-512.
        allowed = {
            "assert.h",
            "cassert",
            "stdint.h",
            "string.h",
            "cstddef",
            "cstdint",
            "immintrin.h",
            "arm_neon.h",
            "initializer_list",
            "cuda_runtime.h",
        }
        once = {"dispatch.cpp", "quantile_map.cpp"}  # compiled once, for the baseline instruction set
        for path in files("kernels"):
            for bracket, name in INCLUDE.findall(path.read_text()):
                if bracket == "<" and path.name not in once:
                    self.assertIn(name, allowed, path)

    def test_library_never_prints_exits_or_reads_the_environment(self):
        calls = re.compile(
            r"\b(std::)?(abort|terminate|exit|_exit|_Exit|quick_exit|getenv|secure_getenv|[fd]?printf|"
            r"vf?printf|f?puts|putchar|perror|signal|sigaction)\s*\(|\b(cout|cerr|clog)\b"
        )
        for folder in ("planner", "kernels", "src"):
            for path in files(folder):
                code = re.sub(r"//.*|/\*.*?\*/", "", path.read_text())
                self.assertIsNone(calls.search(code), path)


if __name__ == "__main__":
    unittest.main(verbosity=2)
