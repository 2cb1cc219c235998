"""The role behind a chat model of a LangGraph graph: how an engine is asked for the next message."""

import json
from collections.abc import Sequence
from typing import Any

from offing.core.model import InvalidOutput
from offing.core.step import StepKind, shorten_line
from offing.langchain import text_tool_calls
from offing.langchain.chat_values import ChatMessage, ChatPrompt, ChatReply, ChatToolCall
from offing.sdk.native_chat import NativeCall, NativeChat, NativeChatAdapter
from offing.sdk.prompt_format import PromptFormat
from offing.sdk.role import Headline, Role

TEXT_FORMAT: PromptFormat[ChatPrompt, ChatReply] = PromptFormat(
    "text", text_tool_calls.render_prompt, text_tool_calls.parse_reply, spans=text_tool_calls.find_spans, write=None
)
"""Prompt format for engines that take only text. The policy engine always uses it."""


def create_chat_role(name: str, caller_name: str = "") -> Role[ChatPrompt, ChatReply]:
    """Create the role that engines are configured by under `name`.

    `caller_name` is the name of the calling agent, for people. If it is empty, the name of the role is
    shown.
    """
    return Role(
        name=name,
        input=ChatPrompt,
        output=ChatReply,
        render=text_tool_calls.render_prompt,
        headline=_build_headline,
        step_kind=StepKind.ROLE_CALL,
        label=caller_name or name,
        prompt_formats=(TEXT_FORMAT,),
        native_chat=NativeChatAdapter(_build_native_chat, _parse_reply, text_tool_calls.render_reply),
    )


def _build_headline(reply: ChatReply) -> Headline:
    if not reply.calls:
        return Headline(shorten_line(reply.text) or "Says nothing")
    called = ", ".join(f"{call.name}({_render_arguments(call)})" for call in reply.calls)
    return Headline(f"Calls {called}", reply.text)


def _render_arguments(call: ChatToolCall) -> str:
    return ", ".join(str(value) for _, value in sorted(call.args.items()))


def _build_native_chat(chat: ChatPrompt) -> NativeChat:
    tools = [
        {"type": "function", "function": {"name": t.name, "description": t.description, "parameters": t.parameters}}
        for t in chat.tools
    ]
    system_messages = (
        [{"role": "system", "content": "\n\n".join(requirements)}]
        if (requirements := text_tool_calls.list_requirements(chat))
        else []
    )
    return NativeChat(
        (*system_messages, *map(_build_native_message, chat.messages)), tuple(tools), _build_tool_choice(chat)
    )


def _build_tool_choice(chat: ChatPrompt) -> str | dict[str, Any]:
    if chat.must_call in ("", "any"):
        return "required" if chat.must_call else ""
    return {"type": "function", "function": {"name": chat.must_call}}


def _build_native_message(message: ChatMessage) -> dict[str, Any]:
    if message.role == "tool":
        return {"role": "tool", "content": message.text, "tool_call_id": message.answers}
    if not message.calls:
        return {"role": message.role, "content": message.text}
    calls = [
        {"id": id, "type": "function", "function": {"name": c.name, "arguments": json.dumps(c.args, sort_keys=True)}}
        for id, c in zip(message.call_ids, message.calls, strict=True)
    ]
    return {"role": message.role, "content": message.text, "tool_calls": calls}


def _parse_reply(text: str, calls: Sequence[NativeCall], chat: ChatPrompt) -> ChatReply | InvalidOutput:
    chat_calls: list[ChatToolCall] = []
    for call in calls:
        read = text_tool_calls.parse_call(f'{{"name": {json.dumps(call.name)}, "arguments": {call.arguments or "{}"}}}')
        if isinstance(read, InvalidOutput):
            return read
        chat_calls.append(read)
    return text_tool_calls.validate_reply(ChatReply(text=text, calls=tuple(chat_calls)), chat)
