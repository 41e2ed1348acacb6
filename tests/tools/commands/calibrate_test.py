"""`stowage calibrate`, and planning and training with what it writes."""

import json
import os
import unittest

from support import DONE, SMALL, USAGE, CommandTest, files_of

NANO = ["--model", "nano", "--batch", 4, "--seq", 32, "--threads", 2, "--vram", "64MiB"]


class CalibrateTest(CommandTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.measured = None

    def profile(self):
        """A measured profile: the same text for all tests."""
        if not type(self).measured:
            path = self.path("measured.json")
            type(self).report = self.run_command("calibrate", *NANO, "--out", path).stdout
            with open(path, encoding="utf-8") as file:
                type(self).measured = file.read()
        return self.write("here.json", type(self).measured)

    def changed(self, **fields):
        body = json.loads(type(self).measured)
        body.update(fields)
        return self.write("changed.json", json.dumps(body))

    def test_measures_and_reports_the_measurements(self):
        path = self.profile()
        body = json.loads(type(self).measured)
        self.assertEqual((body["format"], body["version"], body["device"]), ("stowage-profile", 1, "cpu"))
        self.assertEqual((body["threads"], body["precision"]), (2, "fp32"))
        # The ops of nano, which is a GPT-2, and no others.
        for op in ("linear", "attention", "gelu", "norm", "adamw", "linear_weight_gradient", "embedding"):
            self.assertGreater(body["ops"][op]["permille"], 0)
            self.assertIn(f"  {op} ", type(self).report)
        for op in ("swiglu", "rope", "adamw8", "attention_cached"):
            self.assertNotIn(op, body["ops"])
        for word in ("predicted before", "measured", "predicted now", "--device "):
            self.assertIn(word, type(self).report)
        shares = [
            line.split()
            for line in type(self).report.splitlines()
            if line.startswith("  ") and line.count("%") == 2 and "others" not in line
        ]
        self.assertEqual(len(shares), len(body["ops"]))
        self.assertAlmostEqual(sum(float(words[4]) for words in shares), 100, delta=2)
        self.assertEqual(
            [float(words[6]) for words in shares], sorted((float(words[6]) for words in shares), reverse=True)
        )
        text = self.run_command("inspect", path).stdout
        for op in body["ops"]:
            self.assertIn(op, text)

    def test_a_timeline_of_a_step(self):
        self.train("plain", "--steps", 2)
        self.train("timed", "--steps", 2, "--profile", self.path("step.json"))
        self.assertEqual(self.weights("timed"), self.weights("plain"))
        with open(self.path("step.json"), encoding="utf-8") as file:
            events = [e for e in json.load(file)["traceEvents"] if e["ph"] == "X"]
        measured, predicted = ([e for e in events if e["tid"] == row] for row in (1, 2))
        self.assertEqual([e["name"] for e in measured], [e["name"] for e in predicted])
        self.assertTrue({"linear", "attention", "adamw", "finish_step"} <= {e["name"] for e in measured})
        self.assertIn("block 3", {e["args"]["place"] for e in measured})
        for row in (measured, predicted):
            self.assertTrue(all(abs(a["ts"] + a["dur"] - b["ts"]) < 0.01 for a, b in zip(row, row[1:])))
        # The predicted times of the trace add up to the predicted step of the plan.
        with open(self.path("timed/plan.json"), encoding="utf-8") as file:
            step = json.load(file)["predicted"]["step_seconds"]
        self.assertAlmostEqual(
            sum(e["dur"] * e["args"]["runs"] for e in predicted) * 1e-6, step, delta=step * 1e-6
        )
        self.refused(
            "train",
            *SMALL,
            "--data",
            self.text(),
            "--steps",
            1,
            "--out",
            self.path("none"),
            "--profile",
            self.path("no/step.json"),
            says=["no/step.json"],
        )

    def test_plans_with_it(self):
        path = self.profile()
        before, now = self.plan(*NANO), self.plan(*NANO, "--device", path)
        self.assertNotIn("calibration", before["device"])
        self.assertEqual(now["device"]["calibration"], json.loads(type(self).measured))
        self.assertEqual(now["device"]["name"], "cpu")
        self.assertNotEqual(now["fingerprint"], before["fingerprint"])
        self.assertEqual(self.plan(*NANO, "--device", path), now)
        self.assertIn(
            "calibrated with 2 threads, fp32", self.run_command("plan", *NANO, "--device", path).stdout
        )
        # The predicted time includes the time of launches.
        ops = json.loads(type(self).measured)["ops"]
        slow = self.plan(
            *NANO,
            "--device",
            self.changed(ops={**ops, "linear": {**ops["linear"], "launch_nanoseconds": 10**7}}),
        )
        self.assertGreater(slow["predicted"]["step_seconds"], now["predicted"]["step_seconds"] + 0.1)

    def test_trains_with_it_to_the_same_bits(self):
        path = self.profile()
        self.train("plain", "--steps", 2)
        self.train("calibrated", "--steps", 2, "--device", path)
        self.assertEqual(self.weights("calibrated"), self.weights("plain"))
        with open(self.path("calibrated") + "/plan.json", encoding="utf-8") as file:
            text = file.read()
        self.assertEqual(json.loads(text)["device"]["calibration"], json.loads(type(self).measured))
        # The plan is enough without the profile. A run can be resumed with and without the profile.
        os.remove(path)
        plan = self.write("plan.json", text)
        self.run_command(
            "train",
            "--model",
            "nano",
            "--data",
            self.text(),
            "--plan",
            plan,
            "--steps",
            2,
            "--eval-batches",
            2,
            "--out",
            self.path("planned"),
        )
        self.assertEqual(self.weights("planned"), self.weights("plain"))
        report = self.run_command("inspect", plan, "--model", "nano").stdout
        self.assertIn("calibrated with 2 threads", report)
        for more in ([], ["--device", self.profile()]):
            self.train("calibrated", "--steps", 3 + len(more), "--resume", self.path("calibrated"), *more)

    def test_other_conditions_are_warned_of(self):
        path = self.profile()
        words = ["plan", "--model", "nano", "--vram", "64MiB", "--json", "--device", path]
        self.assertEqual(self.run_command(*words, "--threads", 2).stderr, "")
        self.assertIn(
            "measured with 2 threads, the plan is for 1", self.run_command(*words, "--threads", 1).stderr
        )
        self.assertIn(
            "measured in fp32", self.run_command(*words, "--threads", 2, "--precision", "bf16").stderr
        )

    def test_figures_of_a_card(self):
        shown = self.run_command("devices", "--profile", "h100").stdout
        same = self.write("h100.json", shown)
        words = ["--model", "gpt2", "--batch", "64", "--seq", "1024", "--precision", "bf16"]
        plan = self.plan(*words, "--device", same)
        built_in = self.plan(*words, "--device", "h100")
        self.assertEqual(plan["predicted"], built_in["predicted"])
        self.assertEqual(plan["device"]["figures"], json.loads(shown))
        self.assertNotIn("figures", built_in["device"])
        self.assertIn("rated", self.run_command("inspect", same).stdout)
        self.assertIn("figures of a file", self.run_command("plan", *words, "--device", same).stdout)
        figures = json.loads(shown)
        slow = self.write("slow.json", json.dumps({**figures, "watts": 350}))
        self.assertGreater(
            self.plan(*words, "--device", slow)["predicted"]["step_seconds"],
            1.3 * plan["predicted"]["step_seconds"],
        )
        for key in figures:
            if key in ("format", "version"):
                continue
            without = {k: v for k, v in figures.items() if k != key}
            wrong = [without, {**without, key: -1}]
            if key != "device":
                wrong.append({**without, key: 0})
            if key.endswith("permille"):
                wrong.append({**without, key: 1001})
            for changed in wrong:
                path = self.write("changed.json", json.dumps(changed))
                self.refused("plan", *words, "--device", path, says=["changed.json", key])
        self.refused("devices", "--profile", "abacus", expect=USAGE, says=["abacus"])
        self.refused("devices", "--profile", "cpu", expect=USAGE, says=["figures of GPUs"])

    # Only a calibration gives one number.
    def test_predictions_say_what_confirmed_them(self):
        words = ["plan", *NANO]
        estimate = self.run_command(*words).stdout
        self.assertRegex(estimate, r"predicted +\S+ \S+ a step, ([\d,]+) to ([\d,]+) tokens/s estimated, ")
        calibrated = self.run_command(*words, "--device", self.profile()).stdout
        self.assertRegex(calibrated, r"predicted +\S+ \S+ a step, [\d,]+ tokens/s, ")
        self.assertNotIn("estimated", calibrated)
        plan = json.loads(self.run_command(*words, "--json").stdout)["predicted"]
        self.assertTrue(plan["estimated"])
        self.assertGreater(plan["tokens_per_second_at_ceiling"], plan["tokens_per_second"])
        plan = json.loads(self.run_command(*words, "--json", "--device", self.profile()).stdout)["predicted"]
        self.assertFalse(plan["estimated"])
        self.assertEqual(plan["tokens_per_second_at_ceiling"], plan["tokens_per_second"])

    def test_bad_profiles(self):
        good = self.profile()
        ops = json.loads(type(self).measured)["ops"]
        wrong = [
            ({"format": "stowage-plan"}, "stowage-profile"),
            ({"version": 3}, "version 1 or 2, found 3"),
            ({"device": "abacus"}, "abacus"),
            ({"device": None}, "device"),
            ({"threads": 0}, "threads"),
            ({"threads": 10**9}, "threads"),
            ({"precision": "fp8"}, "fp8"),
            ({"launch_nanoseconds": 0}, "launch_nanoseconds"),
            ({"launch_nanoseconds": -5}, "launch_nanoseconds"),
            ({"launch_nanoseconds": 1e300}, "launch_nanoseconds"),
            ({"launch_nanoseconds": "fast"}, "launch_nanoseconds"),
            ({"product_permille": 1001}, "product_permille"),
            ({"stream_permille": 1001}, "stream_permille"),
            ({"attention_permille": 1001}, "attention_permille"),
            ({"mma_permille": 0}, "mma_permille"),
            ({"watts": 0}, "watts"),
            ({"stream_permille": 0.5}, "stream_permille"),
            ({"step_nanoseconds": None}, "step_nanoseconds"),
            ({"ops": []}, "ops"),
            ({"ops": {"warp": ops["linear"]}}, "warp"),
            ({"ops": {"linear": [[[1]]]}}, "linear"),
            ({"ops": {"linear": {**ops["linear"], "permille": 0}}}, "permille"),
            ({"ops": {"linear": {**ops["linear"], "permille": 100001}}}, "permille"),
            ({"ops": {"linear": {"permille": 5}}}, "launch_nanoseconds"),
            ({"ops": {"linear": {}}}, "permille"),
        ]
        for fields, says in wrong:
            self.refused("plan", *NANO, "--device", self.changed(**fields), says=["changed.json", says])
        for text in (
            "",
            "{",
            "null",
            "[]",
            type(self).measured[:-20],
            type(self).measured + "x",
            '{"a":' * 500,
            type(self).measured.replace('"threads": 2', '"threads": NaN'),
            b"\xff\xfe",
        ):
            path = self.write("broken.json", text)
            self.refused("plan", *NANO, "--device", path, says=["broken.json", "profile: "])
            self.refused(
                "train",
                *SMALL,
                "--data",
                self.text(),
                "--steps",
                1,
                "--out",
                self.path("out"),
                "--device",
                path,
                says=["broken.json"],
            )
        self.refused("plan", *NANO, "--device", self.path("none.json"), says=["none.json"])
        self.refused("plan", *NANO, "--device", str(self.folder), says=[str(self.folder)])
        self.assertFalse(os.path.exists(self.path("out")))
        # A profile of a device that is not here is for planning.
        absent = self.changed(device="rtx4090")
        words = [*NANO[:-1], "2GiB", "--device", absent, "--precision", "fp32"]
        self.assertEqual(self.plan(*words)["device"]["name"], "rtx4090")
        self.refused(
            "train",
            *words,
            "--data",
            self.text(),
            "--steps",
            1,
            "--out",
            self.path("out"),
            expect=USAGE,
            says=["rtx4090", "profile is for planning only"],
        )
        self.run_command("plan", *NANO, "--device", good, expect=DONE)

    def test_a_plan_and_a_profile_are_not_both_taken(self):
        path = self.profile()
        plan = self.write("plan.json", self.run_command("plan", *NANO, "--json").stdout)
        self.refused(
            "train",
            "--model",
            "nano",
            "--data",
            self.text(),
            "--plan",
            plan,
            "--device",
            path,
            "--steps",
            1,
            "--out",
            self.path("out"),
            expect=USAGE,
            says=["--device", "here.json"],
        )

    def test_refuses_and_writes_nothing(self):
        self.profile()
        old = self.write("old.json", "old")
        before = files_of(self.folder)
        words = ["calibrate", *NANO]
        self.refused(*words, expect=USAGE, says=["--out"])
        self.refused(*words, "--out", str(self.folder), says=["folder"])
        self.refused(*words, "--out", self.path("no/such/file.json"), says=["no/such"])
        self.refused(
            *words,
            "--out",
            old,
            "--device",
            "rtx4090",
            expect=USAGE,
            says=["rtx4090", "profile is for planning only"],
        )
        self.refused(*words[:-1], "1KiB", "--out", old, expect=3, says=["nano does not fit"])
        self.refused(
            "calibrate", "--model", "nano", "--batch", 0, "--out", old, expect=USAGE, says=["--batch"]
        )
        self.refused(
            "calibrate", "--model", "no-such-preset", "--batch", 1, "--out", old, says=["no-such-preset"]
        )
        self.assertEqual(files_of(self.folder), before)


if __name__ == "__main__":
    unittest.main()
