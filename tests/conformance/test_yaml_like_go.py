"""YAML and JSON against sigs.k8s.io/yaml and encoding/json: byte for byte and verdict for verdict.

Thousands of values and texts go to the original in one batch per test. What differs on purpose is named in
the functions `_known_…` below and in docs/compatibility.md; every other difference is a failure.
"""

from __future__ import annotations

import base64
import itertools
import json
import random
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from conformance.text_variations import KEYS, SCALARS, TAGGED, block, distorted, excerpt, json_text, values
from harness import corpus
from harness.oracle import Answer, Oracle
from podium.text import gojson, yaml
from podium.text.yaml import exact
from podium.text.yaml.natural import natural_order

pytestmark = pytest.mark.oracle


def bytes_of(text: bytes) -> str:
    return base64.b64encode(text).decode()


def output(answer: Answer) -> bytes:
    return base64.b64decode(answer.output or "")


def has_one_order(value: Any) -> bool:
    """Whether the original's order of keys goes without circles (as `080` < `0o` < `1` < `080` is one).

    With one, it writes the same map in another order each time.
    """
    if isinstance(value, list):
        return all(map(has_one_order, value))
    if not isinstance(value, dict):
        return True
    pairs = itertools.combinations(natural_order(value), 2)
    return all(natural_order([b, a]) == [a, b] for a, b in pairs) and all(map(has_one_order, value.values()))


def assert_written_alike(given_values: list[Any]) -> None:
    given_values = list(filter(has_one_order, given_values))
    answers = Oracle().ask_all("yaml marshal", given_values)
    for written, answer in zip(given_values, answers, strict=True):
        assert not answer.error, (written, answer.error)
        assert yaml.dump(written).encode() == output(answer), written


@pytest.mark.parametrize("seed", range(4))
def test_values_are_written_with_the_bytes_of_the_original(seed: int) -> None:
    assert_written_alike(values(seed, 5000))


# The original reads its own JSON as YAML: it fails on raw control characters, and takes NEL for a line break.
writable = st.characters(
    codec="utf-8",
    exclude_characters=[*map(chr, range(0x7F, 0xA0)), "\ufffe", "\uffff"],
    exclude_categories=["Cs", "Cn"],  # Go may know newer letters than this Python
)
nested = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(writable),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(writable).filter(lambda key: key != "<<"), inner),
    max_leaves=12,
)


@settings(max_examples=12, suppress_health_check=list(HealthCheck), phases=[Phase.generate])
@given(st.lists(nested, min_size=20, max_size=40))
def test_any_value_is_written_with_the_bytes_of_the_original(given_values: list[Any]) -> None:
    assert_written_alike(given_values)


@pytest.mark.parametrize("indent", [0, 2, 4])
@pytest.mark.parametrize("html", [True, False])
@pytest.mark.parametrize("floats", [True, False])
def test_json_has_the_bytes_of_the_original(indent: int, html: bool, floats: bool) -> None:
    asked = values(indent, 3000)
    settings = {"html": html, "indent": indent, "floats": floats}
    answers = Oracle().ask_all("json marshal", [{"value": each, **settings} for each in asked])
    for each, answer in zip(asked, answers, strict=True):
        assert gojson.pretty(each, indent, html, floats=floats) == output(answer), each
        if not indent:
            assert gojson.compact(each, html=html, floats=floats) == output(answer), each


def test_texts_that_were_no_utf_8_come_as_escapes() -> None:
    texts = [
        b"\xff",
        b"a\xc3(",
        b"\xed\xa0\x80",
        b"\xf0\x9f\x98",
        b"\xe2\x80\xa8\xfe",
        "\ufffd".encode(),
        b"<\x80>",
    ]
    for text, answer in zip(
        texts, Oracle().ask_all("json marshal of bytes", map(bytes_of, texts)), strict=True
    ):
        decoded = text.decode("utf-8", "surrogateescape")
        assert gojson.compact({decoded: [decoded]}) == output(answer), text


def test_every_float_prints_as_the_original_prints_it() -> None:
    chance = random.Random(5)
    asked = [chance.uniform(-1, 1) * 10.0 ** chance.randrange(-320, 308) for _ in range(20_000)]
    for each, answer in zip(
        asked, Oracle().ask_all("json marshal", [{"value": v} for v in asked]), strict=True
    ):
        assert gojson.compact(each) == output(answer), each
    assert_written_alike(asked)


# Reading


def read(
    text: bytes, documents: Callable[..., Iterable[yaml.Document]] = yaml.documents
) -> bytes | yaml.YAMLError:
    """The first document as JSON, as the original gives it; duplicate keys are no error there."""
    try:
        found = list(documents(text, []))
    except yaml.YAMLError as error:
        return error
    return gojson.compact(found[0].value if found else None)


def assert_read_alike(texts: list[bytes]) -> int:
    """Compares every text and returns how many the original accepts."""
    accepted = 0
    for text, answer in zip(texts, Oracle().ask_all("yaml to json", map(bytes_of, texts)), strict=True):
        ours = read(text)
        if answer.error:
            assert isinstance(ours, yaml.YAMLError) or _known_to_be_accepted_here(answer.error, text), text
            continue
        accepted += 1
        theirs = output(answer).replace(rb"\ufffd", "\ufffd".encode())  # its spelling of invalid UTF-8
        if ours != theirs:
            assert _known_to_be_refused_here(ours, text, theirs) or _known_to_differ(text), text
    return accepted


def _known_to_be_accepted_here(error: str, text: bytes) -> bool:
    return ("unknown escape character" in error and rb"\/" in text) or "\ufeff".encode() in text


def _known_to_be_refused_here(ours: bytes | yaml.YAMLError, text: bytes, theirs: bytes) -> bool:
    """What the original never looks at: what is below the first document, or overridden by a later key."""
    if not isinstance(ours, yaml.YAMLError):
        return False
    message = str(ours)
    if "unknown escape character" in message:
        return rb"\'" in text
    return _first(text) == theirs or _has_duplicates(text) or "\ufeff".encode() in text


def _known_to_differ(text: bytes) -> bool:
    # Two keys that are one in JSON (`1` and "1") come in any order from the original.
    return "\ufeff".encode() in text or _has_duplicates(text)


def _first(text: bytes) -> bytes | None:
    try:
        found = next(exact.documents(text, []), None)
    except yaml.YAMLError:
        return None
    return gojson.compact(found.value if found else None)


def _has_duplicates(text: bytes) -> bool:
    try:
        next(exact.documents(text), None)
    except yaml.YAMLError as error:
        return "already set" in str(error) or "unsupported" in str(error)
    return False


def test_every_scalar_means_what_it_means_to_the_original() -> None:
    everywhere = [f"{{0}}: {scalar}" for scalar in (*SCALARS, *TAGGED)]
    keys = [f"{key}: x" for key in (*KEYS, *SCALARS)]
    texts = [*SCALARS, *TAGGED, *everywhere, *keys, *(f"- {scalar}" for scalar in SCALARS)]
    assert assert_read_alike([text.encode() for text in texts]) > len(texts) / 2


@pytest.mark.parametrize("seed", range(3))
def test_generated_texts_are_read_or_refused_like_the_original(seed: int) -> None:
    chance = random.Random(seed)
    texts = [block(chance, 0, chance.randrange(3)).encode() for _ in range(8000)]
    assert assert_read_alike(texts) > 2000


def test_merges_count_in_the_order_of_the_text() -> None:
    base = "base: &base {a: 1, b: 2}\nother: &other {a: 3, c: 4}\n"
    merges = [
        "<<: *base",
        "<<: [*base, *other]",
        "a: 9",
        "b: 8",
        "<<: {a: 7}",
        '"<<": 1',
        "<<: *other",
        "<<: [{a: 5}]",
    ]
    chance = random.Random(6)
    texts = [
        f"{base}user:\n  " + "\n  ".join(chance.sample(merges, chance.randrange(1, 5))) + "\n"
        for _ in range(500)
    ]
    assert assert_read_alike([text.encode() for text in texts]) == len(texts)


# The corpus


def manifests() -> list[bytes]:
    folders = corpus.bundles()
    paths = [
        path for folder in folders for path in folder.parent.rglob("*") if path.suffix in (".yaml", ".yml")
    ]
    return [path.read_bytes() for path in sorted(set(paths))]


def catalogs() -> list[Path]:
    return sorted(corpus.catalog().glob("*/catalog.json"))


def test_real_manifests_are_read_and_written_like_the_original() -> None:
    texts = manifests()
    assert len(texts) > 100
    assert_read_alike(texts)
    read_values = [json.loads(ours) for ours in map(read, texts) if isinstance(ours, bytes)]
    assert_written_alike(read_values)


def test_real_catalogs_are_written_like_in_the_original() -> None:
    texts = [path.read_bytes() for path in catalogs()]
    streams = Oracle().ask_all("json stream", map(bytes_of, texts))
    blobs = [gojson.decode(base64.b64decode(raw)) for answer in streams for raw in answer.output]
    asked = [{"value": blob, "floats": True, "indent": 4} for blob in blobs]
    for blob, answer in zip(blobs, Oracle().ask_all("json marshal", asked), strict=True):
        assert gojson.pretty(blob, floats=True) == output(answer)


@pytest.mark.parametrize("seed", range(2))
def test_distorted_manifests_are_read_or_refused_like_the_original(seed: int) -> None:
    chance = random.Random(seed)
    texts = [text.decode() for text in manifests()]
    asked = [distorted(chance, excerpt(chance, chance.choice(texts))).encode() for _ in range(8000)]
    assert assert_read_alike(asked) > 3000


def test_distorted_json_is_decoded_or_refused_like_in_the_original() -> None:
    chance = random.Random(7)
    texts = [json_text(chance) for _ in range(8000)]
    accepted = 0
    for text, answer in zip(texts, Oracle().ask_all("json stream", map(bytes_of, texts)), strict=True):
        if answer.error or len(answer.output or ()) != 1:
            with pytest.raises(gojson.JSONError):
                gojson.decode(text)
        else:
            accepted += 1
            assert gojson.decode(text) == gojson.decode(base64.b64decode(answer.output[0])), text
    assert accepted > 800
