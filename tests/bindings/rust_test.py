"""Tests bindings/rust with the library, by Cargo. The cases are in rust_test.rs. Usage: rust_test.py
SOURCE_ROOT BUILD_FOLDER LIBRARY"""

import sys

from compiled import Binding

rust = Binding("rust", sys.argv[1:])
abi = rust.folder / "src/abi.rs"
rust.is_generated(abi)
rust.names_all(
    [path for path in sorted(rust.folder.glob("src/*.rs")) if path != abi],
    but={
        "STW_OK",
        "STW_VERSION_MAJOR",
        "STW_VERSION_MINOR",
        "STW_VERSION_PATCH",
        # for files of bytes
        "STW_MARK_TARGET",
        "STW_MARK_BEGIN",
        "STW_MARK_SECOND",
        "STW_TOKEN_SPECIAL",
        "STW_TOKEN_CONTINUES",
        # addresses; the host's memory is a trait in Rust
        "stream",
        "memory_user",
        "arena",
        "arena_bytes",
        # replaced by the variants with a watch
        "stw_model_export",
        "stw_plan_frontier",
        "stw_plan_picture",
    },
)
train = [str(rust.build / "text.txt"), "nano", "3", str(rust.build)]
example = ["cargo", "run", "--offline", "--quiet", "--example", "train", "--", *train]
commands = [["cargo", "test", "--offline"], example]
if (rust.library.parent / "libstowage.a").exists():  # with the dependencies that its .pc lists
    commands += [
        [
            "env",
            "-u",
            "STOWAGE_LIB_DIR",
            "STOWAGE_STATIC=1",
            f"PKG_CONFIG_PATH={rust.library.parent.parent / 'meson-uninstalled'}",
            f"CARGO_TARGET_DIR={rust.build / 'cargo-static'}",
            *example,
        ]
    ]
rust.finish(
    "cargo",
    {
        "CARGO_TARGET_DIR": str(rust.build / "cargo"),
        "STOWAGE_LIB_DIR": str(rust.library.parent),
        "RUSTFLAGS": "-D warnings",
    },
    [(rust.folder, command) for command in commands],
)
