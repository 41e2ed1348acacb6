"""The best evaluation of a run: its weights, patience, checkpoints that are kept, events for TensorBoard, and
the model card."""

import json
import os
import pathlib
import random
import re
import shutil
import signal
import struct
import subprocess
import time

from support import SMALL, STOWAGE, USAGE, CommandTest, count_in

EVERY = ["--eval-every", 5, "--schedule", "constant", "--warmup", 1]


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(data):
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def fields_of(data):
    """(number, value) of each field of a protocol buffer."""
    at, fields = 0, []

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        key = varint()
        if key & 7 == 0:
            value = varint()
        else:
            size = {1: 8, 5: 4}.get(key & 7) or varint()
            value, at = data[at : at + size], at + size
        fields.append((key >> 3, value))
    return fields


class BestTest(CommandTest):
    def losses(self, out):
        return {line["step"]: line["eval_loss"] for line in self.metrics(out) if "eval_loss" in line}

    def table(self):
        draw = random.Random(3)
        kinds = {"air": ["wind", "west", "turn"], "sea": ["ship", "sails", "crew"]}
        rows = [
            (" ".join(draw.choices(kinds[label], k=3)), label) for label in draw.choices(list(kinds), k=200)
        ]
        return self.write("table.csv", "text,label\n" + "".join(f"{text},{label}\n" for text, label in rows))

    def test_the_weights_of_the_best_evaluation_are_written(self):
        self.assertEqual(crc32c(b"123456789"), 0xE3069283)
        words = ["--steps", 30, "--lr", "2e-2", *EVERY]  # too large a rate: the last step is not the best one
        output = self.train("best", *words, "--keep-best").stdout
        losses = self.losses("best")
        step = min(losses, key=losses.get)
        self.assertNotEqual(step, 30)
        self.assertIn(
            f"best        step {step}, with the loss {losses[step]:.6g}: its weights are written\n", output
        )
        # The weights are those of a run that ends there. The flag does not change the bits of the run itself.
        self.train("short", *words[2:], "--steps", step)
        self.assertEqual(self.weights("best"), self.weights("short"))
        self.train("last", *words)
        self.assertEqual(self.metrics("last")[-2]["loss"], self.metrics("best")[-2]["loss"])
        self.assertEqual(self.losses("last"), losses)
        # An interrupted run has the same result.
        self.train("parts", *words[2:], "--steps", 15, "--keep-best")
        self.run_command("train", "--resume", self.path("parts"), "--steps", 30)
        self.assertEqual(self.weights("parts"), self.weights("best"))
        self.assertEqual(self.losses("parts"), losses)
        # The same when resumed into another folder. If the best weights are missing, the output reports it.
        self.train("first", *words[2:], "--steps", 15, "--keep-best")
        self.run_command("train", "--resume", self.path("first"), "--out", self.path("second"), "--steps", 30)
        self.assertEqual(self.weights("second"), self.weights("best"))
        os.remove(self.path("first/checkpoints/best.stw"))
        output = self.run_command("train", "--resume", self.path("first"), "--steps", 16).stdout
        if min(self.losses("first"), key=self.losses("first").get) < 15:
            self.assertIn("were not kept; that evaluation does not count", output)

    def test_a_run_that_a_signal_stops_writes_its_best_weights(self):
        words = [*SMALL, "--data", self.text(), "--lr", "2e-2", *EVERY, "--keep-best"]
        process = subprocess.Popen(
            [STOWAGE, *map(str, ["train", *words, "--steps", 1000000, "--out", self.path("run")])],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.addCleanup(lambda: (process.poll() is None and process.kill(), process.communicate()))
        metrics = self.folder / "run/metrics.jsonl"
        while process.poll() is None and count_in(metrics, b"eval_loss") < 3:
            time.sleep(0.002)
        process.send_signal(signal.SIGTERM)
        output = process.communicate(timeout=60)[0].decode()
        self.assertEqual(process.returncode, 143)
        losses = self.losses("run")
        step = min(losses, key=losses.get)
        self.assertIn(
            f"best        step {step}, with the loss {losses[step]:.6g}: its weights are written\n", output
        )
        stopped = int(
            re.search(r"stopped after ([\d,]+) of 1,000,000 batches and saved", output)[1].replace(",", "")
        )
        self.run_command("train", *words, "--steps", step, "--out", self.path("short"))
        self.assertEqual(self.weights("run"), self.weights("short"))
        self.run_command("train", "--resume", self.path("run"), "--steps", stopped + 7)
        self.run_command("train", *words, "--steps", stopped + 7, "--out", self.path("whole"))
        self.assertEqual(
            (self.losses("run"), self.weights("run")), (self.losses("whole"), self.weights("whole"))
        )

    def test_patience_ends_a_run(self):
        words = ["--steps", 200, "--lr", "2e-2", *EVERY]
        output = self.train("run", *words, "--patience", 3, "--keep-best").stdout
        losses = self.losses("run")
        steps = sorted(losses)
        best = min(losses, key=losses.get)
        self.assertEqual(steps[-1], best + 15)
        self.assertIn(
            f"ended early after {steps[-1]} of 200 batches: 3 evaluations in a row were no better", output
        )
        # Resuming does not continue this run, unless it gets more patience.
        before = self.weights("run")
        self.run_command("train", "--resume", self.path("run"))
        self.assertEqual((self.weights("run"), self.losses("run")), (before, losses))
        self.run_command("train", "--resume", self.path("run"), "--patience", 4)
        self.assertGreater(max(self.losses("run")), steps[-1])

    def test_warns_of_too_few_evaluations(self):
        lines = self.train("run", "--steps", 8, "--patience", 3, "--keep-best").stderr.splitlines()
        self.assertEqual(
            lines,
            [
                "stowage: warning: --keep-best: the run has 8 steps and --eval-every 250, "
                "so it is evaluated only after its last step, and the weights of that step are written; "
                "give an --eval-every of at most 7",
                "stowage: warning: --patience 3: the run has 8 steps and --eval-every 250, "
                "which makes 0 evaluations before the last one; it takes 4 to end a run: "
                "give an --eval-every of at most 1",
            ],
        )
        for every, steps, patience, count in ((2, 8, 2, 0), (2, 8, 3, 1), (0, 8, 1, 1)):
            warnings = self.train(
                "run", "--steps", steps, "--eval-every", every, "--patience", patience, "--overwrite"
            ).stderr
            self.assertEqual(warnings.count("warning: --patience"), count, warnings)

    def test_a_metric_of_the_task_decides(self):
        output = self.run_command(
            "train",
            *SMALL[:-2],
            "--data",
            self.table(),
            "--out",
            self.path("run"),
            "--steps",
            20,
            *EVERY,
            "--keep-best",
            "--metric",
            "f1_macro",
        ).stdout
        values = {line["step"]: line["eval_f1_macro"] for line in self.metrics("run") if "eval_loss" in line}
        best = max(values, key=values.get)  # the first one of equal values
        self.assertIn(f"best        step {best}, with the f1_macro {values[best]:.6g}: ", output)
        train = ["train", *SMALL[:-2], "--steps", 1, "--out", self.path("no"), "--data"]
        self.refused(
            *train,
            self.path("table.csv"),
            "--keep-best",
            "--metric",
            "rmse",
            expect=USAGE,
            says=[
                "--metric rmse: evaluations of this model have loss, accuracy, f1_macro, f1_micro, "
                "matthews, f1"
            ],
        )
        self.refused(
            *train,
            self.path("table.csv"),
            "--metric",
            "accuracy",
            expect=USAGE,
            says=["is for --keep-best and --patience"],
        )
        self.refused(
            *train,
            self.path("table.csv"),
            "--patience",
            2,
            "--eval-batches",
            0,
            expect=USAGE,
            says=["--patience: with --eval-batches 0 there are no evaluations"],
        )

    def test_an_evaluation_without_a_target_does_not_count(self):
        # In the last tenth every token ends a document. A token after such an end is not learned, so no
        # target is left.
        data = self.write("text.txt", "the hold\n" * 400 + "\n" * 500)
        output = self.run_command(
            "train",
            "--model",
            "nano",
            "--data",
            data,
            "--document-end",
            10,
            "--batch",
            2,
            "--seq",
            32,
            "--vram",
            "32MiB",
            "--threads",
            2,
            "--steps",
            3,
            "--eval-every",
            1,
            "--patience",
            1,
            "--keep-best",
            "--out",
            self.path("run"),
        ).stdout
        self.assertEqual(list(self.losses("run")), [1, 2, 3])
        self.assertIn(
            "best        no evaluation has the metric loss: the weights of the last step are written\n",
            output,
        )
        self.assertNotIn("ended early", output)
        self.assertNotIn("evaluation on", self.read("run", "README.md"))

    def test_the_last_checkpoints_are_kept(self):
        self.train("run", "--steps", 10, "--save-every", 2, "--keep", 3)
        self.assertEqual(sorted(os.listdir(self.path("run/checkpoints"))), ["10.stw", "6.stw", "8.stw"])
        self.assertEqual(
            (self.folder / "run/checkpoints/10.stw").read_bytes(),
            (self.folder / "run/checkpoint.stw").read_bytes(),
        )
        # A run can be resumed from each.
        after = self.weights("run")
        shutil.copy(self.path("run/checkpoints/6.stw"), self.path("run/checkpoint.stw"))
        self.run_command("train", "--resume", self.path("run"))
        self.assertEqual(self.weights("run"), after)
        self.refused(
            "train",
            *SMALL,
            "--data",
            self.text(),
            "--steps",
            1,
            "--out",
            self.path("run"),
            says=["exists already"],
        )
        self.train("run", "--steps", 1, "--overwrite")
        self.assertFalse(os.path.exists(self.path("run/checkpoints")))

    def events(self):
        scalars, starts = {}, []
        for path in sorted(
            pathlib.Path(self.path("events")).iterdir(), key=lambda file: file.stat().st_mtime_ns
        ):
            self.assertIn(".tfevents.", path.name)
            data, at, first = path.read_bytes(), 0, True
            while at < len(data):
                (size, crc) = struct.unpack_from("<QI", data, at)
                self.assertEqual(crc, masked(data[at : at + 8]))
                event = data[at + 12 : at + 12 + size]
                self.assertEqual(struct.unpack_from("<I", data, at + 12 + size)[0], masked(event))
                at += 16 + size
                fields = dict(fields_of(event))
                self.assertGreater(struct.unpack("<d", fields[1])[0], 1.6e9)
                if first:
                    self.assertEqual(fields[3], b"brain.Event:2")
                elif 7 in fields:
                    starts.append((fields[2], dict(fields_of(fields[7]))))
                else:
                    value = dict(fields_of(dict(fields_of(fields[5]))[1]))
                    scalars[value[1].decode(), fields[2]] = struct.unpack("<f", value[2])[0]
                first = False
        return scalars, starts

    def test_events_are_those_of_the_metrics(self):
        self.train("run", "--steps", 6, "--eval-every", 4, "--tensorboard", self.path("events"))
        self.run_command("train", "--resume", self.path("run"), "--steps", 8)
        scalars, starts = self.events()
        self.assertEqual(starts, [(7, {1: 1})])
        single = lambda number: struct.unpack("<f", struct.pack("<f", number))[0]
        for line in self.metrics("run"):
            for name, tag in (
                ("loss", "train/loss"),
                ("lr", "train/lr"),
                ("grad_norm", "train/grad_norm"),
                ("eval_loss", "eval/loss"),
            ):
                if name in line:
                    self.assertEqual(scalars.pop((tag, line["step"])), single(line[name]))
        self.assertEqual(
            list(scalars), [("eval/loss", 6)][: len(scalars)]
        )  # the evaluation at the end of the first part; metrics.jsonl may not have it
        self.refused(
            "train",
            *SMALL,
            "--data",
            self.text(),
            "--steps",
            1,
            "--out",
            self.path("no"),
            "--tensorboard",
            self.path("text.txt"),
            says=["--tensorboard", "cannot create the folder"],
        )

    def test_a_new_run_needs_a_folder_of_events_of_its_own(self):
        self.train("run", "--steps", 2, "--tensorboard", self.path("events"))
        before = self.metrics("run")
        new = ["train", *SMALL, "--data", self.text(), "--steps", 2, "--overwrite", "--out", self.path("run")]
        self.refused(
            *new,
            "--tensorboard",
            self.path("events"),
            expect=USAGE,
            says=["has the events of another run", "as one curve", f"such as {self.path('events')}/2"],
        )
        self.assertEqual(self.metrics("run"), before)
        self.run_command(*new, "--tensorboard", self.path("events/2"))

    def test_tensorboard_reads_the_events(self):
        try:
            from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
        except ImportError:
            self.skipTest("there is no Python package tensorboard")
        self.train("run", "--steps", 6, "--eval-every", 4, "--tensorboard", self.path("events"))
        self.run_command("train", "--resume", self.path("run"), "--steps", 8)
        read = EventAccumulator(self.path("events"), size_guidance={"scalars": 0})
        read.Reload()
        single = lambda number: struct.unpack("<f", struct.pack("<f", number))[0]
        for name, tag in (("loss", "train/loss"), ("lr", "train/lr"), ("grad_norm", "train/grad_norm")):
            self.assertEqual(
                [(event.step, event.value) for event in read.Scalars(tag)],
                [(line["step"], single(line[name])) for line in self.metrics("run") if name in line],
            )
        self.assertLessEqual(
            {
                (line["step"], single(line["eval_loss"]))
                for line in self.metrics("run")
                if "eval_loss" in line
            },
            {(event.step, event.value) for event in read.Scalars("eval/loss")},
        )

    def test_a_model_card_describes_the_run(self):
        self.run_command(
            "train", *SMALL[:-2], "--data", self.table(), "--out", self.path("run"), "--steps", 10
        )
        card = self.read("run", "README.md")
        front, _, text = card.removeprefix("---\n").partition("\n---\n")
        self.assertIn("library_name: transformers\npipeline_tag: text-classification\n", front)
        last = self.metrics("run")[-1]
        self.assertIn(f"    - type: accuracy\n      value: {json.dumps(last['eval_accuracy'])}"[:40], front)
        for part in (
            "# run",
            "| labels | 2: air, sea |",
            "| data | table.csv: ",
            "| steps | 10 of 4 samples of 32 tokens, cosine schedule |",
            "fp32, adamw",
            "64 MiB",
            "| evaluation on table.csv | loss ",
        ):
            self.assertIn(part, text)
        self.assertNotIn(str(self.folder), card)
        # A folder in the Hub's cache has the name of its model. The name in a config is not used, because it
        # may be that of the model that its author began with.
        for folder, front_matter in (
            ("models--owner--name/snapshots/1", 'base_model: "owner/name"'),
            ("plain", None),
        ):
            shutil.copytree(self.folder / "run", self.folder / folder)
            config = json.loads(self.read("run", "config.json"))
            self.write(folder + "/config.json", json.dumps(config | {"_name_or_path": "someone/else"}))
            self.run_command(
                "train",
                *SMALL[2:-2],
                "--model",
                self.path(folder),
                "--data",
                self.table(),
                "--out",
                self.path("after"),
                "--steps",
                1,
                "--overwrite",
            )
            card = self.read("after", "README.md")
            self.assertNotIn("someone/else", card)
            if front_matter:
                self.assertIn(front_matter, card)
            else:
                self.assertNotIn("base_model", card)
        # A card that the user wrote is kept.
        self.write("own/README.md", "# My model\n")
        self.run_command(
            "train", *SMALL[:-2], "--data", self.table(), "--out", self.path("own"), "--steps", 2
        )
        self.assertEqual(self.read("own", "README.md"), "# My model\n")
        self.run_command("train", "--resume", self.path("own"), "--steps", 3)
        output = self.run_command(
            "train",
            *SMALL[:-2],
            "--data",
            self.table(),
            "--out",
            self.path("own"),
            "--steps",
            2,
            "--overwrite",
        ).stdout
        self.assertEqual(self.read("own", "README.md"), "# My model\n")
        self.assertNotIn("README.md", output)
        self.run_command("train", "--resume", self.path("run"), "--steps", 12)
        self.assertIn("| steps | 12 of ", self.read("run", "README.md"))
