"""Labels of words: `train --task tokens`, `eval` and `classify` on texts of words and tags."""

import json
import random

from support import FAILED, USAGE, CommandTest

from data.encoder_test import BERT, COLOURS, DISTILBERT, MODERNBERT, WORDS

PLAIN = ["the", "is", "not", "here", "big", "small"]
THINGS = ["box", "ball"]
TAGS = ["B-COLOUR", "B-NAME", "B-THING", "I-COLOUR", "O"]


class TokensTest(CommandTest):
    def model_folder(self, config=BERT, name="bert"):
        special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
        self.write(
            f"{name}/vocab.txt",
            "".join(word + "\n" for word in special + WORDS + ["##" + letter for letter in "abcdefghij"]),
        )
        self.write(f"{name}/config.json", json.dumps(config))
        return self.path(name)

    # Consecutive colours are one entity. Names have several tokens.
    def texts(self, count, seed):
        draw = random.Random(seed)
        texts = []
        for _ in range(count):
            words, tags = [], []
            for _ in range(draw.randrange(2, 7)):
                kind = draw.randrange(4)
                if kind == 0:
                    colours = [draw.choice(COLOURS) for _ in range(draw.randrange(1, 3))]
                    tags += ["I-COLOUR" if words and tags[-1].endswith("COLOUR") else "B-COLOUR"] + [
                        "I-COLOUR"
                    ] * (len(colours) - 1)
                    words += colours
                elif kind == 1:
                    words.append("a" + "".join(draw.choice("abcdefghij") for _ in range(2)))
                    tags.append("B-NAME")
                elif kind == 2:
                    words.append(draw.choice(THINGS))
                    tags.append("B-THING")
                else:
                    words.append(draw.choice(PLAIN))
                    tags.append("O")
            texts.append((words, tags))
        return texts

    def lines(self, texts, name="texts.jsonl", words="tokens", tags="tags"):
        return self.write(
            name,
            "".join(
                json.dumps({"id": i, words: text[0], tags: text[1]}) + "\n" for i, text in enumerate(texts)
            ),
        )

    def conll(self, texts, name="texts.conll", separator=" "):
        return self.write(
            name,
            "\n".join("".join(f"{word}{separator}{tag}\n" for word, tag in zip(*text)) for text in texts),
        )

    def train_on(self, data, *more, model=None, out="run", expect=0):
        return self.run_command(
            "train",
            "--model",
            model or self.model_folder(),
            "--data",
            data,
            "--batch",
            8,
            "--seq",
            48,
            "--vram",
            "64MiB",
            "--threads",
            2,
            "--eval-batches",
            2,
            "--out",
            self.path(out),
            *more,
            expect=expect,
        )

    def classified(self, *words, model="run"):
        return [
            json.loads(line)
            for line in self.run_command(
                "classify", "--model", self.path(model), *words, "--json"
            ).stdout.splitlines()
        ]

    def evaluated(self, data, *more, model="run"):
        return json.loads(
            self.run_command(
                "eval", "--model", self.path(model), "--data", data, "--all", "--json", *more
            ).stdout
        )

    def entities(self, tags):
        """Entities as [label, first word, end], for the tags that occur in these tests."""
        found = []
        for i, tag in enumerate(tags):
            if tag.startswith("I-") and found and found[-1][2] == i and found[-1][0] == tag[2:]:
                found[-1][2] = i + 1
            elif tag != "O":
                found.append([tag[2:], i, i + 1])
        return found

    def test_words_are_tagged(self):
        output = self.train_on(self.lines(self.texts(400, 1)), "--steps", 150, "--lr", "3e-3").stdout
        words = sum(len(words) for words, _ in self.texts(400, 1))
        self.assertIn(f"examples    400, with {words:,} words that each have one of 5 labels\n", output)
        self.assertRegex(
            output,
            r"step 150: evaluation loss 0\.\d+ \(accuracy (1\.0000|0\.9\d+)(, F1 [01]\.\d+( macro)?)?\)\n",
        )
        self.assertRegex(output, r"trained     150 steps on [\d,]+ words\n")
        config = json.loads(self.read("run", "config.json"))
        self.assertEqual(config["architectures"], ["BertForTokenClassification"])
        self.assertEqual(config["id2label"], {str(i): tag for i, tag in enumerate(TAGS)})
        self.assertEqual(config["label2id"], {tag: i for i, tag in enumerate(TAGS)})
        self.assertNotIn("problem_type", config)
        self.assertEqual(json.loads(self.read("run", "labels.json")), TAGS)
        self.assertIn("words", self.run_command("inspect", self.path("run") + "/checkpoint.stw").stdout)
        unseen = self.texts(200, 2)
        data = self.conll(unseen, "unseen.conll")
        answers = self.classified("--data", data)
        expected = [self.entities(tags) for _, tags in unseen]
        given = [[[e["label"], e["first"], e["end"]] for e in answer] for answer in answers]
        self.assertEqual(len(given), len(expected))
        both = sum(e in there for found, there in zip(given, expected) for e in found)
        all_given, all_expected = sum(map(len, given)), sum(map(len, expected))
        self.assertGreater(both / all_expected, 0.9)
        for answer, (words, _) in zip(answers, unseen):
            for e in answer:
                self.assertEqual(e["text"], " ".join(words[e["first"] : e["end"]]))
                self.assertTrue(0 < e["score"] <= 1)
        evaluated = self.evaluated(data)
        self.assertAlmostEqual(evaluated["precision"], both / all_given, places=12)
        self.assertAlmostEqual(evaluated["recall"], both / all_expected, places=12)
        self.assertAlmostEqual(evaluated["f1"], 2 * both / (all_given + all_expected), places=12)
        self.assertEqual(evaluated["entities"], all_expected)
        self.assertEqual(
            evaluated["by_type"]["NAME"]["entities"], sum(e[0] == "NAME" for found in expected for e in found)
        )
        self.assertGreater(evaluated["accuracy"], 0.9)
        self.assertNotIn("f1_macro", evaluated)
        plain = self.run_command("eval", "--model", self.path("run"), "--data", data, "--all").stdout
        self.assertIn(
            f"F1 {evaluated['f1']:.4f}; {all_expected:,} in the texts, {all_given:,} found\n", plain
        )
        self.assertIn("over the 200 texts of words of ", plain)
        # Any kind of file gives the same result, and so do texts that the command splits into words.
        self.assertEqual(
            self.classified("--data", self.lines(unseen, "unseen.jsonl", "words", "ner_tags")), answers
        )
        self.assertEqual(
            self.classified(
                "--data", self.write("unseen.txt", "".join(" ".join(words) + "\n" for words, _ in unseen))
            ),
            answers,
        )
        self.assertEqual(self.evaluated(self.conll(unseen, "tabs.conll", "\t"))["f1"], evaluated["f1"])
        self.assertEqual(
            self.evaluated(
                self.lines(
                    [(words, [TAGS.index(tag) for tag in tags]) for words, tags in unseen], "numbers.jsonl"
                )
            )["f1"],
            evaluated["f1"],
        )

    def test_texts_are_split_as_bert_does(self):
        self.train_on(self.lines(self.texts(400, 1)), "--steps", 150, "--lr", "3e-3")
        [answer] = self.classified("--text", "The red, green\nball!  abc")
        self.assertEqual(
            [(e["label"], e["first"], e["end"], e["text"]) for e in answer if e["label"] != "NAME"],
            [("COLOUR", 1, 2, "red"), ("COLOUR", 3, 4, "green"), ("THING", 4, 5, "ball")],
        )
        printed_lines = self.run_command(
            "classify", "--model", self.path("run"), "--text", "the red\ngreen box", "--text", "is not"
        ).stdout.split("\n")
        self.assertRegex(printed_lines[0], r'^COLOUR 1:3 0\.\d{4} "red\\ngreen"\tTHING 3:4 0\.\d{4} box$')
        self.assertEqual(printed_lines[1:], ["", ""])
        self.refused(
            "classify",
            "--model",
            self.path("run"),
            "--text",
            "red",
            "--top",
            2,
            expect=USAGE,
            says=["--top", "labels words"],
        )
        # A text without a word gets an empty answer in its place.
        lines = self.run_command(
            "classify", "--model", self.path("run"), "--text", "the red", "--text", " ", "--text", "the box"
        ).stdout.splitlines()
        self.assertRegex("\n".join(lines), r"^COLOUR 1:2 [\d.]+ red\n\nTHING 1:2 [\d.]+ box$")
        self.assertEqual(self.classified("--data", self.write("blank.txt", "the red\n\nis not\n"))[1], [])

    def test_tags_of_other_kinds_are_pairs(self):
        plain = [(words, [tag[2:] or "X" for tag in tags]) for words, tags in self.texts(100, 1)]
        self.train_on(
            self.lines(plain),
            "--task",
            "tokens",
            "--steps",
            60,
            "--lr",
            "3e-3",
            model=self.model_folder(DISTILBERT, "distilbert"),
        )
        self.assertEqual(
            json.loads(self.read("run", "config.json"))["architectures"], ["DistilBertForTokenClassification"]
        )
        output = self.run_command("classify", "--model", self.path("run"), "--text", "the red box").stdout
        self.assertRegex(output, r"^the/\w+ red/\w+ box/\w+\n$")
        [answer] = self.classified("--text", "the red box")
        self.assertEqual([f"{one['word']}/{one['label']}" for one in answer], output.split())
        evaluated = self.evaluated(self.path("texts.jsonl"))
        self.assertAlmostEqual(evaluated["f1_micro"], evaluated["accuracy"], places=12)
        self.assertNotIn("entities", evaluated)

    # The head for masked tokens and the head for labels of words begin with the same layers.
    def test_modernbert_keeps_its_head(self):
        self.train_on(
            self.write("plain.txt", "the red box is not here. " * 200),
            "--task",
            "masked",
            "--steps",
            1,
            model=self.model_folder(MODERNBERT, "modernbert"),
            out="masked",
        )
        output = self.train_on(
            self.lines(self.texts(400, 1)), "--steps", 150, "--lr", "3e-3", model=self.path("masked")
        ).stdout
        self.assertIn("weights read from files, and a new head for 5 labels\n", output)
        self.assertRegex(
            output,
            r"step 150: evaluation loss 0\.\d+ \(accuracy (1\.0000|0\.9\d+)(, F1 [01]\.\d+( macro)?)?\)\n",
        )
        self.assertEqual(
            json.loads(self.read("run", "config.json"))["architectures"], ["ModernBertForTokenClassification"]
        )
        self.assertEqual(
            [answer["label"] for answer in self.classified("--text", "red box here")[0]], ["COLOUR", "THING"]
        )

    def test_adapters_bring_the_head(self):
        self.train_on(self.lines(self.texts(40, 1)), "--steps", 1, out="base")
        self.write("base/config.json", json.dumps(BERT))  # the config of a body without a head
        data, words = self.lines(self.texts(400, 1)), ["--lora", 8, "--lr", "1e-2", "--schedule", "constant"]
        output = self.train_on(data, *words, "--steps", 80, model=self.path("base")).stdout
        self.assertIn("adapters    rank 8, ", output)
        self.assertRegex(
            output, r"step 80: evaluation loss 0\.\d+ \(accuracy (1\.0000|0\.9\d+)(, [^)]*)?\)\n"
        )
        config = json.loads(self.read("run", "adapter_config.json"))
        self.assertEqual(
            (config["task_type"], config["modules_to_save"]), ("TOKEN_CLS", ["classifier", "score"])
        )
        self.assertEqual(json.loads(self.read("run", "labels.json")), TAGS)
        evaluated = self.evaluated(data)
        self.assertGreater(evaluated["f1"], 0.9)
        self.run_command("merge", "--model", self.path("run"), "--out", self.path("merged"))
        self.assertEqual(
            self.evaluated(data, "--tokenizer", self.path("run"), model="merged")["f1"], evaluated["f1"]
        )
        # A run that is resumed within less memory has the bits of an uninterrupted one, also over quantized
        # weights.
        few = [*words, "--quantize", "int8"]
        self.train_on(data, *few, "--steps", 6, model=self.path("base"), out="whole")
        self.train_on(data, *few, "--steps", 3, model=self.path("base"), out="parts")
        self.run_command("train", "--resume", self.path("parts"), "--steps", 6, "--vram", "900KiB")
        self.assertEqual(
            *[(self.folder / out / "adapter_model.safetensors").read_bytes() for out in ("whole", "parts")]
        )

    def test_splits_and_resuming_change_no_bit(self):
        data = self.lines(self.texts(60, 1))
        schedule = ["--schedule", "constant"]
        self.train_on(data, *schedule, "--steps", 6, out="whole")
        self.train_on(data, *schedule, "--steps", 4, "--micro-batch", 3, out="parts")
        self.run_command("train", "--resume", self.path("parts"), "--steps", 6)
        self.assertEqual(self.weights("parts"), self.weights("whole"))
        # A new run begins with the model of this one, and has its labels.
        self.train_on(data, "--steps", 1, model=self.path("whole"), out="further")
        self.assertEqual(self.read("further", "labels.json"), self.read("whole", "labels.json"))

    def test_a_decoder_tags_by_what_came_before(self):
        texts = self.texts(200, 1)
        output = self.train_on(self.conll(texts), "--steps", 60, "--lr", "2e-3", model="nano").stdout
        self.assertRegex(
            output, r"step 60: evaluation loss \d\.\d+ \(accuracy 0\.[4-9]\d+(, F1 [01]\.\d+( macro)?)?\)\n"
        )
        self.assertEqual(
            json.loads(self.read("run", "config.json"))["architectures"], ["GPT2ForTokenClassification"]
        )
        data = self.conll(self.texts(30, 2), "unseen.conll")
        answers = self.classified("--data", data)
        self.assertEqual(
            [self.classified("--text", " ".join(words))[0] for words, _ in self.texts(3, 2)], answers[:3]
        )
        self.assertEqual(
            self.evaluated(data)["entities"], sum(len(self.entities(tags)) for _, tags in self.texts(30, 2))
        )
        self.refused(
            "generate", "--model", self.path("run"), "--prompt", "red", expect=USAGE, says=["is a classifier"]
        )

    def test_numbers_need_names(self):
        numbers = [(words, [TAGS.index(tag) for tag in tags]) for words, tags in self.texts(60, 1)]
        data = self.lines(numbers, tags="ner_tags")
        message = self.train_on(data, "--steps", 1, expect=FAILED).stderr
        self.assertIn(
            f"{data}, line 1: its tags are numbers; give their names with --label-names NAME,…",
            message,
        )
        self.train_on(data, "--steps", 2, "--label-names", ",".join(TAGS))
        self.assertEqual(json.loads(self.read("run", "labels.json")), TAGS)
        self.train_on(self.lines(self.texts(60, 1)), "--steps", 2, out="names")
        self.assertEqual(self.weights("names"), self.weights("run"))
        message = self.train_on(data, "--steps", 1, "--label-names", "A,B", out="few", expect=FAILED).stderr
        self.assertIn("is not one of the model's 2 labels", message)

    def test_longer_texts_are_cut_and_counted(self):
        long = (["the"] * 60, ["O"] * 60)
        texts = self.texts(40, 5) + [long]
        words = sum(len(words) for words, _ in texts) - 14  # 48 tokens, of which two are special
        output = self.train_on(self.lines(texts), "--steps", 1).stdout
        self.assertIn(
            f"with {words:,} words that each have one of 5 labels; 1 cut to the length of a sample; "
            "14 words without a label",
            output,
        )
        data = self.lines([long, (["red"], ["B-COLOUR"])], "long.jsonl")
        self.assertIn(
            "; 14 words are left out",
            self.run_command("eval", "--model", self.path("run"), "--data", data, "--all").stdout,
        )
        result = self.run_command("classify", "--model", self.path("run"), "--data", data)
        self.assertEqual(len(result.stdout.splitlines()), 2)
        self.assertIn(
            "warning: 1 of 2 texts are cut to 48 tokens: words past that have no label", result.stderr
        )

    def test_contradictory_settings_and_damaged_data_are_refused_by_name(self):
        model = self.model_folder()
        base = [
            "train",
            "--model",
            model,
            "--batch",
            8,
            "--seq",
            48,
            "--vram",
            "64MiB",
            "--steps",
            1,
            "--out",
            self.path("out"),
        ]
        good = json.dumps({"tokens": ["red", "box"], "tags": ["B-COLOUR", "O"]}) + "\n"

        def refused(line, *says, name="texts.jsonl", more=(), expect=FAILED):
            data = self.write(name, good + line if name.endswith(".jsonl") else line)
            self.refused(*base, "--data", data, *more, expect=expect, says=says)

        refused(
            '{"tokens": ["red", "box"], "tags": ["O"]}\n',
            "texts.jsonl, line 2: expected a tag for each of 2 words, found 1",
        )
        refused('{"tokens": [], "tags": []}\n', "texts.jsonl, line 2: expected at least one word, found none")
        refused('{"tokens": ["red"], "tags": [null]}\n', "texts.jsonl, line 2: tags[0]: expected a string")
        refused('{"tokens": ["red"], "tags": [["O"]]}\n', "texts.jsonl, line 2: tags[0]: expected a string")
        refused(
            '{"tokens": ["red", "box"], "tags": [1, "O"]}\n',
            "texts.jsonl, line 2: tags[1]: expected a number, as the first tag is",
        )
        refused(
            '{"tokens": ["red", "box"], "tags": ["O", 1]}\n',
            "texts.jsonl, line 2: tags[1]: expected a string",
        )
        refused(
            '{"tokens": ["red"], "tags": [1.5]}\n', "texts.jsonl, line 2: tags[0]: expected a whole number"
        )
        refused('{"tokens": ["red"], "tags": [""]}\n', "texts.jsonl, line 2: a tag is empty")
        refused('{"tokens": ["red"]}\n', "texts.jsonl, line 2: tags: expected an array")
        refused('{"tokens": [5], "tags": ["O"]}\n', "texts.jsonl, line 2: tokens[0]: expected a string")
        refused('["red"]\n', "texts.jsonl, line 2", "expected an object")
        refused(
            "red B-COLOUR\nbox\n",
            'texts.conll, line 2: expected 2 columns between blanks, as in line 1, found 1: "box"',
            name="texts.conll",
        )
        refused("\n\n", "texts.conll: there is no data", "only blank lines", name="texts.conll")
        refused(
            "red O\n\nbox O\n",
            'texts.conll: all words have the label "O"; expected two labels or more',
            name="texts.conll",
        )
        refused("", "--task label: ", "which are for --task tokens", more=["--task", "label"], expect=USAGE)
        refused(
            "a text",
            "--task tokens: is for words and tags",
            name="texts.txt",
            more=["--task", "tokens"],
            expect=USAGE,
        )
        refused(
            "a text",
            "--label-names: is for labels and tags",
            name="texts.txt",
            more=["--label-names", "a,b"],
            expect=USAGE,
        )
        gemma = {
            "model_type": "gemma3_text",
            "vocab_size": 256,
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_hidden_layers": 1,
            "num_attention_heads": 2,
            "num_key_value_heads": 1,
            "head_dim": 16,
        }
        self.refused(
            "plan",
            "--model",
            self.write("gemma/config.json", json.dumps(gemma)),
            "--labels",
            3,
            "--task",
            "tokens",
            "--vram",
            "1GiB",
            says=["Gemma3TextForTokenClassification is not supported"],
        )

    def test_models_and_data_must_agree(self):
        data = self.lines(self.texts(60, 1))
        self.train_on(data, "--steps", 1)
        run = ["eval", "--model", self.path("run"), "--all"]
        other = self.lines([(["red"], ["B-COLOUR"]), (["box"], ["B-BOX"])], "other.jsonl")
        self.refused(
            *run, "--data", other, says=['other.jsonl, line 2: "B-BOX" is not one of the model\'s 5 labels']
        )
        self.refused(
            *run,
            "--data",
            self.lines([(["red"], [5])], "number.jsonl"),
            says=['number.jsonl, line 1: "5" is not one of the model\'s 5 labels'],
        )
        table = self.write("texts.csv", "text,label\nred,a\nbox,b\n")
        self.refused(
            *run,
            "--data",
            table,
            says=["texts.csv: the model gives each word one of 5 labels: expected a .conll file"],
        )
        self.train_on(
            self.write("more.csv", "text,label\n" + "red,a\nbox,b\n" * 10), "--steps", 1, out="classifier"
        )
        self.refused(
            "eval",
            "--model",
            self.path("classifier"),
            "--data",
            data,
            "--all",
            says=["its words have tags, and ", "gives words no labels"],
        )
        message = self.train_on(
            data,
            "--steps",
            1,
            "--label-names",
            "A,B,C,D,E",
            model=self.path("run"),
            out="further",
            expect=USAGE,
        ).stderr
        self.assertIn("--label-names: the model already has other labels", message)
        self.refused(
            "train",
            "--resume",
            self.path("run"),
            "--steps",
            2,
            "--data",
            table,
            says=["its labels are not those of the run"],
        )
