"""Writes cases.json: small templates, and what transformers' environment of jinja2 makes of each.

    python3 make_cases.py       # needs transformers and jinja2

A case is a template and the text, or null where jinja2 refuses. A template that begins with "?" is one that this
package does not have to render: it may refuse by name, and must not render anything else.
"""

import datetime
import itertools
import json
import pathlib

from transformers.utils import chat_template_utils

NOW = datetime.datetime(2025, 3, 7, 14, 5, 9, 123456)

VARIABLES = {
    "n": 7, "neg": -3, "zero": 0, "f": 2.5, "big": 123456789012345678901234567890, "tiny": 1e-07, "t": True, "nul": None,
    "s": "Hello, World", "u": "Grüße, Ünïcode 😀 ß", "empty": "", "ws": "  \t two  words \n", "html": "<a href=\"x\">'&'</a>",
    "lines": "one\ntwo\n\nthree\r\nfour\x0bfive", "list": [3, 1, 2], "words": ["b", "A", "c", "a", "B"], "mixed": [1, "a", None],
    "nested": [[1, [2, 3]], {"k": [True, None]}], "none_list": [], "d": {"z": 1, "a": "x", "M": [1, 2], "items": 5, "pop": 6},
    "users": [{"name": "Zoë", "age": 30, "city": "Bern"}, {"name": "adam", "age": 25, "city": "bern"},
              {"name": "Bob", "age": 30, "tags": ["x"]}],
    "control": "\x00\x1b\x7f\x85\u2028\"\\/", "digits": "0123456789", "tree": [{"v": 1, "c": [{"v": 2, "c": [{"v": 3}]}]}, {"v": 4}],
}

VALUES = ["n", "neg", "f", "t", "nul", "s", "u", "empty", "list", "none_list", "d", "missing", "big", "(1, 2)", "range(3)", "d.items()", "words|map('upper')"]

SOURCES = []


def add(*sources):
    SOURCES.extend(sources)


def expressions(*parts):
    add(*("{{ " + part + " }}" for part in parts))


def text_and_blocks():
    add("", "\n", "a\n", "a\n\n", "a\r\nb\rc\n", "{{ s }}\n", "{{ s }}\n\n", " {{- s -}} \n x", "  {{ s }}  ",
        "a\n  {% if t %}\n  b\n  {% endif %}\nc", "a  {% if t %}  b  {% endif %}  c", "a\n  {%+ if t %}\nb\n  {%+ endif +%}\nc",
        "a\n {%- if t -%}\n b \n{%- endif -%}\n c", "{# c #}\nx", "  {# c #}\nx", "a {#- c -#}  b", "a{# {{ s }} {% x #}b", "{#+ c +#}\nx", "{#-#}x",
        "{% raw %}{{ s }}{% endraw %}", "x\n  {%- raw -%}  {{ a }}\n  {%- endraw -%}  y", "{% raw %}\n{% if %}\n{% endraw %}\nx", "{%+ raw %} a {%+ endraw +%}\nx", "  {% raw %} a {% endraw %}\n  b",
        "{% raw %}", "{# open", "{{ open", "{% if t %}", "{% endif %}", "{% bad %}", "{{ }}", "{{ 'a }}", "{% if t %}x{% else %}", "{{ s } }", "{{ (s }}", "{{ s) }}", "{{ [1} }}",
        "{{ '}}' }}", "{{ {'a': {'b': 1}} }}", "{{ {'a': {'b': 1}}}}", "{{ '%}' }}{% set x = '%}' %}{{ x }}", "{{ 'a' 'b' \"c\" }}", "{{ 'a\\n\\t\\\\\\'\\x41\\u00e9\\U0001F600\\101\\q' }}",
        "a { b } c {", "{ {s} }", "{{s}}{{-n}}{{n-}} x", "\ufeffx", "x{{ '\n' }}y", "{{ 1 }}\n{{ 2 }}\n{% set a = 1 %}\n{{ a }}", "{%set x=1%}{{x}}", "{% set x = 1 -%}   y{{ x }}",
        "{% if t %}{# c #}{% endif %}\n\n{% if t %}\n\ny{% endif %}", "   {% set a = 1 %}   {% set b = 2 %}\nx", "\t{% set a = 1 %}\nx", "a\n\t \t{% set a = 1 %}\tx", "{{ s }}  {% if t %}\nx{% endif %}",
        "{% if t: %}x{% endif %}", "{% print 1, s %}", "{% print s %}x", "{% generation %}a{% set q = 1 %}{% endgeneration %}b{{ q }}", "{{ s -}}\n\n x", "{{- -1 }}", "{{ +1 }}{{ -f }}{{ --n }}{{ -(-n) }}")


def control():
    add("{% if n %}a{% elif s %}b{% else %}c{% endif %}", "{% if zero %}a{% elif s %}b{% else %}c{% endif %}", "{% if zero %}a{% elif empty %}b{% else %}c{% endif %}",
        "{% if missing %}a{% elif nul %}b{% elif list %}d{% endif %}", "{% if n == 7 and s %}y{% endif %}", "{% if not t %}a{% endif %}b", "{% if 1, %}x{% endif %}",
        "{% for x in list %}{{ x }}{% endfor %}", "{% for x in list %}{{ x }},{% else %}none{% endfor %}", "{% for x in none_list %}{{ x }}{% else %}none{% endfor %}", "{% for x in missing %}{{ x }}{% else %}none{% endfor %}",
        "{% for x in list if x > 1 %}{{ loop.index }}/{{ loop.length }}:{{ x }} {% endfor %}", "{% for x in list if x > 9 %}a{% else %}b{% endfor %}", "{% for c in u %}{{ c }}|{% endfor %}", "{% for k in d %}{{ k }} {% endfor %}",
        "{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}", "{% for (k, v) in d|dictsort %}{{ k }}={{ v }};{% endfor %}", "{% for a, (b, c) in [(1, (2, 3))] %}{{ a }}{{ b }}{{ c }}{% endfor %}", "{% for a, b in [[1]] %}{% endfor %}",
        "{% for x in n %}{% endfor %}", "{% for x in nul %}{% endfor %}", "{% for x in 1, 2 %}{{ x }}{% endfor %}", "{% for x in list recursive %}{{ x }}{% endfor %}", "{% for a, b in ['xy', 'zw'] %}{{ b }}{% endfor %}",
        "{% for x in list %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.depth }}{{ loop.depth0 }} {% endfor %}",
        "{% for x in list %}[{{ loop.previtem }}<{{ x }}>{{ loop.nextitem }}]{% endfor %}", "{% for x in list %}{{ loop.previtem is defined }}{{ loop.nextitem is defined }}{% endfor %}", "{% for x in list %}{{ loop.cycle('a', 'b') }}{% endfor %}",
        "{% for x in [1, 1, 2, 2, 1] %}{{ loop.changed(x) }}{% endfor %}", "{% for x in words|map('upper') %}{{ x }}{{ loop.length }}{{ loop.revindex }}{{ loop.last }} {% endfor %}", "{% for x in words|select %}{% if loop.last %}{{ x }}{% endif %}{% endfor %}",
        "{% for x in list %}{% if x == 1 %}{% break %}{% endif %}{{ x }}{% endfor %}", "{% for x in list %}{% if x == 1 %}{% continue %}{% endif %}{{ x }}{% endfor %}", "{% for x in list %}{% for y in list %}{% if y == 1 %}{% break %}{% endif %}{{ x }}{{ y }} {% endfor %}{% else %}no{% endfor %}",
        "{% for x in tree recursive %}{{ loop.depth }}{{ x.v }}({{ loop(x.c) if x.c }}){% endfor %}", "{% for x in list %}{{ loop(list) }}{% endfor %}", "{% for x in list %}{% set outer = loop %}{% for y in words %}{{ outer.index }}{{ loop.index }} {% endfor %}{% endfor %}",
        "{% set x = 1 %}{% for y in list %}{{ x }}{% set x = y %}{{ x }}{% endfor %}{{ x }}", "{% for y in list %}{% set z = y %}{% endfor %}{{ z }}", "{% if t %}{% set z = 1 %}{% endif %}{{ z }}", "{% for y in list %}{{ z }}{% set z = y %}{% endfor %}",
        "{% set ns = namespace(a=1, b='x') %}{% for y in list %}{% set ns.a = ns.a + y %}{% endfor %}{{ ns.a }}{{ ns.b }}{{ ns.c }}{{ ns['a'] }}", "{% set ns = namespace() %}{% set ns.x = 1 %}{{ ns.x }}{{ ns }}", "{% set ns = namespace({'a': 1}, b=2) %}{{ ns.a + ns.b }}",
        "{% set d.x = 1 %}", "{% set q.x = 1 %}", "{% set ns = namespace() %}{% set ns._x = 1 %}", "{% set ns = namespace(_x=1) %}", "{% set a, b = 1, 2 %}{{ a }}{{ b }}", "{% set a, b = [3, 4] %}{{ a }}{{ b }}", "{% set a = 1, 2 %}{{ a }}", "{% set a, = [1] %}{{ a }}", "{% set a, b = 1 %}",
        "{% set ns = namespace() %}{% set ns.a, b = 1, 2 %}{{ ns.a }}{{ b }}", "{% set x %}a{{ n }}{% endset %}{{ x }}{{ x is string }}", "{% set x | upper %}abc{% endset %}{{ x }}", "{% set x | replace('a', 'b') | upper %}abc{% endset %}{{ x }}", "{% set x %}{% set y = 1 %}{{ y }}{% endset %}{{ x }}{{ y }}",
        "{% filter upper %}a{{ s }}b{% endfilter %}", "{% filter replace('a', 'b')|upper %}a{{ s }}{% endfilter %}", "{% with a = 1, b = n %}{{ a }}{{ b }}{% endwith %}{{ a }}", "{% with %}{% set a = 1 %}{{ a }}{% endwith %}{{ a }}", "{% set a = 5 %}{% with a = 1, b = a %}{{ a }}{{ b }}{% endwith %}{{ a }}",
        "{% set true = 1 %}", "{% set 1 = 2 %}", "{% for loop in list %}{% endfor %}", "{% set loop = 1 %}{{ loop }}", "{% for x in list %}{% set loop = 1 %}{% endfor %}", "{% set x = y = 1 %}", "{% set %}", "{% for %}{% endfor %}", "{% for x list %}{% endfor %}", "{% if %}{% endif %}",
        "{% if t %}{% for x in list %}{% if x == 2 %}{{ x }}{% endif %}{% endfor %}{% endif %}", "{% for x in range(5) %}{{ x }}{% endfor %}", "{% for x in range(5, 0, -2) %}{{ x }}{% endfor %}", "{% for x in range(0) %}{% else %}e{% endfor %}", "{% for x in range(100001) %}{% endfor %}", "{{ range(1, 2, 0) }}",
        "{% for x in words|sort %}{{ x }}{% endfor %}", "{% for a in list for b in list %}{% endfor %}", "{% for x in list %}{{ x }}{% if not loop.last %}, {% endif %}{% endfor %}", "{% for m in users if m.age > 26 %}{{ m.name }}{% if loop.first %}!{% endif %}{% endfor %}")
    add("?{% block a %}x{% endblock %}", "?{% include 'a' %}", "?{% extends 'a' %}", "?{% import 'a' as b %}", "?{% from 'a' import b %}", "?{% autoescape true %}{{ html }}{% endautoescape %}", "{% do 1 %}", "{% trans %}x{% endtrans %}")


def macros():
    add("{% macro m(a, b=2) %}{{ a }}-{{ b }};{% endmacro %}{{ m(1) }}{{ m(1, 3) }}{{ m(b=4, a=5) }}{{ m() }}", "{% macro m(a) %}x{% endmacro %}{{ m(1, 2) }}", "{% macro m(a) %}x{% endmacro %}{{ m(c=2) }}", "{% macro m(a) %}x{% endmacro %}{{ m(1, a=2) }}",
        "{% macro m(a, b=a) %}{{ a }}{{ b }}{% endmacro %}{{ m(1) }}", "{% macro m(a=b, b=1) %}{{ a }}{{ b }}{% endmacro %}{{ m() }}", "{% macro m() %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 'a', x=2) }}", "{% macro m(a) %}{{ a }}{{ caller() }}{% endmacro %}{% call m(1) %}body{{ n }}{% endcall %}",
        "{% macro m() %}{{ caller(1, 2) }}{% endmacro %}{% call(a, b=5) m() %}{{ a }}{{ b }}{% endcall %}", "{% macro m() %}x{% endmacro %}{% call m() %}y{% endcall %}", "{% macro m() %}{{ caller() }}{% endmacro %}{{ m() }}", "{% macro m() %}{{ caller is defined }}{% endmacro %}{{ m() }}",
        "{% set x = 1 %}{% macro m() %}{{ x }}{% set x = 2 %}{{ x }}{% endmacro %}{{ m() }}{{ x }}", "{% macro m() %}{{ y }}{% endmacro %}{% set y = 3 %}{{ m() }}", "{% macro m(n) %}{% if n > 0 %}{{ n }}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(3) }}", "{{ m }}{% macro m() %}{% endmacro %}", "{% macro m() %}{% endmacro %}{{ m }}{{ m.name }}",
        "{% macro m() %}a{% endmacro %}{{ m() + 'b' }}{{ m()|length }}{{ m() is string }}", "{% for x in list %}{% macro m() %}{{ x }}{% endmacro %}{{ m() }}{% endfor %}", "{% macro m(l) %}{% for i in l %}{{ loop.index }}{% endfor %}{% endmacro %}{% for x in list %}{{ m(list) }}{% endfor %}", "{% macro m(a, a) %}{% endmacro %}",
        "{% macro m(a=1, b) %}{% endmacro %}", "{% macro m(*a) %}{% endmacro %}", "{% call n %}{% endcall %}", "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(*[1]) }}{{ m(**{'a': 2}) }}{{ m(*list) }}", "{% macro a() %}{{ b() }}{% endmacro %}{% macro b() %}B{% endmacro %}{{ a() }}", "{% if t %}{% macro m() %}x{% endmacro %}{% endif %}{{ m() }}",
        "{% macro outer() %}{% macro inner() %}i{% endmacro %}{{ inner() }}{% endmacro %}{{ outer() }}{{ inner is defined }}", "{% macro m(x) %}  {{ x }}  {% endmacro %}[{{ m('a') | trim }}]", "{% macro m() %}{{ ns.a }}{% set ns.a = 9 %}{% endmacro %}{% set ns = namespace(a=1) %}{{ m() }}{{ ns.a }}",
        "{% macro m(caller) %}{{ caller }}{% endmacro %}{{ m(1) }}", "{% macro m() %}{% break %}{% endmacro %}{{ 1 }}{{ t and m }}" if False else "{{ 1 }}")


def operators():
    expressions("1 + 2 * 3 - 4 / 2", "7 // 2", "-7 // 2", "7 % 3", "-7 % 3", "7 % -3", "2 ** 10", "2 ** -1", "2 ** 3 ** 2", "-2 ** 2", "7.5 // 2", "-7.5 // 2", "7.5 % 2", "-7.5 % 2", "7.5 % -2", "1 / 3", "6 / 3", "1e3", "1e16", "1e15", "1.5e-5", "0.0001", "0.00001",
                "100000000000000000000", "9223372036854775807 + 1", "big * big", "big // 7", "big % 7", "-big % 7", "big / 3", "big == big + 0", "0.1 + 0.2", "1_000", "0x1F", "0b101", "0o17", "1.0", "5 // 0", "5 % 0", "5 / 0", "2.5 // 0", "t + t", "t * 3", "-t", "t / 2", "1 == 1.0", "t == 1", "zero == false",
                "1 < 2 < 3", "1 < 3 < 2", "3 > 2 >= 2 != 1", "'a' < 'b'", "[1, 2] < [1, 3]", "(1, 2) == (1, 2)", "[1] == (1,)", "1 < 'a'", "nul < 1", "'a' in 'abc'", "'x' not in s", "1 in list", "'a' in d", "1 in d", "nul in mixed", "1 in 'a'", "missing in list", "missing in s", "1 in missing", "1 in 5", "list in d", "'a' in d.keys()", "1 in d.values()", "('z', 1) in d.items()",
                "1 and 2", "0 and 2", "0 or 'x'", "'' or nul or []", "not 0", "not not s", "not 1 == 2", "n is not none and n > 3", "s ~ n ~ nul ~ f ~ t ~ missing ~ list", "1 ~ 2 + 3", "1 + 2 ~ 3", "'a' * 3", "3 * 'ab'", "[1] * 2", "'a' * -1", "(1,) + (2,)", "[1] + [2, 3]", "'a' + 1", "1 + 'a'", "[1] + (2,)", "'a' + nul", "'a' + missing", "missing + 1", "-missing", "-s", "missing == missing2", "missing == nul", "missing != 1", "missing < 1",
                "'y' if t else 'n'", "'y' if zero else 'n'", "'y' if zero", "('y' if zero else 'n') ~ 'x'", "1 if t else 2 if t else 3", "(1 if zero else 2) if t else 3", "'a' if t else b.c.d", "s if s is defined and s else 'x'", "'%s-%d' % ('a', 3)", "'%s' % list", "'%5.2f|%-5s|%05d|%x|%X|%o|%e|%g|%c|%%' % (f, 'a', n, 255, 255, 8, 12345.678, 0.00001, 'z')", "'%r' % s", "'%(a)s %(z)05d' % d", "'%s' % (1, 2)", "'%s %s' % 1", "'%d' % 'a'", "'%d' % 2.9", "'%i%%' % n", "'% d|%+d|%#x' % (1, 2, 255)", "'%.3s' % 'abcdef'", "'%*d' % (5, 3)", "'%z' % 1", "'%' % 1", "'abc' % 1", "'abc' % ()", "'abc' % []", "'%s' % nul", "'%s' % missing", "'%g %g %g %G' % (100000.0, 1000000.0, 1e-10, 1e20)", "'%10s|%-10s|' % ('ü', 'ß')")
    for a, b in itertools.product(VALUES, VALUES):
        expressions(f"({a}) == ({b})")
    for a in VALUES:
        expressions(f"({a}) + 1", f"({a}) * 2", f"({a}) ~ ''" if "map" not in a and "range" not in a else "1", f"not ({a})", f"({a}).foo", f"({a})['foo']", f"({a})[0]", f"(({a})[1:])|list", f"({a})()", "1" if "range" in a else f"({a}) if ({a}) else 'no'", f"({a}) < 2", f"2 in ({a})", f"({a})|tojson")


def subscripts():
    expressions("list[0]", "list[-1]", "list[5]", "list['a']", "list[1.0]", "list[t]", "list.0", "list.9", "nested.0.1.0", "s[0]", "s[-1]", "u[2]", "u[-1]", "s[99]", "d.z", "d['z']", "d.nope", "d['nope']", "d.nope.x", "d.items", "d['items']", "d.pop", "d['pop']", "d.pop('z')", "list.append(1)", "d.update({'a': 1})", "d.setdefault('q', 1)", "list.sort()", "list.append is defined", "d.clear is defined",
                "list[1:]", "list[:1]", "list[:-1]", "list[::-1]", "list[::2]", "list[-2:]", "list[5:]", "list[3:1]", "list[1:99:2]", "s[1:4]", "s[::-1]", "u[3:7]", "u[::-2]", "u[-3:]", "s[:-3]", "(1, 2, 3)[1:]", "range(10)[2:5]|list", "range(10)[::3]|list", "range(5)[1]", "range(5)[-1]", "list[::0]", "list['a':]", "list[nul:nul]", "nul[1:]", "d[1:]", "missing[1:]", "n[0]", "nul.x", "nul['x']", "missing.x", "missing['x']", "s.nope", "n.nope", "nested[1].k[0]", "nested[0][1][1]", "d[list]", "d[nul]", "list[list[1:2][0]]", "s[s[1:2]]", "d['xz'[1:2]]", "list[list[1:2]]", "{range(3): 1}[range(0, 3)]", "{1: 'a', 1.0: 'b', True: 'c'}", "{'a': 1, 'a': 2}", "{nul: 1, (1, 2): 2}", "{list: 1}", "{1: 'a'}[1.0]", "[1, 'a', nul, [2], (3,), {'k': 1.5}]", "()", "(1,)", "[]", "{}", "[1,]", "{'a': 1,}", "(1, 2,)", "s.__class__", "d.__class__", "s.__class__.x", "list.__len__()", "d._x", "s._x",
                "d.get('z')", "d.get('q')", "d.get('q', 5)", "d.get('q', default=5)", "d.keys()|list", "d.values()|list", "d.items()|list", "d.keys()", "d.values()", "d.items()", "d.items()|length", "d.keys()[0]", "d.copy()", "dict(a=1, b=2)", "dict({'x': 1}, y=2)", "dict([('a', 1), ('b', 2)])", "dict(d, z=5)", "dict([1])", "dict.fromkeys", "list.index(1)", "list.count(1)", "list.index(9)", "list.copy()", "list.copy(1)", "(1, 2, 1).count(1)", "s.upper", "'abc'['upper']()", "d.items().x", "users[0].name", "users[0]['name']", "users[9].name", "users.0.name", "list|attr('append')", "d|attr('z')", "d|attr('keys')", "s|attr('upper')")


def methods():
    expressions("s.upper()", "s.lower()", "u.upper()", "u.lower()", "u.title()", "s.title()", "\"they're bill's\".title()", "u.capitalize()", "'ßa'.capitalize()", "'ǆ'.title()", "s.swapcase()", "u.swapcase()", "ws.strip()", "ws.lstrip()", "ws.rstrip()", "'xxaxx'.strip('x')", "'abcba'.strip('ab')", "'\\x1c\\u2003a\\u3000'.strip()", "ws.strip(nul)", "'<<a>>'.lstrip('<').rstrip('>')", "s.strip(1)",
                "s.split()", "s.split(',')", "s.split(', ')", "s.split('')", "ws.split()", "ws.split(' ')", "'a,b,c,d'.split(',', 2)", "'a b  c d '.split(nul, 2)", "'a b  c d '.split(maxsplit=1)", "'a b'.split(sep=' ')", "''.split()", "''.split(',')", "'a,b,c'.rsplit(',', 1)", "' a b  c '.rsplit(nul, 1)", "' a b c '.rsplit()", "'a,b'.rsplit(',')", "'a,b,c'.split(',')[-1]", "'a'.split(',', 0)", "' a b '.split(nul, 0)", "lines.splitlines()", "lines.splitlines(true)", "'a\\r\\n\\u2028b'.splitlines()", "''.splitlines()", "'a-b-c'.partition('-')", "'a-b-c'.rpartition('-')", "'abc'.partition('-')", "'abc'.rpartition('-')", "'a'.partition('')",
                "s.startswith('He')", "s.startswith(('x', 'He'))", "s.startswith('el', 1)", "s.startswith('el', 1, 2)", "s.endswith('ld')", "s.endswith(('x', 'y'))", "s.endswith('lo', 0, 5)", "s.endswith('', 99)", "s.startswith(1)", "s.startswith(['He'])", "s.replace('l', 'L')", "s.replace('l', 'L', 1)", "s.replace('', '-')", "u.replace('', '-', 3)", "s.replace('x', 'y', 0)", "s.replace(1, 2)", "', '.join(['a', 'b'])", "''.join([])", "'-'.join(s)", "','.join([1])", "','.join(d)", "','.join(words|map('upper'))",
                "s.find('o')", "s.find('o', 5)", "s.find('x')", "u.find('😀')", "s.rfind('o')", "s.index('W')", "s.index('x')", "u.rindex('ß')", "s.find('o', -3)", "s.find('', 20)", "s.find('l', 0, 3)", "s.count('l')", "s.count('')", "s.count('l', 4)", "u.count('ü')", "'a'.ljust(5)", "'a'.rjust(5, '*')", "'ab'.center(7, '.')", "'abc'.center(6, '.')", "'a'.center(4, '.')", "'a'.center(2)", "'42'.zfill(5)", "'-42'.zfill(5)", "'a\\tb'.expandtabs(4)", "'a'.ljust(5, 'xy')",
                "'abc'.isalpha()", "'ab1'.isalnum()", "'12'.isdigit()", "'1²'.isdigit()", "'1.2'.isdigit()", "''.isdigit()", "'٣'.isdecimal()", "'½'.isnumeric()", "' '.isspace()", "'Ab'.isupper()", "'AB1'.isupper()", "'ab'.islower()", "'1'.islower()", "'Ab Cd'.istitle()", "'aB'.istitle()", "u.isascii()", "'a'.isascii()", "'a'.isascii(1)", "'a'.isupper(x=1)", "'a\\n'.isprintable()", "'xay'.removeprefix('x')", "'xay'.removesuffix('y')", "'abc'.removeprefix('z')",
                "'{} {}'.format(1, 'a')", "'{0}{1}{0}'.format('a', 'b')", "'{a}-{b}'.format(a=1, b=s)", "'{:>5}|{:<5}|{:^5}|{:*^7}'.format('a', 'b', 'c', 'd')", "'{:05d} {:+d} {:,} {:_}'.format(42, 5, 1234567, 1234567)", "'{:.2f} {:8.3f} {:e} {:g} {:%}'.format(3.14159, 2.5, 12345.678, 0.0001, 0.5)", "'{:x} {:X} {:#x} {:b} {:o}'.format(255, 255, 255, 5, 8)", "'{{}} {}'.format(1)", "'{.name} {[age]} {x[0]}'.format(users[0], users[0], x=list)", "'{!r} {!s}'.format('a', 'b')", "'{:.3}'.format('abcdef')", "'{}'.format()", "'{a}'.format(b=1)", "'{} {0}'.format(1)", "'{'.format()", "'}'.format()", "'{:d}'.format('a')", "'{:s}'.format(1)", "'{}{}{}{}'.format(nul, t, f, list)", "'{:5}|{:5}'.format(1, 'a')", "'{a}'.format_map({'a': 1})", "'{0[z]}'.format(d)", "'{:,.2f}'.format(1234567.891)", "'{:>{w}}'.format('a', w=5)" if False else "1", "'{:.1f}'.format(0.25)", "'{:.0f}'.format(2.5)", "'{:10.3}'.format('abcdef')", "'{:<5d}|'.format(3)", "'{: d}'.format(3)", "'{:=+6d}'.format(3)")
    add("?{{ s.encode() }}", "?{{ s.casefold() }}", "?{{ 'a'.translate({}) }}", "?{{ n.bit_length() }}", "?{{ f.is_integer() }}", "?{{ '%#g' % 1.5 }}", "?{{ '{:#.0f}'.format(2.0) }}")


def filters():
    expressions("neg|abs", "f|abs", "s|abs", "t|abs", "range(7)|batch(3)|list", "range(7)|batch(3, 'x')|list", "range(7)|slice(3)|list", "range(7)|slice(3, 'x')|list", "range(6)|slice(3, 'x')|list", "range(2)|slice(4)|list", "s|capitalize", "u|capitalize", "s|center(20)", "s|center(20) ~ '|'", "list|count", "missing|d('x')", "missing|default('x')", "missing|default", "empty|default('x')", "empty|default('x', true)", "nul|default('x')", "nul|default('x', boolean=true)", "d.q|default(d.z)", "missing.x|default('y')",
                "d|dictsort", "d|dictsort(true)", "{'b': 2, 'a': 3, 'C': 1}|dictsort(false, 'value')", "{'b': 2, 'a': 3, 'C': 1}|dictsort(by='value', reverse=true)", "{'b': 1, 'B': 2, 'a': 3}|dictsort", "d|dictsort(by='x')", "list|dictsort", "missing|dictsort", "list|first", "none_list|first", "missing|first", "missing|last", "missing|truncate(5)", "list|truncate(5)", "missing|reverse|list", "html|safe|last", "'abc' % missing", "[1] * big", "'' * big", "s|first", "d|first", "list|last", "none_list|last", "s|last", "u|last", "d|last", "words|map('upper')|last", "range(4)|last", "'3.5'|float", "'x'|float", "'x'|float(1.5)", "n|float", "nul|float", "'1e5'|float", "' inf '|float", "'-nan'|float", "'1_0.5'|float", "list|float",
                "'%s %s'|format(1, 2)", "'%(a)s'|format(a=1)", "'%s'|format", "users|groupby('age')", "users|groupby('city', default='?')|list", "users|groupby('age')|map('first')|list", "(users|groupby('age'))[0].grouper", "(users|groupby('age'))[0].list|length", "users|groupby('city')", "users|groupby('city', default='x', case_sensitive=true)", "lines|indent", "lines|indent(2)", "lines|indent(2, true)", "lines|indent(2, true, true)", "lines|indent('> ')", "lines|indent(width=1, blank=true)", "''|indent", "'a\\n'|indent", "n|indent", "nul|indent",
                "'42'|int", "'42.9'|int", "'x'|int", "'x'|int(5)", "'ff'|int(0, 16)", "'0xff'|int(base=16)", "'0b11'|int(base=2)", "f|int", "-2.7|int", "(-2.7)|int", "nul|int", "list|int", "t|int", "' 7 '|int", "'1_000'|int", "'-5'|int", "'+5'|int", "'1e3'|int", "'inf'|int", "missing|int", "''|int", "'010'|int", "'010'|int(base=0)", "big|int", "1e20|int", "d|items|list", "missing|items|list", "list|items|list", "list|join", "list|join(', ')", "words|join(d=' ')", "users|join(', ', attribute='name')", "users|join(', ', 'age')", "s|join('-')", "mixed|join('|')", "d|join(',')", "none_list|join(',')", "missing|join", "n|join",
                "s|length", "u|length", "list|length", "d|length", "none_list|length", "n|length", "nul|length", "missing|length", "words|map('upper')|length", "range(5)|length", "s|list", "d|list", "missing|list", "n|list", "s|lower", "u|lower", "n|lower", "nul|lower", "'ΑΣ ΑΣΑ'|lower", "words|map('upper')|list", "users|map(attribute='name')|list", "users|map(attribute='city', default='?')|list", "users|map(attribute='tags.0')|list", "words|map('replace', 'a', 'X')|list", "words|map('nope')|list", "none_list|map('nope')|list", "words|map|list", "users|map(attribute='x', foo=1)|list", "missing|map('upper')|list", "words|map('default', default_value='x')|list",
                "list|max", "list|min", "words|max", "words|min", "words|max(true)", "users|max(attribute='age')", "none_list|max", "users|min(attribute='name')", "mixed|max", "list|reject('gt', 1)|list", "list|reject|list", "mixed|reject('none')|list", "users|rejectattr('city')|list", "users|rejectattr('age', 'eq', 30)|list", "list|select('odd')|list", "mixed|select|list", "mixed|select('string')|list", "list|select('nope')|list", "list|select('in', [1, 2])|list", "users|selectattr('city')|map(attribute='name')|list", "users|selectattr('age', 'equalto', 30)|map(attribute='name')|join(',')", "users|selectattr('tags', 'defined')|list|length", "users|selectattr('city', '==', 'Bern')|first", "users|selectattr|list", "missing|selectattr('a')|list",
                "s|replace('l', 'L')", "s|replace('l', 'L', 1)", "n|replace(7, 8)", "nul|replace('None', 'x')", "s|replace('', '-')", "s|replace('l')", "list|reverse|list", "s|reverse", "u|reverse", "d|reverse|list", "range(3)|reverse|list", "words|map('upper')|reverse|list", "n|reverse", "d.items()|reverse|list", "f|round", "2.345|round(2)", "2.675|round(2)", "0.5|round", "1.5|round", "n|round", "n|round(1)", "2.345|round(1, 'ceil')", "2.345|round(1, 'floor')", "2|round(0, 'floor')", "s|round", "2.5|round(method='x')", "1e300|round(5)", "big|round",
                "html|safe", "html|e", "html|escape", "html|forceescape", "html|e|e", "html|e|forceescape", "html|safe|e", "(html|safe) + '<'", "'<' + (html|safe)", "(html|safe) ~ '<'", "html|safe|string", "html|safe|length", "n|safe", "html|safe|tojson", "(html|safe) == html", "html|safe is string", "html|safe is escaped", "html is escaped", "html|e|trim", "'<b>'|safe|trim ~ '<'", "(html|safe)[0]" if False else "1", "list|sort", "words|sort", "words|sort(true)", "words|sort(case_sensitive=true)", "users|sort(attribute='age')|map(attribute='name')|list", "users|sort(attribute='age,name')|map(attribute='name')|list", "users|sort(reverse=true, attribute='age')|map(attribute='name')|list", "mixed|sort", "d|sort", "s|sort", "none_list|sort", "[nul, nul]|sort", "[[2, 1], [1, 2]]|sort", "[t, 0, 2]|sort",
                "n|string", "nul|string", "f|string", "list|string", "d|string", "missing|string", "t|string", "list|sum", "users|sum(attribute='age')", "list|sum(start=10)", "words|sum", "[[1], [2]]|sum(start=[])", "none_list|sum", "[0.1, 0.2]|sum", "s|title", "'foo-bar (baz) {x} <y> it\\'s'|title", "u|title", "ws|trim", "'xxaxx'|trim('x')", "n|trim", "nul|trim", "missing|trim", "s|truncate(9)", "s|truncate(9, true)", "s|truncate(5, true, '')", "s|truncate(5, true, '..', 0)", "'foo bar baz qux'|truncate(9)", "'foo bar baz qux'|truncate(11, false, '...', 0)", "s|truncate(2)", "u|truncate(6, true, '', 0)", "words|unique|list", "words|unique(true)|list", "users|unique(attribute='age')|map(attribute='name')|list", "[1, 1.0, t, '1']|unique|list", "[[1]]|unique|list", "s|upper", "u|upper", "nul|upper",
                "s|nope", "s|upper(1)", "s|upper|lower|title", "s|default(1, 2, 3)", "s|trim|nope", "'x' if t else s|nope", "s|nope if zero else 'x'", "list|first|string|length", "-1|abs", "(-1)|abs", "1 + 2|string|length", "'a' ~ 'b'|upper", "'a,b'.split(',')|map('upper')|join('+')", "list|map('string')|join", "list|sort|reverse|list", "list|list|first")
    add("{% if zero %}{{ s|nope }}{% endif %}ok", "{% if t %}{{ s|nope }}{% endif %}ok", "{% if zero %}{{ s is nope }}{% endif %}ok", "{% if zero %}{% for x in list %}{{ x|nope }}{% endfor %}{% endif %}ok", "{% set g = words|map('upper') %}{{ g|list }}{{ g|list }}", "{% set g = words|map('upper') %}{{ g|first }}{{ g|first }}{{ g|list }}", "{% if none_list|select %}yes{% endif %}", "{% set g = [1, 'a']|map('abs') %}{{ g|first }}",
        "?{{ s|wordcount }}", "?{{ s|wordwrap(5) }}", "?{{ s|urlencode }}", "?{{ 1000|filesizeformat }}", "?{{ d|pprint }}", "?{{ html|striptags }}", "?{{ s|urlize }}", "?{{ d|xmlattr }}", "?{{ [1]|random }}", "?{{ 1234|round(-2) }}", "?{{ html|safe|upper }}", "?{{ (html|safe).upper() }}", "?{{ words|map('upper') }}", "?{{ range(3) }}", "?{{ lipsum(1) }}", "?{{ (-8) ** 0.5 }}", "?{{ 'ᾳ'|upper }}")


def json_output():
    expressions("d|tojson", "nested|tojson", "u|tojson", "control|tojson", "html|tojson", "f|tojson", "tiny|tojson", "big|tojson", "nul|tojson", "t|tojson", "missing|tojson", "none_list|tojson", "{}|tojson", "(1, 2)|tojson", "d|tojson(indent=2)", "nested|tojson(indent=4)", "d|tojson(indent=0)", "none_list|tojson(indent=2)", "{}|tojson(indent=2)", "[[], {}]|tojson(indent=1)", "d|tojson(indent='--')", "u|tojson(ensure_ascii=true)", "u|tojson(true)", "control|tojson(ensure_ascii=true)", "d|tojson(separators=(',', ':'))", "d|tojson(separators=(',', ': '), indent=2)", "d|tojson(sort_keys=true)", "d|tojson(false, 2)", "{1: 2, nul: 3, t: 4, 1.5: 5}|tojson", "{(1, 2): 3}|tojson", "words|map('upper')|tojson", "range(3)|tojson", "d.items()|tojson", "d.items()|list|tojson", "1e100|tojson", "0.1|tojson", "-0.0|tojson", "1e16|tojson", "123456789.123|tojson", "'inf'|float|tojson", "('-inf'|float)|tojson", "'nan'|float|tojson", "d|tojson(indent=nul)", "{'b': 1, 'a': 2}|tojson(sort_keys=true)", "{1: 2, 'a': 1}|tojson(sort_keys=true)", "d|tojson(separators=1)", "d|tojson(nope=1)", "namespace(a=1)|tojson", "raise_exception|tojson", "d|tojson|length", "d|tojson ~ 'x'", "s|tojson|tojson")


def tests():
    names = ["boolean", "callable", "defined", "escaped", "even", "false", "float", "integer", "iterable", "lower", "mapping", "none", "number", "odd", "sequence", "string", "true", "undefined", "upper"]
    for name, value in itertools.product(names, VALUES):
        if name in ("lower", "upper") and ("map" in value or "range" in value):
            continue
        expressions(f"({value}) is {name}")
    expressions("n is divisibleby 7", "n is divisibleby(2)", "n is divisibleby 0", "n is eq 7", "n is equalto(7)", "n is ne 7", "n is gt 3", "n is ge(7)", "n is lt 3", "n is le 7", "n is greaterthan 1", "n is lessthan 1", "n is sameas n" if False else "1", "t is sameas true", "nul is sameas none", "1 is sameas true", "n is in [7]", "'a' is in d", "n is not in [7]", "n is not defined", "missing is not defined", "n is not none", "s is nope", "s is string and n is number", "s is string or nope", "n is eq 7 and t", "not n is eq 7", "n is defined is string", "'upper' is filter", "'nope' is filter", "'odd' is test", "'nope' is test", "list is filter", "n is odd if t else 0", "(n is odd) if t else 0", "s is string ~ 'x'", "n is defined == true", "users[0].name is defined", "d.q is defined", "missing.x is defined", "range is callable", "s.upper is callable", "'AB' is upper", "'ab1' is lower", "loop is defined", "n is even(1)", "n is odd 3", "n is string | upper" if False else "1", "list is iterable and list is not string and list is not mapping")


def functions():
    expressions("range(3)|list", "range(1, 4)|list", "range(3, 0, -1)|list", "range(0)|list", "range('a')", "range()", "range(1, 2, 3, 4)", "range(2.5)", "range(3) == range(0, 3)", "raise_exception('no: ' ~ n)", "raise_exception()", "strftime_now('%Y-%m-%d %H:%M:%S')", "strftime_now('%d %b %Y')", "strftime_now('%A, %B %d, %Y')", "strftime_now('%-d/%-m %I:%M %p %j %y %a %%')", "strftime_now('%e|%f|%c|%x|%X|%F|%T|%u|%w')", "strftime_now('')", "strftime_now('ü %Y')", "strftime_now()", "namespace(a=1).a", "namespace().a", "joiner()", "cycler('a', 'b').next()", "cycler()", "nope()", "n()", "s()", "dict()", "dict(1)", "dict(missing)", "namespace(missing, a=1).a", "range(3)|sum", "namespace(1)", "strftime_now(1)", "range(10)[2:4]|list|length")
    add("{% set j = joiner(', ') %}{{ j() }}a{{ j() }}b{{ j() }}c", "{% set c = cycler('a', 'b', 'c') %}{{ c.next() }}{{ c.next() }}{{ c.current }}{{ c.reset() }}{{ c.next() }}", "{% set range = 5 %}{{ range }}", "{% set f = 'abc'.upper %}{{ f() }}", "{{ [s.upper, s.lower][0]() }}", "{% set m = d.get %}{{ m('z') }}")


def values():
    expressions("s", "u", "n", "neg", "f", "big", "tiny", "t", "nul", "list", "d", "nested", "users", "missing", "control|list", "[s, u, control]", "[\"it's\"]", "['\"']", "['it\\'s \"x\"']", "['\\\\']", "[1.0, 1e16, 1e-5, 123456.789, 1e22, 5e-324]", "{'a': nul, 'b': t}", "[missing]", "['\\xa0\\u200b\\ue000\\U0001F600é']", "(1,)", "((),)", "[()]", "1.0", "1e400", "-0.0", "1.10", "'nan'|float", "'-inf'|float", "true", "True", "none", "None", "false", "False", "['a', \"b\"]", "{1: {2: 3}}")


def main():
    for part in (text_and_blocks, control, macros, operators, subscripts, methods, filters, json_output, tests, functions, values):
        part()

    class Clock(datetime.datetime):
        @classmethod
        def now(cls, tz=None):
            return NOW

    chat_template_utils.datetime = Clock
    cases = []
    for source in dict.fromkeys(SOURCES):
        try:
            template = chat_template_utils._compile_jinja_template(source.removeprefix("?"))
            text = template.render(**VARIABLES)
            if " at 0x" in text:  # an address, or something else that no other program prints
                source, text = "?" + source.removeprefix("?"), None
        except Exception:
            text = None
        cases.append([source, text])
    rows = ",\n".join(json.dumps(case, ensure_ascii=False) for case in cases)
    variables = json.dumps(VARIABLES, ensure_ascii=False)
    path = pathlib.Path(__file__).with_name("cases.json")
    path.write_text('{"variables": ' + variables + ',\n"cases": [\n' + rows + "\n]}\n")


if __name__ == "__main__":
    main()
