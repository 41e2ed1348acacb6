"""Folders of models with missing or wrong weights: refused by name, never silently trained from random
numbers."""

import json
import os
import pathlib
import struct
import unittest

from support import USAGE, CommandTest

CONFIG = {
    "model_type": "gpt2",
    "architectures": ["GPT2LMHeadModel"],
    "vocab_size": 256,
    "n_positions": 32,
    "n_embd": 16,
    "n_layer": 1,
    "n_head": 2,
    "eos_token_id": 0,
}
POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:" + "0" * 64 + "\nsize 123456\n"
PAGE, MESSAGE = "<!DOCTYPE html>\n<html>Access denied</html>\n", '{"error": "Repository not found"}'


class WeightsTest(CommandTest):
    def setUp(self):
        super().setUp()
        self.small = [
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
            1,
            "--data",
            self.text(4000),
        ]

    def model(self, name="m", **files):
        """A folder with a config and these files. An underscore in a name stands for a slash."""
        self.write(f"{name}/config.json", json.dumps(CONFIG))
        for file, content in files.items():
            self.write(f"{name}/{file}", content)
        return self.path(name)

    def trained(self, name="trained"):
        self.run_command("train", "--model", self.model("begin"), *self.small, "--out", self.path(name))
        return pathlib.Path(self.path(name), "model.safetensors").read_bytes()

    def refuses(self, model, *says):
        for command in ("train", "eval", "generate"):
            more = (
                [*self.small, "--out", self.path("out")]
                if command == "train"
                else ["--data", self.path("text.txt")]
                if command == "eval"
                else []
            )
            self.refused(
                command, f"--model={model}", *more, says=says
            )  # so that support.py adds no --from-scratch
        self.assertFalse(os.path.exists(self.path("out")))

    def test_a_config_alone_needs_from_scratch(self):
        folder, words = self.model(), [*self.small, "--out", self.path("out")]
        for model in (folder, folder + "/config.json"):
            # No slash at the end, so that support.py adds the flag.
            result = self.refused(
                "train", *words, f"--model={model}", says=[model, "no weights", "--weights", "--from-scratch"]
            )
            self.assertFalse(os.path.exists(self.path("out")), result.stderr)
            self.assertIn(
                "random weights",
                self.run_command("train", *words, f"--model={model}", "--from-scratch", "--overwrite").stdout,
            )
            self.run_command("train", "--resume", self.path("out"), "--steps", 2)
            self.run_command(
                "train", *self.small, f"--model={self.path('out')}", "--out", self.path(f"next{len(model)}")
            )
            os.unlink(self.path("out/model.safetensors"))
            for name in os.listdir(self.path("out")):
                os.unlink(self.path("out/" + name))
            os.rmdir(self.path("out"))
        self.run_command(
            "train", "--model", "nano", *words[:6], "--vram", "64MiB", *words[8:]
        )  # a preset has no weights, so random ones are allowed
        for other in ("--weights", "--adapter"):
            self.refused(
                "train",
                f"--model={folder}",
                *words,
                "--from-scratch",
                other,
                folder,
                expect=USAGE,
                says=["--from-scratch", other],
            )
        # Commands that only read a model refuse random weights too.
        text = self.write("eval.txt", "the ship sails. " * 40)
        for words in (
            ["generate", "--tokenizer", "byte", "--tokens", 1],
            ["eval", "--data", text, "--seq", 16, "--batch", 2],
        ):
            self.refused(
                *words,
                f"--model={folder}",
                says=[folder, "there are no weights", "--weights", "--from-scratch"],
            )
            self.assertIn(
                "has no weights", self.run_command(*words, f"--model={folder}", "--from-scratch").stderr
            )

    def test_from_scratch_leaves_weights_alone(self):
        weights = self.trained()
        output = self.run_command(
            "train",
            f"--model={self.path('trained')}",
            "--from-scratch",
            *self.small,
            "--out",
            self.path("again"),
        ).stdout
        self.assertIn("random weights", output)
        self.assertEqual((self.folder / "again/model.safetensors").read_bytes(), weights)

    def test_missing_weights(self):
        self.text(4000)
        for number, (name, says) in enumerate(
            [
                ("model.safetensors.incomplete", "an incomplete download"),
                ("model-00001-of-00002.safetensors.incomplete", "an incomplete download"),
                ("model.gguf", "weights of this format are not read"),
                ("consolidated.00.pth", "not read"),
                ("pytorch_model.bin", "not read"),
                ("pytorch_model-00001-of-00002.bin", "not read"),
                ("pytorch_model.bin.index.json", "not read"),
                ("tf_model.h5", "not read"),
                ("weights/model.safetensors", "has no weights of its own, and"),
                ("original/consolidated.00.pth", "has no weights of its own, and"),
                ("adapter_model.safetensors", "weights of adapters alone"),
                ("model-00002-of-00003.safetensors", "one of several files of weights"),
            ]
        ):
            self.refuses(self.model(f"m{number}", **{name: b"\0" * 4096}), says, name.split("/")[-1])
        folder = self.model(
            "other-files", **{"rng_state.pth": "x", "optimizer.pt": "x", "ids.bin": "xx", "readme.md": "x"}
        )
        self.run_command(
            "train", f"--model={folder}", "--from-scratch", *self.small, "--out", self.path("scratch")
        )
        self.refused(
            "train",
            f"--model={folder}",
            *self.small,
            "--out",
            self.path("out"),
            says=["there are no weights"],
        )

    def test_an_index_whose_file_is_missing(self):
        index = {
            "metadata": {},
            "weight_map": {
                "transformer.wte.weight": "model-00001-of-00002.safetensors",
                "transformer.wpe.weight": "model-00002-of-00002.safetensors",
            },
        }
        self.refuses(
            self.model(
                **{
                    "model.safetensors.index.json": json.dumps(index),
                    "model-00002-of-00002.safetensors": b"\0" * 64,
                }
            ),
            "model-00001-of-00002.safetensors, which is not there",
        )

    def test_downloads_that_failed(self):
        whole = self.trained()
        for number, (content, says) in enumerate(
            [
                (POINTER, "a pointer of Git LFS"),
                (PAGE, "a web page"),
                (MESSAGE, "an error message"),
                ("", "empty"),
                (whole[:-7], "the file is truncated"),
                (whole[:100], "the file is truncated"),
            ]
        ):
            self.refuses(
                self.model(f"w{number}", **{"model.safetensors": content}), "model.safetensors", says
            )
        for number, content in enumerate((POINTER, PAGE, MESSAGE, "")):
            says = ("a pointer of Git LFS", "a web page", "an error message", "empty")[number]
            for name in ("config.json", "tokenizer.json"):
                model = self.model(f"{name[0]}{number}", **{"model.safetensors": whole, name: content})
                self.refused(
                    "train", f"--model={model}", *self.small, "--out", self.path("out"), says=[name, says]
                )
            if content:
                self.refused(
                    "train",
                    "--model",
                    "nano",
                    *self.small[:-1],
                    self.write(f"d{number}.jsonl", content),
                    "--out",
                    self.path("out"),
                    says=[f"d{number}.jsonl", says],
                )
                self.refused(
                    "train",
                    "--model",
                    "nano",
                    *self.small[:-1],
                    self.write(f"d{number}.bin", content),
                    "--out",
                    self.path("out"),
                    says=[f"d{number}.bin", says],
                )
        page = self.run_command(
            "train",
            "--model",
            "nano",
            *self.small[:6],
            *self.small[8:-1],
            self.write("page.txt", PAGE * 99),
            "--vram",
            "64MiB",
            "--out",
            self.path("page"),
        )
        self.assertIn("looks like a web page", page.stderr)
        self.refused(
            "train",
            "--model",
            "nano",
            *self.small[:-1],
            self.write("pointer.txt", POINTER),
            "--out",
            self.path("out"),
            says=["a pointer of Git LFS"],
        )

    def test_names_that_pytorch_wraps(self):
        whole = self.trained()
        (size,) = struct.unpack("<Q", whole[:8])
        header = json.loads(whole[8 : 8 + size])
        for prefix in ("_orig_mod.", "module.", "module._orig_mod.", "_orig_mod.module."):
            text = json.dumps(
                {name if name == "__metadata__" else prefix + name: value for name, value in header.items()}
            ).encode()
            model = self.model(
                f"p{len(prefix)}{prefix[0]}",
                **{"model.safetensors": struct.pack("<Q", len(text)) + text + whole[8 + size :]},
            )
            losses = {
                json.loads(
                    self.run_command(
                        "eval",
                        "--model",
                        folder,
                        "--data",
                        self.path("text.txt"),
                        *self.small[:4],
                        "--eval-batches",
                        1,
                        "--held-out",
                        "--json",
                    ).stdout
                )["eval_loss"]
                for folder in (model, self.path("trained"))
            }
            self.assertEqual(len(losses), 1, prefix)

    def test_pipes_in_place_of_files(self):
        """Refused at once, because the pipes have no writer."""
        whole = self.trained()
        for number, name in enumerate(
            ("config.json", "model.safetensors", "tokenizer.json", "generation_config.json")
        ):
            model = self.model(f"f{number}", **{"model.safetensors": whole})
            if os.path.exists(f"{model}/{name}"):
                os.unlink(f"{model}/{name}")
            os.mkfifo(f"{model}/{name}")
            data = self.write("e.jsonl", '{"text": "a"}\n' * 9)  # may have a generation_config.json
            self.refused(
                "train",
                f"--model={model}",
                *self.small[:-1],
                data,
                "--out",
                self.path("out"),
                says=[name, "regular file"],
            )
        for name in ("settings.json", "plan.json", "checkpoint.stw", "metrics.jsonl"):
            self.run_command(
                "train", "--model", self.path("begin"), *self.small, "--out", self.path("run"), "--overwrite"
            )
            os.unlink(self.path("run/" + name))
            os.mkfifo(self.path("run/" + name))
            self.refused("train", "--resume", self.path("run"), "--steps", 2, says=[name, "regular file"])
            os.unlink(self.path("run/" + name))


if __name__ == "__main__":
    unittest.main()
