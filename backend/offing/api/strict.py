"""JSON bodies that the rest can trust: bounded in depth, finite numbers, text that Postgres and msgpack can hold.

Here are the limits on a body's size as well, because the framework's own would not answer with a problem.
"""

from collections.abc import AsyncGenerator
from typing import Any

import orjson
from fastapi import Request

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
    """Refuses a body of more than `most_body` bytes as soon as that is known, and documents that are not strict."""

    most_body: int

    async def json(self) -> Any:
        return strict_json(await self.body())

    async def stream(self) -> AsyncGenerator[bytes]:
        announced = self.headers.get("content-length", "")
        _refuse_large(int(announced) if announced.isdigit() else 0, self.most_body)
        counted = 0
        async for chunk in super().stream():
            counted += len(chunk)
            _refuse_large(counted, self.most_body)
            yield chunk


def _refuse_large(size: int, most: int) -> None:
    if size > most:
        raise Refusal(413, "too_large", "The body is larger than allowed.", f"Send at most {most:,} bytes.")
