"""The order in which a built-in kind's rules run, so that each kind only states its own.

Metadata is checked first, then `validate` (the object by itself, with the old one at hand), then
`validate_change` (what the update did). A kind with a status subresource names its `empty_status`: creators
and plain updates cannot touch status, status updates cannot touch the rest of `guarded_by_status`.
"""

from __future__ import annotations

from typing import Any, ClassVar

from podium.api import names
from podium.api.kinds import Object
from podium.apiserver.kinds import metadata
from podium.apiserver.kinds.checks import restore
from podium.apiserver.strategy import Strategy
from podium.schema.fielderrors import FieldError


class KindStrategy(Strategy):
    """A built-in kind: metadata rules, status handling, and two hooks for its own checks."""

    namespaced: ClassVar[bool] = True
    # Most kinds ask that finalizers have a domain; a few use the plain rules of all objects.
    standard_finalizers: ClassVar[bool] = True
    # What status is right after creation. None: the kind has no status subresource.
    empty_status: ClassVar[Object | None] = None
    # Top-level fields that an update of the status subresource cannot change.
    guarded_by_status: ClassVar[tuple[str, ...]] = ("spec",)

    def name_problems(self, name: str, prefix: bool) -> Any:
        """What is wrong with a name of this kind (or with the beginning of one)."""
        return names.dns_subdomain(name, prefix)

    def validate(self, obj: Object, old: Object | None) -> list[FieldError]:
        """What is wrong with the object by itself; `old` is what it replaces, if anything."""
        return []

    def validate_change(self, new: Object, old: Object) -> list[FieldError]:
        """What the update changed that it may not change."""
        return []

    def validate_status_change(self, new: Object, old: Object) -> list[FieldError]:
        """What is wrong with the new status."""
        return []

    def prepare_create(self, obj: Object) -> None:
        if self.empty_status is not None:
            obj["status"] = dict(self.empty_status)

    def prepare_update(self, new: Object, old: Object) -> None:
        if self.empty_status is not None:
            restore(new, old, "status")

    def prepare_status(self, new: Object, old: Object) -> None:
        for field in self.guarded_by_status:
            restore(new, old, field)

    def validate_create(self, obj: Object) -> list[FieldError]:
        found = self._metadata(obj) + self.validate(obj, None)
        # Kinds with loose names of their own still have to fit into a URL, but hear of that last.
        return found or metadata.validate(obj, self.namespaced, names.path_segment, standard_finalizers=False)

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        found = self._changed_metadata(new, old)
        return found + self.validate(new, old) + self.validate_change(new, old)

    def validate_status(self, new: Object, old: Object) -> list[FieldError]:
        return self._changed_metadata(new, old) + self.validate_status_change(new, old)

    def _metadata(self, obj: Object) -> list[FieldError]:
        return metadata.validate(
            obj, self.namespaced, self.name_problems, standard_finalizers=self.standard_finalizers
        )

    def _changed_metadata(self, new: Object, old: Object) -> list[FieldError]:
        # A name cannot change, so an old object keeps a name that newer rules would refuse.
        found = metadata.validate(
            new, self.namespaced, names.path_segment, standard_finalizers=self.standard_finalizers
        )
        return found + metadata.validate_update(new, old)


class PlainStrategy(Strategy):
    """A kind without rules of its own: its metadata is checked, its status is protected, the rest is kept."""

    def __init__(self, namespaced: bool | None, has_status: bool) -> None:
        self._namespaced = namespaced
        self._has_status = has_status

    def validate_create(self, obj: Object) -> list[FieldError]:
        return metadata.validate(obj, self._namespaced, names.path_segment, standard_finalizers=False)

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return self.validate_create(new) + metadata.validate_update(new, old)

    def validate_status(self, new: Object, old: Object) -> list[FieldError]:
        return self.validate_update(new, old)

    def prepare_create(self, obj: Object) -> None:
        if self._has_status:
            obj["status"] = {}

    def prepare_update(self, new: Object, old: Object) -> None:
        if self._has_status:
            restore(new, old, "status")

    def prepare_status(self, new: Object, old: Object) -> None:
        restore(new, old, "spec")
