from __future__ import annotations

import pickle
from typing import Any

import pytest

from podium.kube import errors


@pytest.mark.parametrize(
    ("code", "reason", "expected"),
    [
        (400, "BadRequest", errors.BadRequest),
        (401, "Unauthorized", errors.Unauthorized),
        (403, "Forbidden", errors.Forbidden),
        (404, "NotFound", errors.NotFound),
        (405, "MethodNotAllowed", errors.MethodNotAllowed),
        (406, "NotAcceptable", errors.UnsupportedMedia),
        (409, "AlreadyExists", errors.AlreadyExists),
        (409, "Conflict", errors.Conflict),
        (410, "Gone", errors.Gone),
        (410, "Expired", errors.Gone),
        (413, "RequestEntityTooLarge", errors.TooLarge),
        (415, "UnsupportedMediaType", errors.UnsupportedMedia),
        (422, "Invalid", errors.Invalid),
        (429, "TooManyRequests", errors.TooManyRequests),
        (500, "InternalError", errors.ServerError),
        (503, "ServiceUnavailable", errors.ServerError),
        (504, "Timeout", errors.ServerError),
        (500, "ServerTimeout", errors.ServerError),
        (502, "", errors.ServerError),
        (410, "", errors.Gone),
        (422, "SomethingNew", errors.Invalid),
        (418, "", errors.APIError),
    ],
)
def test_a_status_becomes_the_exception_of_its_remedy(
    code: int, reason: str, expected: type[errors.APIError]
) -> None:
    error = errors.from_status({"code": code, "reason": reason, "message": "the reason why"})
    assert type(error) is expected
    assert (error.code, error.reason, str(error)) == (code, reason, "the reason why")


def test_a_conflict_of_field_managers_is_not_one_of_versions() -> None:
    cause = {"reason": "FieldManagerConflict", "message": 'conflict with "helm"', "field": ".spec.replicas"}
    error = errors.from_status({"code": 409, "reason": "Conflict", "details": {"causes": [cause]}})
    assert type(error) is errors.ApplyConflict
    assert error.causes == [cause]


def test_a_proxys_error_page_shows_its_beginning() -> None:
    error = errors.from_answer(502, b"<html>Bad Gateway" + b"x" * 10_000, what="GET /api")
    assert type(error) is errors.ServerError
    assert str(error).startswith("GET /api: the server answered 502: <html>Bad Gateway")
    assert len(str(error)) < 600


@pytest.mark.parametrize("body", [b"", b"[]", b'"text"', b"{", b"\xff\xfe", b'{"kind":"Pod"}', b"null"])
def test_any_body_of_an_error_answer_is_survived(body: bytes) -> None:
    assert type(errors.from_answer(404, body, what="GET /x")) is errors.NotFound


@pytest.mark.parametrize(
    "status",
    [
        {"code": "404", "reason": 4, "message": None, "details": []},
        {"details": {"causes": "x", "retryAfterSeconds": "y"}},
        {"details": {"causes": [1]}},
    ],
)
def test_a_status_of_wrong_types_is_survived(status: dict[str, Any]) -> None:
    assert errors.from_status(status).causes == []


def test_the_code_of_the_answer_stands_in_for_one_missing_in_the_body() -> None:
    error = errors.from_answer(410, b'{"kind":"Status","message":"too old"}', what="GET /x")
    assert (type(error), error.code) == (errors.Gone, 410)


def test_the_wait_comes_from_the_header_or_from_the_details() -> None:
    status = {"code": 429, "details": {"retryAfterSeconds": 7}}
    assert errors.from_status(status).retry_after == 7
    assert errors.from_status(status, retry_after=2).retry_after == 2


def test_a_404_tells_an_object_from_a_path() -> None:
    about_object = errors.from_status({"code": 404, "details": {"name": "web", "kind": "pods"}})
    about_path = errors.from_answer(404, b"404 page not found\n", what="GET /apis/x")
    assert isinstance(about_object, errors.NotFound)
    assert isinstance(about_path, errors.NotFound)
    assert (about_object.names_object, about_path.names_object) == (True, False)


@pytest.mark.parametrize(
    "error",
    [
        errors.from_status({"code": 429, "reason": "TooManyRequests", "message": "m"}, retry_after=3.0),
        errors.ConnectionFailed("lost", sent=True),
        errors.ConfigError("x"),
    ],
)
def test_errors_survive_pickling(error: errors.KubeError) -> None:
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), str(copy), vars(copy)) == (type(error), str(error), vars(error))
