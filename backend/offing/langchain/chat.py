"""The chat model that a LangGraph graph uses in place of a provider's: each call goes through the run's context.

So it is journalled, budgeted, answered by the engine that the run's configuration names, and recorded as a turn. The
only home of that exchange; knows no engine and no storage.
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
from offing.langchain.asker import asker
from offing.langchain.dialogue import Chat, Tool, answer_of, said_in
from offing.langchain.endings import ModelFailed, RunStopped
from offing.langchain.role import chat_role
from offing.sdk.running import running, stopped, waited

ANY = frozenset({"any", "required"})
FREE = frozenset({"auto", "none", ""})
DECLARED = frozenset({"function", "object", "custom"})
"""Types of mappings that declare a tool of the graph's own."""


class OffingChatModel(BaseChatModel):
    """A chat model by the name that engines are configured by: `OffingChatModel("agent")`.

    Works inside a run only. In an async node use `ainvoke`; in a plain one `invoke` waits in its thread.
    """

    name: str | None = "agent"
    """The role that `engines` of a run names."""
    cache: BaseCache | bool | None = False
    """Not even LangChain's global one: an answer from there would go past the record."""

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
        """The same model, which may call these tools. `tool_choice`: a tool's name, `any`, or nothing."""
        shapes = [_shape(tool).model_dump() for tool in tools]
        return self.bind(tools=shapes, tool_choice=_choice(tool_choice, shapes), **kwargs)

    def with_structured_output(
        self,
        schema: dict[str, Any] | type,
        *,
        include_raw: bool = False,
        method: Literal["function_calling", "json_schema", "json_mode"] = "function_calling",
        strict: bool | None = None,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, dict[str, Any] | BaseModel]:
        """The same model, whose answers are of that shape. Whatever the method, it is asked for as a tool that must be
        called, which every engine can be."""
        return super().with_structured_output(schema, include_raw=include_raw, **kwargs)

    def get_num_tokens(self, text: str) -> int:
        """An estimate: which tokenizer counts is not known before a run."""
        return count_tokens_approximately([HumanMessage(text)])

    def get_num_tokens_from_messages(
        self,
        messages: list[BaseMessage],
        tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool] | None = None,
    ) -> int:
        """An estimate, tools included."""
        shapes = [convert_to_openai_tool(tool) for tool in tools or ()]
        return count_tokens_approximately(messages) + sum(self.get_num_tokens(json.dumps(one)) for one in shapes)

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        answer = await self._answered(messages, stop, kwargs, run_manager)
        return ChatResult(generations=[ChatGeneration(message=answer)])

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        answer = waited(self._answered(messages, stop, kwargs, run_manager))
        return ChatResult(generations=[ChatGeneration(message=answer)])

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        """The whole answer as one chunk: it is recorded before anybody sees it."""
        yield _chunk(await self._answered(messages, stop, kwargs, run_manager))

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        yield _chunk(waited(self._answered(messages, stop, kwargs, run_manager)))

    async def _answered(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None,
        options: dict[str, Any],
        called: BaseRunManager | None,
    ) -> AIMessage:
        context = running()
        run = str(context.run.origin_id or context.run.id)
        chat = Chat(
            said=said_in(messages, run),
            tools=tuple(Tool(**tool) for tool in options.get("tools") or ()),
            must_call=options.get("tool_choice") or "",
            stop=tuple(stop or ()),
            one_call=options.get("parallel_tool_calls") is False and bool(options.get("tools")),
            answer_schema=_answer_schema(options.get("response_format")),
        )
        who = asker(called.metadata) if called else ""
        reply = await context.call(chat_role(self.role, who), chat, turn=chat.turn)
        if isinstance(reply, EngineFailure):
            raise _failed(self.role, reply)
        return answer_of(reply.output, run=run, seq=reply.seq, used=reply.tokens, model=self.role)


def _shape(tool: dict[str, Any] | type | Callable[..., Any] | BaseTool) -> Tool:
    kind = str(cast(dict[str, Any], tool).get("type", "function")) if isinstance(tool, dict) else "function"
    if kind not in DECLARED:
        problem = f"a tool of type {kind!r}, which its provider runs by itself, is not taken"
        raise InvalidInput("tools", problem, "Give the graph a tool of its own.")
    function = convert_to_openai_tool(cast(Any, tool))["function"]
    return Tool(
        name=function["name"], description=function.get("description", ""), parameters=function.get("parameters", {})
    )


def _answer_schema(format: Any) -> dict[str, Any]:
    """The schema in a provider's `response_format`, which may also be a class. Empty: any words."""
    if format is None:
        return {}
    if not isinstance(format, dict):
        return convert_to_json_schema(format)
    asked = cast(dict[str, Any], format)
    if asked.get("type") == "json_object":
        return {"type": "object"}
    return asked.get("json_schema", {}).get("schema", {})


def _choice(wanted: str | dict[str, Any] | bool | None, shapes: Sequence[dict[str, Any]]) -> str:
    """The name of the tool that must be called, `any`, or nothing. Raises InvalidInput for a tool that is not bound."""
    names = {shape["name"] for shape in shapes}
    if isinstance(wanted, dict):
        wanted = str(wanted.get("function", wanted).get("name", ""))
    if isinstance(wanted, bool) or wanted is None:
        return "any" if wanted else ""
    if wanted in names:
        return wanted
    if wanted in ANY | FREE:
        return "any" if wanted in ANY else ""
    raise InvalidInput("tool_choice", f"{wanted!r} is none of the bound tools", f"Use any, or one of: {sorted(names)}.")


def _chunk(message: AIMessage) -> ChatGenerationChunk:
    fields = message.model_dump(exclude={"type", "tool_calls", "invalid_tool_calls"})
    calls = [
        tool_call_chunk(name=c["name"], args=json.dumps(c["args"]), id=c["id"], index=n)
        for n, c in enumerate(message.tool_calls)
    ]
    return ChatGenerationChunk(message=AIMessageChunk(**fields, tool_call_chunks=calls, chunk_position="last"))


def _failed(role: str, failure: EngineFailure) -> Exception:
    if failure.kind is FailureKind.OUT_OF_BUDGET:
        reason = StopReason(failure.stop or StopReason.TOKEN_LIMIT)
        stopped(reason)
        return RunStopped(reason)
    return ModelFailed(role, failure.kind, failure.message)
