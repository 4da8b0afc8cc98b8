"""What kind of picture some bytes are, told by how they begin."""

from __future__ import annotations

# Leading bytes (offset, bytes) and media type; those that h2non/filetype knows of what people use as icons.
_SIGNATURES: tuple[tuple[tuple[tuple[int, bytes], ...], str], ...] = (
    (((0, b"\xff\xd8\xff"),), "image/jpeg"),
    (((0, b"\x89PNG"),), "image/png"),
    (((0, b"GIF"),), "image/gif"),
    (((0, b"RIFF"), (8, b"WEBP")), "image/webp"),
    (((0, b"BM"),), "image/bmp"),
    (((0, b"\x00\x00\x01\x00"),), "image/vnd.microsoft.icon"),
    (((0, b"II*\x00"),), "image/tiff"),
    (((0, b"MM\x00*"),), "image/tiff"),
    (((4, b"ftypavif"),), "image/avif"),
)
_SVG_STARTS = (b"<?xml", b"<!--", b"<!doctype svg")


def media_type(data: bytes) -> str:
    """The media type of a picture; empty if it is none that is known."""
    for signature, found in _SIGNATURES:
        if all(data.startswith(magic, offset) for offset, magic in signature):
            return found
    head = data[:1024].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if head.startswith(b"<svg") or (head.startswith(_SVG_STARTS) and b"<svg" in data.lower()):
        return "image/svg+xml"
    return ""
