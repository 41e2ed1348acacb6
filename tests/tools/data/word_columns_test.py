"""Dialects of files of words: which columns have the words and the tags, and which lines are none of both."""

import json
import re

from support import FAILED, USAGE, CommandTest

WORDS = [["Ada", "Lovelace", "lived", "in", "London"], ["the", "ship", "of", "Acme", "sails"]]
TAGS = [["B-PER", "I-PER", "O", "O", "B-LOC"], ["O", "O", "O", "B-ORG", "O"]]
POS = [["PROPN", "PROPN", "VERB", "ADP", "PROPN"], ["DET", "NOUN", "ADP", "PROPN", "VERB"]]
EXPECTED = [(" ".join(words), tags) for words, tags in zip(WORDS, TAGS)]
AS_POS = [(" ".join(words), tags) for words, tags in zip(WORDS, POS)]


class WordColumnsTest(CommandTest):
    def file(self, line, head="", name="words.conll", times=10):
        """Lines line(index, word, tag, part of speech) of the two texts."""
        texts = [
            head.replace("NUMBER", str(n))
            + "".join(
                line(i + 1, *of_word) for i, of_word in enumerate(zip(WORDS[n % 2], TAGS[n % 2], POS[n % 2]))
            )
            for n in range(2 * times)
        ]
        return self.write(name, "\n".join(texts))

    def words_of(self, data, *flags, count=2):
        """What the command says about the columns, and (text, tags) of the first texts."""
        output = self.run_command(*self.command("train", data), "--show-examples", count, *flags).stdout
        reading = re.search(r"^words       (.*)$", output, re.M).group(1)
        texts = []
        for line in output.splitlines():
            piece = re.match(r'  (no label|\S+) +(".*")$', line)
            if line.startswith("text "):
                texts.append(("", []))
            elif piece:
                texts[-1] = (
                    texts[-1][0] + json.loads(piece[2]),
                    texts[-1][1] + [piece[1]] * (piece[1] != "no label"),
                )
        return reading, texts

    def command(self, name, data):
        model = ["--model", "nano", "--batch", 4, "--seq", 64, "--vram", "64MiB", "--threads", 1]
        return [name, *model, "--data", data]

    def read(self, data, reading, *flags, expected=None):
        found, texts = self.words_of(data, *flags)
        self.assertIn(reading, found)
        self.assertEqual(texts, expected or EXPECTED)

    def refusal(self, data, *says, flags=(), expect=FAILED):
        error = self.refused(
            *self.command("train", data), "--show-examples", 2, *flags, expect=expect, says=says
        ).stderr
        return [advice.split() for advice in re.findall(r"--label-field [\w:-]*[\w]", error)]

    def test_an_index_before_the_word(self):
        for separator, name in (("\t", "tabs"), (" ", "blanks")):
            data = self.file(lambda i, w, t, p: separator.join((str(i), w, t)) + "\n")
            self.read(data, f"words in column 2, tags in column 3 of 3 between {name}; scheme IOB2")
            data = self.file(lambda i, w, t, p: separator.join((str(i - 1), w, p, t)) + "\n")
            self.read(data, f"words in column 2, tags in column 4 of 4 between {name}; scheme IOB2")
        count = iter(range(1, 1000))
        data = self.file(lambda i, w, t, p: f"{next(count)} {w} {t}\n")
        self.read(data, "words in column 2, tags in column 3 of 3")
        # A number that does not count is not an index.
        data = self.file(lambda i, w, t, p: f"{7 * i} {w} {t}\n")
        self.refusal(
            data, "column 1, in which words are expected, has numbers alone", "[1] 7 [2] Ada [3] B-PER"
        )
        self.read(data, "words in column 2", "--text-field", 2)
        self.read(data, "words in column 2", "--text-field", 2, "--label-field", -1)

    def test_germeval(self):
        line = lambda i, w, t, p: f"{i}\t{w}\t{t}\tO\n"
        data = self.file(line, "#\texample.org [2005-02-26]\n")
        reading = "GermEval 2014: words in column 2, tags in column 3 of 4 between tabs"
        reading += "; column 4 has the inner tags"
        self.read(data, reading + "; 20 comments are left out; scheme IOB2")
        swapped = self.file(lambda i, w, t, p: f"{i}\t{w}\tO\t{t}\n", "#\tsource\n")
        self.read(swapped, "tags in column 4", "--label-field", 4)
        # Chunks and entities after an index are not those of GermEval.
        data = self.file(lambda i, w, t, p: f"{i}\t{w}\tB-XP\t{t}\n")
        advice = self.refusal(data, "columns 3 and 4 look like tags", "[1] 1 [2] Ada [3] B-XP [4] B-PER")
        self.assertEqual(advice, [["--label-field", "3"], ["--label-field", "4"]])
        self.read(data, "tags in column 4 of 4", *advice[1])

    def test_tags_before_words(self):
        self.read(self.file(lambda i, w, t, p: f"{t}\t{w}\n"), "words in column 2, tags in column 1 of 2")
        self.read(self.file(lambda i, w, t, p: f"{i} {t} {w}\n"), "words in column 3, tags in column 2 of 3")
        data = self.file(lambda i, w, t, p: f"{t} {w} {p}\n")
        self.refusal(data, "it is not certain which column has the words", "--text-field N (1 is the first")
        self.read(data, "words in column 2, tags in column 1", "--text-field", 2)

    def test_comments(self):
        line = lambda i, w, t, p: f"{w} _ _ {t}\n"
        data = self.file(line, "# id 00-NUMBER\tdomain=en\n")
        self.read(data, "words in column 1, tags in column 4 of 4 between blanks; 20 comments are left out")
        self.read(self.file(line, "# sent_id = NUMBER\n"), "20 comments are left out")
        self.read(self.file(line, "# newdoc\n# text = any words at all\n"), "40 comments are left out")

    def test_words_with_a_sign(self):
        data = self.write("words.conll", "#ship B-PER\nsails O\n# O\n\n# B-LOC\nis O\n\n#sea I-LOC\n\n" * 5)
        expected = [("#ship sails #", ["B-PER", "O", "O"]), ("# is", ["B-LOC", "O"])]
        reading, texts = self.words_of(data)
        self.assertEqual(texts, expected)
        self.assertNotIn("comments", reading)
        data = self.write(
            "words.conll", "# id 3\n#nlp HT\nis VB\n#ai HT\n\n#one HT\nis VB\n\n".replace("# id 3\n", "") * 5
        )
        self.assertEqual(self.words_of(data)[1][0], ("#nlp is #ai", ["HT", "VB", "HT"]))
        # With other tags, a line may be either.
        data = self.write("words.conll", "#begin document\nship NN\nis VB\n\n" * 5)
        self.refusal(data, 'words.conll, line 1: "#begin document" is a comment, or a word')
        data = self.write("words.conll", "# begin = document\nship NN\nis VB\n\n" * 5)
        self.assertEqual(self.words_of(data)[1][0], ("ship is", ["NN", "VB"]))

    def conllu(self, misc="_", name="words.conllu"):
        line = lambda i, w, t, p: (
            ("1-2\tAdaLove\t_\t_\t_\t_\t_\t_\t_\t_\n" if i == 1 else "")
            + f"{i}\t{w}\t{w.lower()}\t{p}\tX{p}\tNumber={'Sing' if i > 1 else 'Plur'}\t{i - 1}"
            + f"\tdep{i % 3}\t_\t"
            + misc.replace("TAG", t)
            + "\n"
            + ("2.1\tempty\t_\t_\t_\t_\t_\t_\t_\t_\n" if i == 2 else "")
        )
        return self.file(line, "# sent_id = NUMBER\n# text = a text\n", name)

    def test_conllu(self):
        data = self.conllu("SpaceAfter=No|name=TAG")
        error = [
            "CoNLL-U has several columns of tags",
            "[2] Ada",
            "--label-field UPOS or --label-field XPOS or --label-field FEATS or --label-field DEPREL",
        ]
        advice = self.refusal(data, *error)
        self.assertEqual(len(advice), 5)
        self.assertEqual(advice[-1], ["--label-field", "MISC:name"])
        reading = "CoNLL-U: words in column 2 (FORM), tags in column 4 (UPOS) of 10 between tabs"
        self.read(data, reading, *advice[0], expected=AS_POS)
        rest = "; 40 comments are left out; 40 ranges and empty nodes are left out; scheme IOB2"
        self.read(data, "tags in column 10 (MISC), entry name of 10 between tabs" + rest, *advice[-1])
        expected = [(text, ["X" + tag for tag in tags]) for text, tags in AS_POS]
        self.read(data, "(XPOS)", *advice[1], expected=expected)
        self.read(
            data,
            "(FEATS)",
            *advice[2],
            expected=[(t, ["Number=Plur"] + ["Number=Sing"] * 4) for t, _ in AS_POS],
        )
        self.read(
            data,
            "entry Number",
            "--label-field",
            "FEATS:Number",
            expected=[(t, ["Plur"] + ["Sing"] * 4) for t, _ in AS_POS],
        )
        self.read(
            data,
            "(DEPREL)",
            *advice[3],
            expected=[(t, ["dep1", "dep2", "dep0", "dep1", "dep2"]) for t, _ in AS_POS],
        )
        self.read(data, "(UPOS)", "--label-field", 4, expected=AS_POS)
        lemmas = [(text.lower(), tags) for text, tags in AS_POS]
        self.read(data, "(LEMMA)", "--label-field", "upos", "--text-field", "LEMMA", expected=lemmas)
        self.assertIn(["--label-field", "UPOS"], self.refusal(self.conllu()))

    def test_an_entry_that_is_missing_is_outside(self):
        data = self.conllu("name=TAG", "words.conllu")
        content = self.write(
            "words.conllu", self.folder.joinpath("words.conllu").read_text().replace("name=O", "_")
        )
        self.assertEqual(content, data)
        self.read(data, "entry name", "--label-field", "MISC:name")
        self.refusal(
            data,
            "--label-field MISC:nam: ",
            "has no such column: expected a number from 1 to 10, or -1 for the last one, or one of ID, FORM",
            flags=["--label-field", "MISC:nam"],
            expect=USAGE,
        )

    def test_columns_that_a_file_names(self):
        data = self.file(
            lambda i, w, t, p: f"{i}\t{w}\t{p}\t{t}\n", "# global.columns = ID FORM UPOS UD:NER\n# a = b\n"
        )
        self.assertEqual(
            self.refusal(data, "CoNLL-U Plus has several columns"),
            [["--label-field", "UPOS"], ["--label-field", "UD:NER"]],
        )
        self.read(data, "CoNLL-U Plus: words in column 2 (FORM)", "--label-field", "UD:NER")
        self.read(data, "(UPOS)", "--label-field", "UPOS", expected=AS_POS)

    def test_words_with_blanks(self):
        text = "mary\tNNP\tB-PER\nnew york\tNNP\tB-LOC\n.\t.\tO\n\n"
        reading, texts = self.words_of(self.write("words.conll", text * 5))
        self.assertEqual(texts[0], ("mary new york .", ["B-PER", "B-LOC", "O"]))
        self.assertIn("words in column 1, tags in column 3 of 3 between tabs", reading)
        text = text.replace("NNP\t", "").replace(".\t.", ".")
        self.assertEqual(self.words_of(self.write("words.conll", text * 5))[1], texts)

    def test_tabs_and_blanks(self):
        data = self.file(lambda i, w, t, p: f"{w}\t{p} {t}\n" if i % 2 else f"{w} {p}\t{t}\n")
        self.read(data, "words in column 1, tags in column 3 of 3 between blanks")
        self.read(self.file(lambda i, w, t, p: f"{w}\t\t{t} \r\n"), "tags in column 2 of 2 between blanks")
        data = self.file(lambda i, w, t, p: f"{w} {p}\t{t}\n")
        self.refusal(
            data, "found both in each line, 2 columns by tabs and 3 by blanks", f"tr ' ' '\\t' <{data}"
        )
        with open(data, encoding="utf-8") as file:
            self.read(self.write("tabs.conll", file.read().replace(" ", "\t")), "tags in column 3 of 3")

    def test_conll_2003(self):
        data = self.file(lambda i, w, t, p: f"{w} {p} I-NP {t}\n", "-DOCSTART- -X- -X- O\n\n")
        self.read(data, "CoNLL-2003: words in column 1, tags in column 4 of 4 between blanks; scheme IOB2")
        data = self.file(lambda i, w, t, p: f"{w} B-NP {p} {t}\n")
        advice = self.refusal(data, "columns 2 and 4 look like tags")
        self.read(data, "tags in column 4 of 4", *advice[1])
        self.read(data, "tags in column 3 of 4", "--label-field", 3, expected=AS_POS)

    def test_other_tags(self):
        self.read(
            self.file(lambda i, w, t, p: f"{w} {p}\n"),
            "evaluations count words, not entities",
            expected=AS_POS,
        )
        data = self.file(lambda i, w, t, p: f"{w} {w[0]} {p}\n")
        advice = self.refusal(data, "it is not certain which column has the tags", "[1] Ada [2] A [3] PROPN")
        self.assertEqual(advice, [["--label-field", "2"], ["--label-field", "3"]])
        self.read(data, "tags in column 3", *advice[1], expected=AS_POS)
        self.read(self.file(lambda i, w, t, p: f"{w} _ {p}\n"), "tags in column 3", expected=AS_POS)
        data = self.file(lambda i, w, t, p: f"{p} {w}\n")
        self.refusal(data, "column 2 would have the tags, but has 10 different values, and column 1 has 5")
        self.read(data, "words in column 2", "--text-field", 2, "--label-field", 1, expected=AS_POS)

    def test_a_number_of_columns_that_changes(self):
        data = self.write("words.conll", "Ada B-PER\nlived O\nin the O\n")
        self.refusal(data, 'line 3: expected 2 columns between blanks, as in line 1, found 3: "in the O"')
        data = self.write("words.conll", "Ada\tB-PER\nlived\tx\tO\n")
        self.refusal(data, "line 2: expected 2 columns between tabs, as in line 1, found 3")

    def test_flags_that_do_not_fit(self):
        data = self.file(lambda i, w, t, p: f"{w} {t}\n")
        for flag, value in (("--label-field", "ner"), ("--label-field", "3"), ("--text-field", "-3")):
            self.refusal(
                data,
                f"{flag} {value}: ",
                "expected a number from 1 to 2, or -1 for the last one",
                flags=[flag, value],
                expect=USAGE,
            )
        self.refusal(
            data, "column 2 would have both", flags=["--text-field", "2", "--label-field", "2"], expect=USAGE
        )

    def test_schemes(self):
        def scheme(*lines):
            data = self.write(
                "words.conll", ("\n".join(f"word{i} {tag}" for i, tag in enumerate(lines)) + "\n\n") * 5
            )
            return self.words_of(data, count=1)

        self.assertIn("scheme IOB1", scheme("I-PER", "I-PER", "B-PER", "O")[0])
        self.assertIn("scheme BIOES", scheme("B-PER", "I-PER", "E-PER", "O", "S-LOC")[0])
        self.assertIn("scheme BILOU", scheme("B-PER", "I-PER", "L-PER", "O", "U-LOC")[0])
        reading, texts = scheme("B-PER", "0", "0")
        self.assertIn("scheme IOB2, with 0 for O", reading)
        self.assertEqual(texts[0][1], ["B-PER", "O", "O"])
        self.assertIn('the tag "PER-B" is not O, and not B- or I-', scheme("PER-B", "O")[0])

    def train(self, data, *flags):
        return self.run_command(
            *self.command("train", data), "--steps", 1, "--eval-batches", 0, "--out", self.path("run"), *flags
        ).stdout

    def classified(self, data, *flags):
        lines = self.run_command(
            "classify", "--model", self.path("run"), "--data", data, "--json", *flags
        ).stdout.splitlines()
        return [" ".join(word["word"] for word in json.loads(line)) for line in lines]

    def evaluated(self, data, *flags, json_flag=()):
        return self.run_command(
            "eval", "--model", self.path("run"), "--data", data, "--all", *flags, *json_flag
        ).stdout

    def test_a_run_keeps_its_columns(self):
        data = self.conllu("name=TAG")
        output = self.train(data, "--label-field", "UPOS")
        self.assertIn("words       CoNLL-U: words in column 2 (FORM), tags in column 4 (UPOS) of 10", output)
        self.assertEqual(self.classified(data)[:2], [text for text, _ in EXPECTED])
        text = self.evaluated(data)
        self.assertIn('evaluations count words, not entities: the tag "ADP" is not O', text)
        evaluated = json.loads(self.evaluated(data, json_flag=["--json"]))
        self.assertEqual(evaluated["words"], 100)
        self.assertIn("f1_macro", evaluated)
        # Another format is read by its own columns.
        self.assertEqual(
            json.loads(self.evaluated(self.file(lambda i, w, t, p: f"{w} {p}\n"), json_flag=["--json"]))[
                "words"
            ],
            100,
        )
        self.assertEqual(
            self.classified(self.write("alone.conll", "Ada\nLovelace\n\nthe\n")), ["Ada Lovelace", "the"]
        )

    def test_entities_are_counted_in_every_scheme(self):
        self.train(self.file(lambda i, w, t, p: f"{w} {t.replace('B-', 'U-') if t != 'O' else '0'}\n"))
        evaluated = json.loads(self.evaluated(self.path("words.conll"), json_flag=["--json"]))
        self.assertEqual(set(evaluated["by_type"]) >= {"PER", "LOC", "ORG"}, True)
        self.assertIn("entities", evaluated)
        self.assertNotIn("f1_macro", evaluated)
