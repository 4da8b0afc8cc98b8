"""Folders with a kustomization, built by us and by kustomize itself: the same objects.

kustomize's own library answers in the oracle. The folders are operator-sdk's sample project (from the Go
module cache), one case for each field, and many drawn at random over a folder with all kinds of references.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from conformance.goliterals import module_directory
from harness import operatorfolder
from harness.oracle import Oracle
from podium.api.kinds import Object
from podium.bundle.overlay import OverlayError
from podium.bundle.overlay import kustomize as overlay_kustomize
from podium.text import yaml

pytestmark = pytest.mark.oracle

SDK = Path(__file__).parents[2] / "conformance" / "go" / "operator-sdk"
MANY = 400

Folder = dict[str, str]


def ours(files: Folder, folder: str) -> dict[str, Object]:
    """What we build, by identity."""
    built = overlay_kustomize.build({name: text.encode() for name, text in files.items()}, folder)
    return by_identity([item.object for item in built])


def theirs(text: str) -> dict[str, Object]:
    """What kustomize builds, by identity."""
    return by_identity([value for value in yaml.load_all(text) if value is not None])


def by_identity(objects: list[Object]) -> dict[str, Object]:
    """Objects by all that names them."""
    return {
        "/".join((o["apiVersion"], o["kind"], o["metadata"].get("namespace", ""), o["metadata"]["name"])): o
        for o in objects
    }


def assert_same(files: Folder, folder: str) -> None:
    """Fails unless kustomize builds the same objects."""
    answer = Oracle().ask("kustomize", {"files": files, "folder": folder})
    assert not answer.error, answer.error
    assert ours(files, folder) == theirs(answer.output)


def sample_project() -> Folder:
    """operator-sdk's sample project."""
    module = module_directory("github.com/operator-framework/operator-sdk", SDK)
    root = module / "testdata" / "helm" / "memcached-operator"
    return {
        str(path.relative_to(root)): path.read_text()
        for path in sorted((root / "config").rglob("*"))
        if path.is_file()
    }


@pytest.mark.parametrize(
    "folder",
    [
        "crd",
        "default",
        "manager",
        "manifests",
        "network-policy",
        "prometheus",
        "rbac",
        "samples",
        "scorecard",
    ],
)
def test_folders_of_a_real_project_build_to_the_same_objects(folder: str) -> None:
    assert_same(sample_project(), f"config/{folder}")


# kustomize must be told where CRDs name the service that converts them, as kubebuilder projects do. We know.
CONVERSION = """
nameReference:
- kind: Service
  version: v1
  fieldSpecs:
  - kind: CustomResourceDefinition
    version: v1
    group: apiextensions.k8s.io
    path: spec/conversion/webhook/clientConfig/service/name
"""


def operator(kustomization: str) -> Folder:
    """A folder with the operator's manifests and a kustomization over them."""
    return {
        "base/all.yaml": operatorfolder.folder()["config/all.yaml"].decode(),
        "base/names.yaml": CONVERSION,
        "base/kustomization.yaml": "resources: [all.yaml]\nconfigurations: [names.yaml]",
        "top/kustomization.yaml": f"resources: [../base]\n{kustomization}",
    }


FIELDS = {
    "nothing": "",
    "prefix": "namePrefix: my-",
    "suffix": "nameSuffix: -2-1-0",
    "namespace": "namespace: elsewhere",
    "all names": "namePrefix: my-\nnameSuffix: -v1\nnamespace: elsewhere",
    "images": """
images:
- {name: controller, newName: quay.io/me/op, newTag: 1.2.3}
- {name: busybox, digest: "sha256:0123"}
- {name: "registry.example:5000/tools/proxy", newTag: "3"}
""",
    "common labels": "commonLabels: {tier: one}",
    "labels": "labels: [{pairs: {tier: one}}]",
    "labels and templates": "labels: [{pairs: {tier: one}, includeTemplates: true}]",
    "labels and selectors": "labels: [{pairs: {tier: one}, includeSelectors: true}]",
    "annotations": "commonAnnotations: {note: hello}",
    "replicas": "replicas: [{name: manager, count: 3}]",
    "json patch": """
patches:
- target: {kind: Deployment}
  patch: |-
    - {op: add, path: /spec/template/spec/containers/0/args/-, value: --more}
    - {op: remove, path: /spec/template/spec/containers/1}
""",
    "json patch by expression": """
patches:
- target: {kind: Role|ClusterRole, name: "(lead|view)er"}
  patch: '[{"op": "add", "path": "/metadata/labels", "value": {"a": "b"}}]'
""",
    "patch for nothing": """
patches:
- target: {kind: StatefulSet}
  patch: '[{"op": "remove", "path": "/spec"}]'
""",
    "merge patch by name": """
patches:
- patch: |-
    apiVersion: apps/v1
    kind: Deployment
    metadata: {name: manager, namespace: system}
    spec:
      replicas: null
      template:
        spec:
          containers:
          - {name: proxy, image: "proxy:3", ports: [{containerPort: 9000}]}
          - {name: manager, env: [{name: NEW, value: x}, {name: MODE, $patch: delete}]}
          - {name: sidecar, image: sidecar}
          volumes: [{name: more, emptyDir: {}}]
""",
    "merge patch by target": """
patches:
- target: {labelSelector: app=tool}
  patch: |-
    apiVersion: v1
    kind: Anything
    metadata: {name: anything, labels: {more: "yes"}}
""",
    "merge patch that deletes an object": """
patches:
- patch: |-
    $patch: delete
    apiVersion: v1
    kind: Secret
    metadata: {name: token, namespace: system}
""",
    "merge patch that replaces a list": """
patches:
- patch: |-
    apiVersion: apps/v1
    kind: Deployment
    metadata: {name: manager, namespace: system}
    spec: {template: {spec: {containers: [{$patch: replace}, {name: only, image: only}]}}}
""",
    "merge patch of a custom kind": """
patches:
- patch: |-
    apiVersion: tools.example.com/v1
    kind: Tool
    metadata: {name: sample}
    spec: {size: 4, parts: [a, b]}
""",
    "merge patch of a CRD": """
patches:
- patch: |-
    apiVersion: apiextensions.k8s.io/v1
    kind: CustomResourceDefinition
    metadata: {name: tools.tools.example.com, annotations: {a: b}}
""",
    "patch before renaming": """
namePrefix: my-
patches:
- target: {kind: Service, name: webhook-service}
  patch: '[{"op": "replace", "path": "/spec/ports/0/port", "value": 8443}]'
""",
    "old patch fields": """
patchesStrategicMerge:
- |-
  apiVersion: apps/v1
  kind: Deployment
  metadata: {name: manager, namespace: system}
  spec: {replicas: 5}
patchesJson6902:
- target: {group: apps, version: v1, kind: Deployment, name: manager}
  patch: '[{"op": "add", "path": "/metadata/annotations", "value": {"a": "b"}}]'
""",
    "config map generator": """
namePrefix: my-
configMapGenerator:
- {name: made, literals: [a=b, 'c="d e"']}
- {name: plain, literals: [x=y], options: {disableNameSuffixHash: true, labels: {l: m}}}
secretGenerator:
- {name: hidden, namespace: system, literals: [a=b], type: kubernetes.io/whatever}
""",
    "generator that merges": """
configMapGenerator:
- {name: settings, namespace: system, behavior: merge, literals: [more=yes]}
""",
    "generator that replaces, and is used": """
configMapGenerator:
- {name: settings, namespace: system, behavior: replace, literals: [mode=slow]}
""",
    "replacement": """
namePrefix: my-
replacements:
- source: {kind: Service, name: webhook-service}
  targets:
  - select: {kind: Deployment}
    fieldPaths: ["spec.template.spec.containers.[name=manager].env.[name=RELATED_IMAGE_DATA_BASE].value"]
    options: {delimiter: /, index: 1}
  - select: {kind: ConfigMap}
    fieldPaths: [data.service, "metadata.annotations.[example.com/service]"]
    options: {create: true}
""",
    "replacement of a part": """
replacements:
- source:
    kind: Deployment
    fieldPath: "spec.template.spec.containers.0.image"
    options: {delimiter: ":", index: 1}
  targets:
  - select: {kind: ConfigMap, name: settings}
    fieldPaths: [data.mode]
""",
}


@pytest.mark.parametrize("field", FIELDS)
def test_each_field_does_what_kustomize_does_with_it(field: str) -> None:
    assert_same(operator(FIELDS[field]), "top")


def test_patches_and_generators_read_files_beside_the_kustomization() -> None:
    files = operator(
        """
patches:
- path: patch.yaml
  target: {kind: Deployment}
configMapGenerator:
- {name: files, files: [patch.yaml, key=data.txt], envs: [some.env]}
"""
    )
    files["top/patch.yaml"] = "- {op: replace, path: /spec/replicas, value: 7}\n"
    files["top/data.txt"] = "some\ntext"
    files["top/some.env"] = "# comment\nA=b\nC=d=e\n"
    assert_same(files, "top")


def test_a_generated_object_that_is_merged_into_keeps_the_hash_in_its_name() -> None:
    files = operator("configMapGenerator: [{name: made, behavior: merge, literals: [c=d]}]\nnamePrefix: my-")
    files["base/kustomization.yaml"] += (
        "\nconfigMapGenerator: [{name: made, literals: [a=b]}]\nnameSuffix: -x"
    )
    assert_same(files, "top")


def test_a_component_changes_what_includes_it() -> None:
    files = operator("components: [part]\nnamePrefix: my-")
    files["top/part/kustomization.yaml"] = """
apiVersion: kustomize.config.k8s.io/v1alpha1
kind: Component
resources: [more.yaml]
labels: [{pairs: {part: "yes"}}]
patches: [{target: {kind: Deployment}, patch: '[{"op": "replace", "path": "/spec/replicas", "value": 9}]'}]
"""
    files["top/part/more.yaml"] = "{apiVersion: v1, kind: ConfigMap, metadata: {name: more}}"
    assert_same(files, "top")


def test_a_project_may_say_where_its_custom_kinds_name_objects() -> None:
    files = operator("namePrefix: my-\nconfigurations: [names.yaml]\nresources: [../base, tool.yaml]")
    files["top/kustomization.yaml"] = files["top/kustomization.yaml"].replace("resources: [../base]\n", "", 1)
    files["top/tool.yaml"] = """
apiVersion: tools.example.com/v1
kind: Tool
metadata: {name: other, namespace: system}
spec: {secret: token}
"""
    files["top/names.yaml"] = """
nameReference:
- kind: Secret
  version: v1
  fieldSpecs: [{kind: Tool, path: spec/secret}]
"""
    assert_same(files, "top")


def test_two_copies_of_a_base_keep_their_own_references() -> None:
    files = operator("")
    simple = """
apiVersion: v1
kind: ServiceAccount
metadata: {name: worker}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: worker}
spec:
  selector: {matchLabels: {a: b}}
  template: {metadata: {labels: {a: b}}, spec: {serviceAccountName: worker}}
"""
    files |= {
        "simple/all.yaml": simple,
        "simple/kustomization.yaml": "resources: [all.yaml]",
        "one/kustomization.yaml": "resources: [../simple]\nnamePrefix: one-",
        "two/kustomization.yaml": "resources: [../simple]\nnameSuffix: -two",
        "both/kustomization.yaml": "resources: [../one, ../two]\nnamePrefix: all-",
    }
    assert_same(files, "both")


def drawn(chance: random.Random) -> Folder:
    """A kustomization with a few fields, over one or two layers."""

    def layer(name: str) -> dict[str, Any]:
        choices: list[tuple[str, Any]] = [
            ("namePrefix", chance.choice(["a-", "b-", "long-prefix-"])),
            ("nameSuffix", chance.choice(["-x", "-1-2-3"])),
            ("namespace", chance.choice(["one", "two", "system"])),
            ("commonAnnotations", {"note": chance.choice(["a", "b"])}),
            ("images", [{"name": "controller", "newName": "new", "newTag": chance.choice(["1", "2"])}]),
            (
                "labels",
                [
                    {
                        # kustomize shares the nodes of a label that two layers set: one changes the other.
                        "pairs": {name: chance.choice("xyz")},
                        "includeSelectors": chance.random() < 0.5,
                        "includeTemplates": chance.random() < 0.5,
                    }
                ],
            ),
            ("replicas", [{"name": "manager", "count": chance.randrange(5)}]),
            (
                "configMapGenerator",
                [{"name": f"made-{chance.randrange(100)}", "literals": [f"k={chance.randrange(100)}"]}],
            ),
            (
                "patches",
                [
                    {
                        "target": {
                            "kind": chance.choice(["Deployment", "Service", "ServiceAccount", "Role"])
                        },
                        "patch": '[{"op": "add", "path": "/metadata/annotations", "value": {"p": "q"}}]',
                    }
                ],
            ),
        ]
        return {key: value for key, value in choices if chance.random() < 0.35}

    return {
        "base/all.yaml": operatorfolder.folder()["config/all.yaml"].decode(),
        "base/names.yaml": CONVERSION,
        "base/kustomization.yaml": yaml.dump(
            {"resources": ["all.yaml"], "configurations": ["names.yaml"], **layer("base")}
        ),
        "top/kustomization.yaml": yaml.dump({"resources": ["../base"], **layer("top")}),
    }


def test_random_layers_build_to_the_same_objects() -> None:
    folders = [drawn(random.Random(seed)) for seed in range(MANY)]
    answers = Oracle().ask_all("kustomize", [{"files": files, "folder": "top"} for files in folders])
    compared = 0
    for seed, (files, answer) in enumerate(zip(folders, answers, strict=True)):
        if answer.error:
            with pytest.raises(OverlayError):
                ours(files, "top")
            continue
        assert ours(files, "top") == theirs(answer.output), seed
        compared += 1
    assert compared > MANY * 0.8
