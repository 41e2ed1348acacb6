"""Advices about wrong command lines: unknown flags, flags of other trainers, wrong values, and flags that do
not go together."""

import json
import re
import unittest.mock

from support import USAGE, CommandTest

from flags.foreign_flags_test import FIELDS

from .data_test import TEXT, lines, table
from .rows import Advice, AdviceTest, all_rows, instead, planned, plus, prints, run, same_as, steps, without

MODEL = "train --model nano"
SHAPE = "--batch 2 --seq 16 --vram 32MiB"
REST = "--threads 1 --steps 2 --eval-batches 1 --data text.txt --out OUT"
TRAIN = f"{MODEL} {SHAPE} {REST}"
BY_PLAN = f"{MODEL} --plan plain.json {REST}"
PLAN = f"plan --model nano {SHAPE} --threads 1"


def set_to(name, value):
    """settings.json of the run has this value."""

    def check(test, done):
        test.assertEqual(json.loads(done.read("settings.json"))["options"][name], [value])

    return check


# Flags that a plan decides, with values for them.
OF_A_PLAN = {
    **{"--vram": "32MiB", "--batch": "2", "--seq": "16", "--micro-batch": "1", "--recompute": "none"},
    **{"--host-memory": "0", "--reserve": "0", "--exact": "", "--precision": "fp32", "--master": "exact"},
    **{"--gradients": "fp32", "--fused-update": "", "--optimizer": "sgd", "--states": "32", "--fast": ""},
    **{"--kernels": "portable", "--attention": "own", "--quantize": "none", "--quantize-embeddings": "none"},
    **{"--freeze": "norms", "--group": "norms:lr=2"},
}


def beside_a_plan(flag, value):
    words = f"{flag} {value}".strip()
    shape = "" if f"{flag} " in SHAPE else words
    return Advice(
        f"{flag} excludes --plan",
        f"{BY_PLAN} {words}",
        without(words, same_as(f"{TRAIN} --states 32")),
        run(f"{MODEL} {SHAPE} {REST} {shape}".strip(), steps(2)),
    )


def wrong_value(flag, wrong, right, expected, before=TRAIN):
    return Advice(
        f'{{}}: expected {expected}, found "{{}}"',
        f"{before} {flag} {wrong}",
        instead(f"{flag} {wrong}", f"{flag} {right}", steps(2), set_to(flag[2:], right)),
    )


# Values of other trainers: the flag and the value, what the message says, and what follows it.
FOREIGN_VALUES = [
    ("--optimizer adamw_8bit", "it is adamw here, with --states 8", "--optimizer adamw --states 8"),
    (
        "--optimizer paged_adamw_8bit",
        "it is adamw here, with --states 8, and --host-memory for the states to offload",
        "--optimizer adamw --states 8 --host-memory 8MiB",
    ),
    (
        "--optimizer paged_adamw_32bit",
        "it is adamw here, with --host-memory for the states to offload",
        "--optimizer adamw --host-memory 8MiB",
    ),
    ("--optimizer adamw_torch_4bit", "it is adamw here, with --states 8, the fewest bits", "--states 8"),
    ("--optimizer adamw_torch", "it is adamw here", "--optimizer adamw"),
    (
        "--optimizer adam_8bit",
        "it is adamw here, with --states 8 and --weight-decay 0",
        "--optimizer adamw --states 8 --weight-decay 0",
    ),
    ("--optimizer adam", "it is adamw here, with --weight-decay 0", "--optimizer adamw --weight-decay 0"),
    ("--optimizer lion_8bit", "it is lion here, with --states 8", "--optimizer lion --states 8"),
    ("--optimizer lion_32bit", "it is lion here", "--optimizer lion"),
    ("--optimizer adafactor_torch", "it is adafactor here", "--optimizer adafactor"),
    ("--schedule cosine_with_min_lr", "it is cosine here, with --min-lr", "--schedule cosine --min-lr 1e-5"),
    (
        "--schedule cosine_warmup_with_min_lr",
        "it is cosine here, with --min-lr and --warmup",
        "--schedule cosine --min-lr 1e-5 --warmup 1",
    ),
    (
        "--schedule constant_with_warmup",
        "it is constant here, with --warmup",
        "--schedule constant --warmup 1",
    ),
    ("--schedule inverse_sqrt", "it is inverse-root here", "--schedule inverse-root"),
    (
        "--schedule warmup_stable_decay",
        "it is wsd here, with --decay-steps",
        "--schedule wsd --decay-steps 1",
    ),
    ("--schedule one_cycle", "it is cosine here, with --warmup", "--schedule cosine --warmup 1"),
    ("--schedule polynomial", "linear is the polynomial of the first power", "--schedule linear"),
    ("--schedule cosine_with_restarts", "cosine falls once", "--schedule cosine"),
    (
        "--schedule reduce_lr_on_plateau",
        "--patience ends a run that gets no better",
        "--patience 2 --eval-every 1",
    ),
    ("--precision float16", "it is fp16 here", "--precision fp16"),
    ("--precision bfloat16", "it is bf16 here", "--precision bf16"),
    ("--precision no", "it is fp32 here", "--precision fp32"),
    (
        "--precision tf32",
        "with fp32, products are computed in fp32; bf16 and fp16 are the faster ones",
        "--precision bf16",
    ),
    ("--attention sdpa", "it is own here", "--attention own"),
    ("--recompute true", "it is full here", "--recompute full"),
    ("--recompute false", "it is none here", "--recompute none"),
    ("--task causal_lm", "a language model needs no --task", ""),
    ("--data-format txt", "it is text here", "--data-format text"),
    ("--metric eval_loss", "it is loss here", "--metric loss --keep-best --eval-every 1"),
]


def foreign_value(wrong, says, right):
    flag = wrong.split()[0]
    return Advice(
        f"{flag}: {wrong.split()[1]} not in {{}}; {says}",
        f"{TRAIN} {wrong}",
        run(f"{TRAIN} {right}".strip(), steps(2)),
    )


ROWS = [
    # Flags that do not exist.
    Advice(
        "{}: there is no such flag; did you mean {}?",
        f"{TRAIN} --warmpu 1",
        instead("--warmpu 1", "--warmup 1", set_to("warmup", "1"), steps(2)),
    ),
    Advice(
        "{}: there is no such flag; it is {} here",
        f"{TRAIN} --learning_rate 2e-3",
        instead("--learning_rate 2e-3", "--lr 2e-3", set_to("lr", "2e-3"), steps(2)),
    ),
    Advice(
        "{}: there is no such flag; it is {} here, {}",
        f"{TRAIN} --batch-size 4",
        run(TRAIN.replace("--batch 2", "--batch 4"), planned(global_batch=4)),
    ),
    Advice(
        "{}: there is no such flag; it is not needed: {}",
        f"{TRAIN} --logging_steps 1",
        without("--logging_steps 1", steps(2)),
    ),
    Advice(
        "{}: there is no such flag; it is a flag of {}",
        f"{PLAN} --json --warmup 1",
        without("--warmup 1", planned(global_batch=2)),
        run(f"{TRAIN} --warmup 1", steps(2)),
    ),
    Advice("{}: there is no such flag", f"{TRAIN} --zzzzzz", without("--zzzzzz", steps(2))),
    Advice(
        "{}: there is no such flag; {}",
        f"{TRAIN} --use_dora",
        without("--use_dora", steps(2)),
    ),
    Advice(
        "{}: there is no such command or flag; did you mean {}?",
        TRAIN.replace("train", "trian", 1),
        run(TRAIN, steps(2)),
    ),
    Advice("{}: there is no such command or flag; there are {}", "--xyzzy", run("devices", prints("cpu"))),
    # Values.
    Advice(
        "{} needs a value; {} is a flag (to use it as the value, write {}={})",
        "generate --model nano --threads 1 --tokens 2 --prompt --chat",
        instead("--prompt --chat", "--prompt=--chat", prints("^--chat")),
        instead("--prompt --chat", "--prompt ship", prints("^ship")),
    ),
    Advice(
        "{}: is given more than once; leave out all but one",
        f"{TRAIN} --lr 1e-3 --lr 2e-3",
        without("--lr 1e-3", set_to("lr", "2e-3"), steps(2)),
    ),
    wrong_value("--warmup", "x", "1", "a whole number from {}"),
    wrong_value("--micro-batch", "5000000000", "1", "a whole number from {} to {}"),
    wrong_value("--lr", "0", "0.002", "a number above 0"),
    wrong_value("--lr", "1e9", "0.002", "a number above 0, at most {}"),
    wrong_value("--lr", "1e-60", "0.002", "a number above 0 that fp32 can hold"),
    wrong_value("--weight-decay", "-1", "0.5", "a number from 0 on"),
    wrong_value("--weight-decay", "1e9", "0.5", "a number from 0 on, at most {}"),
    wrong_value("--z-loss", "1e60", "0.5", "a number from 0 on that fp32 can hold"),
    wrong_value("--dropout", "1", "0.5", "a number from {} to {}"),
    Advice(
        "{}: expected text, found nothing",
        f"{TRAIN} --eval-data ''",
        instead("''", "text.txt", steps(2)),
        without("--eval-data ''", steps(2)),
    ),
    Advice(
        "{}: 1 required {} missing",
        f"{TRAIN} --clip",
        plus("0.5", steps(2), set_to("clip", "0.5")),
    ),
    Advice(
        '{}: expected bytes such as 8GiB, 8GB or 8589934592, found "{}"',
        f"{TRAIN} --reserve much",
        instead("--reserve much", "--reserve 1MiB", steps(2), set_to("reserve", "1048576")),
        instead("--reserve much", "--reserve 1MB", steps(2), set_to("reserve", "1000000")),
    ),
    Advice(
        "{}: {} not in {}",
        f"{TRAIN} --schedule steps",
        instead("steps", "linear", set_to("schedule", "linear"), steps(2)),
    ),
    Advice(
        "--group {}: {}; expected PATTERN:SETTING,… with lr=FACTOR, decay=RATE, states=32|8, frozen or "
        "trained",
        f"{TRAIN} --group norms:speed=2",
        instead("norms:speed=2", "norms:lr=2", steps(2)),
        instead("norms:speed=2", "norms:decay=0.1", steps(2)),
        instead("norms:speed=2", "norms:states=32", steps(2)),
        instead("norms:speed=2", "norms:frozen", steps(2)),
    ),
    # `tests/tools/flags/foreign_flags_test.py` prints all of these.
    Advice(
        "{}: {} not in {}; {}",
        f"{TRAIN} --recompute true",
        instead("true", "full", set_to("recompute", "full")),
    ),
    *(foreign_value(*row) for row in FOREIGN_VALUES),
    # Flags that do not go together.
    *(beside_a_plan(flag, value) for flag, value in OF_A_PLAN.items()),
    Advice(
        "--exact excludes --fast",
        f"{TRAIN} --exact --fast",
        without("--exact", steps(2)),
        without("--fast", steps(2)),
    ),
    Advice(
        "--plan excludes --batch-examples",
        f"{BY_PLAN} --batch-examples 2",
        without("--batch-examples 2", same_as(f"{TRAIN} --states 32")),
    ),
    Advice(
        "--overwrite requires --out",
        "train --resume plain --overwrite --steps 4",
        run("train --resume plain --overwrite --steps 4 --out OUT", prints("continuing")),
    ),
    Advice(
        "--max excludes --html",
        "plan --model nano --batch 2 --vram 32MiB --threads 1 --max seq --html x.html",
        without("--html x.html", prints("longest sequence that fits")),
        without("--max seq", prints("memory at the peak")),
    ),
    Advice(
        "--html, --svg and --csv write one file each; give each its own name",
        f"{PLAN} --html x.html --csv x.html",
        instead("--csv x.html", "--csv x.csv", prints("memory at the peak")),
    ),
    Advice(
        "--max excludes --compare",
        "plan --max seq --compare plain.json plain.json",
        without("--max seq", prints("parameters +858880 +858880")),
    ),
    Advice(
        "{} excludes --compare",
        "plan --compare plain.json plain.json --vram 1GiB",
        without("--vram 1GiB", prints("parameters +858880 +858880")),
    ),
    Advice(
        "--compare: At least 2 required but received 1",
        "plan --compare plain.json",
        plus("plain.json", prints("parameters +858880 +858880")),
    ),
    Advice(
        "--compare excludes {}",
        "plan --compare plain.json plain.json --svg x.svg",
        without("--svg x.svg", prints("parameters +858880 +858880")),
    ),
    Advice(
        "--out is required",
        "merge --model adapters",
        run("merge --model adapters --out OUT", prints("wrote")),
    ),
    Advice("--model is required", TRAIN.replace(" --model nano", ""), plus("--model nano", steps(2))),
    Advice("--data is required", TRAIN.replace(" --data text.txt", ""), plus("--data text.txt", steps(2))),
]


class UsageTest(AdviceTest):
    rows = ROWS
    files = {"text.txt": TEXT}
    prepare = (
        TRAIN.replace("OUT", "plain"),
        f"{TRAIN.replace('nano', 'plain')} --lora 2".replace("OUT", "adapters"),
    )

    def prepare_more(self):
        self.write("plain.json", self.call(f"{PLAN} --states 32 --json").stdout)

    def test_rows(self):
        self.follow_rows()


class EveryTest(CommandTest):
    def test_a_message_without_a_row_fails_the_test_that_prints_it(self):
        lost = [row for row in all_rows() if "nesterov" not in row.message]
        words = f"{TRAIN} --nesterov --momentum 0 --optimizer sgd".replace("text.txt", self.text()).split()
        self.refused(*words, expect=USAGE, says=["--nesterov: needs a --momentum above 0"], cwd=self.folder)
        with unittest.mock.patch("support.rows_of_advice", lambda: lost):
            with self.assertRaisesRegex(AssertionError, "no row in tests/tools/advice tries this advice"):
                self.run_command(*words, expect=USAGE, cwd=self.folder)


class ForeignFlagsTest(AdviceTest):
    """Every flag that a message calls ours takes a value and does what it says."""

    # Words for each flag, besides those of TRAIN; None: TRAIN has it.
    words = {
        **{"--lr": "--lr 2e-3", "--epochs": None, "--steps": None, "--warmup": "--warmup 1"},
        **{"--schedule": "--schedule linear", "--min-lr": "--min-lr 1e-5", "--batch": None},
        **{"--decay-steps": "--schedule wsd --decay-steps 1", "--micro-batch": "--micro-batch 1"},
        **{"--seq": None, "--data": None, "--out": None, "--model": None, "--vram": None},
        **{"--eval-data": "--eval-data text.txt", "--document-end": "--document-end 10"},
        **{
            "--text-field": ("labels.csv", "--text-field text"),
            "--label-field": ("labels.csv", "--label-field label"),
        },
        **{"--tokenizer": "--tokenizer byte", "--overwrite": "--overwrite", "--resume": "", "--adapter": ""},
        **{"--chat-template": ("turns.jsonl", "--chat-template turns.jinja --document-end 0")},
        **{"--save-every": "--save-every 1", "--eval-every": "--eval-every 1", "--eval-batches": None},
        **{"--tensorboard": "--tensorboard events", "--keep-best": "--keep-best --eval-every 1"},
        **{
            "--metric": "--metric loss --keep-best --eval-every 1",
            "--patience": "--patience 1 --eval-every 1",
        },
        **{"--keep": "--keep 1", "--precision": "--precision bf16", "--lora": "--lora 2"},
        **{"--quantize": "--lora 2 --quantize nf4", "--lora-targets": "--lora 2 --lora-targets all-linear"},
        **{
            "--rslora": "--lora 2 --rslora",
            "--lora-alpha": "--lora 2 --lora-alpha 4",
            "--group": "--group norms:lr=2",
        },
        **{"--lora-dropout": "--lora 2 --lora-dropout 0.1", "--freeze": "--freeze norms"},
        **{"--optimizer": "--optimizer lion", "--beta1": "--beta1 0.8", "--beta2": "--beta2 0.9"},
        **{"--momentum": "--optimizer sgd --momentum 0.5", "--weight-decay": "--weight-decay 0.2"},
        **{"--states": "--states 8", "--fused-update": "--fused-update", "--clip": "--clip 0.5"},
        **{"--label-smoothing": "--label-smoothing 0.1", "--recompute": "--recompute full"},
        **{"--host-memory": "--host-memory 1MiB", "--dropout": "--dropout 0.1", "--seed": "--seed 5"},
        **{"--task": ("labels.csv", "--task label"), "--mask-rate": "", "--attention": "--attention own"},
        **{"--preference": ("pairs.jsonl", "--document-end 0 --preference dpo")},
        **{"--answer-share": ("pairs.jsonl", "--document-end 0 --answer-share 0.1")},
        **{"--margin": ("pairs.jsonl", "--document-end 0 --preference simpo --margin 1")},
        **{"--device": "--device cpu", "--threads": None, "--from-scratch": ""},
        **{"--batch-examples": "", "--data-format": "--data-format text", "--max": ""},
        **{"--deterministic-check": "--deterministic-check 1", "--tokens": None},
        **{"--label-names": ("labels.csv", "--label-names a,b")},
    }
    files = {
        "text.txt": TEXT,
        "labels.csv": table("text,label", lambda i: f"ship {i} sails,{'ab'[i % 2]}"),
        "turns.jsonl": lines(
            {"messages": [{"role": "user", "content": "ship"}, {"role": "assistant", "content": "yes"}]}
            for _ in range(40)
        ),
        "turns.jinja": "{% for m in messages %}[{{ m.role }}]{{ m.content }}\n{% endfor %}",
        "pairs.jsonl": lines(
            {"prompt": f"{i}? ", "chosen": f"yes {i}.", "rejected": f"no {i}."} for i in range(40)
        ),
    }

    def test_flags_of_other_trainers(self):
        for name, content in self.files.items():
            self.write(name, content)
        self.call(TRAIN.replace("OUT", "start"))
        wrong = self.call(f"{TRAIN} {' '.join(f'--{name}=1' for name in FIELDS)}", anyhow=True)
        named = set()
        for line in wrong.stderr.splitlines():
            if "there is no such flag" in line:
                named |= set(re.findall(r"--[a-z][a-z0-9-]*", line.split("there is no such flag")[1]))
        self.assertGreater(len(named), 40)
        for flag in sorted(named):
            with self.subTest(flag=flag):
                self.assertIn(flag, self.words)
                words = self.words[flag]
                if words:
                    data, words = ("text.txt", words) if isinstance(words, str) else words
                    model = "start" if "--lora" in words else "nano"
                    command = TRAIN.replace("text.txt", data).replace("nano", model)
                    steps(2)(self, self.call(f"{command} {words}"))
