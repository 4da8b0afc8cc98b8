"""Bundles from manifests, made by us and by operator-sdk: the same files, but for listed differences.

Two kinds of proof: operator-sdk's own expected outputs, read from the Go module cache, and operator-sdk's
generator itself, run on many variations of a folder. Differences that we mean are taken out by
`without_quirks` and are rows of docs/compatibility.md.
"""

from __future__ import annotations

import copy
import hashlib
import random
import subprocess
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from conformance.goliterals import Call, Composite, module_directory, read_value
from harness import binaries, corpus, folders, operatorfolder
from podium.api.kinds import Object
from podium.bundle.generate import Options, generate
from podium.bundle.generate import images as generate_images
from podium.bundle.overlay import kustomize as overlay_kustomize
from podium.text import yaml

pytestmark = pytest.mark.oracle

SDK = Path(__file__).parents[2] / "conformance" / "go" / "operator-sdk"
NOW = datetime(2024, 1, 2, 3, 4, 5, tzinfo=UTC)
MANY = 60


def sdk() -> Path:
    """Where operator-sdk's module lies."""
    return module_directory("github.com/operator-framework/operator-sdk", SDK)


def without_quirks(value: Object) -> Object:
    """An object without what operator-sdk writes and we do not."""
    value = copy.deepcopy(value)
    value.pop("status", None)  # empty, an artefact of Go's types
    metadata = value["metadata"]
    for key in ("creationTimestamp", "namespace"):  # null; and "placeholder" in the ClusterServiceVersion
        metadata.pop(key, None)
    if value["kind"] == "ClusterServiceVersion":
        for key in (
            "createdAt",
            "operators.operatorframework.io/builder",
            "operators.operatorframework.io/project_layout",
        ):
            metadata["annotations"].pop(key, None)
        _drop_unserved(value["spec"])
    if value["kind"] == "Configuration":
        _drop_storage(value)
    return value


def _drop_unserved(spec: Object) -> None:
    """Webhooks of a service that is not there: the original makes up a deployment, we report an error."""
    there = {each["name"] for each in spec["install"]["spec"]["deployments"]}
    listed = spec.pop("webhookdefinitions", None) or ()
    if kept := [each for each in listed if each["deploymentName"] in there]:
        spec["webhookdefinitions"] = kept


def _drop_storage(value: Any) -> None:
    """Empty storage settings in scorecard configurations: another artefact of Go's types."""
    if isinstance(value, dict):
        if value.get("storage") == {"spec": {"mountPath": {}}}:
            del value["storage"]
        for each in value.values():
            _drop_storage(each)
    elif isinstance(value, list):
        for each in value:
            _drop_storage(each)


def comparable(files: dict[str, bytes]) -> dict[str, Any]:
    """Files as values, quirks taken out; annotations without those that name the tool."""
    values: dict[str, Any] = {}
    for path, data in files.items():
        value = yaml.load(data)
        if path == "metadata/annotations.yaml":
            values[path] = {key: each for key, each in value["annotations"].items() if ".metrics." not in key}
        else:
            values[path] = without_quirks(value)
    return values


def test_the_sample_project_becomes_the_sample_bundle() -> None:
    root = sdk() / "testdata" / "helm" / "memcached-operator"
    files = folders.read(root)
    expected = {
        name.removeprefix("bundle/"): data for name, data in files.items() if name.startswith("bundle/")
    }
    objects = overlay_kustomize.build(files, "config/manifests")
    made = generate(objects, Options(package="memcached-operator", version="0.0.1"), now=NOW)
    assert comparable(made.files) == comparable(expected)
    csv = "manifests/memcached-operator.clusterserviceversion.yaml"
    ours = made.files[csv].decode().replace("2024-01-02T03:04:05Z", "2022-11-08T17:26:37Z")
    assert ours == expected[csv].decode().replace("  namespace: placeholder\n", "")


@pytest.mark.parametrize(
    ("manifests", "base"),
    [
        ("basic.operator.yaml", "memcached-operator.clusterserviceversion.yaml"),
        ("basic.operator.yaml", "with-ui-metadata.clusterserviceversion.yaml"),
        ("basic.multiversion.operator.yaml", "memcached-operator-multiVersion.yaml"),
    ],
)
def test_the_expected_outputs_of_its_generator_are_ours(manifests: str, base: str) -> None:
    data = sdk() / "internal" / "generate" / "testdata"
    files = {
        "all.yaml": (data / "go" / "static" / manifests).read_bytes(),
        "base.yaml": (data / "clusterserviceversions" / "bases" / base).read_bytes(),
    }
    expected = yaml.load((data / "clusterserviceversions" / "output" / base).read_bytes())
    made = generate(files, Options(package="memcached-operator", version="0.0.1"), now=NOW)
    csv = yaml.load(made.files["manifests/memcached-operator.clusterserviceversion.yaml"])
    for definition in expected["spec"].get("webhookdefinitions") or ():
        # A CRD without review versions: the original writes null, which a cluster refuses.
        if definition["admissionReviewVersions"] is None:
            definition["admissionReviewVersions"] = ["v1"]
    assert without_quirks(csv) == without_quirks(expected)


def related_image_tables() -> list[tuple[str, list[Object], list[Object]]]:
    """operator-sdk's table of related images: name, deployments, expected list."""
    source = (
        sdk() / "internal" / "cmd" / "operator-sdk" / "generate" / "internal" / "relatedimages_test.go"
    ).read_text()
    images = {
        "images.memcached": "memcached:1.4.36-alpine",
        "images.memcachedLatest": "memcached:alpine",
        "images.nginx": "nginx:1.21.6",
    }
    cases = []
    at = source.find("Entry(")
    while at >= 0:
        entry = read_value(source, at)
        assert isinstance(entry, Call)
        name, deployments, expected = entry.args
        cases.append(
            (name, [_deployment(each, images) for each in _items(deployments)], _expected(expected, images))
        )
        at = source.find("Entry(", at + 1)
    return cases


def _items(value: Any) -> list[Any]:
    assert isinstance(value, Composite)
    return value.items


def _text(value: Any, images: dict[str, str]) -> str:
    return value if isinstance(value, str) else images[value.text]


def _deployment(call: Call, images: dict[str, str]) -> Object:
    name, *containers = call.args
    listed = [
        {
            "name": container.args[0],
            "env": [
                {"name": f"RELATED_IMAGE_{each.args[0]}", "value": _text(each.args[1], images)}
                for each in container.args[1:]
            ],
        }
        for container in containers
    ]
    return {"name": name, "spec": {"template": {"spec": {"containers": listed}}}}


def _expected(value: Any, images: dict[str, str]) -> list[Object]:
    return [{"name": call.args[0], "image": _text(call.args[1], images)} for call in _items(value)]


def test_related_images_are_found_and_named_as_its_tables_say() -> None:
    tables = related_image_tables()
    assert len(tables) == 10
    for name, deployments, expected in tables:
        assert generate_images.related(deployments) == expected, name


BASE = """
apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata:
  name: tool-operator.v0.0.0
  annotations: {capabilities: Basic Install}
spec:
  displayName: Tool
  description: Tools.
  minKubeVersion: 1.28.0
  provider: {name: Me}
  maturity: alpha
  replaces: tool-operator.v0.0.9
  customresourcedefinitions:
    owned:
    - {name: tools.tools.example.com, kind: Tool, version: v1, displayName: A tool, description: Useful}
    required: [{name: others.example.com, kind: Other, version: v1}]
  installModes:
  - {type: OwnNamespace, supported: false}
  - {type: SingleNamespace, supported: false}
  - {type: MultiNamespace, supported: false}
  - {type: AllNamespaces, supported: true}
"""


def original(objects: list[Object], folder: Path, *arguments: str) -> dict[str, bytes]:
    """The bundle that operator-sdk makes of the objects."""
    (folder / "in").mkdir()
    (folder / "in" / "all.yaml").write_bytes(operatorfolder.stream([*objects, yaml.load(BASE)]))
    command = [
        str(binaries.find("operator-sdk-generate")),
        "--package=tool-operator",
        "--version=1.0.0",
        "--quiet",
    ]
    done = subprocess.run(
        [*command, "--input-dir=in", "--output-dir=out", "--channels=alpha,beta", *arguments],
        cwd=folder,
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return folders.read(folder / "out")


def sort_key(value: Object) -> tuple[str, ...]:
    """The order that we put objects in; the original keeps the order that it reads."""
    group, _, version = value["apiVersion"].rpartition("/")
    metadata = value["metadata"]
    return group, value["kind"], metadata.get("namespace", ""), metadata["name"], version


Change = Callable[[list[Object], random.Random], None]


def find(objects: list[Object], kind: str) -> Object:
    """The first object of a kind."""
    return next(each for each in objects if each["kind"] == kind)


DROPPED = (
    "Secret",
    "ConfigMap",
    "PriorityClass",
    "PodDisruptionBudget",
    "NetworkPolicy",
    "ServiceMonitor",
    "Tool",
    "RoleBinding",
    "Role",
    "ClusterRoleBinding",
    "ServiceAccount",
    "ValidatingWebhookConfiguration",
)


def drop(objects: list[Object], chance: random.Random) -> None:
    """Some objects are not there."""
    gone = {kind for kind in DROPPED if chance.random() < 0.2}
    objects[:] = [each for each in objects if each["kind"] not in gone]


def default_account(objects: list[Object], chance: random.Random) -> None:
    """The deployment names no account."""
    del find(objects, "Deployment")["spec"]["template"]["spec"]["serviceAccountName"]
    for each in objects:
        if each["kind"].endswith("Binding") and chance.random() < 0.5:
            each["subjects"][0]["name"] = "default"


def second_deployment(objects: list[Object], chance: random.Random) -> None:
    """Another deployment, with the account of the first or its own."""
    other = copy.deepcopy(find(objects, "Deployment"))
    other["metadata"]["name"] = chance.choice(["agent", "zebra"])
    other["spec"]["template"]["metadata"]["labels"] = {"app": chance.choice(["tool", "other"])}
    other["spec"]["template"]["spec"]["serviceAccountName"] = chance.choice(["manager", "helper"])
    objects.append(other)


def odd_containers(objects: list[Object], chance: random.Random) -> None:
    """Values that Go's types leave out, keep or rewrite."""
    container = find(objects, "Deployment")["spec"]["template"]["spec"]["containers"][0]
    container["resources"] = chance.choice([{}, {"limits": {"cpu": "1000m", "memory": 128}}])
    container["tty"] = False
    container["readinessProbe"] = {"httpGet": {"path": "/", "port": 8081}, "initialDelaySeconds": 0}
    container["securityContext"] = {"runAsNonRoot": False, "privileged": None}
    find(objects, "Deployment")["spec"]["strategy"] = chance.choice([{}, {"type": "Recreate"}])
    find(objects, "Deployment")["spec"]["replicas"] = chance.choice([0, 2])


def cluster_role_in_namespace(objects: list[Object], chance: random.Random) -> None:
    """A RoleBinding that gives the account a ClusterRole."""
    for each in objects:
        if each["kind"] == "RoleBinding" and each["metadata"]["name"] == "helper":
            each["subjects"][0]["name"] = "manager"


def other_subject(objects: list[Object], chance: random.Random) -> None:
    """A binding for somebody who is no account."""
    for each in objects:
        if each["kind"] == "RoleBinding" and each["metadata"]["name"] == "leader":
            each["subjects"] = [{"kind": "User", "name": "manager", "apiGroup": "rbac.authorization.k8s.io"}]


def no_conversion(objects: list[Object], chance: random.Random) -> None:
    """A CRD that is not converted, and webhooks whose service is elsewhere."""
    find(objects, "CustomResourceDefinition")["spec"].pop("conversion", None)
    if chance.random() < 0.5:
        objects[:] = [each for each in objects if each["kind"] != "Service"]


def second_crd(objects: list[Object], chance: random.Random) -> None:
    """Another CRD, converted by the same service, at the same path or another."""
    crd = copy.deepcopy(find(objects, "CustomResourceDefinition"))
    crd["metadata"]["name"] = "parts.tools.example.com"
    crd["spec"]["names"] = {"kind": "Part", "listKind": "PartList", "plural": "parts", "singular": "part"}
    if "conversion" in crd["spec"]:
        service = crd["spec"]["conversion"]["webhook"]["clientConfig"]["service"]
        service["path"] = chance.choice(["/convert", "/other"])
    objects.append(crd)
    objects.append(
        {"apiVersion": "tools.example.com/v1", "kind": "Part", "metadata": {"name": "p"}, "spec": {"x": 1.5}}
    )


def other_ports(objects: list[Object], chance: random.Random) -> None:
    """A webhook that calls another port of its service."""
    service = next((each for each in objects if each["kind"] == "Service"), None)
    if service:
        service["spec"]["ports"].append({"port": 8443, "targetPort": "webhook"})
    hook = find(objects, "MutatingWebhookConfiguration")["webhooks"][0]
    hook["clientConfig"]["service"]["port"] = chance.choice([8443, 443, 1])
    hook["timeoutSeconds"] = 5
    hook["matchPolicy"] = "Equivalent"


CHANGES: tuple[Change, ...] = (
    drop,
    default_account,
    second_deployment,
    odd_containers,
    cluster_role_in_namespace,
    other_subject,
    no_conversion,
    second_crd,
    other_ports,
)


@pytest.mark.parametrize("seed", range(MANY))
def test_its_generator_makes_the_same_bundle_of_the_same_manifests(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    objects = operatorfolder.objects()
    for change in CHANGES:
        if chance.random() < 0.4:
            change(objects, chance)
    extra = ["helper"] if chance.random() < 0.3 else []
    arguments = [f"--extra-service-accounts={each}" for each in extra]
    expected = original(sorted(objects, key=sort_key), tmp_path, *arguments)
    chance.shuffle(objects)
    options = Options(
        package="tool-operator", version="1.0.0", channels=("alpha", "beta"), extra_service_accounts=extra
    )
    made = generate({"a.yaml": operatorfolder.stream(objects), "b.yaml": BASE.encode()}, options, now=NOW)
    assert comparable(made.files) == comparable(expected)


def test_real_bundles_are_made_of_themselves() -> None:
    for folder in corpus.bundles():
        assert_made_of_itself(folder)


def assert_made_of_itself(folder: Path) -> None:
    """Fails unless a bundle's manifests give the same deployments and rights, and then the same bytes."""
    files = {f"manifests/{path.name}": path.read_bytes() for path in (folder / "manifests").iterdir()}
    values = [yaml.load(data) for data in files.values()]
    csv = next(value for value in values if value and value["kind"] == "ClusterServiceVersion")
    options = Options(package=csv["metadata"]["name"].partition(".v")[0], version=csv["spec"]["version"])
    once = generate(files, options, now=NOW)
    own = {name: data for name, data in once.files.items() if name.startswith("manifests/")}
    again = generate(own, options, now=datetime(2025, 1, 1, tzinfo=UTC), previous=once.files)
    assert again.files == once.files, folder
    made = yaml.load(once.files[f"manifests/{options.package.lower()}.clusterserviceversion.yaml"])
    assert made["spec"]["install"] == csv["spec"]["install"], folder


class _Registry(BaseHTTPRequestHandler):
    """A registry that knows the digest of every image: it is made from the name and tag."""

    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/vnd.oci.image.manifest.v1+json")
        self.send_header("Content-Length", "2")
        self.send_header("Docker-Content-Digest", digest(self.path))
        self.end_headers()

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Says nothing."""


def digest(path: str) -> str:
    """The digest of the image that a manifest's path names."""
    return f"sha256:{hashlib.sha256(path.encode()).hexdigest()}"


@pytest.fixture
def registry() -> Iterator[str]:
    """Host and port of a registry on loopback."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Registry)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"localhost:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_images_are_pinned_as_it_pins_them(registry: str, tmp_path: Path) -> None:
    objects = operatorfolder.objects()
    pods = find(objects, "Deployment")["spec"]["template"]["spec"]
    pods["initContainers"][0]["image"] = f"{registry}/tools/busybox"
    pods["containers"][0]["image"] = f"{registry}/tools/controller:latest"
    pods["containers"][0]["env"][1]["value"] = f"{registry}/db:1"
    expected = comparable(original(sorted(objects, key=sort_key), tmp_path, "--use-image-digests"))
    digests = {
        f"{registry}/tools/busybox": digest("/v2/tools/busybox/manifests/latest"),
        f"{registry}/tools/controller:latest": digest("/v2/tools/controller/manifests/latest"),
        f"{registry}/db:1": digest("/v2/db/manifests/1"),
    }
    options = Options(package="tool-operator", version="1.0.0", channels=("alpha", "beta"), digests=digests)
    made = generate({"a.yaml": operatorfolder.stream(objects), "b.yaml": BASE.encode()}, options, now=NOW)
    ours = comparable(made.files)
    csv = "manifests/tool-operator.clusterserviceversion.yaml"
    # The original lists an image of the environment twice, with dashes and with underscores, in any order.
    theirs = {
        each["name"].replace("_", "-"): each["image"] for each in expected[csv]["spec"].pop("relatedImages")
    }
    assert {each["name"]: each["image"] for each in ours[csv]["spec"].pop("relatedImages")} == theirs
    assert ours == expected
