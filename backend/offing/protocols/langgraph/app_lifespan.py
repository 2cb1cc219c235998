"""The lifespan of a project's application: started and stopped as a server does, in a task of its own."""

import asyncio
from typing import Any

from starlette.types import ASGIApp, Message

from offing.core.errors import InvalidInput


class AppLifespan:
    """One start and stop of an application."""

    def __init__(self, app: ASGIApp, field: str) -> None:
        """`field` names the application in errors."""
        self._app, self._field = app, field
        self._received: asyncio.Queue[Message] = asyncio.Queue()
        self._answered: asyncio.Queue[Message] = asyncio.Queue()
        self._task: asyncio.Task[None] | None = None
        self.state: dict[str, Any] = {}
        """What the application yielded for its requests."""

    async def start(self) -> None:
        """Start the application. Raises InvalidInput if it fails to start."""
        scope = {"type": "lifespan", "asgi": {"version": "3.0", "spec_version": "2.0"}, "state": self.state}
        self._task = asyncio.create_task(self._app_task(scope))
        if problem := await self._ask("startup"):
            await asyncio.wait([self._task])
            raise InvalidInput(self._field, f"its lifespan failed to start: {problem}", "Correct it.")

    async def stop(self) -> str:
        """Stop the application, and return why that failed. Empty if it did not."""
        if self._task is None or self._task.done():
            return ""
        problem = await self._ask("shutdown")
        await asyncio.wait([self._task])
        return problem

    async def _ask(self, step: str) -> str:
        """Send an event of the lifespan, and return the last line of its failure. Empty means that it succeeded."""
        self._received.put_nowait({"type": f"lifespan.{step}"})
        answer = await self._answered.get()
        if answer["type"] == f"lifespan.{step}.complete":
            return ""
        lines = str(answer.get("message") or "it ended early").strip().splitlines()
        return lines[-1] if lines else "it ended early"

    async def _app_task(self, scope: dict[str, Any]) -> None:
        async def send(message: Message) -> None:
            self._answered.put_nowait(message)

        try:
            await self._app(scope, self._received.get, send)
        except (Exception, SystemExit) as error:  # the application has said so before, or is said to have ended
            self._answered.put_nowait({"type": "failed", "message": f"{type(error).__name__}: {error}"})
        else:
            self._answered.put_nowait({"type": "ended"})
