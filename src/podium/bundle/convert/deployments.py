"""Deployments from a ClusterServiceVersion's install strategy.

Pods learn from annotations what the operator is to watch. A deployment that serves webhooks gets the
certificate's Secret mounted where OLM has always mounted it, in place of whatever the author had put there.
"""

from __future__ import annotations

from typing import Any

from podium.api.kinds import Object
from podium.bundle.convert.contents import Contents, Deployment
from podium.bundle.convert.objects import new_object
from podium.bundle.convert.options import Options
from podium.bundle.convert.overrides import overridden

# Volume, where it is mounted, and what the certificate and its key are called there.
_CERTIFICATE_VOLUMES = (
    ("webhook-cert", "/tmp/k8s-webhook-server/serving-certs", "tls.crt", "tls.key"),
    ("apiservice-cert", "/apiserver.local.config/certificates", "apiserver.crt", "apiserver.key"),
)


def deployments(contents: Contents, options: Options) -> list[Object]:
    """The deployments, annotated, with certificates mounted and the user's overrides applied."""
    return [
        overridden(_deployment(contents, deployment, options), options.deployment_config)
        for deployment in contents.deployments
    ]


def _deployment(contents: Contents, deployment: Deployment, options: Options) -> Object:
    template = deployment.spec["template"]
    pod, metadata = template["spec"], template["metadata"]
    if options.certificates and deployment.name in contents.webhook_deployments:
        pod = _with_certificate(pod, options.serving(deployment.name).secret)
    annotations = contents.annotations | (metadata.get("annotations") or {})
    annotations["olm.targetNamespaces"] = ",".join(options.watched)
    annotations["olm.operatorNamespace"] = options.namespace
    template = template | {"metadata": metadata | {"annotations": annotations}, "spec": pod}
    spec = deployment.spec | {"template": template, "revisionHistoryLimit": 1}
    obj = new_object("apps/v1", "Deployment", deployment.name, options.namespace, spec=spec, status={})
    if deployment.labels:
        obj["metadata"]["labels"] = deployment.labels
    return obj


def _with_certificate(pod: Object, secret: str) -> Object:
    """The pod with the certificate mounted, without the volumes that would be in the way."""
    paths = {path for _, path, _, _ in _CERTIFICATE_VOLUMES}
    containers = pod["containers"] or []
    replaced = {name for name, _, _, _ in _CERTIFICATE_VOLUMES}
    replaced |= {
        mount["name"]
        for container in containers
        for mount in container.get("volumeMounts") or ()
        if mount["mountPath"] in paths
    }
    volumes = [_volume(name, secret, *files) for name, _, *files in _CERTIFICATE_VOLUMES]
    mounts = [{"name": name, "mountPath": path} for name, path, _, _ in _CERTIFICATE_VOLUMES]
    mounted = [
        container | {"volumeMounts": _without(container.get("volumeMounts"), replaced) + mounts}
        for container in containers
    ]
    changed = pod | {"volumes": _without(pod.get("volumes"), replaced) + volumes}
    return changed | {"containers": mounted} if mounted else changed


def _volume(name: str, secret: str, certificate: str, key: str) -> Object:
    items = [{"key": "tls.crt", "path": certificate}, {"key": "tls.key", "path": key}]
    return {"name": name, "secret": {"secretName": secret, "items": items}}


def _without(named: list[Any] | None, names: set[str]) -> list[Any]:
    return [each for each in named or () if each["name"] not in names]
