"""The settings that decide the bits of a run: frozen parameters, optimizers, fp16, schedules, documents, and
skipped steps."""

import json
import math
import os
import shutil
import struct
import unittest

from support import DOES_NOT_FIT, FAILED, SMALL, USAGE, CommandTest, files_of

NANO = ["--model", "nano", "--batch", 4, "--seq", 32, "--threads", 2]
LOWER = "embeddings,blocks.0-1"
OPTIMIZERS = {"adamw": 3e-4, "sgd": 1e-2, "lion": 1e-4, "muon": 3e-4, "adafactor": 1e-2}
EVEN = ["--schedule", "constant", "--warmup", 0]  # a rate that does not depend on the number of steps
TOO_LARGE = 2**60


def is_lower(name):
    return any(part in name for part in (".wte.", ".wpe.", ".h.0.", ".h.1."))


class NumericsTest(CommandTest):
    def tensors(self, out):
        """The bytes of each tensor, by name."""
        data = self.weights(out)
        (size,) = struct.unpack("<Q", data[:8])
        header = {
            name: entry for name, entry in json.loads(data[8 : 8 + size]).items() if name != "__metadata__"
        }
        return {name: data[8 + size :][slice(*entry["data_offsets"])] for name, entry in header.items()}

    def steps(self, out):
        return [line for line in self.metrics(out) if "loss" in line]

    def contradiction(self, *words, says, expect=USAGE):
        """Refused before a folder is created."""
        self.refused(
            "train",
            *SMALL,
            "--steps",
            10,
            "--data",
            self.text(),
            "--out",
            self.path("none"),
            *words,
            says=says,
            expect=expect,
        )
        self.assertFalse(os.path.exists(self.path("none")), words)


class GradientMemoryTest(NumericsTest):
    def test_plans_count_frozen_parameters(self):
        # nano has 4 blocks of 12 · 128² weights each, a token table with two gradients, and a position table.
        matrices, rest = 4 * 12 * 128**2, 2 * 256 * 128 + 256 * 128 + 4 * (4 * 128 + 9 * 128) + 2 * 128
        words = [*NANO, "--micro-batch", 4, "--vram", "64MiB", "--states", 32]
        plans = {
            name: self.plan(*words, *more)
            for name, more in {
                "whole": [],
                "halves": ["--gradients", "bf16"],
                "fused": ["--fused-update"],
            }.items()
        }
        bytes_of = {name: plan["bytes"]["gradients"] for name, plan in plans.items()}
        self.assertEqual(bytes_of["whole"], 4 * (matrices + rest))
        self.assertEqual(bytes_of["halves"], 2 * matrices + 4 * rest)
        self.assertEqual(bytes_of["fused"], 4 * (3 * 256 * 128 + 2 * 128))
        self.assertEqual([plan["numerics"]["gradients"] for plan in plans.values()], ["fp32", "bf16", "fp32"])
        self.assertEqual([plan["numerics"]["fused_update"] for plan in plans.values()], [False, False, True])
        self.assertIn("fused update", self.run_command("plan", *words, "--fused-update").stdout)

    def test_a_fused_update_gives_the_bits_of_one_without_clipping(self):
        self.train("separate", "--steps", 6, "--clip", 0, "--micro-batch", 2)
        self.train("fused", "--steps", 6, "--fused-update", "--recompute", "full")
        self.assertEqual(self.weights("fused"), self.weights("separate"))
        # A resumed run takes its settings from its folder, so that no flag has to be repeated.
        self.train("part", "--steps", 3, "--fused-update", *EVEN)
        self.train("straight", "--steps", 6, "--fused-update", *EVEN)
        data = self.text()
        self.run_command(
            "train",
            *SMALL,
            "--data",
            data,
            "--steps",
            6,
            "--resume",
            self.path("part"),
            "--out",
            self.path("rest"),
            *EVEN,
        )
        self.assertEqual(self.weights("rest"), self.weights("straight"))
        self.refused(
            "train",
            *SMALL,
            "--data",
            data,
            "--steps",
            6,
            "--resume",
            self.path("part"),
            "--out",
            self.path("other"),
            "--clip",
            1,
            says=["--fused-update", "--clip 0"],
            expect=USAGE,
        )

    def test_gradients_in_bf16_do_not_depend_on_the_micro_batch(self):
        for out, samples in {"one": 1, "three": 3, "all": 4}.items():
            self.train(out, "--steps", 6, "--gradients", "bf16", "--micro-batch", samples)
        self.assertEqual(self.weights("one"), self.weights("all"))
        self.assertEqual(self.weights("three"), self.weights("all"))
        self.train("whole", "--steps", 6)
        self.assertNotEqual(self.weights("whole"), self.weights("all"))
        losses = [[line["loss"] for line in self.steps(out)] for out in ("whole", "all")]
        self.assertLess(max(abs(a - b) for a, b in zip(*losses)), 0.01)

    def test_contradictions(self):
        self.contradiction("--fused-update", "--clip", 1, says=["--fused-update", "--clip 0"])
        self.contradiction("--fused-update", "--skip-outliers", 6, says=["--fused-update", "--skip-outliers"])
        for words, says in {
            ("--precision", "fp16"): "fp16",
            ("--gradients", "bf16"): "use fp32 gradients",
            ("--micro-batch", 1): "micro-batch",
            ("--host-memory", "1MiB"): "host memory",
        }.items():
            self.contradiction("--fused-update", *words, says=[says])
        # The same if the plan has a fused update.
        plan = self.write("fused.json", json.dumps(self.plan(*NANO, "--vram", "64MiB", "--fused-update")))
        for words in (["--clip", 1], ["--skip-outliers", 6]):
            self.refused(
                "train",
                "--model",
                "nano",
                "--plan",
                plan,
                "--steps",
                2,
                "--data",
                self.text(),
                "--out",
                self.path("none"),
                *words,
                expect=USAGE,
                says=["fused.json", "fused update", words[0]],
            )
            self.assertFalse(os.path.exists(self.path("none")))


class GroupsTest(NumericsTest):
    def test_a_plan_reports_the_bytes_that_freezing_saves(self):
        whole, frozen = (
            self.plan(*NANO, "--vram", "64MiB"),
            self.plan(*NANO, "--vram", "64MiB", "--freeze", LOWER),
        )
        model = frozen["model"]
        self.assertEqual(whole["model"]["trainable"], model["parameters"])
        self.assertEqual(whole["model"]["frozen_saves_bytes"], 0)
        # The blocks of nano are equal. The token table is used twice: as embedding and as head.
        block, tokens, positions = 198272, 256 * 128, 256 * 128
        self.assertEqual(model["trainable"], model["parameters"] - 2 * block - tokens - positions)
        self.assertEqual(model["frozen_saves_bytes"], 12 * (2 * block + tokens + positions) + 4 * tokens)
        saved = sum(whole["bytes"][name] - frozen["bytes"][name] for name in ("gradients", "optimizer"))
        self.assertEqual(saved, model["frozen_saves_bytes"])
        self.assertEqual(
            frozen["numerics"]["groups"],
            [{"pattern": "embeddings", "frozen": True}, {"pattern": "blocks.0-1", "frozen": True}],
        )
        least = [
            self.plan(*NANO, "--vram", 1000, *words, expect=DOES_NOT_FIT)["minimum_vram_bytes"]
            for words in ([], ["--freeze", LOWER])
        ]
        self.assertLess(least[1], least[0] - saved // 2)
        report = self.run_command("plan", *NANO, "--vram", "64MiB", "--freeze", LOWER).stdout
        for name in ("embeddings", "blocks.0-1"):
            self.assertRegex(report, rf"group +{name}: frozen\n")
        self.assertRegex(report, rf"trained +{model['trainable']:,} of .* saves {saved / 2**20:.2f} MiB")

    def test_frozen_parameters_keep_their_bytes(self):
        self.train("first", "--steps", 1)
        before = self.tensors("first")
        words = [*SMALL[2:], "--model", self.path("first"), "--data", self.text(), "--freeze", LOWER]
        for out, more in {
            "short": ["--steps", 2],
            "long": ["--steps", 4, "--seed", 5, "--optimizer", "muon"],
        }.items():
            self.run_command("train", *words, *more, "--out", self.path(out))
            after = self.tensors(out)
            self.assertEqual(after.keys(), before.keys())
            self.assertEqual(
                {name for name in before if after[name] == before[name]}, set(filter(is_lower, before))
            )
        # In bf16 the file has other bytes than the one that the run began with. So two runs of different
        # lengths are compared, whose steps are large enough for bf16.
        for out, steps in {"half": 2, "longer": 3}.items():
            self.run_command(
                "train",
                *words,
                "--precision",
                "bf16",
                "--lr",
                "0.05",
                "--steps",
                steps,
                "--out",
                self.path(out),
            )
        half, longer = self.tensors("half"), self.tensors("longer")
        self.assertEqual({name for name in half if half[name] == longer[name]}, set(filter(is_lower, half)))

    def test_later_groups_win(self):
        words = [
            "--steps",
            2,
            "--freeze",
            "blocks",
            "--group",
            "*.h.3.*:trained,lr=2",
            "--group",
            "norms:lr=0",
        ]
        self.train("one", *words)
        self.train("two", *words[2:], "--steps", 3)
        one, two = self.tensors("one"), self.tensors("two")
        moved = {name for name in one if one[name] != two[name]}
        self.assertEqual(
            moved, {name for name in one if (".h." not in name or ".h.3." in name) and ".ln_" not in name}
        )

    def test_groups_that_name_nothing(self):
        for pattern in ("attic", "blocks.0-4", "blocks.9", "blocks.1-0", ""):
            for command in (
                ["plan", *NANO, "--vram", "64MiB"],
                ["train", *SMALL, "--data", self.text(), "--steps", 1, "--out", self.path("none")],
            ):
                self.refused(*command, "--freeze", pattern, expect=USAGE, says=[f'"{pattern}"', "blocks.0-3"])
        self.refused("plan", *NANO, "--freeze", "norms,attic", expect=USAGE, says=['"attic"'])
        self.refused("plan", *NANO, "--freeze", "*", expect=USAGE, says=["all parameters are frozen"])
        for text in (
            "norms",
            "norms:",
            ":lr=1",
            "norms:lr",
            "norms:lr=",
            "norms:lr=fast",
            "norms:lr=1x",
            "norms:frozen=1",
            "norms:states=16",
            "norms:colour=red",
            "norms:lr=1,,decay=0",
            "norms:lr=1,lr=2",
            "norms:frozen,trained",
            "norms:frozen,lr=2",
        ):
            self.contradiction("--group", text, says=["--group", text, "PATTERN:SETTING"])
        self.contradiction("--group", "norms:lr=-1", says=['"norms"', "factor"])
        self.contradiction(
            "--freeze", "blocks.0-1", "--group", "blocks.1:decay=0.1", says=['"blocks.1"', "frozen"]
        )
        self.assertFalse(os.path.exists(self.path("none")))


class OptimizersTest(NumericsTest):
    def test_every_optimizer_trains_and_resumes(self):
        for name, rate in OPTIMIZERS.items():
            words = [*EVEN, "--micro-batch", 3]
            self.train("whole", "--overwrite", *words, "--optimizer", name, "--steps", 6)
            steps = self.steps("whole")
            self.assertEqual([line["step"] for line in steps], list(range(1, 7)))
            for line in steps:
                self.assertTrue(math.isfinite(line["loss"]) and line["grad_norm"] > 0, name)
                self.assertEqual(line["lr"], rate, name)
            self.assertLess(steps[-1]["loss"], steps[0]["loss"], name)
            # A resumed run keeps its optimizer and that optimizer's default rate without any flag.
            self.train("part", "--overwrite", *words, "--optimizer", name, "--steps", 3)
            self.train("part", *words, "--steps", 6, "--resume", self.path("part"))
            self.assertEqual(self.weights("part"), self.weights("whole"), name)
            self.assertEqual([line["loss"] for line in self.steps("part")], [line["loss"] for line in steps])

    def test_resuming_refuses_another_optimizer(self):
        self.train("run", "--steps", 2, "--optimizer", "lion")
        before = files_of(self.path("run"))
        for words, says in (
            (["--optimizer", "adamw"], ["optimizer", '"adamw"', '"lion"']),
            (["--states", 8], ["state_bits", "8", "32"]),
            (["--precision", "bf16"], ["precision", '"bf16"', '"fp32"']),
        ):
            self.refused(
                "train",
                *SMALL,
                "--data",
                self.text(),
                "--steps",
                4,
                "--resume",
                self.path("run"),
                *words,
                says=["run/checkpoint.stw", *says, f"leave out {words[0]}"],
            )
        # Refused before a folder is made.
        for words, says in ((["--freeze", "blocks.0"], "groups"), (["--dropout", 0.3], "dropout")):
            self.run_command(
                "train", "--resume", self.path("run"), "--steps", 4, "--states", 32, "--out", self.path("on")
            )
            self.refused(
                "train",
                "--resume",
                self.path("run"),
                "--steps",
                4,
                "--out",
                self.path("none"),
                *words,
                says=["run/checkpoint.stw", says],
            )
            self.assertFalse(os.path.exists(self.path("none")))
            shutil.rmtree(self.path("on"))
        self.assertEqual(files_of(self.path("run")), before)
        self.train("dropped", "--steps", 2, "--dropout", 0.1)
        self.refused(
            "train",
            "--resume",
            self.path("dropped"),
            "--steps",
            4,
            "--dropout",
            0.2,
            says=["--dropout", "has 0.1, found 0.2"],
        )
        self.refused(
            "train",
            "--resume",
            self.path("dropped"),
            "--steps",
            4,
            "--no-dropout",
            says=["checkpoint.stw", "dropout"],
        )
        self.run_command("train", "--resume", self.path("dropped"), "--steps", 3, "--dropout", "0.10")

    def test_a_default_given_by_a_flag_must_agree_with_the_run(self):
        self.train("run", "--steps", 2, "--precision", "bf16", "--master", "split8", "--gradients", "bf16")
        before = files_of(self.path("run"))
        for words, says in (
            (["--master", "exact"], ["master", '"split8"']),
            (["--gradients", "fp32"], ["gradients", '"fp32"', '"bf16"']),
        ):
            self.refused(
                "train",
                "--resume",
                self.path("run"),
                "--steps",
                4,
                *words,
                says=["run/checkpoint.stw", *says],
            )
        self.assertEqual(files_of(self.path("run")), before)
        self.run_command("train", "--resume", self.path("run"), "--steps", 4)

    def test_settings_that_the_optimizer_does_not_have(self):
        self.contradiction("--nesterov", says=["--nesterov", "sgd", "adamw"])
        self.contradiction(
            "--nesterov", "--optimizer", "sgd", "--momentum", 0, says=["--nesterov", "--momentum"]
        )
        self.contradiction("--momentum", "0.5", says=["--momentum", "sgd, muon", "adamw"])
        self.contradiction(
            "--beta2", "0.5", "--optimizer", "adafactor", says=["--beta2", "adamw", "adafactor"]
        )
        self.contradiction("--optimizer", "adam", says=["--optimizer", "adam", "muon"])
        for name in ("sgd", "muon", "adafactor"):
            self.contradiction("--states", 8, "--optimizer", name, says=[name, "no 8-bit states"])
        self.contradiction(
            "--group", "matrices:states=8", "--optimizer", "sgd", says=['"matrices"', "sgd", "8-bit"]
        )

    def test_8_bit_states_where_the_optimizer_has_them(self):
        for name in ("adamw", "lion"):
            bits32, bits8 = (
                self.plan(*NANO, "--vram", "64MiB", "--optimizer", name, "--states", bits) for bits in (32, 8)
            )
            self.assertLess(bits8["bytes"]["optimizer"], 0.5 * bits32["bytes"]["optimizer"])
            self.train(name, "--steps", 3, "--optimizer", name, "--states", 8)
            self.assertLess(self.steps(name)[-1]["loss"], self.steps(name)[0]["loss"])


class LossTest(NumericsTest):
    def test_fp16_reports_its_loss_scale(self):
        self.train("half", "--steps", 3, "--precision", "fp16")
        self.train("full", "--steps", 3)
        for half, full in zip(self.steps("half"), self.steps("full")):
            self.assertEqual(half["loss_scale"], 65536)
            self.assertNotIn("loss_scale", full)
            self.assertAlmostEqual(half["loss"], full["loss"], delta=0.01)
            for name in ("skipped_batch", "skip_reason"):
                self.assertNotIn(name, half)

    def test_a_scale_that_is_too_large(self):
        result = self.train(
            "run", "--steps", 3, "--precision", "fp16", "--loss-scale", TOO_LARGE, expect=FAILED
        )
        self.assertRegex(
            result.stderr, r"no step was applied: .* not finite; the loss scale has come to [0-9.e+]+\n"
        )
        first = self.steps("run")
        for batch, line in enumerate(first, 1):
            self.assertEqual(
                (line["step"], line["skipped_batch"], line["skip_reason"]), (0, batch, "not_finite")
            )
            self.assertEqual(line["loss_scale"], TOO_LARGE >> batch)
            self.assertTrue(math.isfinite(line["loss"]))
            self.assertRegex(
                result.stdout,
                rf"batch {batch}: no update, its loss or gradient is not finite; the loss scale is "
                rf"[0-9.e+]+ \({batch} so far\)\n",
            )
        self.assertRegex(result.stdout, r"skipped +3 batches without an update\n")
        # The resumed run begins with the lowered scale, and lowers it until steps succeed.
        result = self.train("run", "--steps", 60, "--precision", "fp16", "--resume", self.path("run"))
        steps = self.steps("run")
        self.assertEqual(steps[:3], first)
        skipped = [line for line in steps if "skip_reason" in line]
        self.assertEqual(
            [line["loss_scale"] for line in skipped], [TOO_LARGE >> n for n in range(1, len(skipped) + 1)]
        )
        self.assertEqual(len(steps), 60)
        self.assertEqual(steps[-1]["step"], 60 - len(skipped))
        self.assertGreater(steps[-1]["step"], 10)
        self.assertEqual(steps[-1]["loss_scale"], skipped[-1]["loss_scale"])
        self.assertLess(steps[-1]["loss"], steps[0]["loss"] - 1)

    def test_scales_and_policies_that_contradict(self):
        self.contradiction(
            "--non-finite", "stop", "--precision", "fp16", says=["--non-finite stop", "fp16", "bf16"]
        )
        self.contradiction("--loss-scale", 65536, says=["--loss-scale", "fp16"])
        for scale in (3, 0.5, 2**110):
            self.contradiction(
                "--loss-scale", scale, "--precision", "fp16", says=["--loss-scale", "power of two"]
            )
        self.train("run", "--steps", 1, "--non-finite", "stop")

    def test_a_scale_at_its_floor_is_reported(self):
        self.train("run", "--steps", 2, "--precision", "fp16", "--loss-scale", 1)
        self.assertEqual([line["loss_scale"] for line in self.steps("run")], [1, 1])

    def test_a_run_that_diverges_fails(self):
        """Resuming fails again: steps that are not finite are skipped, and the parameters stay useless."""
        words = ["--optimizer", "sgd", "--momentum", 0, "--clip", 0, *EVEN, "--lr"]
        result = self.train("long", *words, "1e6", "--steps", 300, expect=FAILED)
        self.assertRegex(
            result.stderr, r"the last 100 batches changed nothing.*--lr.*; saved after batch \d+, --resume"
        )
        steps = self.steps("long")
        self.assertLess(len(steps), 200)
        self.assertEqual({line.get("skip_reason") for line in steps[-100:]}, {"not_finite"})
        result = self.train("short", *words, "1e5", "--steps", 40, expect=FAILED)
        self.assertIn("the evaluation loss is not finite", result.stderr)
        self.assertIn("evaluation loss nan", result.stdout)
        self.assertTrue(os.path.exists(self.path("short/model.safetensors")))
        result = self.run_command(
            "train",
            *SMALL[:-2],
            "--data",
            self.text(),
            "--out",
            self.path("blind"),
            *words,
            "1e6",
            "--steps",
            20,
            "--eval-batches",
            0,
            expect=FAILED,
        )
        self.assertRegex(result.stderr, r"the last 1\d batches were skipped")

    def test_numbers_keep_their_decimal_value(self):
        """Defaults given as flags train the same bits, although fp32 cannot represent 0.9 or 0.95 exactly."""
        for optimizer, words in {
            "adamw": ["--beta1", 0.9, "--beta2", 0.95, "--weight-decay", 0.1],
            "lion": ["--beta1", 0.9, "--beta2", 0.99],
            "muon": ["--momentum", 0.95],
        }.items():
            self.train("implicit", "--overwrite", "--steps", 3, "--optimizer", optimizer)
            self.train("explicit", "--overwrite", "--steps", 3, "--optimizer", optimizer, *words)
            self.assertEqual(self.weights("explicit"), self.weights("implicit"), optimizer)

    def test_outliers_are_skipped(self):
        result = self.train("run", "--steps", 80, "--skip-outliers", "1.01", "--lr", "1e-6")
        skipped = [line for line in self.steps("run") if "skip_reason" in line]
        self.assertEqual({line["skip_reason"] for line in skipped}, {"outlier"})
        self.assertGreater(min(line["skipped_batch"] for line in skipped), 64)
        self.assertIn("no update, its loss or gradient norm is an outlier (1 so far)", result.stdout)
        for limit in ("0.5", 1):
            self.contradiction("--skip-outliers", limit, says=["--skip-outliers", "more than 1"])

    def test_terms_of_the_loss(self):
        self.train("plain", "--steps", 1)
        (plain,) = self.steps("plain")
        for out, words in {"smooth": ["--label-smoothing", "0.1"], "bounded": ["--z-loss", "0.01"]}.items():
            self.train(out, "--steps", 1, *words)
            self.assertNotEqual(self.steps(out)[0]["loss"], plain["loss"])
            self.assertNotEqual(self.weights(out), self.weights("plain"))
        # At first the logits are small, so that the logarithm of the sum of their 256 exponentials is about
        # log 256.
        self.assertAlmostEqual(
            self.steps("bounded")[0]["loss"] - plain["loss"], 0.01 * math.log(256) ** 2, delta=0.05
        )


class ScheduleTest(NumericsTest):
    def rates(self, *words):
        self.train("run", "--overwrite", "--steps", 10, *words)
        return [line["lr"] for line in self.steps("run")]

    def test_warm_up_stable_decay(self):
        def expected(rate, least, warmup, decay):
            falls = [least + (1 - step / decay) * (rate - least) for step in range(decay)]
            return (
                [rate * (step + 1) / warmup for step in range(warmup)]
                + [rate] * (10 - warmup - decay)
                + falls
            )

        words = ["--schedule", "wsd", "--lr", "1e-3"]
        self.assertEqual(
            self.rates(*words, "--warmup", 3, "--decay-steps", 4), expected(1e-3, 1e-3 / 10, 3, 4)
        )
        self.assertEqual(self.rates(*words), expected(1e-3, 1e-3 / 10, 1, 2))
        self.assertEqual(
            self.rates(*words, "--warmup", 4, "--decay-steps", 6, "--min-lr", 0), expected(1e-3, 0, 4, 6)
        )

    def test_inverse_root(self):
        words = ["--schedule", "inverse-root", "--lr", "1e-3", "--warmup", 3]
        expected = [1e-3 * step / 3 for step in (1, 2, 3)] + [
            1e-3 * math.sqrt(3 / step) for step in range(4, 11)
        ]
        self.assertEqual(self.rates(*words), expected)
        self.assertEqual(
            self.rates(*words, "--min-lr", "8e-4"), expected[:3] + [max(rate, 8e-4) for rate in expected[3:]]
        )

    def test_rates_for_another_batch(self):
        scale = math.sqrt(4 / 6)
        self.assertEqual(self.rates(*EVEN, "--lr", "1e-3", "--lr-batch", 6), [1e-3 * scale] * 10)
        self.assertEqual(self.rates(*EVEN, "--lr-batch", 6), [3e-4 * scale] * 10)
        fall = self.rates(
            "--schedule", "linear", "--warmup", 0, "--lr", "1e-3", "--min-lr", "5e-4", "--lr-batch", 6
        )
        self.assertEqual(
            fall, [5e-4 * scale + (1 - step / 10) * (1e-3 * scale - 5e-4 * scale) for step in range(10)]
        )

    def test_schedules_that_contradict(self):
        self.contradiction("--warmup", 11, says=["--warmup 11", "--steps 10"])
        for schedule in ("cosine", "linear", "constant", "inverse-root"):
            self.contradiction("--decay-steps", 2, "--schedule", schedule, says=["--decay-steps", "wsd"])
        self.contradiction("--schedule", "steps", says=["--schedule", "inverse-root"])
        self.contradiction("--schedule", "constant", "--min-lr", "1e-5", says=["--min-lr", "constant"])
        # The defaults count too: a tenth of the steps for --warmup, a fifth for the decay.
        wsd = ["--schedule", "wsd"]
        for words, warmup, decay in (
            (["--warmup", 5, "--decay-steps", 6], 5, 6),
            (["--warmup", 9], 9, 2),
            (["--decay-steps", 10], 1, 10),
            (["--decay-steps", 2**64 - 1], 1, 2**64 - 1),
        ):
            self.contradiction(
                *wsd, *words, says=[f"--warmup {warmup}", f"--decay-steps {decay}", "--steps 10"]
            )
        self.train("old", "--steps", 2)
        before = files_of(self.path("old"))
        for words in (
            [*wsd, "--warmup", 9],
            ["--nesterov"],
            ["--loss-scale", 2],
            ["--freeze", "attic"],
            ["--min-lr", 1],
            ["--lr", "1e7"],
        ):
            self.run_command(
                "train",
                *SMALL,
                "--data",
                self.text(),
                "--steps",
                10,
                "--overwrite",
                "--out",
                self.path("old"),
                *words,
                expect=USAGE,
            )
        self.assertEqual(files_of(self.path("old")), before)


class CheckTest(NumericsTest):
    def test_repeated_steps_change_nothing(self):
        words = ["--steps", 5, "--dropout", "0.1", "--precision", "fp16", "--loss-scale", 2**24]
        self.train("plain", *words)
        result = self.train("checked", *words, "--deterministic-check", 2)
        self.assertIn("3 steps were made twice, with the same bytes\n", result.stdout)
        self.assertEqual(sorted(os.listdir(self.path("checked"))), sorted(os.listdir(self.path("plain"))))
        self.assertEqual(self.weights("checked"), self.weights("plain"))
        kept = ("step", "loss", "grad_norm", "lr", "tokens", "loss_scale", "skipped_batch", "eval_loss")
        lines = [
            [{name: line.get(name) for name in kept} for line in self.metrics(out)]
            for out in ("plain", "checked")
        ]
        self.assertEqual(lines[0], lines[1])
        self.contradiction("--deterministic-check", 0, says=["--deterministic-check"])


class DocumentsTest(NumericsTest):
    def test_documents(self):
        words = [*EVEN, "--document-end", 10]
        self.train("whole", *words, "--steps", 4)
        # The first token of a document is not a target.
        self.assertLess(self.steps("whole")[-1]["tokens"], 4 * 4 * 32)
        self.assertEqual(
            json.loads((self.folder / "whole/plan.json").read_text())["numerics"]["inputs"], ["positions"]
        )
        evaluate = [
            "eval",
            "--model",
            self.path("whole"),
            "--data",
            self.text(),
            "--eval-batches",
            2,
            "--json",
        ]
        loss = self.metrics("whole")[-1]["eval_loss"]
        self.assertEqual(
            json.loads(self.run_command(*evaluate, "--document-end", 10).stdout)["eval_loss"], loss
        )
        self.assertNotEqual(json.loads(self.run_command(*evaluate).stdout)["eval_loss"], loss)
        self.train("cut", *words, "--steps", 4, "--micro-batch", 1, "--recompute", "full")
        self.assertEqual(self.weights("cut"), self.weights("whole"))
        self.train("part", *words, "--steps", 2)
        self.train("part", *words, "--steps", 4, "--resume", self.path("part"))
        self.assertEqual(self.weights("part"), self.weights("whole"))
        # If the token is not in the text, it ends no document.
        self.train("one", *EVEN, "--document-end", 1, "--steps", 2)
        self.train("none", *EVEN, "--steps", 2)
        self.assertEqual(self.weights("one"), self.weights("none"))

    def test_document_ends_that_are_refused(self):
        self.contradiction("--document-end", 256, says=["--document-end 256"])
        self.contradiction("--document-end", "newline", says=["--document-end"])
        self.train("with", "--document-end", 10, "--steps", 2)
        self.train("without", "--steps", 2)
        self.refused(
            "train",
            "--resume",
            self.path("with"),
            "--steps",
            4,
            "--document-end",
            32,
            says=["--document-end", self.path("with"), "10", "32"],
        )
        os.unlink(self.path("with/settings.json"))  # the file would name the document end
        before = files_of(self.folder)
        words = ["train", "--data", self.text(), "--steps", 4, "--document-end", 10]
        self.refused(
            *words[:-2],
            *SMALL,
            "--resume",
            self.path("with"),
            says=["--document-end", self.path("with"), "with it"],
        )
        self.refused(
            *words,
            *SMALL,
            "--resume",
            self.path("without"),
            says=["--document-end", self.path("without"), "without it"],
        )
        self.refused(
            *words,
            "--model",
            "nano",
            "--plan",
            self.path("without/plan.json"),
            "--overwrite",
            "--out",
            self.path("with"),
            expect=USAGE,
            says=["--document-end", "without/plan.json"],
        )
        self.assertEqual(files_of(self.folder), before)


if __name__ == "__main__":
    unittest.main()
