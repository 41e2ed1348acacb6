"""Preferences: `train` and `eval` on pairs of answers."""

import json
import math
import pathlib
import random
import re
import signal
import struct
import subprocess

from support import FAILED, STOWAGE, USAGE, CommandTest

COLOURS = ["red", "blue", "green", "yellow", "violet"]


def turn(role, content):
    return {"role": role, "content": content}


class PreferenceTest(CommandTest):
    def pairs(self, count=80, seed=3, **more):
        """Pairs of answers: the chosen one names the colour of the prompt, the rejected one another
        colour."""
        draw = random.Random(seed)
        lines = []
        for _ in range(count):
            colour, other = draw.sample(COLOURS, 2)
            lines.append(
                {
                    "prompt": f"what is {colour}? ",
                    "chosen": f"{colour} is.",
                    "rejected": f"{other} it may be.",
                    **more,
                }
            )
        return lines

    def file(self, lines, name="pairs.jsonl"):
        return self.write(name, "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines))

    def train_on(self, out, data, *more, model="nano", sequence=64, expect=0):
        return self.run_command(
            "train",
            "--model",
            model,
            "--data",
            data,
            "--batch",
            4,
            "--seq",
            sequence,
            "--vram",
            "64MiB",
            "--threads",
            2,
            "--document-end",
            0,
            "--eval-batches",
            2,
            "--out",
            self.path(out),
            *more,
            expect=expect,
        )

    def evaluation(self, *words):
        return json.loads(self.run_command("eval", *words, "--document-end", 0, "--json").stdout)

    def test_chosen_answers_get_the_higher_reward(self):
        data = self.file(self.pairs())
        output = self.train_on("run", data, "--steps", 30, "--lr", "1e-3").stdout
        self.assertRegex(
            output, r"pairs       80 of chosen and rejected answers, for dpo; [\d,]+ tokens are learned\n"
        )
        self.assertRegex(
            output, r"reference   log-probabilities of the model for 80 pairs in [\d,]+ tokens\n"
        )
        self.assertRegex(
            output, r"step 30: evaluation loss 0\.\d+ \(accuracy [\d.]+, reward margin [\d.]+\)\n"
        )
        self.assertRegex(output, r"trained     30 steps on [\d,]+ pairs\n")
        self.assertIn(" pairs/s ", output)
        steps = [line for line in self.metrics("run") if "loss" in line]
        self.assertAlmostEqual(steps[0]["loss"], math.log(2), places=5)
        self.assertEqual(steps[0]["accuracy"], 0)
        self.assertEqual(steps[-1]["accuracy"], 1)
        self.assertEqual(self.metrics("run")[-1]["eval_accuracy"], 1)
        self.assertEqual(json.loads(self.read("run", "plan.json"))["numerics"]["preference"], "dpo")
        reference = (pathlib.Path(self.path("run")) / "reference.bin").read_bytes()
        values = struct.unpack(f"<{len(reference) // 4 - 8}f", reference[:-32])
        self.assertTrue(all(value <= 0 for value in values))
        # `eval` of the run gives the run's own last evaluation, with the model that it began with as the
        # reference.
        again = self.evaluation("--model", self.path("run"), "--data", data)
        self.assertEqual(again["eval_loss"], self.metrics("run")[-1]["eval_loss"])
        self.assertEqual(again["accuracy"], 1)
        for figure in ("reward_margin", "reward_chosen", "reward_rejected"):
            self.assertEqual(again[figure], self.metrics("run")[-1]["eval_" + figure])
        self.assertAlmostEqual(
            again["reward_margin"], again["reward_chosen"] - again["reward_rejected"], places=9
        )
        unseen = self.file(self.pairs(30, seed=5), "unseen.jsonl")
        output = self.run_command(
            "eval", "--model", self.path("run"), "--data", unseen, "--all", "--document-end", 0
        ).stdout
        self.assertRegex(output, r"evaluation loss 0\.\d+, accuracy 1\.0000, over the 30 pairs of ")
        # The reward margin of a single pair follows from its loss, log(1 + e^-margin).
        some = self.pairs(6, seed=9)
        alone = [
            self.evaluation("--model", self.path("run"), "--data", self.file([pair], "one.jsonl"), "--all")
            for pair in some
        ]
        for one in alone:
            self.assertAlmostEqual(one["reward_margin"], -math.log(math.expm1(one["eval_loss"])), delta=1e-3)
            self.assertAlmostEqual(
                one["reward_margin"], one["reward_chosen"] - one["reward_rejected"], places=9
            )
        both = self.evaluation("--model", self.path("run"), "--data", self.file(some, "some.jsonl"), "--all")
        self.assertAlmostEqual(
            both["reward_margin"], sum(one["reward_margin"] for one in alone) / 6, places=4
        )
        self.assertGreater(both["reward_margin"], 0)
        output = self.run_command(
            "eval",
            "--model",
            self.path("run"),
            "--data",
            self.path("some.jsonl"),
            "--all",
            "--document-end",
            0,
        ).stdout
        self.assertIn(f"\nreward margin {both['reward_margin']:.4f}: of chosen answers ", output)
        # With the model itself as the reference all rewards are 0.
        itself = self.evaluation(
            "--model", self.path("run"), "--data", data, "--reference-model", self.path("run")
        )
        self.assertAlmostEqual(itself["eval_loss"], math.log(2), places=5)
        self.assertEqual(itself["accuracy"], 0)
        self.assertIn("preference    dpo\n", self.run_command("inspect", self.path("run")).stdout)

    def test_every_preference_trains_and_resumes(self):
        data = self.file(self.pairs())
        for preference, more in (
            ("ipo", ["--beta", 0.5]),
            ("simpo", ["--margin", 0.2, "--label-smoothing", 0.1]),
            ("orpo", ["--beta", 0.3]),
            ("dpo", ["--answer-share", 0.2]),
        ):
            words = ["--lr", "1e-3", "--preference", preference, *more]
            self.train_on("whole" + preference, data, "--steps", 12, *words)
            self.train_on("parts" + preference, data, "--steps", 12, "--save-every", 5, *words)
            # The checkpoint of a run that stopped halfway.
            self.train_on(
                "half" + preference, data, "--steps", 6, "--warmup", 1, "--schedule", "constant", *words
            )
            self.run_command("train", "--resume", self.path("half" + preference), "--steps", 12)
            self.train_on(
                "straight" + preference, data, "--steps", 12, "--warmup", 1, "--schedule", "constant", *words
            )
            for one, other in (("whole", "parts"), ("half", "straight")):
                self.assertEqual(
                    (pathlib.Path(self.path(one + preference)) / "model.safetensors").read_bytes(),
                    (pathlib.Path(self.path(other + preference)) / "model.safetensors").read_bytes(),
                    preference,
                )
            has_reference = (pathlib.Path(self.path("whole" + preference)) / "reference.bin").exists()
            self.assertEqual(has_reference, preference in ("dpo", "ipo"))
            last = self.metrics("straight" + preference)[-1]
            self.assertEqual(
                self.evaluation("--model", self.path("straight" + preference), "--data", data)["eval_loss"],
                last["eval_loss"],
                preference,
            )

    def test_resuming_into_another_folder_copies_the_reference(self):
        data = self.file(self.pairs())
        self.train_on("first", data, "--steps", 4)
        self.run_command("train", "--resume", self.path("first"), "--steps", 6, "--out", self.path("second"))
        first, second = (pathlib.Path(self.path(name)) / "reference.bin" for name in ("first", "second"))
        self.assertEqual(first.read_bytes(), second.read_bytes())
        # A missing reference is computed again by the model that the run began with.
        before = second.read_bytes()
        second.unlink()
        output = self.run_command("train", "--resume", self.path("second"), "--steps", 7).stdout
        self.assertIn("reference   log-probabilities of the model", output)
        self.assertEqual(second.read_bytes(), before)
        second.write_bytes(before[:-4])
        self.refused(
            "train",
            "--resume",
            self.path("second"),
            "--steps",
            8,
            expect=FAILED,
            says=["reference.bin", "expected log-probabilities"],
        )
        second.write_bytes(struct.pack("<f", -1) + before[4:])
        self.refused(
            "train",
            "--resume",
            self.path("second"),
            "--steps",
            8,
            expect=FAILED,
            says=["reference.bin", "damaged"],
        )
        second.write_bytes(before)
        # For other pairs it is computed again, even if they have the same number of tokens.
        other = self.file(
            [{**line, "chosen": line["rejected"], "rejected": line["chosen"]} for line in self.pairs()],
            "other.jsonl",
        )
        output = self.run_command(
            "train", "--resume", self.path("second"), "--steps", 8, "--data", other
        ).stdout
        self.assertIn("reference.bin belongs to other pairs", output)
        self.assertNotEqual(second.read_bytes(), before)

    def test_evaluates_on_a_separate_file(self):
        data, apart = self.file(self.pairs()), self.file(self.pairs(20, seed=8), "apart.jsonl")
        output = self.train_on("run", data, "--steps", 6, "--lr", "1e-3", "--eval-data", apart).stdout
        self.assertIn("log-probabilities of the model for 20 pairs", output)
        self.assertTrue((pathlib.Path(self.path("run")) / "reference-eval.bin").exists())
        self.run_command("train", "--resume", self.path("run"), "--steps", 8)
        examples = self.file([{"prompt": "a", "completion": "b"}] * 20, "examples.jsonl")
        self.refused(
            "train",
            "--model",
            "nano",
            "--data",
            data,
            "--batch",
            4,
            "--seq",
            64,
            "--document-end",
            0,
            "--steps",
            1,
            "--out",
            self.path("none"),
            "--eval-data",
            examples,
            expect=FAILED,
            says=["examples.jsonl: it has no pairs of answers"],
        )

    def test_the_reference_of_adapters_is_the_model_without_them(self):
        self.train_on("base", self.write("text.txt", "what is red? red is.\n" * 200), "--steps", 8)
        data = self.file(self.pairs())
        self.train_on(
            "tuned",
            data,
            "--steps",
            12,
            "--lr",
            "3e-3",
            "--lora",
            4,
            "--quantize",
            "int8",
            model=self.path("base"),
        )
        steps = [line for line in self.metrics("tuned") if "loss" in line]
        self.assertAlmostEqual(steps[0]["loss"], math.log(2), places=5)
        self.assertEqual(
            self.evaluation("--model", self.path("tuned"), "--data", data)["eval_loss"],
            self.metrics("tuned")[-1]["eval_loss"],
        )

    def test_the_common_beginning_of_answers_is_the_prompt(self):
        lines = self.pairs(40)
        whole = [
            {"chosen": line["prompt"] + line["chosen"], "rejected": line["prompt"] + line["rejected"]}
            for line in lines
        ]
        self.train_on("given", self.file(lines), "--steps", 3)
        output = self.train_on("found", self.file(whole, "whole.jsonl"), "--steps", 3).stdout
        self.assertIn("; 40 without a prompt: the common beginning of both answers is the prompt\n", output)
        given, found = (
            [line["loss"] for line in self.metrics(name) if "loss" in line] for name in ("given", "found")
        )
        for a, b in zip(given, found):
            self.assertAlmostEqual(a, b, places=4)  # letters that begin both answers belong to the prompt
        words = [
            "train",
            "--model",
            "nano",
            "--batch",
            4,
            "--document-end",
            0,
            "--steps",
            1,
            "--out",
            self.path("none"),
        ]
        questions = [
            {"question": line["prompt"], "chosen": line["chosen"], "rejected": line["rejected"]}
            for line in lines
        ]
        self.refused(
            *words,
            "--data",
            self.file(questions, "asked.jsonl"),
            expect=FAILED,
            says=["asked.jsonl, line 1", 'as "prompt" or in front of both', '"question"'],
        )

    def test_messages_by_the_models_template(self):
        self.train_on("base", self.write("text.txt", "what is red? red is.\n" * 200), "--steps", 2)
        template = self.write(
            "template.jinja",
            "{% for message in messages %}<{{ message.role }}>{{ message.content }}</>{% endfor %}"
            "{% if add_generation_prompt %}<assistant>{% endif %}",
        )
        apart, inside = [], []
        for line in self.pairs(40):
            question, answers = (
                turn("user", line["prompt"]),
                [turn("assistant", line[name]) for name in ("chosen", "rejected")],
            )
            apart.append({"prompt": [question], "chosen": [answers[0]], "rejected": [answers[1]]})
            inside.append(
                {
                    "prompt": line["prompt"],
                    "chosen": [question, answers[0]],
                    "rejected": [question, answers[1]],
                }
            )
        found = {}
        for name, lines in (("apart", apart), ("inside", inside)):
            self.train_on(
                name,
                self.file(lines, name + ".jsonl"),
                "--steps",
                3,
                "--chat-template",
                template,
                model=self.path("base"),
                sequence=160,
            )
            found[name] = [line.get("loss") for line in self.metrics(name)]
        self.assertEqual(found["apart"], found["inside"])
        # Evaluation uses the template of the run, although the model that it began with has another one.
        (pathlib.Path(self.path("base")) / "chat_template.jinja").write_text(
            "{% for message in messages %}({{ message.role }}){{ message.content }}</>{% endfor %}"
        )
        self.assertEqual(
            self.evaluation("--model", self.path("apart"), "--data", self.path("apart.jsonl"))["eval_loss"],
            self.metrics("apart")[-1]["eval_loss"],
        )
        # A text prompt with answers as messages, members in another order, and answers that are equal or
        # empty.
        odd = [
            {
                "prompt": "what? ",
                "chosen": [turn("assistant", "this")],
                "rejected": [{"content": "that", "role": "assistant"}],
            },
            {
                "chosen": [turn("user", "what? "), turn("assistant", "this")],
                "rejected": [{"content": "what? ", "role": "user"}, turn("assistant", "that")],
            },
            {
                "chosen": [turn("user", "what? "), turn("assistant", "this")],
                "rejected": [turn("user", "what? "), turn("assistant", "this")],
            },
            {
                "chosen": [turn("user", "what? "), turn("assistant", "this")],
                "rejected": [turn("user", "what? "), turn("assistant", "")],
            },
        ]
        output = self.train_on(
            "odd",
            self.file(odd * 5, "odds.jsonl"),
            "--steps",
            1,
            "--chat-template",
            template,
            model=self.path("base"),
            sequence=160,
        ).stdout
        self.assertRegex(
            output,
            r"pairs       10 of chosen .*; 10 more left out: 5 with an empty answer, "
            r"5 whose answers are alike\n",
        )
        self.refused(
            "train",
            "--model",
            self.path("base"),
            "--data",
            self.file([{"chosen": [turn("user", "a")], "rejected": [turn("user", "b")]}], "odd.jsonl"),
            "--batch",
            4,
            "--seq",
            64,
            "--document-end",
            0,
            "--steps",
            1,
            "--chat-template",
            template,
            "--out",
            self.path("none"),
            expect=FAILED,
            says=["odd.jsonl, line 1: chosen", "messages that begin with those of rejected"],
        )

    def test_a_signal_ends_the_reference_and_leaves_nothing(self):
        data = self.file(self.pairs(6000))
        run = subprocess.Popen(
            [
                STOWAGE,
                "train",
                "--model",
                "nano",
                "--data",
                data,
                "--batch",
                "4",
                "--seq",
                "64",
                "--document-end",
                "0",
                "--threads",
                "2",
                "--steps",
                "1",
                "--out",
                self.path("run"),
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for line in run.stdout:
            if line.startswith("reference"):
                break
        run.send_signal(signal.SIGINT)
        _, complaint = run.communicate(timeout=60)
        self.assertEqual(
            (run.returncode, complaint),
            (
                130,
                "\nstowage: stopping; once more to end at once\n"
                "stowage: error: stopped while the reference was computed; nothing of it was saved\n",
            ),
        )
        self.assertEqual(list(pathlib.Path(self.path("run")).glob("reference*")), [])

    def test_a_long_reference_shows_its_progress(self):
        data = self.file(self.pairs(3000))
        output = self.train_on("run", data, "--steps", 1).stdout
        lines = re.findall(r"^reference   +([\d,]+) of 3,000 samples  \S.* left$", output, re.MULTILINE)
        counts = [int(line.replace(",", "")) for line in lines]
        self.assertTrue(counts, output)
        self.assertEqual(counts, sorted(counts))
        self.assertLessEqual(counts[-1], 3000)
        # `eval` writes only the answer to stdout. A terminal on stderr shows a line with the progress, which
        # is erased at the end.
        words = [
            "eval",
            "--model",
            self.path("run"),
            "--data",
            data,
            "--all",
            "--document-end",
            "0",
            "--json",
        ]
        shown, answer = self.on_terminal("stderr", *words)
        self.assertIn("eval_loss", json.loads(answer))
        self.assertRegex(shown, rb"\rreference   +[\d,]+ of 3,000 samples  \S[^\r\n]* left\x1b\[K")
        self.assertRegex(shown, rb"\revaluation  +[\d,]+ of 3,000 samples  \S[^\r\n]* left\x1b\[K")
        self.assertTrue(shown.endswith(b"\r\x1b[K"), shown[-200:])

    def test_pairs_that_are_too_long_are_cut_and_pairs_without_room_for_answers_left_out(self):
        lines = self.pairs(30) + [
            {"prompt": "p" * 10, "chosen": "c" * 70, "rejected": "r"},
            {"prompt": "q" * 90, "chosen": "c", "rejected": "r"},
        ]
        output = self.train_on("run", self.file(lines), "--steps", 2).stdout
        self.assertRegex(
            output,
            r"pairs       31 of chosen .* are learned; 1 cut to the length of a sample; "
            r"1 more left out: 1 whose answers are cut away\n",
        )
        printed = self.run_command(
            "eval",
            "--model",
            self.path("run"),
            "--data",
            self.path("pairs.jsonl"),
            "--all",
            "--document-end",
            0,
        ).stdout
        self.assertRegex(
            printed,
            r"over the 31 pairs of .*; 1 cut to the length of a sample; 1 more left out: "
            r"1 whose answers are cut away\n",
        )
        self.refused(
            "train",
            "--model",
            "nano",
            "--data",
            self.file(lines[-1:], "long.jsonl"),
            "--batch",
            4,
            "--seq",
            64,
            "--document-end",
            0,
            "--steps",
            1,
            "--out",
            self.path("none"),
            expect=FAILED,
            says=[
                "no pair has two answers left",
                "all 1 pairs are left out, 1 whose answers are cut away",
                "use a longer --seq: 181 is the least that helps",
            ],
        )

    def test_mistakes_are_named(self):
        data, text = self.file(self.pairs(20)), self.write("text.txt", "abc" * 3000)
        words = [
            "train",
            "--model",
            "nano",
            "--batch",
            4,
            "--document-end",
            0,
            "--steps",
            1,
            "--out",
            self.path("none"),
        ]
        self.refused(
            *words,
            "--data",
            text,
            "--preference",
            "dpo",
            expect=USAGE,
            says=["--preference dpo", "pairs of answers"],
        )
        self.refused(
            *words, "--data", text, "--beta", 1, expect=USAGE, says=["--beta: is for pairs of answers"]
        )
        self.refused(
            *words,
            "--data",
            data,
            "--margin",
            1,
            expect=USAGE,
            says=["--margin: is for --preference simpo, not for dpo"],
        )
        self.refused(*words, "--data", data, "--preference", "kto", expect=USAGE, says=["--preference"])
        self.refused(*words, "--data", data, "--z-loss", 1e-4, expect=USAGE, says=["--z-loss"])
        broken = self.pairs(3)
        del broken[2]["rejected"]
        self.refused(
            *words,
            "--data",
            self.file(broken, "broken.jsonl"),
            expect=FAILED,
            says=["broken.jsonl, line 3", '"chosen" and "rejected"'],
        )
        self.refused(
            "train",
            "--model",
            "nano",
            "--batch",
            4,
            "--steps",
            1,
            "--out",
            self.path("none"),
            "--data",
            data,
            expect=USAGE,
            says=["--document-end"],
        )
        self.train_on("run", data, "--steps", 2)
        self.refused(
            "train",
            "--resume",
            self.path("run"),
            "--preference",
            "simpo",
            "--steps",
            3,
            expect=FAILED,
            says=["--preference simpo", "learns the preference dpo"],
        )
        self.refused(
            "train",
            "--resume",
            self.path("run"),
            "--data",
            text,
            "--steps",
            3,
            expect=FAILED,
            says=["--data", "pairs of answers", "learns the preference dpo"],
        )
        self.train_on("plain", text, "--steps", 2)
        self.refused(
            "train",
            "--resume",
            self.path("plain"),
            "--data",
            data,
            "--steps",
            3,
            expect=FAILED,
            says=["--data", "learns no preference"],
        )
        self.refused(
            *words,
            "--data",
            data,
            "--eval-data",
            text,
            expect=FAILED,
            says=["text.txt: it has no pairs of answers"],
        )
        self.refused(
            *words, "--data", data, "--label-smoothing", 0.5, expect=USAGE, says=["--label-smoothing"]
        )
        self.refused(*words, "--data", data, "--text-field", "body", expect=USAGE, says=["--text-field"])
        judged = self.file([{"prompt": "a", "completion": "b", "label": False}] * 9, "judged.jsonl")
        self.refused(*words, "--data", judged, expect=FAILED, says=["judged.jsonl, line 1: label", "KTO"])
        first = self.pairs(3)
        del first[0]["rejected"]
        self.refused(
            *words,
            "--data",
            self.file(first, "first.jsonl"),
            expect=FAILED,
            says=["first.jsonl, line 1", '"chosen" and "rejected"'],
        )
        self.refused(
            "eval",
            "--model",
            self.path("run"),
            "--data",
            text,
            "--document-end",
            0,
            "--beta",
            1,
            expect=USAGE,
            says=["--beta"],
        )
        small = json.loads(
            self.run_command(
                "eval",
                "--model",
                self.path("run"),
                "--data",
                data,
                "--document-end",
                0,
                "--vram",
                "1MiB",
                "--json",
                expect=3,
            ).stdout
        )
        self.assertIs(small["fits"], False)
        self.refused(
            "eval",
            "--model",
            self.path("run"),
            "--data",
            text,
            "--document-end",
            0,
            "--reference-model",
            "nano",
            expect=USAGE,
            says=["--reference-model"],
        )
        plan = self.write(
            "plan.json",
            self.run_command(
                "plan", "--model", "nano", "--batch", 4, "--vram", "64MiB", "--preference", "simpo", "--json"
            ).stdout,
        )
        self.refused(
            "train",
            "--model",
            "nano",
            "--data",
            text,
            "--plan",
            plan,
            "--steps",
            1,
            "--out",
            self.path("none"),
            expect=USAGE,
            says=["--preference simpo", "no pairs"],
        )
        self.run_command(
            "train",
            "--model",
            "nano",
            "--data",
            data,
            "--plan",
            plan,
            "--document-end",
            0,
            "--steps",
            1,
            "--out",
            self.path("planned"),
        )
