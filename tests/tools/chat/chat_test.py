"""Conversations: a model's chat template gives the text that Jinja2 gives, and `train`, `eval` and `generate`
with it."""

import gzip
import itertools
import json
import os
import pathlib
import re
import subprocess
import unittest

from support import GOLDEN, USAGE, CommandTest
from tokenizer import tokenizer_test  # if its class were imported, its tests would run here too

GOLDENS = json.loads((GOLDEN / "chat_templates.json").read_text(encoding="utf-8"))
VALUES = GOLDEN / "jinja_values.jsonl.gz"
RENDER = os.environ.get("RENDER_CHAT", "render_chat")
ENCODE_TEXTS = os.environ.get("ENCODE_TEXTS", "encode_texts")
TURNS = (
    "{% for m in messages %}<{{ m.role[0] }}>{{ m.content }}</>{% endfor %}"
    "{% if add_generation_prompt %}<a>{% endif %}"
)
COLOURS = {"sky": "blue", "grass": "green", "snow": "white", "coal": "black", "blood": "red", "sun": "yellow"}


def user(text):
    return {"role": "user", "content": text}


def assistant(text, **more):
    return {"role": "assistant", "content": text, **more}


class ChatTemplateTest(CommandTest):
    def rendered(self, template, lines, tokens=None):
        folder = self.folder / "model"
        folder.mkdir(exist_ok=True)
        (folder / "tokenizer_config.json").write_text(
            json.dumps({**(tokens or {}), "chat_template": template})
        )
        text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
        done = subprocess.run(
            [RENDER, "", folder], input=text, text=True, capture_output=True, check=True, encoding="utf-8"
        )
        return [json.loads(line) for line in done.stdout.splitlines()]

    def answers_of(self, template, *messages):
        return self.rendered(template, [{"messages": list(messages)}])[0]["learned"]

    def refused(self, template, expected, **line):
        answer = self.rendered(template, [{"messages": [user("q"), assistant("a")], **line}])[0]
        self.assertIn(expected, answer.get("error", "no error"))

    def test_texts_are_the_same_as_by_jinja(self):
        for case in GOLDENS["cases"]:
            with self.subTest(case["name"]):
                lines = case["lines"]
                for number, (expected, found) in enumerate(
                    zip(
                        lines,
                        self.rendered(case["template"], [l["line"] for l in lines], GOLDENS["tokens"]),
                        strict=True,
                    )
                ):
                    if "error" in expected:
                        self.assertIn(expected["error"], found["error"], number)
                        continue
                    self.assertEqual(
                        {key: found.get(key) for key in ("text", "prompt")},
                        {key: expected[key] for key in ("text", "prompt")},
                        number,
                    )
                    if "learned" in expected:
                        self.assertEqual(found["learned"], expected["learned"], number)

    # Thousands of random templates (jinja_values.py).
    def test_values_are_the_same_as_by_jinja(self):
        with gzip.open(VALUES, "rt", encoding="utf-8") as file:
            rows = [json.loads(line) for line in file]
        lines = "".join(json.dumps(template) + "\n" for template, _ in rows)
        done = subprocess.run([RENDER], input=lines, capture_output=True, check=True, encoding="utf-8")
        refused = 0
        for (template, text), answer in zip(rows, map(json.loads, done.stdout.split("\n")[:-1]), strict=True):
            if "error" in answer and text is not None:  # refused by name
                self.assertEqual(answer["error"], "line 1: filter 'groupby' is not supported", template)
                refused += 1
            else:
                self.assertEqual(answer.get("text"), text, template)
        self.assertLess(refused, len(rows) // 100)

    def template(self, name):
        return next(case["template"] for case in GOLDENS["cases"] if case["name"] == name)

    def test_the_messages_of_the_assistant_are_found(self):
        turns, thinking, headers = self.template("turns"), self.template("thinking"), self.template("headers")
        self.assertEqual(self.answers_of(turns, user("q"), assistant("a")), ["a<|done|>\n"])
        self.assertEqual(
            self.answers_of(turns, user("same"), assistant("same"), user("same"), assistant("same")),
            ["same<|done|>\n"] * 2,
        )
        self.assertEqual(self.answers_of(headers, user("q"), assistant("  a \n")), ["a<e>"])
        # The last answer has the thoughts that its prompt asks for. Answers before the last question have
        # none.
        self.assertEqual(
            self.answers_of(thinking, user("q"), assistant("a")), ["<think>\n\n</think>\n\na</a>\n"]
        )
        self.assertEqual(
            self.answers_of(thinking, user("q"), assistant("a1"), user("q2"), assistant("a2")),
            ["a1</a>\n", "<think>\n\n</think>\n\na2</a>\n"],
        )
        self.assertEqual(
            self.answers_of(
                thinking, user("q"), assistant("<think>\nso\n</think>\n\na1"), user("q2"), assistant("a2")
            ),
            ["a1</a>\n", "<think>\n\n</think>\n\na2</a>\n"],
        )
        # A prompt that already contains the thoughts, and a template that rewrites earlier messages for every
        # question.
        ready = thinking.replace(
            "{%- if enable_thinking is defined and enable_thinking is false %}"
            "{{- '<think>\\n\\n</think>\\n\\n' }}{%- endif %}",
            "{{- '<think>\\n\\n</think>\\n\\n' }}",
        )
        self.assertNotEqual(ready, thinking)
        self.assertEqual(
            self.answers_of(ready, user("q"), assistant("<think>\nso it is\n</think>\n\na1")),
            ["so it is\n</think>\n\na1</a>\n"],
        )
        moved = (
            "{% set s = messages[0].content %}{% for m in messages[1:] %}{% if m.role == 'user' %}"
            "[{% if loop.last or loop.revindex == 2 %}{{ s }} {% endif %}{{ m.content }}]{% else %} "
            "{{ m.content }};{% endif %}{% endfor %}"
        )
        self.assertEqual(
            self.answers_of(
                moved,
                {"role": "system", "content": "red"},
                user("blue or red?"),
                assistant("red"),
                user("or blue?"),
                assistant("blue"),
            ),
            ["red;", " blue;"],
        )
        # A token at the end of the conversation, and a conversation that begins with the assistant.
        ends = TURNS + "{% if not add_generation_prompt %}[end]{% endif %}"
        self.assertEqual(
            self.answers_of(ends, user("q"), assistant("a1"), user("q2"), assistant("a2")),
            ["a1</>", "a2</>[end]"],
        )
        self.assertEqual(
            self.answers_of(turns, assistant("first"), user("q"), assistant("a")),
            ["first<|done|>\n", "a<|done|>\n"],
        )
        # An empty message has no answer. A message that the template does not write is refused.
        self.assertEqual(
            self.answers_of(
                "{% for m in messages %}{% if m.content %}<{{ m.role }}>{{ m.content }}{% endif %}"
                "{% endfor %}",
                user("q"),
                assistant(""),
                user("r"),
                assistant("s"),
            ),
            ["<assistant>s"],
        )
        self.refused(
            "{% for m in messages %}<{{ m.role }}>{{ m.content|length }}{% if add_generation_prompt %}"
            "?{% endif %}{% endfor %}",
            "line[1]: ",
            messages=[user("q"), assistant("xyz")],
        )

    CALLS = (
        "{% for m in messages %}<{{ m.role[0] }}>{% if m.role == 'assistant' and (loop.last or "
        "m.tool_calls) %}<think></think>{% endif %}{{ m.content or '' }}{% for c in m.tool_calls or [] %}"
        "[{{ c.function.name }}({{ c.function.arguments|tojson }})]{% endfor %}</>{% endfor %}"
        "{% if add_generation_prompt %}<a>{% endif %}"
    )

    def conversation(self, count):
        texts = ["a", " spaced ", "a", "two\nlines", "ä", "with an end\n", "\tx" * 9]
        return [assistant(texts[i // 2 % 7]) if i % 2 else user(f"q{i % 5}") for i in range(count)]

    def test_long_conversations(self):
        """Most messages of a long conversation are located without rendering the messages before them. Only
        the last one is always located by rendering."""
        compared, counts = 0, (18, 20, 36, 50, 64)
        for template in {case["template"]: 0 for case in GOLDENS["cases"]}:
            messages = self.conversation(78)
            whole, *begins = self.rendered(
                template,
                [{"messages": messages}, *({"messages": messages[:count]} for count in counts)],
                GOLDENS["tokens"],
            )
            if "error" in whole:
                continue
            self.assertTrue(whole["learned"])
            for count, begin in zip(counts, begins, strict=True):
                if (
                    "error" not in begin
                    and whole["text"].startswith(begin["text"])
                    and len(whole["learned"]) == 39
                ):
                    self.assertEqual(
                        whole["learned"][count // 2 - 1], begin["learned"][-1], (template, count)
                    )
                    compared += 1
        self.assertGreater(compared, 15)
        # A template may write a single message differently. That message is located by rendering.
        odd = TURNS.replace(
            "{{ m.content }}",
            "{% if loop.index == 50 %}-{% endif %}{{ m.content }}{% if loop.index == 52 %}-{% endif %}",
        )
        result = self.answers_of(odd, *self.conversation(78))
        self.assertEqual(
            (result[24][0], result[25][-4:-3], result[26][0]),
            ("-", "-", self.conversation(78)[53]["content"][0]),
        )

    def long_conversation(self, kind, count):
        """`count` messages in which the assistant calls tools, or thinks."""
        call = {"type": "function", "function": {"name": "look", "arguments": {"at": "sky"}}}
        texts = ["a", " spaced ", "two\nlines", 'a "quote"', "with an end\n"]
        messages = []
        for i in range(count):
            text = f"{texts[i % 5]}{i}"
            if kind == "calls":
                messages += [
                    user(text),
                    assistant("" if i % 3 else "I look.", tool_calls=[call]),
                    {"role": "tool", "content": text, "name": "look"},
                    assistant(text),
                ]
            elif kind == "thoughts":
                messages += [user(text), assistant(text, reasoning_content=f"thought {i}")]
            else:
                messages += [user(text), assistant(f"<think>\nthought {i}\n</think>\n\n{text}")]
        return messages[:count]

    def test_long_conversations_with_calls_and_thoughts(self):
        """Locating messages by their neighbours gives the same result as rendering."""
        compared = dict.fromkeys(("calls", "thoughts", "tags"), 0)
        for template in {case["template"]: 0 for case in GOLDENS["cases"]} | {self.CALLS: 0}:
            for kind in compared:
                messages = self.long_conversation(kind, 96)
                counts = (20, 40, 48, 60, 72)
                whole, *begins = self.rendered(
                    template,
                    [{"messages": messages}, *({"messages": messages[:count]} for count in counts)],
                    GOLDENS["tokens"],
                )
                if "error" in whole or len(whole["learned"]) != 48:
                    continue
                for count, begin in zip(counts, begins, strict=True):
                    if "error" not in begin and whole["text"].startswith(begin["text"]):
                        self.assertEqual(
                            whole["learned"][count // 2 - 1], begin["learned"][-1], (template, count)
                        )
                        compared[kind] += 1
        self.assertGreater(min(compared.values()), 4, compared)

    def test_work_of_long_conversations_with_calls_and_thoughts_is_linear(self):
        turns = (
            "{% for m in messages %}<{{ m.role }}>{% if m.reasoning_content %}"
            "<think>{{ m.reasoning_content }}</think>{% endif %}"
            "{{ m.content|tojson if m.role == 'tool' else m.content }}{% for c in m.tool_calls or [] %}"
            "{{ c.function|tojson }}{% endfor %}</>{% endfor %}{% if add_generation_prompt %}"
            "<assistant>{% endif %}"
        )
        for kind in ("calls", "thoughts", "tags"):
            short, long = self.rendered(
                turns, [{"messages": self.long_conversation(kind, count)} for count in (400, 1600)]
            )
            self.assertEqual(len(long["learned"]), 800)
            self.assertLess(long["work"], 6 * short["work"], kind)

    def test_work_to_find_messages_is_limited(self):
        """The text around every message differs, so that each one has to be rendered."""
        numbered = (
            "{% for m in messages %}<{{ m.role }}>{{ m.content }}</{{ loop.index }}>{% endfor %}"
            "{% if add_generation_prompt %}<assistant>{% endif %}"
        )
        self.assertEqual(len(self.answers_of(numbered, *self.conversation(60))), 30)
        found = self.rendered(numbered, [{"messages": self.conversation(20000)}])[0]
        self.assertIn("takes too long to find the assistant's messages among 20000 messages", found["error"])

    def test_work_of_long_conversations_is_linear(self):
        for template in (TURNS, self.template("turns"), self.template("headers")):
            short, long = self.rendered(
                template, [{"messages": self.conversation(count)} for count in (200, 800)], GOLDENS["tokens"]
            )
            self.assertEqual(len(long["learned"]), 400)
            self.assertLess(long["work"], 6 * short["work"])

    def test_calls_of_tools_are_part_of_the_answer(self):
        call = {"type": "function", "function": {"name": "look", "arguments": {"at": "sky"}}}
        messages = [
            user("q"),
            assistant("", tool_calls=[call]),
            {"role": "tool", "content": "blue"},
            assistant("It is blue."),
            user("q2"),
            assistant("a2"),
        ]
        self.assertEqual(
            self.answers_of(self.CALLS, *messages),
            ['<think></think>[look({"at": "sky"})]</>', "It is blue.</>", "<think></think>a2</>"],
        )
        text = [
            user("q"),
            assistant("I look.", tool_calls=[call]),
            {"role": "tool", "content": "blue"},
            assistant("It is blue."),
        ]
        self.assertEqual(
            self.answers_of(self.CALLS, *text)[0], '<think></think>I look.[look({"at": "sky"})]</>'
        )
        self.refused(TURNS, "line[1]: ", messages=text)  # a template that writes no calls
        self.assertIn("does not write tool calls", self.rendered(TURNS, [{"messages": text}])[0]["error"])
        # Tools may be a JSON text, as in some data sets.
        tools = "{{ tools[0].function.name }}" + TURNS
        self.assertEqual(
            self.rendered(tools, [{"messages": [user("q")], "tools": json.dumps([call])}])[0]["prompt"],
            "look<u>q</><a>",
        )

    def test_a_message_may_be_one_part(self):
        parts = (
            "{% for m in messages %}<{{ m.role[0] }}>{% if m.content is string %}{{ m.content }}"
            "{% else %}{% for p in m.content %}{{ p.text }}{% endfor %}{% endif %}{% if loop.last %}"
            "!{% endif %}{% endfor %}{% if add_generation_prompt %}<a>{% endif %}"
        )
        part = [{"type": "text", "text": "one"}]
        self.assertEqual(
            self.answers_of(parts, user("q"), assistant(part), user("q2"), assistant("two")), ["one", "two!"]
        )
        self.refused(
            parts,
            "expected one part in the content of the assistant",
            messages=[user("q"), assistant(part * 2)],
        )
        self.refused(
            "{% for m in messages %}<{{ m.role[0] }}>{% if m.content is string %}{{ m.content }}"
            "{% endif %}.{% endfor %}",
            "does not write the assistant's text",
            messages=[user("q"), assistant(part)],
        )

    def test_errors_of_a_template_are_named_with_their_line(self):
        for template, expected in [
            ("{% set ns = namespace() %}{% set ns.x = ns %}{{ ns }}", "a namespace inside of another value"),
            ("{{ 1" + "+1" * 5000 + " }}", "nested too deeply"),
            ("{{ 'abcd' * 4611686018427387904 }}", "the text is too long"),
            (
                "{% set ns = namespace(x=[]) %}{% for i in range(1000) %}{% set ns.x = [ns.x] %}{% endfor %}",
                "nested too deeply",
            ),
            (
                "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
                "it takes too long",
            ),
            ("{{ [9223372036854775807, 1]|sum }}", "too large"),
            ("{{ 1 is divisibleby(0) }}", "division by 0"),
            ("a\n{{ messages|nothing }}", "chat_template, line 2: filter 'nothing' is not supported"),
            ("{{ m.x }}", "line 1: 'm' is undefined"),
            ("\n{% if true %}", "line 2: expected {% endif %}, found the end"),
            ("{% include 'x' %}", "line 1: {% include %} is not supported"),
            ("{{ 'x", "line 1: a string has no end"),
            ("{{ 1 + 'a' }}", "line 1: expected a whole number, found a string"),
            ("{{ raise_exception('no ' ~ 1) }}", "line 1: no 1"),
            ("{{ 9223372036854775807 + 1 }}", "line 1: a whole number is too large"),
            ("{% macro m(x) %}{{ m(x) }}{% endmacro %}{{ m(1) }}", "too deeply"),
            ("{{ " + "(" * 300 + "1" + ")" * 300 + " }}", "nested too deeply"),
            ("{{ range(10000000) }}", "range is too long"),
            ("{{ 'x' * 999999999 }}", "the text is too long"),
            ("{% for a, b in [1] %}{% endfor %}", "expected a list, found a whole number"),
            ("{{ 1 // 0 }}", "division by 0"),
            ("{% set messages.x = 1 %}", "expected a namespace"),
            ("{% break %}", "outside of a loop"),
            ("{{ messages[0](1) }}", "expected a function, found a mapping"),
            ("{{ strftime_now('%d') }}", "'strftime_now' is undefined"),
        ]:
            with self.subTest(template[:40]):
                self.refused(template, expected)
        # A short template must not make gigabytes of text or run for hours.
        doubled = "{% set ns = namespace(x=[1]) %}" + "{% set ns.x = [ns.x, ns.x] %}" * 60
        for template, expected in [
            ("{{ range(100000)|join('a' * 16000000)|length }}", "the text is too long"),
            ("{{ ('a' * 10000)|replace('a', 'a' * 10000000)|length }}", "the text is too long"),
            ("{{ ('a\n' * 1000000)|indent(1000)|length }}", "too long"),
            (doubled + "{{ ns.x|string|length }}", "too large"),
            (doubled + "{{ ns.x == ns.x }}", "too large"),
            (doubled + "{{ ns.x|tojson }}", "too large"),
            (
                "{% for i in range(90000) %}{{ ('a' * 16000000)|trim|length }}{% endfor %}",
                "it takes too long",
            ),
        ]:
            with self.subTest(template[-60:]):
                self.refused(template, expected)
        # Neither must a template that goes over long values again and again, or that holds many of them.
        text, list_of = (
            "{% set x = 'a' * 16000000 %}{% set y = x ~ 'b' %}",
            "{% set x = range(100000)|list %}",
        )
        for begin, body, expected in [
            (text, "{% set z = x %}", "it takes too long"),
            (text, "{% if x == y %}{% endif %}", "it takes too long"),
            (text, "{{ x.find('b') }}", "it takes too long"),
            (text, "{% if x is eq(y) %}{% endif %}", "it takes too long"),
            (text, "{{ ['q']|map(attribute='q', default=x)|first|length }}", "it takes too long"),
            (list_of, "{% if 'q' in x %}{% endif %}", "it takes too long"),
            (list_of, "{{ x.count(7) }}", "it takes too long"),
            (list_of, "{{ x[1:]|length }}", "it takes too long"),
            (list_of, "{% for y in x %}{% break %}{% endfor %}", "it takes too long"),
            ("{% set ns = namespace(x=[]) %}", "{% set ns.x = ns.x + [i] %}", "it takes too long"),
        ]:
            with self.subTest(body):
                self.refused(begin + "{% for i in range(90000) %}" + body + "{% endfor %}", expected)
        many = {
            "messages": [user("q")],
            "chat_template_kwargs": {
                name: {f"{name if i == 0 else ''}{i}": 1 for i in range(100000)} for name in ("one", "other")
            },
        }
        same = {
            **many,
            "chat_template_kwargs": {
                "one": {f"a{i}": 1 for i in range(60000)},
                "other": {f"a{i}": 1 for i in reversed(range(60000))},
            },
        }
        for line, body, text in [(many, "{{ one == other }}", "False"), (same, "{{ one == other }}", "True")]:
            self.assertEqual(self.rendered(body, [line])[0]["prompt"], text)
        self.assertIn(
            "it takes too long",
            self.rendered("{% for i in range(90000) %}{{ one.nothing }}{% endfor %}", [many])[0]["error"],
        )
        for template, expected in [
            ("{% for c in 'a' * 16000000 %}{% endfor %}", "a list is too long"),
            ("{{ ('a,' * 8000000).split(',')|length }}", "a list is too long"),
            (
                "{{ range(100000)|map(attribute='q', default='a' * 16000000)|list|length }}",
                "a value is too large",
            ),
        ]:
            with self.subTest(template):
                self.refused(template, expected)
        self.assertEqual(
            self.rendered(
                "{{ ('üa' * 5000000)[-2] }}{{ ('aü' * 5000000)[:3] }}{{ ('ü' * 200000)|last }}"
                "{{ 'üa'|first }}{{ ('a' * 200000).count('aa') }}{{ 'abcü'[::-2] }}{{ ''|first is defined }}",
                [{"messages": [user("q")]}],
            )[0]["prompt"],
            "üaüaüü100000übFalse",
        )
        self.assertEqual(
            self.rendered(
                "{{ range(100000)|unique|list|length }} {{ [1, true, 1.0, 'A', 'a', '1', 1.5, (1,), (1.0,"
                ")]|unique|list }}",
                [{"messages": [user("q")]}],
            )[0]["prompt"],
            "100000 [1, 'A', '1', 1.5, (1,)]",
        )
        self.assertEqual(
            self.rendered(
                "{{ ('a ' * 40000).rsplit(' ')|length }} {{ ('a' * 100000)|trim('b' * 100000 ~ 'a')|"
                "length }} {{ (' a' * 40000).split()|length }}",
                [{"messages": [user("q")]}],
            )[0]["prompt"],
            "40001 0 40000",
        )
        self.assertEqual(
            self.rendered(
                "{{ 'abc'[1::9223372036854775807] }}{{ (-9223372036854775807 - 1) is divisibleby(-1) }}",
                [{"messages": [user("q")]}],
            )[0]["prompt"],
            "bTrue",
        )
        self.refused(TURNS, "at least one message, found none", messages=[])
        self.refused(TURNS, "line[0].role: expected a string", messages=[{"content": "x"}])
        self.refused(TURNS, "line[1]: the text is too long", messages=[user("q"), assistant("a" * 17000000)])
        self.assertEqual(
            self.rendered(
                [{"name": "default", "template": TURNS}, {"name": "tool_use", "template": "x"}],
                [{"messages": [user("q")]}],
            )[0]["prompt"],
            "<u>q</><a>",
        )


class ConversationsTest(CommandTest):
    model = tokenizer_test.TokenizerTest.model

    def conversations(self, rows, name="talk.jsonl"):
        return self.write(name, "".join(json.dumps(row) + "\n" for row in rows))

    def colours(self):
        pairs = list(COLOURS.items()) * 40
        return self.conversations(
            {"messages": [user(first[0]), assistant(first[1]), user(second[0]), assistant(second[1])]}
            for first, second in zip(pairs, pairs[7:] + pairs[:7])
        )

    def train_on(self, out, data, *more, model="nano", **how):
        return self.run_command(
            "train",
            "--model",
            model,
            "--data",
            data,
            "--batch",
            4,
            "--seq",
            48,
            "--vram",
            "64MiB",
            "--threads",
            2,
            "--eval-batches",
            2,
            "--document-end",
            1,
            "--out",
            self.path(out),
            *more,
            **how,
        )

    def encoded(self, texts):
        """The tokens of texts by the tokenizer.json of the folder, without special tokens around them."""
        answers = subprocess.run(
            [ENCODE_TEXTS, self.path("tokenizer.json")],
            input="".join(json.dumps({"text": text, "special": False}) + "\n" for text in texts).encode(),
            stdout=subprocess.PIPE,
            check=True,
        ).stdout
        return [json.loads(line)["tokens"] for line in answers.decode().split("\n")[:-1]]

    def test_tokens_of_long_conversations_are_those_of_their_parts(self):
        """The text before a message is not encoded again for each message. The tokens are the same as if it
        were."""
        template = self.write(
            "says.jinja",
            "{% for m in messages %}{{ m.role }} says {{ m.content }} {% endfor %}"
            "{% if add_generation_prompt %}assistant says {% endif %}",
        )
        config = {
            "model_type": "llama",
            "architectures": ["LlamaForCausalLM"],
            "vocab_size": 300000,
            "hidden_size": 8,
            "intermediate_size": 8,
            "num_hidden_layers": 1,
            "num_attention_heads": 1,
            "num_key_value_heads": 1,
            "max_position_embeddings": 8192,
            "eos_token_id": 0,
        }
        model = self.write("config.json", json.dumps(config))
        contents = ["it's", "two\nlines  here", "ä 12345 ", "", " I'll", "x" * 40, "7, 8;9", "日本 語"]
        messages, text, ends = [], "", []
        for i in range(40):
            messages += [user(f"{contents[i % 8]} {i}"), assistant(f"{contents[(i + 3) % 8]}{i}")]
            text += f"user says {messages[-2]['content']} assistant says "
            ends.append(text)
            text += f"{messages[-1]['content']} "
            ends.append(text)
        data = self.conversations([{"messages": messages}])
        for name, golden in json.loads((GOLDEN / "tokenizers.json").read_text(encoding="utf-8")).items():
            self.write("tokenizer.json", json.dumps(golden["tokenizer"]))
            tokens, *parts = self.encoded([text, *ends])
            counts = [0]
            for part in parts:
                same = (a == b for a, b in itertools.zip_longest(part, tokens))
                counts.append(len(list(itertools.takewhile(bool, same))))
            expected = [end - begin for begin, end in itertools.pairwise(counts)]
            shown = self.run_command(
                *["train", "--model", model, "--from-scratch", "--data", data, "--batch", 1, "--seq", 8192],
                *["--eval-batches", 0, "--chat-template", template, "--tokenizer"],
                *[self.path("tokenizer.json"), "--show-examples", 1],
            ).stdout
            found = [int(count.replace(",", "")) for count in re.findall(r"([\d,]+) tokens?: ", shown)]
            self.assertEqual(found, expected, name)

    def test_a_model_learns_to_answer(self):
        data, template = self.colours(), self.write("turns.jinja", TURNS)
        output = self.train_on(
            "run", data, "--chat-template", template, "--steps", 120, "--lr", "3e-3"
        ).stdout
        learned = sum(
            len(m["content"]) + len("</>")
            for line in self.read(".", "talk.jsonl").splitlines()
            for m in json.loads(line)["messages"]
            if m["role"] == "assistant"
        )
        self.assertIn(f"examples    240, of which {learned:,} tokens are learned\n", output)
        self.assertEqual(self.read("run", "chat_template.jinja"), TURNS)
        for thing, colour in COLOURS.items():  # uses the template of the run
            answer = self.run_command(
                "generate",
                "--model",
                self.path("run"),
                "--chat",
                "--prompt",
                thing,
                "--tokens",
                len(colour) + 3,
                "--temperature",
                0,
            ).stdout
            self.assertEqual(answer, f"{colour}</>\n")
        # A resumed run uses the template that it was given, and trains the same bits.
        self.train_on("whole", data, "--chat-template", template, "--schedule", "constant", "--steps", 6)
        self.train_on("parts", data, "--chat-template", template, "--schedule", "constant", "--steps", 3)
        self.run_command("train", "--resume", self.path("parts"), "--steps", 6, "--vram", "32MiB")
        self.assertEqual(self.weights("parts"), self.weights("whole"))
        pathlib.Path(template).unlink()  # the run has a copy
        self.run_command("train", "--resume", self.path("parts"), "--steps", 7)
        self.refused(
            "train",
            "--resume",
            self.path("parts"),
            "--no-chat-template",
            "--steps",
            8,
            says=["--chat-template"],
        )  # nano has no template
        evaluated = json.loads(
            self.run_command(
                "eval", "--model", self.path("whole"), "--data", data, "--eval-batches", 2, "--json"
            ).stdout
        )
        self.assertAlmostEqual(evaluated["eval_loss"], self.metrics("whole")[-1]["eval_loss"], places=6)

    def test_warns_of_a_template_without_an_end_of_turn(self):
        data, open_end = (
            self.colours(),
            self.write(
                "open.jinja",
                "{% for m in messages %}{{ m.role }}: {{ m.content }}\n"
                "{% endfor %}{% if add_generation_prompt %}assistant: {% endif %}",
            ),
        )
        result = self.train_on("open", data, "--chat-template", open_end, "--steps", 1)
        self.assertIn(
            f"stowage: warning: {open_end}: writes no end-of-turn token after an answer, "
            'but "\\n": the model does not learn where an answer ends, '
            "and `generate --chat` goes on up to --tokens\n",
            result.stderr,
        )
        self.assertEqual(result.stderr.count("no end-of-turn token"), 1)
        self.assertIn("chat_template.jinja", result.stdout.splitlines()[-1])
        result = self.train_on(
            "turns", data, "--chat-template", self.write("turns.jinja", TURNS), "--steps", 1
        )
        self.assertNotIn("end-of-turn", result.stderr)

    def test_prompts_and_completions_may_be_messages(self):
        template = self.write("turns.jinja", TURNS)
        rows = [{"prompt": [user("a"), assistant("old"), user("b")], "completion": [assistant("new")]}] * 60
        output = self.train_on(
            "run", self.conversations(rows), "--chat-template", template, "--steps", 1
        ).stdout
        self.assertIn(
            f"of which {60 * len('new</>'):,} tokens are learned", output
        )  # not the assistant's message in the prompt

    def test_conversations_may_be_those_of_sharegpt(self):
        template, names = self.write("turns.jinja", TURNS), {"user": "human", "assistant": "gpt"}
        messages = [
            [user("sky"), assistant("blue")],
            [user("sun"), assistant("yellow"), user("coal"), assistant("black")],
        ] * 30
        same = self.conversations({"messages": m} for m in messages)
        other = self.conversations(
            (
                {"conversations": [{"from": names[one["role"]], "value": one["content"]} for one in m]}
                for m in messages
            ),
            "share.jsonl",
        )
        for out, data in (("same", same), ("other", other)):
            self.train_on(out, data, "--chat-template", template, "--steps", 2)
        self.assertEqual(self.weights("same"), self.weights("other"))
        named = self.conversations(
            [
                {
                    "system": "S",
                    "conversations": [{"from": "human", "value": "a"}, {"from": "gpt", "value": "b"}],
                }
            ]
            * 60,
            "named.jsonl",
        )
        self.train_on(
            "system",
            self.conversations(
                [{"messages": [{"role": "system", "content": "S"}, user("a"), assistant("b")]}] * 60
            ),
            "--chat-template",
            template,
            "--steps",
            1,
        )
        self.train_on("named", named, "--chat-template", template, "--steps", 1)
        self.assertEqual(self.weights("named"), self.weights("system"))
        self.refused(
            "train",
            "--model",
            "nano",
            "--data",
            self.conversations([{"conversations": [{"from": "tool", "value": "x"}]}]),
            "--document-end",
            1,
            "--chat-template",
            template,
            "--steps",
            1,
            "--out",
            self.path("none"),
            says=['line 1: conversations[0].from: expected human, gpt or system, found "tool"'],
        )

    def test_the_template_of_a_models_folder_is_used(self):
        model = self.model("gpt2", next(iter(tokenizer_test.GOLDENS.values()))["tokenizer"])
        config = {"bos_token": {"content": "<|b|>"}, "chat_template": "{{ bos_token }}" + TURNS}
        pathlib.Path(model, "tokenizer_config.json").write_text(json.dumps(config))
        self.train_on("run", self.colours(), "--steps", 1, model=model)
        self.assertEqual(json.loads(self.read("run", "tokenizer_config.json")), config)
        self.run_command(
            "generate",
            "--model",
            self.path("run"),
            "--chat",
            "--system",
            "Be brief.",
            "--prompt",
            "sky",
            "--tokens",
            2,
        )

    # A model cannot end its answers with a token that its tokenizer cuts into pieces. Names of roles may be
    # cut.
    def test_tokens_of_a_template_are_whole(self):
        model, data = (
            self.model("model", tokenizer_test.GOLDENS["gpt2"]["tokenizer"]),
            self.conversations([{"messages": [user("q"), assistant("a")]}] * 40),
        )
        turns = (
            "{% for m in messages %}<|"
            + "{{ m.role }}"
            + "|>{{ m.content }}END{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
        )
        self.write("model/chat_template.jinja", turns.replace("END", "<|im_end|>"))
        says = [
            "model/chat_template.jinja: writes <|im_end|>",
            "model/tokenizer.json cuts into",
            "--chat-template",
        ]
        for words in (
            [
                "train",
                "--model",
                model,
                "--data",
                data,
                "--batch",
                4,
                "--seq",
                48,
                "--steps",
                1,
                "--document-end",
                1,
                "--out",
                self.path("run"),
            ],
            ["generate", "--model", model, "--chat", "--prompt", "q"],
        ):
            self.refused(*words, says=says)
        self.write("model/chat_template.jinja", turns.replace("END", "<|endoftext|>"))
        self.run_command(
            "generate", "--model", model, "--chat", "--prompt", "q", "--tokens", 3, "--threads", 1
        )
        self.write(
            "model/tokenizer_config.json", json.dumps({"eos_token": "<|im_end|>"})
        )  # which makes it one token
        self.write("model/chat_template.jinja", turns.replace("END", "<|im_end|>"))
        self.run_command(
            "generate", "--model", model, "--chat", "--prompt", "q", "--tokens", 3, "--threads", 1
        )

    def test_mistakes_are_named(self):
        data = self.colours()
        self.refused(
            "train",
            "--model",
            "nano",
            "--data",
            data,
            "--document-end",
            1,
            "--steps",
            1,
            "--out",
            self.path("none"),
            says=["talk.jsonl", "--chat-template"],
        )
        self.refused(
            "train",
            "--model",
            "nano",
            "--data",
            data,
            "--chat-template",
            self.path("missing"),
            "--steps",
            1,
            "--out",
            self.path("none"),
            expect=USAGE,
            says=["--chat-template", "missing"],
        )
        wrong = self.write("wrong.jinja", "{{ messages|nothing }}")
        self.refused(
            "train",
            "--model",
            "nano",
            "--data",
            data,
            "--document-end",
            1,
            "--chat-template",
            wrong,
            "--steps",
            1,
            "--out",
            self.path("none"),
            says=["line 1: messages: ", "wrong.jinja, line 1: filter 'nothing'"],
        )
        template = self.write("turns.jinja", TURNS)
        for row, expected in [
            ({"messages": [user("q")]}, "1 empty; expected completions, texts, or messages of the assistant"),
            ({"messages": "q"}, "expected an array"),
            ({"messages": [user("q")], "text": "t"}, '"messages", "text"'),
            ({"messages": [{"role": "assistant", "content": 1}]}, "line 1"),
            ({"messages": []}, "1 empty"),
        ]:
            self.refused(
                "train",
                "--model",
                "nano",
                "--data",
                self.conversations([row]),
                "--document-end",
                1,
                "--chat-template",
                template,
                "--steps",
                1,
                "--out",
                self.path("none"),
                says=[expected],
            )
        self.refused(
            "train",
            "--model",
            "nano",
            "--tokenizer",
            "ids",
            "--data",
            data,
            "--document-end",
            1,
            "--chat-template",
            template,
            "--steps",
            1,
            "--out",
            self.path("none"),
            says=["messages: is for text"],
        )
        # Invalid UTF-8 is refused before a template gets it.
        upper = self.write("upper.jinja", "{% for m in messages %}{{ m.content|upper }}{% endfor %}")
        bad = self.write(
            "bad.jsonl",
            json.dumps({"messages": [user("abcd?"), assistant("a")]}).encode().replace(b"?", b"\xff"),
        )
        self.refused(
            "train",
            "--model",
            "nano",
            "--data",
            bad,
            "--document-end",
            1,
            "--chat-template",
            upper,
            "--steps",
            1,
            "--out",
            self.path("none"),
            says=["bad.jsonl, line 1", "expected UTF-8"],
        )
        self.refused(
            "train",
            "--model",
            "nano",
            "--data",
            data,
            "--document-end",
            1,
            "--chat-template",
            self.write("broken.jinja", b"{{ 'abcd\xff'|upper }}"),
            "--steps",
            1,
            "--out",
            self.path("none"),
            says=["broken.jinja: expected UTF-8, found none at byte 8"],
        )
        self.refused(
            "generate", "--model", "nano", "--chat", "--prompt", "q", says=["--chat", "--chat-template"]
        )
        self.refused(
            "generate", "--model", "nano", "--system", "S", "--prompt", "q", expect=USAGE, says=["--chat"]
        )


if __name__ == "__main__":
    unittest.main()
