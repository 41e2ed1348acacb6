"""Measures the cost of the worst known inputs of each reader, for each byte: `costs.py STOWAGE [BYTES]`
prints the table of SECURITY.md. Time is processor time. The time of an input of BYTES/4 is subtracted from
that of BYTES (default 4 MiB), which removes the constant cost of a run. Peak memory is measured in the
same way."""

import json
import os
import pathlib
import struct
import sys
import tempfile

ROOT = pathlib.Path(__file__).parent.parent.parent
STOWAGE = os.path.abspath(sys.argv[1])
BYTES = int(sys.argv[2]) if len(sys.argv) > 2 else 4 << 20
GPT2 = {
    "architectures": ["GPT2LMHeadModel"],
    "model_type": "gpt2",
    "vocab_size": 256,
    "n_positions": 64,
    "n_embd": 32,
    "n_layer": 1,
    "n_head": 2,
}
TOKENIZER = next(
    iter(json.loads((ROOT / "tests/golden/tokenizers.json").read_text(encoding="utf-8")).values())
)["tokenizer"]
LABELLED = {
    "architectures": ["GPT2ForSequenceClassification"],
    "pad_token_id": 0,
    "id2label": {"0": "x", "1": "y"},
}
BERT = {
    "architectures": ["BertForQuestionAnswering"],
    "model_type": "bert",
    "vocab_size": 7,
    "hidden_size": 32,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "max_position_embeddings": 64,
    "type_vocab_size": 2,
}
TAGGED = {"architectures": ["GPT2ForTokenClassification"], "id2label": {"0": "O", "1": "B-x"}}


def repeated(piece, size, separator=","):
    return separator.join([piece] * (size // (len(piece) + len(separator))))


def numbered(form, size, separator=","):
    count = size // (len(form % 0) + len(separator) + 6)
    return separator.join(form % i for i in range(count))


def weights(path, header):
    path.write_bytes(struct.pack("<Q", len(header)) + header)


# Each function writes an input of about `size` bytes into a folder and returns the arguments of a command
# that reads it.
def config_numbers(folder, size):
    (folder / "config.json").write_text(json.dumps(GPT2)[:-1] + ', "x": [' + repeated("0", size) + "]}")
    return ["inspect", str(folder / "config.json")]


def config_members(folder, size):
    (folder / "config.json").write_text(json.dumps(GPT2)[:-1] + "," + numbered('"%06d":0', size) + "}")
    return ["inspect", str(folder / "config.json")]


def model_weights(folder, size):
    (folder / "config.json").write_text(json.dumps(GPT2))
    weights(
        folder / "model.safetensors",
        ("{" + numbered('"%06d":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}', size) + "}").encode(),
    )
    return ["inspect", str(folder)]


def model_index(folder, size):
    (folder / "config.json").write_text(json.dumps(GPT2))
    weights(folder / "a", b"{}")
    (folder / "model.safetensors.index.json").write_text(
        '{"weight_map": {' + numbered('"%06d":"a"', size) + "}}"
    )
    return ["inspect", str(folder)]


def checkpoint(folder, size):
    header = b'{"fields":{"x":[' + repeated("0", size).encode() + b"]}}"
    (folder / "checkpoint.stw").write_bytes(
        b"\x89STW\r\n\x1a\n" + struct.pack("<IIQ", 2, 0, len(header)) + header + bytes(16)
    )
    return ["inspect", str(folder / "checkpoint.stw")]


def plan(folder, size):
    (folder / "plan.json").write_text(
        '{"format": "stowage-plan", "version": 1, "x": [' + repeated("0", size) + "]}"
    )
    return ["inspect", str(folder / "plan.json"), "--model", "nano"]


def profile(folder, size):
    (folder / "here.json").write_text(
        '{"format": "stowage-profile", "version": 1, "x": [' + repeated("0", size) + "]}"
    )
    return [
        "plan",
        "--model",
        "nano",
        "--device",
        str(folder / "here.json"),
        "--batch",
        "1",
        "--vram",
        "1GiB",
    ]


def settings(folder, size):
    (folder / "settings.json").write_text(
        '{"format": "stowage-settings", "version": 1, "options": {"x": [' + repeated('""', size) + "]}}"
    )
    return ["inspect", str(folder / "settings.json")]


def vocabulary(folder, size):
    extra = ",".join(f'"~{i:06}":{100000 + i}' for i in range(size // 18))
    (folder / "tokenizer.json").write_text(
        json.dumps(TOKENIZER).replace('"vocab": {', '"vocab": {' + extra + ",", 1)
    )
    return tokenize(folder, "a")


def added_tokens(folder, size):
    made = json.loads(json.dumps(TOKENIZER))
    flags = '"single_word":false,"lstrip":false,"rstrip":false,"normalized":false,"special":false'
    extra = ",".join(f'{{"id":{100000 + i},"content":"a{i:06}",{flags}}}' for i in range(size // 110))
    made["added_tokens"] = []
    (folder / "tokenizer.json").write_text(
        json.dumps(made).replace('"added_tokens": []', f'"added_tokens": [{extra}]', 1)
    )
    return tokenize(folder, "a" * 100000)


def tokenize(folder, text):
    (folder / "text.txt").write_text(text)
    return [
        "tokenize",
        "--model",
        "gpt2",
        "--tokenizer",
        str(folder / "tokenizer.json"),
        "--data",
        str(folder / "text.txt"),
        "--out",
        str(folder / "out.bin"),
    ]


def text(folder, size):
    (folder / "tokenizer.json").write_text(json.dumps(TOKENIZER))
    return tokenize(folder, "ab" * (size // 2))


def text_of_added_tokens(folder, size):
    """At each position almost the longest possible token matches."""
    made = json.loads(json.dumps(TOKENIZER))
    made["added_tokens"] = [
        {
            "id": 100000,
            "content": "a" * 9998 + "b",
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": False,
        }
    ]
    (folder / "tokenizer.json").write_text(json.dumps(made))
    return tokenize(folder, "a" * size)


def text_of_a_pattern(folder, size):
    made = json.loads(json.dumps(TOKENIZER))
    made["pre_tokenizer"] = {
        "type": "Sequence",
        "pretokenizers": [
            {
                "type": "Split",
                "pattern": {"Regex": "(a|a?)+c|[^a]+"},
                "behavior": "Isolated",
                "invert": False,
            },
            {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False},
        ],
    }
    (folder / "tokenizer.json").write_text(json.dumps(made))
    return tokenize(folder, "a" * size)


def template(folder, size):
    (folder / "t.jinja").write_text(repeated("{{ 1 }}", size, ""))
    return conversation(folder, '{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}')


def nested_json(folder, size):
    """A conversation with deeply nested parts, which the template writes as often as the work limit
    allows."""
    (folder / "t.jinja").write_text(
        "{% for i in range(1000) %}{% set x = messages | tojson %}{% endfor %}{% for m in messages %}"
        "{{ m.content }}{% endfor %}"
    )
    deep = '{"role": "user", "content": "q", "x": ' + "[" * 40 + '"' + "x" * size + '"' + "]" * 40 + "}"
    return conversation(folder, deep + ', {"role": "assistant", "content": "a"}')


def evaluated(folder, name, text, *more, **config):
    (folder / name).write_text(text)
    (folder / "config.json").write_text(json.dumps(GPT2 | config))
    return [
        "eval",
        "--model",
        str(folder / "config.json"),
        "--data",
        str(folder / name),
        "--seq",
        "16",
        "--batch",
        "1",
        "--threads",
        "1",
        "--from-scratch",
        *(["--eval-batches", "1"] if "--all" not in more else []),
        *more,
    ]


def conversation(folder, messages):
    return evaluated(
        folder,
        "data.jsonl",
        '{"messages": [' + messages + "]}\n",
        "--chat-template",
        str(folder / "t.jinja"),
        "--all",
        "--document-end",
        "0",
    )


def long_conversation(folder, size):
    """Short messages, all in one sample."""
    (folder / "t.jinja").write_text(
        "{% for m in messages %}<{{ m.role }}>{{ m.content }}</>{% endfor %}"
        "{% if add_generation_prompt %}<assistant>{% endif %}"
    )
    (folder / "data.jsonl").write_text(
        '{"messages": ['
        + repeated('{"role":"user","content":"q"},{"role":"assistant","content":"a"}', size)
        + "]}\n"
    )
    (folder / "config.json").write_text(json.dumps(GPT2 | {"n_positions": 4 * size, "eos_token_id": 0}))
    return [
        "train",
        "--model",
        str(folder / "config.json"),
        "--from-scratch",
        "--data",
        str(folder / "data.jsonl"),
        "--chat-template",
        str(folder / "t.jinja"),
        "--seq",
        str(2 * size),
        "--batch",
        "1",
        "--steps",
        "1",
        "--vram",
        "1TiB",
        "--eval-batches",
        "0",
        "--show-examples",
        "1",
        "--out",
        str(folder / "out"),
    ]


def examples(folder, size):
    return evaluated(folder, "data.jsonl", repeated('{"text":"a"}', size, "\n") + "\n", "--document-end", "0")


def table(folder, size):
    return evaluated(folder, "data.csv", "text,label\n" + repeated("a,x", size, "\n") + "\n", **LABELLED)


def words(folder, size):
    return evaluated(folder, "data.conll", repeated("a O", size, "\n") + "\n", **TAGGED)


def questions(folder, size):
    """Short questions, each about a context of its own."""
    answers = '"answers":{"text":["a"],"answer_start":[0]}'
    text = repeated('{"question":"b","context":"a",' + answers + "}", size, "\n") + "\n"
    (folder / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\n")
    return evaluated(folder, "data.jsonl", text, "--tokenizer", str(folder / "vocab.txt"), **BERT)


def buffers(folder, size):
    """Buffers with disjoint lifetimes. Almost all of the time is reading and writing."""
    (folder / "buffers.csv").write_text(
        "id,lower,upper,size\n" + "".join(f"{i},{i},{i + 1},8\n" for i in range(size // 20))
    )
    return ["pack", str(folder / "buffers.csv"), "--node-limit", "1000", "--out", str(folder / "packed.csv")]


def live_buffers(folder, size):
    """Buffers with the same lifetime."""
    (folder / "buffers.csv").write_text(
        "id,lower,upper,size\n" + "".join(f"{i},0,1,{i % 97 + 1}\n" for i in range(size // 11))
    )
    return ["pack", str(folder / "buffers.csv"), "--node-limit", "1000", "--out", str(folder / "packed.csv")]


CASES = [
    ("config.json: an array of numbers", config_numbers),
    ("config.json: members", config_members),
    ("header of .safetensors: empty tensors", model_weights),
    ("model.safetensors.index.json", model_index),
    ("header of a checkpoint", checkpoint),
    ("plan", plan),
    ("profile", profile),
    ("settings.json", settings),
    ("tokenizer.json: vocabulary", vocabulary),
    ("tokenizer.json: added tokens, and 100 kB of text", added_tokens),
    ("text, tokenized", text),
    ("text against an added token of 10 kB", text_of_added_tokens),
    ("text against a pattern that backtracks", text_of_a_pattern),
    ("chat template: many expressions", template),
    ("conversation of nested values, tojson in a loop", nested_json),
    ("conversation of short messages", long_conversation),
    ("examples (.jsonl)", examples),
    ("texts with labels (.csv)", table),
    ("words with tags (.conll)", words),
    ("questions about contexts (.jsonl)", questions),
    ("buffers one after the other (pack)", buffers),
    ("buffers that live at once (pack)", live_buffers),
]


def run(make, size):
    with tempfile.TemporaryDirectory() as folder:
        words_of_command = make(pathlib.Path(folder), size)
        process = os.fork()
        if process == 0:
            out = os.open(os.path.join(folder, "output"), os.O_CREAT | os.O_RDWR)
            os.dup2(out, 1), os.dup2(out, 2)
            os.execv(STOWAGE, [STOWAGE, *words_of_command])
        _, status, used = os.wait4(process, 0)
        output = (
            pathlib.Path(folder, "output").read_text(encoding="utf-8", errors="replace").strip().splitlines()
        )
        return (
            used.ru_utime + used.ru_stime,
            used.ru_maxrss * 1024,
            os.waitstatus_to_exitcode(status),
            output[-1][-100:] if output else "",
        )


chosen = sys.argv[3:]
print(f"{'input':55} {'µs/byte':>8} {'bytes/byte':>10}  {'growth':>6}")
for name, make in CASES:
    if chosen and make.__name__ not in chosen:
        continue
    seconds, memory, _, _ = run(make, BYTES // 4)
    more_seconds, more_memory, code, last = run(make, BYTES)
    if code == 2:
        sys.exit(f"{name}: the command refuses its flags, so nothing was measured: {last}")
    print(
        f"{name:55} {(more_seconds - seconds) / (BYTES * 0.75) * 1e6:8.3f} "
        f"{(more_memory - memory) / (BYTES * 0.75):10.1f}  {more_seconds / max(seconds, 1e-3):5.1f}x  "
        f"exit {code}: {last}",
        flush=True,
    )
