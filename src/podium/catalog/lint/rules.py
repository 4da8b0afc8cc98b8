"""The names of the lints: what opm accepts but an author, or the users of a catalog, would rather know."""

from __future__ import annotations

from enum import StrEnum

from podium.api.findings import Finding, Place, Severity


class Lint(StrEnum):
    """A lint; scripts may match on the value."""

    UNKNOWN_SCHEMA = "unknown-schema"
    UNKNOWN_FIELD = "unknown-field"
    UNKNOWN_PROPERTY = "unknown-property"
    ICON_EMPTY = "icon-empty"
    ICON_TYPE = "icon-type"
    PACKAGE_WITHOUT_DESCRIPTION = "package-without-description"
    IMAGE_NOT_CANONICAL = "image-not-canonical"
    IMAGE_BY_TAG = "image-by-tag"
    RELATED_IMAGE_EMPTY = "related-image-empty"
    MANIFEST_BROKEN = "manifest-broken"
    BUNDLE_WITHOUT_METADATA = "bundle-without-metadata"
    DEPRECATIONS_EMPTY = "deprecations-empty"

    NO_WAY_FORWARD = "no-way-forward"
    HEAD_UNREACHABLE = "head-unreachable"
    SKIP_RANGE_MAKES_NO_HEAD = "skip-range-makes-no-head"
    SKIP_RANGE_DOWNGRADES = "skip-range-downgrades"
    REPLACES_UNKNOWN = "replaces-unknown"
    REPLACES_OUTSIDE_CHANNEL = "replaces-outside-channel"
    REPLACES_NEWER = "replaces-newer"
    REPLACED_AND_SKIPPED = "replaced-and-skipped"
    DEFAULT_CHANNEL_BEHIND = "default-channel-behind"
    DEFAULT_CHANNEL_DEPRECATED = "default-channel-deprecated"
    VERSIONS_TIE = "versions-tie"
    TOO_MANY_RANGES = "too-many-ranges"

    PACKAGE_REMOVED = "package-removed"
    VERSION_REMOVED = "version-removed"
    CONTENT_CHANGED = "content-changed"
    METADATA_MOVED = "metadata-moved"
    CHANNEL_REMOVED = "channel-removed"
    ENTRY_REMOVED = "entry-removed"
    DEFAULT_CHANNEL_CHANGED = "default-channel-changed"
    HEAD_MOVED_BACK = "head-moved-back"


_ERRORS = frozenset({Lint.PACKAGE_REMOVED, Lint.VERSION_REMOVED, Lint.CONTENT_CHANGED})
_INFORMATION = frozenset(
    {
        Lint.PACKAGE_WITHOUT_DESCRIPTION,
        Lint.IMAGE_BY_TAG,
        Lint.BUNDLE_WITHOUT_METADATA,
        Lint.REPLACES_OUTSIDE_CHANNEL,
        Lint.DEFAULT_CHANNEL_BEHIND,
        Lint.METADATA_MOVED,
    }
)


def severity(rule: Lint) -> Severity:
    """How bad it is: only what takes something from users of a published catalog is an error."""
    if rule in _ERRORS:
        return Severity.ERROR
    return Severity.INFO if rule in _INFORMATION else Severity.WARNING


def finding(rule: Lint, message: str, subject: str, place: Place) -> Finding:
    """A finding with the severity of its rule."""
    return Finding(severity(rule), rule, message, subject, place)
