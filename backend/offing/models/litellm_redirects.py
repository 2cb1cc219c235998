"""litellm's HTTP clients without redirects: a request that follows one takes the provider's key to another address.

The only home of how that is switched off, and of which headers go to a server without a key. litellm builds its clients
in few places, which are wrapped here once, when it has been imported; a place that is gone after an upgrade fails the
import. Some of its providers ask for a token by `requests`, which the rest of a process may use as it likes: there only
what happens within a call is refused. Imports no litellm itself.
"""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module
from typing import Any

import httpx

from offing.models.credentials import NO_KEY
from offing.models.redirects import redirect_message

_refused: ContextVar[list[str] | None] = ContextVar("refused_redirects", default=None)
_keyless: ContextVar[bool] = ContextVar("keyless", default=False)

FRAMING = frozenset(
    {"host", "accept", "accept-encoding", "connection", "content-type", "content-length", "transfer-encoding"}
    | {"user-agent", "x-stainless-raw-response"}
)
"""Headers that a server without a key gets as they are; by the last one openai's library knows its own request again.
Client libraries add others from the environment, such as an
organization's id or whatever `OPENAI_CUSTOM_HEADERS` holds."""


class RedirectRefused(httpx.RequestError):
    """A provider's server named another address. The message says which server, and what to do."""


@contextmanager
def noted_redirects(*, keyless: bool = False) -> Generator[list[str]]:
    """Messages of the redirects that are refused meanwhile, since litellm wraps what its clients raise. `keyless`:
    requests go out meanwhile without any header that says whose they are."""
    refused: list[str] = []
    noted, bare = _refused.set(refused), _keyless.set(keyless)
    try:
        yield refused
    finally:
        _refused.reset(noted)
        _keyless.reset(bare)


def refuse_redirects() -> None:
    """Wraps every place where litellm builds a client for requests to a provider. Call it once, after the import."""
    handlers: Any = import_module("litellm.llms.custom_httpx.http_handler")
    for handler in (handlers.AsyncHTTPHandler, handlers.HTTPHandler):
        handler.create_client = _direct(handler.create_client)
    openai: Any = import_module("litellm.llms.openai.common_utils").BaseOpenAILLM
    openai._get_async_http_client = staticmethod(_direct(openai._get_async_http_client))
    openai._get_sync_http_client = staticmethod(_direct(openai._get_sync_http_client))
    texts: Any = import_module("litellm.llms.openai.completion.handler")
    texts.AsyncOpenAI = _given(texts.AsyncOpenAI, openai._get_async_http_client)
    texts.OpenAI = _given(texts.OpenAI, openai._get_sync_http_client)
    sessions: Any = import_module("requests").Session
    sessions.get_redirect_target = _refusing(sessions.get_redirect_target)


def _direct(build: Callable[..., Any]) -> Callable[..., Any]:
    """`build`, whose clients follow no redirect and raise where there is one."""

    def built(*args: Any, **named: Any) -> Any:
        client: httpx.Client | httpx.AsyncClient | None = build(*args, **named)
        if client is None:
            return None
        client.follow_redirects = False
        waits = isinstance(client, httpx.AsyncClient)
        before, after = (_strip_async, _refuse_async) if waits else (_strip, _refuse)
        hooks: dict[str, list[Any]] = client.event_hooks
        client.event_hooks = {"request": [*hooks["request"], before], "response": [after, *hooks["response"]]}
        return client

    return built


def _given(sdk: Callable[..., Any], client: Callable[[], Any]) -> Callable[..., Any]:
    """The provider's own library with a client of ours where litellm leaves it to build one."""

    def made(**named: Any) -> Any:
        return sdk(**{**named, "http_client": named.get("http_client") or client()})

    return made


def _refusing(target: Callable[[Any, Any], str | None]) -> Callable[[Any, Any], str | None]:
    """How `requests` finds out where a redirect leads, refused within a call of ours."""

    def found(session: Any, response: Any) -> str | None:
        to = target(session, response)
        if to is not None and _refused.get() is not None:
            asked = httpx.Request(response.request.method, response.request.url)
            _refuse(httpx.Response(response.status_code, headers={"location": to}, request=asked))
        return to

    return found


def _strip(request: httpx.Request) -> None:
    """A key is left where the server may insist on one, and says that there is none."""
    if not _keyless.get():
        return
    for name in set(request.headers) - FRAMING:
        del request.headers[name]
    request.headers["authorization"] = f"Bearer {NO_KEY}"


async def _strip_async(request: httpx.Request) -> None:
    _strip(request)


def _refuse(response: httpx.Response) -> None:
    if not response.is_redirect:
        return
    message = redirect_message(response)
    if (refused := _refused.get()) is not None:
        refused.append(message)
    raise RedirectRefused(message, request=response.request)


async def _refuse_async(response: httpx.Response) -> None:
    _refuse(response)
