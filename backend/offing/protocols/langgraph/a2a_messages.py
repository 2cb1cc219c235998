"""Messages and tasks of A2A, in version 0.3 of the protocol: from parts of a message to input, from a run to a task."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal, cast
from uuid import UUID

from pydantic import Field

from offing.core.run import TERMINAL_STATUSES
from offing.kernel.langgraph_json import dump_json
from offing.protocols.langgraph.json_rpc import INVALID_PARAMS, RpcError, RpcParams
from offing.services.langgraph_run_json import describe_failure, find_run_status
from offing.services.langgraph_run_views import LangGraphRunView

TASK_NOT_FOUND = -32001
TASK_NOT_CANCELABLE = -32002
PUSH_NOT_SUPPORTED = -32003
CONTENT_NOT_SUPPORTED = -32005

ANSWER = "answer"
"""Id of the artifact of a task."""

STATES = {
    "pending": "submitted",
    "running": "working",
    "success": "completed",
    "error": "failed",
    "timeout": "failed",
    "interrupted": "canceled",
}
"""States of tasks by the status of their runs."""


class PartIn(RpcParams):
    kind: str = Field(max_length=20)
    text: str | None = None
    data: dict[str, Any] | None = None


class MessageIn(RpcParams):
    role: Literal["user"]
    parts: Annotated[list[PartIn], Field(min_length=1, max_length=1000)]
    contextId: UUID | None = None
    taskId: UUID | None = None


class SendConfiguration(RpcParams):
    blocking: bool = True
    historyLength: Annotated[int, Field(ge=0, le=1000)] = 0
    pushNotificationConfig: dict[str, Any] | None = None


class SendParams(RpcParams):
    message: MessageIn
    configuration: SendConfiguration | None = None
    metadata: dict[str, Any] | None = None


class TaskParams(RpcParams):
    id: UUID
    historyLength: Annotated[int, Field(ge=0, le=1000)] = 0


def read_parts(message: MessageIn) -> tuple[str, dict[str, Any]]:
    """Return the text of a message, and the fields of its data. Raises RpcError for other parts."""
    texts, fields = list[str](), dict[str, Any]()
    for number, part in enumerate(message.parts):
        if part.kind == "text" and part.text is not None:
            texts.append(part.text)
        elif part.kind == "data" and part.data is not None:
            fields.update(part.data)
        else:
            problem = f"message.parts.{number}: its kind is neither text nor data. Send one of them."
            raise RpcError(CONTENT_NOT_SUPPORTED, problem)
    return "\n".join(texts), fields


def build_input(message: MessageIn, schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the input of a run for a message: fields of its data, and its text as a message of a person.

    `schema` is that of the graph's input. Raises RpcError for a text that it has no place for.
    """
    text, fields = read_parts(message)
    if not text:
        return fields
    properties: Mapping[str, Any] = schema.get("properties") or {}
    if "messages" in properties:
        earlier: Any = fields.get("messages", [])
        if not isinstance(earlier, list):
            raise RpcError(INVALID_PARAMS, "message.parts: messages is no list. Correct it.")
        return {**fields, "messages": [*cast(list[Any], earlier), {"role": "user", "content": text}]}
    if "question" in properties and "question" not in fields:
        return {**fields, "question": text}
    problem = "message.parts: the assistant takes no text, because its input has no messages. Send a part of data."
    raise RpcError(CONTENT_NOT_SUPPORTED, problem)


def build_resume(message: MessageIn, view: LangGraphRunView) -> dict[str, Any]:
    """Return the responses to interrupts, by their ids. Raises RpcError if it is unclear which one is meant."""
    text, fields = read_parts(message)
    ids = [one.id for one in view.interrupts]
    if fields and fields.keys() <= set(ids):
        return fields
    if len(ids) != 1:
        problem = f"message.parts: {len(ids)} interrupts wait. Send a part of data with responses by their ids: "
        raise RpcError(INVALID_PARAMS, problem + ", ".join(ids[:10]))
    return {ids[0]: fields if fields and not text else text}


def render_task(view: LangGraphRunView, history_length: int = 0) -> dict[str, Any]:
    """Return a run as a task. Its answer is the artifact `answer`."""
    task: dict[str, Any] = {
        "kind": "task",
        "id": str(view.row.id),
        "contextId": str(view.row.thread_id),
        "status": render_status(view),
    }
    if parts := _render_answer(view):
        task["artifacts"] = [render_artifact(parts)]
    if history_length and (history := _render_history(view)):
        task["history"] = history[-history_length:]
    return task


def render_artifact(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {"artifactId": ANSWER, "name": ANSWER, "parts": list(parts)}


def render_status(view: LangGraphRunView) -> dict[str, Any]:
    """Return the state of a task, with what it asks of a person or why it failed."""
    row = view.row
    status: dict[str, Any] = {"state": find_state(view), "timestamp": row.updated_at.isoformat()}
    if view.interrupts:
        questions = [
            {"id": one.id, "prompt": one.prompt.prompt, "detail": one.prompt.detail} for one in view.interrupts
        ]
        texts = [_text_part("\n".join(one["prompt"] for one in questions)), _data_part({"interrupts": questions})]
        status["message"] = _render_message(view, "status", "agent", texts)
    elif (failure := describe_failure(row)) is not None:
        parts = [_text_part(f"{failure['error']}: {failure['message']}")]
        status["message"] = _render_message(view, "status", "agent", parts)
    return status


def find_state(view: LangGraphRunView) -> str:
    """Return the state of a task. A run that a graph interrupted needs input."""
    return "input-required" if view.interrupts else STATES[find_run_status(view.row)]


def _render_answer(view: LangGraphRunView) -> list[dict[str, Any]]:
    """Return the last message of a model, or the whole state of a graph without messages. Empty for other ends."""
    if view.row.status not in TERMINAL_STATUSES or find_state(view) != "completed" or view.values is None:
        return []
    if (values := _read_values(view)) is not None:
        text = next((text for role, text in reversed(_list_messages(values)) if role == "agent"), "")
        return [_text_part(text)] if text else [_data_part(values)]
    return [_text_part(view.values if isinstance(view.values, str) else dump_json(view.values).decode())]


def _render_history(view: LangGraphRunView) -> list[dict[str, Any]]:
    messages = _list_messages(_read_values(view) or {})
    return [
        _render_message(view, str(number), role, [_text_part(text)]) for number, (role, text) in enumerate(messages)
    ]


def _read_values(view: LangGraphRunView) -> dict[str, Any] | None:
    values: Any = view.values
    return cast(dict[str, Any], values) if isinstance(values, dict) else None


def _list_messages(values: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return roles and texts of the messages in a state: those of persons and of models that have a text."""
    messages: Any = values.get("messages")
    matches: list[tuple[str, str]] = []
    for one in cast(list[Any], messages) if isinstance(messages, list) else ():
        message = cast(dict[str, Any], one) if isinstance(one, dict) else {}
        role = {"human": "user", "ai": "agent", "AIMessageChunk": "agent"}.get(str(message.get("type")))
        if role and (text := read_text(message.get("content"))):
            matches.append((role, text))
    return matches


def read_text(content: Any) -> str:
    """Return the text of a message's content, which may have parts of other kinds."""
    if isinstance(content, str):
        return content
    parts: Iterable[Any] = cast(list[Any], content) if isinstance(content, list) else ()
    texts: list[Any] = [
        cast(dict[str, Any], part).get("text", "") if isinstance(part, dict) else part for part in parts
    ]
    return "".join(one for one in texts if isinstance(one, str))


def _render_message(
    view: LangGraphRunView, suffix: str, role: str, parts: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    row = view.row
    return {
        "kind": "message",
        "messageId": f"{row.id}-{suffix}",
        "role": role,
        "parts": list(parts),
        "taskId": str(row.id),
        "contextId": str(row.thread_id),
    }


def _text_part(text: str) -> dict[str, Any]:
    return {"kind": "text", "text": text}


def _data_part(data: Mapping[str, Any]) -> dict[str, Any]:
    return {"kind": "data", "data": dict(data)}


def render_status_update(view: LangGraphRunView) -> dict[str, Any]:
    """Return the event that ends the stream of a task."""
    return {
        "kind": "status-update",
        "taskId": str(view.row.id),
        "contextId": str(view.row.thread_id),
        "status": render_status(view),
        "final": True,
    }


def render_artifact_update(
    view: LangGraphRunView, parts: Sequence[Mapping[str, Any]], *, append: bool, is_last: bool
) -> dict[str, Any]:
    """Return the event that adds to the answer of a task, or without `append` replaces it."""
    return {
        "kind": "artifact-update",
        "taskId": str(view.row.id),
        "contextId": str(view.row.thread_id),
        "artifact": render_artifact(parts),
        "append": append,
        "lastChunk": is_last,
    }
