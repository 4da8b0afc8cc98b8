from __future__ import annotations

import pytest

from podium.text import pictures


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (b"GIF89a", "image/gif"),
        (b"RIFF\x00\x00\x00\x00WEBPVP8", "image/webp"),
        (b"\x89PNG\r\n", "image/png"),
        (b"<!DOCTYPE svg PUBLIC><SVG/>", "image/svg+xml"),
        (b"<html><svg/></html>", ""),
        (b"", ""),
        (b"<svg xmlns='x'/>", "image/svg+xml"),
        (b"\xef\xbb\xbf<?xml version='1.0'?>\n<svg/>", "image/svg+xml"),
    ],
)
def test_the_kind_of_a_picture_is_seen_from_its_bytes(data: bytes, expected: str) -> None:
    assert pictures.media_type(data) == expected
