"""kubectl: apply, diff and what they say about a bad manifest"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from behaviour.manifests import config_map, deployment, pod, pod_template, service, widget
from behaviour.scratch import named
from harness.kubectl import Kubectl

pytestmark = pytest.mark.kubectl

Object = dict[str, Any]
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def apply(kubectl: Kubectl, *objects: Object, flags: tuple[str, ...] = (), expect: int = 0) -> list[str]:
    """The lines that `kubectl apply` prints for these objects, errors included."""
    manifest = yaml.safe_dump_all(objects)
    result = kubectl.run("apply", *flags, "-f", "-", input=manifest, expect=expect)
    return (result.stdout + result.stderr).splitlines()


def test_apply_creates_then_leaves_unchanged_then_configures(kubectl: Kubectl) -> None:
    assert apply(kubectl, config_map("c", a="1")) == ["configmap/c created"]
    assert apply(kubectl, config_map("c", a="1")) == ["configmap/c unchanged"]
    assert apply(kubectl, config_map("c", a="2")) == ["configmap/c configured"]
    stored = kubectl.json("get", "configmap", "c")
    assert stored["data"] == {"a": "2"}
    assert json.loads(stored["metadata"]["annotations"][LAST_APPLIED])["data"] == {"a": "2"}


def test_apply_removes_what_the_manifest_no_longer_says_and_keeps_what_others_set(kubectl: Kubectl) -> None:
    apply(kubectl, config_map("c", mine="1", dropped="1"))
    kubectl.run("patch", "configmap", "c", "--type=merge", "-p", '{"data":{"theirs":"1"}}')
    apply(kubectl, config_map("c", mine="1"))
    assert kubectl.json("get", "configmap", "c")["data"] == {"mine": "1", "theirs": "1"}


def test_apply_merges_containers_by_name(kubectl: Kubectl) -> None:
    two = deployment("d", 0)
    two["spec"]["template"]["spec"]["containers"].append({"name": "side", "image": "side:1"})
    apply(kubectl, two)
    kubectl.run("set", "env", "deployment/d", "-c", "main", "ADDED=1")
    apply(kubectl, deployment("d", 0))
    (kept,) = kubectl.json("get", "deployment", "d")["spec"]["template"]["spec"]["containers"]
    assert kept["name"] == "main"
    assert kept["env"] == [{"name": "ADDED", "value": "1"}]


def test_apply_makes_a_whole_manifest_of_many_kinds_and_finds_it_unchanged(
    kubectl: Kubectl, namespace: str
) -> None:
    manifest = many_kinds(namespace)
    created = apply(kubectl, *manifest)
    assert [line.split()[-1] for line in created] == ["created"] * len(manifest)
    changed = [line for line in apply(kubectl, *manifest) if not line.endswith(" unchanged")]
    # The selector of a budget is replaced as a whole, so its patch is never empty.
    assert changed == ["poddisruptionbudget.policy/pdb configured"]
    kubectl.run("delete", "--wait=false", "-f", "-", input=yaml.safe_dump_all(manifest))


def test_apply_takes_a_list_and_names_every_object(kubectl: Kubectl) -> None:
    listed = {"apiVersion": "v1", "kind": "List", "items": [config_map("a"), config_map("b")]}
    assert apply(kubectl, listed) == ["configmap/a created", "configmap/b created"]


def test_apply_reads_every_file_of_a_folder(kubectl: Kubectl, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.json").write_text(json.dumps(config_map(name)))
    printed = kubectl.run("apply", "-f", str(tmp_path)).stdout.splitlines()
    assert printed == ["configmap/a created", "configmap/b created"]


def test_apply_prune_deletes_what_left_the_manifest(kubectl: Kubectl) -> None:
    labels = {"set": "one"}
    apply(kubectl, config_map("kept", labels=labels), config_map("gone", labels=labels), config_map("other"))
    pruning = ("--prune", "-l", "set=one", "--prune-allowlist=core/v1/ConfigMap")
    printed = apply(kubectl, config_map("kept", labels=labels), flags=pruning)
    assert "configmap/kept unchanged" in printed
    assert "configmap/gone pruned" in printed
    left = kubectl.run("get", "configmaps", "-o", "name").stdout.split()
    assert left == ["configmap/kept", "configmap/kube-root-ca.crt", "configmap/other"]


def test_apply_with_an_applyset_deletes_what_left_the_manifest(kubectl: Kubectl, namespace: str) -> None:
    flags = ("-n", namespace, "--server-side", "--prune", "--applyset=team")
    environment = {"KUBECTL_APPLYSET": "true"}

    def applied(*objects: Object) -> list[str]:
        manifest = yaml.safe_dump_all(objects)
        return kubectl.run("apply", *flags, "-f", "-", input=manifest, env=environment).stdout.splitlines()

    assert "configmap/gone serverside-applied" in applied(config_map("kept"), config_map("gone"))
    assert applied(config_map("kept")) == ["configmap/kept serverside-applied", "configmap/gone pruned"]
    parent = kubectl.json("get", "secret", "team")["metadata"]
    assert parent["annotations"]["applyset.kubernetes.io/contains-group-kinds"] == "ConfigMap"
    member = kubectl.json("get", "configmap", "kept")["metadata"]
    assert member["labels"]["applyset.kubernetes.io/part-of"] == parent["labels"]["applyset.kubernetes.io/id"]


def test_server_side_apply_names_the_conflict_and_its_remedies(kubectl: Kubectl) -> None:
    apply(kubectl, config_map("c", a="1"), flags=("--server-side",))
    refused = apply(
        kubectl, config_map("c", a="2"), flags=("--server-side", "--field-manager=other"), expect=1
    )
    assert refused[0] == ('error: Apply failed with 1 conflict: conflict with "kubectl": .data.a')
    assert any("--force-conflicts" in line for line in refused)
    assert kubectl.json("get", "configmap", "c")["data"] == {"a": "1"}


def test_server_side_apply_can_take_a_field_over(kubectl: Kubectl) -> None:
    apply(kubectl, config_map("c", a="1"), flags=("--server-side",))
    flags = ("--server-side", "--field-manager=other", "--force-conflicts")
    assert apply(kubectl, config_map("c", a="2"), flags=flags) == ["configmap/c serverside-applied"]
    stored = kubectl.json("get", "configmap", "c", "--show-managed-fields")
    assert stored["data"] == {"a": "2"}
    owners = {entry["manager"]: entry["fieldsV1"] for entry in stored["metadata"]["managedFields"]}
    assert "f:a" in owners["other"]["f:data"]
    assert "f:a" not in owners.get("kubectl", {}).get("f:data", {})


def test_server_side_apply_takes_over_from_client_side_apply(kubectl: Kubectl) -> None:
    apply(kubectl, config_map("c", a="1", dropped="1"))
    assert apply(kubectl, config_map("c", a="2"), flags=("--server-side",)) == [
        "configmap/c serverside-applied"
    ]
    stored = kubectl.json("get", "configmap", "c", "--show-managed-fields")
    assert stored["data"] == {"a": "2"}
    managers = {(entry["manager"], entry["operation"]) for entry in stored["metadata"]["managedFields"]}
    assert ("kubectl", "Apply") in managers
    assert "kubectl-client-side-apply" not in {manager for manager, _ in managers}


@pytest.mark.parametrize("where", ["client", "server"])
def test_a_dry_run_of_apply_changes_nothing(kubectl: Kubectl, where: str) -> None:
    flag = f"--dry-run={where}"
    assert apply(kubectl, config_map("c", a="1"), flags=(flag,)) == [
        f"configmap/c created ({where} dry run)".replace("client ", "")
    ]
    apply(kubectl, config_map("c", a="1"))
    assert apply(kubectl, config_map("c", a="2"), flags=(flag,)) == [
        f"configmap/c configured ({where} dry run)".replace("client ", "")
    ]
    assert kubectl.json("get", "configmap", "c")["data"] == {"a": "1"}


def test_a_server_side_dry_run_shows_defaults_and_refuses_what_the_server_would(kubectl: Kubectl) -> None:
    shown = kubectl.run("apply", "--dry-run=server", "-o", "json", "-f", "-", input=deployment("d"))
    assert json.loads(shown.stdout)["spec"]["strategy"]["type"] == "RollingUpdate"
    bad = deployment("d")
    bad["spec"]["template"]["metadata"]["labels"] = {"app": "other"}
    (line,) = apply(kubectl, bad, flags=("--dry-run=server",), expect=1)
    assert "`selector` does not match template `labels`" in line
    assert kubectl.run("get", "deployments", "-o", "name").stdout == ""


def test_diff_shows_what_apply_would_change_and_ends_with_1(kubectl: Kubectl) -> None:
    apply(kubectl, config_map("c", a="1"))
    assert kubectl.run("diff", "-f", "-", input=config_map("c", a="1")).stdout == ""
    changes = kubectl.run("diff", "-f", "-", input=config_map("c", a="2"), expect=1).stdout.splitlines()
    assert [line for line in changes if line.startswith(("-  a:", "+  a:"))] == ['-  a: "1"', '+  a: "2"']
    assert kubectl.json("get", "configmap", "c")["data"] == {"a": "1"}


def test_diff_of_something_new_shows_all_of_it(kubectl: Kubectl) -> None:
    changes = kubectl.run("diff", "-f", "-", input=config_map("new", a="1"), expect=1).stdout
    assert "+  name: new" in changes
    assert '+  a: "1"' in changes


def test_server_side_diff_shows_the_conflict(kubectl: Kubectl) -> None:
    apply(kubectl, config_map("c", a="1"), flags=("--server-side", "--field-manager=first"))
    flags = ("diff", "--server-side", "-f", "-")
    refused = kubectl.run(*flags, input=config_map("c", a="2"), expect=None)
    assert refused.code > 0
    assert 'conflict with "first": .data.a' in refused.stderr
    forced = kubectl.run(*flags, "--force-conflicts", input=config_map("c", a="2"), expect=1)
    assert '+  a: "2"' in forced.stdout


def test_apply_view_last_applied_shows_the_manifest(kubectl: Kubectl) -> None:
    apply(kubectl, config_map("c", a="1"))
    shown = kubectl.run("apply", "view-last-applied", "configmap", "c", "-o", "json").stdout
    assert json.loads(shown)["data"] == {"a": "1"}


def test_a_custom_resource_goes_round_through_apply(kubectl: Kubectl, widget_group: str) -> None:
    assert apply(kubectl, widget(widget_group, "w", size=3)) == [f"widget.{widget_group}/w created"]
    assert apply(kubectl, widget(widget_group, "w", size=3)) == [f"widget.{widget_group}/w unchanged"]
    assert apply(kubectl, widget(widget_group, "w", size=4)) == [f"widget.{widget_group}/w configured"]
    assert kubectl.json("get", "wdg", "w")["spec"] == {"size": 4, "note": "none"}
    assert apply(kubectl, widget(widget_group, "w", size=4), flags=("--server-side",)) == [
        f"widget.{widget_group}/w serverside-applied"
    ]
    changes = kubectl.run("diff", "-f", "-", input=widget(widget_group, "w", size=5), expect=1).stdout
    assert "-  size: 4\n+  size: 5" in changes


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        pytest.param(
            {"size": 0},
            "spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1",
            id="too-small",
        ),
        pytest.param(
            {"size": "big"},
            'spec.size: Invalid value: "string": spec.size in body must be of type integer: "string"',
            id="wrong-type",
        ),
        pytest.param({}, "spec.size: Required value", id="missing"),
        pytest.param(
            {"size": 1, "color": "blue"},
            'spec.color: Unsupported value: "blue": supported values: "red", "green"',
            id="not-in-enum",
        ),
    ],
)
def test_a_custom_resource_that_its_schema_refuses_is_explained(
    kubectl: Kubectl, widget_group: str, spec: Object, message: str
) -> None:
    assert apply(kubectl, widget(widget_group, "w", **spec), expect=1) == [
        f'The Widget "w" is invalid: {message}'
    ]


def test_an_unknown_field_of_a_custom_resource_is_an_error_a_warning_or_ignored(
    kubectl: Kubectl, widget_group: str
) -> None:
    odd = widget(widget_group, "w", size=1, bogus=1)
    (refused,) = apply(kubectl, odd, expect=1)
    assert refused == (
        'Error from server (BadRequest): error when creating "STDIN": Widget in version "v1" cannot be '
        'handled as a Widget: strict decoding error: unknown field "spec.bogus"'
    )
    warned = apply(kubectl, odd, flags=("--validate=warn",))
    assert sorted(warned) == ['Warning: unknown field "spec.bogus"', f"widget.{widget_group}/w created"]
    odd["spec"]["size"] = 2
    (refused,) = apply(kubectl, odd, expect=1)
    assert refused.startswith('The request is invalid: patch: Invalid value: "{\\"apiVersion\\":\\"')
    assert refused.endswith(': strict decoding error: unknown field "spec.bogus"')
    assert '\\"spec\\":{\\"bogus\\":1,\\"note\\":\\"none\\",\\"size\\":2}}"' in refused
    assert apply(kubectl, odd, flags=("--validate=false",)) == [f"widget.{widget_group}/w configured"]
    assert "bogus" not in kubectl.json("get", "widget", "w")["spec"]


def with_container(**fields: Any) -> Object:
    """A Deployment whose container has these fields."""
    made = deployment("d")
    made["spec"]["template"]["spec"]["containers"][0].update(fields)
    return made


HANDLED = 'error when creating "STDIN": Deployment in version "v1" cannot be handled as a Deployment'


@pytest.mark.parametrize(
    ("obj", "message"),
    [
        pytest.param(
            with_container(bogus=1),
            f"Error from server (BadRequest): {HANDLED}: strict decoding error: "
            'unknown field "spec.template.spec.containers[0].bogus"',
            id="unknown-field",
        ),
        pytest.param(
            deployment("d", "two"),  # type: ignore[arg-type]
            f"Error from server (BadRequest): {HANDLED}: json: cannot unmarshal string into Go struct field "
            "DeploymentSpec.spec.replicas of type int32",
            id="wrong-type",
        ),
        pytest.param(
            with_container(image=None),
            'The Deployment "d" is invalid: spec.template.spec.containers[0].image: Required value',
            id="missing-required",
        ),
        pytest.param(
            deployment("d", selector=None),
            'The Deployment "d" is invalid: \n'
            "* spec.selector: Required value\n"
            '* spec.template.metadata.labels: Invalid value: {"app":"d"}: '
            "`selector` does not match template `labels`",
            id="two-problems",
        ),
        pytest.param(
            named("Service", "v1", "s", spec={"type": "Odd", "ports": [{"port": 70000, "targetPort": 80}]}),
            'The Service "s" is invalid: \n'
            "* spec.ports[0].port: Invalid value: 70000: must be between 1 and 65535, inclusive\n"
            '* spec.type: Unsupported value: "Odd": supported values: '
            '"ClusterIP", "ExternalName", "LoadBalancer", "NodePort"',
            id="out-of-range",
        ),
        pytest.param(
            config_map("Bad_Name"),
            'The ConfigMap "Bad_Name" is invalid: metadata.name: Invalid value: "Bad_Name": a lowercase RFC '
            "1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start "
            "and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
            r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
            id="bad-name",
        ),
        pytest.param(
            named("Nope", "nope.example.com/v1", "n"),
            'error: resource mapping not found for name: "n" namespace: "" from "STDIN": no matches for kind '
            '"Nope" in version "nope.example.com/v1"\nensure CRDs are installed first',
            id="unknown-kind",
        ),
    ],
)
def test_apply_says_what_is_wrong_with_a_manifest(kubectl: Kubectl, obj: Object, message: str) -> None:
    refused = kubectl.run("apply", "-f", "-", input=obj, expect=1)
    assert refused.stderr.rstrip("\n") == message


def test_apply_says_that_a_field_is_immutable(kubectl: Kubectl) -> None:
    apply(kubectl, deployment("d", 0))
    other = deployment("d", 0, selector={"matchLabels": {"app": "other"}}, template=pod_template("other"))
    (line,) = apply(kubectl, other, expect=1)
    assert line == (
        'The Deployment "d" is invalid: spec.selector: Invalid value: {"matchLabels":{"app":"other"}}: '
        "field is immutable"
    )


def many_kinds(namespace: str) -> list[Object]:
    """A manifest with the kinds that installers apply, each with something for the server to default."""
    rbac = "rbac.authorization.k8s.io"
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]
    account = {"kind": "ServiceAccount", "name": "sa", "namespace": namespace}
    to_role = {"apiGroup": rbac, "kind": "Role", "name": "r"}
    to_cluster_role = {"apiGroup": rbac, "kind": "ClusterRole", "name": f"{namespace}-cr"}
    selector = {"matchLabels": {"app": "x"}}
    job_spec = {"template": pod_template("j", restartPolicy="Never")}
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    backend = {"service": {"name": "s", "port": {"number": 80}}}
    paths = [{"path": "/", "pathType": "Prefix", "backend": backend}]
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}
    hook = {
        "name": "hook.example.com",
        "clientConfig": {"url": "https://127.0.0.1:1/hook"},
        "rules": [
            {
                "apiGroups": ["x.example.com"],
                "apiVersions": ["v1"],
                "operations": ["CREATE"],
                "scope": "*",
                "resources": ["xs"],
            }
        ],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    return [
        named("ServiceAccount", "v1", "sa"),
        config_map("c", a="1"),
        named("Secret", "v1", "s", data={"a": "MQ=="}),
        named("PersistentVolumeClaim", "v1", "pvc", spec=claim),
        named(
            "LimitRange",
            "v1",
            "lr",
            spec={"limits": [{"type": "PersistentVolumeClaim", "max": {"storage": "5Gi"}}]},
        ),
        named("ResourceQuota", "v1", "rq", spec={"hard": {"services.nodeports": "5"}}),
        service("s"),
        named("Role", f"{rbac}/v1", "r", rules=rules),
        named("RoleBinding", f"{rbac}/v1", "rb", roleRef=to_role, subjects=[account]),
        named("ClusterRole", f"{rbac}/v1", f"{namespace}-cr", rules=rules),
        named(
            "ClusterRoleBinding",
            f"{rbac}/v1",
            f"{namespace}-crb",
            roleRef=to_cluster_role,
            subjects=[account],
        ),
        deployment("d", 0),
        named(
            "StatefulSet",
            "apps/v1",
            "sts",
            spec={"replicas": 0, "serviceName": "s", "selector": selector, "template": pod_template("x")},
        ),
        named(
            "DaemonSet",
            "apps/v1",
            "ds",
            spec={"selector": selector, "template": pod_template("x", nodeSelector={"no": "where"})},
        ),
        named("Job", "batch/v1", "j", spec={**job_spec, "suspend": True}),
        named("CronJob", "batch/v1", "cj", spec={"schedule": "0 0 1 1 *", "jobTemplate": {"spec": job_spec}}),
        named(
            "HorizontalPodAutoscaler",
            "autoscaling/v2",
            "hpa",
            spec={"scaleTargetRef": target, "maxReplicas": 2},
        ),
        named("PodDisruptionBudget", "policy/v1", "pdb", spec={"minAvailable": 1, "selector": selector}),
        named("NetworkPolicy", "networking.k8s.io/v1", "np", spec={"podSelector": {}}),
        named(
            "Ingress",
            "networking.k8s.io/v1",
            "i",
            spec={"rules": [{"host": "x.example.com", "http": {"paths": paths}}]},
        ),
        named("PriorityClass", "scheduling.k8s.io/v1", f"{namespace}-pc", value=10),
        named("StorageClass", "storage.k8s.io/v1", f"{namespace}-sc", provisioner="example.com/none"),
        named(
            "ValidatingWebhookConfiguration",
            "admissionregistration.k8s.io/v1",
            f"{namespace}-vwc",
            webhooks=[hook],
        ),
        named("Lease", "coordination.k8s.io/v1", "l", spec={"holderIdentity": "me"}),
        {**pod("p"), "metadata": {"name": "p", "labels": {"app": "p"}}},
    ]
