"""JSON patch (RFC 6902) and JSON merge patch (RFC 7386), with the manners of kube-apiserver.

kube-apiserver applies both with evanphx/json-patch v4, whose error texts reach users and whose liberties
clients rely on: negative indices count from the end, `replace` creates a missing key, `test` with null
passes on a missing key. Inputs are never changed. Results share every part that no operation touched
with the inputs, so callers must treat both as immutable or copy before they edit.
"""

from __future__ import annotations

from typing import Any

import msgspec

from podium.api.kinds import Object
from podium.schema import govalues
from podium.text.quoting import quote

MAX_OPERATIONS = 10_000
# What kube-apiserver derives from its request size limit for the sum of all `copy` operations.
MAX_COPIED_BYTES = 3 * 1024 * 1024


class PatchError(ValueError):
    """The patch is well-formed but does not apply to this object (422).

    kube-apiserver keeps the reason to itself and answers with the generic text of that status.
    """


class MalformedPatchError(ValueError):
    """The patch itself is not a patch (400)."""


class TooManyOperationsError(ValueError):
    """The patch holds more operations than the server accepts (413)."""

    def __init__(self, count: int) -> None:
        super().__init__(f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {count}")


def json_patch(obj: Any, operations: Any, *, max_copied_bytes: int = MAX_COPIED_BYTES) -> Any:
    """The object after all operations of an RFC 6902 patch; raises if any of them does not apply."""
    if not isinstance(operations, list):
        raise _undecodable(operations, "[]handlers.jsonPatchOp")
    for operation in operations:
        if not isinstance(operation, dict):
            raise _undecodable(operation, "handlers.jsonPatchOp")
    if len(operations) > MAX_OPERATIONS:
        raise TooManyOperationsError(len(operations))
    return _JSONPatch(obj, max_copied_bytes).run(operations)


def merge_patch(obj: Any, patch: Any) -> Any:
    """The object after an RFC 7386 patch: objects merge, null deletes, everything else replaces."""
    if patch is None:
        raise MalformedPatchError("Invalid JSON Patch")
    if not isinstance(patch, dict):
        raise _undecodable(patch, "map[string]interface {}")
    return _merge(obj, patch) if isinstance(obj, dict) else without_nulls(patch)


def create_merge_patch(old: Object, new: Object) -> Object:
    """The smallest merge patch that turns `old` into `new`."""
    patch: Object = {}
    for key, value in new.items():
        if key not in old:
            patch[key] = value
            continue
        before = old[key]
        if isinstance(before, dict) and isinstance(value, dict):
            if inner := create_merge_patch(before, value):
                patch[key] = inner
        elif not _same_number(before, value) and not govalues.same(before, value):
            patch[key] = value
    patch.update((key, None) for key in old if key not in new)
    return patch


def _undecodable(value: Any, wanted: str) -> MalformedPatchError:
    kinds = {dict: "object", list: "array", bool: "bool", int: "number", float: "number"}
    kind = kinds.get(type(value), "string")
    return MalformedPatchError(
        f"error decoding patch: json: cannot unmarshal {kind} into Go value of type {wanted}"
    )


def _merge(obj: Object, patch: Object) -> Object:
    out = dict(obj)
    for key, value in patch.items():
        if value is None:
            out.pop(key, None)
            continue
        before = out.get(key)
        if isinstance(before, dict) and isinstance(value, dict):
            out[key] = _merge(before, value)
        elif isinstance(before, dict):
            # Upstream prunes nulls only where the value lands in a place without an object.
            out[key] = value
        else:
            out[key] = without_nulls(value)
    return out


def without_nulls(value: Any) -> Any:
    """Null fields deleted from objects at any depth; nulls that are list elements stay."""
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [without_nulls(item) for item in value]
    return value


def _same_number(left: Any, right: Any) -> bool:
    numbers = (int, float)
    if isinstance(left, bool) or isinstance(right, bool):
        return False
    return isinstance(left, numbers) and isinstance(right, numbers) and left == right


class _NotFoundError(Exception):
    """A container on the way to a path is missing or is no container."""


class _JSONPatch:
    """One run of a patch. Containers are copied the first time an operation writes to them."""

    def __init__(self, root: Any, max_copied_bytes: int) -> None:
        self.root = root
        self.max_copied_bytes = max_copied_bytes
        self.copied_bytes = 0
        # Containers made by this run may be changed in place; they are held so that their ids stay unique.
        self.own: dict[int, Any] = {}

    def run(self, operations: list[Object]) -> Any:
        kinds = {
            "add": self.add,
            "remove": self.remove,
            "replace": self.replace,
            "move": self.move,
            "test": self.test,
            "copy": self.copy,
        }
        for operation in operations:
            kind = operation.get("op")
            kind = kind if isinstance(kind, str) else "unknown"
            if kind not in kinds:
                raise PatchError(f"Unexpected kind: {kind}")
            kinds[kind](operation)
        return self.root

    def add(self, operation: Object) -> None:
        path = _pointer(operation, "path")
        if path is None:
            raise PatchError("add operation failed to decode path: missing value")
        parent, key = self._find(
            path, f'add operation does not apply: doc is missing path: "{path}": missing value'
        )
        _add(parent, key, operation.get("value"), f"error in add for path: '{path}'")

    def remove(self, operation: Object) -> None:
        path = _pointer(operation, "path")
        if path is None:
            raise PatchError("remove operation failed to decode path: missing value")
        parent, key = self._find(
            path, f'remove operation does not apply: doc is missing path: "{path}": missing value'
        )
        _remove(parent, key, f"error in remove for path: '{path}'")

    def replace(self, operation: Object) -> None:
        path = self._path(operation, "replace")
        if path == "":
            self._replace_root(operation.get("value"))
            return
        parent, key = self._find(
            path, f"replace operation does not apply: doc is missing path: {path}: missing value"
        )
        if isinstance(parent, list):
            missing = f"replace operation does not apply: doc is missing key: {path}: missing value"
            parent[_existing_index(parent, key, None, missing)] = operation.get("value")
        else:
            parent[key] = operation.get("value")

    def move(self, operation: Object) -> None:
        source = self._from(operation, "move")
        parent, key = self._find(
            source, f"move operation does not apply: doc is missing from path: {source}: missing value"
        )
        error = f"error in move for path: '{key}'"
        value = _get(parent, key, error)
        _remove(parent, key, error)
        path = self._path(operation, "move")
        parent, key = self._find(
            path, f"move operation does not apply: doc is missing destination path: {path}: missing value"
        )
        _add(parent, key, value, f"error in move for path: '{path}'")

    def test(self, operation: Object) -> None:
        path = self._path(operation, "test")
        failed = f"testing value {path} failed: test failed"
        expected = operation.get("value")
        if path == "":
            actual = self.root
        else:
            missing = f"test operation does not apply: is missing path: {path}: missing value"
            parent, key = self._look(path, missing)
            actual = _get(parent, key, f"error in test for path: '{path}'")
        if not govalues.same(actual, expected):
            raise PatchError(failed)

    def copy(self, operation: Object) -> None:
        source = self._from(operation, "copy")
        parent, key = self._look(
            source, f"copy operation does not apply: doc is missing from path: {source}: missing value"
        )
        value = _get(parent, key, f"error in copy for from: '{source}'")
        path = _pointer(operation, "path")
        if path is None:
            raise PatchError("copy operation failed to decode path: missing value")
        missing = f"copy operation does not apply: doc is missing destination path: {path}: missing value"
        self._look(path, missing)
        self._count_copied(value)
        # The copy shares structure with its source: both become foreign, so a later write copies first.
        self.own.clear()
        parent, key = self._find(path, missing)
        _add(parent, key, value, "error while adding value during copy")

    def _count_copied(self, value: Any) -> None:
        if value is not None:
            self.copied_bytes += len(msgspec.json.encode(value))
        if 0 < self.max_copied_bytes < self.copied_bytes:
            raise PatchError(
                "Unable to complete the copy, the accumulated size increase of copy is "
                f"{self.copied_bytes}, exceeding the limit {self.max_copied_bytes}"
            )

    def _replace_root(self, value: Any) -> None:
        if not isinstance(value, dict | list):
            raise PatchError("replace operation value must be object or array: %!w(<nil>)")
        self.root = value

    def _path(self, operation: Object, kind: str) -> str:
        path = _pointer(operation, "path")
        if path is None:
            raise PatchError(
                f"{kind} operation failed to decode path: operation missing path field: missing value"
            )
        return path

    def _from(self, operation: Object, kind: str) -> str:
        path = _pointer(operation, "from")
        if path is None:
            raise PatchError(
                f"{kind} operation failed to decode from: operation, missing from field: missing value"
            )
        return path

    def _look(self, path: str, missing: str) -> tuple[Any, str]:
        """The container that holds the path's last part, for reading."""
        try:
            parts = _parts(path)
            here = self.root
            for part in parts[:-1]:
                here = _child(here, part)
        except _NotFoundError:
            raise PatchError(missing) from None
        return here, parts[-1]

    def _find(self, path: str, missing: str) -> tuple[Any, str]:
        """The container that holds the path's last part, made writable together with all above it."""
        try:
            parts = _parts(path)
            here = self.root = self._writable(self.root)
            for part in parts[:-1]:
                child = self._writable(_child(here, part))
                if isinstance(here, list):
                    here[_index(here, part, "")] = child
                else:
                    here[part] = child
                here = child
        except _NotFoundError:
            raise PatchError(missing) from None
        return here, parts[-1]

    def _writable(self, container: Any) -> Any:
        if id(container) in self.own:
            return container
        copied = container.copy()
        self.own[id(copied)] = copied
        return copied


def _pointer(operation: Object, field: str) -> str | None:
    value = operation.get(field)
    return value if isinstance(value, str) else None


def _parts(path: str) -> list[str]:
    parts = path.split("/")
    if len(parts) < 2:
        raise _NotFoundError
    return [part.replace("~1", "/").replace("~0", "~") for part in parts[1:]]


def _child(container: Any, part: str) -> Any:
    if isinstance(container, dict):
        child = container.get(part)
    else:
        try:
            child = _get(container, part, "")
        except PatchError:
            raise _NotFoundError from None
    if not isinstance(child, dict | list):
        raise _NotFoundError
    return child


def _get(container: Any, key: str, error: str) -> Any:
    if isinstance(container, dict):
        return container.get(key)
    return container[_existing_index(container, key, error)]


def _add(container: Any, key: str, value: Any, error: str) -> None:
    if isinstance(container, dict):
        container[key] = value
    elif key == "-":
        container.append(value)
    else:
        if not _is_integer(key):
            raise PatchError(f"{error}: value was not a proper array index: '{key}': {_not_a_number(key)}")
        container.insert(_index_up_to(container, int(key), len(container) + 1, error), value)


def _remove(container: Any, key: str, error: str) -> None:
    if isinstance(container, list):
        del container[_existing_index(container, key, error)]
    elif key in container:
        del container[key]
    else:
        raise PatchError(f"{error}: Unable to remove nonexistent key: {key}: missing value")


def _existing_index(container: list[Any], key: str, error: str | None, instead: str = "") -> int:
    """The index that a path part names; `instead` replaces the detailed message where upstream hides it."""
    try:
        return _index(container, key, error or "")
    except PatchError:
        if instead:
            raise PatchError(instead) from None
        raise


def _index(container: list[Any], key: str, error: str) -> int:
    if not _is_integer(key):
        raise PatchError(f"{error}: {_not_a_number(key)}")
    return _index_up_to(container, int(key), len(container), error)


def _index_up_to(container: list[Any], index: int, size: int, error: str) -> int:
    if not -size <= index < size:
        raise PatchError(f"{error}: Unable to access invalid index: {index}: invalid index referenced")
    return index if index >= 0 else index + size


def _is_integer(text: str) -> bool:
    digits = text[1:] if text[:1] in ("-", "+") else text
    return digits.isascii() and digits.isdigit()


def _not_a_number(text: str) -> str:
    return f"strconv.Atoi: parsing {quote(text)}: invalid syntax"
