"""Catalog streams by the thousand: every way to write one down, and ways that only look like one.

A stream is bytes. Its documents have the shapes that blobs have, with values and keys that encoders treat
specially; then they are written as JSON or YAML in one of many styles, and now and then something is spoilt.
"""

from __future__ import annotations

import json
import random
import re
from typing import Any

import yaml

TEXTS = (
    "plain",
    "",
    "yes",
    "0x1F",
    "1.10",
    "null",
    "~",
    "- dash",
    "a: b",
    "#c",
    "tab\there",
    "line\nbreak\n",
    "  lead",
    "trail ",
    "<b>&\u2028\u2029",
    "emoji 😀",
    "\x01\x1f",
    "quo\"te'",
    "back\\slash",
    "2001-01-01",
    "long " * 30,
    "é",
    "=",
    "{x}",
    "a\r\nb",
    "\ufeffbom",
)
NUMBERS = (
    "0",
    "-0",
    "1",
    "1.0",
    "1.5",
    "-2.50",
    "1e3",
    "1E400",
    "1e21",
    "1e-7",
    "0.000001",
    "9007199254740993",
    "18446744073709551615",
    "100000000000000000000",
    "1234567890123456789012345",
    "0.1",
    "1e20",
    "123456789.123456789",
)


_NUMBER = re.compile(r'"number:([^"]*)"')  # stands for a number that is written down as it was given


def draw(chance: random.Random) -> bytes:
    """A stream, whole or spoilt."""
    documents = [_document(chance) for _ in range(chance.choice((0, 1, 1, 2, 3, 4)))]
    write = chance.choice((_compact, _lines, _indented, _adjacent, _yaml, _yaml, _flow, _mixed))
    data = write(documents, chance)
    return _spoilt(data, chance) if chance.random() < 0.25 else data


def _document(chance: random.Random) -> dict[str, Any]:
    kind = chance.choice(
        ("olm.package", "olm.channel", "olm.bundle", "olm.deprecations", "my.own", "my.other")
    )
    package = chance.choice(("a", "b", "b-1", ""))
    made: dict[str, Any] = {_key("schema", chance): kind}
    if kind != "olm.package":
        made[_key("package", chance)] = package
    if kind != "olm.deprecations" and chance.random() < 0.9:
        made[_key("name", chance)] = (
            chance.choice(("n1", "n2", "n10", "")) if kind != "olm.package" else package
        )
    made |= _FIELDS.get(kind, _other)(chance)
    if chance.random() < 0.1:
        made[chance.choice(("extra", "Schema", "NAME", "x"))] = _value(chance, 2)
    return made


def _package(chance: random.Random) -> dict[str, Any]:
    made: dict[str, Any] = {_key("defaultChannel", chance): _text(chance)}
    if chance.random() < 0.4:
        data = chance.choice(("PHN2Zy8+", "", "PHN2\nZy8+", None, "!", "PHN2Zy8"))
        made["icon"] = {"base64data": data, "mediatype": _text(chance)}
    if chance.random() < 0.5:
        made["description"] = _maybe_wrong(_text(chance), chance)
    return made | _properties(chance)


def _channel(chance: random.Random) -> dict[str, Any]:
    entries: list[Any] = []
    for index in range(chance.randint(0, 3)):
        entry: dict[str, Any] = {_key("name", chance): f"v{index}"}
        if chance.random() < 0.5:
            entry[_key("replaces", chance)] = _maybe_wrong("v0", chance)
        if chance.random() < 0.4:
            entry["skips"] = chance.choice(([], ["v0", "v1"], None, ["v0", None], [1]))
        if chance.random() < 0.3:
            entry["skipRange"] = "<1.0.0"
            entry["unknown"] = 1
        entries.append(entry)
    return {_key("entries", chance): _maybe_wrong(entries, chance)} | _properties(chance)


def _bundle(chance: random.Random) -> dict[str, Any]:
    made: dict[str, Any] = {"image": _maybe_wrong("example.com/x:1", chance)}
    if chance.random() < 0.5:
        made[_key("relatedImages", chance)] = [{"name": _text(chance), "image": "b"}, {"image": "a"}, {}]
    return made | _properties(chance)


def _deprecations(chance: random.Random) -> dict[str, Any]:
    reference = chance.choice(({"schema": "olm.package"}, {"schema": "olm.bundle", "name": "x"}, None, {}))
    return {"entries": [{"reference": reference, "message": _text(chance)}]}


def _other(chance: random.Random) -> dict[str, Any]:
    return {chance.choice(("z", "A", "a1", "a10", "a-b", "é")): _value(chance, 3) for _ in range(3)}


_FIELDS = {
    "olm.package": _package,
    "olm.channel": _channel,
    "olm.bundle": _bundle,
    "olm.deprecations": _deprecations,
}


def _properties(chance: random.Random) -> dict[str, Any]:
    if chance.random() < 0.5:
        return {}
    made: list[Any] = [{"type": "t", "value": _value(chance, 3)} for _ in range(chance.randint(0, 3))]
    if chance.random() < 0.1:
        made.append(
            chance.choice((None, {}, {"type": "only"}, {"value": None}, {"Type": "x", "VALUE": [1]}, 5))
        )
    return {_key("properties", chance): made}


def _value(chance: random.Random, depth: int) -> Any:
    match chance.randrange(7 if depth else 4):
        case 0 | 1:
            return _text(chance)
        case 2:
            return f"number:{chance.choice(NUMBERS)}"
        case 3:
            return chance.choice((None, True, False, 7, -1, {}, []))
        case 4:
            return [_value(chance, depth - 1) for _ in range(chance.randint(0, 3))]
    keys = chance.sample((*TEXTS, "a", "b", "c1", "c10", "c2"), chance.randint(0, 4))
    return {key: _value(chance, depth - 1) for key in keys}


def _text(chance: random.Random) -> str:
    return chance.choice(TEXTS)


def _key(key: str, chance: random.Random) -> str:
    return key if chance.random() < 0.9 else chance.choice((key.upper(), key.title()))


def _maybe_wrong(value: Any, chance: random.Random) -> Any:
    return value if chance.random() < 0.95 else chance.choice((None, 1, "x", [], {}, True))


# --- ways to write ---


def _json(value: Any, **style: Any) -> str:
    return _NUMBER.sub(r"\1", json.dumps(value, **({"ensure_ascii": False} | style)))


def _compact(documents: list[Any], chance: random.Random) -> bytes:
    return "".join(_json(document, separators=(",", ":")) + "\n" for document in documents).encode()


def _lines(documents: list[Any], chance: random.Random) -> bytes:
    return "\r\n".join(_json(document, ensure_ascii=True) for document in documents).encode()


def _indented(documents: list[Any], chance: random.Random) -> bytes:
    return (
        chance.choice(("", "\n", "  ")) + "\n\n".join(_json(each, indent=4) for each in documents)
    ).encode()


def _adjacent(documents: list[Any], chance: random.Random) -> bytes:
    return "".join(_json(document) for document in documents).encode()


def _yaml(documents: list[Any], chance: random.Random) -> bytes:
    parts = [yaml.safe_dump(_plain(each), allow_unicode=True, sort_keys=False) for each in documents]
    separator = chance.choice(("---\n", "--- # comment\n", "---\n", "---   \n"))
    head = chance.choice(("", "---\n", "---\n", "# comment\n", "\n"))
    tail = chance.choice(("", "", "---\n", "...\n"))
    return (head + separator.join(parts) + tail).encode()


def _flow(documents: list[Any], chance: random.Random) -> bytes:
    return "\n---\n".join(_json(document) for document in documents).encode()


def _mixed(documents: list[Any], chance: random.Random) -> bytes:
    parts = [_json(each, indent=chance.choice((None, 2))) for each in documents[:1]]
    parts += [yaml.safe_dump(_plain(each), allow_unicode=True) for each in documents[1:]]
    return "\n---\n".join(parts).encode()


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, str) and value.startswith("number:"):
        return float(value.removeprefix("number:"))
    return value


def _spoilt(data: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(data) + 1)
    match chance.randrange(6):
        case 0:
            return data[:at]
        case 1:
            return (
                data[:at]
                + chance.choice((b"}", b"{", b'"', b"\n---\n", b"\xff", b",", b"\\ud800"))
                + data[at:]
            )
        case 2:
            return data + chance.choice((b"trailing", b"\n---\ntext\n", b"{}", b"[]", b"\n\n", b"--- x\n"))
        case 3:
            return data[:at] + data[at + 1 :]
        case 4:
            return chance.choice(
                (b"[1]", b'"text"', b"17", b"null", b"# nothing", b" ", b"\xef\xbb\xbf{}", b"{}\n{}")
            )
    return data.replace(b"olm.", chance.choice((b"", b"x.")))
