"""Texts with many labels: memory that follows the size of the file, time of `classify`, and which labels it
prints."""

import json
import os
import pathlib
import subprocess
import sys

from support import STOWAGE, CommandTest

BERT = {
    "model_type": "bert",
    "architectures": ["BertModel"],
    "vocab_size": 16,
    "hidden_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "max_position_embeddings": 16,
    "type_vocab_size": 2,
    "pad_token_id": 0,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
}
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "ship", "sails", "at", "dawn"]
# Runs a command in a small process, because a process begins with the peak memory of the one that starts it.
MEASURE = """
import json, os, sys
process = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ,
                         file_actions=[(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)])
_, status, used = os.wait4(process, 0)
print(json.dumps([os.waitstatus_to_exitcode(status), used.ru_maxrss * 1024, used.ru_utime + used.ru_stime]))
"""
BYTES_OF_A_BYTE = 500  # of memory for each byte of a file; SECURITY.md says 126, without a sanitizer


class ManyLabelsTest(CommandTest):
    def model(self, name="bert", **more):
        self.write(f"{name}/vocab.txt", "\n".join(WORDS) + "\n")
        self.write(f"{name}/config.json", json.dumps({**BERT, **more}))
        return self.path(name)

    def classifier(self, count, kind="single_label_classification"):
        return self.model(
            architectures=["BertForSequenceClassification"],
            id2label={str(i): f"id{i}" for i in range(count)},
            problem_type=kind,
        )

    def texts(self, name, texts, labels, of_each):
        """A table of texts that have all of the labels, and each `of_each` of them."""
        rows = [
            f"{WORDS[5 + i % 5]} {WORDS[5 + i // 5 % 5]},"
            + "|".join(f"id{(i * of_each + k) % labels}" for k in range(of_each))
            for i in range(texts)
        ]
        return self.write(name, "text,label\n" + "\n".join(rows) + "\n")

    def measured(self, *words):
        """Peak memory in bytes, and seconds of processor time."""
        sanitizer = os.environ.get("ASAN_OPTIONS", "") + ":quarantine_size_mb=1"
        result = subprocess.run(
            [sys.executable, "-c", MEASURE, STOWAGE, *map(str, words)],
            capture_output=True,
            check=True,
            env={**os.environ, "ASAN_OPTIONS": sanitizer},
        )
        status, peak, seconds = json.loads(result.stdout)
        self.assertEqual(status, 0, (words, result.stderr))
        return peak, seconds

    def test_memory_is_that_of_the_file(self):
        labels = 8000
        few = self.texts("few.csv", 500, labels, 16)
        many = self.texts("many.csv", 4000, labels, 2)
        model = self.model()
        peaks = {}
        for data in (few, many):
            common = ["--data", data, "--label-separator", "|", "--threads", 1]
            run = data + ".run"
            train = ["train", "--model", model, "--from-scratch", "--batch", 4, "--seq", 16, "--steps", 1]
            peaks[data] = [
                self.measured(*train, *common, "--vram", "64MiB", "--out", run)[0],
                self.measured("eval", "--model", run, "--all", *common)[0],
                self.measured("classify", "--model", run, "--top", 1, "--data", data)[0],
            ]
        # A number for each label of each text would take 128 MB.
        most = BYTES_OF_A_BYTE * pathlib.Path(many).stat().st_size
        self.assertLess(most, 4000 * labels * 4 / 2)
        for what, small, large in zip(("train", "eval", "classify"), peaks[few], peaks[many]):
            self.assertLess(large - small, most, f"{what}: {small} bytes, then {large}")

    def test_memory_of_tagged_words(self):
        # 300 texts of 14 words: a call for all of them would give 4,800 × 4,000 logits, which are 77 MB.
        labels = 4000
        rows = [
            {"tokens": ["ship"] * 14, "tags": [f"tag{(14 * i + k) % labels}" for k in range(14)]}
            for i in range(300)
        ]
        data = self.write("tags.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
        model = self.model(
            architectures=["BertForTokenClassification"],
            id2label={str(i): f"tag{i}" for i in range(labels)},
        )
        one = self.write("one.jsonl", json.dumps(rows[0]) + "\n")
        for words in (["eval", "--all"], ["classify"]):
            small, large = (
                self.measured(*words, "--model", model, "--from-scratch", "--data", path)[0]
                for path in (one, data)
            )
            with self.subTest(words[0]):
                self.assertLess(large - small, 45e6)

    def test_an_answer_costs_no_more_than_its_evaluation(self):
        data = self.texts("texts.csv", 1500, 20000, 1)
        model = ["--model", self.classifier(20000), "--from-scratch", "--data", data, "--threads", 1]
        evaluation = self.measured("eval", "--all", *model)[1]
        answers = self.measured("classify", *model)[1]
        self.assertLess(answers, 1.5 * evaluation)

    def test_the_most_probable_labels(self):
        data = self.texts("texts.csv", 20, 300, 1)
        for kind in ("single_label_classification", "multi_label_classification"):
            model = ["--model", self.classifier(300, kind), "--from-scratch", "--data", data]

            def answers(*more, model=model):
                return self.run_command("classify", *model, *more).stdout.splitlines()

            every = [json.loads(line) for line in answers("--top", 1000, "--json")]
            for labels in every:
                self.assertEqual(len({one["label"] for one in labels}), 300)
                order = sorted(labels, key=lambda one: (-one["score"], int(one["label"][2:])))
                self.assertEqual(labels, order)
            for count in (1, 7):
                expected = [
                    "\t".join(f"{one['label']} {one['score']:.4f}" for one in labels[:count])
                    for labels in every
                ]
                self.assertEqual(answers("--top", count), expected)
            if kind.startswith("single"):
                self.assertEqual(answers(), answers("--top", 1))
                continue
            for threshold in (0.5, every[0][10]["score"]):
                above = [
                    "\t".join(
                        f"{one['label']} {one['score']:.4f}" for one in labels if one["score"] > threshold
                    )
                    for labels in every
                ]
                self.assertEqual(answers("--threshold", threshold), above)
            self.assertEqual(above[0].count("\t"), 9)  # the ten that are above the eleventh
