"""Writes what Jinja2 makes of templates, one for each thing that they can do, to
pipeline/chat/jinja/testdata/expressions.jsonl.

usage: expressions.py OUT.jsonl [FILE...]   needs jinja2 (3.1.6)

A line has the template ("source") and "render", or "error" when Jinja2 raises one.
Lines of expressions alone are taken apart: one that fails would hide the others.
Of FILEs, each line is a template more. The settings are those of transformers'
chat templates (chat_golden.py).
"""

import json
import re
import sys

import chat_golden

# One a line; ⏎ is a line end in one.
EXPRESSIONS = r"""
{{ none }} {{ true }} {{ False }} {{ 1 }} {{ 1.0 }} {{ 1e3 }} {{ 1.5e-7 }} {{ 1e16 }} {{ 123456789012345678901234567890 }} {{ 0x1F }} {{ 0b101 }} {{ 0o17 }} {{ 1_000 }}
{{ 'a' "b" 'c' }} {{ 'it\'s' }} {{ "\x41\u00e9\U0001F600\101\n\t\\\z" }} {{ 'a\
b' }}
{{ [1, 'a', none, 1.5, true, "it's", 'q"', [], {}, ()] }} {{ (1,) }} {{ (1, 2) }} {{ {'a': [1, {'b': none}], 1: 2, none: 3, true: 4} }}
{{ ["\n\t\r\\", "é", "\x00\x7f", "\u200b", "\u2028", "😀", "'\""] }}
{{ 1 + 2 }} {{ 1 + 2.5 }} {{ 'a' + 'b' }} {{ [1] + [2] }} {{ (1,) + (2,) }} {{ true + 1 }} {{ 3 - true }}
{{ 'a' + 1 }}
{{ 1 + 'a' }}
{{ [1] + (2,) }}
{{ 'a' + none }}
{{ none + 'a' }}
{{ {} + {} }}
{{ x + 1 }}
{{ 1 + x }}
{{ 'a' + x }}
{{ x.y }}
{{ x['y'] }}
{{ x() }}
{{ -x }}
{{ x < 1 }}
{{ x == y }} {{ x == none }} {{ x != 1 }} {{ x in [1] }} {{ 1 in x }} {{ x|length }} {{ x|list }} {{ x ~ 'a' }} {{ not x }} {{ x or 'd' }} {{ x|default('d') }}
{{ x|int }}
{{ x|float }}
{{ x|upper }}|{{ x|trim }}|{{ x|join(',') }}|{{ x|string }}|{{ x|replace('a', 'b') }}|{{ x|first is defined }}|{{ x|sort }}|{{ x|map('upper')|list }}|{{ x|selectattr('a')|list }}
{{ x|tojson }}
{{ [x] }} {{ {'a': x} }}
{{ x|abs }}
{{ x|round }}
{{ x|items|list }}
{{ x|dictsort }}
{{ x is string }} {{ x is iterable }} {{ x is mapping }} {{ x is sequence }} {{ x is none }} {{ x is number }} {{ x is callable }} {{ x is defined }} {{ x is undefined }} {{ x is true }}
{{ x is odd }}
{{ x is lower }} {{ x is eq(1) }} {{ x is in [1, 2] }} {{ x is sameas x }}
{{ 7 // 2 }} {{ -7 // 2 }} {{ 7 // -2 }} {{ 7 % 3 }} {{ -7 % 3 }} {{ 7 % -3 }} {{ 7.5 // 2 }} {{ -7.5 % 2 }} {{ 1 / 4 }} {{ 4 / 2 }} {{ 10 ** 20 }} {{ 2 ** -1 }} {{ 2 ** 0.5 }} {{ (-2) ** 2 }} {{ -2 ** 2 }} {{ 2 ** 3 ** 2 }}
{{ 1 // 0 }}
{{ 1 % 0 }}
{{ 1 / 0 }}
{{ 1.0 / 0 }}
{{ 5 * 'ab' }} {{ 'ab' * 0 }} {{ 'ab' * -1 }} {{ [1, 2] * 2 }} {{ (1,) * 3 }} {{ 2 * 3 * 4 - 5 + 6 / 3 }} {{ 9223372036854775807 + 1 }} {{ 9223372036854775807 * 9223372036854775807 }} {{ -9223372036854775808 - 1 }} {{ 9223372036854775808 - 1 }}
{{ 'a' * 'b' }}
{{ 'a' * 1.5 }}
{{ 'a' - 'b' }}
{{ [1] - [1] }}
{{ 1 < 2 < 3 }} {{ 1 < 3 < 2 }} {{ 1 == 1 == 1 }} {{ 1 == 1.0 }} {{ true == 1 }} {{ 'a' < 'b' }} {{ 'é' > 'z' }} {{ [1, 2] < [1, 3] }} {{ (1,) < (1, 2) }} {{ [1] == (1,) }} {{ {'a': 1} == {'a': 1.0} }} {{ none == none }} {{ none != 0 }} {{ 0.1 + 0.2 == 0.3 }} {{ 10 ** 20 > 1e19 }} {{ 2 ** 53 + 1 == 2.0 ** 53 }}
{{ 1 < 'a' }}
{{ none < 1 }}
{{ none <= none }}
{{ {} < {} }}
{{ [1] < [none] }}
{{ 'ell' in 'hello' }} {{ '' in 'a' }} {{ 1 in [1.0] }} {{ 'a' in {'a': 1} }} {{ 1 in {'a': 1}.values() }} {{ ('a', 1) in {'a': 1}.items() }} {{ 3 in range(5) }} {{ 'a' not in ['b'] }} {{ none in [none] }} {{ not 'a' in 'b' }}
{{ 1 in 'a' }}
{{ none in 'a' }}
{{ 'a' in none }}
{{ 'a' in 5 }}
{{ [] in {} }}
{{ [1] in [[1]] }} {{ 1 in (1, 2) }}
{{ 1 and 2 }} {{ 0 and 2 }} {{ '' or 'x' }} {{ [] or {} or none }} {{ 1 or x.y }} {{ 0 and x.y }} {{ not [] }} {{ not 'a' and 1 }}
{{ 'a' if 1 else 'b' }} {{ 'a' if 0 }}| {{ ('a' if 0) is defined }} {{ 1 if 0 else 2 if 0 else 3 }} {{ 1 if 1 if 0 else 1 else 2 }}
{{ ('a' if 0) + 'b' }}
{{ 1 ~ 2 ~ 'a' ~ none ~ true ~ [1] ~ 1.0 }} {{ 'a' ~ 1 + 2 }} {{ 1 + 2 ~ 3 }}
{{ [1, 2, 3][0] }} {{ [1, 2, 3][-1] }} {{ [1, 2, 3][1:] }} {{ [1, 2, 3][:-1] }} {{ [1, 2, 3][::-1] }} {{ [1, 2, 3, 4, 5][1:4:2] }} {{ [1, 2, 3][5:] }} {{ [1, 2, 3][-5:2] }} {{ [1, 2, 3, 4][3:0:-2] }} {{ [1, 2][10:0:-1] }} {{ (1, 2, 3)[:2] }}
{{ 'hello'[1] }} {{ 'hello'[-1] }} {{ 'hello'[1:3] }} {{ 'hello'[::-1] }} {{ 'héllo'[1] }} {{ 'héllo😀x'[-2:] }} {{ 'héllo'[::-2] }} {{ 'hello'[10:] }} {{ 'abc'[none:2] }} {{ 'abc'[true:] }}
{{ [1, 2][5] is defined }} {{ 'a'[3] is defined }} {{ {'a': 1}['b'] is defined }} {{ {'a': 1}.b is defined }} {{ [1].x is defined }} {{ none.x is defined }} {{ (5).x is defined }} {{ {}[[]] is defined }} {{ [1]['0'] is defined }} {{ [1, 2].0 }} {{ [[1, 2]].0.1 }}
{{ [1, 2][5].x }}
{{ {'a': 1}.b.c }}
{{ {'a': 1}['b']() }}
{{ none.strip() }}
{{ 'abc'[::0] }}
{{ [1, 2, 3][1.0:] is defined }} {{ none[1:] is defined }} {{ {}[1:] is defined }} {{ range(10)[2:8:2] }} {{ range(10)[::-1] }} {{ range(5)[1] }} {{ range(5)[-1] }} {{ range(5)[9] is defined }}
{{ {'items': 1, 'b': 2}.items() | list }} {{ {'items': 1}['items'] }} {{ {'items': 1}.items is string }} {{ {'keys': [1]}.keys() | list }} {{ {'get': 3}.get('get') }} {{ {'count': 3}.count }} {{ {'update': 5}['update'] }} {{ {'update': 5}.update is defined }} {{ {'x': 5}.update is defined }} {{ {}.items is defined }} {{ {}['items'] is callable }}
{{ {}.update({'a': 1}) }}
{{ {'a': 1}.pop('a') }}
{{ {}.clear() }}
{{ {}.setdefault('a', 1) }}
{{ [].append(1) }}
{{ [1].pop() }}
{{ [2, 1].sort() }}
{{ [].extend([1]) }}
{{ [].append is defined }} {{ [].append }}| {{ ''.__class__ is defined }} {{ ''.__class__ }}|
{{ ''.__class__.__mro__ }}
{{ {'__class__': 1}['__class__'] }}
{{ {'_x': 1}._x }} {{ {'a b': 1}['a b'] }} {{ {1: 'x'}[1] }} {{ {1: 'x'}[1.0] }} {{ {1: 'x'}[true] }} {{ {(1, 2): 'x'}[(1, 2)] }} {{ {none: 'x'}[none] }} {{ {1: 'a', 1.0: 'b', true: 'c'} }} {{ {'a': 1, 'a': 2} }}
{{ {[]: 1} }}
{{ {{}: 1} }}
{{ {'a': 1}.get('a') }} {{ {'a': 1}.get('b') }} {{ {'a': 1}.get('b', 5) }} {{ {'a': 1}.keys() }} {{ {'a': 1}.values() }} {{ {'a': 1}.items() }} {{ {'b': 1, 'a': 2}.copy() }} {{ dict(a=1, b='x') }} {{ dict({'a': 1}, b=2) }} {{ dict([('a', 1), ['b', 2]]) }} {{ dict.fromkeys(['a', 'b'], 0) }} {{ {'a': 1}.items()|list|first }}
{{ {}.get([]) }}
{{ dict([1]) }}
{{ [1, 2, 1].count(1) }} {{ [1, 2].index(2) }} {{ [1, 2].copy() }} {{ (1, 2).count(2) }} {{ (1, 2).index(2) }} {{ [1, 2, 3, 1].index(1, 1) }}
{{ [1].index(5) }}
{{ (5).bit_length() }} {{ 5 .real }} {{ (3.0).is_integer() }} {{ (3.5).is_integer() }} {{ true.real }}
{{ range(3) }} {{ range(3)|list }} {{ range(2, 5)|list }} {{ range(5, 0, -2)|list }} {{ range(0) is iterable }} {{ range(3)|length }} {{ range(3)|sum }} {{ range(1, 10, 3) }} {{ range(3) == range(0, 3) }}
{{ range(200000) }}
{{ range('a') }}
{{ range(1.5) }}
{{ range(1, 2, 0) }}
{{ 'abc'.upper() }} {{ 'ABC'.lower() }} {{ 'straße'.upper() }} {{ 'ΑΣ'.lower() }} {{ 'İ'.lower()|length }} {{ 'ﬁ'.upper() }} {{ 'hELLO wORLD'.title() }} {{ "they're bill's".title() }} {{ 'ǆ'.title() }} {{ 'hELLO'.capitalize() }} {{ 'ßx'.capitalize() }} {{ 'aBc'.swapcase() }} {{ 'Straße'.casefold() }}
{{ '  a b \n'.strip() }}| {{ 'xxaxx'.strip('x') }} {{ 'xyaxy'.lstrip('yx') }} {{ 'abc'.rstrip('cb') }} {{ '\u00a0\u3000\x1fa\x85'.strip() }} {{ 'a'.strip(none) }} {{ ''.strip() }}| {{ '\u200ba'.strip()|length }}
{{ 'a'.strip(1) }}
{{ 'a,b,,c'.split(',') }} {{ ' a  b '.split() }} {{ 'a b c'.split(none, 1) }} {{ 'a,b,c'.split(',', 1) }} {{ 'a,b,c'.rsplit(',', 1) }} {{ ' a b c '.rsplit(none, 1) }} {{ 'abc'.split('b')[-1] }} {{ ''.split() }} {{ ''.split(',') }} {{ 'a,b'.split(sep=',') }} {{ 'a b c'.split(maxsplit=1) }} {{ 'aXbXc'.rsplit('X') }} {{ 'a b'.split(' ', 0) }}
{{ 'a'.split('') }}
{{ 'a'.split(1) }}
{{ 'a\nb\r\nc\rd\x0be\u2028f\n'.splitlines() }} {{ 'a\nb\n'.splitlines(true) }} {{ ''.splitlines() }} {{ '\n\n'.splitlines() }}
{{ 'hello'.startswith('he') }} {{ 'hello'.endswith(('x', 'lo')) }} {{ 'hello'.startswith('l', 2) }} {{ 'hello'.startswith('lo', -2) }} {{ 'hello'.endswith('l', 0, 4) }} {{ 'a'.startswith('') }} {{ 'a'.startswith('', 5) }} {{ 'hello'.startswith(()) }}
{{ 'a'.startswith(1) }}
{{ 'a'.startswith(['a']) }}
{{ 'hello'.find('l') }} {{ 'hello'.find('z') }} {{ 'héllo'.find('l') }} {{ 'hello'.rfind('l') }} {{ 'hello'.index('e') }} {{ 'hello'.find('l', 3) }} {{ 'hello'.find('l', 0, 2) }} {{ 'hello'.count('l') }} {{ 'aaa'.count('aa') }} {{ 'abc'.count('') }} {{ 'abcabc'.count('b', 2) }} {{ 'abc'.find('', 10) }} {{ 'abc'.find('c', -1) }} {{ 'hello'.rindex('l') }}
{{ 'hello'.index('z') }}
{{ 'hello'.rindex('z') }}
{{ 'hello'.find(1) }}
{{ 'aXbX'.replace('X', '-') }} {{ 'aXbX'.replace('X', '-', 1) }} {{ 'abc'.replace('', '-') }} {{ 'abc'.replace('b', '') }} {{ 'aaa'.replace('a', 'b', 0) }} {{ 'aaa'.replace('a', 'b', -1) }} {{ ''.replace('', 'x') }} {{ 'é'.replace('', '.') }}
{{ 'a'.replace('a', 1) }}
{{ 'a'.replace('a') }}
{{ ','.join(['a', 'b']) }} {{ ','.join('abc') }} {{ ','.join({'a': 1, 'b': 2}) }} {{ ''.join([]) }} {{ '-'.join(('x',)) }}
{{ ','.join([1, 2]) }}
{{ ','.join(none) }}
{{ 'a-b-c'.partition('-') }} {{ 'a-b-c'.rpartition('-') }} {{ 'abc'.partition('-') }} {{ 'abc'.rpartition('-') }} {{ 'prefix-x'.removeprefix('prefix-') }} {{ 'x.py'.removesuffix('.py') }}
{{ 'a'.center(5) }}| {{ 'ab'.center(5) }}| {{ 'a'.center(4, '*') }}| {{ 'a'.ljust(3) }}| {{ 'a'.rjust(3, '-') }} {{ '5'.zfill(3) }} {{ '-5'.zfill(4) }} {{ '+5'.zfill(1) }} {{ 'abc'.center(2) }} {{ 'é'.rjust(3) }} {{ 'a\tbc\td'.expandtabs(4) }}|
{{ 'a'.ljust(3, 'xy') }}
{{ 'a1'.isalnum() }} {{ 'a'.isalpha() }} {{ '1'.isdigit() }} {{ '²'.isdigit() }} {{ '½'.isnumeric() }} {{ '一'.isnumeric() }} {{ '²'.isdecimal() }} {{ '١'.isdecimal() }} {{ ' \t'.isspace() }} {{ ''.isspace() }} {{ 'aB'.islower() }} {{ 'a1'.islower() }} {{ '1'.islower() }} {{ 'A1'.isupper() }} {{ 'Ab Cd'.istitle() }} {{ 'AB'.istitle() }} {{ 'a_b1'.isidentifier() }} {{ '1a'.isidentifier() }} {{ 'é'.isascii() }} {{ 'a\n'.isprintable() }} {{ 'é_1'.isalnum() }} {{ 'ǅ'.isupper() }}
{{ 'a'.nosuch() }}
{{ 'a'.upper }}
{{ 'a'.upper(1) }}
{{ '%s' % 'a' }} {{ '%s %s' % ('a', 1) }} {{ '%d' % 3.7 }} {{ '%5d|%-5d|%05d|%+d|% d' % (1, 2, 3, 4, 5) }} {{ '%.2f %5.1f %e %g %G' % (3.14159, 2.25, 12345.678, 0.00001, 1e20) }} {{ '%x %X %o %#x %#o' % (255, 255, 8, 255, 8) }} {{ '%r %s' % ('a', none) }} {{ '%%' % () }} {{ '%(a)s %(b)d' % {'a': 'x', 'b': 2} }} {{ '%c%c' % (65, 'b') }} {{ '%s' % [1] }} {{ '%s' % {'a': 1} }} {{ '%.3s|%5s|%-5s|' % ('abcdef', 'a', 'b') }} {{ '%*d' % (5, 3) }} {{ '%s' % x }}| {{ '%.3d' % 5 }} {{ '%i' % true }} {{ '%s' % ((1, 2),) }}
{{ '%d' % 'a' }}
{{ '%s %s' % 'a' }}
{{ '%s' % (1, 2) }}
{{ '%(a)s' % 'x' }}
{{ '%(a)s' % {} }}
{{ '%z' % 1 }}
{{ '%' % 1 }}
{{ 'a' % 1 }}
{{ 'a' % {} }} {{ 'a' % [] }}
{{ '%s' % none }} {{ '%5.1f%%' % 99.5 }} {{ '%-10s|' % 'é' }}
{{ '{} {}'.format(1, 'a') }} {{ '{0} {1} {0}'.format('a', 'b') }} {{ '{name} {x[a]} {x[0]}'.format(name='n', x={'a': 1, 0: 2}) }} {{ '{:>5}|{:<5}|{:^5}|{:*^7}|'.format(1, 'a', 'b', 'c') }} {{ '{:.2f} {:,} {:_} {:05d} {:+} {:x} {:#x} {:b} {:e} {:%} {:.1%} {:g}'.format(3.14159, 1234567, 1234567, 42, 5, 255, 255, 5, 12345.678, 0.5, 0.25, 0.0001) }} {{ '{{}} {}'.format(1) }} {{ '{!r} {!s}'.format('a', 'b') }} {{ '{:{}}'.format('a', 5) }}| {{ '{:.3}'.format('abcdef') }} {{ '{}'.format(none) }} {{ '{}'.format([1]) }} {{ '{:d}'.format(true) }} {{ '{}'.format(true) }} {{ '{:10.3f}|'.format(2.0) }} {{ '{:,.2f}'.format(1234567.891) }} {{ '{:010}'.format(-5) }}
{{ '{}'.format() }}
{{ '{a}'.format() }}
{{ '{'.format() }}
{{ '}'.format() }}
{{ '{:d}'.format('a') }}
{{ '{:d}'.format(1.5) }}
{{ '{:s}'.format(1) }}
{{ '{:z}'.format(1) }}
{{ '{0} {}'.format(1, 2) }}
{{ '{a}'.format_map({'a': 1}) }} {{ '{.real}'.format(5) }}
{{ 'a'|upper }} {{ none|upper }} {{ 5|lower }} {{ 'hello world'|title }} {{ "it's a-b (c) [d] {e} <f"|title }} {{ 'hELLO'|capitalize }} {{ ' a '|trim }}| {{ 'xax'|trim('x') }} {{ 'a'|center(5) }}| {{ 'a b  c'|wordcount }} {{ "don't x_y"|wordcount }} {{ 'abc'|reverse }} {{ 'abc'|list }} {{ 'aXbX'|replace('X', 'y', 1) }} {{ 12|replace(1, 3) }}
{{ 'a\nb\n\nc'|indent }} {{ 'a\nb'|indent(2) }} {{ 'a\nb'|indent(2, true) }} {{ 'a\n\nb'|indent(2, blank=true) }} {{ 'a\nb'|indent('> ') }} {{ ''|indent(2, true) }}| {{ 'a\n'|indent }}| {{ 'a\nb'|indent(width=1, first=true) }}
{{ 5|indent }}
{{ 'hello world foo bar'|truncate(10) }} {{ 'hello world foo bar'|truncate(10, true) }} {{ 'hello world'|truncate(9, false, '..', 0) }} {{ 'short'|truncate(3) }} {{ 'hello world'|truncate(8, leeway=0) }} {{ 'a'|truncate(255) }}
{{ 'hello'|truncate(1) }}
{{ 'the quick brown fox jumps'|wordwrap(10) }} {{ 'aaaaaaaaaaaa bb'|wordwrap(5) }} {{ 'aaaaaaaaaaaa bb'|wordwrap(5, false) }} {{ 'a b\nc d'|wordwrap(3) }} {{ 'well-known thing'|wordwrap(6) }} {{ 'a b c'|wordwrap(3, wrapstring='|') }}
{{ '<p>a &amp; <b>b</b></p>\n c'|striptags }} {{ '<&">\''|e }} {{ '<'|escape|escape }} {{ '<'|forceescape }} {{ '<'|safe }} {{ ('<'|safe) + '<' }} {{ '<' + ('<'|safe) }} {{ ('<'|e) ~ '<' }} {{ '<'|e|upper }} {{ ('<'|safe)|length }} {{ ['<'|safe] }} {{ ('%s'|safe) % '<' }} {{ ('<'|safe) is string }} {{ '<' is escaped }} {{ ('<'|safe) is escaped }} {{ ('<'|safe).replace('<', '>') }} {{ ('a,b'|safe).split(',') }}
{{ 'a b/c?é=1&2'|urlencode }} {{ {'a b': 1, 'c': 'd/e'}|urlencode }} {{ [('a', 1)]|urlencode }} {{ 5|urlencode }}
{{ 1000|filesizeformat }} {{ 1|filesizeformat }} {{ 999|filesizeformat }} {{ 1500000|filesizeformat }} {{ 1024|filesizeformat(true) }} {{ '2048'|filesizeformat }}
{{ '%s-%s'|format(1, 2) }} {{ '%(a)s'|format(a=1) }} {{ '%s'|format('x') }}
{{ '%s'|format(1, a=2) }}
{{ -5|abs }} {{ (-5)|abs }} {{ (-5.5)|abs }} {{ true|abs }} {{ '42'|int }} {{ '42.9'|int }} {{ 'x'|int }} {{ 'x'|int(7) }} {{ none|int }} {{ [1]|int }} {{ '0x1f'|int(base=16) }} {{ '1f'|int(0, 16) }} {{ '0b11'|int(0, 2) }} {{ ' 12 '|int }} {{ '1_000'|int }} {{ '-5'|int }} {{ '+5'|int }} {{ '--5'|int }} {{ 3.99|int }} {{ -3.99|int }} {{ 1e20|int }} {{ '1e3'|int }} {{ true|int }} {{ '٣'|int }} {{ ''|int }} {{ 'inf'|int }}
{{ 'a'|abs }}
{{ '3.14'|float }} {{ 'x'|float }} {{ 'x'|float(1.5) }} {{ none|float }} {{ 3|float }} {{ '1e5'|float }} {{ 'inf'|float }} {{ 'nan'|float }} {{ ' 1_0.5 '|float }} {{ '0x10'|float }} {{ '.5'|float }} {{ '5.'|float }}
{{ 2.5|round }} {{ 3.5|round }} {{ 2.675|round(2) }} {{ 42.55|round(1) }} {{ 42.55|round(1, 'floor') }} {{ 42.51|round(1, 'ceil') }} {{ 1234|round(-2) }} {{ 1250|round(-2) }} {{ 1350|round(-2) }} {{ 1234.5|round(-2) }} {{ 5|round }} {{ -2.5|round }} {{ 42|round(0, 'ceil') }} {{ true|round }} {{ 0.5|round|int }}
{{ 'a'|round }}
{{ 1|round(0, 'x') }}
{{ [1, 2]|first }} {{ [1, 2]|last }} {{ []|first is defined }} {{ ''|last is defined }} {{ 'abc'|first }} {{ 'é😀'|last }} {{ {'a': 1, 'b': 2}|first }} {{ {'a': 1, 'b': 2}|last }} {{ range(3)|last }} {{ (1, 2)|first }} {{ {'a': 1}.items()|last }}
{{ []|first }}| {{ []|last }}|
{{ [] |first + 'a' }}
{{ ([]|first) + 'a' }}
{{ none|first }}
{{ 5|last }}
{{ [1, 2]|map('string')|last }}
{{ [1, 2]|length }} {{ 'é😀'|length }} {{ {'a': 1}|length }} {{ (1, 2)|count }} {{ ''|length }} {{ {'a': 1}.items()|length }}
{{ none|length }}
{{ 5|length }}
{{ [1]|map('string')|length }}
{{ [1, 'a', none, 1.0]|join }} {{ [1, 2]|join(', ') }} {{ 'abc'|join('-') }} {{ {'a': 1, 'b': 2}|join(',') }} {{ [{'n': 'x'}, {'n': 'y'}]|join(',', attribute='n') }} {{ [[1, 2], [3]]|join('|') }} {{ [1, 2]|join(0) }} {{ [{'a': {'b': 1}}]|join(attribute='a.b') }} {{ [[1, 2]]|join(attribute=1) }} {{ []|join(',') }}|
{{ none|join }}
{{ 5|join }}
{{ [3, 1, 2]|sort }} {{ [3, 1, 2]|sort(true) }} {{ ['b', 'A', 'a', 'C']|sort }} {{ ['b', 'A', 'a', 'C']|sort(case_sensitive=true) }} {{ [{'a': 2}, {'a': 1}]|sort(attribute='a') }} {{ [{'a': 1, 'b': 2}, {'a': 1, 'b': 1}]|sort(attribute='a,b') }} {{ 'bca'|sort }} {{ {'b': 1, 'a': 2}|sort }} {{ [1.5, 1, true]|sort }} {{ [(2, 'a'), (1, 'b')]|sort }} {{ [{'a': 1, 'i': 1}, {'a': 1, 'i': 2}]|sort(reverse=true, attribute='a') }}
{{ [1, 'a']|sort }}
{{ [none, 1]|sort }}
{{ [{}, {}]|sort }}
{{ {'b': 1, 'A': 2, 'a': 3, 'C': 0}|dictsort }} {{ {'b': 1, 'A': 2}|dictsort(true) }} {{ {'b': 1, 'A': 2}|dictsort(false, 'value') }} {{ {'b': 1, 'A': 2}|dictsort(by='value', reverse=true) }} {{ {'b': none}|dictsort }}
{{ {'b': none, 'a': 1}|dictsort(by='value') }}
{{ {'b': 1}|dictsort(by='x') }}
{{ [1]|dictsort }}
{{ {1: 2, 'a': 3}|dictsort }}
{{ [1, 1, 2, 'a', 'A']|unique|list }} {{ ['a', 'A']|unique(case_sensitive=true)|list }} {{ [{'a': 1}, {'a': 1}, {'a': 2}]|unique(attribute='a')|list }} {{ [1, 1.0, true]|unique|list }}
{{ [[1], [1]]|unique|list }}
{{ [1, 3, 2]|max }} {{ [1, 3, 2]|min }} {{ ['a', 'B']|max }} {{ ['a', 'B']|min(case_sensitive=true) }} {{ [{'a': 1}, {'a': 2}]|max(attribute='a') }} {{ []|max is defined }} {{ 'abc'|max }} {{ [1.5, 2]|min }}
{{ [1, 'a']|max }}
{{ [1, 2, 3]|sum }} {{ [1, 2.5]|sum }} {{ [{'a': 1}, {'a': 2}]|sum(attribute='a') }} {{ [1]|sum(start=10) }} {{ []|sum }} {{ [[1], [2]]|sum(start=[]) }} {{ [true, true]|sum }} {{ {1: 2, 3: 4}|sum }}
{{ ['a', 'b']|sum }}
{{ ['a', 'b']|sum(start='') }}
{{ [1, none]|sum }}
{{ [1, 2, 3, 4, 5]|batch(2)|list }} {{ [1, 2, 3]|batch(2, 'x')|list }} {{ []|batch(2)|list }} {{ [1, 2, 3, 4, 5]|slice(3)|list }} {{ [1, 2, 3, 4, 5]|slice(3, 'x')|list }} {{ 'abcde'|batch(2)|map('join')|list }}
{{ [{'k': 1, 'v': 2}, {'k': 2, 'v': 3}, {'k': 1, 'v': 4}]|groupby('k') }} {% for g, items in [{'k': 'b'}, {'k': 'a'}, {'k': 'B'}]|groupby('k') %}{{ g }}={{ items|length }} {% endfor %} {% for g in [{'k': 1}]|groupby('k') %}{{ g.grouper }}{{ g.list }}{% endfor %} {{ [{'k': 1}, {}]|groupby('k', default=0)|map('first')|list }} {{ [{'k': 'b'}, {'k': 'B'}]|groupby('k', case_sensitive=true)|map('first')|list }}
{{ {'a': 1}|items|list }} {{ x|items|list }} {{ [1, 2]|reverse|list }} {{ {'a': 1, 'b': 2}|reverse|list }} {{ (1, 2)|reverse|list }} {{ {'a': 1}|attr('items') is callable }} {{ {'a': 1}|attr('a') is defined }} {{ 'a'|attr('upper')() }}
{{ [1]|items|list }}
{{ [1, 2]|map('string')|list }} {{ ['a', 'b']|map('upper')|join }} {{ [{'a': 1}, {}]|map(attribute='a')|list }} {{ [{'a': 1}, {}]|map(attribute='a', default='d')|list }} {{ [{'a': {'b': [7]}}]|map(attribute='a.b.0')|list }} {{ ['a']|map('replace', 'a', 'b')|list }} {{ [[1, 2]]|map(attribute=0)|list }} {{ [[3, 1]]|map('sort', reverse=true)|list }} {{ none|map('upper')|list }} {{ []|map('nosuch')|list }} {{ [1, none]|map('default', 5)|list }} {{ [1, none]|map('default', 5, true)|list }}
{{ [1]|map('nosuch')|list }}
{{ [1]|map()|list }}
{{ [1]|map(attribute='a', foo=1)|list }}
{{ 5|map('string')|list }}
{{ [1, 2]|map('string')|tojson }}
{{ ([1, 2]|map('string'))[0] is defined }} {{ [1, 2]|map('string') is iterable }} {{ [1, 2]|map('string') is sequence }} {{ [1, 2]|map('string') is string }} {% set m = [1, 2]|map('string') %}{{ m|list }}{{ m|list }} {{ '1' in ([1, 2]|map('string')) }} {{ ([]|map('string')) and 'truthy' }}
{{ [0, 1, '', 'a', none]|select|list }} {{ [0, 1, '']|reject|list }} {{ [1, 2, 3]|select('odd')|list }} {{ [1, 2, 3, 4]|select('divisibleby', 2)|list }} {{ [1, 2, 3]|reject('equalto', 2)|list }} {{ [{'a': 0}, {'a': 1}]|selectattr('a')|list }} {{ [{'a': 0}, {'a': 1}, {}]|rejectattr('a')|list }} {{ [{'a': 1}, {'a': 2}]|selectattr('a', '>', 1)|list }} {{ [{'r': 'user'}, {'r': 'sys'}]|selectattr('r', 'equalto', 'user')|list }} {{ [{'r': 'user'}]|rejectattr('r', 'in', ['user'])|list }} {{ [{'a': {'b': 1}}]|selectattr('a.b', 'defined')|list }} {{ none|selectattr('x')|list }} {{ ['a', 'b']|select('in', 'a')|list }}
{{ [1]|select('nosuch')|list }}
{{ [1]|selectattr()|list }}
{{ [1, 'a']|select('>', 0)|list }}
{{ none|default('d') }} {{ none|default('d', true) }} {{ ''|default('d', boolean=true) }} {{ x.y|default('d') if x else 'no x' }} {{ {}.a|default('d') }} {{ x|default }}| {{ x|d(1, true) }} {{ 0|default(1) }} {{ x|default(default_value=2) }}
{{ x.y|default('d') }}
{{ {}.a.b|default('d') }}
{{ {'a': 1, 'b': [1, 2.0, none, true], 'é': "q\"\\\n\t\x01\x7f😀<&'"}|tojson }} {{ [1, {'a': 2}]|tojson(indent=2) }} {{ {'é': 'é😀\x7f'}|tojson(ensure_ascii=true) }} {{ {'b': 1, 'a': 2}|tojson(sort_keys=true) }} {{ [1, {'a': 2}]|tojson(separators=(',', ':')) }} {{ {1: 2, none: 3, true: 4, 1.5: 6}|tojson }} {{ (1, 2)|tojson }} {{ []|tojson(indent=2) }} {{ {}|tojson(indent=2) }} {{ [[]]|tojson(indent=1) }} {{ {'a': []}|tojson(indent=0) }} {{ 'a'|tojson(indent=4) }} {{ [1, 2]|tojson(indent='--') }} {{ [1e22, 1e-7, 123456789012345678901234567890, -0.0]|tojson }} {{ ('<'|safe)|tojson }} {{ {'a': 1}|tojson(indent=2, separators=(', ', ' : ')) }} {{ 'inf'|float|tojson }}
{{ {(1, 2): 3}|tojson }}
{{ {'a': 1}.items()|tojson }}
{{ range(3)|tojson }}
{{ namespace(a=1)|tojson }}
{{ {'b': 1, 1: 2}|tojson(sort_keys=true) }}
{{ [1]|tojson(nosuch=1) }}
{{ 1 is number }} {{ true is number }} {{ 1 is integer }} {{ true is integer }} {{ 1.0 is float }} {{ 'a' is string }} {{ [] is sequence }} {{ 'a' is sequence }} {{ {} is sequence }} {{ {} is mapping }} {{ [] is mapping }} {{ (1,) is sequence }} {{ 'a' is iterable }} {{ 5 is iterable }} {{ none is none }} {{ none is defined }} {{ true is boolean }} {{ 1 is boolean }} {{ 1 is true }} {{ true is true }} {{ false is false }} {{ 0 is false }} {{ range is callable }} {{ 'a' is callable }} {{ namespace() is mapping }} {{ {}.items() is sequence }} {{ {}.items() is iterable }} {{ range(2) is sequence }} {{ {}.items() is mapping }}
{{ 3 is odd }} {{ 3 is even }} {{ 4 is divisibleby 2 }} {{ 4 is divisibleby(3) }} {{ 'abc' is lower }} {{ 'ABC' is upper }} {{ 3 is in [1, 3] }} {{ 3 is not in [1, 3] }} {{ 1 is eq 1 }} {{ 1 is ne 2 }} {{ 1 is lt 2 }} {{ 2 is ge 2 }} {{ 2 is gt 1 }} {{ 2 is le 1 }} {{ 'a' is equalto 'a' }} {{ 2 is greaterthan 1 }} {{ 2 is lessthan 1 }} {{ 'upper' is filter }} {{ 'odd' is test }} {{ 'nosuch' is filter }} {{ none is sameas none }} {{ 1 is not none }} {{ not 1 is none }} {{ 1 is not number or 2 is number }} {{ 1.5 is odd }} {{ 'a' is in 'abc' }}
{{ 'a' is odd }}
{{ 1 is divisibleby 0 }}
{{ 1 is lt 'a' }}
{{ 5 is in 5 }}
{% for i in [1, 2, 3] %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.depth }}{{ loop.depth0 }}{{ loop.previtem }}{{ loop.nextitem }}{{ loop.cycle('a', 'b') }}{{ loop.changed(i // 2) }} {% endfor %}
{% for i in [1, 2] %}{{ loop }}{% endfor %} {% for i in [1, 2, 3]|select('odd') %}{{ loop.length }}{{ loop.last }}{{ loop.revindex }}{{ i }}{% endfor %} {% for i in [1, 2, 3, 4] if i is even %}{{ loop.index }}/{{ loop.length }}{{ loop.nextitem }} {% endfor %}
{% for i in [1, 2] %}{{ loop.nosuch is defined }}{{ loop.previtem is defined }}{{ loop.nextitem is defined }}{% endfor %}
{% for i in [1, 2] %}{{ loop.previtem + 1 }}{% endfor %}
{% for i in [] %}x{% else %}none{% endfor %} {% for i in x %}x{% else %}none{% endfor %} {% for i in [1] %}{% break %}{% else %}none{% endfor %} {% for i in [1, 2] if i > 5 %}x{% else %}none{% endfor %} {% for i in '' %}x{% else %}e{% endfor %}
{% for i in none %}{% endfor %}
{% for i in 5 %}{% endfor %}
{% for a, b in [(1, 2), [3, 4], 'xy'] %}{{ a }}{{ b }} {% endfor %}{% for a, (b, c) in [(1, (2, 3))] %}{{ a }}{{ b }}{{ c }}{% endfor %} {% for (a, b) in {'x': 1}.items() %}{{ a }}{{ b }}{% endfor %} {% for a, in [(1,)] %}{{ a }}{% endfor %}
{% for a, b in [1] %}{% endfor %}
{% for a, b in [(1, 2, 3)] %}{% endfor %}
{% for a, b in [(1,)] %}{% endfor %}
{% for k in {'a': 1, 'b': 2} %}{{ k }}{% endfor %} {% for k, v in {'a': 1}|items %}{{ k }}{{ v }}{% endfor %} {% for c in 'aé😀' %}[{{ c }}]{% endfor %} {% for i in range(3) %}{% for j in range(i) %}{{ loop.index }}{{ i }}{{ j }} {% endfor %}{% endfor %} {% for i in 1, 2, 3 %}{{ i }}{% endfor %}
{% for i in [1, 2, 3, 4] %}{% if i == 2 %}{% continue %}{% endif %}{% if i == 4 %}{% break %}{% endif %}{{ i }}{% endfor %} {% for i in [1, 2] %}{% for j in [1, 2] %}{% if j == 2 %}{% break %}{% endif %}{{ i }}{{ j }}{% endfor %}{% endfor %}
{% for x in [{'n': 1, 'c': [{'n': 2, 'c': [{'n': 3}]}]}] recursive %}{{ x.n }}{{ loop.depth }}{% if x.c %}({{ loop(x.c) }}){% endif %}{% endfor %}
{% for x in [1] %}{{ loop([1]) }}{% endfor %}
{% for x in [1, 2] %}{% set y = x %}{{ y }}{% endfor %}{{ y is defined }}{{ x is defined }} {% set y = 1 %}{% for x in [5] %}{{ y }}{% set y = x %}{{ y }}{% endfor %}{{ y }} {% set x = 'o' %}{% for x in [1] %}{{ x }}{% endfor %}{{ x }}
{% for i in [1, 2, 3] %}{% if i == 1 %}{% set z = i %}{% endif %}{{ z }}{{ z is defined }}{% endfor %} {% if true %}{% set w = 1 %}{% endif %}{{ w }} {% if false %}{% set v = 1 %}{% endif %}{{ v is defined }}
{% set ns = namespace(a=1) %}{% for i in [1, 2] %}{% set ns.a = ns.a + i %}{% set ns.b = i %}{% endfor %}{{ ns.a }}{{ ns.b }}{{ ns.c is defined }} {{ namespace({'x': 1}, y=2).x }} {{ namespace(a=1) }} {{ namespace().items is defined }}
{% set ns = {} %}{% set ns.a = 1 %}
{% set ns = namespace(_a=1) %}
{% set ns = namespace() %}{% set ns._a = 1 %}
{% set a, b = 1, 2 %}{{ a }}{{ b }} {% set a, b = b, a %}{{ a }}{{ b }} {% set a = 1, %}{{ a }} {% set (a, b) = [3, 4] %}{{ a }}{{ b }} {% set a = b = 1 %}
{% set a, b = 'xy' %}{{ a }}{{ b }} {% set x = 1 if false %}{{ x is defined }} {% set a %}text {{ 1 + 1 }}{% endset %}{{ a }} {% set a | upper %}text{% endset %}{{ a }} {% set a | replace('t', 'x') | upper %}text{% endset %}{{ a }}
{% set a, b = 1 %}
{% set a, b = 1, 2, 3 %}
{% macro m(a, b=2, c='x') %}[{{ a }}{{ b }}{{ c }}]{% endmacro %}{{ m(1) }}{{ m(1, 3) }}{{ m(1, c='y') }}{{ m(b=5, a=4) }}{{ m() }}{{ m(*[7, 8]) }}{{ m(**{'a': 9}) }}
{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, 2) }}
{% macro m(a) %}{{ a }}{% endmacro %}{{ m(b=2) }}
{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, a=2) }}
{% macro m(a, b=a) %}{{ a }}{{ b }}{% endmacro %}{{ m(1) }} {% macro v(a) %}{{ a }}{{ varargs }}{{ kwargs }}{% endmacro %}{{ v(1, 2, 3, x=4) }} {{ v.name }}{{ v.arguments }}{{ v.catch_kwargs }}{{ v.catch_varargs }}{{ v.caller }} {{ v }}
{% macro m() %}{{ a + 1 }}{% endmacro %}{{ m() }}
{% macro m(a) %}{{ a + 1 }}{% endmacro %}{{ m() }}
{% set y = 5 %}{% macro f() %}{{ y }}{% endmacro %}{% set y = 6 %}{{ f() }} {% macro a() %}{{ b() }}{% endmacro %}{% macro b() %}B{% endmacro %}{{ a() }} {% macro f() %}{% set q = 1 %}{{ q }}{% endmacro %}{{ f() }}{{ q is defined }} {% for i in [1, 2] %}{% macro g() %}{{ i }}{% endmacro %}{{ g() }}{% endfor %} {{ g is defined }}
{% macro r(n) %}{{ n }}{% if n > 0 %}{{ r(n - 1) }}{% endif %}{% endmacro %}{{ r(3) }} {% macro o() %}{% macro i() %}I{% endmacro %}{{ i() }}{% endmacro %}{{ o() }} {% macro e() %}  {% endmacro %}[{{ e() }}]{{ e()|length }}
{% macro m(t) %}<{{ t }}>{{ caller() }}</{{ t }}>{% endmacro %}{% call m('b') %}in{% endcall %} {% macro l(xs) %}{% for x in xs %}{{ caller(x, loop.index) }}{% endfor %}{% endmacro %}{% call(x, i) l([5, 6]) %}{{ i }}:{{ x }} {% endcall %}
{% macro m() %}x{% endmacro %}{% call m() %}y{% endcall %}
{% macro m() %}{{ caller() }}{% endmacro %}{{ m() }}
{% filter upper %}abc {{ 1 }} {% for i in [1] %}x{% endfor %}{% endfilter %} {% filter replace('a', 'b') | upper %}aa{% endfilter %} {% filter indent(2) %}a⏎b{% endfilter %}
{% with a = 1, b = 2 %}{{ a }}{{ b }}{% set c = 3 %}{{ c }}{% endwith %}{{ a is defined }}{{ c is defined }} {% set a = 5 %}{% with a = 1, b = a %}{{ b }}{% endwith %} {% with %}{% set q = 1 %}{{ q }}{% endwith %}{{ q is defined }}
{% raw %}{{ x }}{% if %}{% endraw %} {%- raw -%}  a  {%- endraw -%}  b {% raw %}⏎ x ⏎{% endraw %}⏎c
{# comment #}a{#- x -#} b {#+ y +#} c⏎  {# z #}⏎d
{% generation %}gen{{ 1 }}{% set gq = 1 %}{% endgeneration %}{{ gq is defined }} {% block foo %}in{% endblock %} {% block bar %}b{% endblock bar %} {% print 1, 'a' %} {% if 1: %}y{% endif %}
{% set c = cycler('a', 'b') %}{{ c.next() }}{{ c.next() }}{{ c.next() }}{{ c.current }}{{ c.reset() }}{{ c.current }} {% set j = joiner(', ') %}{% for i in [1, 2, 3] %}{{ j() }}{{ i }}{% endfor %}
{% if 0 %}a{% elif 1 %}b{% else %}c{% endif %} {% if x %}a{% else %}b{% endif %} {% if [] %}a{% endif %}|{% if 'a' in 'abc' and not x %}y{% endif %} {% if 1, %}t{% endif %}
{{ raise_exception('no') }}
{{ raise_exception(1 ~ 'a') }}
{% if 0 %}{{ raise_exception('no') }}{% endif %}ok
{{ strftime_now('%Y')|length }} {{ strftime_now('%d %b %Y')|length }} {{ strftime_now('%H:%M:%S')|length }} {{ strftime_now('%%') }} {{ strftime_now('abc') }} {{ strftime_now('%Y-%m-%d')|length }} {{ strftime_now('%B') is string }}
   {% if 1 %}⏎  a⏎   {% endif %}⏎ b
a {%- if 1 -%} b {%- endif -%} c
  {%+ if 1 %}a{% endif +%}⏎b
a⏎⏎{% set x = 1 %}⏎⏎{{ x }}⏎{{- x -}}⏎ c ⏎
⏎⏎  {{ 1 }}  ⏎⏎
{% for i in [1, 2] %}⏎  {{ i }}⏎{% endfor %}⏎end⏎
{% for i in [1, 2] -%}⏎  {{ i }}⏎{%- endfor %}⏎end
{{ '{{' }} {{ '}}' }} {{ "{% x %}" }} {{ {'a': {'b': 1}} }} {{ {'a': {}}}} {{ [{}] }}
{{- 1 }} {{ 2 -}} 3 {{- ' ' -}} 4
{%set x=1%}{{x}}{%if x%}y{%endif%}{{x+1}}{{x-1}}{{-x}}{{x*-1}}{{ - 1 }}{{ +1 }}{{ --1 }}{{ 2--1 }}
{{ (1 + 2) * 3 }} {{ 1 + 2 * 3 }} {{ 10 - 2 - 3 }} {{ 2 * 3 % 4 }} {{ not 1 == 2 }} {{ 1 if 1 == 1 and 2 > 1 or 0 else 2 }} {{ -5|abs }} {{ 'a'|upper ~ 'b' }} {{ 1 + '2'|int }} {{ [1, 2]|length > 1 }} {{ 'a' ~ 'b'|upper }} {{ 5 is odd and 4 is even }} {{ 3 - -2 }} {{ 2 ** -1 * 4 }} {{ not x is defined }} {{ x is not defined }}
{{ 1 + }}
{{ * 1 }}
{{ a b }}
{{ [1, 2 }}
{{ 'a' | }}
{{ x. }}
{{ 1 is }}
{{ f(a=) }}
{{ {1, 2} }}
{{ if }}
{{ x if }}
{% if %}{% endif %}
{% for %}{% endfor %}
{% for x of [1] %}{% endfor %}
{% set %}
{% set 1 = 2 %}
{% endfor %}
{% if 1 %}
{% for i in [1] %}{% if 1 %}{% endfor %}{% endif %}
{% unknown %}
{{ 'abc }}
{# abc
{% raw %} abc
{{ 1 }
{{ x | nosuch }}
{{ x is nosuch }}
{% if false %}{{ 1 | nosuch }}{% endif %}ok
{% if true %}{{ 1 | nosuch }}{% endif %}
{{ (1 | nosuch) if false else 2 }}
{{ 'a' is string if 1 }}
{{ "unterminated }}
{{ a.b.c is defined }}
{{ lipsum is defined }} {{ self is defined }} {{ loop is defined }} {{ caller is defined }}
{% set loop = 1 %}{{ loop }} {% set range = 2 %}{{ range }} {% set namespace = 3 %}{{ namespace }} {% set filter = 4 %}{{ filter }} {% set items = 5 %}{{ items }} {% set call = 6 %}{{ call }}
{{ [1, 2, 3,] }} {{ (1, 2,) }} {{ {'a': 1,} }} {{ [] }} {{ () }} {{ dict() }} {{ ((1)) }} {{ [[1, [2]], (3, (4,))] }}
{{ true and 'a' or 'b' }} {{ none or false }} {{ 0 or '' or 'x' }} {{ [] and 1 }}
{{ none.x is none }} {{ none[0] is defined }} {{ true.x is defined }} {{ 1[0] is defined }} {{ 'abc'['upper']() }} {{ {'a': 1}['a'] }} {{ [1, 2]['index'](2) }} {{ 'abc'.0 }}
{{ 'a'.join(['b', 'c'])|upper }} {{ ('a' ~ 1).upper() }} {{ [1, 2, 3]|map('string')|join('-')|upper }} {{ {'a': {'b': {'c': 1}}}.a.b.c }} {{ {'a': [1, {'b': 2}]}['a'][1].b }} {{ 'x'.upper().lower().strip() }}
{{ 0.1 + 0.2 }} {{ 1e100 }} {{ 1.0 }} {{ 100000000000000000000.0 }} {{ 1e15 }} {{ 123456789.123 }} {{ 0.0001 }} {{ 0.00001 }} {{ -0.0 }} {{ 1e16 }} {{ 5e-324 }} {{ 1.7976931348623157e308 }} {{ 1 / 3 }} {{ 2 / 1 }} {{ 1e400 }} {{ -1e400 }} {{ 1e400 - 1e400 }} {{ 3.0 * 2 }} {{ 7 // 2.0 }} {{ 2.5 % 1 }}
{{ 10 // 3 * 3 + 10 % 3 }} {{ -10 // 3 * 3 + -10 % 3 }} {{ 1.5 // 0.5 }} {{ -1.5 // 1 }} {{ 5 % 3.5 }} {{ -5 % 3.5 }} {{ 10 ** -2 }} {{ 0 ** 0 }} {{ (-8) ** 2 }} {{ 12345678901234567890 // 7 }} {{ 12345678901234567890 % 7 }} {{ -12345678901234567890 // 7 }} {{ 12345678901234567890 / 3 }}
{{ 0 ** -1 }}
{{ 2.0 ** 10000 }}
{{ 'x' ~ ('a', 1) ~ {'k': 'v'} }} {{ 'é' ~ 'ü' }} {{ "tab\there" }} {{ 'nul\x00'|length }}
{{ [1, 2, 3]|sum / [1, 2, 3]|length }} {{ (messages or [])|length }} {{ 'a' in ['a'] and 'b' not in ['a'] }}
{{ [3, 1, 2]|sort|reverse|list|first }} {{ ['x', 'y']|map('upper')|map('lower')|list }} {{ [[1, 2], [3, 4]]|map('last')|sum }} {{ [{'a': [1, 2]}, {'a': [3]}]|map(attribute='a')|map('length')|list }} {{ 'a b c'.split()|map('capitalize')|join(' ') }}
""".strip("\n")


def main():
    out, *files = sys.argv[1:]
    templates = []
    for line in EXPRESSIONS.split("\n"):
        single = re.findall(r"\{\{.*?\}\}(?=[ |]|$)", line)
        templates += single if "{%" not in line and "⏎" not in line and len(single) > 1 else [line.replace("⏎", "\n")]
    for name in files:
        with open(name, encoding="utf-8") as f:
            templates += f.read().splitlines()
    env = chat_golden.environment()
    errors = 0
    with open(out, "w", encoding="utf-8") as f:
        for source in templates:
            line = {"source": source}
            try:
                line["render"] = env.from_string(source).render()
                if " at 0x" in line["render"]:
                    continue  # an address, another each time
            except Exception as e:
                line["error"] = f"{type(e).__name__}: {e}"
                errors += 1
            f.write(json.dumps(line, ensure_ascii=False) + "\n")
    print(f"{len(templates)} templates, {errors} errors")


if __name__ == "__main__":
    main()
