"""Do the same to several records, each completely or not at all, also if the database becomes unavailable meanwhile."""

from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

from offing.core.errors import OffingError, Unavailable

Item = TypeVar("Item")
Result = TypeVar("Result")


async def try_each(
    items: Iterable[Item], work: Callable[[Item], Awaitable[Result]], rejections: tuple[type[OffingError], ...]
) -> list[tuple[Item, Result | OffingError]]:
    """Return for each item the result of the work, or why it was rejected.

    If the database becomes unavailable, the others are not tried: they have the error, too. The one at which it
    happened may have been changed. Raises Unavailable if it happens at the first.
    """
    results: list[tuple[Item, Result | OffingError]] = []
    unavailable: Unavailable | None = None
    for item in items:
        try:
            results.append((item, unavailable or await work(item)))
        except rejections as rejection:
            results.append((item, rejection))
        except Unavailable as error:
            if not results:
                raise
            unavailable = error
            results.append((item, error))
    return results
