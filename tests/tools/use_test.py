"""`eval`, `generate`, `inspect` and `devices`: what one does with a run."""
import json
import math
import pathlib
import unittest

from support import SMALL, USAGE, CommandTest


class UseTest(CommandTest):
    def setUp(self):
        super().setUp()
        self.train("run", "--steps", 60, "--lr", "2e-3")
        self.run_folder = self.path("run")

    def test_eval_repeats_the_last_evaluation(self):
        words = ["eval", "--model", self.run_folder, "--data", self.text(), "--eval-batches", 2]
        answer = json.loads(self.run_command(*words, "--json").stdout)
        self.assertEqual(answer["eval_loss"], self.metrics("run")[-1]["eval_loss"])
        self.assertAlmostEqual(answer["perplexity"], math.exp(answer["eval_loss"]), places=9)
        self.assertEqual(answer["tokens"], 2 * 4 * 32)
        self.assertIn(f"{answer['eval_loss']:.4f}", self.run_command(*words).stdout)
        again = self.run_command(*words, "--json", "--threads", 1, "--vram", "100MiB")
        self.assertEqual(json.loads(again.stdout), answer)

    def test_generate(self):
        words = ["generate", "--model", self.run_folder, "--prompt", "the hold ", "--tokens", 50]
        text = self.run_command(*words).stdout
        self.assertTrue(text.startswith("the hold "))
        self.assertEqual(self.run_command(*words).stdout, text)
        self.assertNotEqual(self.run_command(*words, "--seed", 2, "--temperature", 1).stdout, text)
        cold = self.run_command(*words, "--temperature", 0).stdout
        self.assertEqual(self.run_command(*words, "--temperature", 0, "--seed", 9).stdout, cold)
        self.assertEqual(self.run_command(*words, "--top-k", 1).stdout, cold)

    def test_generate_goes_past_the_longest_sequence(self):
        ids = self.run_command("generate", "--model", self.run_folder, "--tokenizer", "ids", "--prompt", "116, 104 101",
                               "--tokens", 400).stdout.split()
        self.assertEqual(ids[:3], ["116", "104", "101"])
        self.assertEqual(len(ids), 403)
        self.assertTrue(all(0 <= int(token) < 256 for token in ids))

    def test_generate_refuses(self):
        words = ["generate", "--model", self.run_folder]
        self.refused(*words, "--prompt", "", expect=USAGE, says=["--prompt"])
        self.refused(*words, "--tokenizer", "ids", "--prompt", "hello", expect=USAGE, says=["token ids"])
        self.refused(*words, "--tokenizer", "ids", "--prompt", "256", says=["256"])
        self.refused(*words, "--seq", "100000", expect=USAGE, says=["--seq 100,000", "256"])

    def test_inspect(self):
        text = self.run_command("inspect", self.run_folder).stdout
        self.assertRegex(text, r"optimizer +adamw with 32-bit states\n")
        last = [line for line in self.metrics("run") if "loss" in line][-1]
        for part in ["858,880", f"{last['loss']:.4f} at step 60", "transformer.wte.weight", "256 x 128", "checkpoint"]:
            self.assertIn(part, text)
        self.assertIn("60", self.run_command("inspect", self.run_folder + "/checkpoint.stw").stdout)
        self.assertIn("step 60", self.run_command("inspect", self.run_folder + "/metrics.jsonl").stdout)
        self.assertIn("peak", self.run_command("inspect", self.run_folder + "/plan.json").stdout)
        self.assertIn("gpt2", self.run_command("inspect", "gpt2").stdout)
        self.refused("inspect", self.path("none"), says=[self.path("none")])
        damaged = bytearray((pathlib.Path(self.run_folder) / "checkpoint.stw").read_bytes())
        damaged[len(damaged) // 2] ^= 1
        self.refused("inspect", self.write("damaged.stw", bytes(damaged)), says=["damaged.stw", "checksum"])
        self.refused("inspect", str(self.folder), says=[str(self.folder)])

    def test_inspect_a_plan_alone(self):
        plan = self.write("plan/a.json", self.run_command("plan", *SMALL[:-2], "--json").stdout)
        self.assertIn("--model", self.run_command("inspect", plan).stdout)
        report = self.run_command("inspect", plan, "--model", "nano").stdout
        self.assertEqual(report, self.run_command("plan", *SMALL[:-2]).stdout)
        self.refused("inspect", plan, "--model", "gpt2", says=["a.json"])

    def test_devices(self):
        text = self.run_command("devices").stdout
        self.assertRegex(text, r"\ncpu +.*[1-9][0-9.]* [MGT]iB")
        self.assertIn("CUDA", text)
        self.assertRegex(self.run_command("--version").stdout, r"stowage \d+\.\d+\.\d+")


if __name__ == "__main__":
    unittest.main()
