"""Shared by check.py, bench.py and plan.py: runs of the command, a table with a line for each result, and
the file of figures that decisions.py reads. FIGURES and CARD are environment variables."""

import array
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time


# time limit of a script, so that it ends by itself within ten minutes; `--seconds N` changes it
SECONDS = 570
# seconds until a run's first step and between steps, after which it hangs; `--patience N` changes it
PATIENCE = 25
BEGIN = time.monotonic()
AFTER_KILL = 5  # seconds that a killed process may take to end


def options(words, *names):
    """Removes `--name value` pairs with these names from the front of `words` and returns the values by
    name. `--seconds` sets the script's own limit, `--patience` the limit of a run that hangs."""
    global SECONDS, PATIENCE
    found, names = {}, (*names, "seconds", "patience")
    while words and words[0].removeprefix("--") in names and words[0].startswith("--"):
        if len(words) == 1:
            sys.exit(f"{words[0]}: a value is missing")
        found[words[0].removeprefix("--")] = words[1]
        del words[:2]
    if "seconds" in found:
        SECONDS = float(found["seconds"])
    if "patience" in found:
        PATIENCE = float(found["patience"])
    return found


def left():
    return SECONDS - (time.monotonic() - BEGIN)


def clipped(text, most=200_000):
    """Cuts a long output. A test that fails in a loop can write a million lines."""
    if len(text) <= most:
        return text
    return (
        text[: most // 2]
        + f"\n… {len(text) - most // 2 * 2} characters are left out …\n"
        + text[-(most // 2) :]
    )


def figure(name, value):
    """Adds a number to the file of figures."""
    if path := os.environ.get("FIGURES"):
        with open(path, "a", encoding="utf-8") as file:
            file.write(f"{name}\t{value:.17g}\n")


def figures():
    """The numbers of the file of figures: a list for each name, in the order of the file."""
    found = {}
    try:
        with open(os.environ.get("FIGURES", ""), encoding="utf-8") as file:
            for line in file:
                name, tab, value = line.rstrip("\n").rpartition("\t")
                if tab and line.endswith("\n"):
                    found.setdefault(name, []).append(float(value))
    except OSError:
        pass
    return found


class Table:
    def __init__(self):
        self.failures = 0
        self.card = os.environ.get("CARD", "")  # the kind of card stands in every row

    def row(self, name, passed, text):
        """`passed`: None if the time limit left it out or cut it off, which is no failure."""
        self.failures += passed is False
        result = {True: "ok  ", False: "FAIL", None: "cut "}[passed if passed is None else bool(passed)]
        first, *rest = f"{result}  {name:<44} {text}".split("\n")
        print("\n".join([first + (f"  [{self.card}]" if self.card else ""), *rest]), flush=True)

    def part(self, name, run):
        """Runs one part. An exception ends only this part."""
        if left() < min(20, SECONDS / 20):
            return self.row(name, None, "left out for want of time: name it alone")
        try:
            run()
        except OutOfTime as error:
            self.row(name, None, str(error))
        except Exception as error:  # any error
            self.row(name, False, f"{type(error).__name__}: {error}"[-600:])

    def end(self):
        print(f"{self.failures} checks failed")
        return 1 if self.failures else 0


class OutOfTime(Exception):
    """No time is left to begin something."""


# children that run; whether nothing more may start
running, running_lock, ends = set(), threading.Lock(), False


def started(words, output, environment=None):
    """Starts a process group, because compute-sanitizer and PyTorch's compiler start processes of their
    own, which would keep the card busy."""
    with running_lock:
        if ends or left() < 1:
            raise OutOfTime("cut off: no time left: name it alone")
        run = subprocess.Popen(
            [str(word) for word in words],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env=environment,
        )
        running.add(run)
    return run


def kill(run):
    try:
        os.killpg(run.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def stop(run):
    """Ends a process. One that hangs in the driver may survive SIGKILL: it is named, and the others go on."""
    kill(run)
    try:
        run.wait(AFTER_KILL)
    except subprocess.TimeoutExpired:
        print(f"      process {run.pid} did not end within {AFTER_KILL} s of SIGKILL", flush=True)
    with running_lock:
        running.discard(run)


def end_all(*_):
    """Ends all children, whichever thread started them, and then this program."""
    global ends
    ends = True  # the lock may be held by this thread itself
    for run in list(running):
        kill(run)
    sys.exit(143)


CUT = -1000  # the exit status of a call that ran past its time; signals have small negative ones


def call(words, seconds=500, environment=None):
    """Returns the exit status, the output, and the duration."""
    begin = time.monotonic()
    with tempfile.TemporaryFile() as file:
        run = started(words, file, environment)
        try:
            code = run.wait(max(min(seconds, left()), 1))
        except subprocess.TimeoutExpired:
            code = CUT
        finally:
            stop(run)
        file.seek(0)
        text = file.read().decode(errors="replace")
    return code, text + ("\nran past its time" if code == CUT else ""), time.monotonic() - begin


def values_in(path, name):
    """A value of the complete lines of a run's metrics."""
    try:
        with open(path, encoding="utf-8") as file:
            lines = [json.loads(line) for line in file if line.endswith("\n")]
    except OSError:
        return []
    return [line[name] for line in lines if name in line]


def card_bytes_in_use():
    """Memory of all processes, or None if nvidia-smi does not report it."""
    try:
        code, text, _ = call(["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"], 20)
    except OSError:
        return None
    line = text.strip().splitlines()[0] if code == 0 and text.strip() else ""
    return int(line) << 20 if line.isdigit() else None


class Runs:
    """A temporary folder of runs, which is removed at the end."""

    def __init__(self, build):
        self.stowage = os.path.join(build, "tools/stowage/stowage")

    def __enter__(self):
        signal.signal(signal.SIGTERM, end_all)  # the folder is removed too
        self.path = tempfile.mkdtemp(prefix="stowage-gpu-")
        with open(self.at("text.txt"), "w", encoding="ascii") as file:
            for i in range(60000):
                file.write(f"{i * i % 977} ships lie in the hold.\n")
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.path, ignore_errors=True)

    def at(self, name):
        return os.path.join(self.path, name)

    def train(self, out, *words, evaluation_batches=2, seconds=150):
        shutil.rmtree(self.at(out), ignore_errors=True)  # so that a failed run leaves no old weights
        code, text, took = call(
            [
                self.stowage,
                "train",
                "--from-scratch",
                "--data",
                self.at("text.txt"),
                "--out",
                self.at(out),
                "--eval-batches",
                evaluation_batches,
                *words,
            ],
            seconds,
        )
        if code != 0:
            print(f"      run {out} ended with {code}: " + text[-600:].strip(), flush=True)
        return code, text, took

    def tokens(self, vocabulary):
        """A file of uniformly distributed token ids, like PyTorch's."""
        path = self.at(f"tokens-{vocabulary}.bin")
        if not os.path.exists(path):
            with open(path, "wb") as file:
                array.array(
                    "H" if vocabulary <= 65536 else "I",
                    random.Random(1).choices(range(vocabulary), k=1 << 20),
                ).tofile(file)
        return path

    def losses(self, out):
        """The training loss of each step of a run."""
        return values_in(self.at(out) + "/metrics.jsonl", "loss")

    def speeds(self, out, steps, *words, data=None, patience=None, watch=None):
        """The tokens/s of the first `steps` steps of a run, or None and the reason for a failure. The run
        is stopped then, so it saves nothing. `watch` is called repeatedly while it runs. Without `data` it
        trains on a text, which needs a tokenizer. `patience` limits the seconds until the first step and
        between steps (PATIENCE), so that a hanging device does not use up the time of all later runs. Raises
        OutOfTime if the script's own limit ends the run."""
        patience = patience or PATIENCE
        folder, log = self.at(out), self.at(out + "-log.txt")
        shutil.rmtree(folder, ignore_errors=True)
        with open(log, "w", encoding="utf-8") as file:
            run = started(
                (
                    self.stowage,
                    "train",
                    "--from-scratch",
                    "--data",
                    data or self.at("text.txt"),
                    "--out",
                    folder,
                    "--eval-batches",
                    0,
                    "--steps",
                    1000 * steps,
                    "--schedule",
                    "constant",
                    "--save-every",
                    1000 * steps,
                    *words,
                ),
                file,
            )
        heard, found = time.monotonic(), []
        try:
            while (
                len(found) < steps
                and run.poll() is None
                and time.monotonic() < heard + patience
                and left() > 0
            ):
                time.sleep(0.1)
                if watch:
                    watch()
                before, found = len(found), values_in(folder + "/metrics.jsonl", "tokens_per_second")
                if len(found) > before:
                    heard = time.monotonic()
            ended = run.poll()
            if watch:  # the last steps may be newer than the last call
                watch()
        finally:
            stop(run)
        if len(found) >= steps:
            return found[:steps], ""
        if ended is None and left() <= 0:
            raise OutOfTime(f"cut off: no time left, after {len(found)} steps")
        with open(log, encoding="utf-8", errors="replace") as file:
            return None, file.read()[-400:] + (
                f"{'hangs' if ended is None else 'ended'} after {len(found)} steps"
            )

    def config(self, name):
        """A preset's config.json, as the command prints it."""
        code, text, _ = call([self.stowage, "inspect", "--config", name], 20)
        if code != 0:
            raise RuntimeError(f"the config of {name}: {text[-400:]}")
        return json.loads(text)

    def weights(self, out):
        try:
            with open(self.at(out) + "/model.safetensors", "rb") as file:
                return file.read()
        except OSError:
            return f"{out} was not trained"

    def plan(self, out):
        try:
            with open(self.at(out) + "/plan.json", encoding="utf-8") as file:
                return json.load(file)
        except OSError:
            return {"loss_chunks": 0, "offload": []}

    def least_budget(self, *words):
        """The smallest budget that works, in bytes, from the command's message for a smaller one."""
        _, text, _ = call([self.stowage, "plan", *words, "--device", "cuda", "--vram", "1KiB"])
        found = re.search(r"\(([\d,]+) bytes\)", text)
        return int(found[1].replace(",", "")) if found else 0

    def has_wgmma(self, *words):
        code, text, _ = call([self.stowage, "plan", *words, "--device", "cuda", "--kernels", "wgmma"])
        if code != 0 and "wgmma" not in text:
            raise RuntimeError("whether there is wgmma: " + text[-400:])
        return code == 0
