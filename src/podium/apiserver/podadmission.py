"""What the cluster adds to a Pod, or has against it, before it is checked and stored.

Its service account (with the token that every container may read), its priority, tolerations for nodes that
fail, and what its RuntimeClass says: each is a default admission plug-in of kube-apiserver, in its order.
"""

from __future__ import annotations

from podium.api.kinds import Object
from podium.apiserver import errors
from podium.apiserver.chance import CHANCE
from podium.apiserver.errors import StatusError
from podium.apiserver.store import Store

_TOKEN_MOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
_OTHER_OVERHEAD = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
_OVERHEAD_ALONE = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"


class PodAdmission:
    """Completes Pods from what else is in the store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def create(self, pod: Object) -> None:
        """Complete a new Pod in place, or refuse it."""
        spec = pod["spec"]
        self._mount_account(pod, spec)
        self._settle_priority(pod, spec)
        _tolerate_failing_nodes(spec)
        self._settle_runtime(pod, spec)

    def update(self, new: Object, old: Object) -> None:
        """Put back what an update left out and a Pod always has, in place."""
        spec, before = new["spec"], old["spec"]
        for field in ("priority", "preemptionPolicy"):
            if spec.get(field) is None and field in before:
                spec[field] = before[field]
        _tolerate_failing_nodes(spec)

    def _mount_account(self, pod: Object, spec: Object) -> None:
        namespace = pod["metadata"]["namespace"]
        if "kubernetes.io/config.mirror" in (pod["metadata"].get("annotations") or {}):
            return
        name = spec.get("serviceAccountName") or spec.get("serviceAccount") or "default"
        spec["serviceAccountName"] = spec["serviceAccount"] = name
        stored = self._store.table("/serviceaccounts").latest(f"{namespace}/{name}")
        if stored is None:
            why = f'error looking up service account {namespace}/{name}: serviceaccount "{name}" not found'
            raise _forbidden(pod, why)
        account = stored.object
        if not spec.get("imagePullSecrets") and account.get("imagePullSecrets"):
            spec["imagePullSecrets"] = account["imagePullSecrets"]
        wanted = spec.get("automountServiceAccountToken")
        if wanted is None:
            wanted = account.get("automountServiceAccountToken", True)
        if wanted:
            _mount_token(spec)

    def _settle_priority(self, pod: Object, spec: Object) -> None:
        chosen = self._priority_class(pod, spec) or {}
        if chosen:
            spec["priorityClassName"] = chosen["metadata"]["name"]
        computed = {
            "priority": chosen.get("value", 0),
            "preemptionPolicy": chosen.get("preemptionPolicy") or "PreemptLowerPriority",
        }
        shown = {
            "priority": "integer value of priority",
            "preemptionPolicy": "string value of PreemptionPolicy",
        }
        for field, value in computed.items():
            if spec.get(field) not in (None, value):
                why = (
                    f"the {shown[field]} ({spec[field]}) must not be provided in pod spec; "
                    f"priority admission controller computed {value} from the given PriorityClass name"
                )
                raise _forbidden(pod, why)
            spec[field] = value

    def _priority_class(self, pod: Object, spec: Object) -> Object | None:
        """The class that a Pod names, else the default one; the lowest, should there be several."""
        classes = self._store.table("scheduling.k8s.io/priorityclasses")
        if name := spec.get("priorityClassName"):
            stored = classes.latest(name)
            if stored is None:
                why = f"no PriorityClass with name {name} was found"
                raise _forbidden(pod, why)
            return stored.object
        defaults = [s.object for s in classes.scan() if b'"globalDefault":true' in s.data]
        return min(defaults, key=lambda found: int(found["value"]), default=None)

    def _settle_runtime(self, pod: Object, spec: Object) -> None:
        """Add what the RuntimeClass of a Pod costs and where it runs."""
        found: Object = {}
        if (name := spec.get("runtimeClassName")) is not None:
            stored = self._store.table("node.k8s.io/runtimeclasses").latest(name)
            if stored is None:
                raise _forbidden(pod, f'pod rejected: RuntimeClass "{name}" not found')
            found = stored.object
        if "overhead" in found:
            fixed = found["overhead"].get("podFixed") or {}
            if spec.get("overhead") and spec["overhead"] != fixed:
                raise _forbidden(pod, _OTHER_OVERHEAD)
            spec["overhead"] = fixed
        elif spec.get("overhead") is not None:
            raise _forbidden(pod, _OVERHEAD_ALONE)
        scheduling = found.get("scheduling") or {}
        for key, value in (scheduling.get("nodeSelector") or {}).items():
            own = spec.setdefault("nodeSelector", {}).setdefault(key, value)
            if own != value:
                where = f"runtimeClass.scheduling.nodeSelector[{key}] = {value}"
                raise _forbidden(pod, f"conflict: {where}; pod.spec.nodeSelector[{key}] = {own}")
        for toleration in scheduling.get("tolerations") or ():
            if toleration not in spec["tolerations"]:
                spec["tolerations"].append(toleration)


def _forbidden(pod: Object, why: str) -> StatusError:
    return errors.forbidden("", "pods", pod["metadata"].get("name", ""), why)


def _tolerate_failing_nodes(spec: Object) -> None:
    tolerations = spec.setdefault("tolerations", [])
    for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"):
        covered = any(
            t.get("key") in (key, None, "") and t.get("effect") in ("NoExecute", None, "")
            for t in tolerations
        )
        if not covered:
            tolerations.append(
                {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
            )


def _mount_token(spec: Object) -> None:
    """Give every container the API token, as a projected volume that a node would fill."""
    volume = next(
        (v["name"] for v in spec.get("volumes") or () if v["name"].startswith("kube-api-access-")), ""
    )
    name = volume or f"kube-api-access-{''.join(CHANCE.choices('bcdfghjklmnpqrstvwxz2456789', k=5))}"
    used = False
    for container in [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]:
        mounts = container.get("volumeMounts") or []
        if not any(mount.get("mountPath") == _TOKEN_MOUNT for mount in mounts):
            mounts.append({"name": name, "readOnly": True, "mountPath": _TOKEN_MOUNT})
            container["volumeMounts"] = mounts
            used = True
    if used and not volume:
        sources = [
            {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
            {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
            {
                "downwardAPI": {
                    "items": [
                        {
                            "path": "namespace",
                            "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"},
                        }
                    ]
                }
            },
        ]
        projected = {"sources": sources, "defaultMode": 420}
        spec["volumes"] = [*(spec.get("volumes") or ()), {"name": name, "projected": projected}]
