"""Image references, as far as defaults need them: whether a reference means the tag `latest`."""

from __future__ import annotations

import re

PULL_POLICIES = ("Always", "IfNotPresent", "Never")

_COMPONENT = "[a-z0-9]+(?:(?:[._]|__|[-]+)[a-z0-9]+)*"
_DOMAIN = (
    r"(?:(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])(?:\.(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9]))*"
    r"|\[(?:[a-fA-F0-9:]+)\])(?::[0-9]+)?"
)
_REFERENCE = re.compile(
    rf"(?:(?P<domain>{_DOMAIN})/)?(?P<path>{_COMPONENT}(?:/{_COMPONENT})*)"
    r"(?::(?P<tag>[\w][\w.-]{0,127}))?"
    r"(?P<digest>@[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,})?"
)


def pull_policy(image: str) -> str:
    """`Always` for an image whose tag is, or defaults to, `latest`; never for one that cannot be read."""
    matched = _REFERENCE.fullmatch(image)
    if matched is None or re.fullmatch("[a-f0-9]{64}", image):
        return "IfNotPresent"
    tag = matched["tag"]
    return "Always" if tag == "latest" or (tag is None and matched["digest"] is None) else "IfNotPresent"
