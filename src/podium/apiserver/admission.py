"""Checks and changes that need to see the rest of the cluster, between decoding and validation.

What kube-apiserver's default admission plug-ins do for the kinds that matter here, in their order: namespace
lifecycle, service accounts, tolerations, priorities, storage and ingress classes, protection finalizers; and
what its registries do beside them: addresses for Services. Webhooks will be one more step of `create`,
`update` and `delete`, which is why these are coroutines.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from podium.api.kinds import Object
from podium.api.times import timestamp
from podium.apiserver import errors
from podium.apiserver.access import escalation
from podium.apiserver.access.authorization import Attributes
from podium.apiserver.access.rbac import Rbac
from podium.apiserver.allocation import Allocator
from podium.apiserver.objects import Write
from podium.apiserver.podadmission import PodAdmission
from podium.apiserver.registry import Resource
from podium.apiserver.store import Store

_PROTECTED_NAMESPACES = ("default", "kube-system", "kube-public")
_RBAC_GROUP = "rbac.authorization.k8s.io"
_CERTIFICATES = "certificates.k8s.io"
_REQUESTS = f"{_CERTIFICATES}/certificatesigningrequests"


class Admission:
    """The built-in admission steps."""

    def __init__(self, store: Store, rbac: Callable[[], Rbac]) -> None:
        self._store = store
        self._rbac = rbac
        self._services = Allocator(store)
        self._pods = PodAdmission(store)

    async def create(self, resource: Resource, obj: Object, write: Write) -> None:
        if resource.terminating:
            why = "create not allowed while custom resource definition is terminating"
            raise errors.forbidden(resource.group, resource.plural, obj["metadata"].get("name", ""), why)
        self._check_namespace(resource, obj)
        step = getattr(self, f"_create_{resource.kind.lower()}", None) if not resource.custom else None
        if step is not None:
            step(obj)
        if resource.group == _RBAC_GROUP:
            self._check_escalation(resource, obj, None, write)
        if resource.kind == "CertificateSigningRequest" and not resource.custom:
            _sign_request(obj, write)

    async def update(
        self, resource: Resource, new: Object, old: Object, subresource: str, write: Write
    ) -> None:
        if resource.group == _RBAC_GROUP:
            self._check_escalation(resource, new, old, write)
        if resource.table == "/services" and not subresource:
            self._services.update(new, old)
        if resource.table == "/pods" and not subresource:
            self._pods.update(new, old)
        if resource.table == _REQUESTS and subresource:
            self._check_signer(new, old, subresource, write)
            _time_conditions(new, old)

    async def delete(self, resource: Resource, old: Object, write: Write) -> None:
        name = old["metadata"]["name"]
        if resource.table == "/namespaces" and name in _PROTECTED_NAMESPACES:
            raise errors.forbidden("", "namespaces", name, "this namespace may not be deleted")

    # --- namespaces -----------------------------------------------------------------------------------

    def _check_namespace(self, resource: Resource, obj: Object) -> None:
        if not resource.namespaced:
            return
        metadata = obj["metadata"]
        namespace = metadata["namespace"]
        stored = self._store.table("/namespaces").latest(namespace)
        if stored is None:
            raise errors.not_found("", "namespaces", namespace)
        if b'"deletionTimestamp"' not in stored.data:
            return
        found = stored.object
        if found["metadata"].get("deletionTimestamp"):
            why = f"unable to create new content in namespace {namespace} because it is being terminated"
            failure = errors.forbidden(resource.group, resource.plural, metadata["name"], why)
            assert failure.details is not None
            message = f"namespace {namespace} is being terminated"
            failure.details["causes"] = [
                {"reason": "NamespaceTerminating", "message": message, "field": "metadata.namespace"}
            ]
            raise failure

    # --- RBAC -----------------------------------------------------------------------------------------

    def _check_escalation(self, resource: Resource, new: Object, old: Object | None, write: Write) -> None:
        metadata = new["metadata"]
        request = Attributes(
            write.identity,
            "create" if old is None else "update",
            resource.group,
            resource.plural,
            namespace=metadata.get("namespace", ""),
            name=metadata.get("name", ""),
        )
        if resource.kind in ("Role", "ClusterRole"):
            escalation.check_role(self._rbac(), request, new, old)
        elif resource.kind in ("RoleBinding", "ClusterRoleBinding"):
            escalation.check_binding(self._rbac(), request, new, old)

    # --- certificate requests -------------------------------------------------------------------------

    def _check_signer(self, new: Object, old: Object, subresource: str, write: Write) -> None:
        """Refuse to approve, or to sign, for a signer that the writer has no permission for."""
        status, before = new.get("status") or {}, old.get("status") or {}
        signed = any(status.get(field) != before.get(field) for field in ("certificate", "conditions"))
        if subresource != "approval" and not signed:
            return
        verb = "approve" if subresource == "approval" else "sign"
        signer = old["spec"]["signerName"]
        for name in (signer, f"{signer.partition('/')[0]}/*"):
            question = Attributes(write.identity, verb, _CERTIFICATES, "signers", name=name)
            if self._rbac().decide(question).allowed:
                return
        why = f'user not permitted to {verb} requests with signerName "{signer}"'
        name = old["metadata"]["name"]
        raise errors.forbidden(_CERTIFICATES, "certificatesigningrequests", name, why)

    # --- storage and networking -----------------------------------------------------------------------

    def _create_persistentvolumeclaim(self, claim: Object) -> None:
        _protect(claim, "kubernetes.io/pvc-protection")
        spec = claim.setdefault("spec", {})
        if "storageClassName" not in spec:
            default = self._default_class("storage.k8s.io/storageclasses", "storageclass.kubernetes.io")
            if default:
                spec["storageClassName"] = default

    def _create_persistentvolume(self, volume: Object) -> None:
        _protect(volume, "kubernetes.io/pv-protection")

    def _create_ingress(self, ingress: Object) -> None:
        spec = ingress.setdefault("spec", {})
        annotations = ingress["metadata"].get("annotations") or {}
        if "ingressClassName" not in spec and "kubernetes.io/ingress.class" not in annotations:
            default = self._default_class("networking.k8s.io/ingressclasses", "ingressclass.kubernetes.io")
            if default:
                spec["ingressClassName"] = default

    def _default_class(self, table: str, prefix: str) -> str | None:
        marker = f"{prefix}/is-default-class"
        found = [
            stored.object["metadata"]
            for stored in self._store.table(table).scan()
            if marker.encode() in stored.data
        ]
        marked = [m for m in found if (m.get("annotations") or {}).get(marker) == "true"]
        newest = max(marked, key=lambda m: (m["creationTimestamp"], m["name"]), default=None)
        return newest["name"] if newest else None

    def _create_node(self, node: Object) -> None:
        taints = node.setdefault("spec", {}).setdefault("taints", [])
        if not any(taint["key"] == "node.kubernetes.io/not-ready" for taint in taints):
            taints.append({"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"})

    # --- Services -------------------------------------------------------------------------------------

    def _create_service(self, service: Object) -> None:
        self._services.create(service)

    # --- Pods -----------------------------------------------------------------------------------------

    def _create_pod(self, pod: Object) -> None:
        self._pods.create(pod)


def _sign_request(request: Object, write: Write) -> None:
    """Note in a certificate request who made it; approvers must be able to trust that."""
    info = write.identity.user_info()
    spec = request["spec"]
    for field in ("username", "uid", "groups", "extra"):
        if field in info:
            spec[field] = info[field]
        else:
            spec.pop(field, None)


def _time_conditions(new: Object, old: Object) -> None:
    """Give the conditions of a certificate request the times that their writer left out."""
    now = timestamp(datetime.now(UTC))
    earlier = {(c["type"], c["status"]): c for c in (old.get("status") or {}).get("conditions") or ()}
    for condition in (new.get("status") or {}).get("conditions") or ():
        same = earlier.get((condition.get("type"), condition.get("status"))) or {}
        condition["lastUpdateTime"] = condition.get("lastUpdateTime") or now
        since = condition.get("lastTransitionTime") or same.get("lastTransitionTime") or now
        condition["lastTransitionTime"] = since


def _protect(obj: Object, finalizer: str) -> None:
    finalizers = obj["metadata"].setdefault("finalizers", [])
    if finalizer not in finalizers:
        finalizers.append(finalizer)
