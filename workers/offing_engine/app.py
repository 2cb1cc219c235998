"""ASGI application of the engine: routes, the bearer token, error bodies and client disconnects."""

import asyncio
import hmac
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import orjson

from offing.core.errors import Conflict, InvalidInput, NotFound, OffingError
from offing_engine import handlers
from offing_engine.protocol import (
    ChatRequest,
    CompletionRequest,
    LoadAdapterRequest,
    LoadPolicyRequest,
    TokenizeRequest,
    UnloadAdapterRequest,
    UnloadPolicyRequest,
    parse_request,
    render_error,
)
from offing_engine.scheduler import EngineScheduler, QueueFullError

MAX_BODY_BYTES = 32_000_000

log = logging.getLogger("offing.engine")

Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
Handler = Callable[[bytes], Awaitable[dict[str, Any]]]


class ClientDisconnectedError(Exception):
    """The client has disconnected."""


class EngineApp:
    """ASGI application. `token` is the required bearer token; `None` accepts every client of the socket."""

    def __init__(self, engine: EngineScheduler, token: str | None) -> None:
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
            status, body = await self._route(scope, receive)
        except ClientDisconnectedError:
            return
        payload = orjson.dumps(body)
        head = [(b"content-type", b"application/json"), (b"content-length", str(len(payload)).encode())]
        if status == 503:
            head.append((b"retry-after", b"1"))
        await send({"type": "http.response.start", "status": status, "headers": head})
        await send({"type": "http.response.body", "body": payload})

    async def _route(self, scope: Mapping[str, Any], receive: Receive) -> tuple[int, dict[str, Any]]:
        handler = self._routes.get((scope["method"], scope["path"]))
        if not self._is_authorized(scope):
            return 401, render_error("The bearer token is missing or wrong.", "AuthenticationError", None, 401)
        if handler is None:
            return 404, render_error(f"There is no {scope['method']} {scope['path']}.", "NotFoundError", None, 404)
        body = await _read_body(receive)
        if body is None:
            return 413, render_error(
                f"The request body is longer than {MAX_BODY_BYTES} bytes.", "BadRequestError", None, 413
            )
        return await _run_guarded(_run_while_connected(handler(body), receive))

    def _is_authorized(self, scope: Mapping[str, Any]) -> bool:
        if self._token is None or scope["path"] == "/health":
            return True
        authorization = dict(scope["headers"]).get(b"authorization", b"")
        return hmac.compare_digest(authorization, f"Bearer {self._token}".encode())

    async def _health(self, _: bytes) -> dict[str, Any]:
        return {
            "status": "ok",
            "system_fingerprint": handlers.SYSTEM_FINGERPRINT,
            "models": list(self._engine.policies),
        }

    async def _models(self, _: bytes) -> dict[str, Any]:
        return handlers.list_models(self._engine)

    async def _chat(self, body: bytes) -> dict[str, Any]:
        return await handlers.create_chat_completion(self._engine, parse_request(ChatRequest, body))

    async def _complete(self, body: bytes) -> dict[str, Any]:
        return await handlers.create_completion(self._engine, parse_request(CompletionRequest, body))

    async def _tokenize(self, body: bytes) -> dict[str, Any]:
        return handlers.tokenize_request(self._engine, parse_request(TokenizeRequest, body))

    async def _load_adapter(self, body: bytes) -> dict[str, Any]:
        request = parse_request(LoadAdapterRequest, body)
        return await handlers.load_policy(
            self._engine, LoadPolicyRequest(name=request.lora_name, path=request.lora_path, base=request.base)
        )

    async def _unload_adapter(self, body: bytes) -> dict[str, Any]:
        return await handlers.unload_policy(self._engine, parse_request(UnloadAdapterRequest, body).lora_name)

    async def _load(self, body: bytes) -> dict[str, Any]:
        return await handlers.load_policy(self._engine, parse_request(LoadPolicyRequest, body))

    async def _unload(self, body: bytes) -> dict[str, Any]:
        return await handlers.unload_policy(self._engine, parse_request(UnloadPolicyRequest, body).name)


async def _read_body(receive: Receive) -> bytes | None:
    """Read the request body. `None` means that it is larger than allowed."""
    parts: list[bytes] = []
    size, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnectedError
        parts.append(message.get("body", b""))
        size, more = size + len(parts[-1]), message.get("more_body", False)
        if size > MAX_BODY_BYTES:
            return None
    return b"".join(parts)


async def _run_while_connected(handler: Awaitable[dict[str, Any]], receive: Receive) -> dict[str, Any]:
    """Await `handler`. If the client disconnects first, cancel it and raise ClientDisconnectedError."""
    working, listening = asyncio.ensure_future(handler), asyncio.ensure_future(receive())
    try:
        await asyncio.wait({working, listening}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientDisconnectedError
        return working.result()
    finally:
        working.cancel()
        listening.cancel()


async def _run_guarded(handler: Awaitable[dict[str, Any]]) -> tuple[int, dict[str, Any]]:
    """Return the status and body of a response. Errors become error bodies."""
    try:
        return 200, await handler
    except InvalidInput as error:
        return 400, render_error(str(error), "BadRequestError", error.field, 400)
    except NotFound as error:
        remedy = "This engine has not loaded it. GET /v1/models lists the loaded versions."
        return 404, render_error(f"{error} {remedy}", "NotFoundError", "model", 404)
    except Conflict as error:
        return 409, render_error(str(error), "ConflictError", None, 409)
    except QueueFullError:
        return 503, render_error(
            "Too many requests are waiting. Try again later.", "ServiceUnavailableError", None, 503
        )
    except OffingError as error:
        return 400, render_error(str(error), "BadRequestError", None, 400)
    except ClientDisconnectedError:
        raise
    except Exception:
        log.exception("a request failed")
        return 500, render_error("The engine failed. See its log.", "InternalServerError", None, 500)
