"""Makes chat_templates.json: conversations as Jinja2 writes them, set up as transformers does for chat
templates (trim_blocks, lstrip_blocks, loop controls, its tojson, raise_exception, {% generation %}).
Needs jinja2: python3 chat_templates.py > chat_templates.json"""

import json
import sys

import jinja2
import jinja2.ext
from jinja2 import nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment

BEGIN, END = "\ue000", "\ue001"  # marks around the assistant's text; no conversation contains them


class Generation(jinja2.ext.Extension):
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.CallBlock(self.call_method("marked"), [], [], body).set_lineno(line)

    @staticmethod
    def marked(caller):
        return BEGIN + caller() + END


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(
        value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
    )


def environment():
    made = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols]
    )
    made.filters["tojson"] = tojson
    made.globals["raise_exception"] = raise_exception
    return made


TOKENS = {"bos_token": "<s>", "eos_token": "</s>"}

TEMPLATES = {
    # A default system message, and a generation prompt.
    "turns": """{% if messages[0]['role'] != 'system' %}
  {{- '<|turn|>system\\nYou help.<|done|>\\n' -}}
{% endif %}
{% for message in messages %}
  {{- '<|turn|>' + message['role'] + '\\n' + message['content'] + '<|done|>' + '\\n' -}}
{% endfor %}
{% if add_generation_prompt %}
  {{- '<|turn|>assistant\\n' -}}
{% endif %}
""",
    # Trimmed contents, tools as JSON, undefined values.
    "headers": """{{- bos_token }}
{%- if not day is defined %}{% set day = "26 Jul 2024" %}{% endif %}
{%- if messages[0].role == "system" %}
    {%- set system = messages[0].content|trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system = "" %}
{%- endif %}
{{- "<h>system</h>\\n\\nToday: " + day + "\\n" ~ system }}
{%- if tools is not none and tools|length > 0 %}
    {%- for tool in tools %}
        {{- "\\n" + (tool | tojson(indent=4)) }}
    {%- endfor %}
{%- endif %}
{{- "<e>" }}
{%- for message in messages %}
    {%- if message.tool_calls is defined and message.tool_calls %}
        {%- set call = message.tool_calls[0].function %}
        {{- '<h>assistant</h>\\n\\n{"name": "' + call.name + '", "parameters": ' + call.arguments | tojson + \
'}<e>' }}
    {%- elif message.role in ["tool", "ipython"] %}
        {{- "<h>tool</h>\\n\\n" ~ (message.content if message.content is string else message.content | \
tojson) ~ "<e>" }}
    {%- else %}
        {{- '<h>' + message['role'] + '</h>\\n\\n' + message['content'] | trim + '<e>' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<h>assistant</h>\\n\\n' }}{%- endif %}
""",
    # Refuses roles that do not alternate. Ends the assistant's text with a token.
    "alternating": """{{ bos_token }}{% for message in messages %}{% if (message['role'] == 'user') != \
(loop.index0 % 2 == 0) %}{{ raise_exception('Roles must alternate: ' ~ loop.index) }}{% endif %}\
{% if message['role'] == 'user' %}{{ '[Q] ' + message['content'] + ' [/Q]' }}{% else %}\
{{ ' ' + message['content'] + eos_token }}{% endif %}{% endfor %}""",
    # Drops thoughts before the last question.
    "thinking": """{%- set ns = namespace(searching=true, last=messages|length - 1) %}
{%- for message in messages[::-1] %}
    {%- set index = (messages|length - 1) - loop.index0 %}
    {%- if ns.searching and message.role == "user" and not(message.content.startswith('<r>') and \
message.content.endswith('</r>')) %}
        {%- set ns.searching = false %}
        {%- set ns.last = index %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- if message.role == "assistant" %}
        {%- set thought = '' %}
        {%- set content = message.content %}
        {%- if message.thought is defined and message.thought is not none %}
            {%- set thought = message.thought %}
        {%- elif '</think>' in message.content %}
            {%- set thought = message.content.split('</think>')[0].rstrip('\\n').split('<think>')[-1]\
.lstrip('\\n') %}
            {%- set content = message.content.split('</think>')[-1].lstrip('\\n') %}
        {%- endif %}
        {%- if loop.index0 > ns.last and (loop.last or thought) %}
            {{- '<a>\\n<think>\\n' + thought.strip('\\n') + '\\n</think>\\n\\n' + content.lstrip('\\n') }}
        {%- else %}
            {{- '<a>\\n' + content }}
        {%- endif %}
        {{- '</a>\\n' }}
    {%- else %}
        {{- '<' + message.role[0] + '>\\n' + message.content + '</' + message.role|first + '>\\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<a>\\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}{{- '<think>\\n\\n</think>\\n\\n' }}\
{%- endif %}
{%- endif %}
""",
    # Macros, block sets, and {% generation %}.
    "generation": """{% macro turn(role, text='-', end="|") %}[{{ role|upper }}] {{ text }}{{ end }}
{% endmacro %}
{% macro twice(text) %}{{ turn(role='note', text=text * 2, end='!') }}{% endmacro %}
{% set frame %}
<{{ messages | selectattr('role', 'equalto', 'user') | list | length }} questions, {{ messages | \
map(attribute='role') | unique | join('+') }}>
{% endset %}
{{ frame }}{{ twice('ab') }}
{%- for message in messages %}
{% if message.role == 'assistant' %}
[ASSISTANT] {% generation %}{{ message.content }}\
{{ message.tool_calls|default([])|length }}|{% endgeneration %}

{% else %}
{{ turn(message.role, message.content) }}
{%- endif %}
{% endfor %}
{% if add_generation_prompt %}[ASSISTANT] {% endif %}
""",
    # White space, comments, branches that do not run, loops that end early.
    "spaces": """  {# a comment
  of two lines #}
  {%- raw %} {{ not }} {% carried %} {% endraw -%}
   <
   {%+ if true %}
kept{% endif %}
   {% for c in "a-b é" %}{% if c == "-" %}{% continue %}{% endif %}{% if c == "é" %}{% break %}{% endif %}\
{{ loop.index }}{{ c }}{% else %}none{% endfor +%}

 {{- "  x  " -}}

 {% for m in messages if m.role == 'user' %}
   {{ loop.first }}{{ loop.last }}{{ loop.length }}\
{{ loop.previtem.content if not loop.first }}|{{ (loop.nextitem|default({})).content }}
 {% else %}
no user
 {% endfor %}
{% for k, v in {'b': 2, "a": [1, 2.5, none, true]}.items() %}{{ k }}={{ v }};{% endfor %}{% for x in [] %}\
{% else %}empty{% endfor %}
{% for message in messages %}{{ message.content }}{{ message.tool_calls|default([])|length }};{% endfor %}
""",
    # Operations on values.
    "values": """{{ 7 // 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 7 / 2 }} {{ 2 ** 10 }} {{ 1 + 2 * 3 - 4 }} \
{{ 1.0 }} {{ 1e3 }} {{ 0.1 + 0.2 }} {{ 3 ~ 'x' ~ none }}
{{ [1, 'a', none, true, {'k': "it's"}] }} {{ (1, 2) }} {{ ('x',) }} {{ {} }} {{ 'tab\\t"quoted"' | tojson }} \
{{ {'ä': [1, {'b': none}]} | tojson }} {{ {'ä': 1} | tojson(ensure_ascii=true) }}
{{ 'Grüße ÄÖ' | length }} {{ 'Grüße'[1:-1] }} {{ 'Grüße'[::-1] }} {{ 'grüße WELT' | title }} \
{{ 'grüße WELT'.title() }} {{ 'éA' | upper }}{{ 'ÉA'.lower() }} {{ 'hELLO' | capitalize }}
{{ 'a,b,,c'.split(',') }} {{ ' a  b '.split() }} {{ 'a-b-c'.rsplit('-', 1) }} \
{{ 'xxabxx'.strip('x') }}|{{ '\\u3000 a \\n'.strip() }}|{{ 'a\\nb\\r\\nc'.splitlines() }}
{{ 'abc' is string }} {{ [] is iterable }} {{ {} is mapping }} {{ missing is defined }} {{ none is none }} \
{{ 3 is odd }} {{ 4 is divisibleby 2 }} {{ 'a' in 'cab' }} {{ 'k' in {'k': 1} }} {{ 2 not in [1, 2] }}
{{ [3, 1, 2] | sort }} {{ ['b', 'A', 'c'] | sort(reverse=true) }} {{ [1, 2, 3] | sum }} \
{{ [1, 2, 3] | max }} {{ ['a', 'b'] | join('-') }} {{ [1, 2, 3] | reject('odd') | list }} \
{{ ['x', 'y'] | map('upper') | list }}
{{ [{'r': 'a', 'n': 1}, {'r': 'b', 'n': 2}] | rejectattr('r', 'eq', 'a') | map(attribute='n') | list }} \
{{ {'b': 1, 'a': 2} | dictsort }} {{ {'a': 1} | items | list }} {{ missing | default('d') }} \
{{ '' | default('e', true) }}
{{ '42' | int + 1 }} {{ 'x' | int(5) }} {{ 2.567 | round(2) }} {{ 'a\\nb' | indent(2) }} {{ 1 < 2 < 3 }} \
{{ 1 < 3 < 2 }} {{ not true or true and false }} {{ 'y' if false }}{{ range(2, 9, 3) | list }} \
{{ dict(a=1).get('b', 'none') }} {{ namespace(x=1).x }}
{% for message in messages %}{{ message.content }}{{ message.tool_calls|default([])|length }};{% endfor %}
""",
}

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "weather",
            "description": "Of a city, “now”.",
            "parameters": {
                "type": "object",
                "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
            },
        },
    }
]


def user(text):
    return {"role": "user", "content": text}


def assistant(text, **more):
    return {"role": "assistant", "content": text, **more}


def system(text):
    return {"role": "system", "content": text}


LINES = [
    {"messages": [user("Hello"), assistant("Hi there.")]},
    {"messages": [system(" Be brief. "), user("Grüß Gott \n"), assistant(" Hello,\nyou. ")]},
    {"messages": [user("1"), assistant("one"), user("2"), assistant("two"), user("3"), assistant("three")]},
    {"messages": [user("same"), assistant("same"), user("same"), assistant("same")]},
    {
        "messages": [
            user("q"),
            assistant("<think>\nfirst\n</think>\n\nr1"),
            user("q2"),
            assistant("<think>\nsecond\n</think>\n\nr2"),
        ]
    },
    {
        "messages": [user("q"), assistant("r1", thought="so"), user("q2"), assistant("r2", thought="and so")],
        "chat_template_kwargs": {"enable_thinking": False, "day": "1 Jan 2026"},
    },
    {
        "messages": [
            system("S"),
            user("weather?"),
            assistant(
                "",
                tool_calls=[
                    {
                        "type": "function",
                        "function": {"name": "weather", "arguments": {"city": "Köln", "days": 2}},
                    }
                ],
            ),
            {"role": "tool", "content": {"t": 3.5, "wind": None}},
            assistant("It is cold."),
        ],
        "tools": TOOLS,
    },
    {"messages": [user("x"), user("y"), assistant("z")]},
]


def written(template, line, asks):
    variables = {
        **TOKENS,
        "tools": line.get("tools"),
        "documents": None,
        **line.get("chat_template_kwargs", {}),
    }
    return (
        environment()
        .from_string(template)
        .render(messages=line["messages"], add_generation_prompt=asks, **variables)
    )


def main():
    cases = []
    for name, template in TEMPLATES.items():
        lines = []
        for line in LINES:
            try:
                text, prompt = written(template, line, False), written(template, line, True)
            except (jinja2.exceptions.TemplateError, TypeError) as error:
                lines.append(
                    {
                        "line": line,
                        "error": str(error) if isinstance(error, jinja2.exceptions.TemplateError) else "",
                    }
                )
                continue
            learned = [part.split(END)[0] for part in text.split(BEGIN)[1:]]
            clean = text.translate({ord(BEGIN): None, ord(END): None})
            lines.append(
                {
                    "line": line,
                    "text": clean,
                    "prompt": prompt.translate({ord(BEGIN): None, ord(END): None}),
                    **({"learned": learned} if learned else {}),
                }
            )
        cases.append({"name": name, "template": template, "lines": lines})
    json.dump({"tokens": TOKENS, "cases": cases}, sys.stdout, ensure_ascii=False, indent=1)
    print()


if __name__ == "__main__":
    main()
