"""JSON bodies that the rest can trust: bounded in depth, finite numbers, text that Postgres and msgpack can hold.

A route class, so that it applies to whatever a router serves. Size is the app's `max_body_size`.
"""

from collections.abc import Callable, Coroutine
from typing import Any

import orjson
from fastapi import Request, Response
from fastapi.routing import APIRoute

from offing.api.problems import Refusal

MOST_DEPTH = 32


def strict_json(body: bytes) -> Any:
    """The document. orjson itself refuses NaN, infinities, half surrogates and broken UTF-8."""
    document = orjson.loads(body)
    _inspect(document)
    return document


def refuse_nul(text: str, field: str) -> None:
    """Postgres cannot store it, so nothing that contains it can name or hold anything here."""
    if "\0" in text:
        raise Refusal(422, "invalid_input", "The text contains a NUL character.", "Remove it.", field)


def _inspect(document: Any) -> None:
    # By hand: recursion would be the attack that this guards against.
    pending: list[tuple[Any, int]] = [(document, 1)]
    while pending:
        value, depth = pending.pop()
        if depth > MOST_DEPTH:
            raise Refusal(422, "invalid_input", f"Nested deeper than {MOST_DEPTH}.", "Send a flatter document.", "body")
        if isinstance(value, str):
            refuse_nul(value, "body")
        elif isinstance(value, dict):
            pending += [(part, depth + 1) for pair in value.items() for part in pair]  # pyright: ignore[reportUnknownVariableType]
        elif isinstance(value, list):
            pending += [(part, depth + 1) for part in value]  # pyright: ignore[reportUnknownVariableType]


class StrictRequest(Request):
    async def json(self) -> Any:
        return strict_json(await self.body())


class StrictRoute(APIRoute):
    """Reads JSON bodies through `strict_json`."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def strictly(request: Request) -> Response:
            return await handle(StrictRequest(request.scope, request.receive))

        return strictly
