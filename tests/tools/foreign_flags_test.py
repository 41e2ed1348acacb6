"""Flags of other trainers: a refusal names the flag that is meant here."""
import pathlib
import re

from support import USAGE, CommandTest

SOURCE = pathlib.Path(__file__).resolve().parents[2] / "tools/stowage/foreign_flags.cpp"


class ForeignFlagsTest(CommandTest):
    def flags_of(self, command):
        return set(re.findall(r"--[a-z0-9-]+", self.run_command(command, "--help").stdout))

    def test_every_flag_that_is_named_is_there(self):
        rows = re.findall(r'^    \{"([^"]*)", "([^"]*)", "([^"]*)"\},$', SOURCE.read_text(), re.MULTILINE)
        self.assertGreater(len(rows), 100)
        names = [name for name, _, _ in rows]
        self.assertEqual(len(names), len(set(names)))
        flags = {command: self.flags_of(command) for command in ("train", "eval", "classify", "generate")}
        for name, here, why in rows:
            self.assertRegex(name, r"^[a-z0-9]+(-[a-z0-9]+)*$")
            self.assertTrue(here or why, name)
            self.assertNotIn("--" + name, flags["train"], name)   # else it is none of others alone
            for flag in re.findall(r"--[a-z0-9-]+", here + " " + why):
                self.assertTrue(any(flag in known for known in flags.values()), f"{name}: {flag}")
            if here:
                self.assertTrue(here.startswith("--"), name)

    def test_what_people_write(self):
        train = ["train", "--model", "nano", "--data", "none.txt", "--steps", 1, "--out", self.path("run")]
        for word, here in (("--learning-rate", "--lr"), ("--learning_rate", "--lr"), ("--per_device_train_batch_size", "--batch"), ("--num_train_epochs", "--epochs"),
                           ("--warmup-ratio", "--warmup"), ("--gradient-accumulation-steps", "--batch"), ("--max-length", "--seq"), ("--max_seq_length", "--seq"), ("--epoch", "--epochs"),
                           ("--lora-r", "--lora"), ("--lora_alpha", "--lora-alpha"), ("--lora_dropout", "--lora-dropout"), ("--weight_decay", "--weight-decay"), ("--bf16", "--precision bf16"),
                           ("--fp16", "--precision fp16"), ("--gradient-checkpointing", "--recompute"), ("--save-steps", "--save-every"), ("--eval_steps", "--eval-every"),
                           ("--output-dir", "--out"), ("--model_name_or_path", "--model"), ("--dataset", "--data"), ("--iters", "--steps"), ("--batch-size", "--batch"), ("--optim", "--optimizer"),
                           ("--load-in-4bit", "--quantize nf4"), ("--load_in_4bit=true", "--quantize nf4"), ("--Max_Steps", "--steps")):
            self.refused(*train, word, "5", expect=USAGE, says=[f"{word}: there is no such flag; it is {here} here"])
        for word, why in (("--logging-steps", "metrics.jsonl has a line for every step"), ("--packing", "samples hold as many whole examples")):
            self.refused(*train, word, expect=USAGE, says=[f"{word}: there is no such flag; there is no need of it: {why}"])
        # In place of a flag that is required, too; and of other commands what they have.
        self.refused("train", "--model_name_or_path", "nano", "--data", "none.txt", expect=USAGE, says=["it is --model here"])
        self.refused("generate", "--model", "nano", "--max_new_tokens", 5, expect=USAGE, says=["it is --tokens here"])
        self.refused("classify", "--model", "nano", "--max-length", 5, expect=USAGE, says=["it is --seq here"])
        self.refused("classify", "--model", "nano", "--learning-rate", 5, expect=USAGE, says=["--learning-rate: there is no such flag"])
