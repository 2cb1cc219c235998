"""Parse JSON bodies strictly: limited depth, finite numbers, and text that Postgres and msgpack can store.

The limits on the size of a body are here as well, because the framework's own limits would not answer with
a problem.
"""

from collections.abc import AsyncGenerator
from typing import Any

import orjson
from fastapi import Request

from offing.api.problems import ProblemError

MAX_JSON_DEPTH = 32


def parse_strict_json(body: bytes) -> Any:
    """Return the parsed document. orjson itself rejects NaN, infinities, lone surrogates and invalid UTF-8."""
    document = orjson.loads(body)
    _check_document(document)
    return document


def check_no_nul(text: str, field: str) -> None:
    """Raise ProblemError if the text contains a NUL character, which Postgres cannot store."""
    if "\0" in text:
        raise ProblemError(422, "invalid_input", "The text contains a NUL character.", "Remove it.", field)


def _check_document(document: Any) -> None:
    # Without recursion, because deep recursion is the attack that this prevents.
    pending: list[tuple[Any, int]] = [(document, 1)]
    while pending:
        value, depth = pending.pop()
        if depth > MAX_JSON_DEPTH:
            raise ProblemError(
                422,
                "invalid_input",
                f"The document is nested deeper than {MAX_JSON_DEPTH} levels.",
                "Send JSON with fewer levels of nesting.",
                "body",
            )
        if isinstance(value, str):
            check_no_nul(value, "body")
        elif isinstance(value, dict):
            pending += [(part, depth + 1) for pair in value.items() for part in pair]  # pyright: ignore[reportUnknownVariableType]
        elif isinstance(value, list):
            pending += [(part, depth + 1) for part in value]  # pyright: ignore[reportUnknownVariableType]


class StrictRequest(Request):
    """A request that rejects a body of more than `max_body_bytes` as early as possible, and JSON that is not strict."""

    max_body_bytes: int

    async def json(self) -> Any:
        return parse_strict_json(await self.body())

    async def stream(self) -> AsyncGenerator[bytes]:
        announced = self.headers.get("content-length", "")
        _check_size(int(announced) if announced.isdigit() else 0, self.max_body_bytes)
        counted = 0
        async for chunk in super().stream():
            counted += len(chunk)
            _check_size(counted, self.max_body_bytes)
            yield chunk


def _check_size(size_bytes: int, max_bytes: int) -> None:
    if size_bytes > max_bytes:
        raise ProblemError(413, "too_large", "The body is too large.", f"Send at most {max_bytes:,} bytes.")
