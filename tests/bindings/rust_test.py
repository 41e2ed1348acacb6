"""bindings/rust against the library, by Cargo, whose cases are in rust_test.rs: rust_test.py SOURCE_ROOT BUILD_FOLDER LIBRARY"""
import os
import pathlib
import shutil
import subprocess
import sys

ROOT, BUILD, LIBRARY = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
FOLDER = ROOT / "bindings/rust"
SKIPPED = 77   # as Meson knows it


def run(*arguments):
    environment = os.environ | {"CARGO_TARGET_DIR": str(BUILD / "cargo"), "STOWAGE_LIB_DIR": str(LIBRARY.parent), "LD_LIBRARY_PATH": str(LIBRARY.parent)}
    return subprocess.run(arguments, cwd=FOLDER, env=environment, check=False).returncode


def is_made_of_the_header():
    made = subprocess.run([sys.executable, "-B", FOLDER / "generate_abi.py", ROOT / "include/stowage.h"], capture_output=True, text=True, check=True).stdout
    if made == (FOLDER / "src/abi.rs").read_text(encoding="utf-8"):
        return True
    print("src/abi.rs is not made of stowage.h: run bindings/rust/generate_abi.py")
    return False


def main():
    if not is_made_of_the_header():
        return 1
    if not shutil.which("cargo"):
        print("skipped: there is no cargo")
        return SKIPPED
    # Warnings are errors, those of the examples too.
    os.environ["RUSTFLAGS"] = "-D warnings"
    text = BUILD / "text.txt"
    text.write_text("to be or not to be, that is the question. " * 400, encoding="utf-8")
    return run("cargo", "test", "--offline") or run("cargo", "run", "--offline", "--quiet", "--example", "train", "--", str(text), "nano", "3", str(BUILD))


if __name__ == "__main__":
    sys.exit(main())
