"""Bundles with something wrong: sound ones, changed in a place or a few, at every field that rules look at.

Changes are drawn from a seeded generator, so that a case that fails can be made again from its number.
"""

from __future__ import annotations

import base64
import copy
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any

from conformance import bundle_faults as faults
from harness import samplebundle
from podium.text import yaml

Path = tuple[str | int, ...]


@dataclass
class Case:
    """A bundle to ask about, with the options that go with it."""

    number: int
    files: dict[str, bytes]
    what: list[str]
    options: dict[str, str] = field(default_factory=dict)
    categories: str = ""
    index: str = ""
    platforms: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    inspects_images: bool = True  # which costs time

    def question(self, checks: list[str]) -> dict[str, Any]:
        """The case as the oracle is asked about it."""
        listed = {
            image: [{"os": system, "architecture": arch} for system, arch in platforms]
            for image, platforms in self.platforms.items()
        }
        return {
            "files": {path: base64.b64encode(data).decode() for path, data in self.files.items()},
            "optional": checks,
            "options": self.options,
            "categories": self.categories,
            "index": self.index,
            "platforms": listed,
        }

    def our_options(self) -> dict[str, Any]:
        """The options as our checks take them."""
        own = {"categories": self.categories, "index": self.index, "platforms": self.platforms}
        return {**self.options, **{key: value for key, value in own.items() if value}}


def cases(count: int, start: int = 0) -> Iterator[Case]:
    """So many distorted bundles; each number gives the same bundle always."""
    for number in range(start, start + count):
        yield case(number)


def case(number: int) -> Case:
    """The distorted bundle of that number."""
    random = Random(number)
    documents = samplebundle.documents()
    what: list[str] = []
    if random.random() < 0.12:
        documents[samplebundle.CRD_FILE] = _old_crd(documents[samplebundle.CRD_FILE])
        what.append("old CRD")
    what += [_distort(documents, random) for _ in range(random.choice((1, 1, 1, 1, 2, 3)))]
    files = _written(documents, random)
    if random.random() < 0.25:
        what.append(random.choice(_FILE_CHANGES)(files, random))
    made = Case(
        number, files, what, platforms={faults.IMAGE: _platforms(random)} if random.random() < 0.8 else {}
    )
    made.inspects_images = number % 5 == 0
    if random.random() < 0.3:
        made.options["k8s-version"] = random.choice(("1.22", "1.25", "1.26", "v1.25.0", "x", "1.21.9", ""))
    if random.random() < 0.1:
        made.categories = random.choice(('{"categories": ["Toys"]}', '{"categories": "x"}', "x", "{}", "[]"))
    if random.random() < 0.3:
        made.index = random.choice(_INDEXES)
    return made


def single_faults() -> Iterator[Case]:
    """Every fault of every table, one at a time, at every place where the sample bundle has such a field."""
    places = [
        (file, path) for file, document in samplebundle.documents().items() for path in _places(document)
    ]
    listed: list[tuple[str, Path, Any]] = [
        *((samplebundle.CSV_FILE, path, value) for path, value in faults.CSV_FAULTS),
        *((samplebundle.CRD_FILE, path, value) for path, value in faults.CRD_FAULTS),
        *faults.OBJECT_FAULTS,
        *(
            (file, path, value)
            for file, path in places
            for value in faults.CANDIDATES.get(str(path[-1]), ())
            if len(path) < _FAR_DOWN
        ),
    ]
    for number, (file, path, value) in enumerate(listed):
        documents = samplebundle.documents()
        what = _set(documents, file, path, value)
        written = {path: yaml.dump(document).encode() for path, document in documents.items()}
        yield Case(
            number, written, [what], platforms={faults.IMAGE: [("linux", "amd64")]}, inspects_images=False
        )


_FAR_DOWN = 9  # below this lie fields of pods, which no rule looks at
_INDEXES = (
    "FROM scratch\n",
    "LABEL com.redhat.openshift.versions='v4.6-v4.8'\n",
    'LABEL com.redhat.openshift.versions="v4.6-v4.9"\n',
    "LABEL com.redhat.openshift.versions=v4.6\n",
    "LABEL com.redhat.openshift.versions==v4.8\n",
    "LABEL com.redhat.openshift.versions==v4.10\n",
    "LABEL com.redhat.openshift.versions\n",
    "LABEL com.redhat.openshift.versions=\n",
    "LABEL com.redhat.openshift.versions=v4.6-x\n",
    "LABEL com.redhat.openshift.versions==x\n",
)


def of_files(number: int, files: dict[str, bytes]) -> Case:
    """A bundle of others, with its ClusterServiceVersion or a CRD changed somewhere."""
    random = Random(number)
    documents = {
        path: value
        for path, data in files.items()
        if path.startswith("manifests/") and isinstance(value := next(yaml.load_all(data), None), dict)
    }
    file = random.choice(
        [p for p, v in documents.items() if v.get("kind") == "ClusterServiceVersion"] or list(documents)
    )
    if random.random() < 0.3:
        file = random.choice(list(documents))
    path = random.choice(list(_places(documents[file])))
    what = f"{file} {path}: " + random.choice(_CHANGES)(documents[file], path, random)
    return Case(number, {**files, file: yaml.dump(documents[file]).encode()}, [what], inspects_images=False)


def _platforms(random: Random) -> list[tuple[str, str]]:
    offered = [
        ("linux", "amd64"),
        ("linux", "arm64"),
        ("windows", "amd64"),
        ("unknown", "unknown"),
        ("linux", ""),
    ]
    return offered[:1] if random.random() < 0.5 else random.sample(offered, random.randint(0, 4))


def _distort(documents: dict[str, Any], random: Random) -> str:
    chance = random.random()
    if chance < 0.2:
        made = [_set(documents, samplebundle.CSV_FILE, *random.choice(faults.CSV_FAULTS)) for _ in range(2)]
        return ", ".join(made)
    if chance < 0.3:
        path, value = random.choice(faults.CRD_FAULTS)
        return _set(documents, samplebundle.CRD_FILE, path, value)
    if chance < 0.4:
        return _set(documents, *random.choice(faults.OBJECT_FAULTS))
    weights = {samplebundle.CSV_FILE: 6, samplebundle.CRD_FILE: 2, samplebundle.ANNOTATIONS_FILE: 2}
    file = random.choices(list(documents), [weights.get(each, 1) for each in documents])[0]
    places = list(_places(documents[file]))
    if not places:
        return "nothing"
    path = random.choice(places)
    return f"{file} {path}: " + random.choice(_CHANGES)(documents[file], path, random)


def _places(value: Any, path: Path = ()) -> Iterator[Path]:
    if isinstance(value, dict | list):
        for key, each in value.items() if isinstance(value, dict) else enumerate(value):
            yield (*path, key)
            yield from _places(each, (*path, key))


def _set(documents: dict[str, Any], file: str, path: Path, value: Any) -> str:
    try:
        _holder(documents[file], path)[path[-1]] = copy.deepcopy(value)
    except (KeyError, IndexError, TypeError):
        return "nothing"  # an earlier change removed what this one is about
    return f"{file} {path} = {str(value)[:80]}"


def _holder(document: Any, path: Path) -> Any:
    for key in path[:-1]:
        document = document[key]
    return document


def _delete(document: Any, path: Path, random: Random) -> str:
    del _holder(document, path)[path[-1]]
    return "deleted"


def _replace(document: Any, path: Path, random: Random) -> str:
    value = random.choice(faults.WRONG_TYPES)
    _holder(document, path)[path[-1]] = copy.deepcopy(value)
    return f"set to {value!r}"


def _fitting(document: Any, path: Path, random: Random) -> str:
    candidates = faults.CANDIDATES.get(str(path[-1]))
    if candidates is None:
        return _replace(document, path, random)
    value = random.choice(candidates)
    _holder(document, path)[path[-1]] = copy.deepcopy(value)
    return f"set to {value!r}"


def _recase(document: Any, path: Path, random: Random) -> str:
    holder, key = _holder(document, path), path[-1]
    if not isinstance(key, str):
        return _duplicate(document, path, random)
    changed = random.choice((key.upper(), key.lower(), key.capitalize(), key.swapcase()))
    holder[changed] = holder.pop(key)
    return f"renamed to {changed}"


def _duplicate(document: Any, path: Path, random: Random) -> str:
    holder: Any = _holder(document, path)
    if isinstance(holder, list):
        item: Any = path[-1]
        holder.append(copy.deepcopy(holder[item]))
        return "repeated"
    return _replace(document, path, random)


_CHANGES: tuple[Callable[[Any, Path, Random], str], ...] = (
    _delete,
    _replace,
    _replace,
    _fitting,
    _fitting,
    _fitting,
    _recase,
    _duplicate,
)


def _old_crd(crd: dict[str, Any]) -> dict[str, Any]:
    (version,) = crd["spec"]["versions"]
    spec = {key: value for key, value in crd["spec"].items() if key != "versions"}
    spec |= {"version": version["name"], "preserveUnknownFields": False, "validation": version["schema"]}
    spec["versions"] = [{"name": version["name"], "served": True, "storage": True}]
    return {**crd, "apiVersion": "apiextensions.k8s.io/v1beta1", "spec": spec}


def _written(documents: dict[str, Any], random: Random) -> dict[str, bytes]:
    if random.random() < 0.3:
        return samplebundle.files(documents)
    return {path: yaml.dump(value).encode() for path, value in documents.items()}


def _add(path: str, data: bytes) -> Callable[[dict[str, bytes], Random], str]:
    def change(files: dict[str, bytes], random: Random) -> str:
        files[path] = data
        return f"added {path}"

    return change


def _drop(files: dict[str, bytes], random: Random) -> str:
    path = random.choice(list(files))
    del files[path]
    return f"dropped {path}"


def _copy_csv(files: dict[str, bytes], random: Random) -> str:
    if samplebundle.CSV_FILE in files:
        files["manifests/second.yaml"] = files[samplebundle.CSV_FILE]
    return "second CSV"


def _copy_crd(files: dict[str, bytes], random: Random) -> str:
    if samplebundle.CRD_FILE in files:
        files["manifests/copy.yaml"] = files[samplebundle.CRD_FILE]
    return "second copy of the CRD"


def _unowned_crd(files: dict[str, bytes], random: Random) -> str:
    if samplebundle.CRD_FILE in files:
        other = files[samplebundle.CRD_FILE].replace(b"Cache", b"Other").replace(b"caches", b"others")
        files["manifests/unowned.yaml"] = other
    return "a CRD that nobody owns"


def _comment_first(files: dict[str, bytes], random: Random) -> str:
    path = random.choice(list(files))
    files[path] = b"# a comment\n---\n" + files[path]
    return f"comment before the document in {path}"


def _second_document(files: dict[str, bytes], random: Random) -> str:
    path = random.choice(
        [path for path in files if path not in (samplebundle.CSV_FILE, samplebundle.CRD_FILE)]
    )
    files[path] = files[path] + b"---\nkind: Pod\n"
    return f"second document in {path}"


def _large(files: dict[str, bytes], random: Random) -> str:
    size = random.choice((900_000, 1_350_000, 2_000_000))
    value = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}}
    noise = random.randbytes(size // 2).hex()
    files["manifests/large.yaml"] = json.dumps({**value, "data": {"a": noise}}).encode()
    return f"a file of {size} bytes"


def _only_nested(files: dict[str, bytes], random: Random) -> str:
    for path in [path for path in files if path.startswith("manifests/")]:
        files[path.replace("manifests/", "manifests/nested/")] = files.pop(path)
    return "all manifests one directory too deep"


def _no_directory(files: dict[str, bytes], random: Random) -> str:
    directory = random.choice(("manifests/", "metadata/"))
    for path in [path for path in files if path.startswith(directory)]:
        del files[path]
    return f"no {directory}"


def _windows_lines(files: dict[str, bytes], random: Random) -> str:
    files |= {path: data.replace(b"\n", b"\r\n") for path, data in files.items()}
    return "CRLF"


_FILE_CHANGES: tuple[Callable[[dict[str, bytes], Random], str], ...] = (
    _drop,
    _copy_csv,
    _copy_crd,
    _unowned_crd,
    _comment_first,
    _second_document,
    _large,
    _windows_lines,
    _only_nested,
    _no_directory,
    _add("manifests/nested/x.yaml", b"a: b\n"),
    _add("manifests/.hidden", b""),
    _add("manifests/garbage.yaml", b"{"),
    _add("manifests/empty.yaml", b""),
    _add("manifests/list.yaml", b"- a\n"),
    _add("manifests/nokind.yaml", b"a: b\n"),
    _add("manifests/infinite.yaml", b"kind: ConfigMap\na: .inf\n"),
    _add("manifests/binary.yaml", b"\x00\xff\xfe"),
    _add(
        "manifests/twice.yaml", b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\nmetadata: {name: b}\n"
    ),
    _add("manifests/Chart.yaml", b"name: chart\n"),
    _add("metadata/aaa.yaml", b"annotations: {a: b}\n"),
    _add("metadata/properties.yaml", b"properties: [{type: olm.x, value: 1}]\n"),
    _add("metadata/zzz.txt", b"{{{"),
    _add("tests/scorecard/config.yaml", b"kind: Configuration\n"),
)
