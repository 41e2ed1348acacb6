"""Low-rank adapters: the files that `train --lora` writes, and the other commands on them."""

import json
import os
import subprocess
import unittest

from support import USAGE, CommandTest


class AdaptersTest(CommandTest):
    def setUp(self):
        super().setUp()
        self.train("base", "--steps", 30, "--lr", "1e-3")
        self.base = self.path("base")
        self.small = [
            "--batch",
            4,
            "--seq",
            32,
            "--vram",
            "64MiB",
            "--threads",
            2,
            "--eval-batches",
            2,
            "--data",
            self.text(),
            "--schedule",
            "constant",
            "--warmup",
            0,
        ]

    def adapt(self, out, *words, model=None, **how):
        return self.run_command(
            "train",
            "--model",
            model or self.base,
            *self.small,
            "--lr",
            "3e-3",
            "--out",
            self.path(out),
            *words,
            **how,
        )

    def adapters(self, out):
        return (self.folder / out / "adapter_model.safetensors").read_bytes()

    def loss(self, *words):
        return json.loads(
            self.run_command(
                "eval", *words, "--data", self.text(), "--eval-batches", 2, "--held-out", "--json"
            ).stdout
        )["eval_loss"]

    def test_a_run_writes_adapters_that_every_command_takes(self):
        output = self.adapt("run", "--lora", 4, "--steps", 40).stdout
        self.assertIn("adapters    rank 4, 32,768 parameters of the 891,648 are trained\n", output)
        self.assertIn("checkpoint.stw, adapter_model.safetensors, adapter_config.json, plan.json", output)
        self.assertFalse((self.folder / "run" / "model.safetensors").exists())
        config = json.loads(self.read("run", "adapter_config.json"))
        self.assertEqual(
            (config["peft_type"], config["r"], config["lora_alpha"], config["base_model_name_or_path"]),
            ("LORA", 4, 8, self.base),
        )
        self.assertEqual(config["target_modules"], ["c_attn", "c_fc", "c_proj"])
        trained = self.metrics("run")[-1]["eval_loss"]
        self.assertLess(trained, self.loss("--model", self.base) - 0.02)
        self.assertAlmostEqual(self.loss("--model", self.path("run")), trained, places=6)
        self.assertAlmostEqual(
            self.loss("--model", self.base, "--adapter", self.path("run")), trained, places=6
        )
        words = ["--prompt", "what", "--tokens", 20, "--temperature", 0]
        written = self.run_command("generate", "--model", self.path("run"), *words).stdout
        self.assertEqual(
            self.run_command("generate", "--model", self.base, "--adapter", self.path("run"), *words).stdout,
            written,
        )
        self.assertIn("adapters      of rank 4\n", self.run_command("inspect", self.path("run")).stdout)
        output = self.run_command("merge", "--model", self.path("run"), "--out", self.path("merged")).stdout
        self.assertIn("model.safetensors", output)
        self.assertIn("README.md", output)
        card = self.read("merged", "README.md")
        self.assertIn("with low-rank adapters added to its weights by Stowage", card)
        self.assertIn("| adapters | rank 4, of run |", card)
        self.assertIn(f"| model before | {self.base.split('/')[-1]} |", card)
        self.assertAlmostEqual(
            self.loss("--model", self.path("merged"), "--batch", 4, "--seq", 32), trained, places=5
        )
        self.assertEqual(
            self.run_command("generate", "--model", self.path("merged"), "--seq", 32, *words).stdout, written
        )

    def test_resumed_runs_have_the_same_bits_at_any_budget(self):
        self.adapt("whole", "--lora", 4, "--steps", 12)
        self.adapt("parts", "--lora", 4, "--steps", 5)
        self.run_command("train", "--resume", self.path("parts"), "--steps", 12, "--vram", "12MiB")
        self.assertEqual(self.adapters("parts"), self.adapters("whole"))
        self.assertLess(
            (self.folder / "whole" / "checkpoint.stw").stat().st_size,
            (self.folder / "base" / "model.safetensors").stat().st_size,
        )
        self.refused(
            "train",
            "--resume",
            self.path("parts"),
            "--no-lora",
            "--steps",
            13,
            expect=USAGE,
            says=["--no-lora", "bits"],
        )
        # Over other weights, the same adapters would be another model.
        self.refused(
            "train",
            "--resume",
            self.path("whole"),
            "--lora",
            5,
            "--steps",
            13,
            says=['adapters: expected {"rank":5,', 'found {"rank":4,'],
        )
        self.refused(
            "train",
            "--resume",
            self.path("whole"),
            "--adapter",
            self.path("parts"),
            "--steps",
            13,
            says=["adapters: expected"],
        )
        self.adapt("other", "--steps", 2, model="nano")
        self.refused(
            "train",
            "--resume",
            self.path("whole"),
            "--model",
            self.path("other"),
            "--steps",
            13,
            says=["checkpoint.stw", "base: expected"],
        )

    def test_the_weights_below_may_be_quantized(self):
        self.adapt("whole", "--lora", 4, "--steps", 6)
        output = self.adapt("nf4", "--lora", 4, "--quantize", "nf4", "--steps", 6).stdout
        self.assertIn("the matrices below them are nf4\n", output)
        self.adapt("parts", "--lora", 4, "--quantize", "nf4", "--steps", 3)
        self.run_command("train", "--resume", self.path("parts"), "--steps", 6, "--vram", "12MiB")
        self.assertEqual(self.adapters("parts"), self.adapters("nf4"))
        self.assertNotEqual(self.adapters("nf4"), self.adapters("whole"))
        self.refused(
            "train",
            "--resume",
            self.path("parts"),
            "--no-quantize",
            "--steps",
            7,
            expect=USAGE,
            says=["--no-quantize", "bits"],
        )
        self.refused(
            "train",
            "--resume",
            self.path("parts"),
            "--quantize",
            "int8",
            "--steps",
            7,
            says=['quantize: expected "int8", found "nf4"'],
        )
        # Quantized as in its run, unless a flag asks for something else.
        trained = self.metrics("nf4")[-1]["eval_loss"]
        self.assertAlmostEqual(self.loss("--model", self.path("nf4")), trained, places=6)
        self.assertNotEqual(
            self.loss("--model", self.path("nf4"), "--quantize", "none"),
            self.loss("--model", self.path("nf4")),
        )
        self.assertAlmostEqual(
            self.loss("--model", self.base, "--adapter", self.path("nf4"), "--quantize", "int8"),
            trained,
            delta=0.02,
        )
        self.assertAlmostEqual(
            self.loss("--model", self.path("nf4"), "--quantize", "auto"), trained, places=6
        )
        self.adapt("further", "--steps", 1, "--group", "adapters:lr=0", model=self.path("nf4"))
        self.assertAlmostEqual(self.metrics("further")[-1]["eval_loss"], trained, places=4)
        self.assertIn(
            "are nf4: ",
            self.run_command(
                "plan", "--model", self.path("nf4"), "--batch", 4, "--seq", 32, "--vram", "64MiB"
            ).stdout,
        )
        self.run_command("train", "--resume", self.path("parts"), "--steps", 7, "--quantize", "auto")
        self.write(
            "nf4.json",
            json.dumps(
                self.plan(
                    "--model",
                    self.base,
                    "--lora",
                    4,
                    "--quantize",
                    "nf4",
                    "--batch",
                    4,
                    "--seq",
                    32,
                    "--vram",
                    "64MiB",
                )
            ),
        )
        self.refused(
            "train",
            "--model",
            self.base,
            "--lora",
            4,
            "--plan",
            self.path("nf4.json"),
            "--quantize",
            "int8",
            "--data",
            self.text(),
            "--steps",
            1,
            "--out",
            self.path("none"),
            expect=USAGE,
            says=["--plan", "--quantize"],
        )
        self.assertIn(
            "largest preset that fits: gemma3-12b",
            self.run_command(
                "plan",
                "--lora",
                16,
                "--quantize",
                "nf4",
                "--batch",
                4,
                "--seq",
                256,
                "--device",
                "rtx4090",
                "--max",
                "model",
            ).stdout,
        )
        self.assertIn("nf4 below adapters", self.run_command("inspect", self.path("nf4")).stdout)
        plan = [
            "--model",
            self.base,
            "--lora",
            4,
            "--batch",
            4,
            "--seq",
            32,
            "--vram",
            "64MiB",
            "--threads",
            2,
        ]
        self.assertIn(
            "786,432 of the parameters are nf4: 432.0 KiB",
            self.run_command("plan", *plan, "--quantize", "nf4").stdout,
        )
        self.assertEqual(self.plan(*plan, "--quantize", "int8")["numerics"]["quantize"], "int8")
        self.assertEqual(self.plan(*plan)["numerics"]["quantize"], "none")
        self.refused(
            "train",
            "--model",
            self.base,
            *self.small,
            "--steps",
            1,
            "--out",
            self.path("none"),
            "--quantize",
            "nf4",
            expect=USAGE,
            says=["nf4", "--lora"],
        )
        self.refused(
            "train",
            "--model",
            self.base,
            *self.small,
            "--steps",
            1,
            "--out",
            self.path("none"),
            "--lora",
            4,
            "--quantize",
            "fp4",
            expect=USAGE,
            says=["--quantize"],
        )

    def test_embeddings_and_head_may_be_quantized(self):
        output = self.adapt(
            "whole", "--lora", 4, "--quantize", "nf4", "--quantize-embeddings", "int8", "--steps", 6
        ).stdout
        self.assertIn("the matrices below them are nf4; embeddings and head are int8\n", output)
        self.adapt("parts", "--lora", 4, "--quantize", "nf4", "--quantize-embeddings", "int8", "--steps", 3)
        self.run_command("train", "--resume", self.path("parts"), "--steps", 6, "--vram", "12MiB")
        self.assertEqual(self.adapters("parts"), self.adapters("whole"))
        self.refused(
            "train",
            "--resume",
            self.path("parts"),
            "--quantize-embeddings",
            "none",
            "--steps",
            7,
            says=['quantize_embeddings: expected "none", found "int8"'],
        )
        self.refused(
            "train",
            "--resume",
            self.path("parts"),
            "--no-quantize-embeddings",
            "--steps",
            7,
            expect=USAGE,
            says=["--no-quantize-embeddings", "bits"],
        )
        trained = self.metrics("whole")[-1]["eval_loss"]
        self.assertAlmostEqual(self.loss("--model", self.path("whole")), trained, places=6)
        self.assertNotEqual(
            self.loss("--model", self.path("whole"), "--quantize-embeddings", "none"), trained
        )
        self.assertAlmostEqual(
            self.loss("--model", self.path("whole"), "--quantize-embeddings", "none"), trained, delta=0.02
        )
        self.assertIn(
            "nf4 below adapters, int8 embeddings", self.run_command("inspect", self.path("whole")).stdout
        )
        self.refused(
            "train",
            "--model",
            self.base,
            *self.small,
            "--steps",
            1,
            "--out",
            self.path("none"),
            "--lora",
            4,
            "--quantize-embeddings",
            "nf4",
            expect=USAGE,
            says=["--quantize-embeddings"],
        )
        self.refused(
            "train",
            "--model",
            self.base,
            *self.small,
            "--steps",
            1,
            "--out",
            self.path("none"),
            "--quantize-embeddings",
            "int8",
            expect=USAGE,
            says=["quantize_embeddings int8", "--lora"],
        )

    def test_adapters_are_trained_further(self):
        self.adapt("first", "--lora", 4, "--steps", 5)
        output = self.adapt("second", "--steps", 5, model=self.path("first")).stdout
        self.assertIn("adapters    rank 4", output)
        self.assertNotEqual(self.adapters("second"), self.adapters("first"))
        self.adapt("third", "--adapter", self.path("first"), "--steps", 5)
        self.assertEqual(self.adapters("third"), self.adapters("second"))
        self.adapt("first", "--lora", 2, "--steps", 2, "--overwrite")
        self.assertEqual(json.loads(self.read("first", "adapter_config.json"))["r"], 2)

    def test_settings_reach_the_adapters(self):
        self.adapt(
            "run",
            "--lora",
            8,
            "--lora-alpha",
            4,
            "--lora-targets",
            "c_attn,mlp.c_proj",
            "--lora-dropout",
            0.1,
            "--rslora",
            "--steps",
            2,
            "--group",
            "*.lora_B.weight:lr=4",
        )
        config = json.loads(self.read("run", "adapter_config.json"))
        self.assertEqual(
            (config["r"], config["lora_alpha"], config["lora_dropout"], config["use_rslora"]),
            (8, 4, 0.1, True),
        )
        self.assertEqual(config["target_modules"], ["c_attn", "mlp.c_proj"])  # only the c_proj of the MLPs
        self.adapt("again", "--steps", 2, model=self.path("run"))
        plan = self.plan(
            "--model", self.base, "--lora", 8, "--batch", 4, "--seq", 32, "--vram", "64MiB", "--threads", 2
        )
        self.assertEqual(plan["model"]["trainable"], 65536)

    def test_a_merge_that_was_killed(self):
        self.adapt("run", "--lora", 4, "--steps", 2)
        words = ["merge", "--model", self.path("run"), "--out", self.path("merged")]
        gone = subprocess.Popen(["true"])
        gone.wait()
        self.write(f"merged/model.safetensors.tmp.{gone.pid}.0", "half")
        self.run_command(*words)
        self.assertEqual(
            sorted(os.listdir(self.path("merged"))), ["README.md", "config.json", "model.safetensors"]
        )
        self.refused(*words, says=["merged/model.safetensors exists already: give another --out"])
        weights = self.weights("merged")
        os.unlink(self.path("merged/config.json"))
        self.write("merged/model.safetensors", "somebody's")
        self.refused(*words, says=["merged/model.safetensors exists already: give another --out"])
        self.write(f"merged/config.json.tmp.{os.getpid()}.0", "")  # of a process that still runs
        self.refused(*words, says=["merged/model.safetensors exists already: give another --out"])
        os.rename(
            self.path(f"merged/config.json.tmp.{os.getpid()}.0"),
            self.path(f"merged/config.json.tmp.{gone.pid}.0"),
        )
        self.run_command(*words)  # a merge that was killed between its two files is repeated
        self.assertEqual(
            sorted(os.listdir(self.path("merged"))), ["README.md", "config.json", "model.safetensors"]
        )
        self.assertEqual(self.weights("merged"), weights)

    def test_a_merge_that_is_refused_makes_no_folder(self):
        self.adapt("run", "--lora", 4, "--steps", 2)
        self.write("run/tokenizer.json", "mine")
        self.write("other/adapter_config.json", "{}")
        self.refused(
            "merge",
            "--model",
            self.path("run"),
            "--out",
            self.path("other"),
            expect=USAGE,
            says=["adapter_config.json: this file exists"],
        )
        self.assertEqual(os.listdir(self.path("other")), ["adapter_config.json"])

    def test_mistakes(self):
        for words, says in (
            (["--lora", 0], ["--lora"]),
            (["--lora-alpha", 4], ["--lora-alpha", "--lora"]),
            (["--lora", 4, "--adapter", self.base], ["--lora", "--adapter"]),
        ):
            self.refused(
                "train",
                "--model",
                self.base,
                *self.small,
                "--steps",
                1,
                "--out",
                self.path("none"),
                *words,
                expect=USAGE,
                says=says,
            )
        self.refused(
            "train",
            "--model",
            self.base,
            *self.small,
            "--steps",
            1,
            "--out",
            self.path("none"),
            "--lora",
            4,
            "--lora-targets",
            "q_proj",
            expect=USAGE,
            says=['"q_proj"; there are c_attn, c_fc, c_proj, and all-linear'],
        )
        self.refused(
            "train",
            "--model",
            self.base,
            *self.small,
            "--steps",
            1,
            "--out",
            self.path("none"),
            "--adapter",
            self.base,
            says=["adapter_config.json"],
        )
        self.refused(
            "merge", "--model", self.base, "--out", self.path("none"), expect=USAGE, says=["has no adapters"]
        )
        self.adapt("run", "--lora", 4, "--steps", 2)
        self.refused(
            "merge",
            "--model",
            self.path("run"),
            "--out",
            self.base,
            says=["model.safetensors exists already"],
        )
        self.refused(
            "merge",
            "--model",
            self.path("run"),
            "--out",
            self.path("run"),
            says=["adapter_config.json: this file exists"],
            expect=USAGE,
        )
        self.refused(
            "eval",
            "--model",
            self.base,
            "--adapter",
            "",
            "--data",
            self.text(),
            expect=USAGE,
            says=["--adapter"],
        )
        self.refused(
            "train",
            "--model",
            "nano",
            *self.small,
            "--steps",
            1,
            "--out",
            self.path("none"),
            "--lora",
            4,
            expect=USAGE,
            says=["nano has no weights"],
        )
        self.refused(
            "train",
            "--model",
            self.path("run"),
            *self.small,
            "--steps",
            1,
            "--out",
            self.path("run"),
            "--overwrite",
            says=["--out"],
        )
        config = json.loads(self.read("run", "adapter_config.json"))
        config["base_model_name_or_path"] = "somebody/something"
        self.write("run/adapter_config.json", json.dumps(config))
        self.refused(
            "generate", "--model", self.path("run"), says=["somebody/something", "name the model itself"]
        )
        self.run_command("generate", "--model", self.base, "--adapter", self.path("run"), "--tokens", 3)


if __name__ == "__main__":
    unittest.main()
