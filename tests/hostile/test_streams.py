"""Streams without an end, and documents that want to be more than they are, through a pipe."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest

from harness.confined import MIB, chunked, podium, repeated

ENDLESS = {
    "zeros": (b"\0", b""),
    "braces": (b"{", b""),
    "brackets": (b"[", b""),
    "keys on one line": (b"a: ", b""),
    "separators": (b"---\n", b""),
    "one line": (b"x", b""),
    "comments": (b"# c\n", b""),
    "line breaks": (b"\n", b""),
    "space after an object": (b" ", b'{"schema":"x"}\n'),
    "closing braces": (b"}\n", b'{"schema":"x"'),
    "a text in JSON": (b"x", b'{"schema":"x","y":"'),
    "numbers in JSON": (b"1,", b'{"schema":"x","y":['),
    "nesting in JSON": (b'{"a":', b'{"schema":"x","y":'),
    "a separator line": (b"a", b"schema: x\n---"),
    "a sequence": (b"- 1\n", b"schema: x\ny:\n"),
    "bytes that are no UTF-8": (b"\xff", b""),
}


@pytest.mark.parametrize("name", ENDLESS)
def test_a_gibibyte_without_an_end_is_refused_before_it_is_read(name: str) -> None:
    unit, head = ENDLESS[name]
    podium("catalog", "validate", "-", stdin=repeated(unit, head)).assert_refused("standard input")


@pytest.mark.parametrize(
    "command",
    [
        ("catalog", "render", "-"),
        ("catalog", "build", "-", "--to", "oci:out:1"),
        ("catalog", "template", "-"),
    ],
    ids=" ".join,
)
def test_every_command_that_reads_a_pipe_has_the_limit(command: tuple[str, ...], tmp_path: Path) -> None:
    podium(*command, stdin=repeated(b"x"), cwd=tmp_path).assert_refused("larg")
    assert not list(tmp_path.iterdir())


def test_a_gibibyte_in_a_file_is_refused_as_well(tmp_path: Path) -> None:
    with (tmp_path / "catalog.yaml").open("wb") as file:
        file.truncate(1 << 30)
    podium("catalog", "validate", tmp_path).assert_refused("catalog.yaml")


def json_document(value: bytes) -> bytes:
    return b'{"schema":"x","y":' + value + b"}\n"


def yaml_document(value: bytes) -> bytes:
    return b"schema: x\ny: " + value + b"\n"


BILLION_LAUGHS = b"schema: x\na0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol, lol]\n" + b"".join(
    b"a%d: &a%d [%s]\n" % (n, n, b",".join([b"*a%d" % (n - 1)] * 10)) for n in range(1, 10)
)
MERGED = b"schema: x\nm0: &m0 {k0: 1}\n" + b"".join(
    b"m%d: &m%d {<<: [%s], k%d: 1}\n" % (n, n, b",".join([b"*m%d" % (n - 1)] * 20), n) for n in range(1, 12)
)

REFUSED = {
    "JSON nested 10,000 deep": json_document(b"[" * 10_000 + b"]" * 10_000),
    "JSON objects nested 10,000 deep": json_document(b'{"a":' * 10_000 + b"1" + b"}" * 10_000),
    "JSON nested as deep as Python goes": json_document(b"[" * 985 + b"]" * 985),
    "JSON never closed": b'{"schema":"x","y":' + b"[" * 10_000,
    "flow YAML nested 10,000 deep": yaml_document(b"[" * 10_000 + b"]" * 10_000),
    "flow mappings nested 10,000 deep": yaml_document(b"{a: " * 10_000 + b"1" + b"}" * 10_000),
    "block YAML nested 10,000 deep": b"schema: x\n" + b"".join(b" " * n + b"a:\n" for n in range(4000)),
    "sequences in one line nested 10,000 deep": b"- " * 10_000 + b"a",
    "keys within keys": b"? " * 10_000 + b"a",
    "billion laughs": BILLION_LAUGHS,
    "merge keys that multiply": MERGED,
    "an anchor within itself": b"schema: x\na: &a [*a]\n",
    "an anchor of another document": b"schema: x\na: &a 1\n---\nschema: y\nb: *a\n",
    "a long text a thousand times": b"schema: x\na: &a "
    + b"x" * MIB
    + b"\nb: ["
    + b",".join([b"*a"] * 1000)
    + b"]",
    "a million numbers": json_document(b"[" + b"1," * 1_000_000 + b"1]"),
    "a million keys": b"{" + b",".join(b'"k%d":1' % n for n in range(1_000_000)) + b"}",
    "a million lines": b"schema: x\n" + b"".join(b"k%d: 1\n" % n for n in range(1_000_000)),
    "a million items": b"schema: x\ny:\n" + b"- a\n" * 1_000_000,
    "a million empty documents": b"{}\n" * 1_000_000,
    "nothing but characters of four bytes": json_document(b'"' + "\U0001f600".encode() * (3 * MIB) + b'"'),
    "a number of 30 MiB": json_document(b"1" * (30 * MIB)),
    "a document of 33 MiB": json_document(b'"' + b"a" * (33 * MIB) + b'"'),
    "NUL": b"schema: x\ny: \0\n",
    "NUL in JSON": b'{"schema":"x","y":"\0"}',
    "UTF-16": "schema: x\n".encode("utf-16")[:-1],
    "Latin-1": b"schema: x\ny: \xe9\n",
    "an infinite number": b"schema: x\ny: .inf\n",
    "a duplicate header": b'{"schema":"x","Schema":"y"}',
    "a tag that is code as the root": b"!!python/object/apply:os.system ['touch pwned']",
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_document_that_means_harm_is_refused(name: str, tmp_path: Path) -> None:
    run = podium("catalog", "validate", "-", stdin=chunked(REFUSED[name]), cwd=tmp_path)
    run.assert_refused("standard input:")
    assert len(run.words) < 10_000, "the error repeats the input"
    assert not list(tmp_path.iterdir())


HARMLESS = {
    "a text of 30 MiB": json_document(b'"' + b"a" * (30 * MIB) + b'"'),
    "escapes of 30 MiB": json_document(b'"' + b"\\u1234" * (5 * MIB) + b'"'),
    "a YAML text of 30 MiB": yaml_document(b"a" * (30 * MIB)),
    "a quoted text of 30 MiB": yaml_document(b'"' + b"a " * (15 * MIB) + b'"'),
    "a comment of 30 MiB": b"#" + b"a" * (30 * MIB) + b"\nschema: x\n",
    "spaces of 30 MiB": b"schema: x" + b" " * (30 * MIB) + b"\n",
    "bytes that are no UTF-8": json_document(b'"' + b"\xff" * (7 * MIB) + b'"'),
    "400,000 numbers": json_document(b"[" + b"1.5," * 400_000 + b"1]"),
    "400,000 keys": b'{"schema":"x",' + b",".join(b'"k%d":1' % n for n in range(400_000)) + b"}",
    "200,000 lines": b"schema: x\n" + b"".join(b"k%d: 1\n" % n for n in range(200_000)),
    "10,000 aliases": b"schema: x\na: &a {b: 1}\nb: [" + b",".join([b"*a"] * 10_000) + b"]",
    "an integer of a million digits": yaml_document(b"1" * 1_000_000),
    "an exponent of six digits": yaml_document(b"1e999999"),
    "half a pair of surrogates": json_document(b'"\\ud800"'),
    "a byte order mark": b"\xef\xbb\xbfschema: x\n",
    "the same key twice": b"schema: x\na: 1\na: 2\n",
    "a tag that is code": yaml_document(b"!!python/object/apply:os.system [touch pwned]"),
    "a tag that is code, as a text": yaml_document(b"!!python/name:os.system ''"),
}


@pytest.mark.parametrize("name", HARMLESS)
def test_a_document_that_is_only_odd_does_no_harm(name: str, tmp_path: Path) -> None:
    run = podium("catalog", "validate", "-", "--no-lint", stdin=chunked(HARMLESS[name]), cwd=tmp_path)
    run.assert_bounded()
    assert run.code == 0, run.words[-300:]
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("form", ["JSON", "YAML"])
def test_a_valid_stream_of_any_length_takes_the_memory_of_one_blob(form: str) -> None:
    blob = {"schema": "custom.thing", "package": "p", "name": "n", "data": "x" * 100_000}
    text = json.dumps(blob) + "\n" if form == "JSON" else f"---\n{json.dumps(blob, indent=1)}\n"
    run = podium("catalog", "validate", "--no-lint", "-", stdin=itertools.repeat(text.encode() * 10, 130))
    assert (run.code, "valid" in run.words) == (0, True)
    assert run.memory < 64 * MIB
