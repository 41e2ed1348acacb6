"""Advices about continuing a run, and about runs that ended early."""

import fcntl
import os
import re
import shlex
import shutil
import subprocess
import time

from support import STOWAGE, count_in

from .data_test import BERT_FILES, lines, table
from .rows import (
    Advice,
    AdviceTest,
    instead,
    planned,
    plus,
    prints,
    run,
    same_as,
    steps,
    without,
)

SIZES = "--vram 32MiB --threads 1 --steps 2 --eval-batches 1 --out OUT --schedule constant --warmup 0"
SHAPE = "--batch 2 --seq 32"
TRAIN = f"train --model nano {SHAPE} {SIZES} --data text.txt"
# For a run without its settings.json.
LOST = "--model nano --data text.txt --steps 4 --out OUT --schedule constant --warmup 0 --eval-batches 1"
AGAIN = "train --resume COPY:{} --steps 4"
TEXT = "".join(f"{i} ships lie in the hold where the plan says {i * 7 % 11}.\n" for i in range(200))
PAIRS = TRAIN.replace("text.txt", "pairs.jsonl --document-end 0")
MASKED = TRAIN.replace("nano", "bert --from-scratch").replace("text.txt", "texts.jsonl --task masked")
RUNS = {
    "plain": f"{TRAIN} --states 32",
    "small": f"{TRAIN} --states 8",
    "documents": f"{TRAIN} --document-end 10",
    "evaluated": f"{TRAIN} --eval-data other.txt",
    "tail": TRAIN.replace("text.txt", "labels.csv --eval-tail"),
    "drawn": TRAIN.replace("text.txt", "labels.csv"),
    "all": TRAIN.replace("--eval-batches 1", "--eval-batches 0"),
    "dropped": f"{TRAIN} --dropout 0.1",
    "frozen": f"{TRAIN} --freeze embeddings",
    "bf16": f"{TRAIN} --precision bf16 --master stochastic",
    "number": TRAIN.replace("text.txt", "numbers.csv --task number"),
    "pairs": PAIRS,
    "masked": f"{MASKED} --mask-rate 0.2",
    "counted": TRAIN.replace("--batch 2", "--batch-examples 4").replace("text.txt", "labels.csv"),
    "weighted": f"{TRAIN} --weights plain/model.safetensors",
    "adapted": f"{TRAIN.replace('nano', 'plain')} --lora 2",
    "lists": TRAIN.replace("text.txt", "lists.jsonl"),
    "answers": TRAIN.replace("text.txt", "examples.jsonl --document-end 0"),
    "outliers": f"{TRAIN} --skip-outliers 3",
}

EARLY = TRAIN.replace("--steps 2", "--steps 6").replace("--schedule constant", "--lr 20")
EARLY += " --optimizer sgd --clip 0.5 --eval-every 1 --patience 1"


def continued(name):
    """The run has the losses and weights of one that was never interrupted."""

    def check(test, done):
        whole = test.once(RUNS[name].replace("--steps 2", "--steps 4"))

        def losses(one):
            return [line["loss"] for line in one.metrics() if "loss" in line]

        def evaluations(one):
            return [line["eval_loss"] for line in one.metrics() if "eval_loss" in line]

        def weights(one):
            return [path.read_bytes() for path in one.out.glob("*model.safetensors")]

        test.assertEqual(losses(done)[-2:], losses(whole)[-2:])
        test.assertEqual(evaluations(done)[-1:], evaluations(whole)[-1:])
        test.assertEqual(weights(done), weights(whole))

    return check


def fixed(flag, name, value, own):
    """A flag that the run keeps: its own value, or none, continues the run."""
    words = f"{AGAIN.format(name)} {flag} {value}".strip()
    ways = [without(f"{flag} {value}".strip(), continued(name))]
    if own:
        ways.append(instead(f"{flag} {value}", f"{flag} {own}", continued(name)))
    return words, *ways


def header(field, flag, name, value):
    return Advice(
        f"{{}}/checkpoint.stw: {field}: expected {{}}, found {{}}; the run keeps its own value: leave out "
        f"{flag}",
        *fixed(flag, name, value, None),
    )


OTHER = "{}: the run in {} has {}, found {}; another value would change the trained bits"
WITHOUT = "{}: the run in {} was trained without it; changing this would change the trained bits"
WITH = "{}: the run in {} was trained with it; changing this would change the trained bits"

ROWS = [
    # The numerics.
    header("state_bits", "--states", "plain", 8),
    header("precision", "--precision", "plain", "bf16"),
    header("optimizer", "--optimizer", "plain", "lion"),
    header("gradients", "--gradients", "plain", "bf16"),
    header("master", "--master", "bf16", "split8"),
    header("fused_update", "--fused-update", "plain", ""),
    Advice(
        "{}/checkpoint.stw: groups: expected {}, found {}; the run keeps its own value: leave out --freeze "
        "and --group",
        f"{AGAIN.format('plain')} --freeze embeddings",
        without("--freeze embeddings", continued("plain")),
    ),
    Advice(
        "{}/checkpoint.stw: groups: expected {}, found {}; the run keeps its own value: leave out --freeze "
        "and --group",
        f"{AGAIN.format('frozen')} --group norms:lr=0.1",
        without("--group norms:lr=0.1", continued("frozen")),
    ),
    Advice(
        "{}/checkpoint.stw: groups: expected [], found {}; the run keeps its own value: give its --freeze "
        "and --group",
        f"train --resume lost {LOST}",
        plus("--freeze embeddings", continued("frozen")),
    ),
    header("quantize", "--quantize", "adapted", "nf4"),
    header("quantize_embeddings", "--quantize-embeddings", "adapted", "int8"),
    # Values of the run.
    Advice(OTHER.replace("{}", "--batch", 1), *fixed("--batch", "plain", 4, 2)),
    Advice(OTHER.replace("{}", "--seq", 1), *fixed("--seq", "plain", 16, 32)),
    Advice(OTHER.replace("{}", "--seed", 1), *fixed("--seed", "plain", 5, 1337)),
    Advice(OTHER.replace("{}", "--dropout", 1), *fixed("--dropout", "dropped", 0.2, 0.1)),
    Advice(OTHER.replace("{}", "--mask-rate", 1), *fixed("--mask-rate", "masked", 0.3, 0.2)),
    Advice(OTHER.replace("{}", "--document-end", 1), *fixed("--document-end", "documents", 11, 10)),
    Advice(OTHER.replace("{}", "--batch-examples", 1), *fixed("--batch-examples", "counted", 5, 4)),
    Advice("--task: the run in {} has {}, found {}", *fixed("--task", "number", "label", "number")),
    Advice(
        "--mask-whole-words: the run in {} was trained without it; with it, the trained bits would change",
        *fixed("--mask-whole-words", "masked", "", None),
    ),
    Advice(WITHOUT.replace("{}", "--document-end", 1), *fixed("--document-end", "plain", 10, None)),
    Advice(WITHOUT.replace("{}", "--eval-data", 1), *fixed("--eval-data", "plain", "other.txt", None)),
    Advice(WITHOUT.replace("{}", "--eval-tail", 1), *fixed("--eval-tail", "drawn", "", None)),
    Advice(
        "--eval-batches {}: the run in {} was trained on all of its data; a change of that would change "
        "the trained "
        "bits",
        *fixed("--eval-batches", "all", 1, 0),
    ),
    Advice(
        "--eval-batches {}: the run in {} holds a tenth of its data out, and with 0 it would train on it "
        "too; "
        "--eval-every 0 evaluates only after the last batch; a change of that would change the trained bits",
        f"{AGAIN.format('plain')} --eval-batches 0",
        instead("--eval-batches 0", "--eval-every 0", continued("plain")),
    ),
    Advice(
        "--preference {}: the run in {} learns the preference {}; a change of that would change the "
        "trained bits",
        *fixed("--preference", "pairs", "simpo", "dpo"),
    ),
    Advice(
        "--weights: --resume {} continues with the weights of its checkpoint; leave one of them out",
        f"{AGAIN.format('weighted')} --weights drawn/model.safetensors",
        without("--weights drawn/model.safetensors", continued("weighted")),
        run(f"{TRAIN} --weights plain/model.safetensors", steps(2)),
    ),
    Advice(
        "--data {}: expected a .jsonl file of pairs of answers: the run in {} learns the preference {}; a "
        "change of "
        "that would change the trained bits",
        *fixed("--data", "pairs", "text.txt", "pairs.jsonl"),
    ),
    Advice(
        "--data {}: the run in {} is of a classifier: expected a .csv or .jsonl file of texts with labels, "
        "or a "
        ".conll file",
        *fixed("--data", "drawn", "text.txt", "labels.csv"),
    ),
    Advice(
        "--data {}: its labels are not those of the run, which {} has",
        *fixed("--data", "drawn", "sides.csv", "labels.csv"),
    ),
    Advice(
        "--data {}: the run in {} learns the task {}; another task would change the trained bits",
        *fixed("--data", "lists", "labels.csv", "lists.jsonl"),
    ),
    Advice(
        "--data {}: it has pairs of answers: the run in {} learns no preference; a change of that would "
        "change the "
        "trained bits",
        *fixed("--data", "answers", "pairs.jsonl", "examples.jsonl"),
    ),
    Advice(
        WITH.replace("{}", "--document-end", 1),
        f"train --resume lost-documents {LOST}",
        plus("--document-end 10", continued("documents")),
    ),
    # What a run keeps, and what can be reset.
    Advice(
        "--no-{}: the bits of the run in {} depend on it, so the run keeps its value",
        *fixed("--no-eval-tail", "tail", "", None),
    ),
    Advice(
        "--no-{}: resets --{}, which is given too",
        f"{AGAIN.format('outliers')} --no-skip-outliers --skip-outliers 5",
        without("--no-skip-outliers", steps(4)),
        without("--skip-outliers 5", steps(4)),
    ),
    Advice(
        "--resume {}: found no {} in it",
        "train --resume empty --steps 4",
        run(AGAIN.format("plain"), steps(4)),
    ),
    Advice(
        "{}/checkpoint.stw stands at {} batches, past --steps {}",
        "train --resume COPY:plain --steps 1",
        instead("--steps 1", "--steps 2", steps(2)),
        instead("--steps 1", "--steps 4", steps(4)),
    ),
    # Plans of a run.
    Advice(
        "--plan {}: batch: the run in {} has {}, found {}; another value would change the trained bits",
        f"{AGAIN.format('plain')} --plan batch.json",
        without("--plan batch.json", continued("plain")),
        instead("--plan batch.json", "--plan same.json", continued("plain")),
    ),
    Advice(
        "--plan {}: sequence: the run in {} has {}, found {}; another value would change the trained bits",
        f"{AGAIN.format('plain')} --plan sequence.json",
        instead("--plan sequence.json", "--plan same.json", continued("plain")),
    ),
    Advice(
        "{}/checkpoint.stw: optimizer: expected {}, found {}; the run keeps its own value, and --plan {} "
        "is not one "
        "of its plans",
        f"{AGAIN.format('plain')} --plan lion.json",
        instead("--plan lion.json", "--plan same.json", continued("plain")),
    ),
    Advice(
        "--batch excludes --plan",
        f"{TRAIN} --plan same.json --seq 32".replace(f" {SHAPE} --vram 32MiB", " --batch 2").replace(
            " --seq 32", ""
        ),
        without("--batch 2", planned(global_batch=2)),
        instead("--plan same.json", "--seq 32 --vram 32MiB", planned(global_batch=2)),
    ),
    Advice(
        "--plan {}: was made without --preference, and {} has pairs of answers",
        f"{PAIRS} --plan documents.json".replace(f" {SHAPE} --vram 32MiB", ""),
        instead("--plan documents.json", "--plan pairs.json", same_as(PAIRS)),
    ),
    Advice(
        "--plan {}: is for --preference {}, and {} has no pairs of answers",
        f"{TRAIN} --plan pairs.json".replace(f" {SHAPE} --vram 32MiB", ""),
        instead("text.txt", "pairs.jsonl --document-end 0", same_as(PAIRS)),
        instead("--plan pairs.json", "--plan same.json", steps(2)),
    ),
    Advice(
        "--data {}: examples are documents, but --plan {} was made without documents; make it with "
        "`stowage plan "
        "--document-end TOKEN`, where TOKEN is the model's end of text",
        f"{TRAIN} --plan same.json".replace(f" {SHAPE} --vram 32MiB", "").replace(
            "text.txt", "examples.jsonl"
        ),
        instead(
            "--plan same.json", "--plan documents.json --document-end 10", prints(r"examples +40,"), steps(2)
        ),
    ),
    # Runs that ended early.
    Advice(
        "step {}: the learning rate goes from {} to {} because the schedule has changed: --steps {} "
        "(before: {})",
        "train --resume COPY:early --patience 9 --steps 8",
        without("--steps 8", steps(6)),
    ),
    Advice(
        "step {}: the learning rate goes from {} to {} because the schedule has changed: --steps {} "
        "(before: {}), {}",
        "train --resume COPY:early --patience 9 --steps 8 --lr 1e-3",
        without("--steps 8 --lr 1e-3", steps(6)),
    ),
    Advice(
        "--resume {}: found no {} in it; the run that it was to replace is in {}",
        "train --resume replacing --steps 4",
        run("train --resume replacing/replaced-run --out OUT --steps 4", prints("continuing")),
    ),
    Advice(
        "{} holds an earlier run; the run that was to replace it never saved: move the earlier run away, "
        "replace it "
        "with --overwrite, or give another --out",
        TRAIN.replace("OUT", "replacing"),
        run(f"{TRAIN} --overwrite".replace("OUT", "COPY:replacing"), same_as(TRAIN)),
        run(TRAIN, steps(2)),
    ),
    Advice(
        "ended early after {} of {} batches: {} evaluations in a row were no better; --resume with a larger "
        "--patience continues the run",
        EARLY,
        run("train --resume COPY:early --patience 9", steps(6)),
    ),
]
# Their tests hold the lock of the folder, and change the data during a run.
BUSY = Advice("{}: another run is writing into this folder; wait for its end, or give another --out", "")
SAVED = Advice("{}; saved after batch {}, --resume {} continues from there", "")
ALL_ROWS = [*ROWS, BUSY, SAVED]


class ResumeAdviceTest(AdviceTest):
    rows = ROWS
    files = {
        **BERT_FILES,
        "text.txt": TEXT,
        "other.txt": TEXT,
        "empty/none.txt": "",
        "labels.csv": table("text,label", lambda i: f"ship {i} sails,{'ab'[i % 2]}"),
        "sides.csv": table("text,label", lambda i: f"ship {i} sails,{'xy'[i % 2]}"),
        "numbers.csv": table("text,label", lambda i: f"ship {i} sails,{i % 7 + 0.5}"),
        "lists.jsonl": lines(
            {"text": f"ship {i} sails", "labels": [["a", "b"], ["b"]][i % 2]} for i in range(40)
        ),
        "texts.jsonl": lines({"text": "the ship is in the hold " * (1 + i % 3)} for i in range(40)),
        "examples.jsonl": lines({"prompt": f"ship {i}? ", "completion": f"hold {i}."} for i in range(40)),
        "pairs.jsonl": lines(
            {"prompt": f"ship {i}? ", "chosen": f"yes {i}.", "rejected": f"no {i}, never."} for i in range(40)
        ),
    }
    prepare = (
        *(words.replace("OUT", name) for name, words in RUNS.items()),
        EARLY.replace("OUT", "early"),
    )

    def prepare_more(self):
        for name, lost in (("frozen", "lost"), ("documents", "lost-documents")):
            shutil.copytree(self.folder / name, self.folder / lost)
            (self.folder / lost / "settings.json").unlink()
        shutil.copytree(self.folder / "plain", self.folder / "replacing/replaced-run")
        plan = "plan --model nano --vram 32MiB --threads 1 --json"
        for name, words in (
            ("same", f"{SHAPE} --states 32"),
            ("batch", "--batch 4 --seq 32 --states 32"),
            ("sequence", "--batch 2 --seq 16 --states 32"),
            ("lion", f"{SHAPE} --states 32 --optimizer lion"),
            ("documents", f"{SHAPE} --document-end 10"),
            ("pairs", f"{SHAPE} --document-end 0 --preference dpo"),
        ):
            self.write(f"{name}.json", self.call(f"{plan} {words}").stdout)

    def test_rows(self):
        self.follow_rows()

    def test_data_that_is_cut_during_a_run(self):
        words = f"{TRAIN} --steps 20000".replace("text.txt", "cut.txt").replace(" --steps 2 ", " ")
        path, lines_of_run = self.folder / "cut.txt", self.folder / "cut/metrics.jsonl"
        path.write_text(TEXT * 9)
        words = shlex.split(words.replace("OUT", "cut"))
        with subprocess.Popen(
            [STOWAGE, *words], cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        ) as process:
            while process.poll() is None and not count_in(lines_of_run, b"\n"):
                time.sleep(0.005)
            os.truncate(path, 100)
            error = process.stderr.read().decode()
        self.assertTrue(SAVED.is_in(error.splitlines()), error)
        path.write_text(TEXT * 9)
        saved = int(re.search(r"saved after batch ([\d,]+)", error)[1].replace(",", ""))
        right = self.call(f"train --resume COPY:cut --steps {saved + 2}")
        steps(saved + 2)(self, right)

    def test_a_folder_in_which_another_run_writes(self):
        self.write("text.txt", TEXT)
        self.call(TRAIN.replace("OUT", "busy"))
        descriptor = os.open(self.folder / "busy", os.O_RDONLY)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        again = f"{TRAIN} --overwrite".replace("OUT", "busy")
        self.assertTrue(BUSY.is_in(self.call(again, anyhow=True).lines()))
        steps(2)(self, self.call(TRAIN))  # another --out
        os.close(descriptor)
        self.assertFalse(BUSY.is_in(self.call(again).lines()))
