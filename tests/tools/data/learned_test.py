"""The learned part of an example: marks, empty answers, prompts that fill a sample, and the display by `train
--show-examples`."""

import json
import struct

from support import USAGE, CommandTest

TURNS = (
    "{% for m in messages %}<{{ m.role[0] }}>{{ m.content }}</>{% endfor %}"
    "{% if add_generation_prompt %}<a>{% endif %}"
)
MARKED_BY_TEMPLATE = (
    "{% for m in messages %}<{{ m.role[0] }}>{% if m.role == 'assistant' %}"
    "{% generation %}{{ m.content }}</>{% endgeneration %}{% else %}{{ m.content }}</>{% endif %}{% endfor %}"
)
END = 1


def user(text, **more):
    return {"role": "user", "content": text, **more}


def assistant(text, **more):
    return {"role": "assistant", "content": text, **more}


class LearnedTest(CommandTest):
    def lines(self, rows, name="data.jsonl"):
        return self.write(name, "".join(json.dumps(row) + "\n" for row in rows))

    def words(self, data, *more, sequence=64, template=TURNS):
        return [
            "train",
            "--model",
            "nano",
            "--data",
            data,
            "--seq",
            sequence,
            "--document-end",
            END,
            "--chat-template",
            self.write("turns.jinja", template),
            *more,
        ]

    def shown(self, rows, *more, **how):
        """The output of --show-examples: the first line of each example, and its pieces."""
        output = self.run_command(
            *self.words(
                self.lines(rows) if isinstance(rows, list) else rows, "--show-examples", 99, *more, **how
            )
        ).stdout
        return self.parsed(output)

    def parsed(self, output):
        examples = []
        for line in output.splitlines():
            if not line.startswith(" "):
                examples.append((line.replace(f"{self.folder}/", ""), []))
            elif not line.startswith(" " * 17):
                examples[-1][1].append(
                    (line[2:16].strip(), json.loads(line[17:]) if line[17] == '"' else line[17:])
                )
        return examples

    def learned(self, row, **how):
        """The learned pieces of an example. None if it is left out; a second example is always kept."""
        keeps = {"prompt": "k", "completion": "eep"}
        shown = self.shown([row, keeps], **how)
        self.assertEqual(
            shown[-1],
            (
                f"example {len(shown)} of data.jsonl, line 2: 5 tokens, 4 learned",
                [("context", "k"), ("learned", "eep\x01".replace("\x01", "\ufffd"))],
            ),
        )
        return [text for role, text in shown[0][1] if role == "learned"] if len(shown) == 2 else None

    def refusal(self, row, *says, **how):
        self.refused(
            *self.words(self.lines([row]), "--show-examples", 1, **how), says=["data.jsonl, line 1", *says]
        )

    def test_marks_of_messages(self):
        talk = [user("q1"), assistant("a1"), user("q2"), assistant("a2")]

        def marked(first=None, second=None):
            return {
                "messages": [talk[0], {**talk[1], **(first or {})}, talk[2], {**talk[3], **(second or {})}]
            }

        for template in (TURNS, MARKED_BY_TEMPLATE):
            for out in (
                {"weight": 0},
                {"weight": 0.0},
                {"weight": False},
                {"train": False},
                {"training": False},
                {"loss": False},
                {"masked": True},
                {"weight": 0, "train": False},
            ):
                self.assertEqual(self.learned(marked(out), template=template), ["a2</>"], out)
                self.assertEqual(self.learned(marked(None, out), template=template), ["a1</>"], out)
            for kept in (
                {"weight": 1},
                {"weight": 1.0},
                {"train": True},
                {"masked": False},
                {"weight": None, "train_detail": None},
                {"train_detail": []},
            ):
                self.assertEqual(self.learned(marked(kept), template=template), ["a1</>", "a2</>"], kept)
            self.assertIsNone(self.learned(marked({"weight": 0}, {"weight": 0}), template=template))
        # Messages that are not learned stay in the context, and the template may change their text.
        shown = self.shown([marked({"weight": 0})])
        self.assertEqual(
            shown,
            [
                (
                    "example 1 of data.jsonl, line 1: 32 tokens, 5 learned",
                    [("context", "<u>q1</><a>a1</><u>q2</><a>"), ("learned", "a2</>")],
                )
            ],
        )
        silent = TURNS.replace("{{ m.content }}", "{{ '#' if loop.index0 == 1 else m.content }}")
        self.refusal({"messages": talk}, "does not write the assistant's text", template=silent)
        self.assertEqual(self.learned(marked({"weight": 0}), template=silent), ["a2</>"])
        # A template may mark an empty message too. It must not mark several messages in one piece if only
        # some of them are learned.
        empty = {"messages": [user("q"), assistant("", weight=0), user("r"), assistant("s")]}
        self.assertEqual(self.learned(empty, template=MARKED_BY_TEMPLATE), ["s</>"])
        together = "{% generation %}" + TURNS + "{% endgeneration %}"
        self.refusal(marked({"weight": 0}), "marks the assistant's messages in one piece", template=together)
        self.assertEqual(
            self.learned(
                {
                    "prompt": [user("q"), assistant("old", weight=1)],
                    "completion": [assistant("x", weight=0), user("r"), assistant("y")],
                }
            ),
            ["y</>"],
        )

    def test_marks_with_other_values_are_refused(self):
        def talk(**marks):
            return {"messages": [user("q"), assistant("a", **marks)]}

        for marks, *says in (
            ({"weight": 0.5}, "messages[1].weight: expected 0 or 1", "found 0.5"),
            ({"weight": 2}, "found 2"),
            ({"weight": "0"}, "weight: expected 0 or 1"),
            ({"train": "no"}, "train: expected", "found no"),
            ({"weight": []}, "weight: expected"),
            (
                {"weight": 0, "train": True},
                "messages[1].train: expected a mark that agrees with the other marks",
            ),
            ({"train_detail": [{"begin_offset": 0}]}, "messages[1].train_detail: expected no such mark"),
            ({"loss_scale": 0.3}, "loss_scale: expected no such mark"),
            (
                {"function_call": {"name": "f", "arguments": "{}"}},
                "messages[1]",
                "does not write function_call",
            ),
            ({"refusal": "I cannot"}, "does not write refusal"),
        ):
            with self.subTest(marks):
                self.refusal(talk(**marks), *says)
        self.refusal(
            {"messages": [user("q", weight=1), assistant("a")]},
            'messages[0]: expected no mark that a message of "user" is learned',
            "leave the mark out",
        )
        self.assertEqual(
            self.learned({"messages": [user("q", weight=0, train=False), assistant("a")]}), ["a</>"]
        )
        for row in (
            talk(),
            {"prompt": "p", "completion": "c"},
            {"text": "t"},
            {"prompt": "p", "chosen": "c", "rejected": "r"},
        ):
            self.refusal({**row, "weight": 0.3}, "weight: expected 0 or 1", "found 0.3")
            self.refusal(
                {**row, "loss_mask": [0, 1]},
                "loss_mask: expected no such mark",
                "an example is learned whole",
            )

    def test_marks_of_examples_and_of_sharegpt(self):
        for row in (
            {"messages": [user("q"), assistant("a")]},
            {"prompt": "p", "completion": "c"},
            {"text": "te"},
            {"prompt": [user("q")], "completion": [assistant("a")]},
        ):
            self.assertIsNone(self.learned({**row, "weight": 0}), row)
            self.assertIsNone(self.learned({**row, "train": False}), row)
            self.assertEqual(self.learned({**row, "weight": 1.0}), self.learned(row))
        share = [
            {"from": "human", "value": "q"},
            {"from": "gpt", "value": "a1", "weight": 0},
            {"from": "human", "value": "r"},
            {"from": "gpt", "value": "a2", "name": "N"},
        ]
        self.assertEqual(self.learned({"conversations": share}), ["a2</>"])
        named = TURNS.replace(
            "{{ m.content }}", "{{ m.name or '' }}:{{ m.content }}"
        )  # a template gets the other members of messages
        self.assertEqual(
            self.shown([{"conversations": share}], template=named)[0][1],
            [("context", "<u>:q</><a>:a1</><u>:r</><a>"), ("learned", "N:a2</>")],
        )
        self.assertEqual(
            self.shown([{"messages": [user("q", name="U"), assistant("a", name="N")]}], template=named)[0][1],
            [("context", "<u>U:q</><a>"), ("learned", "N:a</>")],
        )

    def test_empty_examples_are_left_out(self):
        for row in (
            {"prompt": "p", "completion": ""},
            {"prompt": "p", "completion": " \n\t"},
            {"text": ""},
            {"text": "\n"},
            {"messages": []},
            {"messages": [user("q")]},
            {"messages": [user("q"), assistant(" \n")]},
            {"messages": [user("q"), assistant(None)]},
            {"messages": [user("q"), assistant([{"type": "text", "text": ""}])]},
            {"conversations": [{"from": "human", "value": "q"}]},
            {"prompt": [user("q")], "completion": [assistant("")]},
            {"prompt": [user("q"), assistant("a")], "completion": [user("r")]},
            {"prompt": [user("q")], "completion": []},
        ):
            for template in (TURNS, MARKED_BY_TEMPLATE):
                self.assertIsNone(self.learned(row, template=template), row)
        self.assertEqual(
            self.learned({"messages": [user("q"), assistant(""), user("r"), assistant("s")]}), ["s</>"]
        )
        rows = (
            [{"prompt": "p", "completion": "c"}] * 20
            + [{"text": ""}] * 3
            + [{"messages": [user("q"), assistant("a")], "weight": 0}] * 2
        )
        data = self.lines(rows)
        output = self.run_command(
            *self.words(
                data, "--batch", 4, "--steps", 1, "--vram", "32MiB", "--threads", 2, "--out", self.path("run")
            )
        ).stdout
        self.assertIn(
            "examples    20, of which 40 tokens are learned; 5 more left out: 3 empty, "
            "2 marked out of the loss\n",
            output,
        )
        counts = {"empty": 3, "marked": 2, "no_room": 0, "alike": 0}
        self.assertEqual(self.metrics("run")[0], {"step": 0, "examples": 20, "left_out": counts})
        evaluated = json.loads(
            self.run_command("eval", "--model", self.path("run"), "--data", data, "--all", "--json").stdout
        )
        self.assertEqual((evaluated["examples"], evaluated["left_out"]), (20, counts))
        self.assertIn(
            f"of {data}, every example once; 5 more left out: 3 empty",
            self.run_command("eval", "--model", self.path("run"), "--data", data, "--all").stdout,
        )
        self.run_command("train", "--resume", self.path("run"), "--steps", 2)
        self.assertEqual([line["step"] for line in self.metrics("run") if "left_out" in line], [0])
        ids = self.lines(
            [{"prompt": [2, 3], "completion": []}, {"text": []}, {"prompt": [2], "completion": [3]}],
            "ids.jsonl",
        )
        shown = self.shown(ids, "--tokenizer", "ids")
        self.assertEqual(
            shown,
            [
                (
                    "example 1 of ids.jsonl, line 3: 3 tokens, 2 learned",
                    [("context", "1 token: 2"), ("learned", "2 tokens: 3 1")],
                )
            ],
        )
        self.refused(
            *self.words(self.lines([{"text": ""}] * 3), "--show-examples", 1),
            says=["nothing to learn", "all 3 examples are left out, 3 empty; expected completions"],
        )

    def test_pairs_with_an_empty_answer_are_left_out(self):
        def messages(text):
            return [assistant(text)]

        question = [user("q")]
        good = {"prompt": "p", "chosen": "yes", "rejected": "no"}
        for chosen, rejected in (("", "no"), ("yes", ""), (" \n", "no"), ("same", "same"), ("", "")):
            for row in (
                {"prompt": "p", "chosen": chosen, "rejected": rejected},
                {"prompt": question, "chosen": messages(chosen), "rejected": messages(rejected)},
                {"prompt": "q", "chosen": messages(chosen), "rejected": messages(rejected)},
                {"chosen": question + messages(chosen), "rejected": question + messages(rejected)},
                {"chosen": "p" + chosen, "rejected": "p" + rejected},
            ):
                if chosen == " \n" and row["chosen"] == "p \n":
                    continue  # then the common beginning is p, and the blank is an answer
                for template in (TURNS, MARKED_BY_TEMPLATE):
                    self.assertEqual(
                        [first for first, _ in self.shown([row, good], template=template)],
                        [
                            "pair 1 of data.jsonl, line 2, chosen: 5 tokens, 4 learned",
                            "pair 1 of data.jsonl, line 2, rejected: 4 tokens, 3 learned",
                        ],
                        row,
                    )
        rows = (
            [good] * 20
            + [{**good, "chosen": ""}] * 3
            + [{**good, "rejected": "yes"}] * 2
            + [{**good, "train": False}]
            + [{**good, "prompt": "p" * 80}] * 4
        )
        output = self.run_command(
            *self.words(
                self.lines(rows),
                "--batch",
                4,
                "--steps",
                1,
                "--vram",
                "32MiB",
                "--threads",
                2,
                "--out",
                self.path("run"),
            )
        ).stdout
        self.assertIn(
            "pairs       20 of chosen and rejected answers, for dpo; 140 tokens are learned; "
            "10 more left out: 3 with an empty answer, 1 marked out of the loss, "
            "4 whose answers are cut away, 2 whose answers are alike\n",
            output,
        )
        self.assertEqual(
            self.metrics("run")[0]["left_out"], {"empty": 3, "marked": 1, "no_room": 4, "alike": 2}
        )
        # Marks inside of an answer. A pair with an answer without a learned message is left out.
        two = {
            "prompt": question,
            "chosen": [assistant("x", weight=0), user("r"), assistant("y")],
            "rejected": messages("z"),
        }
        self.assertEqual(
            [[text for role, text in pieces if role == "learned"] for _, pieces in self.shown([two])],
            [["y</>"], ["z</>"]],
        )
        out = {"prompt": question, "chosen": messages("y"), "rejected": [assistant("z", train=False)]}
        self.refused(
            *self.words(self.lines([out]), "--show-examples", 1),
            says=["all 1 pairs are left out, 1 marked out of the loss; expected pairs"],
        )

    def test_prompts_that_fill_a_sample(self):
        short, long = {"prompt": "p", "completion": "c"}, {"prompt": "p" * 70, "completion": "cc"}
        out = ["--batch", 2, "--vram", "32MiB", "--threads", 2, "--steps", 2]
        for rows in ([short] * 30 + [long] * 30, [short] * 9 + [long]):
            output = self.run_command(
                *self.words(self.lines(rows), *out, "--out", self.path(f"run{len(rows)}"))
            ).stdout
            self.assertRegex(
                output,
                r"; \d+ more left out: \d+ whose prompts fill a sample\n(.*\n)*step 2: evaluation loss \d",
            )
        self.refused(
            *self.words(self.lines([long] * 20), *out, "--out", self.path("none")),
            says=[
                "all 20 examples are left out, 20 whose prompts fill a sample",
                "--seq: 70 is the least that helps, 72 has room for all",
            ],
        )
        self.refused(
            *self.words(self.lines([long] * 20), *out, "--out", self.path("none"), sequence=69),
            says=["70 is the least that helps"],
        )
        output = self.run_command(
            *self.words(self.lines([long] * 20), *out, "--out", self.path("helped"), sequence=70)
        ).stdout
        self.assertIn(
            "examples    20, of which 20 tokens are learned; 20 cut to the length of a sample\n",
            output,
        )
        few = self.lines([short] + [long] * 19)
        self.refused(
            *self.words(few, *out, "--out", self.path("none")),
            says=[
                "too few examples (1) to hold one out for evaluations; 19 more left out: 19 whose prompts",
                "--eval-batches 0",
            ],
        )
        self.run_command(*self.words(few, *out, "--out", self.path("few"), "--eval-batches", 0))

    def test_reports_an_evaluation_without_targets(self):
        # In the last tenth every token ends a document. A token after such an end is not learned, so no
        # target is left.
        data = self.write("text.txt", "the hold\n" * 400 + "\n" * 500)
        words = [
            "train",
            "--model",
            "nano",
            "--data",
            data,
            "--document-end",
            10,
            "--batch",
            2,
            "--seq",
            32,
            "--vram",
            "32MiB",
            "--threads",
            2,
            "--steps",
            3,
            "--out",
            self.path("run"),
        ]
        output = self.run_command(*words).stdout
        self.assertIn("step 3: no evaluation: nothing is learned of the held-out part\n", output)
        self.assertEqual(self.metrics("run")[-1], {"step": 3, "eval_loss": None, "skip_reason": "no_target"})
        self.refused(
            "eval",
            "--model",
            self.path("run"),
            "--data",
            data,
            "--document-end",
            10,
            "--json",
            says=["text.txt: nothing to evaluate", "--all"],
        )

    def test_text_and_tokens_are_shown(self):
        data = self.write("text.txt", "abc\ndefg" * 20)
        words = ["train", "--model", "nano", "--data", data, "--seq", 4, "--show-examples", 2]
        self.assertEqual(
            self.parsed(self.run_command(*words).stdout),
            [
                ("sample 1 of tokens 0 to 4: 5 tokens, 4 learned", [("context", "a"), ("learned", "bc\nd")]),
                ("sample 2 of tokens 4 to 8: 5 tokens, 4 learned", [("context", "d"), ("learned", "efga")]),
            ],
        )
        ended = self.parsed(self.run_command(*words, "--document-end", 10).stdout)
        self.assertEqual(
            ended[0],
            (
                "sample 1 of tokens 0 to 4: 5 tokens, 3 learned",
                [("context", "a"), ("learned", "bc\n"), ("context", "d")],
            ),
        )
        tokens = self.write("tokens.bin", struct.pack("<9H", *range(9)))
        output = self.run_command(
            "train",
            "--model",
            "nano",
            "--tokenizer",
            "ids",
            "--data",
            tokens,
            "--seq",
            4,
            "--show-examples",
            1,
        ).stdout
        self.assertEqual(
            output,
            "sample 1 of tokens 0 to 4: 5 tokens, 4 learned\n  context        1 token: 0\n"
            "  learned        4 tokens: 1 2 3 4\n",
        )
        cut = self.shown([{"prompt": "p", "completion": "c" * 9}], sequence=4)
        self.assertEqual(
            cut,
            [
                (
                    "example 1 of data.jsonl, line 1: 11 tokens, 4 learned",
                    [("context", "p"), ("learned", "cccc"), ("cut off", "ccccc\ufffd")],
                )
            ],
        )
        self.assertIn(
            '  learned        "cc\ufffd"\n                 3 tokens: 99 99 1\n',
            self.run_command(
                *self.words(self.lines([{"prompt": "p", "completion": "cc"}]), "--show-examples", 1)
            ).stdout,
        )

    def test_labels_tags_and_hidden_tokens_are_shown(self):
        words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "red", "box", "##es"]
        self.write("bert/vocab.txt", "".join(word + "\n" for word in words))
        self.write(
            "bert/config.json",
            json.dumps(
                {
                    "model_type": "bert",
                    "architectures": ["BertModel"],
                    "vocab_size": len(words),
                    "hidden_size": 16,
                    "num_hidden_layers": 1,
                    "num_attention_heads": 2,
                    "intermediate_size": 32,
                    "max_position_embeddings": 32,
                    "type_vocab_size": 2,
                    "pad_token_id": 0,
                }
            ),
        )

        def shown(rows, *more):
            return self.parsed(
                self.run_command(
                    "train",
                    "--model",
                    self.path("bert"),
                    "--data",
                    self.lines(rows),
                    "--seq",
                    16,
                    "--show-examples",
                    9,
                    *more,
                ).stdout
            )

        labelled = shown([{"text": "red box", "label": "a"}, {"text": "boxes", "label": "b"}])
        self.assertEqual(
            labelled,
            [
                ('text 1 of data.jsonl, line 1: 4 tokens, label "a"', [("text", "[CLS]red box[SEP]")]),
                ('text 2 of data.jsonl, line 2: 4 tokens, label "b"', [("text", "[CLS]boxes[SEP]")]),
            ],
        )
        # Shown in the order of the file, not in the order of training.
        table = self.write(
            "table.csv", "text,label\n" + "".join(f'"red {"box " * i}",{"ab"[i % 2]}\n' for i in range(9))
        )
        shown_rows = self.parsed(
            self.run_command(
                "train", "--model", self.path("bert"), "--data", table, "--seq", 16, "--show-examples", 9
            ).stdout
        )
        self.assertEqual(
            [first for first, _ in shown_rows],
            [f'text {i + 1} of table.csv:{i + 2}: {i + 3} tokens, label "{"ab"[i % 2]}"' for i in range(9)],
        )
        several = shown([{"text": "red", "labels": ["x", "y"]}, {"text": "box", "labels": []}])
        self.assertEqual(
            sorted(first.split(" tokens, ")[1] for first, _ in several), ['labels "x", "y"', "labels none"]
        )
        numbers = shown([{"text": "red", "label": 1.5}, {"text": "box", "label": -2}], "--task", "number")
        self.assertEqual(
            sorted(first.split(" tokens, ")[1] for first, _ in numbers), ["number -2", "number 1.5"]
        )
        scheme, tagged = shown([{"tokens": ["red", "boxes"], "tags": ["O", "B-X"]}])
        self.assertEqual(scheme, ("words       scheme IOB2", []))
        self.assertEqual(tagged[0], "text 1 of data.jsonl, line 1: 5 tokens, 2 labels")
        self.assertEqual([role for role, _ in tagged[1]], ["no label", "O", "B-X", "no label"])
        hidden = shown([{"text": "red boxes"}], "--task", "masked")
        self.assertEqual(
            hidden[0][0],
            "text 1 of data.jsonl, line 1: 5 tokens, 3 of them may be hidden, each with a probability of "
            "0.15",
        )
        self.assertEqual(
            hidden[0][1],
            [("never hidden", "[CLS]"), ("may be hidden", " red boxes"), ("never hidden", "[SEP]")],
        )
        hidden = shown([{"text": "red " * n} for n in range(1, 6)], "--task", "masked")
        self.assertEqual(
            [first.split(":")[0] for first, _ in hidden],
            [f"text {n} of data.jsonl, line {n}" for n in range(1, 6)],
        )

    def test_a_batch_in_examples(self):
        data = self.lines([{"prompt": "ab", "completion": "cdefg"}] * 80)  # 8 tokens, four in a sample of 32
        words = ["--vram", "64MiB", "--threads", 2, "--steps", 2, "--schedule", "constant"]
        output = self.run_command(
            *self.words(data, *words, "--batch-examples", 17, "--out", self.path("examples"), sequence=32)
        ).stdout
        self.assertIn(
            "batch       4 samples of 32 tokens, which hold 16 examples on average; "
            "--batch-examples asks for 17\n",
            output,
        )
        self.assertIn("plan        batch 4 x 32 tokens", output)
        self.run_command(*self.words(data, *words, "--batch", 4, "--out", self.path("samples"), sequence=32))
        self.assertEqual(self.weights("examples"), self.weights("samples"))
        self.run_command("train", "--resume", self.path("examples"), "--steps", 3)
        self.run_command("train", "--resume", self.path("samples"), "--steps", 3)
        self.assertEqual(self.weights("examples"), self.weights("samples"))
        self.refused(
            "train",
            "--resume",
            self.path("examples"),
            "--steps",
            4,
            "--batch-examples",
            40,
            says=["--batch-examples", "has 17, found 40"],
        )
        self.refused(
            "train",
            "--resume",
            self.path("samples"),
            "--steps",
            4,
            "--batch-examples",
            40,
            says=["--batch-examples", "has none, found 40"],
        )
        self.refused(
            *self.words(data, *words, "--batch", 4, "--batch-examples", 17, "--out", self.path("none")),
            expect=USAGE,
            says=["--batch"],
        )
        self.refused(
            *self.words(
                self.write("text.txt", "a" * 999), *words, "--batch-examples", 17, "--out", self.path("none")
            ),
            expect=USAGE,
            says=["--batch-examples 17", "files of examples"],
        )
        # The output has the speed for all tokens, which the plan predicts, and for the learned ones.
        self.assertRegex(output, r"lr \S+  [\d.]+k? tokens/s, [\d.]+k? learned  ")
        step = self.metrics("samples")[0]
        self.assertAlmostEqual(step["sample_tokens_per_second"] * step["seconds"], 4 * 32, places=3)
        self.assertAlmostEqual(step["tokens_per_second"] * step["seconds"], step["tokens"], places=3)
        self.assertRegex(self.train("whole", "--steps", 1).stdout, r"lr \S+  [\d.]+k? tokens/s  ")
