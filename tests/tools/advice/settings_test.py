"""Advices about the settings of a run: rates, schedules, optimizers, evaluations, plans and folders."""

import json
import re

from .rows import (
    Advice,
    AdviceTest,
    instead,
    other_than,
    planned,
    plus,
    prints,
    run,
    same_as,
    steps,
    without,
    wrote,
)

TEXT = "".join(f"{i} ships lie in the hold where the plan says {i * 7 % 11}.\n" for i in range(200))
LABELS = "text,label\n" + "".join(f"ship {i} sails,{'abc'[i % 3]}\n" for i in range(60))
RUN = "--batch 2 --seq 16 --vram 32MiB --threads 1 --eval-batches 1 --out OUT"
TRAIN = f"train --model nano --data text.txt {RUN}"
TWO = f"{TRAIN} --steps 2"
PLAN = "plan --model nano --batch 2 --seq 16 --vram 32MiB --threads 1 --json"
FOUR = f"{TRAIN} --steps 4 --lr 1e-3 --warmup 0"
BY_PLAN = "train --model nano --data text.txt --eval-batches 1 --threads 1 --steps 2 --out OUT"
DIVERGES = f"{TRAIN} --warmup 0 --lr 1e6 --optimizer sgd --clip 0 --schedule constant"
NO_EVALUATION = TRAIN.replace("--eval-batches 1 ", "")
LABELLED = f"{TRAIN.replace('text.txt', 'labels.csv')} --steps 3"


def rates(*expected):
    """The learning rate of each step."""

    def check(test, done):
        found = [line["lr"] for line in done.metrics() if "lr" in line]
        test.assertEqual(len(found), len(expected))
        for one, other in zip(found, expected):
            test.assertAlmostEqual(one, other, places=9)

    return check


def evaluated(*at):
    """The steps after which there was an evaluation."""

    def check(test, done):
        test.assertEqual([line["step"] for line in done.metrics() if "eval_loss" in line], list(at))

    return check


def lowest_rate(lowest):
    def check(test, done):
        found = [line["lr"] for line in done.metrics() if "lr" in line]
        test.assertGreaterEqual(min(found), lowest)
        test.assertLess(min(found), found[0])

    return check


def resumed(count):
    """The steps of the resumed run, in its new folder."""

    def check(test, done):
        test.assertEqual([line["step"] for line in done.metrics() if "loss" in line][-1], count)

    return check


def finite_evaluation(test, done):
    test.assertLess(done.metrics()[-1]["eval_loss"], 20)


ROWS = [
    # What every run needs.
    Advice(
        "--steps is required: the number of global batches to train on; or --epochs",
        TRAIN,
        plus("--steps 2", steps(2)),
        plus("--epochs 0.01", prints(r"steps +\d+, which go 0\.01\d* times over the data")),
    ),
    Advice("--steps excludes --epochs", f"{TWO} --epochs 1", without("--epochs 1", steps(2))),
    Advice(
        "--batch is required: the number of samples of one optimizer step",
        "plan --model gpt2 --seq 64 --vram 8GiB --threads 1 --json",
        plus("--batch 4", planned(global_batch=4)),
    ),
    Advice(
        "--out is required: the folder to write into",
        "train --model nano --data text.txt --batch 2 --seq 16 --vram 32MiB --eval-batches 1 --steps 2",
        plus("--out OUT", steps(2)),
    ),
    Advice(
        "--model is required",
        "plan --batch 2 --seq 16 --vram 32MiB --threads 1 --json",
        plus("--model nano", planned(global_batch=2, sequence=16)),
    ),
    Advice(
        "--vram: expected more than 0 bytes",
        "plan --model nano --batch 2 --seq 16 --vram 0 --threads 1 --json",
        instead("--vram 0", "--vram 32MiB", planned(budget=32 << 20)),
    ),
    # Learning rates.
    Advice(
        "--decay-steps: is for --schedule wsd",
        f"{FOUR} --decay-steps 2",
        plus("--schedule wsd", rates(1e-3, 1e-3, 1e-3, 5.5e-4)),
        without("--decay-steps 2", lowest_rate(1e-4), steps(4)),
    ),
    Advice(
        "--min-lr: --schedule constant has one learning rate; leave one of them out",
        f"{FOUR} --schedule constant --min-lr 1e-4",
        without("--min-lr 1e-4", rates(1e-3, 1e-3, 1e-3, 1e-3)),
        without("--schedule constant", lowest_rate(1e-4)),
    ),
    Advice(
        "--min-lr {}: expected at most --lr {}",
        f"{FOUR} --min-lr 1",
        instead("--min-lr 1", "--min-lr 0.001", rates(1e-3, 1e-3, 1e-3, 1e-3)),
    ),
    Advice(
        "--min-lr {}: expected at most {}'s default learning rate, {}",
        f"{TWO} --min-lr 1",
        instead("--min-lr 1", "--min-lr 0.0003", rates(3e-4, 3e-4)),
    ),
    Advice(
        "--warmup {}: longer than --steps {}",
        f"{TWO} --warmup 3",
        instead("--warmup 3", "--warmup 2", steps(2)),
    ),
    Advice(
        "--warmup {} and --decay-steps {}: together longer than --steps {}",
        f"{TWO} --schedule wsd --warmup 1 --decay-steps 2",
        instead("--decay-steps 2", "--decay-steps 1", steps(2)),
    ),
    Advice(
        "--lr-batch {}: scales the learning rate {} to {} for batches of {}; expected at most {}",
        f"{TRAIN} --steps 1 --warmup 0 --lr 1e6 --lr-batch 1",
        instead("--lr-batch 1", "--lr-batch 2", rates(1e6)),
    ),
    Advice(
        "the last {} batches were skipped, because their loss or gradients are not finite: the run has "
        "diverged; give "
        "a smaller --lr, or a longer --warmup",
        f"{DIVERGES} --steps 15",
        instead("--lr 1e6", "--lr 1e-3", steps(15), finite_evaluation),
    ),
    Advice(
        "the last {} batches changed nothing, because their loss or gradients are not finite: the run has "
        "diverged; "
        "give a smaller --lr, or a longer --warmup; saved after batch {}, --resume {} continues from there",
        f"{DIVERGES} --steps 300",
        instead("--lr 1e6", "--lr 1e-3", steps(300), finite_evaluation),
    ),
    Advice(
        "the evaluation loss is not finite: the run has diverged, and its model is of no use; give a "
        "smaller --lr, or "
        "a longer --warmup",
        f"{TRAIN} --steps 3 --warmup 0 --lr 1e6 --weight-decay 1e6 --clip 0",
        instead("--lr 1e6 --weight-decay 1e6", "--lr 1e-3 --weight-decay 0", steps(3), finite_evaluation),
    ),
    # Optimizers and losses.
    Advice(
        "--momentum: is for --optimizer {}, not for {}",
        f"{TWO} --momentum 0.5",
        plus("--optimizer sgd", same_as(f"{TWO} --optimizer sgd --momentum 0.5")),
        plus("--optimizer muon", same_as(f"{TWO} --optimizer muon --momentum 0.5")),
    ),
    Advice(
        "--nesterov: is for --optimizer {}, not for {}",
        f"{TWO} --nesterov",
        plus("--optimizer sgd --momentum 0.9", other_than(f"{TWO} --optimizer sgd --momentum 0.9")),
    ),
    Advice(
        "--nesterov: needs a --momentum above 0",
        f"{TWO} --optimizer sgd --nesterov --momentum 0",
        instead("--momentum 0", "--momentum 0.9", other_than(f"{TWO} --optimizer sgd --momentum 0.9")),
    ),
    Advice(
        "--beta1: is for --optimizer {}, not for {}",
        f"{TWO} --optimizer sgd --beta1 0.5",
        instead("--optimizer sgd", "--optimizer adamw", other_than(TWO)),
        instead("--optimizer sgd", "--optimizer lion", other_than(f"{TWO} --optimizer lion")),
        without("--beta1 0.5", planned(optimizer="sgd"), steps(2)),
    ),
    Advice(
        "--beta2: is for --optimizer {}, not for {}",
        f"{TWO} --optimizer sgd --beta2 0.5",
        instead("--optimizer sgd", "--optimizer adamw", other_than(TWO)),
    ),
    Advice(
        "--loss-scale: is for --precision fp16",
        f"{TWO} --loss-scale 1024",
        plus("--precision fp16", steps(2), planned(precision="fp16")),
    ),
    Advice(
        "--loss-scale {}: expected a power of two from 1 to 1e30",
        f"{TWO} --precision fp16 --loss-scale 1000",
        instead("--loss-scale 1000", "--loss-scale 1024", steps(2)),
    ),
    Advice(
        "--non-finite stop: fp16 finds its loss scale by steps that are not finite; skip them, or train in "
        "bf16",
        f"{TWO} --precision fp16 --non-finite stop",
        instead("--non-finite stop", "--non-finite skip", steps(2)),
        instead("--precision fp16", "--precision bf16", steps(2), planned(precision="bf16")),
    ),
    Advice(
        "--skip-outliers {}: expected more than 1 standard deviation",
        f"{TWO} --skip-outliers 1",
        instead("--skip-outliers 1", "--skip-outliers 2", steps(2)),
    ),
    Advice(
        "--fused-update: the norm of the gradients is not known before the update, so they cannot be "
        "clipped; "
        "use --clip 0, or leave one of the two out",
        f"{TWO} --fused-update --clip 1",
        instead("--clip 1", "--clip 0", same_as(f"{TWO} --fused-update")),
        without("--clip 1", steps(2), planned(fused_update=True)),
        without("--fused-update", same_as(TWO)),
    ),
    Advice(
        "--fused-update: the norm of the gradients is not known before the update; leave out --skip-outliers",
        f"{TWO} --fused-update --skip-outliers 3",
        without("--skip-outliers 3", planned(fused_update=True), steps(2)),
    ),
    Advice(
        "--plan {}: has a fused update: the norm of the gradients is not known before the update; leave out "
        "--skip-outliers",
        f"{BY_PLAN} --plan fused.json --skip-outliers 3",
        without("--skip-outliers 3", same_as(f"{TWO} --fused-update")),
    ),
    Advice(
        "--plan {}: has a fused update: the norm of the gradients is not known before the update; leave out "
        "--clip",
        f"{BY_PLAN} --plan fused.json --clip 1",
        without("--clip 1", same_as(f"{TWO} --fused-update")),
    ),
    Advice(
        "a fused update consumes each gradient inside the backward pass: it cannot undo a step that "
        "overflows; "
        "use bf16 instead of fp16",
        f"{PLAN} --fused-update --precision fp16",
        instead("--precision fp16", "--precision bf16", planned(precision="bf16", fused_update=True)),
    ),
    Advice(
        "a fused update consumes each gradient inside the backward pass: no gradients remain to be kept in "
        "bf16; use fp32 gradients",
        f"{PLAN} --fused-update --gradients bf16",
        instead("--gradients bf16", "--gradients fp32", planned(gradients="fp32", fused_update=True)),
    ),
    Advice(
        "a fused update consumes each gradient inside the backward pass: the step is one micro-step; leave "
        "the "
        "micro-batch unset, or set it to the global batch {}",
        f"{PLAN} --fused-update --micro-batch 1",
        without("--micro-batch 1", planned(micro_batch=2, fused_update=True)),
        instead("--micro-batch 1", "--micro-batch 2", planned(micro_batch=2, fused_update=True)),
    ),
    Advice(
        "a fused update consumes each gradient inside the backward pass: it cannot use host memory; set host "
        "memory to 0",
        f"{PLAN} --fused-update --host-memory 1MiB",
        instead("--host-memory 1MiB", "--host-memory 0", planned(host_bytes=0, fused_update=True)),
    ),
    Advice(
        "a master with fewer bits needs precision bf16; {} always keeps the whole master",
        f"{PLAN} --master split8",
        plus("--precision bf16", planned(master="split8", precision="bf16")),
    ),
    Advice(
        "optimizer {} has no 8-bit states; use 32 or auto",
        f"{PLAN} --optimizer adafactor --states 8",
        instead("--states 8", "--states 32", planned(optimizer="adafactor", state_bits=32)),
        instead("--states 8", "--states auto", planned(optimizer="adafactor", state_bits=32)),
    ),
    Advice(
        "micro-batch {} is larger than the global batch {}",
        f"{PLAN} --micro-batch 3",
        instead("--micro-batch 3", "--micro-batch 2", planned(micro_batch=2)),
    ),
    # Evaluations.
    Advice(
        "--keep-best: with --eval-batches 0 there are no evaluations; leave one of them out",
        f"{NO_EVALUATION} --steps 2 --eval-batches 0 --keep-best",
        without("--keep-best", steps(2), evaluated()),
        without("--eval-batches 0", steps(2), evaluated(2)),
    ),
    Advice(
        "--patience: with --eval-batches 0 there are no evaluations; leave one of them out",
        f"{NO_EVALUATION} --steps 2 --eval-batches 0 --patience 1",
        without("--patience 1", steps(2), evaluated()),
        without("--eval-batches 0", steps(2), evaluated(2)),
    ),
    Advice(
        "--metric {}: is for --keep-best and --patience",
        f"{LABELLED} --eval-every 1 --metric accuracy",
        plus("--keep-best", steps(3), evaluated(1, 2, 3)),
        plus("--patience 1", evaluated(1, 2, 3)),
    ),
    Advice(
        "--metric {}: evaluations of this model have {}",
        f"{TRAIN} --steps 3 --eval-every 1 --keep-best --metric accuracy",
        instead("--metric accuracy", "--metric loss", steps(3)),
    ),
    Advice(
        "--eval-tail: with --eval-batches 0 nothing is held out; leave one of them out",
        f"{NO_EVALUATION} --steps 2 --eval-batches 0 --eval-tail",
        without("--eval-tail", steps(2), evaluated()),
        without("--eval-batches 0", steps(2), evaluated(2)),
    ),
    Advice(
        "--eval-data excludes --eval-tail",
        f"{TWO} --eval-data text.txt --eval-tail",
        without("--eval-tail", evaluated(2)),
        without("--eval-data text.txt", evaluated(2)),
    ),
    Advice(
        "--keep-best: the run has {} steps and --eval-every {}, so it is evaluated only after its last step, "
        "and the weights of that step are written; give an --eval-every of at most {}",
        f"{TWO} --keep-best --eval-every 100",
        instead("--eval-every 100", "--eval-every 1", evaluated(1, 2)),
        run(f"{TWO} --keep-best --eval-every 1", evaluated(1, 2)),
    ),
    Advice(
        "--patience {}: the run has {} steps and --eval-every {}, which makes {} evaluation{} before the "
        "last one; it "
        "takes {} to end a run: give an --eval-every of at most {}",
        f"{FOUR} --patience 2 --eval-every 2",
        instead("--eval-every 2", "--eval-every 1", evaluated(1, 2, 3, 4)),
    ),
    Advice(
        "--patience {}: the run has {} steps and --eval-every {}, which makes {} evaluation{} before the "
        "last one; it "
        "takes {} to end a run: give --steps {} or more, and --eval-every 1",
        f"{FOUR} --patience 9",
        instead("--steps 4", "--steps 11 --eval-every 1", steps(11)),
    ),
    Advice(
        "--keep-best: the run has {} steps and --eval-every {}, so it is evaluated only after its last "
        "step, and the "
        "weights of that step are written; give --steps 2 or more, and --eval-every 1",
        f"{TRAIN} --steps 1 --keep-best",
        instead("--steps 1", "--steps 2 --eval-every 1", evaluated(1, 2)),
    ),
    # Folders.
    Advice(
        "{}/checkpoint.stw exists already: continue that run with --resume {}, replace it with "
        "--overwrite, or "
        "give another --out",
        f"{TWO.replace('OUT', 'done')} --seed 5",
        run("train --resume COPY:done --steps 4", steps(4)),
        run(f"{TWO.replace('OUT', 'COPY:done')} --seed 5 --overwrite", same_as(f"{TWO} --seed 5")),
        run(f"{TWO} --seed 5", steps(2)),
    ),
    Advice(
        "{} exists already: give another --out, or replace it with --overwrite",
        TWO.replace("OUT", "merged"),
        run(TWO, steps(2)),
        run(f"{TWO.replace('OUT', 'COPY:merged')} --overwrite", same_as(TWO)),
    ),
    Advice(
        "--out {}: cannot create the folder: {}",
        TWO.replace("OUT", "text.txt/run"),
        run(TWO, steps(2)),
    ),
    Advice(
        "--out {}: this is the model's own folder, which would be replaced",
        f"{TWO.replace('nano', 'done').replace('OUT', 'done')} --overwrite",
        run(f"{TWO.replace('nano', 'done')}", steps(2)),
    ),
    Advice(
        "{} {}: lies in --out {}, which would be replaced; give another --out",
        f"{TWO.replace('OUT', 'done').replace('text.txt', 'done/README.md')} --overwrite",
        run(TWO.replace("text.txt", "done/README.md"), steps(2)),
    ),
    Advice(
        "--overwrite: --resume {} continues the run in that folder; leave it out, or give another --out",
        "train --resume done --steps 4 --overwrite --out done",
        run("train --resume COPY:done --steps 4", steps(4)),
        run("train --resume done --steps 4 --overwrite --out OUT", resumed(4)),
    ),
    Advice(
        "--tensorboard {}: has the events of another run ({}), and TensorBoard would draw both as one curve: "
        "name a folder of this run's own, such as {}/2",
        f"{TWO} --tensorboard events",
        instead("--tensorboard events", "--tensorboard events/2", steps(2), wrote("events/2")),
    ),
    Advice(
        "--tensorboard {}: cannot create the folder: {}",
        f"{TWO} --tensorboard text.txt",
        instead("--tensorboard text.txt", "--tensorboard new-events", steps(2), wrote("new-events")),
    ),
    # What a run tells.
    Advice(
        "steps {}, which go {} times over the data; --epochs asks for {}, and every step takes a whole batch",
        f"{LABELLED.replace('--steps 3', '--epochs 0.01')}",
        instead("--epochs 0.01", "--steps 1", steps(1)),
    ),
    Advice(
        "batch {} samples of {} tokens, which hold {} {} on average; --batch-examples asks for {}",
        f"{LABELLED.replace('--batch 2', '--batch-examples 3')}",
        instead("--batch-examples 3", "--batch 3", planned(global_batch=3)),
    ),
    Advice(
        "--vram is {}, but the device {} has only {}: this plan can be made, but a run of it does not fit "
        "here",
        "plan --model nano --batch 2 --seq 16 --vram 900TiB --threads 1",
        instead("--vram 900TiB", "--vram 32MiB", prints("of 32 MiB|of 32.00 MiB")),
    ),
    # Relaxations. tests/tools/plans/relaxations_test.py follows every line of many requests.
    Advice(
        "instead {}: {} tokens/s, peak {}; {}",
        "plan --model nano --batch 2 --seq 16 --vram 8MiB --threads 1",
        plus("--fused-update", prints("of 8.00 MiB")),
        plus("--optimizer adafactor", prints("of 8.00 MiB")),
        plus("--host-memory 2MiB", prints("of 8.00 MiB")),
    ),
    Advice(
        "instead {}: not enough, needs {}, {} more than the budget",
        "plan --model nano --batch 2 --seq 16 --vram 1KiB --threads 1",
        instead("--vram 1KiB", "--vram 32MiB", prints("of 32.00 MiB")),
    ),
    Advice(
        '"flags": "{}",',
        "plan --model nano --batch 2 --seq 16 --vram 8MiB --threads 1 --json",
        plus("--fused-update", prints('"fits": true')),
    ),
    Advice(
        "not even a sequence of one token fits; with {} it does",
        "plan --model nano --batch 2 --vram 8MiB --threads 1 --max seq",
        plus("--host-memory 2MiB", prints("longest sequence that fits")),
    ),
    Advice(
        "--vram is {}, but the device {} has only {}: this plan can be made, but a run of it does not fit "
        "there",
        "plan --model nano --batch 2 --seq 16 --vram 9GiB --device rtx4060",
        instead("--vram 9GiB", "--vram 8GiB", prints("of 8.00 GiB")),
    ),
    # Plans.
    Advice(
        "--device {}: the plan has its own profile; leave one of them out",
        f"{BY_PLAN} --plan plain.json --device here.json",
        without("--device here.json", same_as(TWO)),
        run(f"{TWO} --states 32 --device here.json", same_as(f"{TWO} --states 32")),
    ),
    Advice(
        "--device {}: this profile is for planning only; use cpu or cuda",
        f"{TWO.replace('32MiB', '2GiB')} --device h100",
        instead("--device h100", "--device cpu", same_as(TWO)),
    ),
    Advice(
        "{}: --max model tries the presets, not files; leave one of the two out",
        "plan --model nano --max model --batch 2 --seq 16 --vram 32MiB --threads 1",
        without("--model nano", prints("nano")),
        without("--max model", prints("step +2 samples of 16 tokens")),
    ),
    Advice(
        "--seq: --max seq searches for it; leave one of the two out",
        "plan --model nano --max seq --batch 2 --seq 16 --vram 32MiB --threads 1",
        without("--seq 16", prints(r"longest sequence that fits: 256 of the model's 256 positions")),
        without("--max seq", prints("step +2 samples of 16 tokens")),
    ),
    Advice(
        "--seq {}: the model has {} positions",
        "plan --model nano --batch 2 --seq 2000 --vram 64MiB --threads 1 --json",
        instead("--seq 2000", "--seq 256", planned(sequence=256)),
    ),
    Advice(
        "--document-end {}: this is outside the model's vocabulary of {}",
        f"{PLAN} --document-end 256",
        instead("--document-end 256", "--document-end 255", planned(inputs=["positions"])),
    ),
    Advice(
        "--document-end: --plan {} was made without it",
        f"{BY_PLAN} --plan plain.json --document-end 10",
        without("--document-end 10", same_as(TWO)),
        instead("--plan plain.json", "--plan documents.json", same_as(f"{TWO} --document-end 10")),
    ),
    Advice(
        "{}: this describes a model; give --model, the model of both plans",
        "plan --compare plain.json fused.json --lora 4",
        without("--lora 4", prints("fused")),
        run(
            "plan --compare lora.json lora.json --lora 4 --model nano", prints(r"parameters +891648 +891648")
        ),
    ),
    Advice(
        "{}: expected a plan that `stowage plan --json` wrote",
        "plan --compare text.txt fused.json",
        instead("text.txt", "plain.json", prints("fused")),
    ),
    Advice(
        "The plan was not checked. Give its model with --model to check it and to see the whole report.",
        "inspect plain.json",
        plus("--model nano", prints("memory at the peak")),
    ),
    Advice(
        "wrote {}: plan and train with --device {}",
        "calibrate --model nano --batch 2 --seq 16 --vram 32MiB --threads 1 --out calibrated.json",
        run(f"{PLAN} --device calibrated.json", planned(global_batch=2)),
        run(f"{TWO} --states 32 --device calibrated.json", same_as(f"{TWO} --states 32")),
    ),
]


# Its test runs where there is no GPU.
NO_GPU = Advice("--device {}: this machine has no such device ({}); see `stowage devices`", "")
ALL_ROWS = [*ROWS, NO_GPU]


class SettingsTest(AdviceTest):
    rows = ROWS
    files = {"text.txt": TEXT, "labels.csv": LABELS}
    prepare = (
        TWO.replace("OUT", "done"),
        TWO.replace("OUT", "merged"),
        f"{TWO} --tensorboard events",
        "calibrate --model nano --batch 2 --seq 16 --vram 32MiB --threads 1 --out here.json",
    )
    plans = {"plain": "", "fused": "--fused-update", "documents": "--document-end 10", "lora": "--lora 4"}

    def prepare_more(self):
        (self.folder / "merged/checkpoint.stw").unlink()
        for name, words in self.plans.items():
            self.write(f"{name}.json", self.call(f"{PLAN} {words}").stdout)

    def test_rows(self):
        self.follow_rows()

    def test_a_device_that_is_not_there(self):
        listed = self.call("devices").stdout
        if re.search("(?m)^cuda ", listed):
            self.skipTest("there is a GPU")
        self.write("text.txt", TEXT)
        self.assertTrue(NO_GPU.is_in(self.call(f"{TWO} --device cuda", anyhow=True).lines()))
        for device in re.findall("(?m)^(cpu) ", listed):
            steps(2)(self, self.call(f"{TWO} --device {device}"))

    def test_a_plan_that_does_not_fit(self):
        def fits(words):
            return json.loads(self.call(f"{words} --json", anyhow=True).stdout)["fits"]

        plan = "plan --model gpt2 --batch 16 --seq 512 --threads 1 --vram {}"
        for budget in ("1400MiB", "1200MiB"):
            said = self.call(plan.format(budget), anyhow=True).stdout
            named = re.search(r"the smallest budget that works is .* \(([\d,]+) bytes\)", said)[1]
            smallest = int(named.replace(",", ""))
            self.assertTrue(fits(plan.format(smallest)))
            self.assertFalse(fits(plan.format(smallest - 1)))
            changes = re.findall(r"instead +(--[^:]*): [0-9.,]+ tokens/s", said)
            self.assertTrue(changes)
            for flags in changes:
                words = f"{plan.format(budget)} {flags}"
                with self.subTest(follows=words):
                    self.assertTrue(fits(words))
