"""The verbs of the API: from a parsed, authorized request to an answer.

Nothing here knows HTTP beyond status codes and headers, and nothing here knows a particular kind: reading is
`reading` and `watching`, writing is `mutations` and `objects`, special endpoints are `subresources`.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

import msgspec

from podium.api.kinds import Object
from podium.apiserver import bodies, errors, mutations, reading, watching
from podium.apiserver.access.identity import Identity
from podium.apiserver.objects import DeleteOptions, Objects, Outcome, Write
from podium.apiserver.registry import Registry, Resource
from podium.apiserver.requests import RequestInfo
from podium.apiserver.store import Store, encode
from podium.apiserver.views import JSON, YAML, Form, View, negotiate
from podium.schema import coerce, facts
from podium.schema.fielderrors import FieldError, forbidden, invalid, not_supported, required, too_long

_PATCH_TYPES = (
    mutations.JSON_PATCH,
    mutations.MERGE_PATCH,
    mutations.STRATEGIC_PATCH,
    mutations.APPLY_PATCH,
)


_WRITES = ("create", "update", "patch", "delete")
_CONNECTIONS = ("attach", "exec", "portforward", "proxy")  # these answer whatever is at the other end


@dataclass(slots=True)
class Call:
    """One authorized request."""

    info: RequestInfo
    query: Mapping[str, str]
    headers: Mapping[str, str]
    identity: Identity
    read_body: Callable[[], Awaitable[bytes]]
    may_create: Callable[[], None]  # refuses if the sender may not create what the request is about
    dry_run_values: tuple[str, ...] = ()
    warnings: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Answer:
    """A complete response."""

    code: int
    body: bytes
    content_type: str = JSON
    headers: dict[str, str] = field(default_factory=dict)


Special = Callable[[Call, Resource], Awaitable[Answer]]


class Endpoints:
    """Answers requests on resources."""

    def __init__(self, store: Store, registry: Registry, objects: Objects) -> None:
        self.store = store
        self.registry = registry
        self.objects = objects
        # (group, plural, subresource) -> what answers it; an empty plural means any resource.
        self.specials: dict[tuple[str, str, str], Special] = {}

    def resource(self, info: RequestInfo) -> Resource | None:
        """The resource a request is about, if it is served."""
        resource = self.registry.find(info.group, info.version, info.resource)
        if resource is None:
            return None
        if info.subresource and info.subresource not in resource.subresources:
            if resource.custom:
                raise errors.not_found(info.group, info.resource, info.name)
            return None
        if info.name and resource.verbs == ("create",) and not info.subresource:
            return None  # nothing of the kind is kept, so nothing has a name
        if info.rest and info.subresource != "proxy":
            return None
        namespace = info.namespace if (info.group, info.resource) != ("", "namespaces") else ""
        if namespace and not resource.namespaced:
            return None
        return resource

    def is_builtin_group(self, group: str) -> bool:
        """Whether a group is part of Kubernetes itself; there an unknown path is answered with a Status."""
        return any(resource.group == group and not resource.custom for resource in self.registry.resources())

    async def handle(self, call: Call, resource: Resource) -> Answer | watching.Watch:
        """Answer a request, or open the watch it asks for."""
        info = call.info
        if resource.deprecation:
            call.warnings.append(resource.deprecation)
        if info.verb in _WRITES and info.subresource not in _CONNECTIONS:
            self._view(call, resource)  # refuse before anything is done what could not be answered
        special = self.specials.get((info.group, info.resource, info.subresource)) or (
            self.specials.get(("*", "*", info.subresource)) if info.subresource else None
        )
        if special is not None:
            if info.verb not in _special_verbs(resource, info.subresource):
                raise errors.method_not_allowed()  # or who may only read could have tokens made, Pods evicted
            return await special(call, resource)
        if not _is_routed(resource, info):
            raise errors.method_not_allowed()
        if info.name in (".", "..") or "%" in info.name:
            why = f"may not be '{info.name}'" if info.name in (".", "..") else "may not contain '%'"
            raise errors.bad_request(f'Name parameter invalid: "{info.name}": {why}')
        match info.verb:
            case "get":
                return self.get(call, resource)
            case "list":
                return self.list(call, resource)
            case "watch":
                return self.watch(call, resource)
            case "create" if not info.subresource:
                return await self.create(call, resource)
            case "update":
                return await self.update(call, resource)
            case "patch":
                return await self.patch(call, resource)
            case "delete" if not info.subresource:
                return await self.delete(call, resource)
            case "deletecollection" if not info.subresource:
                return await self.delete_collection(call, resource)
        raise errors.method_not_allowed()

    # --- reading --------------------------------------------------------------------------------------

    def get(self, call: Call, resource: Resource) -> Answer:
        _require_verb(resource, "get")
        view, kind = self._view(call, resource)
        wanted = call.query.get("resourceVersion", "")
        if problem := reading.version_problem(wanted):
            raise errors.unexplained(problem)
        if wanted:
            reading.check_not_future(self.store, int(wanted))
        stored = self.objects.stored(resource, call.info.namespace, call.info.name)
        return _answer(200, view.object(resource, resource.codec.serve(stored)), kind)

    def list(self, call: Call, resource: Resource) -> Answer:
        _require_verb(resource, "list")
        options = reading.parse_options(call.query, resource)
        view, kind = self._view(call, resource, Form.LIST)
        page = reading.read_page(self.store, resource, call.info.namespace, options)
        serve = resource.codec.serve
        body = view.list(resource, [serve(stored) for stored in page.items], page.metadata)
        return _answer(200, body, kind)

    def watch(self, call: Call, resource: Resource) -> watching.Watch:
        _require_verb(resource, "watch")
        query = {**call.query, "watch": "true"}
        if call.info.name and "fieldSelector" not in query:
            query["fieldSelector"] = f"metadata.name={call.info.name}"
        options = reading.parse_options(query, resource)
        view, _ = self._view(call, resource, Form.WATCH)
        return watching.open_watch(self.store, resource, call.info.namespace, options, view)

    # --- writing --------------------------------------------------------------------------------------

    async def create(self, call: Call, resource: Resource) -> Answer:
        _require_verb(resource, "create")
        if call.info.name:
            raise errors.method_not_allowed()
        write = self.write_options(call)
        obj = mutations.admitted(resource, await self.body(call, write, resource.kind), write)
        outcome = await self.objects.create(resource, call.info.namespace, obj, write)
        return self.answer(call, resource, outcome)

    async def update(self, call: Call, resource: Resource) -> Answer:
        _require_verb(resource, "update")
        _require_name(call.info, resource)
        write = self.write_options(call)
        obj = mutations.admitted(resource, await self.body(call, write, resource.kind), write)
        info = call.info
        may_create = resource.strategy.create_on_update and not info.subresource
        outcome = await self.objects.update(
            resource,
            info.namespace,
            info.name,
            mutations.replaced_by(resource, obj),
            write,
            subresource=info.subresource,
            may_create=call.may_create if may_create else None,
        )
        return self.answer(call, resource, outcome)

    async def patch(self, call: Call, resource: Resource) -> Answer:
        _require_verb(resource, "patch")
        info = call.info
        _require_name(info, resource)
        kind = bodies.media_type(call.headers.get("Content-Type", ""))
        if kind not in _PATCH_TYPES:
            if resource.custom:
                raise errors.unsupported_media_type(_custom_patch_types())
            raise errors.StatusError(415, "UnsupportedMediaType", "415: Unsupported Media Type", {})
        applying = kind == mutations.APPLY_PATCH
        force = reading.boolean(call.query.get("force"))
        self.check_patch_options(call, applying, force)
        write = self.write_options(call)
        data = await call.read_body()
        if applying:
            now = self.objects.timestamp
            intent = mutations.intent_of(resource.api_version, resource.kind, data, write)
            transform = mutations.applied(
                resource, intent, write, force=bool(force), subresource=info.subresource, now=now
            )
        else:
            transform = mutations.patched(resource, kind, data, write)
        outcome = await self.objects.update(
            resource,
            info.namespace,
            info.name,
            transform,
            write,
            subresource=info.subresource,
            may_create=call.may_create if applying and not info.subresource else None,
            tracked=applying,
        )
        return self.answer(call, resource, outcome)

    def check_patch_options(self, call: Call, applying: bool, force: bool | None) -> None:
        """Refuse an apply without a manager, and force on anything else."""
        problems: list[FieldError] = []
        if applying and not call.query.get("fieldManager"):
            problems.append(required("fieldManager", "is required for apply patch"))
        if not applying and force is not None:
            problems.append(forbidden("force", "may not be specified for non-apply patch"))
        if problems:
            raise errors.invalid("meta.k8s.io", "PatchOptions", "", problems)

    async def delete(self, call: Call, resource: Resource) -> Answer:
        _require_verb(resource, "delete")
        options, write = await self.delete_options(call)
        info = call.info
        outcome = await self.objects.delete(resource, info.namespace, info.name, options, write)
        code = 202 if not outcome.deleted and options.orphan_dependents is False else 200
        view, kind = self._view(call, resource)
        if outcome.deleted and not resource.returns_deleted:
            return _answer(code, encode(_deleted_status(resource, outcome)), kind)
        return _answer(code, view.object(resource, outcome.data), kind)

    async def delete_collection(self, call: Call, resource: Resource) -> Answer:
        _require_verb(resource, "deletecollection")
        list_options = reading.parse_options(call.query, resource)
        options, write = await self.delete_options(call)
        selected = reading.selector_for(resource, list_options) or (lambda _: True)
        deleted = await self.objects.delete_collection(
            resource, call.info.namespace, selected, options, write
        )
        view, kind = self._view(call, resource, Form.LIST)
        metadata = {"resourceVersion": str(self.store.revision)}
        return _answer(200, view.list(resource, deleted, metadata), kind)

    # --- options --------------------------------------------------------------------------------------

    async def body(self, call: Call, write: Write, kind: str) -> bodies.Body:
        """The decoded body of a create or update, which should hold an object of this kind."""
        data = await call.read_body()
        content_type = call.headers.get("Content-Type", "")
        look = write.validation != "Ignore"
        if bodies.media_type(content_type) == bodies.PROTOBUF:
            info = call.info
            version = f"{info.group}/{info.version}" if info.group else info.version
            return bodies.decode_protobuf(data, version, kind)
        try:
            return bodies.decode(data, content_type, find_duplicates=look, into=bodies.TYPE_META)
        except bodies.Undecodable as error:
            problem = str(error).removeprefix("error converting YAML to JSON: ")
            if not problem.startswith("yaml:"):
                problem = f"couldn't get version/kind; json parse error: {problem}"
            raise bodies.unrecognized(kind, problem, data) from None

    def write_options(self, call: Call) -> Write:
        """Dry run, field manager and field validation from the query, each checked."""
        problems: list[FieldError] = []
        dry_run = _dry_run(call.dry_run_values, problems)
        validation = call.query.get("fieldValidation", "") or "Warn"
        if validation not in ("Ignore", "Warn", "Strict"):
            problems.append(not_supported("fieldValidation", validation, ("", "Ignore", "Strict", "Warn")))
        manager = call.query.get("fieldManager", "")
        if len(manager.encode()) > 128:
            problems.append(too_long("fieldManager", 128))
        problems += [
            invalid("fieldManager", manager, f"invalid character U+{ord(char):04X} (at position {position})")
            for position, char in enumerate(manager)
            if not char.isprintable()
        ]
        if problems:
            kind = {"create": "CreateOptions", "patch": "PatchOptions"}.get(call.info.verb, "UpdateOptions")
            raise errors.invalid("meta.k8s.io", kind, "", problems)
        if not manager:
            manager = _manager_from_agent(call.headers.get("User-Agent", ""))
        return Write(call.identity, manager, dry_run, validation, call.warnings)

    async def delete_options(self, call: Call) -> tuple[DeleteOptions, Write]:
        """Delete options from the body, or from the query where there is none."""
        data = await call.read_body()
        if data:
            given = _decoded_delete_options(data, call.headers.get("Content-Type", ""))
        else:
            given = _delete_options_from_query(call.query)
        problems: list[FieldError] = []
        values = (*call.dry_run_values, *(given.get("dryRun") or ()))
        dry_run = _dry_run(values, problems)
        propagation = given.get("propagationPolicy") or ""
        orphan = given.get("orphanDependents")
        if propagation and orphan is not None:
            why = "orphanDependents and deletionPropagation cannot be both set"
            problems.append(invalid("propagationPolicy", propagation, why))
        elif propagation not in ("", "Orphan", "Background", "Foreground"):
            supported = ("Foreground", "Background", "Orphan", "nil")
            problems.append(not_supported("propagationPolicy", propagation, supported, in_order=True))
        if problems:
            raise errors.invalid("meta.k8s.io", "DeleteOptions", "", problems)
        preconditions = given.get("preconditions") or {}
        options = DeleteOptions(
            propagation=propagation,
            orphan_dependents=orphan,
            grace_seconds=given.get("gracePeriodSeconds"),
            uid=preconditions.get("uid") or "",
            resource_version=preconditions.get("resourceVersion") or "",
        )
        return options, Write(call.identity, dry_run=dry_run, warnings=call.warnings)

    def answer(self, call: Call, resource: Resource, outcome: Outcome) -> Answer:
        """The answer to a write: 201 where something was created."""
        return self.show(call, resource, outcome.data, 201 if outcome.created else 200)

    def show(self, call: Call, resource: Resource, data: bytes, code: int = 200) -> Answer:
        """An object in the form that the client accepts."""
        view, kind = self._view(call, resource)
        return _answer(code, view.object(resource, data), kind)

    def _view(self, call: Call, resource: Resource, form: Form = Form.OBJECT) -> tuple[View, str]:
        accept, include = call.headers.get("Accept", ""), call.query.get("includeObject", "")
        return negotiate(resource, accept, include, self.objects.now(), form)


def _custom_patch_types() -> tuple[str, ...]:
    return tuple(kind for kind in _PATCH_TYPES if kind != mutations.STRATEGIC_PATCH)


def _require_verb(resource: Resource, verb: str) -> None:
    if verb not in resource.verbs:
        raise errors.method_not_allowed()


def _require_name(info: RequestInfo, resource: Resource) -> None:
    if not info.name:
        raise errors.bad_request("name must be provided") if resource.custom else errors.method_not_allowed()


def _answer(code: int, body: bytes, kind: str) -> Answer:
    if kind == YAML:
        from podium.text import yaml

        return Answer(code, yaml.dump(msgspec.json.decode(body)).encode(), YAML)
    return Answer(code, body)


def _is_routed(resource: Resource, info: RequestInfo) -> bool:
    """Whether upstream has a route for this verb here: across namespaces one can only read."""
    if info.verb in ("update", "patch") and not info.name:
        return False
    return bool(info.namespace) or not resource.namespaced or info.verb in ("list", "watch")


def _special_verbs(resource: Resource, subresource: str) -> tuple[str, ...]:
    """What can be done with a resource or subresource, as discovery tells it."""
    return tuple(resource.subresources[subresource]["verbs"]) if subresource else resource.verbs


def _dry_run(values: tuple[str, ...], problems: list[FieldError]) -> bool:
    for value in values:
        if value != "All":
            problems.append(not_supported("dryRun", list(values), ("All",)))
            break
    return bool(values)


def _manager_from_agent(agent: str) -> str:
    """The program in front of a User-Agent: `kubectl/v1.36 (linux)` is kubectl."""
    name = agent.partition("/")[0]
    return "".join(c for c in name[:128] if c.isprintable()) or "unknown"


def _decoded_delete_options(data: bytes, content_type: str) -> Object:
    try:
        given = bodies.decode(data, content_type, find_duplicates=False, into=bodies.TYPE_META).object
    except bodies.Undecodable as error:
        raise errors.bad_request(f"couldn't get version/kind; json parse error: {error}") from None
    kind, version = given.get("kind") or "DeleteOptions", given.get("apiVersion") or "v1"
    if kind != "DeleteOptions":
        where = f'registered for version "{version}" in scheme "pkg/runtime/scheme.go:111"'
        raise errors.bad_request(f'no kind "{kind}" is {where}')
    options = facts.load().type_for("", "v1", "DeleteOptions")
    assert options is not None
    try:
        return coerce.coerce(given, options).object
    except coerce.DecodeError as error:
        raise errors.bad_request(str(error)) from None


def _delete_options_from_query(query: Mapping[str, str]) -> Object:
    given: Object = {}
    if "propagationPolicy" in query:
        given["propagationPolicy"] = query["propagationPolicy"]
    if "orphanDependents" in query:
        given["orphanDependents"] = reading.boolean(query["orphanDependents"])
    grace = query.get("gracePeriodSeconds")
    if grace:
        if not re.fullmatch("[+-]?[0-9]{1,18}", grace):
            raise errors.bad_request(f'strconv.ParseInt: parsing "{grace}": invalid syntax')
        given["gracePeriodSeconds"] = int(grace)
    return given


def _deleted_status(resource: Resource, outcome: Outcome) -> Object:
    metadata = msgspec.json.decode(outcome.data)["metadata"]
    details: Object = {"name": metadata["name"]}
    if resource.group:
        details["group"] = resource.group
    details |= {"kind": resource.plural, "uid": metadata["uid"]}
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}
