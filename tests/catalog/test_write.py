"""Writing catalogs: opm's order, its JSON and its YAML."""

from __future__ import annotations

import random
from typing import Any

import pytest

from podium.catalog import blobs, read, write
from podium.catalog.blobs import Blob, CatalogError

SHUFFLED: list[dict[str, Any]] = [
    {"schema": "root.other", "x": 1},
    {"schema": "olm.bundle", "package": "b", "name": "b.v0.2.0", "image": "i", "dropped": 1},
    {"schema": "olm.bundle", "package": "b", "name": "b.v0.10.0", "image": "i"},
    {"schema": "olm.deprecations", "package": "b", "entries": None},
    {"schema": "z.other", "package": "b"},
    {"schema": "y.other", "package": "b"},
    {"schema": "olm.channel", "package": "b", "name": "two", "entries": []},
    {"schema": "olm.channel", "package": "b", "name": "one"},
    {"schema": "olm.package", "name": "b"},
    {"schema": "olm.package", "name": "a", "defaultChannel": "<&>", "description": "two\nlines"},
    {"schema": "olm.bundle", "name": "of no package", "image": "i"},
]


def test_blobs_are_ordered_as_opm_orders_them() -> None:
    content = [blobs.of(each) for each in SHUFFLED]
    random.Random(1).shuffle(content)
    assert [blob.name or blob.schema for blob in write.ordered(content)] == [
        "a",
        "b",
        "one",
        "two",
        "b.v0.10.0",
        "b.v0.2.0",
        "y.other",
        "z.other",
        "olm.deprecations",
        "root.other",
    ]


def test_json_is_indented_and_keeps_only_known_fields() -> None:
    content = [blobs.of(SHUFFLED[1]), blobs.of(SHUFFLED[7]), blobs.of(SHUFFLED[0])]
    assert b"".join(write.json(content)).decode() == (
        '{\n    "schema": "olm.channel",\n    "name": "one",\n    "package": "b",\n    "entries": null\n}\n'
        '{\n    "schema": "olm.bundle",\n    "name": "b.v0.2.0",\n    "package": "b",\n    "image": "i"\n}\n'
        '{\n    "schema": "root.other",\n    "x": 1\n}\n'
    )


def test_yaml_documents_are_sorted_and_start_with_dashes() -> None:
    content = [blobs.of(SHUFFLED[9]), blobs.of({"schema": "x", "n": 10**20, "e": []})]
    assert b"".join(write.yaml(content)).decode() == (
        "---\ndefaultChannel: <&>\ndescription: |-\n  two\n  lines\nname: a\nschema: olm.package\n"
        '---\ne: []\n"n": 1e+20\nschema: x\n'
    )


@pytest.mark.parametrize("form", [write.json, write.yaml])
def test_what_is_written_reads_back_the_same(form: write.Write) -> None:
    content = write.ordered(blobs.canonical(blobs.of(each)) for each in SHUFFLED if "dropped" not in each)
    again = list(read.read([("f", b"".join(form(content)))]))
    assert [blob.schema for blob in again] == [blob.schema for blob in content]
    assert b"".join(form(again)) == b"".join(form(content))


def test_the_directory_form_has_one_file_per_package() -> None:
    files = dict(write.tree([blobs.of(each) for each in SHUFFLED], write.yaml, "yaml"))
    assert list(files) == ["a/catalog.yaml", "b/catalog.yaml", "catalog.yaml"]
    assert b"".join(files["catalog.yaml"]) == b"---\nschema: root.other\nx: 1\n"


@pytest.mark.parametrize("name", ["../up", "/root", "a/../.."])
def test_a_package_cannot_write_outside(name: str) -> None:
    with pytest.raises(CatalogError, match="must be a single local path element"):
        dict(write.tree([blobs.of({"schema": "olm.package", "name": name})], write.json, "json"))


def test_properties_keep_the_order_of_keys_that_a_renderer_gave_them() -> None:
    value = b'{"b":"\\u003c","a":1}'
    raw = b'{"schema":"olm.bundle","package":"p","image":"i","properties":[{"type":"t","value":%s}]}' % value
    blob = Blob("olm.bundle", "p", "", raw)
    assert b'"b": "\\u003c",' in b"".join(write.json([blob]))
    assert blobs.canonical(blob).raw.endswith(b'{"a":1,"b":"<"}}],"schema":"olm.bundle"}')
