"""The content of the files of --data decides their format: JSON under any name, tables, pipes, several files,
other encodings, and files of other programs."""

import gzip
import io
import json
import os
import pathlib
import pickle
import re
import subprocess
import sys
import threading
import unittest
import zipfile

from support import STOWAGE, USAGE, CommandTest

ROWS = [{"prompt": f"Where is ship {i}?", "completion": " In port."} for i in range(40)]
LABELLED = [(f"the ship number {i} sails", "ab"[i % 2]) for i in range(40)]
SHORT = [
    "--model",
    "nano",
    "--batch",
    2,
    "--seq",
    32,
    "--vram",
    "64MiB",
    "--threads",
    2,
    "--steps",
    1,
    "--eval-batches",
    0,
    "--overwrite",
]


def lines_of(rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


def table_of(rows, separator=",", header=("text", "label")):
    return "".join(separator.join(map(str, row)) + "\n" for row in [header, *rows])


class DataFilesTest(CommandTest):
    def read_as(self, *data, more=(), **how):
        """The format in the line about the data, and the whole output."""
        output = self.run_command(
            "train", *SHORT, "--out", self.path("run"), "--document-end", 1, *more, "--data", *data, **how
        ).stdout
        return re.search(r"^data +.*; read as (.*)$", output, re.M).group(1), output

    def labelled_as(self, data, *more):
        output = self.run_command("train", *SHORT, "--out", self.path("run"), *more, "--data", data).stdout
        self.assertIn("examples    40, each with one of 2 labels", output)
        return re.search(r"^data +.*; read as (.*)$", output, re.M).group(1), self.weights("run")

    def refuses(self, data, *more, **how):
        self.refused(
            "train", *SHORT, "--out", self.path("run"), "--document-end", 1, *more, "--data", data, **how
        )

    def test_json_by_any_name(self):
        lines, array = lines_of(ROWS), json.dumps(ROWS)
        pretty, stream = json.dumps(ROWS, indent=2), "".join(json.dumps(row, indent=1) + "\n" for row in ROWS)
        expected = None
        for name, content, format in (
            ("a.jsonl", lines, "JSON lines"),
            ("a.ndjson", lines, "JSON lines"),
            ("A.JSONL", lines, "JSON lines"),
            ("a.json", lines, "JSON lines, by its content"),
            ("array.json", array, "JSON"),
            ("pretty.json", pretty, "JSON"),
            ("stream.json", stream, "JSON"),
            ("array.jsonl", array, "JSON, by its content"),
            ("a.txt", lines, "JSON lines, by its content"),
            ("array.txt", "\n " + array, "JSON, by its content"),
            ("a", "\ufeff" + lines.replace("\n", "\r\n"), "JSON lines, by its content"),
            ("a.md", lines, "JSON lines, by its content"),
            ("a.data", array, "JSON, by its content"),
        ):
            with self.subTest(name):
                read_as, output = self.read_as(self.write(name, content))
                self.assertEqual(read_as, format)
                self.assertIn("examples    40, of which 400 tokens are learned", output)
                expected = expected or self.weights("run")
                self.assertEqual(self.weights("run"), expected)
        # With --data-format text, JSON is read as plain text.
        read_as, output = self.read_as(self.write("a.txt", lines), more=["--data-format", "text"])
        self.assertEqual(read_as, "text")
        self.assertNotIn("examples", output)
        evaluated = self.run_command(
            "eval",
            "--model",
            self.path("run"),
            "--data",
            self.path("array.json"),
            "--all",
            "--document-end",
            1,
        ).stdout
        self.assertIn("over the 400 tokens that are learned in 40 samples", evaluated)

    def test_text_stays_text(self):
        for name, content in (
            ("code.txt", "{ int x; }\n" * 90),
            ("notes.md", "[1] A note.\n" * 90),
            ("words.txt", "text,label\n" + "no table at all, really, is here\n" * 40),
            ("page.md", '{"text": "a line of JSON"}\nis what this page is about.\n' + "More words.\n" * 90),
            ("list.txt", '["a", "b"]\n' * 90),
        ):
            with self.subTest(name):
                self.assertEqual(self.read_as(self.write(name, content))[0], "text")
        # JSON lines without the members of examples are learned as plain text, with a note in the output.
        result = self.run_command(
            "train",
            *SHORT,
            "--out",
            self.path("run"),
            "--data",
            self.write("log.txt", '{"time": 1, "level": "info"}\n' * 90),
        )
        self.assertIn(
            "log.txt: its lines are objects of JSON without a member that is known here", result.stderr
        )
        self.assertIn("read as text", result.stdout)

    def test_ambiguous_files_are_refused(self):
        self.refuses(
            self.write("half.txt", lines_of(ROWS[:9]) + "no object\n" * 3),
            says=[
                "half.txt: 9 of its first 12 lines are objects of JSON",
                "--data-format jsonl",
                "--data-format text",
            ],
        )
        self.refuses(self.path("half.txt"), "--data-format", "jsonl", says=["half.txt, line 10: damaged"])
        self.refuses(
            self.write("one.json", json.dumps({"version": 1, "data": ROWS})),
            says=["one.json: is one object", '"data"', "python3 -c"],
        )
        self.refuses(
            self.write("one.json", json.dumps({"version": 1, "data": ROWS}, indent=1)),
            says=["one.json: is one object"],
        )
        for columns in (
            {"text": {"0": "a", "1": "b"}, "label": {"0": "x", "1": "y"}},
            {"text": ["a", "b"], "label": ["x", "y"]},
            {"prompt": {"0": "a"}, "completion": {"0": "b"}},
        ):
            self.refuses(
                self.write("columns.json", json.dumps(columns)),
                says=["columns.json: is one object that has columns", "orient='records'"],
            )
        self.refuses(
            self.write("list.json", '["a", "b"]'), says=["list.json, line 1, element 1: expected an object"]
        )
        self.refuses(
            self.write("cut.json", "[\n" + lines_of(ROWS[:2]).replace("\n", ",\n")),
            says=["cut.json: damaged: expected a value", "in line 4"],
        )
        self.refuses(
            self.write("odd.json", "[" + json.dumps(ROWS[0]) + ",\n" + json.dumps({"other": 1}) + "]"),
            says=['odd.json, line 2, element 2: expected "prompt" and "completion"'],
        )
        self.refuses(self.text(), "--data-format", "yaml", expect=USAGE, says=["--data-format"])

    def test_tables_with_other_separators(self):
        expected = None
        for name, content, format in (
            ("a.csv", table_of(LABELLED), "CSV"),
            ("a.tsv", table_of(LABELLED, "\t"), "TSV"),
            ("a.TAB", table_of(LABELLED, "\t"), "TSV"),
            ("semicolons.csv", table_of(LABELLED, ";"), "CSV with semicolons"),
            ("tabs.csv", table_of(LABELLED, "\t"), "CSV with tabs"),
            ("commas.tsv", table_of(LABELLED), "TSV with commas"),
            ("a.txt", table_of(LABELLED), "CSV, by its content"),
            ("a", table_of(LABELLED, "\t"), "TSV, by its content"),
            ("a.dat", table_of(LABELLED, "|"), "CSV with bars, by its content"),
            (
                "lines.csv",
                lines_of([{"text": t, "label": l} for t, l in LABELLED]),
                "JSON lines, by its content",
            ),
        ):
            with self.subTest(name):
                read_as, weights = self.labelled_as(self.write(name, content))
                self.assertEqual(read_as, format)
                expected = expected or weights
                self.assertEqual(weights, expected)
        queries = self.write("q.dat", table_of(LABELLED, ";", ("query", "intent")))
        self.assertEqual(
            self.labelled_as(queries, "--text-field", "query", "--label-field", "intent")[0],
            "CSV with semicolons, by its content",
        )
        quoted = [('"a\tb ""c"" ' + text + '"', label) for text, label in LABELLED]
        self.assertEqual(self.labelled_as(self.write("quoted.tsv", table_of(quoted, "\t")))[0], "TSV")
        self.refused(
            "train",
            *SHORT,
            "--out",
            self.path("run"),
            "--data",
            self.write("short.tsv", "text\tlabel\nx\ta\ny\n"),
            says=["short.tsv:3: expected 2 fields", "found 1"],
        )
        self.refused(
            "train",
            *SHORT,
            "--out",
            self.path("run"),
            "--data",
            self.write("other.tsv", "words\tkind\nx\ta\n"),
            says=['other.tsv: there is no column "text"; there are words, kind'],
        )
        answers = self.run_command(
            "classify", "--model", self.path("run"), "--data", self.path("a.tsv")
        ).stdout
        self.assertEqual(
            answers,
            self.run_command("classify", "--model", self.path("run"), "--data", self.path("a.csv")).stdout,
        )
        self.assertEqual(len(answers.splitlines()), 40)

    def test_tables_of_examples(self):
        """Columns mean the same as JSON members of the same names."""
        odd = [
            *ROWS[:20],
            {"prompt": 'A "quoted" line,\nand one more;', "completion": "  blanks around  "},
            {"prompt": "1", "completion": "2"},
            {"prompt": "none", "completion": ""},
        ]
        pairs = [{"prompt": f"Ship {i}?", "chosen": " Port.", "rejected": f" Sea, {i}."} for i in range(20)]
        texts = [{"text": f"ship {i} sails"} for i in range(20)]
        marked = [{**row, "weight": i % 2} for i, row in enumerate(ROWS)]
        for number, (rows, separator, ending, reported) in enumerate(
            (
                (odd, ",", "csv", "examples    22, of which"),
                (odd, "\t", "tsv", "examples    22, of which"),
                (odd, ";", "txt", "; 1 more left out: 1 empty"),
                (pairs, ",", "csv", "pairs       20 of chosen"),
                (pairs, "|", "csv", "pairs       20 of chosen"),
                (texts, ",", "csv", "examples    20, of which"),
                (marked, ",", "csv", "examples    20, of which"),
            )
        ):
            quoted = [
                [
                    '"' + str(value).replace('"', '""') + '"'
                    if set(str(value)) & set(',;"|\t\n')
                    else str(value)
                    for value in row.values()
                ]
                for row in rows
            ]
            self.read_as(self.write("a.jsonl", lines_of(rows)))
            expected = self.weights("run")
            read_as, output = self.read_as(
                self.write(f"{number}.{ending}", table_of(quoted, separator, rows[0]))
            )
            self.assertIn(reported, output)
            self.assertEqual(self.weights("run"), expected, (number, read_as))
        # A text with a label trains a classifier, whatever other columns there are.
        self.assertIn(
            "each with one of 2 labels",
            self.run_command(
                "train",
                *SHORT,
                "--out",
                self.path("run"),
                "--data",
                self.write(
                    "l.csv", table_of([(*row, "x") for row in LABELLED], ",", ("text", "label", "prompt"))
                ),
            ).stdout,
        )
        self.refuses(
            self.write("k.csv", "prompt,completion,label\na,b,True\nc,d,False\n"),
            says=["k.csv:3: label: expected an answer to learn, found one that was judged bad (KTO)"],
        )
        self.refuses(
            self.write("i.csv", "instruction,output\na,b\n"),
            says=[
                'i.csv: there is no column "text"; there are instruction, output',
                "examples to learn have prompt and completion",
            ],
        )
        self.refuses(
            self.write("p.csv", "prompt,answer\na,b\n"),
            says=[
                'p.csv:2: expected "prompt" and "completion", "messages", or "text", found "prompt", "answer"'
            ],
        )
        self.refuses(
            self.write("s.csv", "prompt,completion\na\n"),
            says=["s.csv:2: expected 2 fields, as many as there are columns, found 1"],
        )
        self.refuses(
            self.write("d.csv", "prompt,completion,prompt\na,b,c\n"),
            says=['d.csv: there are several columns "prompt"'],
        )
        self.refused(
            "train",
            *SHORT,
            "--out",
            self.path("run"),
            "--data",
            self.path("k.csv"),
            self.path("l.csv"),
            says=["k.csv", "l.csv", "columns of examples"],
        )

    def test_a_table_that_is_called_json(self):
        table = table_of([(row["prompt"], row["completion"]) for row in ROWS], ",", ("prompt", "completion"))
        self.assertEqual(self.read_as(self.write("a.jsonl", table))[0], "CSV, by its content")
        self.assertEqual(self.read_as(self.write("b.json", table_of(LABELLED)))[0], "CSV, by its content")
        self.refuses(
            self.write("c.jsonl", "a;b\n1;2\n3;4\n"),
            says=[
                "c.jsonl: expected JSON lines, and it looks like a table with the columns a, b; "
                "--data-format csv reads it as one"
            ],
        )
        self.refuses(
            self.path("a.jsonl"),
            "--data-format",
            "jsonl",
            says=[
                "a.jsonl: expected JSON lines, and it looks like a table with the columns prompt, completion"
            ],
        )
        self.refuses(self.write("d.jsonl", "no JSON, and no table\nat all\n"), says=["d.jsonl, line 1"])

    def test_pipes(self):
        """A pipe of any format is read only once."""
        text = b"the hold is full. " * 40
        for content, format in (
            (lines_of(ROWS).encode(), "JSON lines, by its content"),
            (json.dumps(ROWS).encode(), "JSON, by its content"),
            (text, "text"),
        ):
            with self.subTest(format):
                of_file = (
                    self.read_as(self.write("a.data", content))[1]
                    .split("\n")[1]
                    .replace(self.path("a.data"), "FILE")
                )
                weights = self.weights("run")
                with open(self.path("a.data"), "rb") as file:
                    piped = subprocess.Popen(["cat"], stdin=file, stdout=subprocess.PIPE)
                    result = self.read_as("/dev/stdin", stdin=piped.stdout)
                    piped.stdout.close()
                    piped.wait()
                self.assertEqual(result[0], format)
                self.assertEqual(result[1].split("\n")[1].replace("/dev/stdin", "FILE"), of_file)
                self.assertEqual(self.weights("run"), weights)
        for name, content in (
            ("p.jsonl", lines_of(ROWS).encode()),
            ("p.csv", table_of(LABELLED).encode()),
            ("p.bin", bytes(range(0, 256)) * 4),
            ("p.txt", text),
        ):
            with self.subTest(name):
                os.mkfifo(self.path(name))
                writer = threading.Thread(target=pathlib.Path(self.path(name)).write_bytes, args=[content])
                writer.start()
                end = [] if name == "p.csv" else ["--document-end", 1]
                ids = ["--tokenizer", "byte"] if name == "p.bin" else []
                self.run_command(
                    "train", *SHORT, "--out", self.path("piped"), *end, *ids, "--data", self.path(name)
                )
                writer.join()
                regular = self.write("regular" + name[1:], content)
                self.run_command("train", *SHORT, "--out", self.path("run"), *end, *ids, "--data", regular)
                self.assertEqual(self.weights("run"), self.weights("piped"))

    def test_several_files(self):
        parts = [
            self.write(f"parts/{name}", content)
            for name, content in (
                ("1.jsonl", lines_of(ROWS[:10])),
                ("2.json", json.dumps(ROWS[10:25])),
                ("3.ndjson", lines_of(ROWS[25:])),
            )
        ]
        whole = self.read_as(self.write("whole.jsonl", lines_of(ROWS)))
        expected = self.weights("run")
        pattern = self.path("parts/[123].*")
        for data in (
            parts,
            [self.path("parts")],
            [self.path("parts") + "/"],
            [pattern],
            [parts[0], "--data", parts[1], "--data=" + parts[2]],
        ):
            with self.subTest(data):
                read_as, output = self.read_as(*data)
                self.assertEqual(read_as, "3 files of JSON lines")
                self.assertIn("examples    40, of which 400 tokens are learned", output)
                self.assertEqual(self.weights("run"), expected)
        self.assertEqual(whole[0], "JSON lines")
        # An error names the file that it is in. A resumed run reads all files again.
        self.run_command("train", "--resume", self.path("run"), "--steps", 2, cwd=self.path("parts"))
        self.write("parts/3.ndjson", lines_of(ROWS[26:]))
        self.assertIn(
            "gives other tokens than the run in",
            self.run_command("train", "--resume", self.path("run"), "--steps", 3).stderr,
        )
        self.write("parts/2.json", json.dumps([*ROWS[10:24], {"prompt": "x"}]))
        self.refuses(
            self.path("parts"), says=['2.json, line 1, element 15: expected "prompt" and "completion"']
        )
        self.refused(
            "train",
            *SHORT,
            "--out",
            self.path("run"),
            "--data",
            parts[0],
            self.write("a.csv", table_of(LABELLED)),
            says=["1.jsonl is JSON lines, and ", "a.csv is CSV; files of one kind"],
        )
        self.refused(
            "train",
            *SHORT,
            "--out",
            self.path("run"),
            "--data",
            self.path("none/*.jsonl"),
            says=["none/*.jsonl: no file matches this pattern"],
        )
        self.refused(
            "train",
            *SHORT,
            "--out",
            self.path("run"),
            "--data",
            self.path("**/*.jsonl"),
            expect=USAGE,
            says=["** is not supported"],
        )
        self.write("empty/readme", "")
        self.refused(
            "train",
            *SHORT,
            "--out",
            self.path("run"),
            "--data",
            self.path("empty"),
            says=["empty: is a folder without a file of data"],
        )
        self.write("empty/a.txt", "words " * 300)
        self.assertIn(
            "1 of its entries is left out: readme",
            self.run_command("train", *SHORT, "--out", self.path("run"), "--data", self.path("empty")).stderr,
        )
        self.write("empty/part-0.parquet", b"PAR1....PAR1")
        self.refused(
            "train",
            *SHORT,
            "--out",
            self.path("run"),
            "--data",
            self.path("empty"),
            says=["part-0.parquet: is a Parquet file"],
        )

    def test_several_texts_and_evaluation_files(self):
        texts = [self.write("1.txt", "one two three. " * 30), self.write("2.txt", "four five six. " * 30)]
        both = self.write("both.txt", "one two three. " * 30 + "\x01" + "four five six. " * 30)
        for data in (texts, [both]):
            self.run_command(
                "train", *SHORT, "--out", self.path(f"run-{len(data)}"), "--document-end", 1, "--data", *data
            )
        self.assertEqual(self.weights("run-2"), self.weights("run-1"))
        tables = [self.write(f"{i}.csv", table_of(LABELLED[20 * i : 20 * i + 20])) for i in range(2)]
        output = self.run_command(
            "train",
            *[1 if word == 0 else word for word in SHORT],
            "--out",
            self.path("run"),
            "--data",
            self.write("all.csv", table_of(LABELLED)),
            "--eval-data",
            *tables,
        ).stdout
        self.assertIn(f"to evaluate on, in {tables[0]} and 1 more", output)
        for name, more in (("ids.bin", []), ("ids.dat", ["--data-format", "tokens"])):
            content = b"".join(i.to_bytes(2, "little") for i in range(256)) * 4
            output = self.run_command(
                "train", *SHORT, "--out", self.path("of-" + name), *more, "--data", self.write(name, content)
            ).stdout
            self.assertIn("1,024 tokens to train on, none held out; read as token ids", output)
        self.assertEqual(self.weights("of-ids.dat"), self.weights("of-ids.bin"))
        ids = [self.write("1.bin", bytes(400)), self.write("2.bin", bytes(401))]
        self.refused(
            "train",
            *SHORT,
            "--out",
            self.path("run"),
            "--data",
            *ids,
            says=["2.bin: expected token ids of 2 bytes each, found 401 bytes"],
        )

    def test_files_without_data(self):
        empty, blank, names = (
            "the file is empty",
            "the file has only blank lines",
            "the file has a line of column names alone",
        )
        for name, content, says in (
            ("a.csv", "", empty),
            ("a.tsv", "", empty),
            ("a.json", "", empty),
            ("a.jsonl", "", empty),
            ("a.txt", "", empty),
            ("a.conll", "", empty),
            ("a.bin", "", empty),
            ("b.csv", "\n  \n", blank),
            ("b.jsonl", "\ufeff\n \n", blank),
            ("b.json", " \n", blank),
            ("c.csv", "text,label\n", names),
            ("c.tsv", "text\tlabel\n\n", names),
            ("d.csv", "text\n", names),
            ("e.csv", '"prompt","completion"', names),
            ("f.json", " [ ]\n", "the file is an empty array"),
            ("g.json", '{"version": "1.1", "data": []}', 'its "data" is an empty array'),
            ("h.json", '{"version": "1.1",\n "data": [ ]}\n', 'its "data" is an empty array'),
        ):
            with self.subTest(name=name):
                path = self.write(name, content)
                for more in ((), ("--task", "label"), ("--task", "spans"), ("--task", "masked")):
                    self.refused(
                        *("train", *SHORT, "--out", self.path("run"), *more, "--data", path),
                        says=[f"{path}: there is no data: {says}"],
                    )
                self.refused("eval", "--model", "nano", "--data", path, says=["there is no data: "])
        # One of several files may be empty.
        rows = self.write("rows.csv", table_of(LABELLED))
        self.labelled_as(rows)
        output = self.run_command(
            *("train", *SHORT, "--out", self.path("run"), "--data", rows, self.write("z.jsonl", "")), expect=1
        ).stderr
        self.assertIn("files of one kind are read together", output)
        texts = self.write("t.txt", "the ship sails " * 100)
        self.run_command(
            *("train", *SHORT, "--out", self.path("run"), "--data", texts, self.write("y.txt", ""))
        )
        self.refused(
            *("train", *SHORT[:-3], "--out", self.path("new"), "--data", rows, "--eval-batches", 1),
            *("--eval-data", self.path("c.csv")),
            says=["c.csv: there is no data"],
        )
        # The advice for a wrapped file takes out the member that has examples.
        wrapped = self.write("w.json", json.dumps({"errors": [], "rows": [{"a": 1}]}))
        self.refuses(wrapped, says=['take "rows" out'])

    def test_other_encodings(self):
        lines, table = lines_of(ROWS), table_of(LABELLED)
        for encoding, named in (
            ("utf-16", "UTF-16"),
            ("utf-16-le", "UTF-16LE"),
            ("utf-16-be", "UTF-16BE"),
            ("utf-32", "UTF-32"),
            ("utf-32-le", "UTF-32LE"),
            ("utf-32-be", "UTF-32BE"),
        ):
            for name, content in (
                ("a.jsonl", lines),
                ("a.csv", table),
                ("a.txt", "plain text " * 30),
                ("a.conll", "The O\nship B-X\n"),
            ):
                with self.subTest(encoding + name):
                    path = self.write(name, content.encode(encoding))
                    command = f"iconv -f {named} -t UTF-8 {path} > {path.replace('/a.', '/a.utf8.')}"
                    self.refused(
                        "train",
                        *SHORT,
                        "--out",
                        self.path("run"),
                        "--data",
                        path,
                        says=[f"is {named}, expected UTF-8: {command}"],
                    )
                    subprocess.run(["sh", "-c", command], check=True)
                    converted = pathlib.Path(path.replace("/a.", "/a.utf8.")).read_bytes()
                    self.assertEqual(converted.removeprefix(b"\xef\xbb\xbf"), content.encode())
        self.refuses(
            self.write(
                "latin.jsonl",
                lines.encode() + json.dumps({"text": "Häfen"}, ensure_ascii=False).encode("latin-1"),
            ),
            says=[
                "latin.jsonl, line 41: expected UTF-8, found the byte 0xE4; "
                "if it is Latin-1 or Windows-1252: iconv -f WINDOWS-1252 -t UTF-8 "
            ],
        )
        self.refuses(
            self.write("damaged.jsonl", '{"text": "Häfen"}\n'.encode() * 3 + b'{"text": "H\xc3"}'),
            says=[
                "damaged.jsonl, line 4: expected UTF-8, found the byte 0xC3; other characters of it are UTF-8"
            ],
        )
        self.run_command(
            "train", *SHORT, "--out", self.path("of-labels"), "--data", self.write("labels.csv", table)
        )
        for name in ("texts.txt", "texts.csv"):
            path = self.write(name, table.encode("utf-16"))
            self.refused(
                "classify",
                "--model",
                self.path("of-labels"),
                "--data",
                path,
                says=[f"{name}: is UTF-16, expected UTF-8: iconv"],
            )

    def test_files_of_other_programs(self):
        archive = io.BytesIO()
        with zipfile.ZipFile(archive, "w") as file:
            file.writestr("a.txt", "text")
        book = io.BytesIO()
        with zipfile.ZipFile(book, "w") as file:
            file.writestr("xl/workbook.xml", "<x/>")
        for name, content, says in (
            ("a.parquet", b"PAR1\x15\x04PAR1", ["a Parquet file", "read_parquet", "to_json"]),
            ("a.jsonl", b"PAR1\x15\x04PAR1", ["a Parquet file"]),
            ("a.arrow", b"ARROW1\0\0", ["an Arrow file", "read_feather"]),
            ("b.arrow", b"\xff\xff\xff\xff\x10\0\0\0", ["an Arrow stream", "Dataset.from_file"]),
            ("a.jsonl.gz", gzip.compress(lines_of(ROWS).encode()), ["compressed by gzip", "gzip -dk "]),
            ("a.zst", b"\x28\xb5\x2f\xfd....", ["zstd -d "]),
            ("a.zip", archive.getvalue(), ["a zip archive", "unzip "]),
            ("a.xlsx", book.getvalue(), ["a workbook of Excel", "read_excel"]),
            ("a.pkl", pickle.dumps([1, 2]), ["a pickle of Python"]),
            ("a.array", b"\x93NUMPY\x01\0v\0{", ["an array of NumPy", "tofile"]),
            (
                "a.txt",
                b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n",
                ["a pointer of Git LFS", "git lfs pull"],
            ),
        ):
            with self.subTest(name):
                self.refuses(self.write(name, content), says=[f"{name}: is ", *says])
        self.refused(
            "tokenize",
            "--model",
            "nano",
            "--data",
            self.path("a.parquet"),
            "--tokenizer",
            self.text(),
            "--out",
            self.path("o.bin"),
            says=[],
        )

    def test_json_as_python_writes_it(self):
        row = '{"prompt": "Where?", "completion": " In the hold.", "score": %s}\n'
        for word in ("NaN", "Infinity", "-Infinity", '[NaN, {"x": -Infinity}]', "null", '"\\ud83d"'):
            self.assertEqual(self.read_as(self.write("a.jsonl", row % word * 20))[0], "JSON lines")
        self.refuses(
            self.write("nan.jsonl", row % 1 + '{"prompt": NaN, "completion": "x"}\n'),
            says=["nan.jsonl, line 2: prompt: expected a string"],
        )
        self.refused(
            "train",
            *SHORT,
            "--out",
            self.path("run"),
            "--data",
            self.write("nan.jsonl", '{"text": "a", "label": "x"}\n{"text": "b", "label": NaN}\n'),
            says=["nan.jsonl, line 2: label: expected a string or a finite number, found NaN"],
        )
        self.refuses(
            self.write("lone.jsonl", row % 1 + '{"prompt": "a", "completion": "\\ud83d."}\n'),
            says=["lone.jsonl, line 2: damaged: expected a pair of surrogates, found half of one (\\ud83d)"],
        )
        self.refuses(
            self.write("lone.jsonl", row % 1 + '{"prompt": "a", "completion": "\\ude00"}\n'),
            says=["lone.jsonl, line 2: damaged: expected a pair of surrogates, found half of one (\\ude00)"],
        )
        # The last of several members with the same name counts, as in Python, also when it decides the kind
        # of a line.
        for doubled, single in (
            (
                '{"prompt": "a", "completion": "x", "completion": "yes"}',
                '{"prompt": "a", "completion": "yes"}',
            ),
            (
                '{"text": 1, "prompt": "a", "text": null, "completion": "yes"}',
                '{"prompt": "a", "completion": "yes"}',
            ),
        ):
            self.read_as(self.write("a.jsonl", (doubled + "\n") * 20))
            weights = self.weights("run")
            self.read_as(self.write("a.jsonl", (single + "\n") * 20))
            self.assertEqual(self.weights("run"), weights)
        for odd in ('{"a": [1, 2}', '{"a": {"b" 1}}', '{"a": [1,]}', '{"a": tru}', '{"a": "x}'):
            self.refuses(
                self.write("odd.jsonl", row % 1 + odd[:-1] + ', "text": "x"}\n'),
                says=["odd.jsonl, line 2: damaged"],
            )

    def test_members_that_are_not_used_take_no_memory(self):
        peaks = []
        for count in (1, 2_000_000):  # one parsed value takes about 100 bytes
            data = self.write(
                "a.jsonl",
                '{"prompt": "a", "completion": "b", "unused": ['
                + ",".join("1" * count)
                + "]}\n"
                + lines_of(ROWS),
            )
            words = [
                STOWAGE,
                "train",
                *map(str, SHORT),
                "--document-end",
                "1",
                "--out",
                self.path("run"),
                "--data",
                data,
            ]
            measured = (
                "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True, "
                "stdout=subprocess.DEVNULL); print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
            )
            peaks.append(
                int(
                    subprocess.run(
                        [sys.executable, "-c", measured, *words], check=True, stdout=subprocess.PIPE
                    ).stdout
                )
                * 1024
            )
        self.assertLess(peaks[1] - peaks[0], 64 << 20)

    def test_long_conversations_take_no_longer_than_their_length(self):
        """Messages that a sample cuts off are not located. Locating each takes time for all messages before
        it."""
        template = self.write(
            "turns.jinja",
            "{% for m in messages %}<{{ m.role }}>{{ m.content }}</>\n"
            "{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}",
        )
        weights = []
        for count in (40, 8000):  # locating all 8000 took minutes
            talks = [
                {
                    "messages": [
                        {"role": ["user", "assistant"][i % 2], "content": f"This is message {i} of {k}."}
                        for i in range(count)
                    ]
                }
                for k in range(4)
            ]
            output = self.run_command(
                "train",
                *[128 if word == 32 else word for word in SHORT],
                "--out",
                self.path("run"),
                "--document-end",
                1,
                "--chat-template",
                template,
                "--data",
                self.write("talks.jsonl", lines_of(talks)),
            ).stdout
            self.assertIn("4 cut to the length of a sample", output)
            weights.append(self.weights("run"))
        self.assertEqual(weights[0], weights[1])

    def test_encodings_of_a_models_files(self):
        """A byte-order mark is not part of a tokenizer or a template. The message about any other encoding
        shows the command that converts it."""
        data = self.write(
            "talks.jsonl",
            lines_of(
                [{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}] * 40
            ),
        )
        content = "{% for m in messages %}<{{ m.role }}>{{ m.content }}</>{% endfor %}"
        template = self.write("turns.jinja", content)
        words = [
            "train",
            *SHORT,
            "--out",
            self.path("run"),
            "--document-end",
            1,
            "--data",
            data,
            "--chat-template",
            template,
        ]
        self.run_command(*words)
        expected = self.weights("run")
        self.write("turns.jinja", "\ufeff" + content)
        self.run_command(*words)
        self.assertEqual(self.weights("run"), expected)
        self.write("turns.jinja", content.encode("utf-16"))
        self.refused(
            *words,
            says=["turns.jinja: expected UTF-8", f"it is UTF-16: iconv -f UTF-16 -t UTF-8 {template} > "],
        )
        for name in ("tokenizer.json", "vocab.txt"):
            path = self.write(name, '{"version": "1.0"}'.encode("utf-16"))
            self.refused(
                "train",
                *SHORT,
                "--out",
                self.path("run"),
                "--data",
                self.text(),
                "--tokenizer",
                path,
                says=[f"{name}: expected UTF-8", f"it is UTF-16: iconv -f UTF-16 -t UTF-8 {path} > "],
            )
        config = {
            "model_type": "gpt2",
            "vocab_size": 256,
            "n_positions": 64,
            "n_embd": 16,
            "n_layer": 1,
            "n_head": 2,
        }
        planned = [
            "plan",
            "--model",
            self.path("config.json"),
            "--batch",
            2,
            "--seq",
            32,
            "--vram",
            "64MiB",
            "--json",
        ]
        plans = []
        for text in (
            json.dumps(config),
            "\ufeff" + json.dumps(config),
            json.dumps({**config, "unused": float("nan")}),
            '{"n_layer": 9, ' + json.dumps(config)[1:],
        ):
            self.write("config.json", text)
            plans.append(self.run_command(*planned).stdout)
        self.assertEqual(plans[1:], plans[:1] * 3)
        self.write("config.json", json.dumps({**config, "layer_norm_epsilon": float("nan")}))
        self.refused(*planned, says=['config.json: "layer_norm_epsilon": expected a finite number'])
        self.write("config.json", json.dumps(config).encode("utf-16"))
        self.refused(*planned, says=["config.json: it is UTF-16, expected UTF-8"])
        latin = self.write("a.txt", "Häfen. ".encode("latin-1") * 90)
        vocab = self.write(
            "vocab.txt",
            "\ufeff" + "\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "h", "##a"]) + "\n",
        )
        self.refused(
            "tokenize",
            "--model",
            "nano",
            "--tokenizer",
            vocab,
            "--data",
            latin,
            "--out",
            self.path("o.bin"),
            says=[
                "a.txt: expected UTF-8",
                f"if it is Latin-1 or Windows-1252: iconv -f WINDOWS-1252 -t UTF-8 {latin} > ",
            ],
        )


if __name__ == "__main__":
    unittest.main()
