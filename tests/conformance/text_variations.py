"""Values and texts that are hard to write and to read, for the comparison with the originals."""

from __future__ import annotations

import json
import random
from typing import Any

# Pieces that make texts which are hard to write: indicators, blanks, breaks, look-alikes, odd characters.
PIECES = [
    *"ab'\"\\:#\n\t\r-?!&*[]{},|>%@`=~019_.e+x \x00\x07\x1b",
    *"é\xa0\u2028\u2029\ufeff\ufffd\u3000\ue000\ud7ff\uff00😀٣Ⅷ中",
    *(
        "word",
        "it's",
        ": ",
        " #",
        "  ",
        "\n\n",
        "\n ",
        "- ",
        "--",
        "---",
        "...",
        "? ",
        "0x",
        "0b",
        "0o",
        "T",
        "Z",
    ),
    *(
        "true",
        "null",
        "yes",
        "on",
        "2020-01-01",
        "12:30:45",
        "http://x.y/z",
        "<b>&</b>",
        "10",
        "08",
        "1e3",
        ".5",
    ),
    "a long run of words that goes on for a while",
]
NUMBERS = [0, 1, -1, 2**31, 2**53, 2**53 + 1, 2**63 - 1, -(2**63), 2**64 - 1, 2**64, 10**30, 1.0, -0.0, 0.1]
NUMBERS += [1e20, 1e21, 1e22, 1e-5, 1e-6, 1e-7, 1e5, 123456.0, 1234567.5, 5e-324, 1.7976931348623157e308]


def text(chance: random.Random) -> str:
    """A text of any pieces, short or long."""
    made = "".join(chance.choices(PIECES, k=chance.choice([0, 1, 1, 2, 3, 4, 6, 10, 30, 80])))
    return (made + " ") * chance.randrange(1, 40) if chance.random() < 0.2 else made


def value(chance: random.Random, depth: int) -> Any:
    """A value that JSON can hold, nested so deep at most."""
    kind = chance.random()
    if depth and kind < 0.35:
        return {key(chance): value(chance, depth - 1) for _ in range(chance.randrange(6))}
    if depth and kind < 0.55:
        return [value(chance, depth - 1) for _ in range(chance.randrange(4))]
    if kind < 0.62:
        scaled = chance.uniform(-1, 1) * 10.0 ** chance.randrange(-30, 30)
        return chance.choice([*NUMBERS, scaled, chance.randrange(-(10**18), 10**18)])
    return chance.choice([None, True, False]) if kind < 0.65 else text(chance)


def key(chance: random.Random) -> str:
    """A key that the original can read again."""
    made = text(chance)[: chance.choice([3, 5, 20, 200])]
    return made if made != "<<" else "<"


def values(seed: int, count: int) -> list[Any]:
    """So many values, the same for a seed each time."""
    chance = random.Random(seed)
    return [value(chance, chance.randrange(5)) for _ in range(count)]


SCALARS = r"""
1 0x1F 08 0777 0o17 0O17 0b11 0B11 0b-1 -0b11 -0b-1 0b 0x 0x_1 1_0 _1 1__0 1_ 1e3 1e+3 1E400 1e-400 .5 .1_5
._5 .5_ .5e1_0 1.5 1. 1.e3 1._5 -1 +1 --1 +-1 - -x true True tRUE on y N NO ~ null Null nULL .inf -.INF
+.inf .nan .NaN inf 2020-01-01 2020-1-1T1:2:3Z 12:30 = << - -- a:b a#b 18446744073709551615
18446744073709551616 +18446744073709551615 -9223372036854775808 -9223372036854775809 0xFFFFFFFFFFFFFFFF
0x1FFFFFFFFFFFFFFFF 100000000.5 1e16 123456789012345678901234567890 00 007 0_7 +0x1 -0x8000000000000000 0.1
'it''s' "\n\x41\u00e9\U0001F600" "\/" "\'" "\q" "\ud83d" !!str !!null
""".split()  # noqa: SIM905
TAGGED = [
    *(
        "!!str 1",
        "!!int 3",
        "!!int x",
        "!!int '3'",
        "!!int 1.5",
        "!!float 1",
        "!!float x",
        "!!float 18446744073709551615",
    ),
    *(
        "!!bool yes",
        "!!bool 1",
        "!!null ~",
        "!!null x",
        "!!binary aGk=",
        "!!binary /w==",
        "!!binary x",
        "!foo bar",
    ),
    *(
        "! 1",
        "!!timestamp 2001-01-01",
        "!!timestamp x",
        "!!map {a: b}",
        "!!seq [a]",
        "!!set {a: b}",
        "!<x> y",
    ),
]
FLOW = [
    "[a, b]",
    "[a,b]",
    "{a: b}",
    "{a: 1, b}",
    "[a: b]",
    "{a:1}",
    "[]",
    "{}",
    "[a,]",
    "{a: 1,}",
    '{"a":1}',
    "[[]]",
]
BLOCKS = [
    "|",
    "|-\n  t",
    "|+\n  t\n\n",
    ">\n  x\n  y\n\n    z\n",
    "|2\n   t\n  u",
    ">-\n\n  a\n   b\n  c",
    "? x\n: y",
]
ANCHORS = ["&a x", "&a {b: 1}", "*a", "[*a, {c: 1}]", "&a", "*a : 1", "&a [*a]"]
KEYS = [
    "a",
    "b",
    "c",
    "'a'",
    '"b"',
    "<<",
    "1",
    "1.5",
    "true",
    "~",
    "on",
    "[a]",
    "*a",
    "&a k",
    "!!str 1",
    "1e10",
    "0.1",
]
KEYS += [
    "18446744073709551615",
    "a b",
    "? a",
    "! <<",
    "!!merge <<",
    "",
    "-",
    "2020-01-01",
    "1e40",
    "1e-50",
    ".inf",
]
SNIPPETS = [
    *SCALARS,
    *TAGGED,
    *FLOW,
    *BLOCKS,
    *ANCHORS,
    "a b",
    "- x",
    "@a",
    "`a",
    "%a",
    "# c",
    "---",
    "...",
    "",
]


def block(chance: random.Random, indent: int, depth: int) -> str:
    """Block collections of any snippets, mostly well indented."""
    lines = []
    is_sequence = chance.random() < 0.35
    for _ in range(chance.randrange(1, 4)):
        margin = " " * (indent + (chance.random() < 0.03))
        content = chance.choice(SNIPPETS).replace("\n", "\n" + margin)
        if is_sequence and depth and chance.random() < 0.3:
            lines.append(f"{margin}- {block(chance, indent + 2, depth - 1).lstrip(' ')}")
        elif is_sequence:
            lines.append(f"{margin}- {content}\n")
        elif depth and chance.random() < 0.4:
            after = chance.choice(["", " ", " &a", " !!map", " # x"])
            lines.append(f"{margin}{chance.choice(KEYS)}:{after}\n")
            lines.append(block(chance, indent + chance.choice([0, 1, 2, 2, 2]), depth - 1))
        else:
            colon, end = (
                chance.choice([": ", ": ", ":", " : "]),
                chance.choice(["\n", " # c\n", " \n", "\n\n"]),
            )
            lines.append(f"{margin}{chance.choice(KEYS)}{colon}{content}{end}")
    return "".join(lines)


NOISE = [
    ": ",
    "\n",
    " #",
    "- ",
    "'",
    '"',
    "|",
    "|-",
    ">",
    "> \n",
    "  ",
    "\t",
    "? ",
    "[",
    "]",
    "{",
    "}",
    ",",
    "a: b",
]
NOISE += [
    "&a",
    "*a",
    "!!str ",
    "\\",
    "\\n",
    "\\\n",
    "\r\n",
    "~",
    "0x1",
    "#",
    "\n\n",
    "é",
    "\u2028",
    "\x85",
    "\x07",
]
NOISE += [":\n", "-\n", "- -", "\n  - a", "\n# c\n", "'' ", "\\u0041", "|2\n", ".inf", "<<: ", "on", " "]


def excerpt(chance: random.Random, text: str) -> str:
    """Some lines that stand together, moved to the margin."""
    lines = text.split("\n")
    start = chance.randrange(len(lines))
    taken = lines[start : start + chance.randrange(1, 25)]
    margin = min((len(line) - len(line.lstrip()) for line in taken if line.strip()), default=0)
    while taken and (len(taken[0]) - len(taken[0].lstrip()) > margin or not taken[0].strip()):
        taken.pop(0)
    return "\n".join(line[margin:] for line in taken) + chance.choice(["", "\n", "\n\n"])


def distorted(chance: random.Random, text: str) -> str:
    """A text with a few pieces put in, taken out or moved."""
    for _ in range(chance.choice([0, 1, 1, 1, 2, 3])):
        at = chance.randrange(len(text) + 1)
        kind = chance.random()
        if kind < 0.5:
            text = text[:at] + chance.choice(NOISE) + text[at:]
        elif kind < 0.75:
            text = text[:at] + text[at + chance.randrange(1, 4) :]
        else:
            lines = text.split("\n")
            line = chance.randrange(len(lines))
            lines[line] = " " * chance.randrange(5) + lines[line].lstrip(" ")
            text = "\n".join(lines)
    return text


def json_text(chance: random.Random) -> bytes:
    """A stream of JSON values, often slightly broken."""
    out = b""
    for _ in range(chance.randrange(4)):
        made = value(chance, 3)
        written = json.dumps(made, indent=chance.choice([None, None, 2]), ensure_ascii=chance.random() < 0.5)
        out += written.encode("utf-8", "surrogatepass") + chance.choice(
            [b"\n", b"\n\n", b"", b" ", b"\r\n", b"\n \n"]
        )
    noise = [
        *b'{}\n"\\,: []10-e.\t\x00\x0b\xff\xc3',
        b"\r\n",
        b"}\n{",
        b"}{",
        b"\\u00",
        b"nul",
        b"NaN",
        b"\xef\xbb\xbf",
    ]
    for _ in range(chance.choice([0, 0, 1, 1, 2])):
        at = chance.randrange(len(out) + 1)
        piece = chance.choice(noise)
        inserted = piece if isinstance(piece, bytes) else bytes([piece])
        out = out[:at] + inserted + out[at:] if chance.random() < 0.5 else out[:at] + out[at + 1 :]
    return out
