"""`stowage` on the emulated CUDA device: the same command and API, with the library of tests/simt."""

import json
import os
import subprocess
import sys
import unittest
import unittest.mock

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "tools"))
# Before the path that Meson would search first.
os.environ["LD_LIBRARY_PATH"] = os.environ["STOWAGE_LIBRARY"]
from support import DOES_NOT_FIT, FAILED, CommandTest  # noqa: E402  (after the path is set)

CONFIG = """{"model_type": "gpt2", "vocab_size": 256, "n_positions": 32, "n_embd": 32, "n_layer": 2, \
"n_head": 2,
            "embd_pdrop": 0.1, "attn_pdrop": 0.1, "resid_pdrop": 0.1}"""
SHAPE = ["--batch", "2", "--seq", "32", "--eval-batches", "1"]


class EmulatedCommand(CommandTest):
    def setUp(self):
        super().setUp()
        self.model = self.write("config.json", CONFIG)

    def train_on(self, out, *words, **more):
        return self.run_command(
            "train",
            "--model",
            self.model,
            *SHAPE,
            "--vram",
            "2GiB",
            "--data",
            self.text(4000),
            "--out",
            self.path(out),
            *words,
            **more,
        )

    def test_the_device_is_listed_and_preferred(self):
        listed = self.run_command("devices").stdout
        self.assertRegex(listed, r"(?m)^cuda +Emulated GPU .*compute capability 9\.0$")
        self.assertNotIn("No CUDA device", listed)
        plan = self.plan("--model", self.model, *SHAPE[:4])
        # The profile of this generation, because the card's name is unknown.
        self.assertEqual(plan["device"]["name"], "h100")
        self.assertEqual(plan["request"]["threads"], 0)
        # The query's own context does not lower this number, because the reserve contains it.
        self.assertEqual(plan["request"]["vram_bytes"], 8 << 30)
        self.assertEqual(plan["numerics"]["kernels"], "tensor")
        self.assertEqual(plan["numerics"]["precision"], "bf16")

    def test_a_busy_device_is_named(self):
        busy = "46"  # cudaErrorDevicesUnavailable
        with unittest.mock.patch.dict(os.environ, EMULATED_CONTEXT_ERROR=busy):
            self.assertRegex(self.run_command("devices").stdout, r"(?m)^cuda +Emulated GPU .* unknown  ")
            failed = self.train_on("busy", "--steps", 1, "--device", "cuda", expect=FAILED)
        self.assertEqual(failed.stderr.count("is/are busy or unavailable"), 1, failed.stderr)
        self.assertIn("another process may use it alone: see nvidia-smi", failed.stderr)
        self.assertNotIn("refused", failed.stderr)

    def test_trains_the_bits_of_the_cpu(self):
        for precision in ("fp32", "bf16"):
            same = ["--steps", 3, "--precision", precision, "--kernels", "portable"]
            cpu, gpu = "cpu-" + precision, "gpu-" + precision
            self.train_on(cpu, *same, "--device", "cpu")
            result = self.train_on(gpu, *same, "--device", "cuda")
            self.assertEqual(self.weights(gpu), self.weights(cpu))
            self.assertEqual(
                [line["loss"] for line in self.metrics(gpu) if "loss" in line],
                [line["loss"] for line in self.metrics(cpu) if "loss" in line],
            )
            self.assertRegex(result.stdout, r"memory +planned ([0-9.]+ .iB), measured \1 ")

    def test_resumes_evaluates_and_generates(self):
        self.train_on("whole", "--steps", 4)
        self.train_on("half", "--steps", 2, "--schedule", "constant")
        self.train_on("constant", "--steps", 4, "--schedule", "constant")
        self.run_command(
            "train",
            "--resume",
            self.path("half"),
            "--model",
            self.model,
            *SHAPE,
            "--vram",
            "2GiB",
            "--data",
            self.text(4000),
            "--steps",
            4,
            "--schedule",
            "constant",
        )
        self.assertEqual(self.weights("half"), self.weights("constant"))
        self.assertNotEqual(self.weights("whole"), self.weights("constant"))
        self.run_command("eval", "--model", self.path("whole"), *SHAPE, "--data", self.text(4000))
        output = self.run_command(
            "generate", "--model", self.path("whole"), "--prompt", "the ", "--tokens", "8"
        ).stdout
        self.assertTrue(output.startswith("the "), output)

    def test_the_library_computes_products(self):
        """Exact mode gives the same weights at any split. A run in fast mode continues in fast mode."""
        exact = ["--steps", 3, "--kernels", "cublaslt"]
        self.train_on("exact", *exact)
        self.train_on("split", *exact, "--micro-batch", 1)
        self.assertEqual(self.weights("exact"), self.weights("split"))
        self.train_on("fast", "--steps", 3, "--fast", "--schedule", "constant", "--micro-batch", 2)
        self.train_on("half", "--steps", 2, "--fast", "--schedule", "constant", "--micro-batch", 2)
        # With the micro-batch of the saved run.
        self.train_on("half", "--steps", 3, "--resume", self.path("half"), "--schedule", "constant")
        self.assertEqual(self.weights("half"), self.weights("fast"))
        self.assertNotEqual(self.weights("fast"), self.weights("exact"))
        with open(self.path("fast") + "/plan.json", encoding="utf-8") as file:
            numerics = json.load(file)["numerics"]
        self.assertEqual((numerics["kernels"], numerics["exact"]), ("cublaslt", False))

    def on_a_real_device(self, script, *words):
        """Runs a script of tests/gpu, which otherwise needs a GPU, with a tiny model, and returns its output.
        The word TINY stands for the model's file."""
        script = os.path.join(os.path.dirname(__file__), "..", "gpu", script)
        build = os.path.dirname(os.path.dirname(os.path.dirname(os.environ["STOWAGE"])))
        tiny = CONFIG.replace('"n_layer": 2', '"n_layer": 1').replace(
            '"attn_pdrop": 0.1', '"attn_pdrop": 0.0'
        )
        tiny = self.write("tiny.json", tiny.replace('"n_positions": 32', '"n_positions": 33'))
        done = subprocess.run(
            [sys.executable, script, build, *(tiny if word == "TINY" else word for word in words)],
            capture_output=True,
            text=True,
            check=False,
        )
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def test_the_checks_for_real_devices_run(self):
        table = self.on_a_real_device("check.py", "--tiny", "TINY")
        for kernels in ("cublaslt", "tensor --attention cudnn"):
            self.assertRegex(table, rf"(?m)^ok +E3 samples of 512 tokens, bf16, {kernels} kernels")

    def test_the_benchmark_for_real_devices_runs(self):
        table = self.on_a_real_device(
            "bench.py", "--tiny", "TINY", "gpt2", "ops", "attention", "optimizers", "budgets"
        )
        for what in (
            "gpt2, T 1024, bf16, tensor",
            "gpt2, 64 x 1024, tensor: norm_gradient",
            "attention, T 64, tensor --attention cudnn",
            "update of gpt2, bf16, adamw, 8-bit states",
            "least memory of gpt2, T 1024",
        ):
            self.assertRegex(table, rf"(?m)^ok +{what} .*[1-9]")

    def test_calibrates(self):
        result = self.run_command(
            "calibrate",
            "--model",
            self.model,
            "--batch",
            "2",
            "--seq",
            "32",
            "--vram",
            "2GiB",
            "--out",
            self.path("profile.json"),
        )
        self.assertIn("outside the arena 124 MiB; assumed before: 1 GiB", result.stdout)
        plan = self.plan(
            "--model", self.model, *SHAPE[:4], "--vram", "2GiB", "--device", self.path("profile.json")
        )
        self.assertEqual(plan["device"]["name"], "h100")
        self.assertEqual(plan["bytes"]["reserve"], 124 << 20)  # The emulated card's context.

    def test_names_the_processes_that_hold_the_memory(self):
        done = self.run_command(
            "train",
            "--model",
            self.model,
            *SHAPE,
            "--steps",
            1,
            "--vram",
            "10GiB",
            "--reserve",
            "9GiB",
            "--data",
            self.text(4000),
            "--out",
            self.path("run"),
            expect=DOES_NOT_FIT,
        )
        self.assertRegex(
            done.stderr,
            r"only 8 GiB are free on the device h100: 1.00 GiB are missing; process 4242 \(python3\) "
            r"holds 3 GiB, process 17",
        )

    def test_a_budget_that_is_too_small_is_an_answer(self):
        self.run_command(
            "train",
            "--model",
            self.model,
            *SHAPE,
            "--steps",
            1,
            "--vram",
            "64KiB",
            "--reserve",
            "0",
            "--data",
            self.text(4000),
            "--out",
            self.path("run"),
            expect=DOES_NOT_FIT,
        )


if __name__ == "__main__":
    unittest.main(verbosity=2)
