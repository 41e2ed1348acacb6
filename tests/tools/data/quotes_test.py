"""Quotes in tables: a text may begin with one although nothing is quoted, and takes no rows with it."""

import json
import re

from support import CommandTest

ROWS = [(f"ship {i} sails", "ab"[i % 2]) for i in range(60)]


def quoted(text):
    return '"' + text.replace('"', '""') + '"'


class QuotesTest(CommandTest):
    def table(self, rows, name, separator, columns=("text", "label"), write=str):
        lines = [separator.join(map(write, row)) for row in [columns, *rows]]
        return self.write(name, "\n".join(lines) + "\n")

    def with_quotes(self, opens=7, closes=21, rows=ROWS):
        """A text that begins with a quote, and another one that ends with one."""
        return [
            ('"' + row[0] if i == opens else row[0] + '"' if i == closes else row[0], *row[1:])
            for i, row in enumerate(rows)
        ]

    def command(self, data):
        flags = ["--batch", 4, "--seq", 64, "--vram", "64MiB", "--threads", 1]
        return ["train", "--model", "nano", "--data", data, *flags, "--show-examples", 100]

    def texts(self, data):
        output = self.run_command(*self.command(data)).stdout
        return [json.loads(piece) for piece in re.findall(r'^  text +(".*")$', output, re.M)]

    def refusal(self, data, *says, flags=()):
        self.refused(*self.command(data), *flags, says=says)

    def test_tabs_have_no_quotes(self):
        rows = self.with_quotes()
        self.assertEqual(self.texts(self.table(rows, "t.tsv", "\t")), [text for text, _ in rows])
        rows = self.with_quotes(closes=None)
        self.assertEqual(self.texts(self.table(rows, "t.tsv", "\t")), [text for text, _ in rows])
        rows = [(f'"{text}" he said, "again"', label) for text, label in ROWS]
        self.assertEqual(self.texts(self.table(rows, "t.tsv", "\t")), [text for text, _ in rows])
        rows = [(f'"{text}"' if i == 3 else text, label) for i, (text, label) in enumerate(ROWS)]
        self.assertEqual(self.texts(self.table(rows, "t.tsv", "\t")), [text for text, _ in rows])

    def test_tabs_with_quotes_that_are_proved(self):
        for special in ("has\ta tab", "has\na line end", 'has "a quote"'):
            rows = [(special, "a"), *ROWS]
            write = lambda field: quoted(field) if field == special else field
            data = self.table(rows, "t.tsv", "\t", write=write)
            self.assertEqual(self.texts(data), [text for text, _ in rows])
        data = self.table(ROWS, "t.tsv", "\t", write=quoted)
        self.assertEqual(self.texts(data), [text for text, _ in ROWS])
        # Then a quote that takes rows is refused.
        rows = [quoted("a\tb") + "\ta", *("\t".join(row) for row in self.with_quotes())]
        self.refusal(
            self.write("t.tsv", "text\tlabel\n" + "\n".join(rows) + "\n"), "t.tsv:10: a quote opens a field"
        )

    def test_a_line_end_that_is_not_quoted(self):
        rows = "".join(f"{'x' * 700} {i}\ta\n" for i in range(100))
        data = self.write("t.tsv", f'text\tlabel\n{rows}"two\nlines"\tb\n')
        self.refusal(
            data,
            "t.tsv:102: expected 2 fields",
            "a field ends with its line: put all fields of a column in quotes",
        )
        rows = "".join(f'"xxxx {i}"\ta\n' for i in range(100))
        data = self.write("t.tsv", '"text"\tlabel\n' + rows + '"two\nlines"\tb\n')
        self.assertEqual(self.texts(data)[-1], "xxxx 99")

    def test_commas(self):
        for opens, closes in ((7, 21), (7, 8), (0, 1), (58, 59), (7, 9)):
            data = self.table(self.with_quotes(opens, closes), "t.csv", ",")
            self.refusal(
                data, f"t.csv:{opens + 2}: a quote opens a field of {closes - opens + 1} lines", "JSON lines"
            )
        data = self.table(self.with_quotes(closes=None), "t.csv", ",")
        self.refusal(data, "t.csv:9: a field in quotes has no end", "none closes it")
        # The label may come first.
        rows = [(label, text) for text, label in ROWS]
        rows[7], rows[21] = ("a", '"' + rows[7][1]), ("b", rows[21][1] + '"')
        self.refusal(
            self.table(rows, "t.csv", ",", ("label", "text")), "t.csv:9: a quote opens a field of 15 lines"
        )
        # What the message advises.
        rows = self.with_quotes()
        data = self.table(rows, "t.csv", ",", write=lambda field: quoted(field) if '"' in field else field)
        self.assertEqual(self.texts(data), [text for text, _ in rows])
        lines = "".join(json.dumps({"text": text, "label": label}) + "\n" for text, label in rows)
        self.assertEqual(self.texts(self.write("t.jsonl", lines)), [text for text, _ in rows])

    def test_texts_of_several_lines(self):
        letters = [
            "Dear Sir,\nthank you, and so on",
            "Best,\nAnn",
            "Roses are red,\nviolets are blue,\nyes,\nso",
            "x, y\nz",
        ]
        rows = [(text, "ab"[i % 2]) for i, text in enumerate(letters * 10)]
        write = lambda field: quoted(field) if "\n" in field else field
        self.assertEqual(self.texts(self.table(rows, "t.csv", ",", write=write)), [text for text, _ in rows])
        rows = [(label, text) for text, label in rows]
        data = self.table(rows, "t.csv", ",", ("label", "text"), write)
        self.assertEqual(self.texts(data), [text for _, text in rows])

    def test_tables_of_examples(self):
        end = ["--document-end", 0]
        plain = [(text, " yes" if i % 2 else " no") for i, (text, _) in enumerate(ROWS)]
        rows = self.with_quotes(rows=plain)
        names = ("prompt", "completion")
        output = self.run_command(*self.command(self.table(rows, "p.tsv", "\t", names)), *end).stdout
        self.assertEqual(len(re.findall("^example ", output, re.M)), 60)
        self.assertIn('"\\"ship 7 sails"', output)
        self.refusal(
            self.table(rows, "p.csv", ",", names), "p.csv:9: a quote opens a field of 15 lines", flags=end
        )
        self.refusal(
            self.table(self.with_quotes(7, None, plain), "p.csv", ",", names),
            "p.csv:9: a field in quotes has no end",
            flags=end,
        )
        names = ("prompt", "chosen", "rejected")
        rows = [(text, f" yes {i}", f" no {i}") for i, (text, _) in enumerate(ROWS)]
        rows = self.with_quotes(rows=rows)
        output = self.run_command(*self.command(self.table(rows, "q.tsv", "\t", names)), *end).stdout
        self.assertEqual(len(re.findall("^pair .*chosen", output, re.M)), 60)
        self.refusal(
            self.table(rows, "q.csv", ",", names), "q.csv:9: a quote opens a field of 15 lines", flags=end
        )

    def test_classify(self):
        data = self.table(ROWS, "t.tsv", "\t")
        self.run_command(
            *self.command(data)[:-2], "--steps", 1, "--eval-batches", 0, "--out", self.path("run")
        )
        classify = ["classify", "--model", self.path("run"), "--data"]
        answers = self.run_command(*classify, self.table(self.with_quotes(), "c.tsv", "\t")).stdout
        self.assertEqual(len(answers.splitlines()), 60)
        self.refused(
            *classify, self.table(self.with_quotes(), "c.csv", ","), says=["c.csv:9: a quote opens a field"]
        )
