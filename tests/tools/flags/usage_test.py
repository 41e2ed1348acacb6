"""Wrong command lines: a flag in the place of a value, several wrong flags, and the words that `stowage help`
knows."""

import re

from support import USAGE, CommandTest


class UsageTest(CommandTest):
    def lines(self, *words):
        return [
            line.removeprefix("stowage: error: ")
            for line in self.run_command(*words, expect=USAGE).stderr.splitlines()
        ]

    def test_a_flag_is_refused_as_a_value(self):
        for words, flag, value in (
            (
                ["train", "--model", "nano", "--data", "x.txt", "--steps", 1, "--out", "--overwrite"],
                "--out",
                "--overwrite",
            ),
            (["train", "--resume", "--steps", 3], "--resume", "--steps"),
            (["train", "--model", "nano", "--tensorboard", "--batch", 4], "--tensorboard", "--batch"),
            (["train", "--model", "nano", "--tensorboard", "--batch=4"], "--tensorboard", "--batch=4"),
            (["train", "--out", "--no-skip-outliers", "--resume", "x"], "--out", "--no-skip-outliers"),
            (["train", "--out", "--learning_rate", 3], "--out", "--learning_rate"),  # a flag of another tool
            (["train", "--data", "--out", "x"], "--data", "--out"),
            (["train", "--steps", "--lr", 3], "--steps", "--lr"),
            (["generate", "--model", "nano", "--prompt", "--tokens", 3], "--prompt", "--tokens"),
            (["generate", "--model", "nano", "--prompt", "-h"], "--prompt", "-h"),
            (["plan", "--model", "--json"], "--model", "--json"),
            (["classify", "--model", "nano", "--text", "--json"], "--text", "--json"),
            (
                ["eval", "--model", "nano", "--data", "x", "--chat-template", "--all"],
                "--chat-template",
                "--all",
            ),
            (["merge", "--model", "x", "--out", "--adapter", "y"], "--out", "--adapter"),
        ):
            self.refused(
                *words, expect=USAGE, says=[f"stowage: error: {flag} needs a value; {value} is a flag"]
            )

    def test_every_flag_with_a_value_refuses_a_flag(self):
        for command in (
            "plan",
            "train",
            "eval",
            "generate",
            "classify",
            "inspect",
            "calibrate",
            "merge",
            "tokenize",
            "pack",
        ):
            valued = re.findall(
                r"^ +(--[a-z0-9-]+)(?:,--[a-z0-9-]+)* [^ ]",
                self.run_command(command, "--help").stdout,
                re.MULTILINE,
            )
            self.assertTrue(valued, command)
            for flag in valued:
                self.refused(
                    command, flag, "--help", expect=USAGE, says=[f"{flag} needs a value; --help is a flag"]
                )

    def test_a_value_may_look_like_a_flag(self):
        output = self.run_command(
            "generate", "--model", "nano", "--prompt=--tokens", "--tokens", 1, "--seq", 32
        ).stdout
        self.assertTrue(output.startswith("--tokens"), output)
        output = self.run_command(
            "generate", "--model", "nano", "--prompt", "--- a line", "--tokens", 1, "--seq", 32
        ).stdout
        self.assertTrue(output.startswith("--- a line"), output)

    def test_all_wrong_flags_are_named_at_once(self):
        train = ["train", "--model", "nano", "--data", "none.txt", "--steps", 1, "--out", self.path("run")]
        lines = self.lines(*train, "--learning_rate", 5, "--stps", 3, "--foo", "--foo")
        self.assertEqual(
            lines,
            [
                "--learning_rate: there is no such flag; it is --lr here",
                "--stps: there is no such flag; did you mean --steps?",
                "--foo: there is no such flag",
            ],
        )
        # Unknown flags come first, then known flags with wrong values in the order of --help.
        lines = self.lines(*train, "--lr", "y", "--foo", "--optimizer", "adamw_8bit", "--batch", "x")
        self.assertEqual(lines[0], "--foo: there is no such flag")
        self.assertEqual(
            sorted(line.split(":")[0] for line in lines), ["--batch", "--foo", "--lr", "--optimizer"]
        )
        self.assertIn(
            "; it is adamw here, with --states 8",
            next(line for line in lines if line.startswith("--optimizer")),
        )
        self.assertEqual(len(self.lines(*train, "--lr", "y")), 1)

    def test_help_knows_words(self):
        for word, title in (
            ("lora", "Adapters"),
            ("QLoRA", "Adapters"),
            ("trainer", "Coming from"),
            ("checkpoint", "Train"),
            ("resume", "Train"),
            ("oom", "Out of memory"),
            ("dpo", "Preferences"),
            ("csv", "Data"),
            ("ner", "Classifiers"),
            ("chat_template", "Data"),
            ("CUDA", "GPU"),
            ("train.md", "Train"),
            ("python", "Bindings"),
        ):
            self.assertTrue(self.run_command("help", word).stdout.startswith(f"# {title}"), word)
        self.assertEqual(
            self.run_command("help", "out", "of", "memory").stdout,
            self.run_command("help", "out-of-memory").stdout,
        )
        output = self.run_command("help", "dropout").stdout
        self.assertIn("No page is about dropout alone. These pages mention it:\n\n  train ", output)
        self.refused("help", "zzz", expect=USAGE, says=["there is no topic zzz"])

    def test_the_name_of_a_file_in_place_of_a_text(self):
        table = self.write("a.csv", "text,label\nship,sea\nwind,air\n" * 20)
        self.run_command(
            "train",
            "--model",
            "nano",
            "--data",
            table,
            "--steps",
            1,
            "--batch",
            2,
            "--seq",
            16,
            "--out",
            self.path("run"),
            "--eval-batches",
            0,
        )
        warnings = self.run_command("classify", "--model", self.path("run"), "--text", table).stderr
        self.assertEqual(
            warnings,
            f"stowage: warning: --text {table}: is classified as a text, "
            "though there is a file of that name; --data reads files\n",
        )
        warnings = self.run_command("generate", "--model", "nano", "--prompt", table, "--tokens", 1).stderr
        self.assertIn(f"warning: --prompt {table}: is continued as a text", warnings)
