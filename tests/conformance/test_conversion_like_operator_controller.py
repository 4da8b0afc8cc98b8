"""Conversion gives the objects that operator-controller gives, and refuses what it refuses, in its words.

The original is asked through the program in conformance/go/convert. Order counts, except where it has none
itself: ServiceAccounts, certificates, and ports that it sorts as equal. Two differences are ours, and each is
undone here and nowhere else: a port of 0 (see `_with_port`) and a VerticalPodAutoscaler's namespace.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from conformance.bundle_variations import Variation, options, variation
from conformance.goliterals import module_directory
from harness import binaries, corpus, folders
from podium.bundle.convert import Certificates, CertManager, ConversionError, ServiceCA, convert
from podium.bundle.convert.source import read
from podium.bundle.convert.validators import RULES
from podium.bundle.model import Bundle, BundleError
from podium.text import yaml

pytestmark = pytest.mark.oracle

Object = dict[str, Any]

CERTIFICATES: dict[str, Certificates | None] = {
    "": None,
    "cert-manager": CertManager(),
    "service-ca": ServiceCA(),
}
REPOSITORY = Path(__file__).parents[2]
HERE = "here"


def original(questions: Iterable[Object]) -> list[Object]:
    lines = "".join(json.dumps(question) + "\n" for question in questions)
    program = binaries.find("convert")
    done = subprocess.run([program], input=lines.encode(), stdout=subprocess.PIPE, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def ours(files: dict[str, bytes] | Bundle, asked: Object) -> Object:
    """What conversion answers, in the form of the original's program."""
    try:
        bundle = files if isinstance(files, Bundle) else read(files)
        objects = convert(
            bundle,
            asked["installNamespace"],
            watch_namespaces=asked["watchNamespaces"],
            certificates=CERTIFICATES[asked["certificates"]],
            deployment_config=asked["deploymentConfig"],
        )
    except BundleError as error:
        return {"stage": "read", "error": str(error)}
    except ConversionError as error:
        return {"stage": _stage(error), "error": _words(error)}
    return {"objects": objects}


def _stage(error: ConversionError) -> str:
    rendered = {*RULES, "watch-namespaces"}
    return "render" if all(finding.rule in rendered for finding in error.findings) else "read"


def _words(error: ConversionError) -> str:
    """The original stops after its validators, and again after its options."""
    last = "conversion-preserves-unknown"
    broken = [finding.message for finding in error.findings if finding.rule in RULES and finding.rule != last]
    if broken:
        return "\n".join(broken)
    first = error.findings[-1] if error.findings[-1].rule == "watch-namespaces" else error.findings[0]
    prefix = "invalid option(s): " if first.rule == "watch-namespaces" else ""
    return prefix + first.message


def assert_same(mine: Object, theirs: Object, about: object) -> None:
    if "error" in theirs or "error" in mine:
        assert mine.get("stage") == theirs.get("stage"), (about, mine.get("error"), theirs.get("error"))
        if theirs["stage"] == "render":
            assert mine["error"] == theirs["error"], about
        return
    left, right = list(_comparable(mine["objects"])), list(_comparable(theirs["objects"]))
    assert [obj["kind"] for obj in left] == [obj["kind"] for obj in right], about
    for one, other in zip(left, right, strict=True):
        assert one == other, about


def _comparable(objects: Sequence[Object]) -> Iterator[Object]:
    """The objects with what has no order upstream put in one, and our own differences undone."""
    unordered = [obj for obj in objects if obj["kind"] in ("ServiceAccount", "Issuer", "Certificate")]
    in_order = iter(
        sorted(unordered, key=lambda obj: (obj["kind"] != "ServiceAccount", json.dumps(obj, sort_keys=True)))
    )
    for obj in json.loads(json.dumps(list(objects))):
        yield _undone(next(in_order) if obj["kind"] in ("ServiceAccount", "Issuer", "Certificate") else obj)


def _undone(obj: Object) -> Object:
    if obj["kind"].endswith("WebhookConfiguration"):
        for hook in obj["webhooks"]:
            _with_port(hook["clientConfig"]["service"])
    elif obj["kind"] == "CustomResourceDefinition":
        conversion = obj["spec"].get("conversion") or {}
        if service := ((conversion.get("webhook") or {}).get("clientConfig") or {}).get("service"):
            _with_port(service)
    elif obj["kind"] == "Service" and "status" in obj:
        obj["spec"].get("ports", []).sort(key=lambda port: json.dumps(port, sort_keys=True))
    elif obj["kind"] == "VerticalPodAutoscaler":
        obj.setdefault("metadata", {})["namespace"] = HERE
    return obj


def _with_port(service: Object) -> None:
    # For a webhook that names none the original refers to port 0, which no API server accepts; its Service
    # has 443.
    if service.get("port") == 0:
        service["port"] = 443


def question(
    directory: Path, watched: list[str] | None, certificates: str, config: Object | None = None
) -> Object:
    return {
        "directory": str(directory),
        "installNamespace": HERE,
        "watchNamespaces": watched,
        "certificates": certificates,
        "deploymentConfig": config,
    }


def test_real_bundles_give_the_same_objects_in_every_install_mode_with_every_kind_of_certificate() -> None:
    bundles = {path: read(folders.read(path)) for path in corpus.bundles()}
    questions = [
        (path, question(path, watched, certificates))
        for path in bundles
        for watched in (None, [HERE], ["there"], ["there", "far"])
        for certificates in CERTIFICATES
    ]
    converted = 0
    for (path, asked), theirs in zip(questions, original(q for _, q in questions), strict=True):
        mine = ours(bundles[path], asked)
        assert_same(mine, theirs, asked)
        converted += "objects" in mine
    assert converted > 400


def test_real_bundles_give_the_same_objects_with_overrides() -> None:
    bundles = {path: read(folders.read(path)) for path in corpus.bundles()}
    questions = []
    for number, path in enumerate(list(bundles) * 5):
        _, _, certificates, config = options(number)
        questions.append((path, question(path, None, certificates, config or {})))
    for (path, asked), theirs in zip(questions, original(q for _, q in questions), strict=True):
        assert_same(ours(bundles[path], asked), theirs, asked)


@pytest.mark.parametrize("start", range(0, 2000, 500))
def test_bundles_made_by_dice_give_the_same_objects_or_the_same_refusal(start: int) -> None:
    made: list[tuple[int, Variation]] = [(seed, variation(seed)) for seed in range(start, start + 500)]
    answers = original(each.question() for _, each in made)
    verdicts = set()
    for (seed, each), theirs in zip(made, answers, strict=True):
        mine = ours(each.files, each.question())
        assert_same(mine, theirs, seed)
        verdicts.add(mine.get("stage", "converted"))
    assert verdicts == {"converted", "read", "render"}


CONFIG: Object = {
    "nodeSelector": {"kubernetes.io/os": "linux"},
    "tolerations": [
        {"key": "some/key", "operator": "Equal", "effect": "NoSchedule"},
        {"key": "someother/key", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 120},
    ],
    "resources": {
        "requests": {"cpu": "100m", "memory": "128Mi"},
        "limits": {"cpu": "500m", "memory": "512Mi"},
    },
    "env": [{"name": "CUSTOM_ENV_VAR", "value": "custom-value"}, {"name": "LOG_LEVEL", "value": "debug"}],
    "envFrom": [
        {"prefix": "test"},
        {"configMapRef": {"name": "configmapForTest"}},
        {"secretRef": {"name": "secretForTest"}},
    ],
    "volumes": [
        {"name": "test-configmap-volume", "configMap": {"name": "testVolumeConfigMap"}},
        {"name": "test-emptydir-volume", "emptyDir": {}},
    ],
    "volumeMounts": [{"name": "test-configmap-volume", "mountPath": "/test-volume-mount", "readOnly": True}],
    "affinity": {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [
                    {
                        "matchExpressions": [
                            {"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]}
                        ],
                        "matchFields": [{"key": "key", "operator": "In", "values": ["val1", "val2"]}],
                    }
                ]
            }
        },
        "podAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {
                    "labelSelector": {"matchLabels": {"app.kubernetes.io/name": "test-app"}},
                    "topologyKey": "topKey",
                    "namespaces": ["test", "test2"],
                }
            ]
        },
        "podAntiAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {
                    "weight": 100,
                    "podAffinityTerm": {
                        "labelSelector": {"matchLabels": {"app.kubernetes.io/name": "test-app-2"}},
                        "topologyKey": "topKey2",
                    },
                }
            ]
        },
    },
    "annotations": {"foo": "bar", "testkey": "testval"},
}
ARGOCD, WEBHOOKS = "argocd-operator.v0.6.0", "webhook-operator.v0.0.5"


@pytest.mark.parametrize(
    ("bundle", "case", "namespace", "watched", "config"),
    [
        (ARGOCD, "all-namespaces", "argocd-system", "", None),
        (ARGOCD, "single-namespace", "argocd-system", "argocd-watch", None),
        (ARGOCD, "own-namespace", "argocd-system", "argocd-system", None),
        (WEBHOOKS, "all-webhook-types", "webhook-system", "", None),
        (ARGOCD, "with-deploymentconfig-options", "argocd-system", "", CONFIG),
        (ARGOCD, "with-empty-affinity", "argocd-system", "", {"affinity": {}}),
        (ARGOCD, "with-empty-affinity-subtype", "argocd-system", "", {"affinity": {"nodeAffinity": {}}}),
    ],
)
def test_the_manifests_that_the_original_expects_of_itself_come_out_to_the_byte(
    bundle: str, case: str, namespace: str, watched: str, config: Object | None
) -> None:
    module = "github.com/operator-framework/operator-controller"
    data = (
        module_directory(module, REPOSITORY / "conformance" / "go" / "convert")
        / "test/regression/convert/testdata"
    )
    objects = convert(
        read(folders.read(data / "bundles" / bundle)),
        namespace,
        watch_namespaces=[watched],
        deployment_config=config,
    )
    objects.sort(key=lambda obj: (obj["kind"], obj["metadata"].get("namespace", ""), obj["metadata"]["name"]))
    written = {
        f"{number:02}_{obj['kind'].lower()}_{obj['metadata']['name']}.yaml": yaml.dump(obj).encode()
        for number, obj in enumerate(objects)
    }
    assert written == folders.read(data / "expected-manifests" / bundle / case)
