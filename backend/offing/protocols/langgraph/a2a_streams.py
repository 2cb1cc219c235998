"""The stream of a task of A2A: its answer while a model writes it, and its end."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, cast

import orjson

from offing.bus.stream_messages import KeptEvent
from offing.kernel.langgraph_json import dump_json
from offing.protocols.langgraph.a2a_messages import (
    read_text,
    render_artifact_update,
    render_status_update,
    render_task,
)
from offing.protocols.langgraph.json_rpc import build_result
from offing.protocols.langgraph.run_feeds import RunFeed
from offing.services.langgraph_run_views import LangGraphRunView, get_view


@dataclass(slots=True)
class StreamedAnswer:
    """The message of a model that a stream shows as the answer: the one that was last written to."""

    _texts: dict[str, str] = field(default_factory=dict[str, str])
    """What was written of each message, by id."""
    _shown_id: str = ""
    """Id of the message that is shown. Empty means none."""

    def add(self, event: KeptEvent) -> tuple[str, bool] | None:
        """Return the text of an event and whether it continues what is shown. `None` means that nothing changes.

        A message whose writing broke off with its worker is withdrawn: an empty text then replaces it.
        """
        message = _read_message(event)
        id, kind = str(message.get("id")), message.get("type")
        if kind == "remove":
            was_shown_id = self._texts.pop(id, "") and id == self._shown_id
            return ("", False) if was_shown_id else None
        text = read_text(message.get("content"))
        if kind not in ("ai", "AIMessageChunk") or not text:
            return None
        before, continues = self._texts.get(id, ""), id == self._shown_id
        self._shown_id = id
        if kind == "ai":  # a whole message
            self._texts[id] = text
            return (text, False) if text != before or not continues else None
        self._texts[id] = before + text
        return (text, True) if continues and before else (self._texts[id], False)


def _read_message(event: KeptEvent) -> dict[str, Any]:
    if event.event.event.partition("|")[0] != "messages":
        return {}
    pair: Any = orjson.loads(event.event.data)
    message: Any = cast(list[Any], pair)[0] if isinstance(pair, list) and pair else None
    return cast(dict[str, Any], message) if isinstance(message, dict) else {}


async def stream_task(id: Any, feed: RunFeed) -> AsyncGenerator[bytes]:
    """Return the events of a task until its run ends, as answers to the request with this id."""
    view = LangGraphRunView(feed.run, None, (), ())
    yield _encode(id, render_task(view))
    draft = StreamedAnswer()
    async with aclosing(feed.follow()) as events:
        async for event in events:
            if event is None:
                yield b": heartbeat\n\n"
            elif (change := draft.add(event)) is not None:
                text, append = change
                part = {"kind": "text", "text": text}
                yield _encode(id, render_artifact_update(view, [part], append=append, is_last=False))
    caller = feed.caller
    ended = await get_view(caller.database, caller.tenant_id, caller.context.graphs, feed.run.id)
    if caller.context.bus.is_closing and not ended.has_ended:
        return  # the server stops; the client asks for the task, or subscribes again
    for artifact in render_task(ended).get("artifacts", ()):
        yield _encode(id, render_artifact_update(ended, artifact["parts"], append=False, is_last=True))
    yield _encode(id, render_status_update(ended))


def _encode(id: Any, result: Any) -> bytes:
    return b"data: " + dump_json(build_result(id, result)) + b"\n\n"
