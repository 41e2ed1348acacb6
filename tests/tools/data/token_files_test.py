"""Files of token ids of every type, and files that look like another type."""

import json
import struct
import unittest

from support import FAILED, USAGE, CommandTest

LARGE = {
    "model_type": "gpt2",
    "architectures": ["GPT2LMHeadModel"],
    "vocab_size": 70000,
    "n_positions": 32,
    "n_embd": 8,
    "n_layer": 1,
    "n_head": 1,
    "eos_token_id": 0,
}
CODES = {"uint16": "H", "uint32": "I", "int32": "i", "int64": "q"}


class TokenFilesTest(CommandTest):
    def ids(self, name, kind, ids, big_endian=False):
        return self.write(name, struct.pack((">" if big_endian else "<") + str(len(ids)) + CODES[kind], *ids))

    def array(self, name, kind, ids):
        """A file as numpy.save writes it."""
        descr = {"uint16": "<u2", "uint32": "<u4", "int32": "<i4", "int64": "<i8"}[kind]
        header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': ({len(ids)},), }}".encode()
        header += b" " * (63 - (len(header) + 10) % 64) + b"\n"
        return self.write(
            name,
            b"\x93NUMPY\x01\x00"
            + struct.pack("<H", len(header))
            + header
            + struct.pack(f"<{len(ids)}{CODES[kind]}", *ids),
        )

    def first_loss(self, data, *words):
        out = self.path("run")
        self.run_command(
            "train",
            *words,
            "--data",
            data,
            "--batch",
            2,
            "--seq",
            16,
            "--threads",
            1,
            "--eval-batches",
            0,
            "--steps",
            1,
            "--out",
            out,
            "--overwrite",
        )
        return self.metrics("run")[0]["loss"]

    def test_every_type_trains_the_same(self):
        ids = [(i * i * 7 + i) % 256 for i in range(2000)]
        nano = ["--model", "nano", "--vram", "64MiB"]
        expected = self.first_loss(self.ids("ids.bin", "uint16", ids), *nano)
        for kind in CODES:
            self.assertEqual(
                self.first_loss(self.ids("ids.bin", kind, ids), *nano, "--token-type", kind), expected
            )
            self.assertEqual(self.first_loss(self.array("ids.npy", kind, ids), *nano), expected)
        self.run_command(
            "eval",
            *nano[:2],
            "--data",
            self.ids("ids.bin", "int64", ids),
            "--token-type",
            "int64",
            "--eval-batches",
            1,
        )
        # A resumed run keeps its token type.
        out = self.path("run")
        self.run_command("train", "--resume", out, "--steps", 2)
        self.refused(
            "eval",
            "--model",
            out,
            "--data",
            self.path("ids.bin"),
            "--eval-batches",
            1,
            says=["ids.bin: its ids look like int64", "--token-type int64"],
        )
        self.first_loss(self.path("ids.bin"), *nano, "--token-type", "int64")
        self.run_command("train", "--resume", out, "--steps", 2)
        self.refused(
            "train", "--resume", out, "--steps", 3, "--no-token-type", expect=USAGE, says=["--no-token-type"]
        )

    def test_several_arrays(self):
        ids = [(i * i * 7 + i) % 256 for i in range(2000)]
        nano = ["--model", "nano", "--vram", "64MiB"]
        for kind in ("uint16", "int64"):
            whole = self.array("whole.npy", kind, ids)
            first, second = (
                self.array("parts/0.npy", kind, ids[:700]),
                self.array("parts/1.npy", kind, ids[700:]),
            )
            expected = self.first_loss(whole, *nano)
            self.assertEqual(self.first_loss(second, *nano, "--data", first), expected)  # other order
            self.assertEqual(self.first_loss(self.path("parts"), *nano), expected)
            self.assertEqual(self.first_loss(self.path("parts/*.npy"), *nano, "--token-type", kind), expected)
            self.assertNotEqual(self.first_loss(first, *nano, "--data", second), expected)
        # A document ends at the end of a file, as with other formats.
        ends = self.first_loss(
            self.array("ended.npy", "int64", ids[:700] + [5] + ids[700:]), *nano, "--document-end", 5
        )
        self.assertEqual(self.first_loss(self.path("parts"), *nano, "--document-end", 5), ends)
        words = [
            "train",
            *nano,
            "--batch",
            2,
            "--seq",
            16,
            "--steps",
            1,
            "--out",
            self.path("none"),
            "--data",
            self.path("parts"),
            "--data",
        ]
        self.refused(
            *words,
            self.array("other.npy", "uint32", ids),
            says=["other.npy: its ids are <u4, and those of", "0.npy are <i8", "array.astype('<i8')"],
        )
        self.refused(
            *words, self.ids("ids.bin", "int64", ids), says=["ids.bin: is not a NumPy array, and", "0.npy is"]
        )
        header = b"{'descr': '<i8', 'fortran_order': False, 'shape': (10, 10), }"
        self.refused(
            *words,
            self.write(
                "square.npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + bytes(800)
            ),
            says=["square.npy: expected a NumPy array of one dimension"],
        )
        self.refused(
            *words,
            self.write("short.npy", b"\x93NUMPY\x01\x00\xff\xff{}"),
            says=["short.npy: a NumPy array whose header is damaged"],
        )
        self.array("parts/1.npy", "int64", ids[700:] + [256])
        self.refused(*words[:-1], says=["token 2000 is 256, expected less than the vocabulary of 256"])

    def test_vocabularies_above_65536(self):
        model = ["--model", self.write("large/config.json", json.dumps(LARGE)), "--vram", "64MiB"]
        ids = [(i * i * 7 + i) % 70000 for i in range(2000)]
        expected = self.first_loss(self.ids("ids.bin", "uint32", ids), *model)
        self.assertEqual(
            self.first_loss(self.ids("ids.bin", "int64", ids), *model, "--token-type", "int64"), expected
        )
        self.assertEqual(self.first_loss(self.array("ids.npy", "int64", ids), *model), expected)
        small = [id % 60000 for id in ids]
        self.assertEqual(
            self.first_loss(self.ids("ids.bin", "uint16", small), *model, "--token-type", "uint16"),
            self.first_loss(self.ids("ids.bin", "uint32", small), *model),
        )
        words = [
            "train",
            *model,
            "--batch",
            2,
            "--seq",
            16,
            "--steps",
            1,
            "--out",
            self.path("none"),
            "--data",
        ]
        self.refused(
            *words,
            self.ids("w.bin", "int64", ids),
            says=["w.bin: its ids look like int64", "read as uint32", "--token-type int64"],
        )
        self.refused(
            *words,
            self.ids("n.bin", "uint16", small),
            says=["n.bin: its ids look like uint16", "--token-type uint16"],
        )
        ids[777] = 70000
        self.refused(
            *words,
            self.ids("o.bin", "uint32", ids),
            says=["o.bin: token 777 is 70000, expected less than the vocabulary of 70000"],
        )

    def test_raw_files_that_look_like_another_type_are_refused(self):
        ids = [(i * i * 7 + i) % 256 for i in range(2000)]
        words = [
            "train",
            "--model",
            "nano",
            "--batch",
            2,
            "--seq",
            16,
            "--vram",
            "64MiB",
            "--steps",
            1,
            "--out",
            self.path("none"),
            "--data",
        ]
        for kind in ("uint32", "int64"):
            self.refused(
                *words,
                self.ids("ids.bin", kind, ids),
                says=[
                    f"ids.bin: its ids look like {kind}, and are read as uint16: "
                    f"say so by --token-type {kind}"
                ],
            )
            self.assertIn(
                f"--token-type {kind}",
                self.run_command(
                    "eval", "--model", "nano", "--data", self.path("ids.bin"), expect=FAILED
                ).stderr,
            )
        for kind in ("uint16", "uint32", "int64"):
            self.refused(
                *words,
                self.ids("big.bin", kind, ids, True),
                says=["big.bin: its ids look like big-endian numbers", "write them little-endian"],
            )
        self.refused(
            *words,
            self.write("ids.npz", b"PK\x03\x04" + b"\0" * 26 + b"ids.npy"),
            says=["ids.npz: is a .npz file of NumPy"],
        )
        self.refused(
            *words,
            self.text(),
            "--token-type",
            "uint16",
            expect=USAGE,
            says=["--token-type uint16", "text.txt is not one"],
        )
        self.refused(
            *words, self.path("ids.bin"), "--token-type", "uint8", expect=USAGE, says=["--token-type"]
        )
        self.refused(
            *words,
            self.array("ids.npy", "uint32", ids),
            "--token-type",
            "int64",
            says=["ids.npy: its header says that its ids are uint32, and --token-type int64"],
        )


if __name__ == "__main__":
    unittest.main()
