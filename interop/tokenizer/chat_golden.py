"""Writes the reference renders of pipeline/chat/testdata/features.jsonl.gz with Jinja2.

usage: chat_golden.py OUT.jsonl.gz   needs jinja2

Each line has a template ("source", or "template", a file in testdata), its input,
and what Jinja2 makes of it with the settings of transformers: "render", or
"error" when it raises one.
"""

import datetime
import gzip
import json
import pathlib
import sys

import jinja2
import jinja2.ext
import jinja2.sandbox
import jinja2.utils

HERE = pathlib.Path(__file__).resolve().parents[2] / "pipeline/chat/testdata"


class Generation(jinja2.ext.Extension):
    """transformers' block {% generation %}: its text, with variables of its own."""

    tags = {"generation"}

    def parse(self, parser):
        lineno = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("text"), [], [], body).set_lineno(lineno)

    def text(self, caller):
        return caller()


class Dict:
    """transformers' dict, which is no type."""

    def __call__(self, *args, **kwargs):
        return dict(*args, **kwargs)

    def fromkeys(self, *args, **kwargs):
        return dict.fromkeys(*args, **kwargs)


class Namespace(jinja2.utils.Namespace):
    """transformers' namespace, which has no attributes that start with an underscore."""

    def __init__(*args, **kwargs):
        self, args = args[0], args[1:]
        attributes = dict(*args, **kwargs)
        for name in attributes:
            Namespace.check(name)
        jinja2.utils.Namespace.__init__(self, attributes)

    def __setitem__(self, name, value):
        Namespace.check(name)
        jinja2.utils.Namespace.__setitem__(self, name, value)

    @staticmethod
    def check(name):
        if isinstance(name, str) and name.startswith("_"):
            raise jinja2.exceptions.SecurityError(f"the name {name!r} starts with an underscore")


def environment():
    env = jinja2.sandbox.ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])
    env.filters["tojson"] = lambda x, ensure_ascii=False, indent=None, separators=None, sort_keys=False: json.dumps(
        x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)

    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = lambda format: datetime.datetime.now().strftime(format)
    env.globals["dict"] = Dict()
    env.globals["namespace"] = Namespace
    return env


TOOLS = [{"type": "function", "function": {"name": "lookup", "description": "Find a café <b>&amp;'\"", "parameters": {
    "type": "object", "properties": {"q": {"type": "string", "default": None}, "n": {"type": "integer", "enum": [1, 2.5, 1e100, 10**30]}}, "required": ["q"]}}}]
CALL = {"type": "function", "id": "c1", "function": {"name": "lookup", "arguments": {"q": "é\"<", "n": 3, "f": 1.0, "z": None, "l": [1, "a", {}], "b": True, "e": []}}}
CHATS = [
    [{"role": "user", "content": "What is 1 + 2?"}],
    [{"role": "system", "content": "Be brief."}, {"role": "user", "content": " hi \n"}],
    [{"role": "user", "content": "a"}, {"role": "assistant", "content": "  b \n"}, {"role": "user", "content": "c"}],
    [{"role": "user", "content": "a"}, {"role": "assistant", "reasoning_content": " why ", "content": "b"}],
    [{"role": "user", "content": "a"}, {"role": "assistant", "content": "<think>\nhm\n</think>\n\nb"}, {"role": "user", "content": "c"}],
    [{"role": "user", "content": "find"}, {"role": "assistant", "content": "", "tool_calls": [CALL, CALL]}, {"role": "tool", "content": "r1"}, {"role": "tool", "content": "r2"}, {"role": "assistant", "content": "ok"}],
    [{"role": "user", "content": "你好 😀"}, {"role": "assistant", "content": "x", "tool_calls": [{"name": "f", "arguments": {}}]}, {"role": "tool", "content": "[1]"}],
]

# Templates, one a line (⏎ is a line end in one), with messages and x in scope.
X = {"s": "  Hello, <World> & 'you'\t\n", "i": 7, "f": 1.0, "g": 1e-7, "h": 1e22, "n": None, "t": True, "l": [3, 1, 2], "d": {"b": 1, "a": [1.5, "two", None, False]}, "e": "", "w": "one two  three",
     "o": [{"k": "x", "v": 1}, {"k": "y", "v": 0}, {"k": "z"}], "u": "naïve é \u2028 \u007f 😀 \"q\" \\ \u0001", "big": 10**20}
SNIPPETS = """
{{ x.n }}|{{ x.t }}|{{ x.f }}|{{ x.g }}|{{ x.h }}|{{ x.i }}|{{ x.missing }}|{{ x.big }}
{{ x.d }}|{{ x.l }}|{{ x.u }}|{{ [x.u] }}|{{ ["it's", 'say "x"', 'both \\' "'] }}
{{ x.d | tojson }}|{{ x.l | tojson(indent=2) }}|{{ x.d | tojson(indent=2) }}|{{ x.u | tojson }}|{{ x.u | tojson(ensure_ascii=True) }}|{{ x | tojson(sort_keys=True, separators=(',', ':')) }}
{{ {} | tojson(indent=2) }}{{ [] | tojson(indent=1) }}{{ [[], {}] | tojson(indent=1) }}{{ x.d | tojson(indent=4, ensure_ascii=False) }}
{{ x.s.strip() }}|{{ x.s.lstrip() }}|{{ x.s.rstrip() }}|{{ x.s | trim }}|{{ 'xxaxx'.strip('x') }}|{{ 'xyaxy'.rstrip('yx') }}
{{ 'a,b,,c'.split(',') }}|{{ 'a,b,c'.split(',', 1) }}|{{ 'a,b,c'.rsplit(',', 1) }}|{{ x.w.split() }}|{{ 'a,b,c'.split(',')[-1] }}|{{ 'abc'.split('x') }}
{{ 'hello'.startswith('he') }}|{{ 'hello'.endswith(('x', 'lo')) }}|{{ 'hello'.upper() }}|{{ 'Hello'.lower() }}|{{ 'hello world'.title() }}|{{ 'hello WORLD' | capitalize }}
{{ 'aXbX'.replace('X', '-') }}|{{ 'aXbX'.replace('X', '-', 1) }}|{{ 'aXbX' | replace('X', '') }}|{{ 'a-b' | replace("-", "_") | upper }}
{% for k, v in x.d.items() %}{{ k }}={{ v }};{% endfor %}|{% for k, v in x.d | items %}{{ loop.index }}{{ k }}{% endfor %}|{% for k in x.d %}{{ k }}{% endfor %}
{% for k, v in x.d.items() if k == 'a' %}{{ k }}{{ v }}{{ loop.first }}{{ loop.last }}{% else %}none{% endfor %}
{% for i in x.l if i > 1 %}{{ loop.index }}:{{ i }}/{{ loop.length }} {% else %}none{% endfor %}|{% for i in [] %}x{% else %}none{% endfor %}
{% for a, b, c in [(1, 2, 3), (4, 5, 6)] %}{{ a + b * c }} {% endfor %}
{% for (a, b) in [(1, 2)] %}{{ a }}{{ b }}{% endfor %}
{% for i in range(3) %}{{ i }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.previtem }}{{ loop.nextitem }}{{ loop.cycle('a', 'b') }} {% endfor %}
{% for i in range(10) %}{% if i == 2 %}{% continue %}{% endif %}{% if i == 5 %}{% break %}{% endif %}{{ i }}{% endfor %}
{% set y = 1 %}{% for i in range(3) %}{{ y }}{% set y = i + 5 %}{{ y }} {% endfor %}{{ y }}
{% for i in range(3) %}{% if i == 1 %}{% set z = 'set' %}{% endif %}[{{ z }}]{{ z is defined }}{% endfor %}{{ z is defined }}
{% for i in range(2) %}{% for j in range(2) %}{% set q = i * j %}{{ q }}{% endfor %}{{ q is defined }}{% set q = 'outer' %}{{ q }}{% endfor %}
{% set ns = namespace(a=1, b='x') %}{% for i in range(3) %}{% set ns.a = ns.a + i %}{% endfor %}{{ ns.a }}{{ ns.b }}
{% macro m(a, b='d, e', c=none) %}[{{ a }}|{{ b }}|{{ c }}]{% endmacro %}{{ m(1) }}{{ m(1, 2) }}{{ m(c=3, a=4) }}{{ m('x' ~ 1, b=[1, 2]) }}
{% macro rec(n) %}{{ n }}{% if n > 0 %}{{ rec(n - 1) }}{% endif %}{% endmacro %}{{ rec(5) }}
{% macro wrap(t) %}<{{ t }}>{{ caller() }}</{{ t }}>{% endmacro %}{% call wrap('b') %}in{% endcall %}
{% set block %}  some {{ x.i }} text⏎{% endset %}[{{ block }}]{{ block | trim }}
{% filter upper %}abc {{ x.i }} déf{% endfilter %}
{{ x.s is string }}{{ x.i is number }}{{ x.i is integer }}{{ x.f is float }}{{ x.d is mapping }}{{ x.l is iterable }}{{ x.l is sequence }}{{ x.s is sequence }}{{ x.s is iterable }}{{ x.n is none }}{{ x.n is not none }}{{ x.t is boolean }}{{ x.t is true }}{{ x.t is false }}
{{ missing is defined }}{{ missing is undefined }}{{ x.missing is defined }}{{ x.n is defined }}{{ missing is iterable }}{{ missing is string }}{{ not missing }}
{{ 4 is divisibleby 2 }}{{ 5 is divisibleby(2) }}{{ 3 is odd }}{{ 3 is even }}{{ 2 is in [1, 2] }}{{ 2 is not in [1, 2] }}{{ 'a' is in 'abc' }}{{ 1 is eq 1 }}{{ 1 is ne 1 }}{{ 3 is gt 2 }}{{ 'a' is equalto 'a' }}
{{ 'a' in x.d }}{{ 'a' not in x.d }}{{ 2 in x.l }}{{ 'ell' in 'hello' }}{{ x.i == 7 and not x.n }}{{ x.e or 'dflt' }}{{ x.n and 1 }}
{{ x.missing | default('dd') }}|{{ x.n | default('dd') }}|{{ x.n | default('dd', true) }}|{{ x.e | default('dd', boolean=true) }}|{{ x.missing | d(3) }}
{{ x.l | length }}{{ x.u | length }}{{ x.d | length }}{{ x.l | count }}|{{ x.l | first }}{{ x.l | last }}{{ 'abc' | first }}{{ 'abc' | last }}
{{ x.l | join }}|{{ x.l | join(', ') }}|{{ ['a', none, 1.0, true] | join('-') }}|{{ x.o | join(',', attribute='k') }}
{{ x.l | sort }}|{{ x.l | sort(reverse=true) }}|{{ ['b', 'A', 'c'] | sort }}|{{ x.o | sort(attribute='k', reverse=true) | map(attribute='k') | list }}
{{ x.l | reverse | list }}|{{ 'abc' | reverse }}|{{ x.l[::-1] }}|{{ x.l[1:] }}|{{ x.l[:-1] }}|{{ x.l[-1] }}|{{ 'hello'[1:3] }}|{{ 'hello'[::-1] }}|{{ 'hello'[0] }}
{{ x.o | map(attribute='k') | join }}|{{ x.o | map(attribute='v', default='-') | list }}|{{ ['a ', ' b'] | map('trim') | list }}|{{ ['a', 'b'] | map('upper') | list if false else 'skip' }}
{{ x.o | selectattr('v') | map(attribute='k') | list }}|{{ x.o | selectattr('v', 'defined') | list | length }}|{{ x.o | rejectattr('k', 'equalto', 'x') | map(attribute='k') | list }}|{{ x.o | selectattr('k', 'eq', 'y') | list }}
{{ [1, 2, 3, 4] | select('odd') | list }}|{{ [0, 1, '', 'a'] | select | list }}|{{ [1, 2, 3] | reject('equalto', 2) | list }}
{{ [1, 1, 2, 'a', 'a'] | unique | list }}|{{ [1, 2] + [3] }}|{{ 'a' * 3 }}|{{ 2 * 3 + 4 }}|{{ 2 + 3 * 4 }}|{{ (2 + 3) * 4 }}|{{ -2 * 3 }}|{{ 7 // 2 }}|{{ 7 % 4 }}|{{ 7 / 2 }}|{{ 2 * 2.5 }}
{{ 'a' ~ 1 ~ 'b' }}|{{ 'x' + 'y' }}|{{ 'yes' if x.t else 'no' }}|{{ 'yes' if x.n }}|{{ (x.i if x.t else 0) + 1 }}|{{ 1 if false else 2 if false else 3 }}
{{ '3' | int + 4 }}|{{ '3.9' | int }}|{{ 'x' | int(5) }}|{{ '2.5' | float }}|{{ 2.567 | round(1) }}|{{ 2.5 | round }}|{{ 3 | float }}|{{ x.i | string + 'a' }}|{{ x.n | string }}|{{ -3 | abs }}
{{ "\\u00e9\\x41\\n\\t\\\\" }}|{{ 'a"b' }}|{{ "a'b" }}|{{ 'don\\'t' }}|{{ "a" "b" 'c' }}|{{ 1e3 }}|{{ 1.50 }}|{{ 1_000 }}
{{ '{{' }}{{ '}}' }}{{ {'a': {'b': 1}}.a.b }}{{ {'a': 1}['a'] }}|{% raw %}{{ raw }} {% if %}{% endraw %}|{# comment {{ x }} #}end
{{ 'a\\nb\\n\\nc' | indent(2) }}|{{ 'a\\nb' | indent(2, true) }}|{{ 'a\\n\\nb' | indent(width=3, blank=true) }}|{{ x.w | wordcount }}|{{ '<a href="x">' | escape if false else 1 }}
   {% if true %}   ⏎   indented⏎   {% endif %}   ⏎ after {%+ if true %} plus {% endif +%}⏎ last
a {{- ' b ' -}} c {%- if true -%} d {%- endif -%} e {#- gone -#} f
line1⏎{% if true -%}⏎    x⏎{%- endif %}⏎⏎{{ x.i }}⏎{% if true %}y{% endif %}⏎end⏎
{{ x.i }} {% for a in x.l %}{{ a }} {% endfor %} text⏎{%- for a in x.l -%}⏎{{ a }}{{ ' ' }} b⏎{%- endfor -%}
{% if x.i > 5 and x.i < 10 or false %}in{% elif x.i == 7 %}seven{% else %}out{% endif %}{% if not x.t %}a{% elif x.n is none %}b{% else %}c{% endif %}
{{ messages[0].role }}{{ messages[0]['content'] }}{{ messages | length }}{{ messages[-1]['role'] }}{% if messages[0]['role'] == 'user' %}!{% endif %}{{ messages[1:] | length }}
{{ raise_exception('no ' ~ x.i) }}
{% for m in messages %}{% if loop.index0 == 1 %}{{ raise_exception('second') }}{% endif %}{% endfor %}
{{ x.d.get('a') }}|{{ x.d.get('zz') }}|{{ x.d.get('zz', 'no') }}|{{ x.d.keys() | list }}|{{ x.d.values() | list }}|{% for k, v in x.d | dictsort %}{{ k }}{{ v }}{% endfor %}
{{ x.d.items() | list | length }}|{{ x.l | max }}{{ x.l | min }}{{ x.l | sum }}|{{ [[1, 2], [3]] | sum(start=[]) if false else '' }}|{{ x.l | list }}|{{ 'abc' | list }}|{{ [1, 2, 3, 4, 5] | batch(2) | list }}
{% set a = [] %}{% set b = a + [1] %}{{ b }}{% set c = {'k': b} %}{{ c.k[0] }}{% set parts = 'a|b'.split('|') %}{{ parts[0] ~ parts[1] }}
{% generation %}gen{% endgeneration %}
{% set s = 'x' %}{% if true %}{% set s = s ~ 'y' %}{% endif %}{{ s }}{%- set t = (s == 'xy') -%}{{ t }}{% set eq = 1 == 1 %}{{ eq }}
{{ not x.n is none }}|{{ x.n is none and x.t }}|{{ x.i is not string and x.i is number }}|{{ 'a' if x.n is none else 'b' }}|{{ (x.missing or x.n) is none }}
{{ 1 < 2 }}{{ 'a' < 'b' }}{{ 2 >= 2.0 }}{{ 1 == 1.0 }}{{ 1 != 2 }}{{ none == none }}{{ [1, 2] == [1, 2] }}{{ {'a': 1} == {'a': 1} }}{{ true == true }}
{{ x.l | tojson | length }}{{ (x.l | tojson) + '!' }}{{ x.o | tojson }}{{ 'é' | tojson }}{{ none | tojson }}{{ true | tojson }}{{ 1.0 | tojson }}{{ 1e21 | tojson }}{{ 0.1 | tojson }}
{%- macro t(c) -%}{%- for p in c -%}{%- if p is string -%}{{ p }}{%- elif p.type == 'text' -%}{{ p.text }}{%- endif -%}{%- endfor -%}{%- endmacro -%}{{ t(['a', {'type': 'text', 'text': 'b'}, {'type': 'image'}]) }}
{{ 'isdigit' if '123'.isdigit() }}{{ 'no' if not '12a'.isdigit() }}{{ 'a b'.split(' ') | last }}{{ ['x', 'y'] | first }}{{ ','.join(['a', 'b']) }}
{{ x.d.a[1] }}{{ x['d']['a'][0] }}{{ x.l.0 }}{{ (x.l | length) > 2 }}{{ x.w.find('two') }}{{ x.w.count('o') }}{{ 'a\\nb'.splitlines() }}
""".strip("\n")


def main():
    env = environment()
    lines = []

    def add(source, template, context, generate):
        given = {"source": source, "template": template, "input": context, "add_generation_prompt": generate}
        text = source or (HERE / template).read_text(encoding="utf-8")
        try:
            lines.append({**given, "render": env.from_string(text).render(add_generation_prompt=generate, **context)})
        except jinja2.exceptions.TemplateSyntaxError as e:
            if "generation" not in str(e):
                raise
            lines.append({**given, "render": text.replace("{% generation %}", "").replace("{% endgeneration %}", "")})
        except Exception as e:
            lines.append({**given, "error": str(e)})

    for snippet in SNIPPETS.split("\n"):
        add(snippet.replace("⏎", "\n"), "", {"messages": CHATS[2], "x": X}, False)
    for template in ("glm5.jinja",):
        for chat in CHATS:
            for extra in ({}, {"enable_thinking": False}, {"clear_thinking": False}, {"tools": TOOLS}):
                for generate in (True, False):
                    add("", template, {"messages": chat, **extra}, generate)
    with gzip.GzipFile(sys.argv[1], "wb", mtime=0) as f:
        for line in lines:
            f.write(json.dumps({k: v for k, v in line.items() if v != ""}).encode() + b"\n")
    print(len(lines), "renders,", sum("error" in line for line in lines), "errors")


if __name__ == "__main__":
    main()
