"""Tests bindings/go with the library, by go test. The cases are in go/stowage_test.go. Usage: go_test.py
SOURCE_ROOT BUILD_FOLDER LIBRARY"""

import os
import re
import shutil
import subprocess
import sys

from compiled import Binding

go = Binding("go", sys.argv[1:])
go.names_all(
    sorted(go.folder.glob("*.[gch]*")),
    but={
        "STW_VERSION_MAJOR",
        "STW_VERSION_MINOR",
        "STW_VERSION_PATCH",
        "STW_MARK_TARGET",
        "STW_MARK_BEGIN",
        "STW_MARK_SECOND",
        "STW_TOKEN_SPECIAL",
        "STW_TOKEN_CONTINUES",
        "STW_STATES_AUTO",
        "STW_STATES_32",
        "STW_STATES_8",  # plain numbers in Go
        # replaced by the variants with a watch
        "stw_model_export",
        "stw_plan_frontier",
        "stw_plan_picture",
    },
)
tests = go.root / "tests/bindings/go"
train = [str(go.build / "text.txt"), "nano", "3", str(go.build)]


def pointers_are_checked():
    """The strictest pointer checks that can be enabled at run time. Go 1.21 and later need a special
    build."""
    try:
        found = re.search(
            r"go1\.(\d+)",
            subprocess.run(["go", "version"], capture_output=True, text=True, check=True).stdout,
        )
    except OSError:
        return {}
    return {"GODEBUG": "cgocheck=2"} if found and int(found[1]) < 21 else {}


# A stowage.pc as an installation has it, for the library in the build folder.
packages = go.build / "go-packages"
packages.mkdir(exist_ok=True)
(packages / "stowage.pc").write_text(
    f"Name: stowage\nDescription: as built\nVersion: 0.1.0\nCflags: -I{go.root / 'include'}\n"
    f"Libs: -L{go.library.parent} -lstowage\n",
    encoding="utf-8",
)
environment = {
    "PKG_CONFIG_PATH": str(packages),
    "GOCACHE": str(go.build / "go-cache"),
    "GOPATH": str(go.build / "go-path"),
    "GOFLAGS": "-mod=mod",
    "GOPROXY": "off",
    "GOTOOLCHAIN": "local",
    "GOWORK": "off",
} | pointers_are_checked()
without = (
    os.environ
    | environment
    | {
        "CGO_CFLAGS": f"-I{go.root / 'include'}",
        "CGO_LDFLAGS": f"-L{go.library.parent}",
        "PKG_CONFIG": "false",
    }
)
if (
    shutil.which("go")
    and subprocess.run(
        ["go", "build", "-tags", "stowage_without_pkg_config", "."], cwd=go.folder, env=without, check=False
    ).returncode
):
    go.fail("the package does not build without pkg-config")
go.finish(
    "go",
    environment,
    [
        (go.folder, ["go", "vet", "./..."]),
        (tests, ["go", "test", "-v", "-count=1", "./..."]),
        (go.folder, ["go", "run", "./example/train", *train]),
    ],
)
