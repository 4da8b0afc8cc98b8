"""What names a Kubernetes object: its group, version and kind, and its namespace and name.

Objects themselves stay plain dicts, so that fields nobody here knows survive a round trip; these two values
are what the rest of the code passes around instead of half an object. Both are hashable and sort as text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Object = dict[str, Any]


@dataclass(frozen=True, slots=True, order=True)
class GVK:
    """A kind in one version of one API group; the core group is the empty string."""

    group: str
    version: str
    kind: str

    @classmethod
    def parse(cls, api_version: str, kind: str) -> GVK:
        """The kind that an object with this apiVersion and kind has; ValueError if either is malformed."""
        group, slash, version = api_version.rpartition("/")
        if not version or not kind or "/" in group or (slash and not group):
            raise ValueError(f"not an apiVersion and kind: {api_version!r}, {kind!r}")
        return cls(group, version, kind)

    @classmethod
    def of(cls, obj: Mapping[str, Any]) -> GVK:
        """The kind of an object; ValueError if it does not say."""
        api_version, kind = obj.get("apiVersion"), obj.get("kind")
        if not isinstance(api_version, str) or not isinstance(kind, str):
            raise ValueError("the object has no apiVersion and kind")
        return cls.parse(api_version, kind)

    @property
    def api_version(self) -> str:
        """The apiVersion field of such an object: `apps/v1`, or `v1` in the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def __str__(self) -> str:
        return f"{self.api_version} {self.kind}"


@dataclass(frozen=True, slots=True, order=True)
class Key:
    """What names one object among those of its kind; the namespace is empty for cluster-scoped kinds."""

    namespace: str
    name: str

    @classmethod
    def of(cls, obj: Mapping[str, Any]) -> Key:
        """The key of an object; ValueError if it has no name."""
        metadata = obj.get("metadata") or {}
        name = metadata.get("name")
        if not name:
            raise ValueError("the object has no metadata.name")
        return cls(metadata.get("namespace") or "", name)

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name
