"""Compares the predicted tokens/s of `stowage plan` with speeds that others have published.

usage: predictions.py STOWAGE PUBLISHED.csv [MORE.csv …] [--rows]

Columns of a file: source, software, device, model, tokens_per_s, profile (a device of `stowage devices
--profiles`), plan (flags of `stowage plan`) and config (a config.json, or empty). Rows without a profile or a
plan are skipped. All plans are made with --kernels cublaslt --fast, which come nearest to the programs of
others.

Rows of engines written in CUDA (LLMQ, Surogate, llm.c) are judged by their error: exp(mean |log(predicted /
measured)|) - 1. All other rows are bounds: a prediction must not be slower by more than 5 %.

"Left out" is the error of engines' rows if the ceiling of a card had to be guessed from the other cards. The
share of the rated peak that fits the own rows of each other card is interpolated over the rated peak per
watt. The other figures stay. --rows prints all rows."""

import argparse
import csv
import json
import math
import pathlib
import subprocess
import tempfile

ENGINES = ("LLMQ", "Surogate", "llm.c", "llm.c fork log", "llm.c log")


class Command:
    def __init__(self, stowage, folder):
        self.stowage, self.folder, self.count = stowage, folder, 0

    def file(self, text):
        self.count += 1
        folder = self.folder / str(self.count)
        folder.mkdir()
        path = folder / "config.json"
        path.write_text(text)
        return path

    def plan(self, row, device=None):
        words = [self.stowage, "plan", "--json", "--kernels", "cublaslt", "--fast"]
        words += ["--device", device or row["profile"], *row["plan"].split()]
        if row["config"]:
            words += ["--model", self.file(row["config"])]
        done = subprocess.run([str(w) for w in words], capture_output=True, text=True)
        if not done.stdout:
            raise SystemExit(f"{' '.join(str(w) for w in words)}: {done.stderr.strip()}")
        return json.loads(done.stdout)

    def speed(self, row, device=None):
        return self.plan(row, device)["predicted"]["tokens_per_second"]

    def figures(self, device):
        """The figures of a device, as the file that --device takes."""
        shown = subprocess.run(
            [str(self.stowage), "devices", "--profile", device], capture_output=True, text=True, check=True
        )
        return json.loads(shown.stdout)


def read(paths):
    rows = []
    for path in paths:
        with open(path, newline="") as file:
            rows += [r for r in csv.DictReader(file) if r["profile"] and r["plan"]]
    for row in rows:
        row["measured"] = float(row["tokens_per_s"])
        row["engine"] = row["source"] in ENGINES
    return rows


def error(ratios):
    return math.exp(sum(abs(math.log(r)) for r in ratios) / len(ratios)) - 1 if ratios else 0.0


def worst(ratios):
    return max((max(r, 1 / r) for r in ratios), default=1.0)


def interpolated(at, points):
    """The value at `at`, linear in its logarithm between the points, constant outside of them."""
    points = sorted(points)
    if at <= points[0][0]:
        return points[0][1]
    for (x0, y0), (x1, y1) in zip(points, points[1:]):
        if at <= x1:
            return y0 + (y1 - y0) * math.log(at / x0) / math.log(x1 / x0)
    return points[-1][1]


class Card:
    """The engines' rows of a profile. Their times are a / share + b, `share` being that of the rated peak."""

    def __init__(self, command, name, rows):
        self.rows, self.figures = rows, command.figures(name)
        self.peak = self.figures["gflops_bf16"]
        self.density = self.peak / self.figures["watts"]
        at = {share: self.times(command, share) for share in (0.5, 1.0)}
        self.a = [slow - fast for slow, fast in zip(at[0.5], at[1.0])]
        self.b = [fast - a for fast, a in zip(at[1.0], self.a)]
        self.share = min((s / 1000 for s in range(200, 1001)), key=lambda s: error(self.ratios(s)))

    def times(self, command, share):
        # With power for any speed, the ceiling is the peak.
        changed = dict(self.figures, gflops_bf16=round(self.peak * share), gflops_per_watt=1000000)
        path = command.file(json.dumps(changed))
        return [1 / command.speed(row, path) for row in self.rows]

    def ratios(self, share):
        return [1 / (a / share + b) / r["measured"] for a, b, r in zip(self.a, self.b, self.rows)]


def left_out(command, rows):
    names = sorted({r["profile"] for r in rows if r["engine"]})
    cards = {n: Card(command, n, [r for r in rows if r["engine"] and r["profile"] == n]) for n in names}
    print("\ncard        GFLOP/s per watt, rated  rows  own share  own error  guessed share  left out")
    ratios = []
    for name, card in cards.items():
        others = [(c.density, c.share) for n, c in cards.items() if n != name]
        guess = interpolated(card.density, others) if others else card.share
        of_card = card.ratios(guess)
        ratios += of_card
        print(
            f"{name:11} {card.density:24.0f} {len(card.rows):5} {card.share:10.3f} "
            f"{100 * error(card.ratios(card.share)):8.1f} % {guess:14.3f} {100 * error(of_card):7.1f} %"
        )
    print(f"engines, each card left out: {100 * error(ratios):.1f} %, worst {worst(ratios):.2f} times")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("stowage")
    parser.add_argument("files", nargs="+")
    parser.add_argument("--rows", action="store_true", help="print all rows")
    options = parser.parse_args()
    rows = read(options.files)
    with tempfile.TemporaryDirectory() as folder:
        command = Command(options.stowage, pathlib.Path(folder))
        for row in rows:
            row["ratio"] = command.speed(row) / row["measured"]
            if options.rows:
                print(
                    f"{row['source']:15} {row['profile']:11} {row['model']:15} {row['sequence']:>6} "
                    f"{row['measured']:9.0f} measured {row['ratio']:6.3f} times predicted"
                )
        engines = [r["ratio"] for r in rows if r["engine"]]
        others = [r for r in rows if not r["engine"]]
        far = worst(engines)
        print(f"{len(engines)} rows of engines: {100 * error(engines):.1f} %, worst {far:.2f} times")
        slower = [r for r in others if r["ratio"] < 0.95]
        print(f"{len(others)} other rows: {len(slower)} predictions are slower by more than 5 %")
        for r in slower:
            print(f"  {r['source']}, {r['profile']}, {r['model']}, {r['sequence']} tokens: {r['ratio']:.3f}")
        left_out(command, rows)


if __name__ == "__main__":
    main()
