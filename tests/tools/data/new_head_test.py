"""`train --new-head`: models whose labels are not those of the data, and weights with more layers than the
config."""

import json
import os
import shutil

from support import FAILED, USAGE, CommandTest


class NewHeadTest(CommandTest):
    def table(self, labels, name="data.csv"):
        rows = "".join(f"ship {i} sails,{labels[i % len(labels)]}\n" for i in range(60))
        return self.write(name, "text,label\n" + rows)

    def words(self, tags, name="data.conll"):
        return self.write(name, "".join(f"acme {tags[0]}\nworks {tags[i % 2]}\n\n" for i in range(40)))

    def train_on(self, data, out, *more, model="nano", expect=0):
        return self.run_command(
            *("train", "--model", model, "--data", data, "--batch", 4, "--seq", 32, "--vram", "64MiB"),
            *("--steps", 2, "--eval-batches", 1, "--out", self.path(out), *more),
            expect=expect,
        )

    def names(self, run):
        return json.loads(self.read(run, "labels.json"))

    def test_a_model_with_other_labels(self):
        self.train_on(self.table(["spam", "ham"]), "spam")
        self.train_on(self.words(["B-PER", "O"]), "words")
        self.train_on(self.table(["0.5", "2.25", "7"], "numbers.csv"), "number", "--task", "number")
        crew = self.table(["cargo", "crew", "wind"], "crew.csv")
        for model, data, says in (
            ("spam", crew, '"cargo" is not one of the model\'s 2 labels (ham, spam); --new-head'),
            ("number", crew, 'expected a finite number, found "cargo"; --new-head'),
            ("words", self.words(["B-ORG", "O"], "org.conll"), "2 labels (B-PER, O); --new-head"),
        ):
            with self.subTest(model=model):
                message = self.train_on(data, "no", model=self.path(model), expect=FAILED).stderr
                self.assertIn(says + " draws a new head for the labels of the data", message)
                self.assertFalse(os.path.exists(self.path("no")))
                # The advice works.
                output = self.train_on(data, "new-" + model, "--new-head", model=self.path(model)).stdout
                self.assertRegex(output, r"and a new head for [23] labels")
        self.assertEqual(self.names("new-spam"), ["cargo", "crew", "wind"])
        self.assertEqual(self.names("new-number"), ["cargo", "crew", "wind"])
        self.assertEqual(self.names("new-words"), ["B-ORG", "O"])
        answer = self.run_command(
            *("classify", "--model", self.path("new-spam"), "--text", "ship 1 sails", "--json")
        )
        self.assertIn(json.loads(answer.stdout)["label"], ["cargo", "crew", "wind"])
        # Names by hand, for a model that has others.
        numbered = self.write("n.jsonl", '{"tokens": ["a", "b"], "ner_tags": [0, 1]}\n' * 40)
        message = self.train_on(
            numbered, "no", "--label-names", "X,Y", model=self.path("words"), expect=USAGE
        ).stderr
        self.assertIn("other labels, 2 labels (B-PER, O); --new-head draws", message)
        self.train_on(numbered, "xy", "--label-names", "X,Y", "--new-head", model=self.path("words"))
        self.assertEqual(self.names("xy"), ["X", "Y"])

    def test_another_task_than_that_of_the_head(self):
        names = self.table(["spam", "ham"])
        numbers = self.table(["0.5", "2.25", "7"], "numbers.csv")
        lists = self.write(
            "lists.jsonl", '{"text": "ship", "labels": ["a"]}\n{"text": "sea", "labels": []}\n' * 30
        )
        data = {
            "label": names,
            "number": numbers,
            "labels": lists,
            "tokens": self.words(["B-PER", "O"]),
        }
        for task, path in data.items():
            self.train_on(path, task, "--task", task)
        for own in data:
            for task, path in data.items():
                if task == own:
                    continue
                with self.subTest(own=own, task=task):
                    message = self.refused(
                        *("train", "--model", self.path(own), "--data", path, "--batch", 4, "--seq", 32),
                        *("--vram", "64MiB", "--steps", 2, "--eval-batches", 1, "--out", self.path("no")),
                        *("--task", task),
                        expect=USAGE,
                        says=[
                            f"--task {task}: {self.path(own)} has a head for the task {own}; --new-head draws"
                        ],
                    )
                    self.assertTrue(message)
                    # The advice works.
                    out = f"{own}-{task}"
                    self.train_on(path, out, "--task", task, "--new-head", model=self.path(own))
        # A config without a problem_type leaves the task of its labels open.
        config = json.loads(self.read("label", "config.json"))
        del config["problem_type"]
        self.write("label/config.json", json.dumps(config))
        both = self.write("both.jsonl", '{"text": "sea", "labels": ["ham", "spam"]}\n' * 40)
        self.train_on(both, "open", "--task", "labels", model=self.path("label"))
        self.assertEqual(self.names("open"), {"task": "labels", "labels": ["ham", "spam"]})

    def test_an_encoders_task_and_that_of_its_head(self):
        question = {
            "question": "what ?",
            "context": "the ship sails",
            "answers": {"text": ["ship"], "answer_start": [4]},
        }
        squad = self.write("squad.jsonl", (json.dumps(question) + "\n") * 20)
        names = self.table(["spam", "ham"])
        words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "ship", "sails", "what", "?"]
        self.write("bert/vocab.txt", "".join(word + "\n" for word in words))
        config = {"model_type": "bert", "vocab_size": 40, "max_position_embeddings": 48, "hidden_size": 16}
        more = {"num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
        self.write("bert/config.json", json.dumps({**config, **more}))
        self.train_on(names, "label", model=self.path("bert"))
        self.train_on(squad, "spans", model=self.path("bert"))
        label, spans = self.path("label"), self.path("spans")
        for data, model, task, says in (
            (squad, label, (), f"--data {squad}: has questions, and {label} has a head for the task label"),
            (squad, label, ("--task", "spans"), f"--task spans: {label} has a head for the task label"),
            (names, spans, ("--task", "label"), f"--task label: {spans} has a head for the task spans"),
        ):
            message = self.train_on(data, "no", *task, model=model, expect=USAGE).stderr
            self.assertIn(says + "; --new-head draws a new one", message)
            self.train_on(data, "new", *task, "--new-head", "--overwrite", model=model)
        self.train_on(names, "new", "--new-head", "--overwrite", model=spans)  # without --task
        texts = self.write("texts.jsonl", '{"text": "the ship sails"}\n' * 40)
        message = self.train_on(texts, "no", "--task", "masked", model=label, expect=USAGE).stderr
        self.assertIn("has a head for the task label; begin with a model without it", message)

    def test_only_the_head_is_new(self):
        """A run that learns nothing (rate 0) keeps the body's weights, and draws the head from its seed."""
        data = self.table(["spam", "ham"])
        self.train_on(data, "spam")
        runs = {}
        for out, more in (("same", ()), ("one", ("--new-head",)), ("two", ("--new-head", "--seed", 5))):
            self.train_on(data, out, "--lr", "1e-30", *more, model=self.path("spam"))
            runs[out] = self.tensors(out)
        head = "score.weight"
        for name, values in runs["same"].items():
            for other in ("one", "two"):
                self.assertEqual(runs[other][name] == values, name != head, (other, name))
        self.assertNotEqual(runs["one"][head], runs["two"][head])

    def tensors(self, run):
        """The bytes of each tensor of model.safetensors."""
        with open(self.path(run + "/model.safetensors"), "rb") as file:
            content = file.read()
        size = int.from_bytes(content[:8], "little")
        header = json.loads(content[8 : 8 + size])
        header.pop("__metadata__", None)
        body = content[8 + size :]
        return {name: body[slice(*about["data_offsets"])] for name, about in header.items()}

    def test_a_head_that_nothing_asks_for(self):
        text = self.write("text.txt", "ships lie in the hold. " * 200)
        message = self.train_on(text, "no", "--new-head", expect=USAGE).stderr
        self.assertIn("--new-head: is for texts or words with labels, and --data", message)
        self.train_on(self.table(["spam", "ham"]), "plain", "--new-head")
        self.assertEqual(self.names("plain"), ["ham", "spam"])

    def test_layers_beyond_the_config_are_named(self):
        self.train_on(self.table(["spam", "ham"]), "spam")
        shutil.copytree(self.path("spam"), self.path("cut"))
        config = json.loads(self.read("cut", "config.json"))
        self.write("cut/config.json", json.dumps(config | {"n_layer": 2}))
        done = self.train_on(self.table(["spam", "ham"]), "short", model=self.path("cut"))
        self.assertIn("the config has 2 layers, and the weights have 4: the others are left out", done.stderr)
        self.assertIn(
            "layers        2; the weights have 4, the others are left out",
            self.run_command("inspect", self.path("cut")).stdout,
        )
        self.assertNotIn("left out", self.run_command("inspect", self.path("spam")).stdout)
