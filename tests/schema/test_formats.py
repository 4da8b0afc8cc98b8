"""String formats, each with texts that kube-apiserver 1.36 takes and refuses."""

from __future__ import annotations

import pytest

from podium.schema import formats

TAKEN: dict[str, list[str]] = {
    "uri": ["http://a", "/x", "mailto:a", "http://[::1]:80/", "a:b", "http://x/%41", "http://"],
    "email": ["a@b", "a@b.c", "A <a@b.c>", '"x y"@c.d', "a@[1.2.3.4]"],
    "hostname": ["a", "a.com", "A.COM", "ä.de"],
    "ipv4": ["1.2.3.4", "01.2.3.4", "::ffff:1.2.3.4"],
    "ipv6": ["::1", "::ffff:1.2.3.4"],
    "cidr": ["1.2.3.4/8", "::/0", "01.2.3.4/8"],
    "mac": ["01:23:45:67:89:ab", "01-23-45-67-89-ab", "0123.4567.89ab"],
    "uuid": ["123e4567-e89b-12d3-a456-426614174000", "123E4567e89b12d3a456426614174000"],
    "uuid4": ["123e4567-e89b-42d3-a456-426614174000"],
    "isbn": ["3836221195", "978-4-87311-368-5"],
    "isbn10": ["3 401 01319 X"],
    "creditcard": ["4220 8554 2622 2389"],
    "ssn": ["123-45-6789"],
    "hexcolor": ["#fff", "CCccCC"],
    "rgbcolor": ["rgb(0,  31, 255)"],
    "byte": ["aGVsbG8="],
    "password": ["", "anything"],
    "date": ["2020-02-29"],
    "date-time": ["2020-01-01T00:00:00Z", "2020-01-01t00:00:00z", "2020-01-01T00:00:00.123+02:00"],
    "duration": ["1h", "22 ns", "3 days", "1.5h", "-1h", "0", "5w", "1m30s", "2 Weeks"],
    "bsonobjectid": ["507f1f77bcf86cd799439011"],
    "k8s-short-name": ["a-b"],
    "k8s-long-name": ["a.b-c"],
}
REFUSED: dict[str, list[str]] = {
    "uri": ["", "a", "http://a b", "http://a:b/", "%", "/%zz"],
    "email": ["a", "a@", "a b@c"],
    "hostname": ["-a", "a_b", "a..b"],
    "ipv4": ["1.2.3", "1.2.3.256", "::1"],
    "ipv6": ["1.2.3.4", "::g", "fe80::1%eth0"],
    "cidr": ["1.2.3.4", "1.2.3.4/33", "1.2.3.4/+8"],
    "mac": ["x", "01:23:45:67:89"],
    "uuid": ["x"],
    "uuid4": ["123e4567-e89b-42d3-c456-426614174000"],
    "isbn10": ["3836221196"],
    "creditcard": ["4220855426213389"],
    "ssn": ["123456789"],
    "hexcolor": ["fff0"],
    "rgbcolor": ["rgb(1,349,275)"],
    "byte": ["", "aGVsbG8", "a-_b"],
    "date": ["2020-13-01", "2020-02-30", "20200101"],
    "date-time": ["2020-01-01", "2020-01-01T24:00:00Z", "2020-01-01T00:00:00", "2020-01-01 00:00:00Z"],
    "duration": ["", "x", "1", "h"],
    "bsonobjectid": ["x"],
    "k8s-short-name": ["a.b", "A", "a" * 64],
    "k8s-long-name": ["a..b", "A"],
}


@pytest.mark.parametrize(("name", "text"), [(n, t) for n, texts in TAKEN.items() for t in texts])
def test_a_text_of_the_format_is_taken(name: str, text: str) -> None:
    assert formats.matches(name, text)


@pytest.mark.parametrize(("name", "text"), [(n, t) for n, texts in REFUSED.items() for t in texts])
def test_a_text_not_of_the_format_is_refused(name: str, text: str) -> None:
    assert not formats.matches(name, text)


def test_dashes_in_the_name_of_a_format_do_not_count() -> None:
    assert formats.known("date-time")
    assert formats.known("datetime")
    assert not formats.known("int32")


def test_a_pattern_that_does_not_compile_is_told_in_the_words_of_go() -> None:
    with pytest.raises(formats.PatternError, match=r"^error parsing regexp: missing closing \]: `\[a`$"):
        formats.pattern("[a")
