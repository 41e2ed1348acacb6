"""Answers in contexts: `train --task spans`, `eval` and `classify` on SQuAD's questions."""

import json
import random

from support import FAILED, USAGE, CommandTest

from data.encoder_test import BERT, DISTILBERT, MODERNBERT

COLOURS = ["red", "green", "blue"]
THINGS = ["box", "ball", "ship"]
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = [*COLOURS, *THINGS, "the", "is", "which", "colour", "here", "##s", "?", ".", ",", "fine"]


def sentence(thing, colour):
    return f"The {thing} is {colour}."


class QuestionsTest(CommandTest):
    def model_folder(self, config=BERT, name="bert"):
        self.write(f"{name}/vocab.txt", "".join(word + "\n" for word in SPECIAL + WORDS))
        self.write(f"{name}/config.json", json.dumps(config))
        return self.path(name)

    def articles(self, count, impossible=False, padding=0, seed=1, sentences=2):
        draw = random.Random(seed)
        articles = []
        for number in range(count):
            things = draw.sample(THINGS, sentences)
            colours = [draw.choice(COLOURS) for _ in things]
            parts = [sentence(*pair) for pair in zip(things, colours)]
            context = " ".join(["Fine here."] * (padding if number % 3 == 0 else 0) + parts)
            questions = [
                {
                    "id": f"{number}-{thing}",
                    "question": f"Which colour is the {thing}?",
                    "answers": [
                        {
                            "text": colour,
                            "answer_start": context.index(sentence(thing, colour)) + 8 + len(thing),
                        }
                    ],
                }
                for thing, colour in zip(things, colours)
            ]
            if impossible:
                (absent,) = set(THINGS) - set(things)
                questions.append(
                    {
                        "id": f"{number}-{absent}",
                        "question": f"Which colour is the {absent}?",
                        "answers": [],
                        "is_impossible": True,
                        "plausible_answers": [{"text": colours[0], "answer_start": 0}],
                    }
                )
            articles.append({"title": str(number), "paragraphs": [{"context": context, "qas": questions}]})
        return articles

    def squad(self, articles, name="squad.json", **more):
        return self.write(name, json.dumps({"version": "1.1", "data": articles, **more}))

    def rows(self, articles, name="rows.jsonl"):
        """As Hugging Face's datasets write the rows of SQuAD."""
        rows = []
        for article in articles:
            for paragraph in article["paragraphs"]:
                for question in paragraph["qas"]:
                    answers = question["answers"]
                    rows.append(
                        {
                            "id": question["id"],
                            "title": article["title"],
                            "context": paragraph["context"],
                            "question": question["question"],
                            "answers": {
                                "text": [answer["text"] for answer in answers],
                                "answer_start": [answer["answer_start"] for answer in answers],
                            },
                        }
                    )
        return self.write(name, "".join(json.dumps(row) + "\n" for row in rows))

    def train(self, *words, out="run", **more):
        return self.run_command(
            "train",
            *words,
            "--batch",
            8,
            "--vram",
            "32MiB",
            "--threads",
            2,
            "--out",
            self.path(out),
            **more,
        )

    def evaluated(self, *words):
        return json.loads(self.run_command("eval", *words, "--vram", "32MiB", "--json").stdout)

    def answers(self, *words):
        lines = self.run_command("classify", *words).stdout.splitlines()
        return {one["id"]: one for one in map(json.loads, lines)}

    def test_learns_answers_and_finds_them(self):
        model = self.model_folder({**BERT, "hidden_size": 64})
        data = self.squad(self.articles(200, sentences=1))
        output = self.train(
            "--model", model, "--data", data, "--task", "spans", "--seq", 32, "--epochs", 20, "--lr", 2e-3
        ).stdout
        self.assertIn("200 texts with a question and its context", output)
        last = [json.loads(line) for line in (self.folder / "run/metrics.jsonl").read_text().splitlines()][-1]
        self.assertGreater(last["eval_exact"], 90)
        self.assertGreaterEqual(last["eval_f1"], last["eval_exact"])
        config = json.loads((self.folder / "run/config.json").read_text())
        self.assertEqual(config["architectures"], ["BertForQuestionAnswering"])
        self.assertIn("question-answering", (self.folder / "run/README.md").read_text())
        run = self.path("run")
        # The held-out part is that of the run. It holds whole questions.
        held_out = self.evaluated("--model", run, "--data", data)
        self.assertAlmostEqual(held_out["eval_loss"], last["eval_loss"], places=6)
        self.assertEqual((held_out["exact"], held_out["part"]), (last["eval_exact"], "held_out"))
        # Rows have the same questions as SQuAD's own file.
        articles = self.articles(60, seed=9, sentences=1)
        of_articles = self.evaluated("--model", run, "--data", self.squad(articles, "other.json"))
        of_rows = self.evaluated("--model", run, "--data", self.rows(articles))
        for key in ("exact", "f1", "eval_loss", "questions"):
            self.assertEqual(of_articles[key], of_rows[key], key)
        self.assertEqual(of_rows["questions"], 60)
        found = self.answers("--model", run, "--data", self.rows(articles))
        right = 0
        for article in articles:
            context = article["paragraphs"][0]["context"]
            for question in article["paragraphs"][0]["qas"]:
                answer = found[question["id"]]
                if answer["answer"]:
                    self.assertEqual(context[answer["start"] : answer["end"]], answer["answer"])
                right += answer["answer"] == question["answers"][0]["text"]
        self.assertAlmostEqual(100 * right / 60, of_rows["exact"])
        one = self.answers(
            "--model",
            run,
            "--question",
            "Which colour is the box?",
            "--text",
            "\u00c4 ball. The box is green.",
        )["1"]
        self.assertEqual((one["answer"], one["start"], one["end"]), ("green", 19, 24))
        self.assertTrue(0 < one["score"] <= 1 and 0 <= one["null_score"] < 1)

    def test_bits_do_not_depend_on_the_budget_and_runs_resume(self):
        model = self.model_folder()
        data = self.squad(self.articles(40, impossible=True, padding=12))
        words = ["--model", model, "--data", data, "--task", "spans", "--seq", 32, "--doc-stride", 4]
        words += [
            "--precision",
            "bf16",
            "--states",
            8,
            "--eval-batches",
            1,
            "--schedule",
            "constant",
            "--warmup",
            0,
        ]
        self.train(*words, "--steps", 6, out="whole")
        self.train(*words, "--steps", 6, "--micro-batch", 1, out="cut")
        self.train(*words, "--steps", 3, out="half")
        self.run_command("train", "--resume", self.path("half"), "--steps", 6, "--threads", 1)
        weights = (self.folder / "whole/model.safetensors").read_bytes()
        for other in ("cut", "half"):
            self.assertEqual((self.folder / other / "model.safetensors").read_bytes(), weights, other)

    def test_contexts_are_cut_with_a_stride(self):
        model = self.model_folder()
        articles = self.articles(12, padding=20)
        data = self.squad(articles)
        flags = ["--model", model, "--data", data, "--task", "spans", "--seq", 32, "--steps", 1]
        output = self.train(*flags, "--eval-batches", 0).stdout
        self.assertRegex(output, r"texts with a question and its context; 8 contexts are cut\n")
        # Cuts without an overlap lose an answer of several tokens that they divide.
        context = " ".join(["fine"] * 22 + COLOURS[:2] + ["fine"] * 10)
        answer = [{"text": "red green", "answer_start": context.index("red")}]
        lost = self.squad(
            [
                {
                    "paragraphs": [
                        {
                            "context": context,
                            "qas": [{"id": "1", "question": "Which colour here?", "answers": answer}],
                        }
                    ]
                }
            ]
            + articles[1:3],
            "lost.json",
        )
        # The question takes 4 + 3 of 30 tokens, so that the first text ends after "red".
        for stride, says in ((0, "1 answers are whole in no text"), (4, "1 contexts are cut\n")):
            output = self.train(
                "--model",
                model,
                "--data",
                lost,
                "--task",
                "spans",
                "--seq",
                30,
                "--doc-stride",
                stride,
                "--steps",
                1,
                "--eval-batches",
                0,
                out=f"stride{stride}",
            ).stdout
            self.assertIn(says, output)

    def test_the_same_questions_are_held_out_again(self):
        """However contexts are cut, and whatever else the data holds."""
        model = self.model_folder()
        articles = self.articles(20, padding=14)
        data = self.squad(articles)
        flags = ["--model", model, "--data", data, "--task", "spans", "--seq", 32, "--steps", 2]
        self.train(*flags, "--eval-batches", 50)
        held_out = self.read("run", "held-out.txt")
        count = len(held_out.splitlines())
        self.assertTrue(2 <= count <= 8)
        others = self.articles(10, seed=2)
        for article in others:
            for question in article["paragraphs"][0]["qas"]:
                question["id"] += " of others"
        more = self.squad(articles[::-1] + others, "more.json")
        for words in ([], ["--seq", 48], ["--doc-stride", 3], ["--data", more, "--held-out"]):
            found = self.evaluated(
                "--model", self.path("run"), *([] if more in words else ["--data", data]), *words
            )
            self.assertEqual(found["questions"], count, words)
        for steps, words in ((3, ["--doc-stride", 3]), (4, ["--data", more])):
            output = self.run_command("train", "--resume", self.path("run"), "--steps", steps, *words).stderr
            self.assertIn(f"has {count} of the {count} questions that the run held out", output)
            self.assertEqual(self.read("run", "held-out.txt"), held_out)

    def test_questions_without_an_answer(self):
        model = self.model_folder()
        articles = self.articles(60, impossible=True)
        data = self.squad(articles)
        self.train("--model", model, "--data", data, "--seq", 32, "--epochs", 3, "--lr", 3e-3)
        found = self.evaluated("--model", self.path("run"), "--data", data, "--all")
        for key in ("has_answer_exact", "has_answer_f1", "no_answer_exact", "no_answer_f1"):
            self.assertIn(key, found)
        self.assertEqual(found["questions"], 180)
        self.assertAlmostEqual(found["exact"], (2 * found["has_answer_exact"] + found["no_answer_exact"]) / 3)
        # The threshold decides between an answer and none.
        for threshold, exact in ((-100, 100), (100, 0)):
            one = self.evaluated(
                "--model", self.path("run"), "--data", data, "--all", "--null-threshold", threshold
            )
            self.assertEqual(one["no_answer_exact"], exact)
            if exact == 100:
                self.assertEqual(one["has_answer_exact"], 0)
        # Without questions of a kind there are no figures of them.
        for article in articles:
            questions = article["paragraphs"][0]["qas"]
            article["paragraphs"][0]["qas"] = [one for one in questions if one["answers"] == []]
        none = self.squad(articles, "none.json")
        found = self.evaluated("--model", self.path("run"), "--data", none, "--all")
        self.assertIn("no_answer_f1", found)
        self.assertNotIn("has_answer_exact", found)
        self.assertNotIn("has_answer_f1", found)
        words = ["eval", "--model", self.path("run"), "--vram", "32MiB", "--all", "--data", none]
        self.assertNotIn("with an answer", self.run_command(*words).stdout)

    def test_other_families_have_the_head(self):
        data = self.rows(self.articles(20))
        for name, config in (("distilbert", DISTILBERT), ("modernbert", MODERNBERT)):
            model = self.model_folder(config, name)
            self.train(
                "--model",
                model,
                "--data",
                data,
                "--seq",
                32,
                "--steps",
                2,
                "--eval-batches",
                1,
                out=name + "-run",
            )
            written = json.loads((self.folder / f"{name}-run/config.json").read_text())
            self.assertTrue(written["architectures"][0].endswith("ForQuestionAnswering"))
            self.run_command("classify", "--model", self.path(name + "-run"), "--data", data)

    def test_articles_and_paragraphs_alone(self):
        model = self.model_folder()
        articles = self.articles(10)
        paragraphs = [paragraph for article in articles for paragraph in article["paragraphs"]]
        files = {
            "squad.json": {"data": articles},
            "articles.json": articles,
            "article.json": {"title": "one", "paragraphs": paragraphs},
            "paragraphs.json": paragraphs,
        }
        weights = []
        for name, content in files.items():
            for indent in (None, 1):
                data = self.write(name, json.dumps(content, indent=indent))
                words = ["--model", model, "--data", data, "--seq", 32, "--steps", 2, "--eval-batches", 1]
                output = self.train(*words, "--overwrite").stdout
                self.assertIn("20 texts with a question and its context", output)
                weights.append(self.weights("run"))
        self.assertEqual(len(set(weights)), 1)

    def test_a_question_of_another_form_is_named(self):
        model = self.model_folder()
        words = ["train", "--model", model, "--task", "spans", "--seq", 32, "--batch", 2, "--vram", "32MiB"]
        words += ["--steps", 1, "--eval-batches", 0, "--out", self.path("out"), "--data"]
        begins = (
            'answers[0].answer_start: expected a whole number: where in the context its answer "red" begins'
        )
        of_answer = (
            ("answer_start", "4", f'{begins}, found "4"'),
            ("answer_start", 4.5, f"{begins}, found 4.5"),
            ("answer_start", None, f"{begins}, found none"),
            ("answer_start", True, f"{begins}, found true"),
            ("text", 4, "answers[0].text: expected a string"),
        )
        for key, value, says in of_answer:
            articles = self.articles(3)
            question = articles[1]["paragraphs"][0]["qas"][0]
            question["answers"][0] = {"text": "red", "answer_start": 4, key: value}
            place = f'squad.json, article 2, question "{question["id"]}": '
            self.refused(*words, self.squad(articles), says=[place + says])
        rows = self.rows(self.articles(3))
        damaged = (
            (self.folder / "rows.jsonl").read_text().replace('"answer_start": [', '"answer_start": ["x", ')
        )
        damaged = damaged.replace('"text": [', '"text": ["red", ')
        self.refused(
            *words,
            self.write("rows.jsonl", damaged),
            says=[f'{rows}, line 1, question "', ": answers.answer_start[0]: expected a whole number", '"x"'],
        )
        articles = self.articles(3)
        articles[2]["paragraphs"][0]["qas"][1]["question"] = 7
        self.refused(
            *words, self.squad(articles), says=["article 3, question", '": question: expected a string']
        )

    def test_bad_questions_are_named_and_left_out_if_asked(self):
        model = self.model_folder()
        words = ["train", "--model", model, "--task", "spans", "--seq", 32, "--batch", 2, "--vram", "32MiB"]
        words += ["--steps", 1, "--eval-batches", 0, "--out", self.path("out"), "--data"]

        def with_answer(text, start, **more):
            articles = self.articles(6)
            questions = articles[2]["paragraphs"][0]["qas"]
            questions[0].update(answers=[{"text": text, "answer_start": start}], **more)
            return self.squad(articles, "bad.json")

        for says, *answer in (
            ("is outside of the context of", "red", 500),
            ("at character -1 is outside of the context", "red", -1),
            ('"Red" is not at character 0 of the context, which has "The" there', "Red", 0),
            ("an answer is empty", "", 0),
            ("is_impossible is true, and it has 1 answers", "The", 0, True),
        ):
            more = {"is_impossible": True} if answer[2:] else {}
            data = with_answer(*answer[:2], **more)
            self.refused(*words, data, expect=FAILED, says=["bad.json, article 3, question", says])
            self.assertFalse((self.folder / "out").exists())
        output = self.run_command(*words, data, "--skip-bad-questions").stdout
        self.assertIn("11 texts with a question and its context; 1 more left out: 1 bad", output)
        articles = self.articles(6)
        for article in articles[1:4]:
            article["paragraphs"][0]["qas"][0]["answers"][0]["answer_start"] = 0
        self.refused(
            *words, self.squad(articles, "three.json"), says=["article 2,", "(and 2 more such questions)"]
        )
        # Nothing to ask, or nothing to read.
        for field in ("question", "context"):
            rows = [
                {"question": "What?", "context": "The red fox."},
                {"question": "Who?", "context": "A fox."},
                {"question": "Who is red?", "context": "The fox."},
            ]
            for row in rows:
                row["answers"] = {"text": [], "answer_start": []}
            rows[1][field] = " "
            data = self.write("rows.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
            self.refused(*words, data, expect=FAILED, says=['line 2, question "2"', f'"{field}" is empty'])
            output = self.run_command(*words, data, "--skip-bad-questions", "--overwrite").stdout
            self.assertIn("2 texts with a question and its context; 1 more left out: 1 bad", output)
        # A question that fills a sample.
        articles = self.articles(3)
        articles[1]["paragraphs"][0]["qas"][0]["question"] = "which " * 40
        self.refused(
            *words,
            self.squad(articles, "long.json"),
            says=["article 2,", "the question has 43 tokens with special tokens, which leave no room"],
        )
        # Damaged files.
        twice = self.articles(2)
        twice[1]["paragraphs"][0]["qas"][0]["id"] = twice[0]["paragraphs"][0]["qas"][0]["id"]
        missing = self.articles(2)
        del missing[1]["paragraphs"][0]["qas"][0]["answers"]
        null = self.articles(2)
        null[1]["paragraphs"][0]["qas"][0]["answers"] = None
        no_answers = '"answers" is missing or null'
        for articles, says in ((twice, "the id is there twice"), (missing, no_answers), (null, no_answers)):
            self.refused(*words, self.squad(articles, "damaged.json"), says=["damaged.json, article 2", says])
        self.refused(
            *words,
            self.write("text.csv", "text,label\na,b\n"),
            expect=USAGE,
            says=["--task spans: expected SQuAD's JSON"],
        )

    def test_models_and_data_must_fit(self):
        data = self.squad(self.articles(4))
        words = ["--batch", 2, "--vram", "32MiB", "--steps", 1, "--out", self.path("out")]
        self.refused("train", "--model", "nano", "--data", data, *words, says=["GPT2ForQuestionAnswering"])
        labels = self.write("labels.csv", "text,label\n" + "".join(f"box {i},{i % 2}\n" for i in range(8)))
        model = self.model_folder()
        self.refused(
            "train",
            "--model",
            model,
            "--data",
            data,
            "--label-smoothing",
            0.1,
            "--seq",
            32,
            *words,
            expect=USAGE,
            says=["--label-smoothing 0.1: is not supported for --task spans"],
        )
        self.refused(
            "train",
            "--model",
            model,
            "--data",
            labels,
            "--doc-stride",
            4,
            *words,
            expect=USAGE,
            says=["are for questions (--task spans)"],
        )
        # A model with labels classifies texts.
        out = self.path("labels")
        self.run_command("train", "--model", model, "--data", labels, "--seq", 32, *words[:-1], out)
        rows = self.rows(self.articles(4))
        for asked in (data, rows):
            self.refused(
                "classify",
                "--model",
                out,
                "--data",
                asked,
                says=["has questions about contexts", "labels does not find answers"],
            )
        texts = self.run_command(
            "classify", "--model", out, "--data", rows, "--text-field", "question"
        ).stdout
        self.assertEqual(len(texts.splitlines()), 8)
