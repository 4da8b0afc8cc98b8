"""What becomes of a case: by our strategies, and by a real API server; in one form, so that they compare.

A case is a row of `cases/*.yaml`. Its last write is what counts: the creation, or the merge patch in
`update` or `status` to what was created. `recorded.json` holds what Kubernetes answered.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from harness.plain import Answer, Plain
from podium.apiserver.kinds import strategy_for
from podium.apiserver.strategy import Strategy
from podium.schema import facts
from podium.schema.coerce import coerce
from podium.schema.facts import ResourceFact

Object = dict[str, Any]

FOLDER = Path(__file__).parent / "cases"
RECORDED = FOLDER / "recorded.json"
UID = "11111111-2222-3333-4444-555555555555"
CREATED = "2026-01-02T03:04:05Z"
# Set by admission, the store or an allocator, so no business of a strategy.
_ELSEWHERE = {
    "metadata": ("uid", "creationTimestamp", "resourceVersion", "managedFields", "selfLink"),
    "spec": ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "healthCheckNodePort"),
}


@dataclass(frozen=True, slots=True)
class Case:
    """One object and what is done to it."""

    name: str
    object: Object
    update: Object | None = None
    status: Object | None = None

    @property
    def group(self) -> str:
        return str(self.object["apiVersion"]).rpartition("/")[0]

    @property
    def version(self) -> str:
        return str(self.object["apiVersion"]).rpartition("/")[2]

    @property
    def kind(self) -> str:
        return str(self.object["kind"])


@dataclass(frozen=True, slots=True)
class Outcome:
    """The answer to a case's last write, without what differs from run to run."""

    code: int
    reason: str = ""
    causes: list[list[str]] = field(default_factory=list)
    object: Object | None = None
    warnings: list[str] = field(default_factory=list)


@cache
def cases() -> tuple[Case, ...]:
    """Every case of every file."""
    rows = [row for file in sorted(FOLDER.glob("*.yaml")) for row in yaml.safe_load(file.read_text())]
    return tuple(Case(**row) for row in rows)


@cache
def recorded() -> dict[str, Outcome]:
    """What the real API server answered, by name of the case."""
    return {name: Outcome(**answer) for name, answer in json.loads(RECORDED.read_text()).items()}


def record(outcomes: dict[str, Outcome]) -> None:
    """Write down what the real API server answered."""
    rows = {name: asdict(outcome) for name, outcome in sorted(outcomes.items())}
    RECORDED.write_text(json.dumps(rows, indent=1, sort_keys=True, ensure_ascii=False) + "\n")


def by_strategy(case: Case) -> Outcome:
    """What our strategy makes of a case, called in the order in which the request handlers call it."""
    strategy = strategy_for(case.group, case.kind)
    created = coerced(case, copy.deepcopy(case.object))
    strategy.default(created)
    meta = created.setdefault("metadata", {})
    meta |= {"uid": UID, "creationTimestamp": CREATED}
    if _resource(case).namespaced:
        meta.setdefault("namespace", "default")
    strategy.prepare_create(created)
    if strategy.generation_fields:
        meta["generation"] = 1
    errors = strategy.validate_create(created)
    if case.update is None and case.status is None:
        if errors:
            return _invalid(errors)
        return Outcome(201, object=comparable(created), warnings=sorted(strategy.warnings(created, None)))
    assert not errors, [str(e) for e in errors]
    meta["resourceVersion"] = "1"
    return _updated(case, strategy, created)


def _updated(case: Case, strategy: Strategy, old: Object) -> Outcome:
    patch = case.update if case.update is not None else case.status
    new = coerced(case, _merged(copy.deepcopy(old), patch))
    strategy.default(new)
    if case.status is not None:
        strategy.prepare_status(new, old)
        errors = strategy.validate_status(new, old)
    else:
        strategy.prepare_update(new, old)
        if any(_at(new, path) != _at(old, path) for path in strategy.generation_fields):
            new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1
        errors = strategy.validate_update(new, old)
    if errors:
        return _invalid(errors)
    warnings = strategy.warnings(new, old) if case.status is None else []
    return Outcome(200, object=comparable(new), warnings=sorted(warnings))


def by_server(case: Case, server: Plain) -> Outcome:
    """What a real API server makes of a case; what an update needs is created, and deleted again."""
    resource = _resource(case)
    where = "/namespaces/default" if resource.namespaced else ""
    root = f"/apis/{case.object['apiVersion']}" if case.group else "/api/v1"
    collection = f"{root}{where}/{resource.plural}"
    if case.update is None and case.status is None:
        return _from_answer(server.request("POST", f"{collection}?dryRun=All", case.object))
    path = f"{collection}/{case.object['metadata']['name']}"
    answer = server.request("POST", collection, case.object)
    assert answer.status == 201, answer.body
    try:
        patch = case.update if case.update is not None else case.status
        target = f"{path}/status" if case.status is not None else path
        kind = {"Content-Type": "application/merge-patch+json"}
        return _from_answer(server.request("PATCH", f"{target}?dryRun=All", patch, headers=kind))
    finally:
        server.request("DELETE", f"{path}?gracePeriodSeconds=0&propagationPolicy=Background")
        if case.kind == "Namespace":  # nobody else empties it here
            server.request("PUT", f"{path}/finalize", {**case.object, "spec": {"finalizers": []}})


def comparable(obj: Object) -> Object:
    """An object without what a strategy does not decide, with its UID under a fixed name."""
    clean: Object = json.loads(json.dumps(obj).replace(str(obj["metadata"].get("uid")), "<uid>"))
    for part, fields in _ELSEWHERE.items():
        for name in fields:
            (clean.get(part) or {}).pop(name, None)
    spec = clean.get("spec") or {}
    if obj["kind"] == "Service":
        for port in spec.get("ports") or ():
            port.pop("nodePort", None)
    if obj["kind"] == "CertificateSigningRequest":
        for name in ("username", "uid", "groups", "extra"):
            spec.pop(name, None)
    for timed in [clean.get("status") or {}, *((clean.get("status") or {}).get("conditions") or ())]:
        for name in ("lastPhaseTransitionTime", "lastTransitionTime"):
            timed.pop(name, None)
    return clean


def _from_answer(answer: Answer) -> Outcome:
    body = answer.json()
    warnings = [
        re.fullmatch(r'299 - "(.*)"', text, re.DOTALL) for text in answer.headers.get_all("Warning") or ()
    ]
    texts = sorted(found[1].replace('\\"', '"') for found in warnings if found)
    if answer.status < 300:
        return Outcome(answer.status, object=comparable(body), warnings=texts)
    causes = (body.get("details") or {}).get("causes") or []
    rows = [[c.get("field") or "", c.get("reason") or "", c.get("message") or ""] for c in causes]
    return Outcome(answer.status, body.get("reason") or "", _tidy(rows))


def _invalid(errors: Any) -> Outcome:
    rows = [[e.path, e.cause.value, e.body] for e in errors]
    return Outcome(422, "Invalid", _tidy(rows))


def _tidy(rows: list[list[str]]) -> list[list[str]]:
    """Causes in a fixed order, each once (the real server repeats some), without diffs and random UIDs."""
    shown = [[f, r, re.sub(r"\n.*", "", m, flags=re.DOTALL)] for f, r, m in rows]
    uid = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
    return [list(row) for row in sorted({(f, r, re.sub(uid, "<uid>", m)) for f, r, m in shown})]


def coerced(case: Case, obj: Object) -> Object:
    """An object of the case's kind the way strategies get it."""
    type_ = facts.load().type_for(case.group, case.version, case.kind)
    assert type_ is not None
    return coerce(obj, type_).object


@cache
def _resources() -> dict[tuple[str, str, str], ResourceFact]:
    return {(r.group, r.version, r.kind): r for r in facts.load().resources}


def _resource(case: Case) -> ResourceFact:
    return _resources()[case.group, case.version, case.kind]


def _merged(target: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = _merged(result.get(key), value)
    return result


def _at(obj: Object, path: str) -> Any:
    value: Any = obj
    for step in path.split("."):
        value = (value or {}).get(step)
    return value


def differences(ours: Outcome, theirs: Outcome) -> Iterator[str]:
    """Where two outcomes part, in lines for a person."""
    if (ours.code, ours.reason) != (theirs.code, theirs.reason):
        yield f"ours {ours.code} {ours.reason}, Kubernetes {theirs.code} {theirs.reason}"
    yield from (f"only ours: {c}" for c in ours.causes if c not in theirs.causes)
    yield from (f"only Kubernetes: {c}" for c in theirs.causes if c not in ours.causes)
    yield from (f"only ours: warning {w}" for w in ours.warnings if w not in theirs.warnings)
    yield from (f"only Kubernetes: warning {w}" for w in theirs.warnings if w not in ours.warnings)
    if ours.object is not None and theirs.object is not None:
        yield from _object_differences("", ours.object, theirs.object)


def _object_differences(path: str, ours: Any, theirs: Any) -> Iterator[str]:
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for key in sorted(ours.keys() | theirs.keys()):
            if key not in ours or key not in theirs:
                side, value = ("ours", ours[key]) if key in ours else ("Kubernetes", theirs[key])
                yield f"only {side}: {path}.{key} = {value!r}"
            else:
                yield from _object_differences(f"{path}.{key}", ours[key], theirs[key])
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for i, (a, b) in enumerate(zip(ours, theirs, strict=True)):
            yield from _object_differences(f"{path}[{i}]", a, b)
    elif ours != theirs:
        yield f"{path}: ours {ours!r}, Kubernetes {theirs!r}"
