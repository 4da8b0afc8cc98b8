"""Small bundle images in a registry, pushed with nothing but HTTP requests, for opm to pull."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
import urllib.request
from collections.abc import Mapping

_LABEL = "operators.operatorframework.io.bundle.package.v1"


def push(host: str, repository: str, tag: str, files: Mapping[str, bytes], package: str) -> str:
    """Pushes a bundle as an image with one layer; the reference to pull it by."""
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w") as archive:
        for path, data in sorted(files.items()):
            member = tarfile.TarInfo(path)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    layer = gzip.compress(plain.getvalue(), mtime=0)
    config = {
        "architecture": "amd64",
        "os": "linux",
        "config": {"Labels": {_LABEL: package}},
        "rootfs": {"type": "layers", "diff_ids": [_digest(plain.getvalue())]},
    }
    blobs = [json.dumps(config).encode(), layer]
    for blob in blobs:
        _push_blob(host, repository, blob)
    kinds = ("application/vnd.oci.image.config.v1+json", "application/vnd.oci.image.layer.v1.tar+gzip")
    parts = [
        {"mediaType": kind, "digest": _digest(blob), "size": len(blob)}
        for kind, blob in zip(kinds, blobs, strict=True)
    ]
    media_type = "application/vnd.oci.image.manifest.v1+json"
    manifest = {"schemaVersion": 2, "mediaType": media_type, "config": parts[0], "layers": parts[1:]}
    _request(
        "PUT", f"http://{host}/v2/{repository}/manifests/{tag}", json.dumps(manifest).encode(), media_type
    )
    return f"{host}/{repository}:{tag}"


def _push_blob(host: str, repository: str, blob: bytes) -> None:
    place = _request("POST", f"http://{host}/v2/{repository}/blobs/uploads/", b"")
    separator = "&" if "?" in place else "?"
    _request("PUT", f"{place}{separator}digest={_digest(blob)}", blob)


def _digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def _request(method: str, url: str, body: bytes, media_type: str = "application/octet-stream") -> str:
    request = urllib.request.Request(url, body, {"Content-Type": media_type}, method=method)
    with urllib.request.urlopen(request, timeout=20) as response:
        return str(response.headers.get("Location", ""))
