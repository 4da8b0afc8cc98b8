"""What is particular about one built-in kind: its defaults, its validation, and what each writer may change.

The request handlers run the same steps for every kind and call these hooks at fixed points. All hooks are
pure: they see the objects and nothing else. What needs the store (allocating a Service address, finding
the default StorageClass) is admission, not strategy.
"""

from __future__ import annotations

from collections.abc import Callable

from podium.api.fields import value_at
from podium.api.kinds import Object
from podium.schema.fielderrors import FieldError

Hook = Callable[[Object, Object], None]
Check = Callable[[Object, Object], list[FieldError]]


class Strategy:
    """The rules of an ordinary kind; a kind with more rules overrides what it needs."""

    # A PUT to a name that does not exist creates the object (Leases and Events do).
    create_on_update = False
    # An update without resourceVersion is taken as "whatever is there now".
    unconditional_update = True
    # A change below these fields raises metadata.generation. Empty: the kind has no generation.
    generation_fields: tuple[str, ...] = ()
    # Whether deletion takes its time; then even an object that goes at once is marked first.
    graceful: bool = False

    @property
    def has_generation(self) -> bool:
        """Whether objects of this kind count the versions of their desired state."""
        return bool(self.generation_fields)

    def raises_generation(self, new: Object, old: Object) -> bool:
        """Whether an update changed the desired state."""
        return any(
            value_at(new, path) != value_at(old, path)
            for path in (field.split(".") for field in self.generation_fields)
        )

    def default(self, obj: Object) -> None:
        """Fill in what the writer left out, in place; runs on every write before validation."""

    def prepare_create(self, obj: Object) -> None:
        """Reset what a creator may not set (status, for kinds that have the subresource), in place."""

    def validate_create(self, obj: Object) -> list[FieldError]:
        """What is wrong with a new object, metadata included."""
        return []

    def prepare_update(self, new: Object, old: Object) -> None:
        """Put back what a plain update may not change (status), in place."""

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        """What is wrong with the change, immutable fields included."""
        return []

    def prepare_status(self, new: Object, old: Object) -> None:
        """Put back what an update of the status subresource may not change (spec, labels, ...), in place."""

    def validate_status(self, new: Object, old: Object) -> list[FieldError]:
        """What is wrong with a change of status."""
        return []

    def hooks(self, subresource: str) -> tuple[Hook, Check]:
        """What prepares and what validates an update through a subresource (empty: the object itself)."""
        if subresource == "status":
            return self.prepare_status, self.validate_status
        return self.prepare_update, self.validate_update

    def warnings(self, obj: Object, old: Object | None) -> list[str]:
        """Advice for the writer, sent as Warning headers."""
        return []

    def grace_seconds(self, obj: Object, asked: int | None) -> int:
        """How long a deleted object stays, marked for deletion; 0 removes it at once."""
        return 0

    def holds(self, obj: Object) -> bool:
        """Whether something besides metadata.finalizers keeps an object that is being deleted."""
        return False

    def begin_deletion(self, obj: Object, now: str) -> bool:
        """Mark an object for deletion in the kind's own way, in place; False: the ordinary way is right."""
        return False

    def mark_deleted(self, obj: Object) -> None:
        """Show in the object that its deletion has begun, in place."""
