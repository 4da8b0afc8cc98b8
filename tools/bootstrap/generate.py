"""Read the default roles and bindings from a real server and write the table that the embedded server ships.

    PYTHONPATH=tests python tools/bootstrap/generate.py

The real server (built by `make conformance`) runs for a few seconds without a controller manager, so that
aggregated roles are still as empty as they are made.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from harness.plain import Plain
from harness.real import RealControlPlane
from podium.apiserver.access import bootstrap
from podium.apiserver.access.bootstrap import BindingFact, RoleFact

Object = dict[str, Any]
_OUTPUT = Path(bootstrap.__file__).with_suffix(".json")
_AGGREGATE_TO = "rbac.authorization.k8s.io/aggregate-to-"
_RULE_FIELDS = ("verbs", "apiGroups", "resources", "resourceNames", "nonResourceURLs")


def main() -> None:
    with RealControlPlane(controller_manager=False) as real:
        server = Plain(real.kubeconfig)
        version = server.request("GET", "/version").json()["gitVersion"]
        roles = [_role(item) for item in (*_items(server, "clusterroles"), *_items(server, "roles"))]
        bindings = [
            _binding(item)
            for item in (*_items(server, "clusterrolebindings"), *_items(server, "rolebindings"))
        ]
    _OUTPUT.write_text(_table(version, roles, bindings))
    print(f"{_OUTPUT}: {len(roles)} roles, {len(bindings)} bindings of {version}")


def _items(server: Plain, resource: str) -> list[Object]:
    found: list[Object] = server.request("GET", f"/apis/{bootstrap.API_VERSION}/{resource}").json()["items"]
    return found


def _role(item: Object) -> RoleFact:
    metadata = item["metadata"]
    aggregated = [
        key.removeprefix(_AGGREGATE_TO) for key in metadata["labels"] if key.startswith(_AGGREGATE_TO)
    ]
    aggregates = ""
    if "aggregationRule" in item:
        ((key, _),) = item["aggregationRule"]["clusterRoleSelectors"][0]["matchLabels"].items()
        aggregates = key.removeprefix(_AGGREGATE_TO)
    return RoleFact(
        metadata["name"],
        metadata.get("namespace", ""),
        [_rule(rule) for rule in item.get("rules") or []],
        aggregates,
        "".join(aggregated),
    )


def _rule(rule: Object) -> list[list[str]]:
    fields = [rule.get(field) or [] for field in _RULE_FIELDS]
    while not fields[-1]:
        fields.pop()
    return fields


def _binding(item: Object) -> BindingFact:
    metadata, reference = item["metadata"], item["roleRef"]
    subjects = [(s["kind"], s["name"], s.get("namespace", "")) for s in item.get("subjects") or []]
    role = (reference["kind"], reference["name"])
    return BindingFact(metadata["name"], role, subjects, metadata.get("namespace", ""))


def _table(version: str, roles: list[RoleFact], bindings: list[BindingFact]) -> str:
    """One line per role and binding, so that a new version shows as a readable difference."""

    def lines(facts: list[Any]) -> str:
        ordered = sorted(facts, key=lambda fact: (fact.namespace, fact.name))
        return ",\n".join(msgspec.json.encode(fact).decode() for fact in ordered)

    return f'{{"version":"{version}","roles":[\n{lines(roles)}\n],"bindings":[\n{lines(bindings)}\n]}}\n'


if __name__ == "__main__":
    main()
