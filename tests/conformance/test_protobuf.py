"""Decoding compared with Go's own: protobuf of every kind, JSON that is slightly wrong, quantities."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from podium.schema import facts, openapi, quantity
from podium.schema.coerce import DecodeError, coerce
from podium.schema.protobuf import decode

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]

Object = dict[str, Any]
TOOLS = Path(__file__).parents[2] / "tools" / "facts"
Ask = Callable[[str, list[Any]], list[Any]]


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program that knows Go's answers."""
    if shutil.which("go") is None:
        pytest.fail("needs Go (https://go.dev/dl/): it compares with what Go decodes")
    program = tmp_path_factory.mktemp("facts") / "samples"
    subprocess.run(["go", "build", "-o", str(program), "./samples"], cwd=TOOLS, check=True)
    return program


@pytest.fixture(scope="module")
def objects(samples: Path) -> list[Object]:
    lines = subprocess.run([str(samples)], check=True, text=True, stdout=subprocess.PIPE).stdout.splitlines()
    return [json.loads(line) for line in lines]


@pytest.fixture(scope="module")
def ask(samples: Path) -> Ask:
    def ask(what: str, questions: list[Any]) -> list[Any]:
        text = "".join(json.dumps(question) + "\n" for question in questions)
        answers = subprocess.run(
            [str(samples), what], input=text, check=True, text=True, stdout=subprocess.PIPE
        )
        return [json.loads(line) for line in answers.stdout.splitlines()]

    return ask


def test_protobuf_of_every_kind_decodes_to_gos_json(objects: list[Object]) -> None:
    served = {kind for _, _, kind in facts.load().kinds()} - {"Table", "WatchEvent"}
    assert {sample["Kind"] for sample in objects} == served
    for sample in objects:
        decoded = decode(bytes.fromhex(sample["Protobuf"]))
        assert decoded == sample["JSON"], f"{sample['APIVersion']} {sample['Kind']}, {sample['Filling']}"


def read(obj: Object) -> Object:
    """Our answer to what the program answers."""
    group, _, version = obj["apiVersion"].rpartition("/")
    fact = facts.load().type_for(group, version, obj["kind"])
    assert fact is not None
    try:
        coerced = coerce(obj, fact)
    except DecodeError as error:
        return {"error": str(error)}
    return {"object": coerced.object, "strict": [f'unknown field "{path}"' for path in coerced.unknown]}


WRONG: list[Any] = [
    None,
    "",
    0,
    [],
    {},
    False,
    True,
    "x",
    -7,
    2.5,
    3000000000,
    99999999999999999999,
    "100m",
    "aGk=",
    "2024-01-02T03:04:05Z",
    "2024-01-02T03:04:05.123456+02:00",
    {"a": None},
    {"zzz": 1},
    [{"zzz": {}}],
]


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield (*path, key)
        yield from places(item, (*path, key))


def spoiled(obj: Object, random: Random) -> Object:
    """A copy with one thing changed: a value replaced, a field left out, renamed or added."""
    copy: Object = json.loads(json.dumps(obj))
    # Below a list of objects, storage drops their kind, which `coerce` leaves to its caller.
    usual = [path for path in places(copy) if path[-1] not in ("kind", "apiVersion", "request")]
    *parents, last = random.choice(usual)
    target: Any = copy
    for key in parents:
        target = target[key]
    change = random.random() if isinstance(target, dict) else 1
    if change < 0.1:
        target["unknown"] = random.choice(WRONG)
    elif change < 0.2:
        target[str(last).upper()] = target.pop(last)
    elif change < 0.3:
        del target[last]
    else:
        target[last] = random.choice(WRONG)
    return copy


def test_json_that_is_slightly_wrong_is_decoded_or_refused_as_by_go(objects: list[Object], ask: Ask) -> None:
    random = Random(20240102)
    sound = [each["JSON"] for each in objects if len(each["Protobuf"]) < 60_000 and len(each["JSON"]) > 2]
    questions = [spoiled(random.choice(sound), random) for _ in range(4000)]
    answers = ask("coerce", questions)
    assert sum("error" in answer for answer in answers) > 1000
    for question, answer in zip(questions, answers, strict=True):
        assert read(question) == answer, question


def test_quantities_are_written_as_by_go(ask: Ask) -> None:
    random = Random(20240102)
    suffixes = [
        "",
        "m",
        "u",
        "n",
        "k",
        "M",
        "G",
        "T",
        "P",
        "E",
        "Ki",
        "Mi",
        "Gi",
        "Ti",
        "Pi",
        "Ei",
        "e3",
        "E-2",
        "i",
        "x",
    ]
    questions = []
    for _ in range(5000):
        whole = random.choice(["", "-", "+"]) + str(random.randrange(10 ** random.randrange(1, 22)))
        decimals = "".join(random.choices("0000123456789", k=random.randrange(12)))
        questions.append(f"{whole}{random.choice(['', '.' + decimals])}{random.choice(suffixes)}")
    for question, answer in zip(questions, ask("quantities", questions), strict=True):
        try:
            written = {"object": quantity.canonical(question), "strict": []}
        except quantity.QuantityError as error:
            written = {"error": str(error)}
        assert written == answer, question


def test_the_table_is_what_the_generator_writes(samples: Path, tmp_path: Path) -> None:
    written = tmp_path / "facts.jsonl"
    subprocess.run([sys.executable, str(TOOLS / "generate.py"), str(written)], check=True)
    assert written.read_bytes() == Path(facts.__file__).with_name("facts.jsonl").read_bytes()


def comparable(value: Any) -> Any:
    """A published schema without what we leave out: descriptions, enumerations, and lone `allOf`s."""
    if isinstance(value, list):
        return [comparable(item) for item in value]
    if not isinstance(value, dict):
        return value
    made = {
        key: sorted(item) if key == "required" and isinstance(item, list) else comparable(item)
        for key, item in value.items()
        if not (
            (key == "description" and isinstance(item, str)) or (key == "enum" and isinstance(item, list))
        )
    }
    made.pop("x-kubernetes-group-version-kind", None)
    return made["allOf"][0] if set(made) == {"allOf"} else made


def test_openapi_schemas_are_those_that_kubernetes_publishes(samples: Path) -> None:
    found = subprocess.run(
        ["go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/kubernetes"],
        cwd=TOOLS,
        check=True,
        text=True,
        capture_output=True,
    )
    folder = Path(found.stdout.strip()) / "api" / "openapi-spec" / "v3"
    table = facts.load()
    for group, version in table.group_versions:
        resources = [each for each in table.resources if (each.group, each.version) == (group, version)]
        ours = openapi.document(group, version, resources)["components"]["schemas"]
        name = openapi.path_of(group, version).replace("/", "__")
        theirs = json.loads((folder / f"{name}_openapi.json").read_text())["components"]["schemas"]
        for schema, document in ours.items():
            assert comparable(document) == comparable(theirs[schema]), schema
        assert set(theirs) - set(ours) <= {
            "io.k8s.apimachinery.pkg.apis.meta.v1.WatchEvent",
            "io.k8s.apimachinery.pkg.runtime.RawExtension",
        }
