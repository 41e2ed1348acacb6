"""The first quarter of an hour on a card, in two calls. The second call does not need the results of the
first:

    plan.py first BUILD [--seconds N] [--tiny CONFIG]               correctness and speed: 300 s
    plan.py second BUILD [--seconds N] [--peer N] [--tiny CONFIG]   comparison with PyTorch, and results
                                                                    that decide the defaults: 310 s, of
                                                                    which PyTorch gets 120

Every step has a time cap and ends with it. The output of a step goes at once to PREFIX-STEP.txt, and the
table of all steps to PREFIX-table.txt after each step, so that a killed call leaves both. PREFIX is an
environment variable, or the name of the call. `--tiny` is for emulated devices: a tiny model and small
sizes."""

import collections
import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
SECONDS = {"first": 300, "second": 310}
PEER_SECONDS = 120
LEAST_SECONDS = 8  # a step with less time is left out
TO_END = 4  # seconds between a step's own limit and its cap
TO_DIE = 3  # seconds between SIGTERM and SIGKILL

# `command`: a function of the seconds left that returns the arguments, or the reason for leaving the step
# out. `cap`: in seconds. `shows`: a pattern; its last matches go into the table. `stops`: whether a failure
# ends the call. `otherwise`: a step that uses the remaining time after such a failure.
Step = collections.namedtuple("Step", "name cap command shows stops otherwise", defaults=("", False, None))


class Plan:
    """Shared by both calls: where things are."""

    def __init__(self, part, build, tiny=None, peer_seconds=PEER_SECONDS):
        self.part, self.build, self.tiny, self.peer_seconds = part, build, tiny, peer_seconds
        self.prefix = os.environ.get("PREFIX", part)

    def script(self, name, *words):
        """Arguments of a script in this folder, with its time limit less the time that it needs to end."""
        tiny = ("--tiny", self.tiny) if self.tiny else ()
        return lambda seconds: [
            sys.executable,
            "-B",
            os.path.join(HERE, name),
            self.build,
            *tiny,
            "--seconds",
            f"{max(seconds - TO_END, 1):.0f}",
            *words,
        ]

    def probe(self, *words):
        path = os.path.join(self.build, "tests/gpu/gpu_probe")
        return [path, *(("--small",) if self.tiny else ()), *words]

    def profiled(self, _):
        if not shutil.which("ncu"):
            return "there is no ncu here"
        return [
            "ncu",
            "--section",
            "SpeedOfLight",
            "--section",
            "WarpStateStats",
            "--section",
            "Occupancy",
            *self.probe("--here", "once"),
        ]

    def peer(self, seconds):
        if importlib.util.find_spec("torch") is None:
            return "there is no PyTorch here"
        if self.tiny:
            return [
                sys.executable,
                self.peer_script(),
                "train",
                self.tiny,
                "32",
                "2",
                "--eager",
                "--device",
                "cpu",
                "--seconds",
                f"{seconds - TO_END:.0f}",
            ]
        from bench import MODELS, preset  # imported here because the paths of the tree are set now

        config = self.prefix + "-gpt2.json"
        with open(config, "w", encoding="utf-8") as file:
            json.dump(preset("gpt2"), file)
        sequence, batch = MODELS["gpt2"]
        return [
            sys.executable,
            self.peer_script(),
            "train",
            config,
            str(sequence),
            str(batch),
            "--seconds",
            f"{seconds - TO_END:.0f}",
        ]

    @staticmethod
    def peer_script():
        return os.path.join(HERE, "../../tools/bench/peer_gpu.py")

    def peak_words(self):
        """The card's own peak, if the first call measured it."""
        text = read(self.prefix.replace("second", "first") + "-probe.txt")
        found = re.search(r"the card's own bf16 product +([0-9.e+-]+) TFLOP/s", text)
        return ("--product-tflops", found[1]) if found else ()

    def steps(self):
        unpack = Step(
            "unpack",
            20,
            lambda _: [sys.executable, "-B", os.path.join(HERE, "bundle.py"), "unpack", self.build],
            r"tools/gpu-check",
            stops=True,
        )
        if self.part == "first":
            memcheck = Step(
                "memcheck of products", 600, self.script("check.py", "products"), r"compute-sanitizer"
            )
            return [
                unpack,
                Step("libraries", 40, self.script("check.py", "libraries"), r"NVIDIA's", stops=True),
                Step(
                    "probe",
                    64,
                    lambda seconds: self.probe(
                        "--seconds", f"{seconds - TO_END:.0f}", "--out", self.prefix + "-probe-lines.txt"
                    ),
                    r"pessimistic +\d|results are wrong|the card's own",
                    otherwise=memcheck,
                ),
                Step("kernel tests", 90, self.script("check.py", "kernels"), r"kernels  "),
                Step("tokens/s of gpt2", 70, self.script("bench.py", "headline"), r"tokens/s"),
                Step("ops of gpt2", 30, self.script("bench.py", "profile"), r"TFLOP/s|GB/s"),
                Step("ncu of six kernels", 40, self.profiled, r"Throughput"),
            ]
        return [
            unpack,
            Step("PyTorch", self.peer_seconds, self.peer, r"tokens_per_second"),
            Step("training tests", 80, self.script("check.py", "training"), r"training  "),
            Step("wgmma's bits on smollm-135m", 60, self.script("check.py", "wgmma"), r"E1|E2"),
            Step("gpt2 in 8 GiB and in all", 40, self.script("check.py", "eighty"), r"E2"),
            Step("llama-1b by wgmma", 40, self.script("bench.py", *self.peak_words(), "llama"), r"tokens/s"),
        ]


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

    def left(self):
        return self.seconds - (time.monotonic() - self.begin)

    def say(self, text):
        self.out.write(text)
        self.out.flush()

    def run(self, steps):
        """Returns whether no step failed."""
        for i, step in enumerate(steps):
            if self.run_one(step) or not (step.stops or step.otherwise):
                continue
            if step.otherwise:
                self.run_one(step.otherwise._replace(cap=self.left()))
            for rest in steps[i + 1 :]:
                self.row(rest, "left out", 0, [f"{step.name} failed"])
            break
        self.say("\n" + self.table())
        return not any(result in ("FAIL", "timed out") for _, result, _, _ in self.rows)

    def run_one(self, step):
        """Returns whether it did not fail."""
        seconds = min(step.cap, self.left())
        if seconds < LEAST_SECONDS:
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
        path = self.prefix + "-" + re.sub(r"\W+", "-", step.name) + ".txt"
        self.say(f"\n== {step.name}, at most {seconds:.0f} s\n")
        begin = time.monotonic()
        code = self.call(command, seconds, path)
        result = "ok" if code == 0 else "timed out" if code is None else "FAIL"
        self.row(step, result, time.monotonic() - begin, shown(step, read(path), code))
        return code == 0

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
        run.wait()

    def row(self, step, result, seconds, lines):
        self.rows.append((step, result, seconds, lines))
        with open(self.prefix + "-table.txt", "w", encoding="utf-8") as file:
            file.write(self.table())

    def table(self):
        lines = [
            f"{self.title}: {time.monotonic() - self.begin:.0f} of {self.seconds:.0f} s",
            f"{'step':<30} {'result':<10} {'seconds':>8} {'cap':>6}",
        ]
        for step, result, seconds, shown_lines in self.rows:
            lines.append(
                f"{step.name:<30} {result:<10} {seconds:>8.1f} {step.cap:>6.0f}   "
                f"{shown_lines[0] if shown_lines else ''}".rstrip()
            )
            lines += [" " * 60 + line for line in shown_lines[1:]]
        return "\n".join(lines) + "\n"


def shown(step, text, code, most=40):
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
        matching = fastest_first(matching)
    return [clip(line) for line in wrong[:most] + matching[-most:]]


def fastest_first(lines):
    """Sorts configurations, the fastest first."""
    found = []
    for line in lines:
        try:
            found.append(json.loads(line))
        except ValueError:
            pass
    found.sort(key=lambda one: -one["tokens_per_second"])
    return [
        "{tokens_per_second:,.0f} tokens/s: {mode}, micro-batch {micro_batch}, "
        "vocabulary {vocabulary:,}, attention {attention}".format(**one)
        for one in found
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
        if name not in ("seconds", "peer", "tiny") or value is None:
            sys.exit(f"plan.py: {word}: expected --seconds N, --peer N, --tiny CONFIG\n{__doc__}")
        given[name] = value
    if len(plain) != 2 or plain[0] not in SECONDS:
        sys.exit(__doc__)
    return (*plain, given)


def main():
    part, build, given = options(sys.argv[1:])
    plan = Plan(part, build, given.get("tiny"), float(given.get("peer", PEER_SECONDS)))
    runner = Runner(part, plan.prefix, float(given.get("seconds", SECONDS[part])))

    def stop(*_):
        runner.end()
        runner.say("\nstopped from outside\n" + runner.table())
        os._exit(143)

    signal.signal(signal.SIGTERM, stop)
    sys.exit(0 if runner.run(plan.steps()) else 1)


if __name__ == "__main__":
    main()
