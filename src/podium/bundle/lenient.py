"""What `opm render` still insists on, lenient as it is: the few fields that it decodes itself.

It decodes metadata, CRDs and the parts of the ClusterServiceVersion that say what is owned, with no mercy for
wrong types; nothing becomes text here. The rest of the ClusterServiceVersion it never looks at.
"""

from __future__ import annotations

from typing import Any

from podium.bundle import kinds, typed
from podium.bundle.model import CRD_V1, CRD_V1BETA1, Bundle, name_of, text
from podium.bundle.typed import STRING, ListOf, Struct

_KEYS = Struct(dict.fromkeys(("group", "kind", "name", "version"), STRING))
_DEFINITIONS = Struct({"owned": ListOf(_KEYS), "required": ListOf(_KEYS)})


def objections(bundle: Bundle) -> list[str]:
    """Why opm could not read this bundle; nothing if it could."""
    csv = bundle.csv
    found = _misfits("metadata", csv.get("metadata"), kinds.METADATA)
    if not isinstance(csv.get("apiVersion"), str | None):
        found.append("apiVersion is not text")
    spec = csv.get("spec")
    if "spec" not in csv or not isinstance(spec, dict | None):
        return [*found, "the ClusterServiceVersion has no spec that is an object"]
    spec = spec or {}
    for key in ("customresourcedefinitions", "apiservicedefinitions"):
        found += _misfits(f"spec.{key}", spec.get(key), _DEFINITIONS)
    if not isinstance(spec.get("version"), str | None):
        found.append("spec.version is not text")
    if isinstance(spec.get("release"), bool) or not isinstance(spec.get("release"), str | int | float | None):
        found.append("release field must be a string or number")
    shapes: dict[str, typed.Shape] = {CRD_V1: kinds.CRD, CRD_V1BETA1: kinds.OLD_CRD}
    for crd in bundle.crds:
        version = text(crd.get("apiVersion"))
        if version in shapes:
            found += _misfits(f"CRD {name_of(crd)}", crd, shapes[version], fold=False)
        elif version.rpartition("/")[2] in ("v1", "v1beta1"):
            found.append(f"CRD {name_of(crd)}: no kind CustomResourceDefinition in {version}")
    return found


def owned(bundle: Bundle, section: str) -> list[dict[str, str]]:
    """Group, version, kind and name of what a section of the ClusterServiceVersion says is owned."""
    listed = typed.decode(bundle.spec.get(section), _DEFINITIONS, coerce=False).value
    found = (listed.get("owned") if isinstance(listed, dict) else None) or ()
    return [{key: (each or {}).get(key) or "" for key in _KEYS.fields} for each in found]


def _misfits(what: str, value: Any, shape: typed.Shape, fold: bool = True) -> list[str]:
    decoded = typed.decode(value, shape, coerce=False, fold=fold)
    return [f"{what}: {'.'.join(map(str, each.path))}: {each.message}" for each in decoded.problems]
