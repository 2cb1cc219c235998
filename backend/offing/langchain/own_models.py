"""Recording of calls to chat models that a graph brings along.

Every call of a LangChain chat model passes `BaseChatModel`'s method for one generation. It is wrapped once per process,
and the wrapper does nothing outside a run of a graph that asks for it. Within one, the call is a role call: journaled,
counted, recorded as training data, and answered by the run's engine for the role, which by default is the model itself
(`offing.models.own_model`). After a crash the recorded message is returned.
"""

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, wraps
from typing import Any, cast

import structlog
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, message_chunk_to_message
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.utils.function_calling import convert_to_openai_tool

from offing.core.errors import InvalidInput
from offing.core.model import EngineFailure, FailureKind
from offing.langchain import text_tool_calls
from offing.langchain.caller_name import find_caller_name
from offing.langchain.chat import OffingChatModel, error_from_failure, resolve_tool_choice, to_chunk
from offing.langchain.chat_values import (
    ChatPrompt,
    ChatReply,
    ChatTool,
    ChatToolCall,
    extract_part_text,
    to_ai_message,
    to_chat_messages,
)
from offing.langchain.role import create_chat_role
from offing.models.own_model import OwnAnswer, use_own_model
from offing.sdk.current_run import get_current_run, is_on_run_loop, run_blocking

log = structlog.get_logger()

_recorded_role: ContextVar[str] = ContextVar("offing_own_models", default="")
"""Role of the calls. Empty means that calls are not recorded here."""


@contextmanager
def record_own_models(role: str) -> Generator[None]:
    """Record calls of the graph's own chat models as calls of `role` while the context is open."""
    _install_wrappers()
    token = _recorded_role.set(role)
    try:
        yield
    finally:
        _recorded_role.reset(token)


@cache
def _install_wrappers() -> None:
    _wrap_generation()
    _wrap_streams()


def _wrap_generation() -> None:
    generate, agenerate = BaseChatModel._generate_with_cache, BaseChatModel._agenerate_with_cache  # pyright: ignore[reportPrivateUsage]

    @wraps(generate)
    def recorded_generate(
        model: BaseChatModel, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        def call() -> ChatResult:
            return generate(model, messages, stop, run_manager, **kwargs)

        if not _is_recorded(model):
            return call()
        if is_on_run_loop():
            log.warning("a model call on the event loop is not recorded, use ainvoke", model=type(model).__name__)
            return call()

        async def work() -> ChatResult:
            return await asyncio.to_thread(call)

        return run_blocking(_record(model, messages, stop, run_manager, kwargs, work))

    @wraps(agenerate)
    async def recorded_agenerate(
        model: BaseChatModel, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        async def work() -> ChatResult:
            return await agenerate(model, messages, stop, run_manager, **kwargs)

        if not _is_recorded(model):
            return await work()
        return await _record(model, messages, stop, run_manager, kwargs, work)

    changed = cast(Any, BaseChatModel)
    changed._generate_with_cache, changed._agenerate_with_cache = recorded_generate, recorded_agenerate


def _wrap_streams() -> None:
    """Return the answer as one chunk, because it is recorded before the graph reads it.

    Subscribers of LangGraph's stream get the tokens while they come: the model streams them to its callbacks.
    """
    stream, astream = BaseChatModel.stream, BaseChatModel.astream

    @wraps(stream)
    def recorded_stream(model: BaseChatModel, *args: Any, **kwargs: Any) -> Iterator[AIMessageChunk]:
        if not _is_recorded(model) or is_on_run_loop():
            yield from stream(model, *args, **kwargs)
        else:
            yield cast(AIMessageChunk, to_chunk(model.invoke(*args, **kwargs)).message)

    @wraps(astream)
    async def recorded_astream(model: BaseChatModel, *args: Any, **kwargs: Any) -> AsyncIterator[AIMessageChunk]:
        if not _is_recorded(model):
            async for chunk in astream(model, *args, **kwargs):
                yield chunk
        else:
            yield cast(AIMessageChunk, to_chunk(await model.ainvoke(*args, **kwargs)).message)

    changed = cast(Any, BaseChatModel)
    changed.stream, changed.astream = recorded_stream, recorded_astream


def _is_recorded(model: BaseChatModel) -> bool:
    return bool(_recorded_role.get()) and not isinstance(model, OffingChatModel)


async def _record(
    model: BaseChatModel,
    messages: Sequence[BaseMessage],
    stop: Any,
    run_manager: Any,
    options: Mapping[str, Any],
    work: Callable[[], Awaitable[ChatResult]],
) -> ChatResult:
    """Make the call as a role call. Raises the model's own error when it fails, and RunStopped at a limit."""
    role_name, results, errors = _recorded_role.get(), list[ChatResult](), list[Exception]()

    async def call() -> OwnAnswer:
        token = _recorded_role.set("")  # a model that calls other models is one call
        try:
            results.append(await work())
        except Exception as error:
            errors.append(error)
            raise
        finally:
            _recorded_role.reset(token)
        return _build_answer(model, results[-1])

    context = get_current_run()
    run_id = str(context.run.origin_run_id or context.run.id)
    prompt = _build_prompt(messages, stop, options, run_id)
    caller = find_caller_name(run_manager.metadata) if run_manager else ""
    with use_own_model(call):
        reply = await context.call_role(create_chat_role(role_name, caller), prompt, turn=prompt.turn)
    if isinstance(reply, EngineFailure):
        stopped = reply.kind is FailureKind.BUDGET_EXHAUSTED
        raise errors[-1] if errors and not stopped else error_from_failure(role_name, reply)
    if results:
        return results[-1]
    if reply.output.message:
        return _build_result(AIMessage.model_validate(reply.output.message))
    return _build_result(to_ai_message(reply.output, run_id=run_id, seq=reply.seq, usage=reply.tokens, model=role_name))


def _build_result(message: AIMessage) -> ChatResult:
    return ChatResult(generations=[ChatGeneration(message=message)])


def _build_answer(model: BaseChatModel, result: ChatResult) -> OwnAnswer:
    message = cast(AIMessage, message_chunk_to_message(result.generations[0].message))
    calls = tuple(ChatToolCall(name=one["name"], args=one["args"]) for one in message.tool_calls)
    reply = ChatReply(text=str(message.text), calls=calls, message=message.model_dump(mode="json", exclude_none=True))
    usage: Mapping[str, Any] = message.usage_metadata or {}
    return OwnAnswer(
        reply,
        text_tool_calls.render_reply(reply),
        _find_model_name(model, message),
        int(usage.get("input_tokens", 0)),
        int(usage.get("output_tokens", 0)),
    )


def _find_model_name(model: BaseChatModel, message: AIMessage) -> str:
    reported = message.response_metadata.get("model_name") or message.response_metadata.get("model")
    return str(reported or getattr(model, "model_name", "") or getattr(model, "model", "") or type(model).__name__)


def _build_prompt(messages: Sequence[BaseMessage], stop: Any, options: Mapping[str, Any], run_id: str) -> ChatPrompt:
    tools = tuple(_build_tool(one) for one in options.get("tools") or ())
    return ChatPrompt(
        messages=to_chat_messages([_replace_unrecorded_parts(one) for one in messages], run_id),
        tools=tools,
        must_call=_find_required_tool(options.get("tool_choice"), tools),
        stop=tuple(stop or ()),
        one_call=options.get("parallel_tool_calls") is False and bool(tools),
    )


def _build_tool(tool: Any) -> ChatTool:
    """Return a tool in the record. Of a tool that the provider runs, only the name is known."""
    kind = type(tool).__name__
    try:
        function = convert_to_openai_tool(tool)["function"]
    except (KeyError, ValueError, TypeError):
        named: Mapping[str, Any] = cast(Mapping[str, Any], tool) if isinstance(tool, Mapping) else {}
        return ChatTool(name=str(named.get("name") or named.get("type") or kind))
    return ChatTool(
        name=function["name"], description=function.get("description", ""), parameters=function.get("parameters", {})
    )


def _find_required_tool(choice: str | bool | dict[str, Any] | None, tools: Sequence[ChatTool]) -> str:
    if isinstance(choice, dict) and choice.get("type") in ("any", "required"):
        return "any"
    try:
        return resolve_tool_choice(choice, [tool.model_dump() for tool in tools])
    except InvalidInput:
        return ""  # a choice in the provider's own format


def _replace_unrecorded_parts(message: BaseMessage) -> BaseMessage:
    """Return the message with a text in place of each part that is not text, such as an image.

    The text contains a hash of the part, so that calls with different images are different calls.
    """
    if isinstance(message.content, str):
        return message
    parts = [_describe_part(part) for part in message.content]
    return message if parts == message.content else message.model_copy(update={"content": parts})


def _describe_part(part: Any) -> Any:
    try:
        extract_part_text(part)
    except InvalidInput:
        digest = hashlib.sha256(json.dumps(part, sort_keys=True, default=str).encode()).hexdigest()[:12]
        return {"type": "text", "text": f"[{part.get('type')} {digest}: its content is not recorded]"}
    return part
