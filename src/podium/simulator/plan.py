"""What a decision asks for: a list of writes, in order, and when to look again.

Decisions are pure, so a plan is only data. An object in an Update or UpdateStatus carries the resourceVersion
it was read with: if somebody else was faster, the write is refused and the decision is made again from what
is.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from podium.api.kinds import Object


@dataclass(frozen=True, slots=True)
class Create:
    """Make an object, and tell of it: `{}` in the note's message is the name that the server gave it."""

    object: Object
    note: Note | None = None


@dataclass(frozen=True, slots=True)
class Update:
    """Replace an object, its status excepted."""

    object: Object


@dataclass(frozen=True, slots=True)
class UpdateStatus:
    """Replace an object's status."""

    object: Object


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete this very object; the grace is the object's own unless given."""

    object: Object
    grace_seconds: int | None = None
    propagation: str = "Background"


@dataclass(frozen=True, slots=True)
class Bind:
    """Assign a Pod to a node."""

    pod: Object
    node: str


@dataclass(frozen=True, slots=True)
class Note:
    """An Event: something worth knowing happened to an object."""

    regarding: Object
    reason: str
    message: str
    component: str
    warning: bool = False
    field_path: str = ""


Write = Create | Update | UpdateStatus | Delete | Bind | Note


@dataclass(slots=True)
class Plan:
    """Writes to make now, and the seconds after which to decide again whatever happens."""

    writes: list[Write] = field(default_factory=list)
    again: float | None = None

    def __bool__(self) -> bool:
        return bool(self.writes)

    def add(self, *writes: Write) -> Plan:
        """Append writes; answers the plan itself."""
        self.writes.extend(writes)
        return self

    def look_again(self, seconds: float | None) -> Plan:
        """Decide again after so many seconds, or sooner if that was planned already."""
        if seconds is not None:
            self.again = seconds if self.again is None else min(self.again, seconds)
        return self

    def join(self, other: Plan) -> Plan:
        """Take in another plan; answers the plan itself."""
        self.writes.extend(other.writes)
        return self.look_again(other.again)


def set_status(obj: Object, new: Object) -> list[Write]:
    """The write that gives an object this status: none if it has it."""
    return [] if (obj.get("status") or {}) == new else [UpdateStatus({**obj, "status": new})]
