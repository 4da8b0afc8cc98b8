"""A bundle turned into the objects that install it, as operator-controller does it.

`convert` is all that most callers need: a bundle, where to install it and what to watch go in, objects come
out in the original's order. `check` says what stands in the way without converting. Both are pure; OLM v1
applies the objects, and OLM v0 uses the same parts. Read `contents` first: it is what the others work on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from podium.api.findings import Finding, Place, Severity
from podium.api.kinds import Object
from podium.bundle.convert.certificates import Certificates, CertManager, Issued, Provided, ServiceCA, Serving
from podium.bundle.convert.contents import Contents, decode_contents
from podium.bundle.convert.deployments import deployments
from podium.bundle.convert.installmodes import InstallMode, default_watch_namespaces, unsupported
from podium.bundle.convert.names import UniqueName, unique_name
from podium.bundle.convert.objects import SUPPORTED_KINDS, placed
from podium.bundle.convert.options import Options
from podium.bundle.convert.overrides import decode_config
from podium.bundle.convert.rbac import cluster_roles, roles, service_accounts
from podium.bundle.convert.validators import validate
from podium.bundle.convert.webhooks import (
    certificate_objects,
    custom_resource_definitions,
    mutating_configurations,
    services,
    validating_configurations,
)
from podium.bundle.model import Bundle

__all__ = [
    "SUPPORTED_KINDS",
    "CertManager",
    "Certificates",
    "ConversionError",
    "InstallMode",
    "Issued",
    "Provided",
    "ServiceCA",
    "Serving",
    "UniqueName",
    "check",
    "convert",
    "servings",
    "supported_install_modes",
    "unique_name",
]


class ConversionError(ValueError):
    """The bundle cannot be installed this way; `findings` says everything that stands in the way."""

    def __init__(self, findings: Sequence[Finding]) -> None:
        super().__init__("\n".join(map(str, findings)))
        self.findings = tuple(findings)


def convert(
    bundle: Bundle,
    install_namespace: str,
    *,
    watch_namespaces: Sequence[str] | None = None,
    certificates: Certificates | None = None,
    deployment_config: Object | None = None,
    unique_name: UniqueName = unique_name,
) -> list[Object]:
    """The objects that install the bundle; they may share parts with it. ConversionError lists what is wrong.

    Without watch namespaces the operator watches everything, if it can.
    """
    contents, findings = decode_contents(bundle)
    config, problems = decode_config(deployment_config)
    watched = _watched(contents, watch_namespaces)
    options = Options(install_namespace, watched, certificates, config, unique_name)
    findings += _breaches(contents, options, problems)
    if findings:
        raise ConversionError(findings)
    return [obj for generate in _GENERATORS for obj in generate(contents, options)]


def check(
    bundle: Bundle,
    install_namespace: str,
    *,
    watch_namespaces: Sequence[str] | None = None,
    deployment_config: Object | None = None,
) -> list[Finding]:
    """Everything that would keep `convert` from converting."""
    contents, findings = decode_contents(bundle)
    _, problems = decode_config(deployment_config)
    options = Options(install_namespace, _watched(contents, watch_namespaces))
    return findings + _breaches(contents, options, problems)


def supported_install_modes(bundle: Bundle) -> frozenset[str]:
    """The install modes that the bundle declares as supported."""
    return decode_contents(bundle)[0].supported_modes


def servings(bundle: Bundle, install_namespace: str) -> list[Serving]:
    """The Services that need a certificate: what to issue before `Provided` can provide it."""
    deployments = decode_contents(bundle)[0].webhook_deployments
    return [Serving.of(deployment, install_namespace) for deployment in deployments]


def _additional_objects(contents: Contents, options: Options) -> list[Object]:
    return [placed(obj, options.namespace) for obj in contents.others]


_GENERATORS: tuple[Callable[[Contents, Options], list[Object]], ...] = (
    service_accounts,
    roles,
    cluster_roles,
    custom_resource_definitions,
    _additional_objects,
    deployments,
    validating_configurations,
    mutating_configurations,
    services,
    certificate_objects,
)


def _watched(contents: Contents, asked: Sequence[str] | None) -> tuple[str, ...]:
    # Each namespace once: the original would make the same Role twice.
    return tuple(dict.fromkeys(asked or default_watch_namespaces(contents.supported_modes)))


def _breaches(contents: Contents, options: Options, config_problems: list[str]) -> list[Finding]:
    findings = validate(contents)
    if reason := unsupported(contents.supported_modes, options.namespace, options.watched):
        message = f"invalid target namespaces [{' '.join(options.watched)}]: {reason}"
        findings.append(
            Finding(Severity.ERROR, "watch-namespaces", message, contents.name, Place(contents.file))
        )
    findings += [Finding(Severity.ERROR, "deployment-config", problem) for problem in config_problems]
    return findings
