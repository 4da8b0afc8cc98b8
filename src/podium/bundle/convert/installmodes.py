"""Which namespaces an operator may watch: what its install modes allow, and what is meant when nobody says.

All namespaces are the one watch namespace that is empty. OwnNamespace allows the namespace that the
operator is installed in, SingleNamespace any one other, MultiNamespace several.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from enum import StrEnum

ALL_NAMESPACES = ""


class InstallMode(StrEnum):
    """The ways of watching that a ClusterServiceVersion can declare."""

    ALL = "AllNamespaces"
    MULTI = "MultiNamespace"
    OWN = "OwnNamespace"
    SINGLE = "SingleNamespace"


def default_watch_namespaces(supported: Collection[str]) -> tuple[str, ...]:
    """What to watch if nobody says: everything, where the operator can; otherwise somebody has to say."""
    return (ALL_NAMESPACES,) if InstallMode.ALL in supported else ()


def unsupported(supported: Collection[str], install_namespace: str, watched: Sequence[str]) -> str:
    """Why an operator with these install modes cannot watch these namespaces; empty if it can."""
    modes = f"[{' '.join(sorted(supported))}]"
    refusal = f"supported install modes {modes} do not support "
    match list(dict.fromkeys(watched)):
        case []:
            count = "at least" if InstallMode.MULTI in supported else "exactly"
            return f"{count} one target namespace must be specified"
        case [only] if only == ALL_NAMESPACES:
            return "" if InstallMode.ALL in supported else f"{refusal}targeting all namespaces"
        case [only] if only == install_namespace:
            return "" if InstallMode.OWN in supported else f"{refusal}targeting own namespace"
        case [_]:
            allowed = InstallMode.SINGLE in supported
        case several:
            if install_namespace in several and InstallMode.OWN not in supported:
                return f"{refusal}targeting own namespace"
            allowed = InstallMode.MULTI in supported and ALL_NAMESPACES not in several
    return "" if allowed else f"{refusal}target namespaces [{' '.join(watched)}]"
