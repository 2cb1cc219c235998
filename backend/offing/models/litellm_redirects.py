"""litellm's HTTP clients without redirects: a request that follows one takes the provider's key to another address.

The only home of how that is switched off. litellm builds its clients in few places, which are wrapped here once, when
it has been imported; a place that is gone after an upgrade fails the import. Imports no litellm itself.
"""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module
from typing import Any

import httpx

from offing.models.redirects import redirect_message

_refused: ContextVar[list[str] | None] = ContextVar("refused_redirects", default=None)


class RedirectRefused(httpx.RequestError):
    """A provider's server named another address. The message says which server, and what to do."""


@contextmanager
def noted_redirects() -> Generator[list[str]]:
    """Messages of the redirects that are refused meanwhile, since litellm wraps what its clients raise."""
    refused: list[str] = []
    token = _refused.set(refused)
    try:
        yield refused
    finally:
        _refused.reset(token)


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


def _direct(build: Callable[..., Any]) -> Callable[..., Any]:
    """`build`, whose clients follow no redirect and raise where there is one."""

    def built(*args: Any, **named: Any) -> Any:
        client: httpx.Client | httpx.AsyncClient | None = build(*args, **named)
        if client is None:
            return None
        client.follow_redirects = False
        hook = _refuse_async if isinstance(client, httpx.AsyncClient) else _refuse
        hooks: dict[str, list[Any]] = client.event_hooks
        client.event_hooks = {**hooks, "response": [hook, *hooks["response"]]}
        return client

    return built


def _given(sdk: Callable[..., Any], client: Callable[[], Any]) -> Callable[..., Any]:
    """The provider's own library with a client of ours where litellm leaves it to build one."""

    def made(**named: Any) -> Any:
        return sdk(**{**named, "http_client": named.get("http_client") or client()})

    return made


def _refuse(response: httpx.Response) -> None:
    if not response.is_redirect:
        return
    message = redirect_message(response)
    if (refused := _refused.get()) is not None:
        refused.append(message)
    raise RedirectRefused(message, request=response.request)


async def _refuse_async(response: httpx.Response) -> None:
    _refuse(response)
