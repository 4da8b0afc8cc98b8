"""Endpoints that are not plain reads and writes of a stored object.

Scale, bindings, evictions, tokens, finalizing a namespace, approving a certificate request, and the reviews,
which are created but never stored. What needs a kubelet (logs, exec, port-forward) says that there is none.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from podium.api import selectors
from podium.api.conditions import with_condition
from podium.api.fields import value_at
from podium.api.kinds import Object
from podium.apiserver import bodies, errors, mutations, reading
from podium.apiserver.access import reviews
from podium.apiserver.access.authentication import Authenticator
from podium.apiserver.access.rbac import Rbac
from podium.apiserver.access.tokens import ServiceAccountTokens
from podium.apiserver.endpoints import Answer, Call, Endpoints
from podium.apiserver.evictions import Evictions, pod_condition
from podium.apiserver.objects import DeleteOptions, Transform, Write
from podium.apiserver.registry import Registry, Resource
from podium.apiserver.store import decode, encode
from podium.schema import coerce, facts
from podium.schema.fielderrors import invalid, not_supported

_NO_KUBELET = ("log", "exec", "attach", "portforward", "proxy")


class Subresources:
    """Registers and answers the special endpoints."""

    def __init__(
        self,
        endpoints: Endpoints,
        registry: Registry,
        rbac: Rbac,
        authenticator: Authenticator,
        tokens: ServiceAccountTokens,
    ) -> None:
        self._endpoints = endpoints
        self._objects = endpoints.objects
        self._evictions = Evictions(endpoints.objects)
        self._registry = registry
        self._rbac = rbac
        self._authenticator = authenticator
        self._tokens = tokens

    def register(self) -> None:
        """Put every special endpoint in its place."""
        specials = self._endpoints.specials
        specials["*", "*", "scale"] = self.scale
        specials["", "bindings", ""] = self.bind
        specials["", "pods", "binding"] = self.bind
        specials["", "pods", "eviction"] = self.evict
        specials["", "serviceaccounts", "token"] = self.request_token
        specials["", "namespaces", "finalize"] = self.finalize
        for name in _NO_KUBELET:
            specials["*", "*", name] = self.no_kubelet
        for group, plural in (
            ("authorization.k8s.io", "subjectaccessreviews"),
            ("authorization.k8s.io", "localsubjectaccessreviews"),
            ("authorization.k8s.io", "selfsubjectaccessreviews"),
            ("authorization.k8s.io", "selfsubjectrulesreviews"),
            ("authentication.k8s.io", "selfsubjectreviews"),
            ("authentication.k8s.io", "tokenreviews"),
        ):
            specials[group, plural, ""] = self.review

    # --- scale ----------------------------------------------------------------------------------------

    async def scale(self, call: Call, resource: Resource) -> Answer:
        """Read or set the number of replicas, whatever the kind."""
        info = call.info
        if info.verb == "get":
            found = resource.codec.decode(self._objects.stored(resource, info.namespace, info.name))
            if _lacks_replicas(resource, found):
                raise errors.internal(f"the spec replicas field {_dotted(resource)} does not exist")
            return self._shown_scale(call, resource, found)
        if info.verb not in ("update", "patch"):
            raise errors.method_not_allowed()
        write = self._endpoints.write_options(call)
        body = await call.read_body()
        content_type = bodies.media_type(call.headers.get("Content-Type", ""))

        applying = info.verb == "patch" and content_type == mutations.APPLY_PATCH
        if applying:
            transform = self._applied_scale(call, resource, body, write)
        else:
            transform = _scaled(resource, info.name, body, content_type, info.verb)
        outcome = await self._objects.update(
            resource, info.namespace, info.name, transform, write, subresource="scale", tracked=applying
        )
        return self._shown_scale(call, resource, decode(outcome.data))

    def _shown_scale(self, call: Call, resource: Resource, obj: Object) -> Answer:
        # Whatever is scaled, a table of it has the columns of a Scale.
        scales = replace(resource, group="autoscaling", plural="scales", kind="Scale", columns=None)
        return self._endpoints.show(call, scales, encode(_scale_of(resource, obj)))

    def _applied_scale(self, call: Call, resource: Resource, body: bytes, write: Write) -> Transform:
        """An applied Scale is an applied object that says nothing but the number of replicas."""
        force = reading.boolean(call.query.get("force"))
        self._endpoints.check_patch_options(call, True, force)
        scale = mutations.intent_of("autoscaling/v1", "Scale", body, write)
        intent: Object = {"apiVersion": resource.api_version, "kind": resource.kind}
        intent["metadata"] = {"name": call.info.name}
        if resource.scale:
            _set(intent, resource.scale.spec_replicas, (scale.get("spec") or {}).get("replicas", 0))
        now = self._objects.timestamp
        return mutations.applied(resource, intent, write, force=bool(force), subresource="scale", now=now)

    # --- Pods -----------------------------------------------------------------------------------------

    async def bind(self, call: Call, resource: Resource) -> Answer:
        """Assign a Pod to a node."""
        write = self._endpoints.write_options(call)
        binding = _coerced("", "Binding", (await self._endpoints.body(call, write, "Binding")).object)
        stated = (binding.get("metadata") or {}).get("name", "")
        name = call.info.name or stated
        if stated != name:
            raise errors.bad_request("name in URL does not match name in Binding object")
        target = binding.get("target") or {}
        # Upstream passes these on as they are, so they come out as 500.
        if target.get("kind") not in (None, "", "Node"):
            problem = not_supported("target.kind", target["kind"], ("Node", "<empty>"), in_order=True)
            raise errors.unclassified(str(problem))
        if not target.get("name"):
            raise errors.unclassified("target.name: Required value")
        annotations = (binding.get("metadata") or {}).get("annotations") or {}
        pods = self._core("pods")

        def transform(pod: Object | None) -> Object:
            assert pod is not None
            if pod["metadata"].get("deletionTimestamp"):
                why = f"pod {name} is being deleted, cannot be assigned to a host"
                raise errors.conflict("", "pods/binding", name, why)
            if pod["spec"].get("nodeName"):
                why = f'pod {name} is already assigned to node "{pod["spec"]["nodeName"]}"'
                raise errors.conflict("", "pods/binding", name, why)
            pod["spec"]["nodeName"] = target["name"]
            if annotations:
                pod["metadata"]["annotations"] = {**(pod["metadata"].get("annotations") or {}), **annotations}
            scheduled = pod_condition("PodScheduled", self._objects.timestamp())
            pod["status"] = with_condition(pod.get("status"), scheduled)
            return pod

        await self._objects.update(
            pods, call.info.namespace, name, transform, write, subresource="binding", tracked=True
        )
        return _success(201)

    async def evict(self, call: Call, resource: Resource) -> Answer:
        """Delete a Pod, unless a PodDisruptionBudget forbids it."""
        write = self._endpoints.write_options(call)
        eviction = _coerced(
            "policy", "Eviction", (await self._endpoints.body(call, write, "Eviction")).object
        )
        info = call.info
        if (eviction.get("metadata") or {}).get("name", "") != info.name:
            raise errors.bad_request("name in URL does not match name in Eviction object")
        given = eviction.get("deleteOptions") or {}
        write.dry_run = write.dry_run or bool(given.get("dryRun"))
        preconditions = given.get("preconditions") or {}
        options = DeleteOptions(
            propagation=given.get("propagationPolicy") or "",
            grace_seconds=given.get("gracePeriodSeconds"),
            uid=preconditions.get("uid") or "",
            resource_version=preconditions.get("resourceVersion") or "",
        )
        await self._evictions.evict(resource, info.namespace, info.name, options, write)
        return _success(201)

    async def no_kubelet(self, call: Call, resource: Resource) -> Answer:
        """Logs and the like need a process, and the Pods here are simulated."""
        if call.info.subresource == "log":
            pod = self._objects.stored(resource, call.info.namespace, call.info.name).object
            _check_container(pod, call.query.get("container", ""))
            text = b"This Pod is simulated: it runs no process and has no logs.\n"
            return Answer(200, text if pod["spec"].get("nodeName") else b"", "text/plain")
        what = call.info.subresource
        raise errors.StatusError(
            501,
            "NotImplemented",
            f"{what} is not available: Pods of the embedded control plane are simulated",
        )

    # --- accounts and namespaces ----------------------------------------------------------------------

    async def request_token(self, call: Call, resource: Resource) -> Answer:
        """A token for a service account."""
        write = self._endpoints.write_options(call)
        body = await self._endpoints.body(call, write, "TokenRequest")
        request = _coerced("authentication.k8s.io", "TokenRequest", body.object)
        answered = self._tokens.request(call.info.namespace, call.info.name, request)
        return Answer(201, encode(answered))

    async def finalize(self, call: Call, resource: Resource) -> Answer:
        """Set the finalizers of a namespace."""
        if call.info.verb != "update":
            raise errors.method_not_allowed()
        write = self._endpoints.write_options(call)
        obj = mutations.admitted(resource, await self._endpoints.body(call, write, resource.kind), write)

        def transform(current: Object | None) -> Object:
            assert current is not None
            current["spec"] = obj.get("spec") or {}
            current["metadata"]["resourceVersion"] = (
                obj["metadata"].get("resourceVersion") or current["metadata"]["resourceVersion"]
            )
            return current

        outcome = await self._objects.update(
            resource, "", call.info.name, transform, write, subresource="finalize"
        )
        return self._endpoints.answer(call, resource, outcome)

    # --- reviews --------------------------------------------------------------------------------------

    async def review(self, call: Call, resource: Resource) -> Answer:
        """Answer an access or token review."""
        if call.info.verb != "create":
            raise errors.method_not_allowed()
        write = self._endpoints.write_options(call)
        body = await self._endpoints.body(call, write, resource.kind)
        mutations.check_kind(resource, body.object)
        review = _coerced(resource.group, resource.kind, body.object)
        match resource.kind:
            case "SubjectAccessReview":
                answered = reviews.subject_access(review, self._rbac)
            case "LocalSubjectAccessReview":
                answered = reviews.local_subject_access(review, call.info.namespace, self._rbac)
            case "SelfSubjectAccessReview":
                answered = reviews.self_subject_access(review, call.identity, self._rbac)
            case "SelfSubjectRulesReview":
                answered = reviews.self_subject_rules(review, call.identity, self._rbac)
            case "SelfSubjectReview":
                answered = reviews.self_subject(call.identity)
            case _:
                answered = reviews.token(review, self._authenticator)
        return Answer(201, encode(answered))

    def _core(self, plural: str) -> Resource:
        resource = self._registry.find("", "v1", plural)
        assert resource is not None
        return resource


def _check_container(pod: Object, wanted: str) -> None:
    """Refuse a container that the Pod does not have; which one is meant may be left open if there is one."""
    name, spec = pod["metadata"]["name"], pod["spec"]
    lists = (spec.get(key) or [] for key in ("initContainers", "containers", "ephemeralContainers"))
    names = [container["name"] for containers in lists for container in containers]
    if wanted and wanted not in names:
        raise errors.bad_request(f"container {wanted} is not valid for pod {name}")
    if not wanted and len(spec["containers"]) > 1:
        choices = f"choose one of: [{' '.join(names)}]"
        raise errors.bad_request(f"a container name must be specified for pod {name}, {choices}")


def _coerced(group: str, kind: str, obj: Object) -> Object:
    type_ = facts.load().type_for(group, "v1", kind)
    assert type_ is not None
    try:
        return coerce.coerce(obj, type_).object
    except coerce.DecodeError as error:
        raise errors.bad_request(f'{kind} in version "v1" cannot be handled as a {kind}: {error}') from None


def _success(code: int) -> Answer:
    status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": code}
    return Answer(code, encode(status))


def _scale_of(resource: Resource, obj: Object) -> Object:
    assert resource.scale is not None
    metadata = obj["metadata"]
    kept = {
        k: metadata[k]
        for k in ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
        if k in metadata
    }
    replicas = value_at(obj, resource.scale.spec_replicas)
    status: Object = {"replicas": value_at(obj, resource.scale.status_replicas) or 0}
    selector = value_at(obj, resource.scale.selector) if resource.scale.selector else None
    if isinstance(selector, dict):
        described = (
            selector if {"matchLabels", "matchExpressions"} & set(selector) else {"matchLabels": selector}
        )
        selector = selectors.format_selector(selectors.from_object(described))
    if selector:
        status["selector"] = selector
    spec: Object = {"replicas": replicas} if replicas else {}
    head = {"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": kept}
    return {**head, "spec": spec, "status": status}


def _scaled(resource: Resource, name: str, body: bytes, content_type: str, verb: str) -> Transform:
    """A PUT or PATCH of the Scale, as a change of the object itself."""

    def transform(obj: Object | None) -> Object:
        assert obj is not None
        scale = _changed_scale(resource, obj, body, content_type, verb)
        stated = scale["metadata"].get("name", "")
        if stated != name:
            why = f"the name of the object ({stated}) does not match the name on the URL ({name})"
            raise errors.bad_request(why)
        if resource.scale:
            _set(obj, resource.scale.spec_replicas, scale["spec"].get("replicas", 0))
        wanted = scale["metadata"].get("resourceVersion")
        obj["metadata"]["resourceVersion"] = wanted or obj["metadata"]["resourceVersion"]
        return obj

    return transform


def _changed_scale(resource: Resource, obj: Object, body: bytes, content_type: str, verb: str) -> Object:
    scale = _scale_of(resource, obj)
    if verb == "update":
        decoded = bodies.decode(body, content_type).object
        kind = decoded.get("kind") or "Scale"
        if kind != "Scale":
            version = str(decoded.get("apiVersion") or "").rpartition("/")[2]
            what = f'{kind} in version "{version}" cannot be handled as a Scale'
            raise errors.bad_request(
                f"{what}: converting ({version}.{kind}) to (autoscaling.Scale): unknown conversion"
            )
        given = _coerced("autoscaling", "Scale", decoded)
    else:
        patched = _patched_scale(scale, body, content_type)
        if _lacks_replicas(resource, obj) and "replicas" not in (patched.get("spec") or {}):
            raise errors.bad_request(f"the spec replicas field {_dotted(resource)} cannot be empty")
        given = _coerced("autoscaling", "Scale", patched)
    replicas = given["spec"].get("replicas", 0)
    if replicas < 0:
        problem = invalid("spec.replicas", replicas, "must be greater than or equal to 0")
        raise errors.invalid("autoscaling", "Scale", obj["metadata"]["name"], [problem])
    return given


def _patched_scale(scale: Object, body: bytes, content_type: str) -> Object:
    from podium.schema import patches

    value = bodies.decode_json_value(body)
    if content_type == mutations.JSON_PATCH:
        try:
            result: Object = patches.json_patch(scale, value)
        except (patches.PatchError, patches.MalformedPatchError) as error:
            raise errors.bad_request(str(error)) from None
        return result
    return patches.merge_patch(scale, value)  # type: ignore[no-any-return]


def _lacks_replicas(resource: Resource, obj: Object) -> bool:
    """Whether a custom resource does not say how many it wants; built-in kinds always do."""
    paths = resource.scale
    return resource.custom and paths is not None and value_at(obj, paths.spec_replicas) is None


def _dotted(resource: Resource) -> str:
    return f'".{".".join(resource.scale.spec_replicas)}"' if resource.scale else ""


def _set(obj: Object, path: tuple[str, ...], value: Any) -> None:
    for part in path[:-1]:
        obj = obj.setdefault(part, {})
    obj[path[-1]] = value
