"""The names of the rules that `validate` checks: each one makes `opm validate` fail."""

from __future__ import annotations

from enum import StrEnum


class Rule(StrEnum):
    """A rule of opm's; scripts may match on the value."""

    FIELD_TYPE = "field-type"

    PACKAGE_NAME_MISSING = "package-name-missing"
    PACKAGE_NAME_INVALID = "package-name-invalid"
    PACKAGE_DUPLICATE = "package-duplicate"
    PACKAGE_WITHOUT_CHANNELS = "package-without-channels"
    PACKAGE_DUPLICATE_VERSIONS = "package-duplicate-versions"
    DEFAULT_CHANNEL_MISSING = "default-channel-missing"
    DEFAULT_CHANNEL_UNKNOWN = "default-channel-unknown"

    CHANNEL_PACKAGE_UNKNOWN = "channel-package-unknown"
    CHANNEL_NAME_MISSING = "channel-name-missing"
    CHANNEL_DUPLICATE = "channel-duplicate"
    CHANNEL_EMPTY = "channel-empty"
    CHANNEL_WITHOUT_HEAD = "channel-without-head"
    CHANNEL_MULTIPLE_HEADS = "channel-multiple-heads"
    CHANNEL_CYCLE = "channel-cycle"
    CHANNEL_STRANDED = "channel-stranded"

    ENTRY_NAME_MISSING = "entry-name-missing"
    ENTRY_DUPLICATE = "entry-duplicate"
    ENTRY_WITHOUT_BUNDLE = "entry-without-bundle"
    ENTRY_EMPTY_SKIP = "entry-empty-skip"
    ENTRY_SKIP_RANGE_INVALID = "entry-skip-range-invalid"

    BUNDLE_PACKAGE_MISSING = "bundle-package-missing"
    BUNDLE_PACKAGE_UNKNOWN = "bundle-package-unknown"
    BUNDLE_DUPLICATE = "bundle-duplicate"
    BUNDLE_PROPERTY_INVALID = "bundle-property-invalid"
    BUNDLE_OBJECT_INVALID = "bundle-object-invalid"
    BUNDLE_PACKAGE_PROPERTIES = "bundle-package-properties"
    BUNDLE_PACKAGE_DIFFERS = "bundle-package-differs"
    BUNDLE_VERSION_INVALID = "bundle-version-invalid"
    BUNDLE_RELEASE_INVALID = "bundle-release-invalid"
    BUNDLE_RELEASE_WITH_BUILD = "bundle-release-with-build"
    BUNDLE_NAME_WITHOUT_RELEASE = "bundle-name-without-release"
    BUNDLE_IMAGE_MISSING = "bundle-image-missing"
    BUNDLE_IMAGE_INVALID = "bundle-image-invalid"
    BUNDLE_RELATED_IMAGE_INVALID = "bundle-related-image-invalid"
    BUNDLE_IN_NO_CHANNEL = "bundle-in-no-channel"

    DEPRECATIONS_PACKAGE_MISSING = "deprecations-package-missing"
    DEPRECATIONS_PACKAGE_UNKNOWN = "deprecations-package-unknown"
    DEPRECATIONS_DUPLICATE = "deprecations-duplicate"
    DEPRECATION_SCHEMA_MISSING = "deprecation-schema-missing"
    DEPRECATION_SCHEMA_UNKNOWN = "deprecation-schema-unknown"
    DEPRECATION_DUPLICATE = "deprecation-duplicate"
    DEPRECATION_BUNDLE_UNKNOWN = "deprecation-bundle-unknown"
    DEPRECATION_CHANNEL_UNKNOWN = "deprecation-channel-unknown"
    DEPRECATION_PACKAGE_NAMED = "deprecation-package-named"
    DEPRECATION_MESSAGE_MISSING = "deprecation-message-missing"
