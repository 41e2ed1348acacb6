"""Small versions of two runs that others have reported: BLOOM as a classifier of reviews, with batches of 1
and 16, and a large BERT with a batch of 32 that is split to fit the memory."""

import json
import random

from support import DOES_NOT_FIT, CommandTest

BLOOM = {
    "model_type": "bloom",
    "architectures": ["BloomForCausalLM"],
    "vocab_size": 256,
    "hidden_size": 32,
    "n_layer": 2,
    "n_head": 4,
    "seq_length": 1024,
    "hidden_dropout": 0.0,
    "attention_dropout": 0.0,
    "eos_token_id": 2,
    "pad_token_id": 3,
}
BERT = {
    "model_type": "bert",
    "architectures": ["BertModel"],
    "vocab_size": 64,
    "hidden_size": 64,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "intermediate_size": 256,
    "max_position_embeddings": 512,
    "type_vocab_size": 2,
    "pad_token_id": 0,
    "hidden_dropout_prob": 0.1,
    "attention_probs_dropout_prob": 0.1,
}


class ReportedRunsTest(CommandTest):
    # Good and bad reviews of up to `most` words.
    def reviews(self, count, most, good, bad):
        draw = random.Random(7)
        lines = []
        for _ in range(count):
            label = draw.choice(["good", "bad"])
            words = [
                draw.choice(["film", "plot", "scene", "actor", draw.choice(good if label == "good" else bad)])
                for _ in range(draw.randrange(most // 4, most))
            ]
            lines.append(json.dumps({"text": " ".join(words), "label": label}) + "\n")
        return self.write("reviews.jsonl", "".join(lines))

    def train_on(self, out, model, *flags, expect=0):
        return self.run_command(
            "train",
            "--model",
            model,
            "--data",
            self.path("reviews.jsonl"),
            "--precision",
            "fp16",
            "--threads",
            2,
            "--eval-batches",
            0,
            "--out",
            self.path(out),
            *flags,
            expect=expect,
        )

    def test_bloom_one_by_one_and_sixteen_at_once(self):
        self.reviews(24, 180, ["fine", "great"], ["dull", "poor"])
        self.write("bloom/config.json", json.dumps(BLOOM))
        common = (self.path("bloom"), "--batch", 16, "--seq", 1024, "--steps", 2, "--vram", "1GiB")
        output = self.train_on("one", *common, "--micro-batch", 1).stdout
        self.assertIn("in micro-batches of 1, fp16", output)
        self.train_on("all", *common, "--micro-batch", 16)
        self.assertEqual(self.weights("one"), self.weights("all"))

    def test_bert_as_memory_allows(self):
        self.reviews(40, 120, ["fine", "great"], ["dull", "poor"])
        special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
        self.write(
            "bert/vocab.txt",
            "".join(
                word + "\n"
                for word in special + ["film", "plot", "scene", "actor", "fine", "great", "dull", "poor"]
            ),
        )
        self.write("bert/config.json", json.dumps(BERT))
        common = (self.path("bert"), "--batch", 32, "--seq", 512, "--steps", 1)
        self.train_on("fast", *common, "--vram", "1GiB")
        self.train_on("small", *common, "--vram", "16MiB")
        self.assertEqual(self.weights("fast"), self.weights("small"))
        result = self.train_on("none", *common, "--vram", "2MiB", expect=DOES_NOT_FIT)
        self.assertIn("does not fit", result.stdout + result.stderr)
