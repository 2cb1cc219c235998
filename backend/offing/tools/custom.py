"""Adapt custom tools of graphs: limit their results, which can never pass as passages of the library."""

import orjson

from offing.core.errors import OffingError
from offing.core.step import shorten_line
from offing.core.tool import ToolOutput, ToolSpec
from offing.sdk.tool import CustomTool, ToolArgs, ToolFailedError
from offing.telemetry.redaction import redact
from offing.tools.tool import ToolScope

MAX_RESULT_BYTES = 64 * 1024
"""Maximum bytes of a result as JSON."""

RESERVED_RESULT_KEYS = ("text_id", "passages")
"""Keys by which results of library tools become evidence. A custom tool has retrieved nothing from there."""


class CustomToolAdapter:
    """A tool that calls an author's function. An exception of the function fails the call and not the run."""

    def __init__(self, tool: CustomTool) -> None:
        self._tool = tool

    @property
    def spec(self) -> ToolSpec:
        return self._tool.spec

    async def __call__(self, args: ToolArgs, scope: ToolScope) -> ToolOutput:
        named = {"key": scope.idempotency_key} if self._tool.takes_key else {}
        try:
            output = await self._tool.function(args, **named)
        except (ToolFailedError, OffingError, TimeoutError):
            raise
        except Exception as error:
            raise ToolFailedError(
                shorten_line(redact(f"{self.spec.name} raised {type(error).__name__}: {error}"))
            ) from error
        return check_output(self.spec.name, output)


def check_output(name: str, output: object) -> ToolOutput:
    """Return the output if it may be recorded. Raises ToolFailedError."""
    if not isinstance(output, ToolOutput):
        raise ToolFailedError(f"{name} returned {type(output).__name__}; it must return a ToolOutput.")
    if output.spans or any(key in output.content for key in RESERVED_RESULT_KEYS):
        raise ToolFailedError(
            f"{name} returned what only the library's tools may: spans, or {' or '.join(RESERVED_RESULT_KEYS)}."
        )
    try:
        size = len(orjson.dumps(output.content))
    except TypeError as error:
        raise ToolFailedError(f"{name} returned what is not JSON: {error}.") from None
    if size > MAX_RESULT_BYTES:
        raise ToolFailedError(f"{name} returned {size} bytes, over {MAX_RESULT_BYTES}; it must return less.")
    return output
