"""The thread-centric protocol over WebSocket: commands in, responses and the events of subscriptions out."""

import asyncio
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import orjson
from fastapi import WebSocket, WebSocketDisconnect

from offing.cancellation import cancel_tasks
from offing.clock import new_id
from offing.core.errors import OffingError, Unauthorized
from offing.kernel.langgraph_json import dump_json
from offing.protocols.langgraph.context import Caller
from offing.protocols.langgraph.thread_commands import answer_command, describe_error, read_object
from offing.protocols.langgraph.thread_feeds import ThreadFeed
from offing.protocols.langgraph.thread_subscriptions import SubscribeIn, parse_filter

MAX_SUBSCRIPTIONS = 100
"""Maximum number of subscriptions of a connection."""

UNAUTHORIZED = 4401
"""4000 and the HTTP status, as clients expect it."""


@dataclass(slots=True)
class ThreadSocket:
    """One connection. Only it writes to the socket."""

    socket: WebSocket
    caller: Caller
    thread_id: UUID
    _subscriptions: dict[str, asyncio.Task[None]] = field(default_factory=dict[str, "asyncio.Task[None]"])
    _sending: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def serve(self) -> None:
        """Answer commands until the client leaves."""
        try:
            while True:
                await self._answer(await self._receive())
        except WebSocketDisconnect:
            pass
        finally:
            await cancel_tasks(self._subscriptions.values())

    async def _receive(self) -> str | bytes:
        """Return the next message, which a client may send as text or as bytes. Raises WebSocketDisconnect."""
        message = await self.socket.receive()
        if message["type"] == "websocket.disconnect":
            raise WebSocketDisconnect(message["code"])
        text: str | None = message.get("text")
        return message["bytes"] if text is None else text

    async def _answer(self, text: str | bytes) -> None:
        try:
            command: Any = orjson.loads(text)
        except orjson.JSONDecodeError:
            return await self._send(describe_error(None, "invalid_argument", "A command is a JSON object."))
        fields = read_object(command)
        method, number = fields.get("method"), fields.get("id")
        if method == "subscription.subscribe" and isinstance(number, int):
            await self._subscribe(number, fields.get("params"))
        elif method == "subscription.unsubscribe" and isinstance(number, int):
            await self._unsubscribe(number, fields.get("params"))
        else:
            await self._send(await answer_command(self.caller, self.thread_id, command))

    async def _subscribe(self, number: int, params: Any) -> None:
        try:
            subscription = SubscribeIn.model_validate(params)
            feed = ThreadFeed(self.caller, self.thread_id, parse_filter(subscription), subscription.since)
        except ValueError as error:
            return await self._send(describe_error(number, "invalid_argument", str(error).replace("\n", " ")[:500]))
        if len(self._subscriptions) >= MAX_SUBSCRIPTIONS:
            return await self._send(describe_error(number, "invalid_argument", "There are too many subscriptions."))
        name = str(new_id())
        await self._send({"type": "success", "id": number, "result": {"subscription_id": name}})
        self._subscriptions[name] = asyncio.create_task(self._forward(feed))

    async def _unsubscribe(self, number: int, params: Any) -> None:
        name = read_object(params).get("subscription_id")
        task = self._subscriptions.pop(name, None) if isinstance(name, str) else None
        if task is None:
            return await self._send(describe_error(number, "no_such_subscription", "There is no such subscription."))
        await cancel_tasks([task])
        await self._send({"type": "success", "id": number, "result": {}})

    async def _forward(self, feed: ThreadFeed) -> None:
        try:
            async with aclosing(feed.read_events()) as events:
                async for event in events:
                    if event is not None:
                        await self._send(event)
            await self._close(1012)
        except Unauthorized:
            await self._close(UNAUTHORIZED)
        except OffingError:
            await self._close(1011)

    async def _send(self, message: Any) -> None:
        async with self._sending:
            with suppress(WebSocketDisconnect, RuntimeError):  # the client has left; receiving tells it
                await self.socket.send_text(dump_json(message).decode())

    async def _close(self, code: int) -> None:
        async with self._sending:
            with suppress(WebSocketDisconnect, RuntimeError):
                await self.socket.close(code)
