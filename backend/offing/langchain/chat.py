"""The chat model that a LangGraph graph uses in place of a provider's.

Each call goes through the run's context.

A call is therefore journaled, counted against the budget, answered by the engine that the run's
configuration names, and recorded as a role call.
"""

import json
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Any, Literal, cast

from langchain_core.caches import BaseCache
from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, BaseRunManager, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.messages.utils import count_tokens_approximately
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_json_schema, convert_to_openai_tool
from pydantic import BaseModel

from offing.core.errors import InvalidInput
from offing.core.model import EngineFailure, FailureKind
from offing.core.run import StopReason
from offing.langchain.caller_name import find_caller_name
from offing.langchain.chat_values import ChatPrompt, ChatTool, to_ai_message, to_chat_messages
from offing.langchain.errors import ModelCallError, RunStopped
from offing.langchain.role import create_chat_role
from offing.sdk.current_run import get_current_run, record_stop, run_blocking

ANY_TOOL_CHOICES = frozenset({"any", "required"})
FREE_TOOL_CHOICES = frozenset({"auto", "none", ""})
DECLARED_TOOL_TYPES = frozenset({"function", "object", "custom"})
"""Types of the mappings that declare a graph's own tool."""


class OffingChatModel(BaseChatModel):
    """A chat model with the name that engines are configured by: `OffingChatModel("agent")`.

    It works only inside a run. Use `ainvoke` in an async node. In a synchronous node `invoke` blocks
    its thread.
    """

    name: str | None = "agent"
    """Name of the role, as used in `engines` of a run."""
    cache: BaseCache | bool | None = False
    """No cache, not even LangChain's global one: a cached answer would not be recorded."""

    def __init__(self, name: str = "agent", **more: Any) -> None:
        super().__init__(name=name, **more)

    @property
    def role(self) -> str:
        return self.name or "agent"

    @property
    def _llm_type(self) -> str:
        return "offing"

    def bind_tools(
        self,
        tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool],
        *,
        tool_choice: str | dict[str, Any] | bool | None = None,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """Return a copy of the model that may call these tools.

        `tool_choice` is a tool's name, `any`, or `None`.
        """
        shapes = [_to_chat_tool(tool).model_dump() for tool in tools]
        return self.bind(tools=shapes, tool_choice=resolve_tool_choice(tool_choice, shapes), **kwargs)

    def with_structured_output(
        self,
        schema: dict[str, Any] | type,
        *,
        include_raw: bool = False,
        method: Literal["function_calling", "json_schema", "json_mode"] = "function_calling",
        strict: bool | None = None,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, dict[str, Any] | BaseModel]:
        """Return a copy of the model whose answers have the schema.

        For every `method` the model must call a tool with that schema, because every engine supports this.
        """
        return super().with_structured_output(schema, include_raw=include_raw, **kwargs)

    def get_num_tokens(self, text: str) -> int:
        """Estimate the number of tokens. The tokenizer is unknown before a run."""
        return count_tokens_approximately([HumanMessage(text)])

    def get_num_tokens_from_messages(
        self,
        messages: list[BaseMessage],
        tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool] | None = None,
    ) -> int:
        """Estimate the number of tokens of messages, including tools."""
        shapes = [convert_to_openai_tool(tool) for tool in tools or ()]
        return count_tokens_approximately(messages) + sum(self.get_num_tokens(json.dumps(one)) for one in shapes)

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        answer = await self._call_role(messages, stop, kwargs, run_manager)
        return ChatResult(generations=[ChatGeneration(message=answer)])

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        answer = run_blocking(self._call_role(messages, stop, kwargs, run_manager))
        return ChatResult(generations=[ChatGeneration(message=answer)])

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        """Yield the whole answer as one chunk, because it is recorded before anyone reads it."""
        yield to_chunk(await self._call_role(messages, stop, kwargs, run_manager))

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        yield to_chunk(run_blocking(self._call_role(messages, stop, kwargs, run_manager)))

    async def _call_role(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None,
        options: dict[str, Any],
        model_name: BaseRunManager | None,
    ) -> AIMessage:
        context = get_current_run()
        run = str(context.run.origin_run_id or context.run.id)
        chat = ChatPrompt(
            messages=to_chat_messages(messages, run),
            tools=tuple(ChatTool(**tool) for tool in options.get("tools") or ()),
            must_call=options.get("tool_choice") or "",
            stop=tuple(stop or ()),
            one_call=options.get("parallel_tool_calls") is False and bool(options.get("tools")),
            answer_schema=_find_answer_schema(options.get("response_format")),
        )
        who = find_caller_name(model_name.metadata) if model_name else ""
        reply = await context.call_role(create_chat_role(self.role, who), chat, turn=chat.turn)
        if isinstance(reply, EngineFailure):
            raise error_from_failure(self.role, reply)
        return to_ai_message(reply.output, run_id=run, seq=reply.seq, usage=reply.tokens, model=self.role)


def _to_chat_tool(tool: dict[str, Any] | type | Callable[..., Any] | BaseTool) -> ChatTool:
    kind = str(cast(dict[str, Any], tool).get("type", "function")) if isinstance(tool, dict) else "function"
    if kind not in DECLARED_TOOL_TYPES:
        problem = f"a tool of type {kind!r}, which the provider runs, is not supported"
        raise InvalidInput("tools", problem, "Use a tool of the graph instead.")
    function = convert_to_openai_tool(cast(Any, tool))["function"]
    return ChatTool(
        name=function["name"], description=function.get("description", ""), parameters=function.get("parameters", {})
    )


def _find_answer_schema(format: Any) -> dict[str, Any]:
    """Return the schema in a provider's `response_format`, which may also be a class.

    Empty means free text.
    """
    if format is None:
        return {}
    if not isinstance(format, dict):
        return convert_to_json_schema(format)
    schema_spec = cast(dict[str, Any], format)
    if schema_spec.get("type") == "json_object":
        return {"type": "object"}
    return schema_spec.get("json_schema", {}).get("schema", {})


def resolve_tool_choice(tool_choice: str | dict[str, Any] | bool | None, tools: Sequence[dict[str, Any]]) -> str:
    """Return the name of the tool that must be called, `any`, or an empty string.

    Raises InvalidInput if the tool is not bound.
    """
    names = {shape["name"] for shape in tools}
    if isinstance(tool_choice, dict):
        tool_choice = str(tool_choice.get("function", tool_choice).get("name", ""))
    if isinstance(tool_choice, bool) or tool_choice is None:
        return "any" if tool_choice else ""
    if tool_choice in names:
        return tool_choice
    if tool_choice in ANY_TOOL_CHOICES | FREE_TOOL_CHOICES:
        return "any" if tool_choice in ANY_TOOL_CHOICES else ""
    raise InvalidInput(
        "tool_choice", f"{tool_choice!r} is not one of the bound tools", f"Use any, or one of: {sorted(names)}."
    )


def to_chunk(message: AIMessage) -> ChatGenerationChunk:
    """Return a message as the only chunk of a stream."""
    fields = message.model_dump(exclude={"type", "tool_calls", "invalid_tool_calls"})
    calls = [
        tool_call_chunk(name=c["name"], args=json.dumps(c["args"]), id=c["id"], index=n)
        for n, c in enumerate(message.tool_calls)
    ]
    return ChatGenerationChunk(message=AIMessageChunk(**fields, tool_call_chunks=calls, chunk_position="last"))


def error_from_failure(role: str, failure: EngineFailure) -> Exception:
    """Return the exception with which a model call ends in the graph. A reached limit is recorded for the run."""
    if failure.kind is FailureKind.BUDGET_EXHAUSTED:
        reason = StopReason(failure.stop_reason or StopReason.TOKEN_LIMIT)
        record_stop(reason)
        return RunStopped(reason)
    return ModelCallError(role, failure.kind, failure.message)
