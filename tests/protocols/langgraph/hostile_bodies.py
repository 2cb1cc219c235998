"""Schemas of the bodies that routes read themselves, and so do not describe: JSON-RPC and commands."""

from collections.abc import Mapping, Sequence
from typing import Any

from offing.protocols.langgraph.thread_commands import HANDLERS


def build_object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


TEXT = {"type": "string"}
CONFIG = {"$ref": "#/components/schemas/ConfigIn"}

COMMAND = build_object(
    id={"type": "integer"},
    method={"enum": [*HANDLERS, "subscription.subscribe", "subscription.unsubscribe"]},
    params=build_object(
        assistant_id=TEXT,
        input={},
        config=CONFIG,
        context=build_object(),
        metadata=build_object(),
        multitaskStrategy=TEXT,
        interrupt_before={},
        interrupt_id=TEXT,
        response={},
        responses={"type": "array", "items": build_object(interrupt_id=TEXT, response={})},
        namespace={"type": "array", "items": TEXT},
        keys={"type": "array", "items": TEXT},
        limit={"type": "integer"},
        before=TEXT,
        checkpoint_id=TEXT,
        goto=TEXT,
        update={},
        channels={"type": "array", "items": {"enum": ["values", "messages", "lifecycle", "input", "nothing"]}},
        since={"type": "integer"},
        subscription_id=TEXT,
    ),
)
"""A command of the thread-centric protocol."""


def _build_message(methods: Sequence[str], params: Mapping[str, Any]) -> dict[str, Any]:
    required = {"required": ["jsonrpc", "method", "id", "params"]}
    return build_object(jsonrpc={"enum": ["2.0"]}, id={"title": RPC_ID}, method={"enum": methods}, params=params) | (
        required
    )


RPC_ID = "id of a message"
"""Title of the schema of such an id."""

PART = build_object(
    kind={"enum": ["text", "data", "file"]}, text=TEXT, data=build_object(), file=build_object(uri=TEXT, bytes=TEXT)
)

MCP_MESSAGE = _build_message(
    (
        "initialize",
        "ping",
        "tools/list",
        "tools/call",
        "tools/call",
        "tools/call",
        "resources/list",
        "notifications/cancelled",
        "notifications/initialized",
    ),
    build_object(
        name={"anyOf": [{"enum": ["trail", "chatter", "approval", "agentflow", "nothing", ""]}, {"title": "tool"}]},
        arguments=build_object(),
        cursor=TEXT,
        protocolVersion=TEXT,
        capabilities=build_object(),
        requestId={"title": RPC_ID},
        _meta=build_object(progressToken={}),
    )
    | {"required": ["name", "arguments"]},
)

A2A_MESSAGE = _build_message(
    (
        "message/send",
        "message/stream",
        "tasks/get",
        "tasks/cancel",
        "tasks/resubscribe",
        "tasks/list",
        "tasks/pushNotificationConfig/set",
        "agent/getAuthenticatedExtendedCard",
    ),
    build_object(
        id=TEXT,
        historyLength={"type": "integer"},
        metadata=build_object(),
        message=build_object(
            role={"enum": ["user", "user", "agent"]},
            messageId=TEXT,
            contextId=TEXT,
            taskId=TEXT,
            parts={"type": "array", "items": PART},
        )
        | {"required": ["role", "parts"]},
        configuration=build_object(blocking={"type": "boolean"}, pushNotificationConfig=build_object(url=TEXT)),
    )
    | {"required": ["message", "id"]},
)

OWN_BODIES: Mapping[tuple[str, str], Mapping[str, Any]] = {
    ("POST", "/mcp"): MCP_MESSAGE,
    ("POST", "/mcp/"): MCP_MESSAGE,
    ("POST", "/a2a/{assistant_id}"): A2A_MESSAGE,
    ("POST", "/threads/{thread_id}/commands"): COMMAND,
}
"""By method and path."""
