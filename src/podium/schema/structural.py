"""Custom resources and their schemas: the one module to import for them.

`parse` turns an `openAPIV3Schema` into a `Structural` tree, made once per CRD version. Per object, the order
is `prune`, `default`, `validate` (and then `cel.validate`, which includes it). `shape_for` is the same tree
as server-side apply sees it. `check` says whether a schema is structural in the first place.
"""

from __future__ import annotations

from typing import Any

from podium.schema.crdschema import ABSENT, Rule, Structural, parse
from podium.schema.pruning import copy_json, default, prune
from podium.schema.schemavalidation import validate
from podium.schema.shape import SCALAR, UNTYPED, Merge, Shape
from podium.schema.structuralrules import check

__all__ = ["Rule", "Structural", "check", "copy_json", "default", "parse", "prune", "shape_for", "validate"]


def shape_for(schema: Structural, metadata: Shape = UNTYPED) -> Shape:
    """How server-side apply merges objects of a schema; `metadata` is the shape of ObjectMeta."""
    return _Shapes(metadata).resource(schema)


class _Shapes:
    """The shapes of one schema's nodes, made when they are first reached."""

    def __init__(self, metadata: Shape) -> None:
        self._metadata = metadata
        self._known: dict[Structural, Shape] = {}

    def resource(self, schema: Structural, merge: Merge = Merge.OBJECT) -> Shape:
        def field(name: str) -> Shape | None:
            if name == "metadata":
                return self._metadata
            return SCALAR if name in ("apiVersion", "kind") else self._field(schema, name)

        return Shape(merge, field=field)

    def _field(self, schema: Structural, name: str) -> Shape | None:
        sub = schema.properties.get(name, schema.additional)
        if sub is not None:
            return self._of(sub)
        return UNTYPED if schema.preserve_unknown or schema.additional_allowed else None

    def _of(self, schema: Structural) -> Shape:
        shape = self._known.get(schema)
        if shape is None:
            shape = self._known[schema] = self._make(schema)
        return shape

    def _make(self, schema: Structural) -> Shape:
        if schema.int_or_string:
            return SCALAR
        if schema.type == "array":
            return self._list(schema)
        if schema.type != "object":
            return SCALAR if schema.type else UNTYPED
        merge = Merge.ATOMIC if schema.map_type == "atomic" else Merge.OBJECT
        if schema.embedded:
            return self.resource(schema, merge)
        if merge is Merge.OBJECT and schema.keeps_all:
            return UNTYPED
        return Shape(merge, field=lambda name: self._field(schema, name))

    def _list(self, schema: Structural) -> Shape:
        items = schema.items

        def item_shape() -> Shape:
            return UNTYPED if items is None else self._of(items)

        if schema.list_type == "set":
            return Shape(Merge.SET, items=item_shape)
        if schema.list_type == "map" and items is not None:
            defaults: dict[str, Any] = {
                key: items.properties[key].default
                for key in schema.map_keys
                if key in items.properties and items.properties[key].default is not ABSENT
            }
            return Shape(Merge.KEYED, items=item_shape, keys=schema.map_keys, key_defaults=defaults)
        return Shape(Merge.ATOMIC, items=item_shape)
