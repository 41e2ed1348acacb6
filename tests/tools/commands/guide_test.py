"""The README and the pages of docs/: every command in them works, the answers shown are those of the command,
and links have a target."""

import json
import re
import shlex
import shutil
import unittest

from support import DOES_NOT_FIT, DONE, ROOT, USAGE, CommandTest

DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.glob("*.md"))]

# Small models of the same family replace published models, and short runs replace long ones.
DECODER = {
    "model_type": "qwen3",
    "architectures": ["Qwen3ForCausalLM"],
    "vocab_size": 258,
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 64,
    "intermediate_size": 64,
    "max_position_embeddings": 4096,
    "eos_token_id": 257,
    "tie_word_embeddings": True,
}
ENCODER = {
    "model_type": "bert",
    "architectures": ["BertModel"],
    "vocab_size": 40,
    "hidden_size": 32,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "max_position_embeddings": 512,
    "type_vocab_size": 2,
    "pad_token_id": 0,
}
WORDS = "my card has not arrived where is it the ship sails ada lovelace lived in london . a b c".split()
SHORTER = [
    (r"--steps 500", "--steps 3"),
    (r"--steps 800", "--steps 5"),
    (r"calibrate --model gpt2 --batch 32 --seq 512", "calibrate --model nano --batch 2 --seq 32"),
]


def blocks(page, language):
    return re.findall(
        rf"^```{language}\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )


def commands(page):
    """The stowage commands of a page's shell blocks, in order, without comments."""
    for block in blocks(page, "sh"):
        for line in block.replace("\\\n", " ").splitlines():
            if line.startswith("stowage "):
                yield re.sub(r"\s+#.*$", "", line)


def bytes_tokenizer():
    """A byte-level tokenizer.json without merges."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    letters, beyond = {}, 256
    for byte in range(256):
        letters[byte] = chr(byte) if byte in printable else chr(beyond)
        beyond += byte not in printable
    vocabulary = {letter: byte for byte, letter in letters.items()}
    added = [
        {
            "id": 256 + at,
            "content": content,
            "special": True,
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
        }
        for at, content in enumerate(["<|im_start|>", "<|im_end|>"])
    ]
    step = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    return {
        "version": "1.0",
        "added_tokens": added,
        "normalizer": None,
        "pre_tokenizer": step,
        "post_processor": None,
        "decoder": step,
        "model": {"type": "BPE", "vocab": vocabulary, "merges": []},
    }


class GuideTest(CommandTest):
    def stand_ins(self):
        """The files that the commands of the pages read: models with weights, and data."""
        self.write("decoder/config.json", json.dumps(DECODER))
        self.write("decoder/tokenizer.json", json.dumps(bytes_tokenizer()))
        self.write("encoder/config.json", json.dumps(ENCODER))
        special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
        self.write("encoder/vocab.txt", "".join(word + "\n" for word in [*special, *WORDS, "##s"]))
        self.write("answers.jsonl", '{"prompt": "Where is it?", "completion": " In the hold."}\n' * 20)
        self.write(
            "pairs.jsonl", '{"prompt": "Where is it?", "chosen": " In the hold.", "rejected": " No."}\n' * 20
        )
        self.write(
            "queries.csv", "text,intent\n" + "my card has not arrived,card\nwhere is the ship,ship\n" * 15
        )
        self.write("entities.conll", "Ada B-PER\nLovelace I-PER\nlived O\nin O\nLondon B-LOC\n. O\n\n" * 15)
        self.write("notes.jsonl", '{"text": "the ship sails in london"}\n' * 20)
        context = "Ada Lovelace lived in London."
        questions = [
            {
                "id": str(number),
                "question": "Who lived in London?",
                "answers": [{"text": "Ada Lovelace", "answer_start": 0}],
            }
            for number in range(20)
        ]
        squad = {"version": "1.1", "data": [{"paragraphs": [{"context": context, "qas": questions}]}]}
        for name in ("train-v1.1.json", "dev-v1.1.json"):
            self.write(name, json.dumps(squad))
        self.write("questions.jsonl", json.dumps({"question": "Who?", "context": context}) + "\n")
        self.write("notes.txt", "the ship sails\n" * 100)
        self.write("buffers.csv", "id,lower,upper,size\na,0,4,1048576\nb,2,6,1048576\n")
        shutil.copy(ROOT / "README.md", self.folder)
        short = ("--batch", 2, "--seq", 32, "--steps", 1, "--vram", "64MiB", "--eval-batches", 0)
        self.run_command(
            "train",
            "--model",
            self.path("decoder"),
            "--data",
            self.path("notes.txt"),
            "--out",
            self.path("trained"),
            *short,
        )
        self.run_command(
            "train",
            "--model",
            self.path("encoder"),
            "--task",
            "masked",
            "--data",
            self.path("notes.jsonl"),
            "--out",
            self.path("read"),
            *short,
        )
        for names, source in (
            (("Qwen3-0.6B", "Qwen3-8B", "SmolLM2-135M", "tuned"), "trained"),
            (("all-MiniLM-L6-v2", "bert-base-cased", "bert-base-uncased"), "read"),
        ):
            for name in names:
                (self.folder / name).mkdir()
                for file in (
                    "config.json",
                    "model.safetensors",
                    "tokenizer.json",
                    "vocab.txt",
                    "tokenizer_config.json",
                ):
                    if (self.folder / source / file).exists():
                        shutil.copy(self.folder / source / file, self.folder / name)

    def test_every_command_works(self):
        self.stand_ins()
        seen = set()
        for page in PAGES:
            for line in commands(page):
                for long, short in SHORTER:
                    line = re.sub(long, short, line)
                if line in seen:
                    continue
                seen.add(line)
                words = shlex.split(line)[1:]
                output = None
                if ">" in words:
                    words, output = words[: words.index(">")], words[words.index(">") + 1]
                if (
                    "--out" in words
                    and words[0] == "train"
                    and (self.folder / words[words.index("--out") + 1]).exists()
                ):
                    words.append("--overwrite")
                with self.subTest(page=page.name, command=line):
                    result = self.run_command(*words, cwd=self.folder)
                    if output:
                        self.write(output, result.stdout)
        self.assertGreater(len(seen), 15)

    def test_shown_answers_are_those_of_the_command(self):
        shown = 0
        for page in PAGES:
            for block in blocks(page, ""):
                for command, answer in re.findall(
                    r"^\$ stowage (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE
                ):
                    result = self.run_command(
                        *shlex.split(command), expect=DOES_NOT_FIT if "does not fit" in answer else DONE
                    )
                    lines = iter([line.rstrip() for line in result.stdout.splitlines()])
                    for line in answer.splitlines():
                        if line.strip() not in ("", "…"):
                            shown += 1
                            self.assertIn(
                                line.rstrip(), lines, f"{page.name}: {command}"
                            )  # the next search begins after the line that this one found
        self.assertGreater(shown, 10)

    def test_links_have_a_target(self):
        for page in PAGES:
            for target in re.findall(r"\]\(([^)]+)\)", page.read_text(encoding="utf-8")):
                if "://" in target:
                    continue
                file, _, anchor = target.partition("#")
                path = (page.parent / file).resolve() if file else page
                self.assertTrue(path.exists(), f"{page.name}: {target}")
                if anchor:
                    headings = re.findall(
                        r"^#+ (.*)$|^\*\*(.*)\*\*$", path.read_text(encoding="utf-8"), re.MULTILINE
                    )
                    slugs = {
                        re.sub(r"[^\w\- ]", "", "".join(each)).strip().lower().replace(" ", "-")
                        for each in headings
                    }
                    self.assertIn(anchor, slugs, f"{page.name}: {target}")

    def test_flags_of_the_pages_exist(self):
        helped = {
            command: self.run_command(command, "--help").stdout
            for command in (
                "plan",
                "train",
                "eval",
                "generate",
                "classify",
                "inspect",
                "devices",
                "calibrate",
                "merge",
                "tokenize",
                "pack",
            )
        }
        known = set(re.findall(r"--[a-z][a-z0-9-]*", "\n".join(helped.values())))
        for page in PAGES:
            if page.name == "coming-from.md":  # this page also names flags of other tools
                continue
            text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
            for flag in re.findall(r"`(--[a-z][a-z0-9-]*)", text):
                self.assertTrue(flag in known or flag.startswith("--no-"), f"{page.name}: {flag}")
        for line in (DOCS / "coming-from.md").read_text(encoding="utf-8").splitlines():
            if line.startswith("| `") and line.count("|") == 5:
                for flag in re.findall(r"`(--[a-z][a-z0-9-]*)", line.split("|")[4]):
                    self.assertIn(flag, known, line)

    def test_help_shows_the_pages(self):
        listed = self.run_command("help").stdout
        topics = re.findall(r"^  ([a-z-]+) ", listed, re.MULTILINE)
        self.assertEqual(
            sorted(topics), sorted(page.stem for page in DOCS.glob("*.md") if page.stem != "README")
        )
        for topic in topics:
            self.assertEqual(
                self.run_command("help", topic).stdout, (DOCS / f"{topic}.md").read_text(encoding="utf-8")
            )
            for index in (ROOT / "README.md", DOCS / "README.md"):
                self.assertIn(f"{topic}.md)", index.read_text(encoding="utf-8"))
        for word, topic in (("lora", "adapters"), ("sgd", "train"), ("--muon", "train")):
            page = (DOCS / f"{topic}.md").read_text(encoding="utf-8")
            self.assertEqual(self.run_command("help", "--", word).stdout, page)
        self.refused("help", "zzz", expect=USAGE, says=["there is no topic zzz"])

    def test_the_readme_is_short(self):
        self.assertLessEqual((ROOT / "README.md").stat().st_size, 10000)


if __name__ == "__main__":
    unittest.main()
