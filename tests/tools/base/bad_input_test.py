"""Bad input: one clear line that names the file, the right exit code, and nothing created or damaged."""

import json
import os
import subprocess
import unicodedata
import unittest

from support import DOES_NOT_FIT, FAILED, SMALL, STOWAGE, USAGE, CommandTest, files_of


class BadInputTest(CommandTest):
    def refuses(self, *words, says=(), expect=1, data=None):
        out = self.path("out")
        self.refused(
            "train",
            *SMALL[2:],
            "--steps",
            2,
            "--out",
            out,
            "--data",
            data or self.text(),
            *words,
            says=says,
            expect=expect,
        )
        self.assertFalse(os.path.exists(out))

    def test_no_command(self):
        for words, says in (
            ([], "expected a command"),
            (["learn"], "learn: there is no such command"),
            (["--gpu"], "--gpu: there is no such"),
        ):
            self.refused(*words, says=[says, "plan, train, eval"], expect=USAGE)
        self.refused(
            "trian", says=["trian: there is no such command or flag; did you mean train?"], expect=USAGE
        )

    def test_unknown_flags_and_commands_are_refused(self):
        for words, says in (
            (["plan", "--modle", "nano"], "--modle: there is no such flag; did you mean --model?"),
            (
                ["train", "--model", "nano", "--stps=4"],
                "--stps=4: there is no such flag; did you mean --steps?",
            ),
            (
                ["generate", "--model", "nano", "--prompt", "Once", "upon"],
                "upon: belongs to no flag; a value with spaces needs quotes",
            ),
            (["plan", "nano"], "nano: belongs to no flag"),
        ):
            self.refused(*words, says=[says], expect=USAGE)
        far = self.refused(
            "plan", "--model", "nano", "--out", "x.json", says=["--out: there is no such flag"], expect=USAGE
        )
        self.assertNotIn("did you mean", far.stderr)

    def test_control_characters_of_names_do_not_reach_the_terminal(self):
        """A file name may hold any bytes. The message about it is one line of valid text."""
        name = os.fsencode("no\x1b[31m\n\t\x07\u009b2J \u00e9") + b"\xff"
        for words in (
            [b"inspect", name],
            [b"plan", b"--model", name, b"--batch", b"1"],
            [b"pack", name],
            [b"plan", name],
            [name],
            [
                b"train",
                b"--model",
                b"nano",
                b"--data",
                name,
                b"--steps",
                b"1",
                b"--out",
                b"/dev/null/" + name,
            ],
        ):
            result = subprocess.run(
                [STOWAGE, *words],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                check=False,
            )
            self.assertIn(result.returncode, (FAILED, USAGE))
            message = result.stderr.decode("utf-8")
            self.assertEqual([c for c in message[:-1] if unicodedata.category(c) == "Cc"], [], words)
            self.assertIn("\u00e9", message)

    def test_data(self):
        nano = ["--model", "nano"]
        self.refuses(*nano, data=self.path("missing.txt"), says=["missing.txt"])
        self.refuses(*nano, data=str(self.folder), says=[str(self.folder)])
        self.refuses(*nano, data=self.write("empty.txt", ""), says=["empty.txt", "empty"])
        self.refuses(*nano, data=self.write("short.txt", "x" * 20), says=["short.txt", "33", "shorter --seq"])
        self.refuses(
            *nano, data=self.write("few.txt", "x" * 250), says=["few.txt", "held-out", "shorter --seq"]
        )
        self.refuses(*nano, data=self.write("odd.bin", b"abc"), says=["odd.bin"])

    def test_a_short_text_trains_without_evaluation(self):
        self.run_command(
            "train",
            *SMALL[:-2],
            "--steps",
            1,
            "--eval-batches",
            0,
            "--out",
            self.path("few"),
            "--data",
            self.write("few.txt", "x" * 250),
        )
        self.refused("eval", "--model", self.path("few"), "--data", self.path("few.txt"), says=["held-out"])

    def test_flags_that_are_spelled_wrong(self):
        self.refused("plan", "--modell", "nano", "--batch", 4, expect=2, says=["--modell"])
        self.refused("plan", "--batch", 4, expect=2, says=["--model", "required"])

    def test_numbers(self):
        """Numbers that would wrap, saturate or be rounded away are refused, and numbers that fp32 cannot
        hold."""
        huge = 99999999999999999999
        for flag, texts in {
            "--eval-batches": [-1, huge],
            "--eval-every": [-1, "1e3"],
            "--save-every": [-1, huge],
            "--warmup": [-1, huge],
            "--seed": [0, -1, 18446744073709551617],
            "--steps": [0, huge],
            "--batch": [-3, huge],
            "--lr-batch": [0, huge],
            "--micro-batch": [0, 2**32],
            "--threads": [0, 1025],
            "--seq": [0, 257, huge],
            "--document-end": [-1, 256, 2**32],
            "--lr": [0, -1, "1e39", "nan", "inf", "1e-60", "1x", "1e7"],
            "--min-lr": [-1, "1e39", 1000001],
            "--clip": [-1, "nan", "inf"],
            "--dropout": [-1, 1, "nan"],
            "--beta1": [1, "nan"],
            "--weight-decay": [-1, "nan", 1000001],
            "--loss-scale": [0, "nan"],
            "--label-smoothing": [1, "nan"],
            "--z-loss": [-1, "1e39"],
            "--skip-outliers": [0, "nan"],
        }.items():
            for text in texts:
                result = self.refused(
                    "train",
                    "--model",
                    "nano",
                    "--data",
                    self.text(),
                    *(["--steps", 2] if flag != "--steps" else []),
                    "--out",
                    self.path("out"),
                    f"{flag}={text}",
                    expect=USAGE,
                    says=[flag],
                )
                self.assertLess(len(result.stderr), 160)
        self.assertFalse(os.path.exists(self.path("out")))
        self.refuses(
            "--model",
            "nano",
            "--lr",
            "1e6",
            "--lr-batch",
            1,
            expect=USAGE,
            says=["--lr-batch 1", "to 2000000 for batches of 4", "1000000"],
        )
        self.refuses("--model", "nano", "--group", "norms:lr=1e7", expect=USAGE, says=["norms", "1e6"])
        for flag, text in (("--clip", "nan"), ("--document-end", 999), ("--seq", 257)):
            self.refused("plan", "--model", "nano", flag, text, expect=USAGE, says=[flag, str(text)])
        for flag, text in (
            ("--temperature", "inf"),
            ("--temperature", "nan"),
            ("--top-k", -1),
            ("--tokens", -1),
            ("--seq", 257),
        ):
            self.refused(
                "generate", "--model", "nano", f"{flag}={text}", expect=USAGE, says=[flag, str(text)]
            )
        self.refused(
            "eval",
            "--model",
            "nano",
            "--data",
            self.text(),
            "--seq",
            257,
            expect=USAGE,
            says=["--seq 257", "256"],
        )

    def test_the_least_rate_is_at_most_the_largest(self):
        """This holds for the default rate of each optimizer too. The command knows it without the library."""
        for optimizer, rate in (
            ("adamw", 3e-4),
            ("muon", 3e-4),
            ("lion", 1e-4),
            ("sgd", 1e-2),
            ("adafactor", 1e-2),
        ):
            flags = ["--model", "nano", "--optimizer", optimizer, "--precision", "fp32"]
            self.refuses(
                *flags, "--min-lr", rate * 1.001, expect=USAGE, says=["--min-lr", optimizer, f"{rate:g}"]
            )
            self.train(optimizer, *flags[2:], "--min-lr", rate, "--steps", 1, "--schedule", "linear")
            self.assertEqual(self.metrics(optimizer)[0]["lr"], rate)
        self.refuses(
            "--model", "nano", "--lr", 0.001, "--min-lr", 0.01, expect=USAGE, says=["--min-lr", "--lr"]
        )

    def test_budget(self):
        self.refused(
            "train",
            "--model",
            "nano",
            "--vram",
            "1MiB",
            "--steps",
            1,
            "--data",
            self.text(),
            "--out",
            self.path("out"),
            expect=DOES_NOT_FIT,
            says=["1 MiB", "smallest budget"],
        )
        self.assertFalse(os.path.exists(self.path("out")))

    def test_models(self):
        config = {"model_type": "mystery", "architectures": ["MysteryModel"], "vocab_size": 256}
        self.write("mystery/config.json", json.dumps(config))
        self.refuses("--model", self.path("mystery"), says=["mystery"])
        self.write("broken/config.json", '{"model_type": "gpt2",')
        self.refuses("--model", self.path("broken"), says=["config.json"])
        self.write("nothing/readme.txt", "")
        self.refuses("--model", self.path("nothing"), says=["nothing"])
        self.refuses("--model", "no-such-preset", says=["no-such-preset"])

    def test_files_in_place_of_a_model(self):
        self.train("good", "--steps", 1)
        weights = self.path("good/model.safetensors")
        says = "holds weights, expected a model's folder or config.json; give the folder, "
        self.refuses("--model", weights, expect=2, says=[f"{weights}: {says}{self.path('good')}"])
        self.refused("eval", "--model", weights, "--data", self.text(), expect=2, says=[says])
        self.write("alone/w.safetensors", (self.folder / "good/model.safetensors").read_bytes())
        alone = self.path("alone/w.safetensors")
        self.refuses("--model", alone, expect=2, says=["give its config.json, and this file by --weights"])
        for name in ("pytorch_model.bin", "model.gguf"):
            path = self.write(f"good/{name}", b"GGUF\3\0\0\0weights")
            says = [f"{path}: weights of this format are not read; save them as safetensors"]
            self.refuses("--model", path, says=says)
            self.refuses("--model", self.path("good/config.json"), "--weights", path, says=says)
        part = self.write("good/model.safetensors.part", b"")
        self.refuses("--model", part, says=["an incomplete download"])
        vocabulary = self.write("good/vocab.txt", "[PAD]\n")
        expected = f"{vocabulary}: expected a model's folder or its config.json"
        self.refuses("--model", vocabulary, says=[expected])
        other = self.write("good/other.bin", b"\x0a\x0e\x0a\x05<unk>\x15\0\0\0\0\x18\2")
        self.refuses(
            *("--model", self.path("good/config.json"), "--weights", other),
            says=[f"{other}: expected a safetensors file, with a header"],
        )

    def test_files_in_place_of_a_tokenizer(self):
        self.train("good", "--steps", 1)
        words = ["--model", self.path("good"), "--tokenizer"]
        for name in ("spm.model", "sentencepiece.bpe.model", "of-mine.model", "tekken.json"):
            path = self.write(f"pieces/{name}", b"\x0a\x0e\x0a\x05<unk>\x15\0\0\0\0\x18\2")
            self.refuses(
                *words,
                path,
                says=[
                    f"{path}: this kind of tokenizer is not supported; write a tokenizer.json",
                    f"from_pretrained('{self.path('pieces')}')",
                ],
            )
        for name in ("good/config.json", "good/model.safetensors", "good/merges.txt"):
            path = self.path(name)
            if not os.path.exists(path):
                self.write(name, "a b\n")
            self.refuses(
                *words,
                path,
                expect=2,
                says=[
                    f"--tokenizer {path}: is no tokenizer; expected a tokenizer.json, vocab.txt, vocab.json"
                ],
            )

    def test_weights(self):
        self.train("good", "--steps", 1)
        weights = self.folder / "good/model.safetensors"
        whole = weights.read_bytes()
        for damaged in (whole[:-10], whole[:4], b"", b"\xff" * 64):
            weights.write_bytes(damaged)
            self.refuses("--model", self.path("good"), says=["model.safetensors"])
            self.assertEqual(weights.read_bytes(), damaged)
        renamed = whole.replace(b"transformer.wpe.weight", b"transformer.wp0.weight")
        weights.write_bytes(renamed)
        self.refuses("--model", self.path("good"), says=["wpe.weight"])
        weights.write_bytes(whole.replace(b'"F32"', b'"I32"', 1))
        self.refuses("--model", self.path("good"), says=["I32"])

    def test_files_without_an_end_are_refused(self):
        for words in (["inspect"], ["pack"]):
            self.refused(*words, "/dev/zero", says=["/dev/zero", "268435456"])
        self.refused(
            "train",
            "--model",
            "nano",
            "--steps",
            1,
            "--data",
            self.text(),
            "--plan",
            "/dev/zero",
            "--out",
            self.path("out"),
            says=["/dev/zero"],
        )

    def test_out(self):
        file = self.write("file", "content")
        for out in (file, file + "/below"):
            self.refused(
                "train", *SMALL, "--steps", 1, "--data", self.text(), "--out", out, says=["--out", file]
            )
        self.assertEqual((self.folder / "file").read_text(), "content")
        if os.geteuid() != 0:
            os.makedirs(self.path("locked"), mode=0o500)
            self.refused(
                "train",
                *SMALL,
                "--steps",
                1,
                "--data",
                self.text(),
                "--out",
                self.path("locked"),
                says=["locked"],
            )

    def test_inputs_are_never_changed(self):
        self.train("good", "--steps", 1)
        before = files_of(self.path("good"))
        self.run_command(
            "train",
            "--model",
            self.path("good"),
            *SMALL[2:],
            "--data",
            self.text(),
            "--steps",
            1,
            "--out",
            self.path("other"),
        )
        self.run_command("eval", "--model", self.path("good"), "--data", self.text(), "--eval-batches", 1)
        self.run_command("generate", "--model", self.path("good"), "--tokens", 5)
        self.run_command("inspect", self.path("good"))
        self.assertEqual(files_of(self.path("good")), before)


if __name__ == "__main__":
    unittest.main()
