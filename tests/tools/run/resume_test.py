"""Interruption at any moment: the saved run resumes to the same bits, also under another budget."""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time
import unittest

from support import FAILED, SMALL, STOWAGE, USAGE, CommandTest, count_in, files_of

STEPS = 60


class ResumeTest(CommandTest):
    def setUp(self):
        super().setUp()
        self.data = self.text()
        self.words = [
            "train",
            *SMALL,
            "--data",
            self.data,
            "--steps",
            STEPS,
            "--lr",
            "1e-3",
            "--eval-every",
            20,
        ]

    def start(self, out, *words):
        return self.start_words([*self.words, "--out", self.path(out), *words])

    def start_words(self, words):
        process = subprocess.Popen(
            [STOWAGE, *map(str, words)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.addCleanup(
            lambda: (
                process.poll() is None and process.kill(),
                process.stdout.close(),
                process.stderr.close(),
                process.wait(),
            )
        )
        return process

    def wait_for(self, process, out, lines):
        """Waits until the run has written that many lines of metrics, or has ended."""
        path = self.folder / out / "metrics.jsonl"
        for _ in range(6000):
            if process.poll() is not None:
                return
            if count_in(path, b"\n") >= lines:
                return
            time.sleep(0.005)
        self.fail("the run does not get on")

    def check_complete(self, out):
        self.assertEqual(self.weights(out), self.weights("whole"))
        lines = self.metrics(out)
        self.assertEqual([line["step"] for line in lines if "loss" in line], list(range(1, STEPS + 1)))
        self.assertEqual(
            [(line["step"], line["eval_loss"]) for line in lines if "eval_loss" in line],
            [(line["step"], line["eval_loss"]) for line in self.metrics("whole") if "eval_loss" in line],
        )

    def test_interrupt_and_resume(self):
        self.run_command(*self.words, "--out", self.path("whole"))
        process = self.start("run")
        self.wait_for(process, "run", 5)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        self.assertEqual(
            process.returncode, 130 if b"stopped after" in out else 0, err
        )  # 0: it ended before the signal
        self.assertIn(b"stopping this step", err)
        if b"stopped after" in out:
            self.assertIn(f"--resume {self.path('run')}".encode(), out)
        # Resumed into a new folder, with another micro-batch and the smallest budget.
        others = [word for pair in zip(SMALL[::2], SMALL[1::2]) if pair[0] != "--vram" for word in pair]
        self.run_command(
            "train",
            *others,
            "--vram",
            "14MiB",
            "--micro-batch",
            1,
            *self.words[1 + len(SMALL) :],
            "--out",
            self.path("copy"),
            "--resume",
            self.path("run"),
        )
        self.check_complete("copy")
        self.run_command(*self.words, "--resume", self.path("run"))
        self.check_complete("run")
        # A complete run is only evaluated again, and stays the same.
        self.run_command(*self.words, "--resume", self.path("run"))
        self.check_complete("run")

    def test_kill_and_resume(self):
        self.run_command(*self.words, "--out", self.path("whole"))
        process = self.start("run", "--save-every", 1)
        for lines in (7, 15, 21, 33):
            self.wait_for(process, "run", lines)
            process.kill()
            process.wait()
            self.assertTrue(os.path.exists(self.path("run/checkpoint.stw")))
            process = self.start("run", "--save-every", 1, "--resume", self.path("run"))
        out, err = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 0, out + err)
        self.check_complete("run")

    def test_a_missing_evaluation_is_made(self):
        words = [
            "train",
            *SMALL[:-2],
            "--data",
            self.data,
            "--lr",
            "1e-3",
            "--eval-every",
            20,
            "--schedule",
            "constant",
            "--warmup",
            1,
        ]
        long, short = ["--steps", 60, *SMALL[-2:]], ["--steps", 20, *SMALL[-2:]]
        evaluations = lambda out: [
            (line["step"], line["eval_loss"]) for line in self.metrics(out) if "eval_loss" in line
        ]
        self.run_command(*words, *long, "--out", self.path("whole"))
        self.run_command(*words, *short, "--out", self.path("run"))
        lines = [
            line for line in self.read("run", "metrics.jsonl").splitlines(True) if "eval_loss" not in line
        ]  # the state if the run is killed before the evaluation
        self.write("run/metrics.jsonl", "".join(lines))
        self.assertEqual(evaluations("run"), [])
        for _ in range(2):  # the second time no evaluation is missing
            self.run_command(*words, *long, "--resume", self.path("run"))
            self.assertEqual(evaluations("run"), evaluations("whole"))
            self.assertEqual([step for step, _ in evaluations("run")], [20, 40, 60])

    def test_another_schedule_reports_the_new_rate(self):
        words = [*SMALL, "--data", self.data, "--lr", "1e-3"]
        self.run_command("train", *words, "--steps", 10, "--out", self.path("run"))
        output = self.run_command("train", "--resume", self.path("run"), "--steps", 20).stdout
        rates = {line["step"]: line["lr"] for line in self.metrics("run") if "lr" in line}
        self.assertIn(
            f"step 11: the learning rate goes from {rates[10]:.4g} to {rates[11]:.4g}, "
            "because the schedule has changed: --steps 20 (before: 10)\n",
            output,
        )
        self.assertGreater(rates[11], 2 * rates[10])
        output = self.run_command(
            "train",
            "--resume",
            self.path("run"),
            "--steps",
            21,
            "--lr",
            "5e-4",
            "--warmup",
            3,
            "--schedule",
            "linear",
        ).stdout
        self.assertIn(
            "--steps 21 (before: 20), --lr 5e-4 (before: 1e-3), --warmup 3 (before: left out), "
            "--schedule linear (before: left out)\n",
            output,
        )
        # No report if the schedule is the same, or if the rate does not change.
        self.run_command(
            "train",
            *words,
            "--steps",
            6,
            "--schedule",
            "constant",
            "--warmup",
            1,
            "--out",
            self.path("constant"),
        )
        for more in (["--steps", 8], ["--steps", 9, "--lr", "1e-3"]):
            self.assertNotIn(
                "the learning rate goes",
                self.run_command("train", "--resume", self.path("constant"), *more).stdout,
            )

    def test_second_signal_ends_at_once(self):
        process = self.start("run", "--save-every", 2)
        self.wait_for(process, "run", 5)
        process.send_signal(signal.SIGSTOP)
        process.send_signal(signal.SIGINT)
        process.send_signal(
            signal.SIGTERM
        )  # a different signal, because equal pending signals are delivered only once
        process.send_signal(signal.SIGCONT)
        out, err = process.communicate(timeout=60)
        if b"stopped after" not in out and process.returncode != 0:
            self.assertIn(b"ended at once", err)
        self.assertIn(process.returncode, (0, 130, 143))
        self.run_command(*self.words, "--resume", self.path("run"))

    def test_numbers_of_the_run_are_kept(self):
        seed = 2**63 + 12345  # not exact as a double
        words = [
            "train",
            "--model",
            "nano",
            "--vram",
            "64MiB",
            "--threads",
            2,
            "--eval-batches",
            2,
            "--data",
            self.data,
            "--lr",
            "1e-3",
            "--warmup",
            2,
            "--schedule",
            "constant",
        ]
        numbers = ["--batch", 3, "--seq", 24, "--seed", seed]
        self.run_command(*words, *numbers, "--steps", 8, "--out", self.path("whole"))
        self.run_command(*words, *numbers, "--steps", 4, "--out", self.path("half"))
        before = files_of(self.path("half"))
        for flag, has, given in (("--batch", 3, 4), ("--seq", 24, 32), ("--seed", seed, 1337)):
            self.refused(
                *words,
                flag,
                given,
                "--steps",
                8,
                "--resume",
                self.path("half"),
                "--out",
                self.path("bad"),
                says=[flag, self.path("half"), str(has), str(given)],
            )
        other = self.run_command("plan", *SMALL[:-2], "--json").stdout
        self.refused(
            "train",
            "--model",
            "nano",
            "--data",
            self.data,
            "--steps",
            8,
            "--resume",
            self.path("half"),
            "--plan",
            self.write("plan.json", other),
            says=["plan.json", "batch", "3", "4"],
        )
        self.assertFalse(os.path.exists(self.path("bad")))
        self.assertEqual(files_of(self.path("half")), before)
        self.run_command(
            *words, *numbers, "--steps", 8, "--resume", self.path("half"), "--out", self.path("equal")
        )
        self.run_command(*words, "--steps", 8, "--resume", self.path("half"))
        for out in ("equal", "half"):
            self.assertEqual(self.weights(out), self.weights("whole"))

    def test_a_resumed_run_keeps_its_settings(self):
        data = self.write("odd \"name\" \\ of\n'data' \u00fc.txt", pathlib.Path(self.data).read_bytes())
        words = [
            "train",
            "--model",
            "nano",
            "--vram",
            "64MiB",
            "--threads",
            2,
            "--batch",
            3,
            "--seq",
            24,
            "--eval-batches",
            2,
            "--data",
            os.path.relpath(data),
            "--lr=2e-3",
            "--schedule",
            "wsd",
            "--decay-steps",
            2,
            "--warmup",
            1,
            "--optimizer",
            "sgd",
            "--nesterov",
            "--label-smoothing",
            0.1,
            "--freeze",
            "embeddings,norms",
            "--group",
            "blocks.0:lr=0.5,decay=0.01",
            "--group",
            "blocks.2-3:lr=0.25",
            "--document-end",
            10,
            "--steps",
            8,
        ]
        self.run_command(*words, "--out", self.path("whole"))
        process = self.start_words([*words, "--save-every", 1, "--out", self.path("run")])
        self.wait_for(process, "run", 3)
        process.kill()
        process.wait()
        # Resumed in another working folder, into another folder, with another budget; then in place.
        self.run_command(
            "train",
            "--resume",
            self.path("run"),
            "--out",
            self.path("copy"),
            "--vram",
            "14MiB",
            "--micro-batch",
            1,
            cwd=self.path("run"),
        )
        self.run_command("train", "--resume", self.path("run"))
        for out in ("copy", "run"):
            self.assertEqual(self.weights(out), self.weights("whole"))
        kept = [json.loads(self.read(out, "settings.json"))["options"] for out in ("run", "copy")]
        self.assertEqual(
            kept[0],
            {
                **kept[0],
                "data": [data],
                "lr": ["2e-3"],
                "nesterov": [],
                "decay-steps": ["2"],
                "group": ["blocks.0:lr=0.5,decay=0.01", "blocks.2-3:lr=0.25"],
                "vram": [str(64 << 20)],
            },
        )
        self.assertEqual(kept[1], {**kept[0], "vram": [str(14 << 20)], "micro-batch": ["1"]})
        for unkept in ("out", "resume", "overwrite"):
            self.assertNotIn(unkept, kept[0])
        output = self.run_command("inspect", self.path("run/settings.json")).stdout
        self.assertIn("\n  --nesterov\n", output)
        self.assertIn("\n  --group blocks.0:lr=0.5,decay=0.01\n  --group blocks.2-3:lr=0.25\n", output)
        self.refused(
            "inspect",
            self.write("cut.json", '{"format": "stowage-settings", "options": {'),
            says=["cut.json", "damaged"],
        )
        # A new flag replaces the old one, also one that it contradicts.
        self.run_command(
            "train", "--resume", self.path("run"), "--out", self.path("longer"), "--steps", 9, "--fast"
        )
        self.run_command("train", "--resume", self.path("longer"), "--steps=10", "--exact")
        self.assertEqual(
            [line["step"] for line in self.metrics("longer") if "loss" in line], list(range(1, 11))
        )
        self.assertNotIn("fast", json.loads(self.read("longer", "settings.json"))["options"])

    def test_required_flags(self):
        output = self.run_command("train", "--help").stdout
        for flag in ("--model MODEL", "--data FILE..."):
            self.assertIn(flag + " (required unless --resume)\n", output)
        self.assertIn("This or --epochs is required, unless --resume.", output)
        self.assertNotIn("(required)", output)
        self.assertIn("--model MODEL (required) ", self.run_command("eval", "--help").stdout)
        self.refused(
            "train", "--model", "nano", "--data", self.data, says=["--steps is required"], expect=USAGE
        )

    def test_settings_that_are_taken_back(self):
        words = [
            "train",
            *SMALL,
            "--data",
            self.data,
            "--lr",
            "1e-3",
            "--warmup",
            1,
            "--schedule",
            "constant",
            "--optimizer",
            "sgd",
        ]
        more = ["--nesterov", "--clip", 0.1, "--device", "cpu"]
        self.run_command(*words, *more, "--steps", 2, "--out", self.path("run"))
        self.run_command(
            *words,
            "--steps",
            4,
            "--resume",
            self.path("run"),
            "--out",
            self.path("plain"),
            "--no-nesterov",
            "--no-clip",
            "--no-device",
        )
        before = files_of(self.path("run"))
        shutil.copytree(self.path("run"), self.path("bare"))
        os.unlink(self.path("bare/settings.json"))
        self.run_command(*words, "--steps", 4, "--resume", self.path("bare"))
        self.assertEqual(self.weights("plain"), self.weights("bare"))
        kept = json.loads(self.read("plain", "settings.json"))["options"]
        self.assertEqual(kept, json.loads(self.read("bare", "settings.json"))["options"])
        self.assertNotIn("nesterov", kept)
        # The name of a device is not a path, even if a file has that name.
        os.makedirs(self.path("cpu"))
        self.run_command(
            *words, "--device", "cpu", "--steps", 2, "--out", self.path("named"), cwd=self.folder
        )
        self.assertEqual(json.loads(self.read("named", "settings.json"))["options"]["device"], ["cpu"])
        self.run_command("train", "--resume", self.path("named"), "--steps", 3, cwd=self.folder)
        # --no-NAME may name a flag that the run was not given, and may use a flag's other name.
        self.run_command(
            "train",
            "--resume",
            self.path("plain"),
            "--no-nesterov",
            "--no-dropout",
            "--no-memory",
            "--steps",
            5,
        )
        self.assertNotIn("vram", json.loads(self.read("plain", "settings.json"))["options"])
        self.run_command("train", "--resume", self.path("run"), "--out", self.path("with"), "--steps", 4)
        self.assertNotEqual(self.weights("with"), self.weights("bare"))

        resume = ["train", "--resume", self.path("run")]
        for word, says in {
            "--no-optimizer": "bits",
            "--no-batch": "bits",
            "--no-fused-update": "bits",
            "--no-freeze": "bits",
            "--no-group": "bits",
            "--no-model": "--model is required",
            "--no-nestrov": "no-nestrov",
            "--no-resume": "no-resume",
            "--no-clip=1": "no-clip=1",
        }.items():
            self.refused(*resume, word, expect=USAGE, says=[says])
        self.refused(*resume, "--no-clip", "--clip", 2, expect=USAGE, says=["--no-clip", "given too"])
        self.refused(
            *words, "--steps", 2, "--out", self.path("none"), "--no-clip", expect=USAGE, says=["--no-clip"]
        )
        self.assertEqual(files_of(self.path("run")), before)

    def test_weights_are_those_of_the_checkpoint(self):
        words = ["train", *SMALL, "--data", self.data]
        self.run_command(*words, "--steps", 1, "--out", self.path("other"))
        weights = self.path("other/model.safetensors")
        self.run_command(*words, "--steps", 2, "--weights", weights, "--out", self.path("run"))
        # The weights that the run began with may be given again, like its other flags.
        os.symlink(self.path("other"), self.path("link"))
        for again in (
            [],
            ["--weights", weights],
            ["--weights", self.path("link/model.safetensors")],
            ["--no-weights"],
        ):
            self.run_command(
                "train",
                "--resume",
                self.path("run"),
                *again,
                "--steps",
                3,
                "--out",
                self.path("on"),
                "--overwrite",
            )
        before = files_of(self.path("run"))
        for given in (self.path("run/model.safetensors"), self.path("other"), self.path("none")):
            self.refused(
                "train",
                "--resume",
                self.path("run"),
                "--weights",
                given,
                "--steps",
                3,
                expect=USAGE,
                says=["--weights", self.path("run"), "checkpoint"],
            )
        self.run_command(*words, "--steps", 2, "--out", self.path("random"))
        self.refused(
            "train",
            "--resume",
            self.path("random"),
            "--weights",
            weights,
            expect=USAGE,
            says=["--weights", "checkpoint"],
        )
        self.assertEqual(files_of(self.path("run")), before)

    def test_a_resumed_run_keeps_its_plan(self):
        plan = self.write(
            "plan.json", self.run_command("plan", *SMALL[:-2], "--freeze", "embeddings", "--json").stdout
        )
        words = [
            "train",
            "--model",
            "nano",
            "--data",
            self.data,
            "--threads",
            2,
            "--eval-batches",
            2,
            "--lr",
            "1e-3",
            "--plan",
            plan,
        ]
        self.run_command(
            *words, "--steps", 6, "--warmup", 1, "--schedule", "constant", "--out", self.path("whole")
        )
        self.run_command(
            *words, "--steps", 3, "--warmup", 1, "--schedule", "constant", "--out", self.path("half")
        )
        os.rename(self.path("half"), self.path("moved"))
        os.unlink(plan)
        self.run_command("train", "--resume", self.path("moved"), "--steps", 6)
        self.assertEqual(self.weights("moved"), self.weights("whole"))
        self.refused(
            "train",
            "--resume",
            self.path("moved"),
            "--vram",
            "64MiB",
            "--steps",
            7,
            says=["checkpoint.stw", "frozen"],
        )

    def test_data_that_has_changed(self):
        data = self.text()
        self.train("run", "--steps", 2, data=data)
        same = self.run_command("train", "--resume", self.path("run"), "--steps", 3)
        self.assertEqual(same.stderr, "")
        text = pathlib.Path(data).read_text(encoding="utf-8")
        other = self.write("other.txt", text[::-1])
        warning = (
            r"^stowage: warning: .*{}\.txt: gives other tokens than the run in .*run was trained on, .*\n"
            r"stowage: warning: .*{}\.txt: a tenth of it is held out now, and the run may have been trained "
            r"on parts of that tenth\n$"
        )
        for steps, data_now, name in ((4, other, "other"), (5, data, "text")):
            warnings = self.run_command(
                "train", "--resume", self.path("run"), "--steps", steps, "--data", data_now
            ).stderr
            self.assertRegex(warnings, warning.format(name, name))
        self.write("text.txt", text[::-1])  # the same number of bytes
        warnings = self.run_command("train", "--resume", self.path("run"), "--steps", 6).stderr
        self.assertRegex(warnings, warning.format("text", "text"))
        self.assertEqual(
            self.run_command("train", "--resume", self.path("run"), "--steps", 7).stderr, ""
        )  # now it is the data of the run

    def test_settings_that_cannot_be_read(self):
        self.run_command(*self.words, "--out", self.path("run"))
        before = files_of(self.path("run"))
        for text, says in {
            "{": "expected",
            '{"format": "other"}': "stowage-settings",
            '{"version": 2}': "version 1",
            '{"options": {"out": ["x"]}}': "out",
            '{"options": {"lr": [1]}}': 'expected "',
            '{"options": {}} x': "end",
            '{"options": {"lr": ["\\udc00"]}}': "surrogates",
            '{"options": {"lr": ["\\q"]}}': "hexadecimal",
            '{"options": {"lr": ["x"]}}': "--lr",
        }.items():
            self.write("run/settings.json", text)
            self.refused(
                "train",
                "--resume",
                self.path("run"),
                "--model",
                "nano",
                "--data",
                self.data,
                "--steps",
                STEPS,
                says=[says],
                expect=USAGE if says == "--lr" else FAILED,
            )
        os.unlink(self.path("run/settings.json"))  # older runs have none
        self.refused("train", "--resume", self.path("run"), says=["--model"], expect=USAGE)
        self.run_command(*self.words, "--resume", self.path("run"))
        after = files_of(self.path("run"))
        self.assertEqual(after[self.path("run/settings.json")], before[self.path("run/settings.json")])
        self.assertEqual(
            after[self.path("run/model.safetensors")], before[self.path("run/model.safetensors")]
        )

    def test_file_names_may_be_invalid_utf8(self):
        """settings.json keeps the bytes of the names."""
        for name in (b"t\xff\xfe.txt", "é\u2028\U0001f600.txt".encode() + b"\x80", b'q"\\\n.txt'):
            data = os.fsencode(str(self.folder)) + b"/" + name
            shutil.copy(self.data, data)
            words = [
                STOWAGE,
                "train",
                *SMALL,
                "--lr",
                "1e-3",
                "--data",
                data,
                "--steps",
                "2",
                "--out",
                self.path("odd"),
                "--overwrite",
            ]
            subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, check=True)
            json.loads(self.read("odd", "settings.json"))
            self.run_command("train", "--resume", self.path("odd"), "--steps", 4)
            self.assertIn("--data ", self.run_command("inspect", self.path("odd/settings.json")).stdout)
            self.run_command(
                "train",
                *SMALL,
                "--lr",
                "1e-3",
                "--data",
                self.data,
                "--steps",
                2,
                "--out",
                self.path("plain"),
                "--overwrite",
            )
            self.run_command("train", "--resume", self.path("plain"), "--steps", 4)
            self.assertEqual(self.weights("odd"), self.weights("plain"))

    def test_flipped_bits(self):
        """A flipped bit in any file of a run: resuming is refused, or has the bits of the run."""
        config = {
            "model_type": "gpt2",
            "architectures": ["GPT2LMHeadModel"],
            "vocab_size": 256,
            "n_positions": 16,
            "n_embd": 8,
            "n_layer": 1,
            "n_head": 1,
            "eos_token_id": 0,
        }
        model = self.write("tiny/config.json", json.dumps(config))
        table = self.write(
            "t.csv", "text,label\n" + "".join(f"{'ab' * (i % 3 + 1)},{'xy'[i % 2]}\n" for i in range(20))
        )
        self.run_command(
            "train",
            "--model",
            model,
            "--data",
            table,
            "--tokenizer",
            "byte",
            "--batch",
            2,
            "--seq",
            16,
            "--threads",
            1,
            "--vram",
            "16MiB",
            "--eval-batches",
            0,
            "--steps",
            2,
            "--out",
            self.path("run"),
        )
        shutil.copytree(self.path("run"), self.path("again"))
        self.run_command("train", "--resume", self.path("again"), "--steps", 4)
        expected, refused = self.weights("again"), 0
        for name in sorted(os.listdir(self.path("run"))):
            whole = (self.folder / "run" / name).read_bytes()
            for n in range(6):
                bit = (n * 2654435761 + 12345) % (8 * len(whole))
                changed = bytearray(whole)
                changed[bit // 8] ^= 1 << bit % 8
                shutil.rmtree(self.path("again"))
                shutil.copytree(self.path("run"), self.path("again"))
                (self.folder / "again" / name).write_bytes(changed)
                result = subprocess.run(
                    [STOWAGE, "train", "--resume", self.path("again"), "--steps", "4"],
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    check=False,
                )
                refused += result.returncode != 0
                if result.returncode == 0:
                    self.assertEqual(self.weights("again"), expected, f"{name}, bit {bit}")
        self.assertGreater(refused, 20)  # at least those in settings, plan, labels, and checkpoint

    def test_files_that_were_changed(self):
        self.run_command(*self.words, "--out", self.path("run"))
        settings, plan = self.read("run", "settings.json"), self.read("run", "plan.json")
        self.write("run/settings.json", settings.replace('"1e-3"', '"1e-2"'))
        self.refused(
            "train",
            "--resume",
            self.path("run"),
            "--steps",
            STEPS + 1,
            says=["settings.json: damaged, or changed since the run wrote it"],
        )
        self.write("run/settings.json", settings)
        self.write("run/plan.json", plan.replace('"threads": 2', '"threads": 3'))
        self.refused(
            "train",
            "--resume",
            self.path("run"),
            "--steps",
            STEPS + 1,
            says=["plan.json: damaged, or changed since the run wrote it", "fingerprint"],
        )
        self.write("run/plan.json", plan)
        self.run_command("train", "--resume", self.path("run"), "--steps", STEPS + 1)

    def test_the_folder_of_a_resumed_run(self):
        words = ["train", *SMALL, "--data", self.data, "--steps", 2]
        self.run_command(*words, "--out", self.path("run"))
        self.run_command(*words, "--seed", 7, "--out", self.path("other"))
        before = files_of(self.path("run"))
        resume = [*words, "--resume", self.path("run"), "--out"]
        self.write("leftovers/metrics.jsonl", '{"step":9,"loss":5.5}\n')
        self.write("leftovers/plan.json", '{"format":"stowage-plan"}')
        self.run_command(*resume, self.path("leftovers"))
        self.assertEqual([line["step"] for line in self.metrics("leftovers") if "loss" in line], [1, 2])
        self.refused(*resume, self.path("other"), says=["checkpoint.stw", "--overwrite"])
        self.run_command(*resume, self.path("other"), "--overwrite")
        self.assertEqual(self.weights("other"), self.weights("run"))
        os.symlink(self.path("run"), self.path("link"))
        self.refused(
            *resume, self.path("link"), "--overwrite", expect=USAGE, says=["--overwrite", "--resume"]
        )
        self.assertEqual(files_of(self.path("run")), before)

    def test_losses_too_large_for_ticks_between_them(self):
        """From 2^53 on, a double cannot add half a tick. The picture of such losses must still end."""
        words = [
            "train",
            *SMALL[:-2],
            "--eval-batches",
            0,
            "--data",
            self.data,
            "--steps",
            2,
            "--out",
            self.path("run"),
        ]
        self.run_command(*words)
        for losses in ((9.2e15, 9.2e15), (1e17, 1.00000000000000032e17), (1e300, 1e300)):
            self.write(
                "run/metrics.jsonl",
                "".join(
                    json.dumps({"step": step, "loss": loss}) + "\n" for step, loss in zip((1, 2), losses)
                ),
            )
            self.run_command(*words, "--resume", self.path("run"))
            picture = (self.folder / "run/loss.svg").read_text()
            self.assertLess(len(picture), 10000)
            self.assertNotRegex(picture, '[">, -](nan|inf)\\b')
        self.write(
            "run/metrics.jsonl", '{"step":1,"loss":nan}\n{"step":2,"loss":inf}\n'
        )  # not valid JSON, so not losses
        self.run_command(*words, "--resume", self.path("run"))
        self.assertNotRegex((self.folder / "run/loss.svg").read_text(), '[">, -](nan|inf)\\b')

    def test_ticks_of_short_and_flat_curves_are_distinct_numbers(self):
        words = [
            "train",
            *SMALL[:-2],
            "--eval-batches",
            0,
            "--data",
            self.data,
            "--steps",
            2,
            "--out",
            self.path("run"),
        ]
        self.run_command(*words)
        for losses in (
            (5.5, 5.25),
            (2.500001, 2.500002),
            (0.0, 1e-7),
            (1234567.0, 1234567.5),
            (9.2e15, 9.2e15),
            (0.0, 0.0),
        ):
            self.write(
                "run/metrics.jsonl",
                "".join(
                    json.dumps({"step": step, "loss": loss}) + "\n" for step, loss in zip((1, 2), losses)
                ),
            )
            self.run_command(*words, "--resume", self.path("run"))
            picture = (self.folder / "run/loss.svg").read_text()
            ticks = re.findall('text-anchor="(end|middle)">([-+0-9.,e]+)</text>', picture)
            self.assertEqual([value for anchor, value in ticks if anchor == "middle"], ["0", "1", "2"])
            self.assertGreater(len(ticks), 5, picture)
            self.assertEqual(len(set(ticks)), len(ticks), ticks)

    def test_the_end_of_a_curve_is_a_mean_of_steps(self):
        words = [
            "train",
            *SMALL[:-2],
            "--eval-batches",
            0,
            "--data",
            self.data,
            "--steps",
            200,
            "--out",
            self.path("run"),
        ]
        self.run_command(*words)
        self.write(
            "run/metrics.jsonl",
            "".join(
                json.dumps({"step": step, "loss": 8.0 if step == 200 else 2.0}) + "\n"
                for step in range(1, 201)
            ),
        )
        self.run_command(*words, "--resume", self.path("run"))
        mean = re.search('points="([^"]+)"[^>]*stroke-width="2"', (self.folder / "run/loss.svg").read_text())[
            1
        ].split()
        heights = [float(point.split(",")[1]) for point in mean]
        raw = re.search('points="([^"]+)"', (self.folder / "run/loss.svg").read_text())[1].split()
        highest = float(raw[-1].split(",")[1])
        self.assertAlmostEqual(
            (heights[0] - heights[-1]) / (heights[0] - highest), 1 / 6, delta=0.01
        )  # one of the six steps in the mean

    def test_runs_that_cannot_be_resumed(self):
        self.refused(*self.words, "--resume", self.path("none"), says=["none/checkpoint.stw"])
        self.refused("train", "--resume", self.path("none"), says=["none/checkpoint.stw"])
        self.assertFalse(os.path.exists(self.path("none")))
        self.run_command(*self.words, "--out", self.path("run"))
        short = [word if word != STEPS else 10 for word in self.words]
        self.refused(*short, "--resume", self.path("run"), says=["checkpoint.stw", "60", "10"])
        self.refused(
            *self.words, "--states", "8", "--resume", self.path("run"), says=["checkpoint.stw", "state_bits"]
        )
        checkpoint = self.folder / "run/checkpoint.stw"
        whole = checkpoint.read_bytes()
        for damaged in (whole[:-1], whole[:100], b"", whole[:5000] + b"\x55" + whole[5001:], whole + b"x"):
            checkpoint.write_bytes(damaged)
            self.refused(*self.words, "--resume", self.path("run"), says=["checkpoint.stw"])
            self.assertEqual(checkpoint.read_bytes(), damaged)
        checkpoint.write_bytes(whole)
        self.run_command(*self.words, "--resume", self.path("run"))


if __name__ == "__main__":
    unittest.main()
