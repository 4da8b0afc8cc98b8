"""The way in: who asks, may they, and which part of the server answers.

A gateway knows nothing of sockets: `http` puts it on the network, and a process that holds the server calls
it directly. Every failure becomes an answer with a Status object.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

from podium.apiserver import errors, requests
from podium.apiserver.access import impersonation
from podium.apiserver.access.authentication import Authenticator
from podium.apiserver.access.authorization import Attributes, check
from podium.apiserver.access.identity import Identity
from podium.apiserver.access.impersonation import Impersonation
from podium.apiserver.access.rbac import Rbac
from podium.apiserver.endpoints import Answer, Call, Endpoints
from podium.apiserver.requests import RequestInfo
from podium.apiserver.store import StoreFailed, encode
from podium.apiserver.views import YAML, prefers_yaml
from podium.apiserver.watching import Watch

if TYPE_CHECKING:
    from multidict import MultiMapping

log = logging.getLogger(__name__)

# Answers for a path outside the resources: health, version, discovery, OpenAPI, keys.
Page = Callable[[RequestInfo, Mapping[str, str], Mapping[str, str]], Awaitable[Answer | None]]


@dataclass(slots=True)
class Incoming:
    """A request as it arrived; header names are found in any case."""

    method: str
    path: str
    query: MultiMapping[str]
    headers: Mapping[str, str]
    read_body: Callable[[], Awaitable[bytes]]
    certificate: Identity | None = None  # whom a client certificate named
    warnings: list[str] = field(default_factory=list)  # for the client, filled while answering


_WITH_BODY = ("create", "update", "patch", "delete", "deletecollection")
NOT_FOUND = Answer(404, b"404 page not found\n", "text/plain; charset=utf-8")


class Gateway:
    """Authenticates, authorizes and dispatches requests."""

    def __init__(self, endpoints: Endpoints, authenticator: Authenticator, rbac: Rbac, page: Page) -> None:
        self._endpoints = endpoints
        self._authenticator = authenticator
        self._rbac = rbac
        self._impersonation = Impersonation(rbac)
        self._page = page

    async def answer(self, request: Incoming) -> Answer | Watch:
        """The answer to a request, or the watch that it opened."""
        try:
            return await self._dispatch(request)
        except errors.StatusError as error:
            return failure(error, request.headers.get("Accept", ""))
        except StoreFailed as error:
            return failure(errors.internal(str(error)))
        except RecursionError:
            return failure(errors.bad_request("exceeded max depth"))
        except asyncio.CancelledError:
            raise
        except Exception as error:  # a bug must not take the connection down with it
            log.exception("%s %s failed", request.method, request.path)
            return failure(errors.internal(f"{type(error).__name__}: {error}"))

    async def _dispatch(self, request: Incoming) -> Answer | Watch:
        info = requests.parse(request.method, request.path, request.query)
        identity = self._identify(request, info)
        attributes = _attributes(identity, info)
        check(self._rbac, attributes)
        if not info.is_resource:
            return await self._page(info, request.query, request.headers) or NOT_FOUND
        resource = self._endpoints.resource(info)
        read_body = request.read_body
        if resource is not None and resource.custom and info.verb in _WITH_BODY:
            # Its definition may change or go while the body is on its way.
            body = await request.read_body()
            read_body = _given(body)
            resource = self._endpoints.resource(info)
        if resource is None:
            if self._endpoints.is_builtin_group(info.group):
                raise errors.no_such_path()
            return NOT_FOUND
        if request.method == "HEAD" and not resource.custom:
            raise errors.method_not_allowed()
        call = Call(
            info,
            request.query,
            request.headers,
            identity,
            read_body,
            lambda: check(self._rbac, msgspec.structs.replace(attributes, verb="create")),
            tuple(request.query.getall("dryRun", [])),
            request.warnings,
        )
        return await self._endpoints.handle(call, resource)

    def _identify(self, request: Incoming, info: RequestInfo) -> Identity:
        identity = self._authenticator.authenticate(request.certificate, request.headers.get("Authorization"))
        wanted = impersonation.wanted_identity(request.headers.items())
        if wanted is None:
            return identity
        return self._impersonation.impersonate(wanted, _attributes(identity, info))


def _given(body: bytes) -> Callable[[], Awaitable[bytes]]:
    async def read_body() -> bytes:
        return body

    return read_body


def _attributes(identity: Identity, info: RequestInfo) -> Attributes:
    if not info.is_resource:
        return Attributes(identity, info.verb, path=info.path)
    return Attributes(
        identity, info.verb, info.group, info.resource, info.subresource, info.namespace, info.name
    )


def failure(error: errors.StatusError, accept: str = "") -> Answer:
    """An error as an answer, in YAML for who reads that."""
    if prefers_yaml(accept):
        from podium.text import yaml

        answer = Answer(error.code, yaml.dump(error.status).encode(), YAML)
    else:
        answer = Answer(error.code, encode(error.status) + b"\n")
    if error.retry_after is not None:
        answer.headers["Retry-After"] = str(error.retry_after)
    return answer
