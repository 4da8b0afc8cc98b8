"""Work on many things, a few at a time; the first failure stops the rest and is what the caller sees."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

S = TypeVar("S")
T = TypeVar("T")

AT_ONCE = 8


async def together(work: Callable[[S], Awaitable[T]], items: Iterable[S], at_once: int = AT_ONCE) -> list[T]:
    """The result of `work` for each item, in their order."""
    limit = asyncio.Semaphore(at_once)

    async def one(item: S) -> T:
        async with limit:
            return await work(item)

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(item)) for item in items]
    except BaseExceptionGroup as failures:
        raise _first(failures) from None
    return [task.result() for task in tasks]


def _first(failure: BaseException) -> BaseException:
    """One of several errors that happened at once; the others would say much the same."""
    while isinstance(failure, BaseExceptionGroup):
        failure = failure.exceptions[0]
    return failure
