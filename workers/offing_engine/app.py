"""HTTP in front of the engine: routes, the bearer token, error bodies, callers that go away.

A bare ASGI application; it knows requests as bytes and hands them to `answers`.
"""

import asyncio
import hmac
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import orjson

from offing.core.errors import Conflict, InvalidInput, NotFound, OffingError
from offing_engine import answers
from offing_engine.scheduler import Busy, Engine
from offing_engine.wire import (
    ChatRequest,
    CompletionRequest,
    LoadAdapter,
    LoadPolicy,
    TokenizeRequest,
    UnloadAdapter,
    UnloadPolicy,
    error_body,
    read,
)

LARGEST_BODY = 32_000_000

log = logging.getLogger("offing.engine")

Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
Handler = Callable[[bytes], Awaitable[dict[str, Any]]]


class Gone(Exception):
    """The caller has hung up."""


class App:
    """`token`: what a bearer must show. None: whoever reaches the socket may ask."""

    def __init__(self, engine: Engine, token: str | None) -> None:
        self._engine, self._token = engine, token
        self._routes: dict[tuple[str, str], Handler] = {
            ("GET", "/health"): self._health,
            ("GET", "/v1/models"): self._models,
            ("POST", "/v1/chat/completions"): self._chat,
            ("POST", "/v1/completions"): self._complete,
            ("POST", "/tokenize"): self._tokenize,
            ("POST", "/v1/load_lora_adapter"): self._load_adapter,
            ("POST", "/v1/unload_lora_adapter"): self._unload_adapter,
            ("POST", "/v1/load_policy"): self._load,
            ("POST", "/v1/unload_policy"): self._unload,
        }

    async def __call__(self, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        try:
            status, body = await self._answered(scope, receive)
        except Gone:
            return
        payload = orjson.dumps(body)
        head = [(b"content-type", b"application/json"), (b"content-length", str(len(payload)).encode())]
        if status == 503:
            head.append((b"retry-after", b"1"))
        await send({"type": "http.response.start", "status": status, "headers": head})
        await send({"type": "http.response.body", "body": payload})

    async def _answered(self, scope: Mapping[str, Any], receive: Receive) -> tuple[int, dict[str, Any]]:
        handler = self._routes.get((scope["method"], scope["path"]))
        if not self._admits(scope):
            return 401, error_body("The bearer token is missing or wrong.", "AuthenticationError", None, 401)
        if handler is None:
            return 404, error_body(f"There is no {scope['method']} {scope['path']}.", "NotFoundError", None, 404)
        body = await _body(receive)
        if body is None:
            return 413, error_body(f"More than {LARGEST_BODY} bytes.", "BadRequestError", None, 413)
        return await _guarded(_while_connected(handler(body), receive))

    def _admits(self, scope: Mapping[str, Any]) -> bool:
        if self._token is None or scope["path"] == "/health":
            return True
        shown = dict(scope["headers"]).get(b"authorization", b"")
        return hmac.compare_digest(shown, f"Bearer {self._token}".encode())

    async def _health(self, _: bytes) -> dict[str, Any]:
        return {"status": "ok", "system_fingerprint": answers.BUILD, "models": list(self._engine.policies)}

    async def _models(self, _: bytes) -> dict[str, Any]:
        return answers.models(self._engine)

    async def _chat(self, body: bytes) -> dict[str, Any]:
        return await answers.chat(self._engine, read(ChatRequest, body))

    async def _complete(self, body: bytes) -> dict[str, Any]:
        return await answers.complete(self._engine, read(CompletionRequest, body))

    async def _tokenize(self, body: bytes) -> dict[str, Any]:
        return answers.tokenize(self._engine, read(TokenizeRequest, body))

    async def _load_adapter(self, body: bytes) -> dict[str, Any]:
        asked = read(LoadAdapter, body)
        return await answers.load(self._engine, LoadPolicy(name=asked.lora_name, path=asked.lora_path, base=asked.base))

    async def _unload_adapter(self, body: bytes) -> dict[str, Any]:
        return await answers.unload(self._engine, read(UnloadAdapter, body).lora_name)

    async def _load(self, body: bytes) -> dict[str, Any]:
        return await answers.load(self._engine, read(LoadPolicy, body))

    async def _unload(self, body: bytes) -> dict[str, Any]:
        return await answers.unload(self._engine, read(UnloadPolicy, body).name)


async def _body(receive: Receive) -> bytes | None:
    """The whole request body. None: it is larger than allowed."""
    parts: list[bytes] = []
    size, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Gone
        parts.append(message.get("body", b""))
        size, more = size + len(parts[-1]), message.get("more_body", False)
        if size > LARGEST_BODY:
            return None
    return b"".join(parts)


async def _while_connected(answer: Awaitable[dict[str, Any]], receive: Receive) -> dict[str, Any]:
    """What `answer` gives. Raises Gone, with it cancelled, when the caller hangs up first."""
    working, listening = asyncio.ensure_future(answer), asyncio.ensure_future(receive())
    try:
        await asyncio.wait({working, listening}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise Gone
        return working.result()
    finally:
        working.cancel()
        listening.cancel()


async def _guarded(answer: Awaitable[dict[str, Any]]) -> tuple[int, dict[str, Any]]:
    """Status and body, errors included."""
    try:
        return 200, await answer
    except InvalidInput as error:
        return 400, error_body(str(error), "BadRequestError", error.field, 400)
    except NotFound as error:
        known = "It is not loaded here, and no other version answers in its place; see GET /v1/models."
        return 404, error_body(f"{error} {known}", "NotFoundError", "model", 404)
    except Conflict as error:
        return 409, error_body(str(error), "ConflictError", None, 409)
    except Busy:
        return 503, error_body("Too many requests wait; try again.", "ServiceUnavailableError", None, 503)
    except OffingError as error:
        return 400, error_body(str(error), "BadRequestError", None, 400)
    except Gone:
        raise
    except Exception:
        log.exception("a request failed")
        return 500, error_body("The engine failed; its log says why.", "InternalServerError", None, 500)
