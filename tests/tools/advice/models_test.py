"""Advices about models, weights, adapters, tokenizers and chat templates, and of the commands that use them:
generate, eval, merge, inspect, calibrate and pack."""

import json

from .data_test import BERT_FILES, SPECIAL, TEXT, WORDS, array, ids, lines, table
from .rows import (
    Advice,
    AdviceTest,
    instead,
    planned,
    plus,
    prints,
    run,
    same_as,
    shows,
    steps,
    without,
    wrote,
)

SIZES = "--batch 2 --seq 32 --vram 32MiB --threads 1 --steps 2 --eval-batches 1 --out OUT"
BEGIN = f"train --model nano {SIZES} --data"
GPT = {"model_type": "gpt2", "vocab_size": 256, "n_positions": 64, "n_embd": 32, "n_layer": 1, "n_head": 2}
FROM = "train --model {} " + SIZES + " --data text.txt"
PLAN = "plan --batch 2 --seq 32 --vram 32MiB --threads 1 --json"
EVAL = "eval --threads 1 --json --data"
GENERATE = "generate --threads 1 --tokens 4 --temperature 0"
SCRATCH = FROM.format("gpt --from-scratch")
MASKED = FROM.format("bert --from-scratch").replace("text.txt", "texts.jsonl --task masked")
PAIRS = f"{BEGIN} pairs.jsonl --document-end 0"
TURNS = "{% for m in messages %}[{{ m.role }}]{{ m.content }}\n{% endfor %}[assistant]"


def tokenizer():
    words = {word: i for i, word in enumerate(SPECIAL + WORDS)}
    return json.dumps(
        {
            "model": {"type": "Novel", "vocab": words, "unk_token": "[UNK]"},
            "pre_tokenizer": {"type": "Whitespace"},
            "added_tokens": [{"id": i, "content": word, "special": True} for i, word in enumerate(SPECIAL)],
        }
    )


def word_pieces():
    return json.dumps(
        {
            "normalizer": {
                "type": "BertNormalizer",
                "clean_text": True,
                "handle_chinese_chars": True,
                "strip_accents": None,
                "lowercase": True,
            },
            "pre_tokenizer": {"type": "BertPreTokenizer"},
            "model": {
                "type": "WordPiece",
                "unk_token": "[UNK]",
                "continuing_subword_prefix": "##",
                "max_input_chars_per_word": 100,
                "vocab": {word: i for i, word in enumerate(SPECIAL + WORDS)},
            },
        }
    )


def pieces(folder):
    """A tokenizer of which no token continues a word by its spelling."""
    marks = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    names = ["<s>", "</s>", "<unk>", "<mask>", *WORDS, *"abcdefghijklmno"]
    special = [{"id": i, "content": names[i], **marks} for i in range(4)]
    body = {
        "type": "TemplateProcessing",
        "single": [{"Sequence": {"id": "A", "type_id": 0}}],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 0}}],
        "special_tokens": {},
    }
    vocabulary = [[name, -float(i + 1)] for i, name in enumerate(names)]
    model = {"type": "Unigram", "unk_id": 2, "vocab": vocabulary, "byte_fallback": False}
    text = {
        "version": "1.0",
        "added_tokens": special,
        "normalizer": None,
        "pre_tokenizer": {"type": "WhitespaceSplit"},
        "post_processor": body,
        "decoder": None,
        "model": model,
    }
    return {f"{folder}/tokenizer.json": json.dumps(text)}


def generated(test, done):
    test.assertTrue(done.stdout)


def loss_of(name):
    """The loss of the last evaluation of the run."""

    def check(test, done):
        last = (test.folder / name / "metrics.jsonl").read_text().splitlines()[-1]
        test.assertAlmostEqual(json.loads(done.stdout)["eval_loss"], json.loads(last)["eval_loss"], places=6)

    return check


def config(**more):
    return json.dumps({**GPT, **more})


FILES = {
    **BERT_FILES,
    "text.txt": TEXT,
    "words.txt": "the ship is in the hold " * 200,
    "labels.csv": table("text,label", lambda i: f"ship {i} sails,{'ab'[i % 2]}"),
    "pairs.jsonl": lines(
        {"prompt": f"ship {i}? ", "chosen": f"yes {i}.", "rejected": f"no {i}, never."} for i in range(40)
    ),
    "turns.jsonl": lines(
        {"messages": [{"role": "user", "content": "ship"}, {"role": "assistant", "content": "yes"}]}
        for i in range(40)
    ),
    "turns.jinja": TURNS,
    "cut.jinja": "{% for m in messages %}{{ m.role }} {{ m.content }}<|end|>{% endfor %}",
    "whole.jinja": "{% for m in messages %}{{ m.role }} {{ m.content }}[SEP]{% endfor %}",
    "gpt/config.json": config(),
    "torch/config.json": config(),
    "torch/pytorch_model.bin": "weights",
    "part/config.json": config(),
    "part/model.safetensors.incomplete": "weights",
    "outer/config.json": config(),
    "ids/config.json": config(vocab_size=300),
    "worded/config.json": config(vocab_size=40),
    "worded/vocab.txt": BERT_FILES["bert/vocab.txt"],
    "strange/config.json": config(vocab_size=40),
    "strange/tokenizer.json": tokenizer(),
    "chat/config.json": config(vocab_size=40),
    "chat/vocab.txt": BERT_FILES["bert/vocab.txt"],
    "chat/chat_template.jinja": "{% for m in messages %}{{ m.role }} {{ m.content }}<|end|>{% endfor %}",
    "texts.jsonl": lines({"text": "the ship is in the hold"} for _ in range(40)),
    **pieces("pieces"),
    **{f"{name}/config.json": config(vocab_size=40) for name in ("cased", "alike")},
    **{f"{name}/tokenizer.json": word_pieces() for name in ("cased", "alike")},
    "cased/tokenizer_config.json": '{"tokenizer_class": "BertTokenizer", "do_lower_case": false}',
    "alike/tokenizer_config.json": '{"tokenizer_class": "BertTokenizer", "do_lower_case": true}',
    "ids.bin": ids("H", 2000, 40),
    "ids.npy": array(),
    "packed.csv": "id,lower,upper,size,offset\na,0,2,8,\nb,1,3,8,8\nc,2,4,8,0\n",
}

ROWS = [
    # Weights.
    Advice(
        "--model {}: there are no weights in its folder (model.safetensors); download them, or name them "
        "with "
        "--weights, or give --from-scratch to take random ones",
        FROM.format("gpt"),
        plus("--from-scratch", steps(2)),
        plus("--weights start/model.safetensors", steps(2)),
        run(FROM.format("start"), same_as(f"{FROM.format('gpt')} --weights start/model.safetensors")),
    ),
    Advice(
        "{}: weights of this format are not read; save them as safetensors, or give the config.json alone "
        "(--from-scratch) to begin with random ones",
        FROM.format("torch"),
        plus("--from-scratch", same_as(SCRATCH)),
        run(FROM.format("torch/config.json --from-scratch"), same_as(SCRATCH)),
    ),
    Advice(
        "{}: weights of this format are not read; save them as safetensors, or give the config.json alone "
        "(--from-scratch) to begin with random ones",
        f"{PLAN} --model torch",
        run(f"{PLAN} --model torch/config.json", planned(global_batch=2)),
    ),
    Advice(
        "{}: an incomplete download, and the folder has no other weights; download them again, or give the "
        "config.json alone (--from-scratch) to begin with random ones",
        FROM.format("part"),
        plus("--from-scratch", same_as(SCRATCH)),
    ),
    Advice(
        "{}: has no weights of its own, and {} may be the weights; give them by --weights, or give the "
        "config.json "
        "alone (--from-scratch) to begin with random ones",
        FROM.format("outer"),
        plus("--weights outer/inner/model.safetensors", same_as(FROM.format("start"))),
        plus("--from-scratch", same_as(SCRATCH)),
    ),
    Advice(
        "{}: has the weights of adapters alone (adapter_model.safetensors); download the model's too, or "
        "give the "
        "config.json alone (--from-scratch) to begin with random ones",
        FROM.format("alone"),
        plus("--from-scratch", same_as(SCRATCH)),
    ),
    Advice(
        "{}: holds weights, expected a model's folder or config.json; give its config.json, and this file by "
        "--weights",
        FROM.format("outer/inner/model.safetensors"),
        run(
            FROM.format("gpt/config.json --weights outer/inner/model.safetensors"),
            same_as(FROM.format("start")),
        ),
    ),
    Advice(
        "--tokenizer {}: is no tokenizer; expected a tokenizer.json, vocab.txt, vocab.json or the folder "
        "of one",
        f"{GENERATE} --model worded --from-scratch --prompt ship --tokenizer worded/config.json",
        instead("worded/config.json", "worded/vocab.txt", generated),
        instead("worded/config.json", "worded", generated),
    ),
    Advice(
        "--weights excludes --from-scratch",
        f"{FROM.format('gpt')} --from-scratch --weights start",
        without("--from-scratch", same_as(FROM.format("start"))),
        without("--weights start", same_as(SCRATCH)),
    ),
    Advice(
        "--adapter excludes --from-scratch",
        f"{FROM.format('start')} --from-scratch --adapter adapters",
        without("--from-scratch", steps(2)),
    ),
    Advice(
        "--new-head requires --labels",
        f"{PLAN} --model bert --new-head",
        plus("--labels 3", planned()),
    ),
    # Adapters.
    Advice(
        "--lora: {} has no weights, and adapters of random weights are useless; give --model a folder with "
        "weights",
        f"{FROM.format('gpt')} --lora 2",
        run(f"{FROM.format('start')} --lora 2", steps(2), prints("adapters +rank 2")),
    ),
    Advice(
        "--lora-alpha requires --lora",
        f"{FROM.format('start')} --lora-alpha 4",
        plus("--lora 2", same_as(f"{FROM.format('start')} --lora 2")),
        without("--lora-alpha 4", steps(2)),
    ),
    Advice(
        "--adapter excludes --lora",
        f"{FROM.format('start')} --lora 2 --adapter adapters",
        without("--lora 2", steps(2)),
        without("--adapter adapters", prints("adapters +rank 2"), steps(2)),
    ),
    Advice(
        "--lora excludes --from-scratch",
        f"{FROM.format('gpt')} --lora 2 --from-scratch",
        without("--lora 2", same_as(SCRATCH)),
        run(f"{FROM.format('start')} --lora 2", steps(2)),
    ),
    Advice(
        "{}: holds adapters (--adapter), not a model's weights",
        f"{FROM.format('start')} --weights adapters",
        instead("--weights", "--adapter", prints("adapters +rank 2"), steps(2)),
    ),
    Advice(
        "{}: its adapter_config.json names no model (base_model_name_or_path); name the model itself, and "
        "this folder "
        "as its adapters (--model and --adapter)",
        f"{EVAL} text.txt --model nameless",
        instead("--model nameless", "--model start --adapter nameless", shows(data="text.txt")),
    ),
    Advice(
        '{}: its model, "{}", is no folder here; name the model itself, and this folder as its adapters '
        "(--model and "
        "--adapter)",
        f"{EVAL} text.txt --model absent",
        instead("--model absent", "--model start --adapter absent", shows(data="text.txt")),
    ),
    Advice(
        "{}: its model, {}, has no weights; name the folder that has (--model and --adapter)",
        f"{EVAL} text.txt --model weightless",
        instead("--model weightless", "--model start --adapter weightless", shows(data="text.txt")),
    ),
    Advice(
        "quantize nf4 is for the matrices below low-rank adapters, of which the model has none (--lora, "
        "--adapter)",
        f"{FROM.format('start')} --quantize nf4",
        plus("--lora 2", planned(quantize="nf4")),
        plus("--adapter adapters", planned(quantize="nf4")),
    ),
    Advice(
        "quantize_embeddings int8 is for the matrices below low-rank adapters, of which the model has none "
        "(--lora, "
        "--adapter)",
        f"{FROM.format('start')} --quantize-embeddings int8",
        plus("--lora 2", planned(quantize_embeddings="int8")),
    ),
    Advice(
        "{}: has no adapters to merge; give a folder of them with --adapter",
        "merge --model start --out OUT",
        plus("--adapter adapters", prints("wrote")),
    ),
    Advice(
        "{} exists already: give another --out",
        "merge --model adapters --out start",
        run("merge --model adapters --out OUT", prints("wrote")),
    ),
    # Heads.
    Advice(
        "{}: the task label needs labels (label_count, --labels), and the model has none",
        f"{PLAN} --model gpt/config.json --task label",
        plus("--labels 3", planned(global_batch=2)),
    ),
    Advice(
        "--labels 1, expected 2 to {}",
        f"{PLAN} --model bert/config.json --task label --labels 1",
        instead("--labels 1", "--labels 2", planned(global_batch=2)),
    ),
    Advice(
        "--texts is for encoders with an output for each text, this model is none",
        f"{PLAN} --model bert/config.json --task masked --texts 3",
        without("--texts 3", planned(global_batch=2)),
        instead("masked", "label --labels 2", planned(global_batch=2)),
    ),
    Advice(
        "a model of type {} is trained with a head: it needs labels (label_count, --labels), or the task "
        "masked-language-model (--task masked), and this one has neither",
        f"{PLAN} --model bert/config.json",
        plus("--labels 3", planned(global_batch=2)),
        plus("--task masked", planned(global_batch=2)),
    ),
    # Tokenizers and chat templates.
    Advice(
        '--prompt: this model takes token ids such as "15496 11 995", not text; for text, give a '
        "tokenizer.json or its "
        "folder with --tokenizer",
        f"{GENERATE} --model ids --from-scratch --prompt 'the ship'",
        instead("'the ship'", "'5 6 7'", generated),
        plus("--tokenizer worded", prints("the ship")),
        plus("--tokenizer worded/vocab.txt", prints("the ship")),
    ),
    Advice(
        "--prompt: expected at least one token, found none",
        f"{GENERATE} --model nano --prompt ''",
        instead("''", "ship", prints("^ship")),
        without("--prompt ''", generated),
    ),
    Advice(
        "--prompt: token {} is outside the vocabulary of {}",
        f"{GENERATE} --model ids --from-scratch --prompt '5 300'",
        instead("'5 300'", "'5 299'", generated),
    ),
    Advice(
        "--chat-template: there is no file {}",
        f"{GENERATE} --model worded --from-scratch --prompt ship --chat --chat-template none.jinja",
        instead("none.jinja", "turns.jinja", generated),
    ),
    Advice(
        "{}; write the same setting into both files, or convert the text to token ids with transformers "
        "(--tokenizer "
        "ids)",
        f"{BEGIN.replace('nano', 'cased --from-scratch')} words.txt",
        instead("cased", "alike", steps(2)),
        instead("words.txt", "ids.bin --tokenizer ids", steps(2)),
    ),
    Advice(
        "--mask-whole-words: {} does not show which tokens continue a word",
        f"{MASKED} --tokenizer pieces --mask-whole-words",
        without("--mask-whole-words", prints("hidden"), steps(2)),
        without("--tokenizer pieces", prints("by whole words"), steps(2)),
    ),
    Advice(
        '--prompt {}: is continued as a text, though there is a file of that name; --prompt "$(cat {})" '
        "takes its "
        "content",
        f"{GENERATE} --model nano --prompt turns.jinja",
        instead("turns.jinja", f"'{TURNS}'", prints("for m in messages")),
    ),
    Advice(
        "--chat: is for text; give the model's tokenizer with --tokenizer",
        f"{GENERATE} --model worded --from-scratch --prompt ship --chat --chat-template turns.jinja "
        "--tokenizer ids",
        instead("--tokenizer ids", "--tokenizer worded", generated),
    ),
    Advice(
        "--chat: the folder of the model's tokenizer has neither a chat_template.jinja nor a chat_template "
        "in its "
        "tokenizer_config.json; give one with --chat-template",
        f"{GENERATE} --model worded --from-scratch --prompt ship --chat",
        plus("--chat-template turns.jinja", generated),
    ),
    Advice(
        "--system requires --chat",
        f"{GENERATE} --model worded --from-scratch --prompt ship --system hold --chat-template turns.jinja",
        plus("--chat", generated),
        without("--system hold", generated),
    ),
    Advice(
        "{}: writes {}, which {} cuts into {} tokens; add it to the tokenizer, or give a template that "
        "writes the "
        "model's own tokens with --chat-template",
        f"{BEGIN.replace('nano', 'chat --from-scratch')} turns.jsonl --document-end 3",
        plus("--chat-template whole.jinja", prints("examples +40,"), steps(2)),
    ),
    Advice(
        '{}: "{}" is not supported; convert the text to token ids with the library that made this file '
        "(--tokenizer "
        "ids)",
        f"{BEGIN.replace('nano', 'strange --from-scratch')} words.txt",
        instead("words.txt", "ids.bin --tokenizer ids", steps(2)),
    ),
    # Evaluations.
    Advice(
        "--reference-model: is for data with pairs of answers, and the preferences dpo and ipo",
        f"{EVAL} text.txt --model start --reference-model gpt",
        without("--reference-model gpt", shows(data="text.txt")),
    ),
    Advice(
        "--preference {}: compares with the model that training began with, but no settings.json in {} "
        "names it; use "
        "--reference-model",
        f"{EVAL} pairs.jsonl --model moved --document-end 0 --all",
        plus("--reference-model start", shows(data="pairs.jsonl")),
    ),
    Advice(
        "{} began with {}: {}; name another with --reference-model",
        f"{EVAL} pairs.jsonl --model tuned --document-end 0 --all",
        plus("--reference-model start", shows(data="pairs.jsonl")),
    ),
    Advice(
        "{} was trained on documents; give its --document-end for the loss of its run",
        f"{EVAL} text.txt --model documents",
        plus("--document-end 10", loss_of("documents")),
    ),
    Advice(
        "--all excludes --held-out",
        f"{EVAL} text.txt --model start --all --held-out",
        without("--held-out", shows(part="all")),
        without("--all", shows(part="held_out")),
    ),
    Advice(
        "--eval-batches excludes --all",
        f"{EVAL} text.txt --model start --all --eval-batches 1",
        without("--all", shows(data="text.txt")),
        without("--eval-batches 1", shows(part="all")),
    ),
    # Other commands.
    Advice(
        "{}: this flag is for plans, and {} is not a plan",
        "inspect start --lora 2",
        without("--lora 2", prints("gpt2")),
    ),
    Advice(
        "{}: this flag is for plans, and --config is for models",
        "inspect start --config --model nano",
        without("--model nano", prints('"model_type"')),
    ),
    Advice(
        "--out {}: this is a folder, expected a file",
        "calibrate --model nano --batch 2 --seq 32 --vram 32MiB --threads 1 --out gpt",
        instead("--out gpt", "--out here.json", wrote("here.json")),
    ),
    Advice(
        "--out {}: there is no folder {}",
        "calibrate --model nano --batch 2 --seq 32 --vram 32MiB --threads 1 --out none/there.json",
        instead("--out none/there.json", "--out there.json", wrote("there.json")),
    ),
    Advice(
        "--capacity: expected more than 0 bytes",
        "pack packed.csv --capacity 0",
        instead("--capacity 0", "--capacity 16", prints("b,1,3,8,8")),
    ),
    Advice(
        "height {}, bound {}, gap {} %: {}; {} of {} offsets come from the file (--ignore-offsets replaces "
        "them)",
        "pack packed.csv",
        plus("--ignore-offsets", prints(r"a,0,2,8,\d+\nb,1,3,8,\d+")),
    ),
]


class ModelsTest(AdviceTest):
    rows = ROWS
    files = FILES
    prepare = (
        SCRATCH.replace("OUT", "start"),
        f"{FROM.format('start')} --lora 2".replace("OUT", "adapters"),
        f"{SCRATCH} --document-end 10".replace("OUT", "documents"),
        PAIRS.replace("OUT", "moved"),
        SCRATCH.replace("OUT", "first"),
        f"{FROM.format('first')} --document-end 0".replace("text.txt", "pairs.jsonl").replace("OUT", "tuned"),
    )

    def prepare_more(self):
        weights = (self.folder / "start/model.safetensors").read_bytes()
        self.write("outer/inner/model.safetensors", weights)
        adapters = self.folder / "adapters"
        about = json.loads((adapters / "adapter_config.json").read_text())
        for name, base in (
            ("nameless", None),
            ("weightless", str(self.folder / "gpt")),
            ("absent", "somebody/something"),
        ):
            self.write(f"{name}/adapter_config.json", json.dumps({**about, "base_model_name_or_path": base}))
        for name in ("nameless", "weightless", "absent", "alone"):
            self.write(
                f"{name}/adapter_model.safetensors", (adapters / "adapter_model.safetensors").read_bytes()
            )
        self.write("alone/config.json", config())
        (self.folder / "moved/settings.json").unlink()
        (self.folder / "first").rename(self.folder / "elsewhere")

    def test_rows(self):
        self.follow_rows()
