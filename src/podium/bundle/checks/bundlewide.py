"""What must hold between the files of a bundle: CRDs and their owner, names, images, size."""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Mapping
from typing import Any

from podium.bundle.checks.context import Decoded, Report, Subject
from podium.bundle.model import CRD_V1, MANIFESTS_DIR, member, text
from podium.bundle.read import within
from podium.text.references import Grammar, Reference
from podium.text.semver import Version

# A bundle is put into one ConfigMap when it is unpacked, gzipped and in base64.
LARGEST = 1 << 20
NEARLY = 0.85

GroupVersionKind = tuple[str, str, str]


def check(subject: Subject, report: Report) -> None:
    """Reports what the files of the bundle have against one another."""
    _crds(subject, report)
    _owned_names(subject, report)
    _service_accounts(subject, report)
    _size(subject, report)
    _release(subject, report)
    _related_images(subject.csv, report)


def _shown(key: GroupVersionKind) -> str:
    group, version, kind = key
    return f"{group}/{version}, Kind={kind}"


def _crds(subject: Subject, report: Report) -> None:
    shipped: dict[GroupVersionKind, Decoded] = {}
    for crd in subject.crds:
        for key in crd_keys(crd):
            if key in shipped:
                report.error(
                    "duplicate-crd",
                    f"duplicate CRD {_shown(key)}, also in {shipped[key].manifest.path}",
                    subject=subject.bundle.name,
                    file=crd.manifest.path,
                )
            shipped.setdefault(key, crd)
    owned_kinds = set()
    unowned = dict(shipped)
    for index, owned in subject.csv.objects("customresourcedefinitions", "owned"):
        key = owned_key(owned)
        if key not in unowned:
            report.error(
                "owned-crd-missing",
                f"owned CRD {_shown(key)} not found in bundle",
                subject=subject.csv.name,
                file=subject.csv.manifest.path,
                path=("spec", "customresourcedefinitions", "owned", index),
            )
            continue
        del unowned[key]
        owned_kinds.add((key[0], key[2]))
    for key, crd in unowned.items():
        if (key[0], key[2]) not in owned_kinds:
            report.error(
                "crd-not-owned",
                f"CRD {_shown(key)} is present in bundle but not defined in CSV",
                subject=crd.name,
                file=crd.manifest.path,
            )


def crd_keys(crd: Decoded) -> Iterator[GroupVersionKind]:
    """Group, version and kind of each version that a CRD defines."""
    spec = crd.spec
    group, kind = text(spec.get("group")), text(member(spec, "names").get("kind"))
    versions = [text(version.get("name")) for _, version in crd.objects("versions")]
    if not versions and crd.manifest.value.get("apiVersion") != CRD_V1:
        versions = [text(spec.get("version"))]
    return ((group, version, kind) for version in versions)


def owned_key(owned: Mapping[str, Any]) -> GroupVersionKind:
    """Group, version and kind of a CRD that the ClusterServiceVersion says it owns."""
    name = text(owned.get("name"))
    group = name.partition(".")[2] if "." in name else name
    return (group, text(owned.get("version")), text(owned.get("kind")))


def _owned_names(subject: Subject, report: Report) -> None:
    """An owned CRD must go by its own name: opm looks for plural and group, not for the group alone."""
    names = {(crd.name, key[1], key[2]) for crd in subject.crds for key in crd_keys(crd)}
    there = {key for crd in subject.crds for key in crd_keys(crd)}
    for index, owned in subject.csv.objects("customresourcedefinitions", "owned"):
        name, version, kind = (text(owned.get(key)) for key in ("name", "version", "kind"))
        if owned_key(owned) in there and (name, version, kind) not in names:
            report.error(
                "owned-crd-name",
                f"owned CRD {name}/{version} not found in bundle: a CRD of its kind has another name",
                subject=subject.csv.name,
                file=subject.csv.manifest.path,
                path=("spec", "customresourcedefinitions", "owned", index, "name"),
            )


def _service_accounts(subject: Subject, report: Report) -> None:
    used = {
        text(member(deployment, "spec", "template", "spec").get("serviceAccountName"))
        for _, deployment in subject.csv.objects("install", "spec", "deployments")
    }
    for manifest in subject.bundle.manifests:
        value = manifest.value
        if value["kind"] != "ServiceAccount" or value.get("apiVersion") != "v1":
            continue
        name = text(member(value, "metadata").get("name"))
        if name in used:
            report.error(
                "service-account-conflict",
                f"invalid service account found in bundle: {name} is already specified in the CSV; remove "
                "the manifest, or rename one of the two",
                subject=f"ServiceAccount {name}",
                file=manifest.path,
                path=("metadata", "name"),
            )


def compressed_size(data: bytes) -> int:
    """The size of a file as it is stored: gzipped, in base64. Go's gzip differs by about a hundredth."""
    return (len(gzip.compress(data, 6, mtime=0)) + 2) // 3 * 4


def _size(subject: Subject, report: Report) -> None:
    paths = list(within(subject.files, MANIFESTS_DIR))
    whole = sum(len(subject.files[path]) for path in paths)
    size = sum(compressed_size(subject.files[path]) for path in paths)
    measured = f"about {size:,} of {LARGEST:,} bytes, {whole:,} uncompressed"
    if size > LARGEST:
        report.error(
            "bundle-too-large",
            f"maximum bundle compressed size with gzip size exceeded: {measured}",
            subject=subject.bundle.name,
        )
    elif size > LARGEST * NEARLY:
        report.warn(
            "bundle-nearly-too-large",
            f"nearing maximum bundle compressed size with gzip: {measured}",
            subject=subject.bundle.name,
        )


def _release(subject: Subject, report: Report) -> None:
    release = text(subject.csv.spec.get("release"))
    if not release:
        return
    version = subject.csv.spec.get("version") or Version(0, 0, 0)
    wanted = f"{subject.bundle.package}-v{version}-{release}"
    where: dict[str, Any] = {"subject": subject.csv.name, "file": subject.csv.manifest.path}
    if subject.bundle.name != wanted:
        report.error(
            "release-name",
            f"bundle name with release versioning {subject.bundle.name!r} does not match {wanted!r}",
            path=("metadata", "name"),
            **where,
        )
    if substituted := subject.csv.annotations.get("olm.substitutesFor"):
        report.error(
            "release-with-substitutes",
            f"cannot have both a release version ({release}) and olm.substitutesFor ({substituted})",
            path=("metadata", "annotations", "olm.substitutesFor"),
            **where,
        )


def _related_images(csv: Decoded, report: Report) -> None:
    for index, related in csv.objects("relatedImages"):
        image = text(related.get("image"))
        where: dict[str, Any] = {"subject": csv.name, "file": csv.manifest.path}
        where["path"] = ("spec", "relatedImages", index, "image")
        if not image:
            report.error("related-image-empty", f"relatedImages[{index}] has an empty image field", **where)
            continue
        try:
            Reference.parse(image, Grammar.CONTAINERS)
        except ValueError as error:
            message = f"relatedImages[{index}] has an invalid image pullspec {image!r}: {error}"
            report.error("related-image-invalid", message, **where)
