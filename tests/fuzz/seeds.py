"""Writes the initial inputs of a fuzzed program, taken from test data, and the words of its dictionary,
taken from the sources: `seeds.py TARGET FOLDER` makes FOLDER, and FOLDER.dict if there are such words."""

import json
import pathlib
import re
import struct
import sys

ROOT = pathlib.Path(__file__).parent.parent.parent
GOLDEN = ROOT / "tests" / "golden"
CUT = b"\xff"  # separates the parts of an input: input.h


def chat_template():
    for case in json.loads((GOLDEN / "chat_templates.json").read_text())["cases"]:
        yield case["template"].encode()
        yield case["template"].encode() + CUT + json.dumps(case["lines"][0]["line"]).encode()


def tokenizer():
    for case in json.loads((GOLDEN / "tokenizers.json").read_text()).values():
        description, texts = case["tokenizer"], [text.encode() for text, *_ in case["cases"]]
        yield json.dumps(description).encode() + CUT + CUT.join(texts[:2])
        model = description["model"]  # and a model that is small enough to be combined with others
        model["merges"] = model["merges"][:4]
        kept = {
            a + b
            for a, b in (merge if isinstance(merge, list) else merge.split(" ") for merge in model["merges"])
        }
        kept |= {model.get("unk_token")} | {character for pair in kept for character in pair}
        model["vocab"] = {token: number for token, number in model["vocab"].items() if token in kept}
        yield json.dumps(description).encode() + CUT + CUT.join(texts[:2])
    for case in json.loads((GOLDEN / "encoder_tokens.json").read_text())["tokenizers"].values():
        texts = ["Größe 你好\u0301 the <mask>[SEP]".encode(), b"a ship, the ship"]
        if "vocabulary" in case:
            yield "\n".join(case["vocabulary"][:40]).encode() + CUT + CUT.join(texts)
            continue
        # empty rules
        description = json.loads(json.dumps(case["tokenizer"]).replace("CHARSMAP", "BAAAAAAAAAA="))
        model = description["model"]
        model["vocab"] = (
            model["vocab"][:40]
            if isinstance(model["vocab"], list)
            else {token: number for token, number in model["vocab"].items() if number < 300}
        )
        model.update({"merges": []} if "merges" in model else {})
        yield json.dumps(description).encode() + CUT + CUT.join(texts)


def csv():
    yield b"id,lower,upper,size\na,0,4,100\nb,2,6,50\nc,4,9,100\n"
    yield b'\xef\xbb\xbfsize, "id",upper,lower,offset\r\n7," a ""b""\n",5,1,\r\n\r\n9,c,6,-2,3\r\n'
    yield b'text,label\n"Hello, you",1\nno, 2\n'


def examples():
    yield b'{"prompt": "a", "completion": "b"}\n{"text": "c"}'
    yield (
        b'{"prompt": [{"role": "user", "content": "q"}], "completion": [{"role": "assistant", '
        b'"content": "a"}]}'
    )
    yield (
        b'{"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}], '
        b'"tools": []}'
    )
    yield (
        b'{"conversations": [{"from": "human", "value": "q"}, {"from": "gpt", "value": "a"}], "system": "s"}'
    )
    yield b'{"prompt": "q", "chosen": "a", "rejected": "b"}\n{"chosen": "qa", "rejected": "qb"}'
    yield (
        b'{"chosen": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}], '
        b'"rejected": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "b"}]}'
    )
    yield b'{"text": "a", "label": 1}\n{"text": "b", "label": "0"}\n{"text": "c", "label": null}'
    yield b'{"prompt": [1, 2], "completion": [3]}\n{"chosen": [1, 2], "rejected": [1, 3]}'
    yield b'text,label\n"Hello, you",1\nno, 2\n'


def model_config():
    for path in sorted(GOLDEN.glob("*/config*.json")):
        yield path.read_bytes()


def header_of(path):
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    return data[8 : 8 + length], data[8 + length :]


def model_folder():
    for path in sorted(GOLDEN.glob("*/config.json")):
        config, header = path.read_bytes(), header_of(path.parent / "model.safetensors")[0]
        yield config + CUT + header
        for adapter in sorted(GOLDEN.glob("adapter_*" + path.parent.name)):
            yield (
                config
                + CUT
                + header
                + CUT
                + (adapter / "adapter_config.json").read_bytes()
                + CUT
                + header_of(adapter / "adapter_model.safetensors")[0]
            )


def json_texts():
    yield from model_config()
    yield (
        b'{"a": [1, -2.5e3, 18446744073709551615, true, false, null, "\\u00fc\\n\\ud83d\\udea2"], '
        b'"b": {"": {}}}'
    )


def safetensors():
    for path in sorted(GOLDEN.glob("*/*.safetensors")):
        yield CUT.join(header_of(path))
    yield (
        b'{"a": {"dtype": "F32", "shape": [2, 1], "data_offsets": [0, 8]}, "b": {"dtype": "U8", '
        b'"shape": [], "data_offsets": [8, 9]}, "__metadata__": {"format": "pt"}}' + CUT + b"012345678"
    )


# Members that replace those of the original: changes.h.
def plan():
    yield b"{}"
    yield b'{"micro_batch": 2, "accumulation_steps": 3, "loss_chunks": 2}'
    yield (
        b'{"tiles": [{"blocks": [0, 1], "rows": 64}], "recompute": [{"blocks": [0, 2], '
        b'"tensors": ["qkv", "attention", "ffn_norm"]}]}'
    )
    yield b'{"offload": [{"tensors": "optimizer", "blocks": [0, 2], "outside_blocks": true}], "fits": false}'
    yield (
        b'{"request": {"global_batch": 7, "threads": 2, "micro_batch": 1, "recompute": "full", '
        b'"state_bits": 8, "host_bytes": 100000, "reserve_bytes": 5}}'
    )
    yield (
        b'{"numerics": {"precision": "bf16", "optimizer": "muon", "master": "split", '
        b'"gradients": "bf16", "fused_update": true, "exact": false}}'
    )
    yield (
        b'{"numerics": {"groups": [{"pattern": "*norm*", "weight_decay": 0.1, '
        b'"learning_rate_factor": 0.5, "frozen": true}], "inputs": {"positions": true, "weights": true}}}'
    )
    yield (
        b'{"device": {"name": "h100-sxm", "memory_bytes": 80000000000, "source": "probe"}, '
        b'"bytes": {"peak": 1, "budget": 18446744073709551615}}'
    )
    yield (
        b'{"predicted": {"step_seconds": 1e-9, "recompute_fraction": 0.5}, '
        b'"search": {"bound_seconds": 1e-9}, "minimum_vram_bytes": 7}'
    )


def profile():
    yield b"{}"
    yield b'{"device": "h100-sxm", "reserve_bytes": 1000000000, "version": 1}'
    yield (
        b'{"launch_nanoseconds": 1, "product_permille": 1500, "stream_permille": 1, "threads": 2, '
        b'"ops": {"linear": {"permille": 4000}}}'
    )


def checkpoint():
    yield b"{}"
    yield (
        b'{"carried": {"loss_scale": 1e300, "good_steps": 18446744073709551615, "observed": 1, '
        b'"loss_mean": -1e308, "loss_variance": 1e308, "norm_mean": 0}}'
    )
    yield (
        b'{"step": 18446744073709551615, "batches": 3, "tokens": 1, "skipped": 7, '
        b'"samples": 9223372036854775807, "loss": null, "evaluation_loss": 2.5, "seed": 5}'
    )
    yield b'{"identity": {"precision": "fp32", "adapters": {"rank": 4}}, "format": "(absent)"}'


def checkpoint_file():
    yield (
        b'{"fields":{"step":3},"sections":[{"name":"a","bytes":4},{"name":"","bytes":0},{"name":"b",'
        b'"bytes":3}]}' + CUT + b"0123456"
    )
    yield (
        b'{"fields":{},"sections":[{"name":"a","bytes":2},{"name":"a","bytes":18446744073709551615}]}'
        + CUT
        + b"01"
    )
    header = b'{"fields":{},"sections":[]}'
    yield b"raw\x89STW\r\n\x1a\n" + struct.pack("<IIQ", 2, 0, len(header)) + header + bytes(16)


def reference():
    yield struct.pack("<3f", -1.5, 0, -3)
    yield b"raw" + struct.pack("<2f", -1.5, float("nan")) + b"stwref01" + struct.pack("<QQQ", 2, 7, 0)


def shards():
    header = b'{"%s":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}'
    yield (
        b'{"metadata":{"total_size":8},"weight_map":{"x":"a.safetensors","y":"b.safetensors"}}'
        + CUT
        + header % b"x"
        + CUT
        + header % b"y"
    )
    yield b'{"weight_map":{"x":"a.safetensors","y":"../b"}}' + CUT + header % b"x"
    yield b'{"weight_map":{"x":"b.safetensors"}}' + CUT + header % b"x" + CUT + header % b"x"


def questions():
    yield (
        b'{"version": "v2.0", "data": [{"title": "t", "paragraphs": [{"context": "a ship in port", "qas": '
        b'[{"id": "1", "question": "where", "answers": [{"text": "port", "answer_start": 10}], '
        b'"is_impossible": false}, {"id": "2", "question": "why", "answers": [], "is_impossible": true}]}]}]}'
    )
    yield (
        b'{"id": "1", "question": "where is it", "context": "a ship in a port that is far away", '
        b'"answers": {"text": ["port", "a port"], "answer_start": [12, 10]}}\n'
        b'{"question": "q", "context": "c", "answers": {"text": [], "answer_start": []}}' + CUT + b"3"
    )


def run_folder():
    yield (
        b'{"format": "stowage-settings", "version": 1, "data": "0123456789abcdef", '
        b'"options": {"model": ["nano"], "overwrite": [], "lr": ["1e-3", "2"]}}'
    )
    header = b'{"fields":{"step":3},"sections":[{"name":"a","bytes":4}]}'
    yield b"{}" + CUT + b"\x89STW\r\n\x1a\n" + struct.pack("<IIQ", 2, 0, len(header)) + header + bytes(28)


# Target: the function that makes its seeds, and the sources whose quoted strings form its dictionary.
TARGETS = {
    "chat_template": (chat_template, []),  # chat_template.dict is written by hand
    "checkpoint": (checkpoint, ["src/trainer/checkpoint.cpp", "planner/plan/numerics_file.cpp"]),
    "checkpoint_file": (checkpoint_file, ["src/files/checkpoint_file.cpp"]),
    "csv": (csv, ["tools/stowage/plans/lifetimes.cpp"]),
    "examples": (examples, ["tools/stowage/data/example_reader.cpp", "tools/stowage/data/labelled.cpp"]),
    "json": (json_texts, []),
    "model_config": (model_config, ["src/models/**/*.cpp"]),
    "model_folder": (
        model_folder,
        [
            "src/models/**/*.cpp",
            "src/weights/adapter_files.cpp",
            "src/weights/nf4_weights.cpp",
            "src/weights/safetensors.cpp",
        ],
    ),
    "plan": (
        plan,
        [
            "planner/plan/plan_file.cpp",
            "planner/plan/numerics_file.cpp",
            "planner/device/profile_file.cpp",
            "planner/graph/optimizer.cpp",
        ],
    ),
    "profile": (
        profile,
        [
            "planner/device/profile_file.cpp",
            "planner/graph/op_table.cpp",
            "planner/graph/ops/*.cpp",
            "planner/device/device.cpp",
        ],
    ),
    "questions": (questions, ["tools/stowage/data/questions.cpp"]),
    "reference": (reference, []),
    "run_folder": (run_folder, ["tools/stowage/run/run_settings.cpp"]),
    "safetensors": (safetensors, ["src/weights/safetensors.cpp"]),
    "shards": (shards, ["src/weights/safetensors.cpp"]),
    "tokenizer": (
        tokenizer,
        [
            f"tools/stowage/tokenizer/{name}.cpp"
            for name in (
                "description",
                "description_model",
                "description_steps",
                "description_templates",
                "vocabulary_file",
            )
        ],
    ),
}

if __name__ == "__main__":
    seeds, sources = TARGETS[sys.argv[1]]
    folder = pathlib.Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(seeds()):
        (folder / f"seed-{number:03}").write_bytes(seed)
    words = {
        word
        for pattern in sources
        for path in ROOT.glob(pattern)
        for word in re.findall(r'"([\w.-]{2,40})"', path.read_text())
    }
    if words:
        folder.with_name(folder.name + ".dict").write_text(
            "".join(f'"\\"{word}\\""\n' for word in sorted(words))
        )
