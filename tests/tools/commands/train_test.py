"""`stowage train`: the files it writes. The budget changes no bit of them, and no other file is damaged."""

import json
import os
import struct
import subprocess
import sys
import unittest
import xml.etree.ElementTree

from support import DOES_NOT_FIT, SMALL, USAGE, CommandTest, files_of

LLAMA = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 300,
    "max_position_embeddings": 64,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "tie_word_embeddings": False,
    "hidden_act": "silu",
}


class TrainTest(CommandTest):
    def test_writes_a_run(self):
        result = self.train("deep/er/run", "--steps", 30, "--lr", "1e-3", "--eval-every", 10)
        run = self.folder / "deep/er/run"
        self.assertEqual(
            sorted(os.listdir(run)),
            [
                "README.md",
                "checkpoint.stw",
                "config.json",
                "loss.svg",
                "metrics.jsonl",
                "model.safetensors",
                "plan.json",
                "settings.json",
            ],
        )
        lines = self.metrics("deep/er/run")
        steps = [line for line in lines if "loss" in line]
        self.assertEqual([line["step"] for line in steps], list(range(1, 31)))
        for line in steps:
            self.assertEqual(
                list(line),
                [
                    "step",
                    "loss",
                    "grad_norm",
                    "lr",
                    "tokens",
                    "seconds",
                    "tokens_per_second",
                    "sample_tokens_per_second",
                ],
            )
            self.assertEqual(line["tokens"], line["step"] * 4 * 32)
        self.assertLess(steps[-1]["loss"], steps[0]["loss"] - 1)
        evaluations = [line for line in lines if "eval_loss" in line]
        self.assertEqual([line["step"] for line in evaluations], [10, 20, 30])
        self.assertEqual(lines[-1], evaluations[-1])
        self.assertEqual(json.loads((run / "config.json").read_text())["model_type"], "gpt2")
        self.assertEqual(
            xml.etree.ElementTree.parse(run / "loss.svg").getroot().tag, "{http://www.w3.org/2000/svg}svg"
        )
        self.assertRegex(
            result.stdout,
            r"memory +(planned [0-9.]+ MiB, measured [0-9.]+ MiB \([-+][0-9]\.[0-9] %\)"
            r"|arena [0-9.]+ MiB as planned, [0-9.]+ MiB outside of it: program, threads, data)\n",
        )
        self.assertNotIn("\r", result.stdout)
        self.assertNotIn("\x1b", result.stdout)
        self.assertEqual(result.stderr, "")

    # The program takes more than a tenth of the memory of so small a model.
    def test_says_what_lies_outside_of_the_arena(self):
        config = {"model_type": "gpt2", "vocab_size": 256, "n_positions": 16, "n_layer": 1, "n_embd": 16}
        tiny = self.write("tiny.json", json.dumps({**config, "n_head": 2}))
        words = ["--data", self.text(), "--batch", 1, "--seq", 16, "--threads", 2, "--eval-batches", 0]
        out = ["--out", self.path("run")]
        output = self.run_command(
            "train", "--model", tiny, *words, "--vram", "1MiB", "--steps", 2, *out
        ).stdout
        size = r"[0-9.]+ [KM]iB"
        self.assertRegex(
            output, rf"memory +arena {size} as planned, {size} outside of it: program, threads, data\n"
        )

    def test_trains_with_the_plan_that_plan_makes(self):
        planned = self.run_command("plan", *SMALL[:-2], "--json").stdout
        self.train("run", "--steps", 2)
        self.assertEqual((self.folder / "run/plan.json").read_text().strip(), planned.strip())
        self.write("plan.json", planned)
        self.run_command(
            "train",
            "--model",
            "nano",
            "--plan",
            self.path("plan.json"),
            "--data",
            self.text(),
            "--steps",
            2,
            "--eval-batches",
            2,
            "--out",
            self.path("again"),
        )
        self.assertEqual(self.weights("again"), self.weights("run"))
        edited = json.loads(planned)
        edited["micro_batch"] = 1
        self.write("edited.json", json.dumps(edited))
        self.refused(
            "train",
            "--model",
            "nano",
            "--plan",
            self.path("edited.json"),
            "--data",
            self.text(),
            "--steps",
            2,
            "--out",
            self.path("edited"),
            says=["edited.json", "fingerprint"],
        )
        # Other tools may write the same values in another order, and whole numbers without a decimal point.
        whole = lambda x: int(x) if isinstance(x, float) and x.is_integer() else x
        rewritten = json.loads(planned, parse_float=lambda text: whole(float(text)))
        self.assertNotEqual(json.dumps(rewritten), json.dumps(json.loads(planned)))
        self.run_command(
            "train",
            "--model",
            "nano",
            "--plan",
            self.write("sorted.json", json.dumps(rewritten, sort_keys=True)),
            "--data",
            self.text(),
            "--steps",
            2,
            "--eval-batches",
            2,
            "--out",
            self.path("sorted"),
        )
        self.assertEqual(self.weights("sorted"), self.weights("run"))
        self.refused(
            "train",
            *SMALL,
            "--plan",
            self.path("plan.json"),
            "--data",
            self.text(),
            "--steps",
            2,
            "--out",
            self.path("both"),
            expect=USAGE,
            says=["--plan"],
        )

    def same_bits(self, precision, states):
        numerics = ["--precision", precision, "--states", states, "--steps", 5, "--dropout", "0.1"]
        self.train("reference", *numerics)
        expected = self.weights("reference")
        plan = [
            *SMALL[:4],
            "--seq",
            "32",
            "--threads",
            "2",
            "--precision",
            precision,
            "--states",
            states,
            "--dropout",
            "0.1",
            "--vram",
            "1000000",
        ]
        least = self.plan(*plan, expect=DOES_NOT_FIT)["minimum_vram_bytes"]
        offloaded = self.plan(*plan, "--host-memory", "1GiB", expect=DOES_NOT_FIT)["minimum_vram_bytes"]
        self.assertLess(offloaded, least / 2)
        for name, words in {
            "micro 3": ["--micro-batch", 3],
            "micro 1": ["--micro-batch", 1],
            "full": ["--recompute", "full"],
            "none": ["--recompute", "none"],
            "one thread": ["--threads", 1],
            "tightest": ["--vram", least],
            "offloaded": ["--vram", offloaded, "--host-memory", "1GiB"],
        }.items():
            keep = [word for pair in zip(SMALL[::2], SMALL[1::2]) if pair[0] != words[0] for word in pair]
            self.run_command(
                "train", *keep, *words, *numerics, "--data", self.text(), "--out", self.path(name)
            )
            self.assertEqual(self.weights(name), expected, name)

    def test_no_bit_depends_on_the_budget_fp32(self):
        self.same_bits("fp32", "32")

    def test_no_bit_depends_on_the_budget_bf16_8bit(self):
        self.same_bits("bf16", "8")

    def test_seeds_differ(self):
        self.train("one", "--steps", 2)
        self.train("two", "--steps", 2, "--seed", 2)
        self.assertNotEqual(self.weights("one"), self.weights("two"))

    def test_token_files(self):
        self.write("llama/config.json", json.dumps(LLAMA))
        ids = [(7 * index * index + index) % 300 for index in range(4000)]
        data = self.write("tokens.bin", struct.pack("<4000H", *ids))
        words = [
            "train",
            "--model",
            self.path("llama"),
            "--batch",
            3,
            "--steps",
            3,
            "--vram",
            "64MiB",
            "--eval-batches",
            1,
        ]
        self.run_command(*words, "--data", data, "--out", self.path("run"))
        ids[3999] = 300
        bad = self.write("bad.bin", struct.pack("<4000H", *ids))
        self.refused(*words, "--data", bad, "--out", self.path("bad"), says=["bad.bin", "300"])
        self.refused(
            *words, "--data", self.text(), "--out", self.path("bad"), says=["text.txt", "300", ".bin"]
        )
        self.assertFalse(os.path.exists(self.path("bad")))

    def test_another_run_is_left_alone(self):
        self.train("run", "--steps", 2)
        before = files_of(self.path("run"))
        words = ["train", *SMALL, "--data", self.text(), "--steps", 3, "--seed", 5]
        self.refused(*words, "--out", self.path("run"), says=["checkpoint.stw", "--resume", "--overwrite"])
        self.refused(
            "train",
            "--model",
            self.path("run"),
            *SMALL[2:],
            "--data",
            self.text(),
            "--steps",
            3,
            "--overwrite",
            "--out",
            self.path("run") + "/",
            says=["the model's own folder"],
        )
        self.refused(*words, "--vram", "1MiB", "--overwrite", "--out", self.path("run"), expect=USAGE)
        self.assertEqual(files_of(self.path("run")), before)
        self.write("run/config.json", "of another run")
        output = self.run_command(*words, "--out", self.path("run"), "--overwrite").stdout
        self.assertEqual([line["step"] for line in self.metrics("run") if "loss" in line], [1, 2, 3])
        wrote = next(line for line in output.splitlines() if line.startswith("wrote"))
        self.assertEqual(sorted(wrote.partition(": ")[2].split(", ")), sorted(os.listdir(self.path("run"))))
        self.assertEqual(json.loads(self.read("run", "config.json"))["model_type"], "gpt2")

    def test_overwrite_keeps_the_files_that_the_run_reads(self):
        data = self.text()
        self.train("run", "--steps", 1)
        self.train("other", "--steps", 1)
        run, other = self.path("run"), self.path("other")
        inside = self.write("run/text.txt", (self.folder / "text.txt").read_bytes())
        os.symlink(run, self.path("link"))
        os.makedirs(self.path("linked"))
        os.symlink(run + "/model.safetensors", self.path("linked/model.safetensors"))
        before = files_of(run)
        rest = [*SMALL[2:], "--steps", 1, "--overwrite"]
        nano = ["--model", "nano"]
        for out in (run, self.path("link"), run + "/", other + "/../run"):
            for words, flag in (
                (["--model", run, "--data", data], "own folder"),
                (["--model", run + "/config.json", "--data", data], "--model"),
                ([*nano, "--weights", run + "/model.safetensors", "--data", data], "--weights"),
                ([*nano, "--weights", self.path("link"), "--data", data], "--weights"),
                ([*nano, "--weights", self.path("linked"), "--data", data], "--weights"),
                ([*nano, "--data", inside], "--data"),
            ):
                self.refused("train", *words, *rest, "--out", out, says=[flag, "--out"])
        self.refused(
            "train",
            *nano,
            "--plan",
            run + "/plan.json",
            "--data",
            data,
            "--steps",
            1,
            "--overwrite",
            "--out",
            self.path("link"),
            says=["--plan", "--out"],
        )
        self.assertEqual(files_of(run), before)
        self.run_command(
            "train",
            "--model",
            run + "/config.json",
            "--weights",
            run,
            "--data",
            run + "/../text.txt",
            *rest,
            "--out",
            other,
        )
        self.assertEqual(files_of(run), before)

    def test_leftovers(self):
        """The files of a run that was killed before its first checkpoint do not prevent a new run."""
        self.write("run/metrics.jsonl", '{"step":1,"loss":5.5}\n')
        self.write("run/plan.json", '{"format":"stowage-plan"}')
        gone = subprocess.Popen([sys.executable, "-c", ""])
        gone.wait()
        names = [
            f"{name}.tmp.{gone.pid}.{index}"
            for index, name in enumerate(("checkpoint.stw", "model.safetensors", "config.json"))
        ]
        kept = [
            f"checkpoint.stw.tmp.{os.getpid()}.0",
            f"notes.tmp.{gone.pid}.0",
            f"checkpoint.stw.tmp.{gone.pid}",
            f"checkpoint.stw.tmp.{gone.pid}.0.old",
        ]
        for name in names + kept:
            self.write("run/" + name, "unfinished")
        self.train("run", "--steps", 2)
        self.assertEqual([line["step"] for line in self.metrics("run") if "loss" in line], [1, 2])
        there = os.listdir(self.path("run"))
        for name in names:
            self.assertNotIn(name, there)
        for name in kept:
            self.assertIn(name, there)

    def test_files_of_others_are_left_alone(self):
        words = ["train", *SMALL, "--data", self.text(), "--steps", 1, "--out"]
        for name, content in (
            ("config.json", "{}"),
            ("plan.json", "{}"),
            ("metrics.jsonl", '{"step":1,"loss":1}\n'),
            ("loss.svg", "<svg/>"),
            ("model.safetensors", ""),
            ("checkpoint.stw", ""),
        ):
            out = "of-" + name
            self.write(f"{out}/{name}", content)
            before = files_of(self.path(out))
            self.refused(*words, self.path(out), says=[name, "exists already", "--overwrite"])
            self.assertEqual(files_of(self.path(out)), before)
            self.run_command(*words, self.path(out), "--overwrite")
        self.write("mine/notes.txt", "mine")
        self.run_command(*words, self.path("mine"))
        self.assertEqual((self.folder / "mine/notes.txt").read_text(), "mine")

    def test_file_names_may_be_invalid_utf8(self):
        data = os.fsencode(self.path("")) + b"caf\xe9\x01<.txt"
        os.rename(self.text(), data)
        self.run_command(
            "train", *SMALL, "--data", os.fsdecode(data), "--steps", 2, "--out", self.path("run")
        )
        picture = xml.etree.ElementTree.parse(self.path("run/loss.svg")).getroot()
        self.assertIn("caf\ufffd\ufffd<.txt", "".join(picture.itertext()))
        answer = self.run_command(
            "eval", "--model", self.path("run"), "--data", os.fsdecode(data), "--eval-batches", 1, "--json"
        )
        self.assertTrue(json.loads(answer.stdout)["data"].endswith("caf\ufffd\x01<.txt"))

    def test_trains_from_the_weights_of_a_run(self):
        self.train("first", "--steps", 10, "--lr", "1e-3")
        self.run_command(
            "train",
            "--model",
            self.path("first"),
            *SMALL[2:],
            "--data",
            self.text(),
            "--steps",
            1,
            "--out",
            self.path("second"),
        )
        first, second = (
            [line["loss"] for line in self.metrics(run) if "loss" in line] for run in ("first", "second")
        )
        self.assertLess(second[0], first[0] - 0.5)


if __name__ == "__main__":
    unittest.main()
