"""A graph's own tool as the worker calls it: bounded, and unable to pass its result off as a passage of the library.

The only home of what an own tool may return. Knows no policy.
"""

import orjson

from offing.core.errors import OffingError
from offing.core.step import shortened
from offing.core.tool import ToolOutput, ToolSpec
from offing.sdk.tool import OwnTool, ToolArgs, ToolFailed
from offing.telemetry.redaction import redact
from offing.tools.tool import ToolScope

LARGEST = 64 * 1024
"""Bytes of a result as JSON."""

OF_THE_LIBRARY = ("artefact", "passages")
"""Keys by which results of the library become evidence; an own tool has retrieved nothing from there."""


class Own:
    """`Tool` over an author's function. Whatever that raises is a failed call, and not the end of the run."""

    def __init__(self, tool: OwnTool) -> None:
        self._tool = tool

    @property
    def spec(self) -> ToolSpec:
        return self._tool.spec

    async def __call__(self, args: ToolArgs, scope: ToolScope) -> ToolOutput:
        named = {"key": scope.idempotency_key} if self._tool.keyed else {}
        try:
            output = await self._tool.work(args, **named)
        except (ToolFailed, OffingError, TimeoutError):
            raise
        except Exception as error:
            raise ToolFailed(shortened(redact(f"{self.spec.name} raised {type(error).__name__}: {error}"))) from error
        return checked(self.spec.name, output)


def checked(name: str, output: object) -> ToolOutput:
    """The output, if it may be recorded. Raises ToolFailed."""
    if not isinstance(output, ToolOutput):
        raise ToolFailed(f"{name} returned {type(output).__name__}; it must return a ToolOutput.")
    if output.spans or any(key in output.content for key in OF_THE_LIBRARY):
        raise ToolFailed(f"{name} returned what only the library's tools may: spans, or {' or '.join(OF_THE_LIBRARY)}.")
    try:
        size = len(orjson.dumps(output.content))
    except TypeError as error:
        raise ToolFailed(f"{name} returned what is not JSON: {error}.") from None
    if size > LARGEST:
        raise ToolFailed(f"{name} returned {size} bytes, over {LARGEST}; it must return less.")
    return output
