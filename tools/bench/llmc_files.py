"""Makes the input files of the llm.c comparison: random weights and random tokens in its formats, without
a download.

Usage: llmc_files.py FOLDER (an llm.c checkout) writes gpt2_124M.bin (checkpoint version 3, fp32) and the
token files that its CPU trainer opens by fixed names. Needs numpy."""

import pathlib
import sys

import numpy as np

LAYERS, HEADS, WIDTH, POSITIONS = 12, 12, 768, 1024
VOCABULARY, PADDED_VOCABULARY = 50257, 50304
TOKENS = {"train": 64 * 256 + 1, "val": 8 * 256 + 1}
CHECKPOINT_MAGIC, TOKENS_MAGIC = 20240326, 20240520


def header(*values):
    words = np.zeros(256, np.int32)
    words[: len(values)] = values
    return words.tobytes()


def tensors(source):
    """In file order: every tensor holds all layers; weights are (outputs, inputs)."""

    def normal(*shape):
        return np.float32(0.02) * source.standard_normal(shape, dtype=np.float32)

    def norm(*shape):
        return [np.ones(shape, np.float32), np.zeros(shape, np.float32)]

    def linear(outputs, inputs):
        return [normal(LAYERS, outputs, inputs), np.zeros((LAYERS, outputs), np.float32)]

    yield normal(VOCABULARY, WIDTH)
    yield np.zeros((PADDED_VOCABULARY - VOCABULARY, WIDTH), np.float32)
    yield normal(POSITIONS, WIDTH)
    yield from norm(LAYERS, WIDTH)
    yield from linear(3 * WIDTH, WIDTH)
    yield from linear(WIDTH, WIDTH)
    yield from norm(LAYERS, WIDTH)
    yield from linear(4 * WIDTH, WIDTH)
    yield from linear(WIDTH, 4 * WIDTH)
    yield from norm(WIDTH)


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: llmc_files.py FOLDER")
    root, source = pathlib.Path(sys.argv[1]), np.random.default_rng(1)
    with open(root / "gpt2_124M.bin", "wb") as file:
        file.write(
            header(CHECKPOINT_MAGIC, 3, POSITIONS, VOCABULARY, LAYERS, HEADS, WIDTH, PADDED_VOCABULARY)
        )
        for tensor in tensors(source):
            file.write(tensor.tobytes())
    folder = root / "dev" / "data" / "tinyshakespeare"
    folder.mkdir(parents=True, exist_ok=True)
    for split, count in TOKENS.items():
        with open(folder / f"tiny_shakespeare_{split}.bin", "wb") as file:
            file.write(header(TOKENS_MAGIC, 1, count))
            file.write(source.integers(0, VOCABULARY, count, dtype=np.uint16).tobytes())


if __name__ == "__main__":
    main()
