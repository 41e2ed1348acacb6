"""Fuzzes each program for SECONDS, one after the other: `run.py BUILD_FOLDER SECONDS [TARGET...]`. Starts
from the inputs of seeds.py and tests/fuzz/inputs. Prints each input that made a program fail and keeps it
in BUILD_FOLDER/failed. Prints how many programs succeeded. The exit code is 1 if one failed."""

import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent


def fuzz(program, seconds, failed):
    name = program.name.removeprefix("fuzz_")
    with tempfile.TemporaryDirectory() as folder:
        corpus, words = pathlib.Path(folder, name), HERE / f"{name}.dict"
        subprocess.run([sys.executable, "-B", HERE / "seeds.py", name, corpus], check=True)
        made = corpus.with_name(name + ".dict")
        dictionary = made if made.exists() else words
        command = [
            program.absolute(),
            f"-max_total_time={seconds}",
            "-timeout=20",
            "-rss_limit_mb=2048",
            "-print_final_stats=0",
            "-verbosity=0",
            f"-artifact_prefix={failed.absolute()}/{name}-",
            *([f"-dict={dictionary}"] if dictionary.exists() else []),
            corpus,
        ]
        known = HERE / "inputs" / name
        done = subprocess.run(
            [*command, *([known] if known.is_dir() else [])],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
            env=os.environ | {"TMPDIR": folder},
        )
        if done.returncode:
            print(done.stdout.decode("utf-8", "replace")[-4000:])
        print(f"{name}: {'failed' if done.returncode else 'nothing found'} in {seconds} s", flush=True)
        return done.returncode == 0


def main():
    build, seconds, chosen = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3:]
    programs = sorted(
        path
        for path in (build / "tests/fuzz").glob("fuzz_*")
        if path.is_file() and os.access(path, os.X_OK) and not path.suffix
    )
    programs = [path for path in programs if not chosen or path.name.removeprefix("fuzz_") in chosen]
    if not programs:
        sys.exit(f"{build}: expected programs of tests/fuzz, found none; -Dfuzz=true builds them")
    failed = build / "failed"
    failed.mkdir(exist_ok=True)
    went_well = sum(fuzz(program, seconds, failed) for program in programs)
    print(f"{went_well} of {len(programs)} programs found nothing")
    sys.exit(went_well < len(programs))


main()
