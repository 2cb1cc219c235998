"""The role behind a chat model of a LangGraph graph: how any engine is asked for the next message of a conversation."""

import json
from collections.abc import Sequence
from typing import Any

from offing.core.model import Unusable
from offing.core.step import StepKind, shortened
from offing.langchain import words
from offing.langchain.dialogue import Call, Chat, Reply, Said
from offing.sdk.form import Form
from offing.sdk.native import Native, NativeCall, NativeChat
from offing.sdk.role import Headline, Role

FORM: Form[Chat, Reply] = Form("plain", words.rendered, words.parsed, spans=words.spans, write=None)
"""For engines that take text only; the policy engine asks in it by itself."""


def chat_role(name: str, asker: str = "") -> Role[Chat, Reply]:
    """The role that engines are configured by under `name`. `asker`: who asks, for people. Empty: the role itself."""
    return Role(
        name=name,
        input=Chat,
        output=Reply,
        render=words.rendered,
        headline=_headline,
        kind=StepKind.TURN,
        label=asker or name,
        forms=(FORM,),
        native=Native(_native_chat, _read, words.written),
    )


def _headline(reply: Reply) -> Headline:
    if not reply.calls:
        return Headline(shortened(reply.text) or "Says nothing")
    called = ", ".join(f"{call.name}({_arguments(call)})" for call in reply.calls)
    return Headline(f"Calls {called}", reply.text)


def _arguments(call: Call) -> str:
    return ", ".join(str(value) for _, value in sorted(call.args.items()))


def _native_chat(chat: Chat) -> NativeChat:
    tools = [
        {"type": "function", "function": {"name": t.name, "description": t.description, "parameters": t.parameters}}
        for t in chat.tools
    ]
    told = [{"role": "system", "content": "\n\n".join(asked)}] if (asked := words.wanted(chat)) else []
    return NativeChat((*told, *map(_native_message, chat.said)), tuple(tools), _choice(chat))


def _choice(chat: Chat) -> str | dict[str, Any]:
    if chat.must_call in ("", "any"):
        return "required" if chat.must_call else ""
    return {"type": "function", "function": {"name": chat.must_call}}


def _native_message(said: Said) -> dict[str, Any]:
    if said.role == "tool":
        return {"role": "tool", "content": said.text, "tool_call_id": said.answers}
    if not said.calls:
        return {"role": said.role, "content": said.text}
    calls = [
        {"id": id, "type": "function", "function": {"name": c.name, "arguments": json.dumps(c.args, sort_keys=True)}}
        for id, c in zip(said.call_ids, said.calls, strict=True)
    ]
    return {"role": said.role, "content": said.text, "tool_calls": calls}


def _read(text: str, calls: Sequence[NativeCall], chat: Chat) -> Reply | Unusable:
    found: list[Call] = []
    for call in calls:
        read = words.call_of(f'{{"name": {json.dumps(call.name)}, "arguments": {call.arguments or "{}"}}}')
        if isinstance(read, Unusable):
            return read
        found.append(read)
    return words.checked(Reply(text=text, calls=tuple(found)), chat)
