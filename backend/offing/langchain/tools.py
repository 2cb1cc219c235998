"""The platform's tools as LangChain tools. Each call goes through the run's tool policy and journal.

The passages that they retrieve can be cited. The module also defines how a result is rendered in a conversation.
"""

from typing import Any

from langchain_core.tools import BaseTool, StructuredTool, ToolException

from offing.core.errors import InvalidInput
from offing.core.report import Evidence
from offing.core.tool import ToolResult, ToolSpec, ToolStatus
from offing.langchain.text_tool_calls import dump_json, wrap_tool_response
from offing.langchain.tool_calls import ExecutorTool
from offing.sdk.context import ToolCall
from offing.sdk.current_run import get_current_run, run_blocking
from offing.sdk.tool import CustomTool
from offing.tools import create_tools

MAX_PASSAGES = 10_000
"""Maximum number of passages of a run."""


class _ExecutorTool(StructuredTool, ExecutorTool):
    """A tool whose calls the run's tool executor decides and records."""


def offing_tools(*tools: str | CustomTool) -> list[BaseTool]:
    """Return tools for `bind_tools`, `ToolNode` or a prebuilt agent.

    Without arguments, these are the tools that search and read the document library. The run's tool
    policy decides each call. A tool that the run does not have returns the reason. Raises InvalidInput
    for an unknown name.
    """
    built_in_specs = {tool.spec.name: tool.spec for tool in create_tools(web=True, code=True)}
    specs = [_get_spec(one, built_in_specs) for one in tools or ("search_library", "read_source")]
    return [_build_tool(spec) for spec in specs]


def _get_spec(tool: str | CustomTool, specs: dict[str, ToolSpec]) -> ToolSpec:
    if isinstance(tool, CustomTool):
        return tool.spec
    if tool not in specs:
        raise InvalidInput("tools", f"There is no tool {tool!r}", f"Use one of: {', '.join(sorted(specs))}.")
    return specs[tool]


def _build_tool(spec: ToolSpec) -> BaseTool:
    async def use(**args: Any) -> str:
        arguments = spec.args.model_validate(args).model_dump(mode="json")
        result = await get_current_run().call_tool(ToolCall(spec.name, arguments))
        if result.status is not ToolStatus.OK:
            raise ToolException(result.message or f"{spec.name}: {result.status.replace('_', ' ')}.")
        return await _render_result(spec, result)

    def use_and_wait(**args: Any) -> str:
        return run_blocking(use(**args))

    return _ExecutorTool.from_function(
        func=use_and_wait,
        coroutine=use,
        name=spec.name,
        description=spec.description,
        args_schema=spec.args,
        handle_tool_error=True,
    )


async def _render_result(spec: ToolSpec, result: ToolResult) -> str:
    """Render a result for a model: passages with the ids to cite them by, anything else as JSON."""
    passages = [
        evidence for evidence in await get_current_run().get_evidence(MAX_PASSAGES) if _is_from_result(result, evidence)
    ]
    text = "\n\n".join(_render_passage(passage) for passage in passages) if passages else dump_json(result.content)
    return wrap_tool_response(spec.name, text) if spec.untrusted else text


def _is_from_result(result: ToolResult, evidence: Evidence) -> bool:
    return evidence.span in result.spans


def _render_passage(evidence: Evidence) -> str:
    where = " \u203a ".join(part for part in (evidence.title, evidence.heading) if part)
    return f"[{evidence.id}] {where}\n{evidence.text}"
