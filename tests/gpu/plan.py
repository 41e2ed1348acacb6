"""The first quarter of an hour on a card, in three calls. No call needs the results of another:

    plan.py first BUILD [OPTIONS]    Are the results right, and how fast is it? 140 s
    plan.py second BUILD [OPTIONS]   PyTorch, all kinds of kernels, and what decides the defaults: 280 s, of
                                     which PyTorch gets 105 (--peer N)
    plan.py third BUILD [OPTIONS]    what has been repaired (--repaired PART,... of gpu_probe), llama-1b, and
                                     the training tests: 130 s

Options: `--seconds N`; `--patience N`, seconds after which a run without a step hangs; `--tiny CONFIG`, for
emulated devices: a tiny model and small sizes.

Every step has a time cap and ends with it. Only a bundle that cannot be unpacked ends a call early. After
each step these files are written, so that a killed call leaves them: PREFIX-table.txt, the table of all
steps; PREFIX-figures.tsv, all figures; PREFIX-logs.tgz, the output of each step. With the output of the call
and that of failing programs these are five files. The last block that a call prints says what its figures
decide (decisions.py) and what to do next. PREFIX is an environment variable, or the name of the call."""

import collections
import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import threading
import time

import decisions
import runs

HERE = os.path.dirname(os.path.abspath(__file__))
SECONDS = {"first": 140, "second": 280, "third": 130}
PEER_SECONDS = 105
LEAST_SECONDS = 8  # a step with less time is left out
TO_END = 4  # seconds between a step's own limit and its cap
TO_DIE = 3  # seconds between SIGTERM and SIGKILL

# `command`: a function of the seconds left that returns the arguments, or the reason for leaving the step
# out. `cap`: in seconds. `shows`: a pattern; its last matches go into the table. `stops`: whether a failure
# ends the call. `ends_itself`: whether the command has the time limit too. If not, its end at the cap is no
# failure.
Step = collections.namedtuple("Step", "name cap command shows stops ends_itself", defaults=("", False, True))


class Plan:
    """Shared by both calls: where things are."""

    def __init__(self, part, build, given):
        self.part, self.build, self.tiny = part, build, given.get("tiny")
        self.peer_seconds = float(given.get("peer", PEER_SECONDS))
        self.patience = ("--patience", given["patience"]) if "patience" in given else ()
        self.repaired = given.get("repaired", "tiles,attention").split(",")
        self.prefix, self.scratch = os.environ.get("PREFIX", part), tempfile.gettempdir()

    def script(self, name, *words):
        """Arguments of a script in this folder, with its time limit less the time that it needs to end."""
        tiny = ("--tiny", self.tiny) if self.tiny else ()
        return lambda seconds: [
            sys.executable,
            "-B",
            os.path.join(HERE, name),
            self.build,
            *tiny,
            *self.patience,
            "--seconds",
            f"{max(seconds - TO_END, 1):.0f}",
            *words,
        ]

    def probe(self, *words):
        path = os.path.join(self.build, "tests/gpu/gpu_probe")
        return [path, *(("--small",) if self.tiny else ()), *words]

    def probed(self, *parts):
        return lambda seconds: self.probe(
            "--seconds", f"{seconds - TO_END:.0f}", "--figures", os.environ["FIGURES"], *parts
        )

    def profiled(self, _):
        if not shutil.which("ncu"):
            return "there is no ncu here"
        sections = ("SpeedOfLight", "WarpStateStats", "Occupancy")
        return [
            "ncu",
            "--clock-control",
            "none",  # the default would lock the card's clocks
            *(word for section in sections for word in ("--section", section)),
            *self.probe("--here", "once"),
        ]

    def peer(self, seconds):
        if importlib.util.find_spec("torch") is None:
            return "there is no PyTorch here"
        from bench import MODELS  # imported here because bench.py needs the paths of tools/bench

        config, (sequence, batch) = self.tiny, (32, 2)
        if not self.tiny:
            config, (sequence, batch) = os.path.join(self.scratch, "gpt2.json"), MODELS["gpt2"]
            with open(config, "w", encoding="utf-8") as file:
                json.dump(runs.Runs(self.build).config("gpt2"), file)
        return [
            sys.executable,
            self.peer_script(),
            "train",
            config,
            str(sequence),
            str(batch),
            *(("--eager", "--device", "cpu") if self.tiny else ()),
            "--seconds",
            f"{seconds - TO_END:.0f}",
        ]

    @staticmethod
    def peer_script():
        return os.path.normpath(os.path.join(HERE, "../../tools/bench/peer_gpu.py"))

    def memcheck(self, seconds):
        if not decisions.needs_memcheck(runs.figures()):
            return "products and attention are right"
        return self.script("check.py", "products")(seconds)

    @staticmethod
    def state(_):
        return [
            "sh",
            "-c",
            "nvidia-smi -q -d CLOCK,POWER,ECC; dmesg 2>&1 | grep -E 'NVRM|Xid' | tail -n 9; true",
        ]

    def steps(self):
        unpack = Step(
            "unpack",
            20,
            lambda _: [sys.executable, "-B", os.path.join(HERE, "bundle.py"), "unpack", self.build],
            r"tools/gpu-check",
            stops=True,
        )
        state = Step("state of the card", 8, self.state, r"NVRM|Xid", ends_itself=False)
        # The last step but the state gets the time that is left.
        return [unpack, *getattr(self, self.part)(), state]

    def first(self):
        return [
            Step("tokens/s of gpt2", 40, self.script("bench.py", "speed"), r"tokens/s"),
            Step("probe", 64, self.probed(), PROBE_SHOWS),
            Step("libraries", 25, self.script("check.py", "libraries"), r"NVIDIA's"),
            Step("kernel tests", 40, self.script("check.py", "quick"), r"kernels  "),
            Step("memcheck of products", 60, self.memcheck, r"compute-sanitizer"),
        ]

    def second(self):
        return [
            Step("peaks", 10, self.probed("copy", "peak"), PROBE_SHOWS),
            Step("PyTorch", self.peer_seconds, self.peer, r"tokens_per_second", ends_itself=False),
            Step("tokens/s of gpt2", 65, self.script("bench.py", "headline"), r"tokens/s|left out"),
            Step("wgmma's bits on smollm-135m", 45, self.script("check.py", "wgmma"), r"E1|E2|wgmma"),
            Step("gpt2 in 8 GiB and in 60", 30, self.script("check.py", "eighty"), r"E2"),
            Step("ops of gpt2", 20, self.script("bench.py", "profile"), r"TFLOP/s|GB/s"),
            Step("ncu of six kernels", 40, self.profiled, r"Throughput", ends_itself=False),
        ]

    def third(self):
        return [
            Step("repaired", 30, self.probed("copy", *self.repaired), PROBE_SHOWS),
            Step("tokens/s of gpt2", 35, self.script("bench.py", "speed"), r"tokens/s"),
            Step("llama-1b", 40, self.script("bench.py", "llama"), r"tokens/s"),
            Step("training tests", 60, self.script("check.py", "training"), r"training  "),
            Step("memcheck of products", 60, self.memcheck, r"compute-sanitizer"),
        ]


# The probe's lines for the table: expectations, switches, tiles, and what is wrong.
PROBE_SHOWS = (
    r"pessimistic +\d|results are wrong|the card's own|times as fast|takes .* longer|on a branch|cut off"
)


def read(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


class Runner:
    """Runs steps in order, each within its cap and all within `seconds`."""

    def __init__(self, title, prefix, seconds, out=sys.stdout):
        self.title, self.prefix, self.seconds, self.out = title, prefix, seconds, out
        self.begin, self.rows, self.running = time.monotonic(), [], None
        self.card = os.environ.get("CARD", "")
        self.logs = tempfile.mkdtemp(prefix="stowage-logs-")  # few files go to the folder of results

    def left(self):
        return self.seconds - (time.monotonic() - self.begin)

    def say(self, text):
        self.out.write(text)
        self.out.flush()

    def run(self, steps):
        """Returns whether no step failed."""
        for i, step in enumerate(steps):
            if self.run_one(step) or not step.stops:
                continue
            for rest in steps[i + 1 :]:
                self.row(rest, "left out", 0, [f"{step.name} failed"])
            break
        self.say("\n" + self.table() + "\n" + self.block())
        shutil.rmtree(self.logs, ignore_errors=True)
        return not self.failed()

    def failed(self):
        return [step.name for step, result, _, _ in self.rows if result in ("FAIL", "timed out")]

    def block(self):
        return decisions.block(self.title, self.card, runs.figures(), self.failed())

    def run_one(self, step):
        """Returns whether it did not fail."""
        seconds = min(step.cap, self.left())
        if seconds < min(LEAST_SECONDS, step.cap):
            self.row(step, "left out", 0, ["no time"])
            return True
        try:
            command = step.command(seconds)
        except Exception as error:  # a step that cannot start does not end the others
            self.row(step, "FAIL", 0, [f"{type(error).__name__}: {error}"])
            return False
        if isinstance(command, str):
            self.row(step, "left out", 0, [command])
            return True
        path = os.path.join(self.logs, re.sub(r"\W+", "-", step.name) + ".txt")
        self.say(f"\n== {step.name}, at most {seconds:.0f} s\n")
        begin = time.monotonic()
        code = self.call(command, seconds, path)
        text = read(path)
        if step.shows == "tokens_per_second":
            for found in configurations(text):
                runs.figure("tokens/s of PyTorch", found["tokens_per_second"])
        result = "FAIL"
        if code == 0:
            result = "ok"
        elif code is None:
            result = "timed out" if step.ends_itself else "cut off"
        self.row(step, result, time.monotonic() - begin, shown(step, text, code))
        return result in ("ok", "cut off")

    def call(self, command, seconds, path):
        """The exit status, or None if the step had to be killed."""
        environment = dict(os.environ)
        # PyTorch uses its own libraries, not the ones that gpu-check found for us
        if command[1:2] == [Plan.peer_script()]:
            environment["LD_LIBRARY_PATH"] = environment.get(
                "PEER_LIBRARY_PATH", environment.get("LD_LIBRARY_PATH", "")
            )
        with open(path, "wb") as file:
            try:
                self.running = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                    env=environment,
                )
            except OSError as error:
                file.write(f"{error}\n".encode())
                return 127

            def copy(pipe=self.running.stdout):
                with pipe:
                    while text := pipe.read1(1 << 16):
                        if file.closed:  # an orphaned process can still write
                            break
                        file.write(text)
                        file.flush()
                        self.say(text.decode(errors="replace"))

            copier = threading.Thread(target=copy, daemon=True)
            copier.start()
            try:
                code = self.running.wait(seconds)
            except subprocess.TimeoutExpired:
                code = None
            self.end()
            copier.join(2)  # an orphaned process may hold the other end of the pipe
        return code

    def end(self):
        """Ends the running step. Scripts receive a signal and end their children themselves; the probe's
        processes are in its group."""
        run, self.running = self.running, None
        if run is None:
            return
        for number, patience in ((signal.SIGTERM, TO_DIE), (signal.SIGKILL, 5)):
            try:
                os.killpg(run.pid, number)
            except ProcessLookupError:
                break
            try:
                run.wait(patience)
            except subprocess.TimeoutExpired:
                continue
            if number == signal.SIGTERM:
                time.sleep(0.05)  # other processes of its group may still be ending
        if run.poll() is None:  # it hangs in the driver
            self.say(f"process {run.pid} did not end within 5 s of SIGKILL\n")

    def row(self, step, result, seconds, lines):
        self.rows.append((step, result, seconds, lines))
        for name, text in (
            ("table.txt", self.table() + "\n" + self.block()),
            ("figures.tsv", self.of_card()),
        ):
            with open(f"{self.prefix}-{name}", "w", encoding="utf-8") as file:
                file.write(text)
        packed = self.prefix + "-logs.tgz"
        with tarfile.open(packed + ".new", "w:gz") as tar:
            tar.add(self.logs, "logs")
        os.replace(packed + ".new", packed)

    def of_card(self):
        """The figures, with the kind of card in every row."""
        lines = read(os.environ.get("FIGURES", "")).splitlines()
        return "".join(f"{self.card}\t{line}\n" for line in lines)

    def table(self):
        lines = [
            f"{self.title} on {self.card or 'an unknown card'}: "
            f"{time.monotonic() - self.begin:.0f} of {self.seconds:.0f} s",
            f"{'step':<30} {'result':<10} {'seconds':>8} {'cap':>6}",
        ]
        for step, result, seconds, shown_lines in self.rows:
            lines.append(
                f"{step.name:<30} {result:<10} {seconds:>8.1f} {step.cap:>6.0f}   "
                f"{shown_lines[0] if shown_lines else ''}".rstrip()
            )
            lines += [" " * 60 + line for line in shown_lines[1:]]
        return "\n".join(lines) + "\n"


def shown(step, text, code, most=90):
    """Summarizes the output of a step: its failures, and the lines for the table."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    wrong = [line for line in dict.fromkeys(lines) if line.startswith("FAIL")]
    if code != 0 and not wrong:
        wrong = lines[-3:]
    matching = [
        line
        for line in dict.fromkeys(lines)
        if step.shows and re.search(step.shows, line) and line not in wrong
    ]
    if step.shows == "tokens_per_second":
        matching = fastest_first(text)
    return [clip(line) for line in wrong[:most] + matching[-most:]]


def configurations(text):
    """The results of PyTorch, one for each configuration."""
    found = []
    for line in text.splitlines():
        try:
            one = json.loads(line)
        except ValueError:
            continue
        if isinstance(one, dict) and "tokens_per_second" in one:
            found.append(one)
    return found


def fastest_first(text):
    """Describes configurations, the fastest first."""
    return [
        "{tokens_per_second:,.0f} tokens/s on {card}: {mode}, micro-batch {micro_batch}, "
        "vocabulary {vocabulary:,}, attention {attention}".format(**one)
        for one in sorted(configurations(text), key=lambda one: -one["tokens_per_second"])
    ]


def clip(line, most=200):
    return line if len(line) <= most else line[: most - 1] + "…"


def options(words):
    """Returns the positional arguments, and the values of the options."""
    plain, given = [], {}
    words = iter(words)
    for word in words:
        if not word.startswith("--"):
            plain.append(word)
            continue
        name, value = word[2:], next(words, None)
        if name not in ("seconds", "peer", "tiny", "patience", "repaired") or value is None:
            sys.exit(
                f"plan.py: {word}: expected --seconds N, --peer N, --patience N, --repaired PART,..., "
                f"--tiny CONFIG\n{__doc__}"
            )
        given[name] = value
    if len(plain) != 2 or plain[0] not in SECONDS:
        sys.exit(__doc__)
    return (*plain, given)


def main():
    part, build, given = options(sys.argv[1:])
    plan = Plan(part, build, given)
    runner = Runner(part, plan.prefix, float(given.get("seconds", SECONDS[part])))

    def stop(*_):
        runner.end()
        runner.say("\nstopped from outside\n" + runner.table() + "\n" + runner.block())
        os._exit(143)

    signal.signal(signal.SIGTERM, stop)
    # In the build's folder, which the calls on one card share, and which a new bundle replaces.
    os.environ["FIGURES"] = os.path.join(build, f"figures-{os.environ.get('COMMIT', 'unknown')}.tsv")
    with tempfile.TemporaryDirectory(prefix="stowage-plan-") as plan.scratch:
        good = runner.run(plan.steps())
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
