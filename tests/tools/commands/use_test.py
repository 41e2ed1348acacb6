"""`eval`, `generate`, `inspect` and `devices`: the commands that use a run."""

import json
import math
import os
import pathlib
import struct
import subprocess
import unittest

from support import DOES_NOT_FIT, SMALL, USAGE, CommandTest


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

    def test_a_long_evaluation_in_training_shows_its_progress(self):
        """On a terminal, in a line that is erased at the end."""
        words = [
            "train",
            *SMALL[:-2],
            "--data",
            self.text(),
            "--steps",
            "1",
            "--eval-batches",
            "2000",
            "--out",
            self.path("long"),
        ]
        shown, complaint = self.on_terminal("stdout", *words)
        self.assertEqual(complaint, b"")
        self.assertRegex(
            shown,
            rb"\revaluation  +[\d,]+ of 8,000 samples  \S[^\r\n]* left\x1b\[K.*\r\x1b\[K\rstep 1: "
            rb"evaluation loss [\d.]+ ",
        )

    def test_generate(self):
        words = ["generate", "--model", self.run_folder, "--prompt", "the hold ", "--tokens", 50]
        text = self.run_command(*words).stdout
        self.assertTrue(text.startswith("the hold "))
        self.assertEqual(self.run_command(*words).stdout, text)
        self.assertNotEqual(self.run_command(*words, "--seed", 2, "--temperature", 1).stdout, text)
        cold = self.run_command(*words, "--temperature", 0).stdout
        self.assertEqual(self.run_command(*words, "--temperature", 0, "--seed", 9).stdout, cold)
        self.assertEqual(self.run_command(*words, "--top-k", 1).stdout, cold)
        self.assertEqual(self.run_command(*words, "--top-p", 1e-9).stdout, cold)
        hot = [*words, "--temperature", 3]
        self.assertEqual(self.run_command(*hot, "--top-p", 1).stdout, self.run_command(*hot).stdout)
        self.assertNotEqual(self.run_command(*hot, "--top-p", 0.5).stdout, self.run_command(*hot).stdout)

    def test_generate_goes_past_the_longest_sequence(self):
        ids = self.run_command(
            "generate",
            "--model",
            self.run_folder,
            "--tokenizer",
            "ids",
            "--prompt",
            "116, 104 101",
            "--tokens",
            400,
        ).stdout.split()
        self.assertEqual(ids[:3], ["116", "104", "101"])
        self.assertEqual(len(ids), 403)
        self.assertTrue(all(0 <= int(token) < 256 for token in ids))

    def test_generate_refuses(self):
        words = ["generate", "--model", self.run_folder]
        self.refused(*words, "--prompt", "", expect=USAGE, says=["--prompt"])
        self.refused(*words, "--tokenizer", "ids", "--prompt", "hello", expect=USAGE, says=["token ids"])
        self.refused(*words, "--tokenizer", "ids", "--prompt", "256", says=["256"])
        for p in ("0", "1.5", "-0.1", "nan"):
            self.refused(*words, "--top-p", p, expect=USAGE, says=["--top-p", "a number above 0"])
        self.refused(*words, "--seq", "100000", expect=USAGE, says=["--seq 100,000", "256"])

    def test_inspect(self):
        text = self.run_command("inspect", self.run_folder).stdout
        self.assertRegex(text, r"optimizer +adamw with 32-bit states\n")
        last = [line for line in self.metrics("run") if "loss" in line][-1]
        for part in [
            "858,880",
            f"{last['loss']:.4f} at step 60",
            "transformer.wte.weight",
            "256 x 128",
            "checkpoint",
        ]:
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

    def test_inspect_prints_the_config(self):
        listed = self.run_command("plan", "--help").stdout.partition("Presets:")[2].split("\n\n")[0]
        presets = [name.strip() for name in listed.split(",")]
        self.assertTrue({"nano", "gpt2", "llama-1b"} < set(presets), presets)
        request = [
            "--task",
            "masked",
            "--batch",
            1,
            "--seq",
            8,
            "--device",
            "cpu",
            "--vram",
            "8TiB",
            "--json",
        ]
        for name in presets:
            with self.subTest(preset=name):
                text = self.run_command("inspect", "--config", name).stdout
                config = json.loads(text)
                words = request if "bert" in config["model_type"] else request[2:]
                file = self.write(f"{name}.json", text)
                self.assertEqual(self.run_command("inspect", "--config", file).stdout, text)
                planned = self.run_command("plan", "--model", name, *words).stdout
                self.assertEqual(self.run_command("plan", "--model", file, *words).stdout, planned)
                self.assertEqual(json.loads(planned)["model"]["architecture"], config["model_type"])
        exported = (pathlib.Path(self.run_folder) / "config.json").read_text(encoding="utf-8")
        self.assertEqual(self.run_command("inspect", "--config", self.run_folder).stdout, exported)
        self.refused("inspect", "--config", "gpt3", says=["gpt3: no such file", "presets are nano, gpt2"])
        self.refused(
            "inspect", "--config", self.write("x.json", '{"format": "stowage-plan"}'), says=["x.json"]
        )
        self.refused(
            "inspect", "--config", "nano", "--labels", 3, expect=USAGE, says=["--labels: ", "--config"]
        )

    def test_inspect_refuses_other_files(self):
        """Files of any length, such as token files."""
        tokens = self.write("tokens.bin", b"\x07")
        os.truncate(tokens, 1 << 36)
        for path in (tokens, self.write("text.json", "words"), self.write("empty.json", "")):
            self.refused("inspect", path, says=[path, "metrics.jsonl, found none of them"])

    def test_inspect_weights(self):
        path = pathlib.Path(self.run_folder) / "model.safetensors"
        whole = path.read_bytes()
        text = self.run_command("inspect", path).stdout
        for part in ("parameters    858,880\n", "formats       F32\n", "transformer.wte.weight", "256 x 128"):
            self.assertIn(part, text)
        (size,) = struct.unpack("<Q", whole[:8])
        head, data = whole[8 : 8 + size], whole[8 + size :]

        def built(text, data=data):
            return struct.pack("<Q", len(text)) + text + data

        head = head.rstrip()
        one = json.loads(head)
        name = next(key for key in one if key != "__metadata__")
        for damaged, says in (
            (b"", "cut short"),
            (whole[:7], "cut short"),
            (whole[:100], "cut short"),
            (whole[:-1], "cut short"),
            (whole + b"x", "too long"),
            (b"\xff" * 64, "expected a .safetensors file"),
            (built(head[:-1]), "damaged"),
            (built(head + b"x"), "damaged"),
            (built(head[:-1] + b',"x":1}'), "damaged"),
            (built(json.dumps(one | {name: one[name] | {"shape": [3]}}).encode()), name),
            (
                built(head[:-1] + b",%s:%s}" % (json.dumps(name).encode(), json.dumps(one[name]).encode())),
                "twice",
            ),
            (built(json.dumps({key: one[key] for key in one if key != name}).encode()), ""),
        ):
            self.refused(
                "inspect", self.write("damaged.safetensors", damaged), says=["damaged.safetensors", says]
            )
        self.run_command("inspect", self.write("empty.safetensors", built(b"{}", b"")))
        spaced = json.dumps(one, indent=1).encode() + b"  "
        self.assertIn(
            "858,880", self.run_command("inspect", self.write("spaced.safetensors", built(spaced))).stdout
        )

    def test_eval_reports_as_json_that_the_model_does_not_fit(self):
        words = [
            "eval",
            "--model",
            self.run_folder,
            "--data",
            self.text(),
            "--eval-batches",
            1,
            "--json",
            "--vram",
        ]
        answer = json.loads(self.refused(*words, "1KiB", expect=DOES_NOT_FIT).stdout)
        self.assertEqual((answer["model"], answer["fits"]), (self.run_folder, False))
        self.assertIn("eval_loss", json.loads(self.run_command(*words, answer["minimum_vram_bytes"]).stdout))

    def test_warns_of_random_weights(self):
        for words in (["generate", "--tokens", 3], ["eval", "--data", self.text(), "--eval-batches", 1]):
            result = self.run_command(*words, "--model", "nano")
            self.assertEqual(
                result.stderr, "stowage: warning: nano has no weights: they are drawn from the seed 1337\n"
            )
            self.assertEqual(self.run_command(*words, "--model", self.run_folder).stderr, "")

    def test_inspect_a_plan_alone(self):
        plan = self.write("plan/a.json", self.run_command("plan", *SMALL[:-2], "--json").stdout)
        self.assertIn("--model", self.run_command("inspect", plan).stdout)
        for name in ("pipe", "pipe.jsonl"):  # a pipe can be read only once
            os.mkfifo(self.path(name))
            with subprocess.Popen(["cp", plan, self.path(name)]) as writer:
                self.assertIn("--model", self.run_command("inspect", self.path(name)).stdout)
                self.assertEqual(writer.wait(), 0)
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
