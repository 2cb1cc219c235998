"""The platform's tools as LangChain's: each call goes through the run's policy and journal, and what it finds can be
cited. The only home of how a result reads in a conversation; knows no tool by itself.
"""

from typing import Any

from langchain_core.tools import BaseTool, StructuredTool, ToolException

from offing.core.errors import InvalidInput
from offing.core.report import Evidence
from offing.core.tool import ToolResult, ToolSpec, ToolStatus
from offing.langchain.tool_calls import OurTool
from offing.langchain.words import as_data, as_json
from offing.sdk.context import ToolCall
from offing.sdk.running import running, waited
from offing.sdk.tool import OwnTool
from offing.tools import registry

MOST = 10_000
"""Passages of a run."""


class _OurTool(StructuredTool, OurTool):
    """Its calls are judged and recorded by the run's tool executor."""


def offing_tools(*wanted: str | OwnTool) -> list[BaseTool]:
    """Tools for `bind_tools`, `ToolNode` or a prebuilt agent. Nothing wanted: those that search and read the library.

    A run's policy decides about each call; a tool that a run does not have answers with the reason. Raises InvalidInput
    for a name that no tool has.
    """
    known = {tool.spec.name: tool.spec for tool in registry(web=True, code=True)}
    specs = [_spec(one, known) for one in wanted or ("search_library", "read_source")]
    return [_tool(spec) for spec in specs]


def _spec(wanted: str | OwnTool, known: dict[str, ToolSpec]) -> ToolSpec:
    if isinstance(wanted, OwnTool):
        return wanted.spec
    if wanted not in known:
        raise InvalidInput("tools", f"There is no tool {wanted!r}", f"Use one of: {', '.join(sorted(known))}.")
    return known[wanted]


def _tool(spec: ToolSpec) -> BaseTool:
    async def use(**args: Any) -> str:
        given = spec.args.model_validate(args).model_dump(mode="json")
        result = await running().use(ToolCall(spec.name, given))
        if result.status is not ToolStatus.OK:
            raise ToolException(result.message or f"{spec.name}: {result.status.replace('_', ' ')}.")
        return await _told(spec, result)

    def use_and_wait(**args: Any) -> str:
        return waited(use(**args))

    return _OurTool.from_function(
        func=use_and_wait,
        coroutine=use,
        name=spec.name,
        description=spec.description,
        args_schema=spec.args,
        handle_tool_error=True,
    )


async def _told(spec: ToolSpec, result: ToolResult) -> str:
    """What a model reads of a result: passages by the ids that they are cited by, anything else as JSON."""
    found = [piece for piece in await running().evidence(MOST) if _seen(result, piece)]
    text = "\n\n".join(_passage(piece) for piece in found) if found else as_json(result.content)
    return as_data(spec.name, text) if spec.untrusted else text


def _seen(result: ToolResult, piece: Evidence) -> bool:
    return piece.span in result.spans


def _passage(piece: Evidence) -> str:
    where = " \u203a ".join(part for part in (piece.title, piece.heading) if part)
    return f"[{piece.id}] {where}\n{piece.text}"
