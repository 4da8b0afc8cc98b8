"""What a user changes about an operator's deployments: OLM v1's deploymentConfig, v0's SubscriptionConfig.

Each field has its own way of meeting what the author wrote: variables, volumes and mounts replace those of
the same name; tolerations and sources of variables are added once; resources and node selector replace;
affinities replace one by one, and an empty one erases; annotations never replace. `selector` was never
used, and is not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from podium.api.kinds import Object
from podium.bundle.convert.decoding import decode
from podium.bundle.typed import STRING_MAP, Builtin, ListOf, Struct

_CONFIG = Struct(
    {
        "selector": Builtin("meta/v1.LabelSelector"),
        "nodeSelector": STRING_MAP,
        "tolerations": ListOf(Builtin("core/v1.Toleration")),
        "resources": Builtin("core/v1.ResourceRequirements"),
        "envFrom": ListOf(Builtin("core/v1.EnvFromSource")),
        "env": ListOf(Builtin("core/v1.EnvVar")),
        "volumes": ListOf(Builtin("core/v1.Volume")),
        "volumeMounts": ListOf(Builtin("core/v1.VolumeMount")),
        "affinity": Builtin("core/v1.Affinity"),
        "annotations": STRING_MAP,
    }
)
_AFFINITIES = ("nodeAffinity", "podAffinity", "podAntiAffinity")


def decode_config(config: Any) -> tuple[Object, list[str]]:
    """The overrides with their types, and what is wrong with them."""
    problems: list[str] = []
    decoded = decode(_CONFIG, config, "deploymentConfig", problems)
    return decoded or {}, problems


def overridden(deployment: Object, config: Object) -> Object:
    """The deployment with decoded overrides applied."""
    if not config:
        return deployment
    spec = deployment["spec"]
    template = spec["template"]
    pod = _pod(template["spec"], config)
    if pod["containers"]:
        pod["containers"] = [_container(container, config) for container in pod["containers"]]
    template = template | {"spec": pod, "metadata": _annotated(template["metadata"], config)}
    metadata = _annotated(deployment["metadata"], config)
    return deployment | {"metadata": metadata, "spec": spec | {"template": template}}


def _pod(pod: Object, config: Object) -> Object:
    changes: Object = {
        "volumes": _replaced(pod.get("volumes"), config.get("volumes")) or None,
        "tolerations": _added(pod.get("tolerations"), config.get("tolerations")) or None,
        "affinity": _affinity(pod.get("affinity"), config.get("affinity")),
        "nodeSelector": config.get("nodeSelector", pod.get("nodeSelector")) or None,
    }
    return _changed(pod, changes)


def _container(container: Object, config: Object) -> Object:
    changes: Object = {
        "env": _replaced(container.get("env"), config.get("env")) or None,
        "envFrom": _added(container.get("envFrom"), config.get("envFrom")) or None,
        "volumeMounts": _replaced(container.get("volumeMounts"), config.get("volumeMounts")) or None,
        "resources": config.get("resources", container["resources"]),
    }
    return _changed(container, changes)


def _changed(value: Object, changes: Object) -> Object:
    """The value with its fields changed; those that became nothing are gone."""
    return {key: each for key, each in (value | changes).items() if each is not None or key not in changes}


def _replaced(present: Sequence[Object] | None, given: Sequence[Object] | None) -> list[Object]:
    """Those given take the places of those with the same name, or come last."""
    result = [*(present or ())]
    places = {each["name"]: place for place, each in enumerate(result)}
    for each in given or ():
        if each["name"] in places:
            result[places[each["name"]]] = each
        else:
            result.append(each)
    return result


def _added(present: Sequence[Object] | None, given: Sequence[Object] | None) -> list[Object]:
    result = [*(present or ())]
    for each in given or ():
        if each not in result:
            result.append(each)
    return result


def _affinity(present: Object | None, given: Object | None) -> Object | None:
    if given is None:
        return present
    if not any(name in given for name in _AFFINITIES):
        return None
    result = {**(present or {})}
    for name in _AFFINITIES:
        if name in given:
            result[name] = given[name]
            if _is_empty(given[name]):
                del result[name]
    return None if all(_is_empty(each) for each in result.values()) else result


def _is_empty(affinity: Object) -> bool:
    """Whether an affinity asks for nothing; a node selector without terms is nothing, too."""
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if isinstance(required, dict):
        required = required["nodeSelectorTerms"]
    return not required and not affinity.get("preferredDuringSchedulingIgnoredDuringExecution")


def _annotated(metadata: Object, config: Object) -> Object:
    given: Mapping[str, str] = config.get("annotations") or {}
    if not given:
        return metadata
    return metadata | {"annotations": {**given} | (metadata.get("annotations") or {})}
