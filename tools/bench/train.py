"""Compares training: the stowage command and the PyTorch peer, alternately, in one run on one machine.

Only the ratio of neighbouring runs counts: the machine's speed may drift between rounds, and both sides
see the same drift. Standard library only; --torch-python names an interpreter with torch."""

import argparse
import json
import pathlib
import random
import shlex
import statistics
import subprocess
import sys
import tempfile

DEFAULTS = {"nano": (12, 64, 60), "gpt2": (4, 256, 12), "smollm-135m": (4, 256, 8)}  # batch, seq, steps
SKIPPED_STEPS = 5


class Failed(Exception):
    pass


def arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--stowage", required=True, help="command under test, such as build/tools/stowage")
    parser.add_argument("--torch-python", default=sys.executable, help="Python that has torch")
    parser.add_argument("--model", choices=DEFAULTS, default="nano")
    parser.add_argument(
        "--config",
        help="folder with the config.json of any language model that both sides know, in place of --model",
    )
    parser.add_argument("--batch", type=int)
    parser.add_argument("--seq", type=int)
    parser.add_argument("--steps", type=int, help=f"timed steps, after {SKIPPED_STEPS} that are skipped")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--lora", type=int, default=0, help="train low-rank adapters of this rank; the peer needs PEFT"
    )
    parser.add_argument(
        "--quantize",
        choices=["none", "nf4"],
        default="none",
        help="what lies below them; the peer needs bitsandbytes",
    )
    parser.add_argument(
        "--data", help="text to train on; random words when absent (the speed does not depend on it)"
    )
    parser.add_argument("--stowage-args", default="", help="further arguments of the command, as one string")
    parser.add_argument(
        "--torch-args", default="", help="further arguments for peer_torch.py; skips the probe"
    )
    parser.add_argument("--timeout", type=float, default=900.0, help="seconds for each run")
    options = parser.parse_args()
    for name, default in zip(
        ("batch", "seq", "steps"), (4, 256, 8) if options.config else DEFAULTS[options.model]
    ):
        if getattr(options, name) is None:
            setattr(options, name, default)
    if options.quantize != "none" and (options.config or not options.lora or options.model != "smollm-135m"):
        parser.error("--quantize needs --lora and --model smollm-135m")
    if min(options.batch, options.seq, options.steps, options.threads, options.rounds) < 1:
        parser.error("batch, seq, steps, threads and rounds must be at least 1")
    return options


def execute(command, timeout):
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=timeout)
    except subprocess.TimeoutExpired:
        raise Failed(f"no end within {timeout:.0f} s: {shlex.join(command)}")
    except OSError as error:
        raise Failed(f"cannot start {command[0]}: {error.strerror}")
    if done.returncode != 0:
        tail = "\n  ".join((done.stderr or done.stdout).strip().splitlines()[-8:])
        raise Failed(f"exit status {done.returncode}: {shlex.join(command)}\n  {tail}")
    return done.stdout


def write_text(path, size):
    words = ["".join(random.Random(word).choices("etaoinshrdlu", k=2 + word % 7)) for word in range(500)]
    source = random.Random(1)
    path.write_text(" ".join(source.choices(words, k=size // 5)))


def step_records(path):
    """The lines that describe a step. A line truncated by a crash is left out."""
    try:
        lines = path.read_text().splitlines()
    except OSError as error:
        raise Failed(f"no metrics: {path}: {error.strerror}")
    for line in lines:
        try:
            record = json.loads(line)
        except ValueError:
            continue
        if isinstance(record, dict) and ("tokens_per_second" in record or "seconds" in record):
            yield record


def train(options, model, steps, data, out, more=()):
    execute(
        shlex.split(options.stowage)
        + [
            "train",
            "--model",
            str(model),
            "--data",
            str(data),
            "--batch",
            str(options.batch),
            "--seq",
            str(options.seq),
            "--steps",
            str(steps),
            "--threads",
            str(options.threads),
            "--device",
            "cpu",
            "--tokenizer",
            "byte",
            "--out",
            str(out),
            *more,
        ]
        + shlex.split(options.stowage_args),
        options.timeout,
    )


def stowage_speed(options, data, out):
    if options.lora:  # adapters need a folder with weights
        base = out.parent / "base"
        if not base.exists():
            train(options, options.config or options.model, 1, data, base, ["--from-scratch"])
        train(
            options,
            base,
            options.steps + SKIPPED_STEPS,
            data,
            out,
            ["--lora", str(options.lora), "--quantize", options.quantize],
        )
    else:
        train(
            options,
            options.config or options.model,
            options.steps + SKIPPED_STEPS,
            data,
            out,
            ["--from-scratch"],
        )
    speeds = []
    for record in list(step_records(out / "metrics.jsonl"))[SKIPPED_STEPS:]:
        speed = record.get("tokens_per_second")
        if not isinstance(speed, (int, float)) and record.get("seconds"):
            speed = options.batch * options.seq / record["seconds"]
        if isinstance(speed, (int, float)) and speed > 0:
            speeds.append(speed)
    if len(speeds) < options.steps // 2 + 1:
        raise Failed(f"only {len(speeds)} of {options.steps} timed steps in {out / 'metrics.jsonl'}")
    return statistics.median(speeds)


def torch_result(options, extra):
    peer = pathlib.Path(__file__).with_name("peer_torch.py")
    model = ["--config", options.config] if options.config else ["--model", options.model]
    command = [
        options.torch_python,
        str(peer),
        *model,
        "--batch",
        str(options.batch),
        "--seq",
        str(options.seq),
        "--steps",
        str(options.steps),
        "--warmup",
        str(SKIPPED_STEPS),
        "--threads",
        str(options.threads),
        "--lora",
        str(options.lora),
        "--quantize",
        options.quantize,
    ] + extra
    lines = [line for line in execute(command, options.timeout).splitlines() if line.startswith("{")]
    if not lines:
        raise Failed(f"no line of JSON: {shlex.join(command)}")
    return json.loads(lines[-1])


def fastest_torch(options):
    """Finds the arguments with which the peer is fastest on this machine, among both implementations and all
    modes. Runs once, and does not count as a measurement."""
    if options.torch_args:
        return shlex.split(options.torch_args)
    results = []
    for implementation in (
        ("transformers",)
        if options.lora or options.config or options.model == "smollm-135m"
        else ("plain", "transformers")
    ):
        try:
            results.append(torch_result(options, ["--mode", "best", "--implementation", implementation]))
        except Failed as error:
            print(f"probe of {implementation}: {error}", file=sys.stderr)
    if not results:
        raise Failed("the peer does not run; --torch-python must name an interpreter with torch")
    best = max(results, key=lambda result: result["tokens_per_second"])
    print(f"peer: torch {best['version']}, {best['implementation']}, {best['mode']}, AdamW {best['adamw']}")
    return ["--mode", best["mode"], "--adamw", best["adamw"], "--implementation", best["implementation"]]


def compare(options, directory):
    data = pathlib.Path(options.data) if options.data else directory / "data.txt"
    if not options.data:
        write_text(data, max(1 << 20, 8 * options.batch * options.seq))
    extra = fastest_torch(options)
    print(
        f"{options.config or options.model}: batch {options.batch}, seq {options.seq}, "
        f"{options.threads} threads, median of {options.steps} steps, tokens/s"
    )
    print(f"{'round':>6} {'stowage':>12} {'torch':>12} {'ratio':>8}")
    ratios, ours, theirs = [], [], []
    for number in range(1, options.rounds + 1):
        try:
            # The order alternates, so that a drift in one direction does not favour one side.
            sides = {
                "stowage": lambda: stowage_speed(options, data, directory / f"out{number}"),
                "torch": lambda: torch_result(options, extra)["tokens_per_second"],
            }
            order = ("stowage", "torch") if number % 2 else ("torch", "stowage")
            speed = {side: sides[side]() for side in order}
        except Failed as error:
            print(f"{number:>6} failed: {error}")
            continue
        ours.append(speed["stowage"])
        theirs.append(speed["torch"])
        ratios.append(speed["stowage"] / speed["torch"])
        print(f"{number:>6} {ours[-1]:>12.1f} {theirs[-1]:>12.1f} {ratios[-1]:>8.3f}", flush=True)
    if ratios:
        print(
            f"{'median':>6} {statistics.median(ours):>12.1f} {statistics.median(theirs):>12.1f} "
            f"{statistics.median(ratios):>8.3f}   ratios {min(ratios):.3f} to {max(ratios):.3f}"
        )
    return len(ratios) == options.rounds


def main():
    options = arguments()
    try:
        with tempfile.TemporaryDirectory(prefix="stowage-bench-") as directory:
            complete = compare(options, pathlib.Path(directory))
    except Failed as error:
        sys.exit(f"train.py: {error}")
    sys.exit(0 if complete else 1)


if __name__ == "__main__":
    main()
