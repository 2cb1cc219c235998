"""Removal of redirects from litellm's HTTP clients.

A redirect could send the provider's key to another address.

litellm builds its clients in a few places, which are wrapped once after its import. If a place is
missing after an upgrade, the import fails. Some providers fetch a token with `requests`, which the
rest of the process may use freely, so there redirects are rejected only during a call. The module
also selects the headers for a server without a key. It does not import litellm.
"""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module
from typing import Any

import httpx

from offing.models.credentials import PLACEHOLDER_KEY
from offing.models.redirects import render_redirect_error

_rejected_redirects: ContextVar[list[str] | None] = ContextVar("refused_redirects", default=None)
_send_no_credentials: ContextVar[bool] = ContextVar("keyless", default=False)
_only_key: ContextVar[str] = ContextVar("only_key", default="")

TRANSPORT_HEADERS = frozenset(
    {"host", "accept", "accept-encoding", "connection", "content-type", "content-length", "transfer-encoding"}
    | {"user-agent", "x-stainless-raw-response"}
)
"""Headers that are sent to a server without a key. The last one lets the openai library recognize its
own request. Client libraries add others from the environment, such as an organization id or the
headers in `OPENAI_CUSTOM_HEADERS`.
"""
PROTOCOL_HEADERS = frozenset({"anthropic-version", "anthropic-beta"})
"""Headers that a provider needs in addition, and that say nothing about an account."""


class RedirectRejectedError(httpx.RequestError):
    """A provider's server redirected to another address. The message names the server and the solution."""


@contextmanager
def collect_rejected_redirects(*, keyless: bool = False) -> Generator[list[str]]:
    """Collect the messages of redirects that are rejected in the block.

    They are needed because litellm wraps the errors of its clients. With `keyless`, requests in the
    block are sent without headers that identify the account.
    """
    messages: list[str] = []
    messages_token, keyless_token = _rejected_redirects.set(messages), _send_no_credentials.set(keyless)
    try:
        yield messages
    finally:
        _rejected_redirects.reset(messages_token)
        _send_no_credentials.reset(keyless_token)


@contextmanager
def send_only_key(api_key: str) -> Generator[None]:
    """Remove the headers of requests in the block that neither carry this key nor frame the request.

    A tenant's stored key is then sent without an organization, project or custom header of the operator's environment.
    An empty key leaves the headers unchanged.
    """
    token = _only_key.set(api_key)
    try:
        yield
    finally:
        _only_key.reset(token)


def disable_redirects() -> None:
    """Wrap every place where litellm builds a client for requests to a provider.

    Call it once, after the import.
    """
    handlers: Any = import_module("litellm.llms.custom_httpx.http_handler")
    for handler in (handlers.AsyncHTTPHandler, handlers.HTTPHandler):
        handler.create_client = _without_redirects(handler.create_client)
    openai: Any = import_module("litellm.llms.openai.common_utils").BaseOpenAILLM
    openai._get_async_http_client = staticmethod(_without_redirects(openai._get_async_http_client))
    openai._get_sync_http_client = staticmethod(_without_redirects(openai._get_sync_http_client))
    texts: Any = import_module("litellm.llms.openai.completion.handler")
    texts.AsyncOpenAI = _with_http_client(texts.AsyncOpenAI, openai._get_async_http_client)
    texts.OpenAI = _with_http_client(texts.OpenAI, openai._get_sync_http_client)
    sessions: Any = import_module("requests").Session
    sessions.get_redirect_target = _reject_requests_redirect(sessions.get_redirect_target)


def _without_redirects(build: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a client factory, so that its clients follow no redirect and raise an error instead."""

    def built(*args: Any, **named: Any) -> Any:
        client: httpx.Client | httpx.AsyncClient | None = build(*args, **named)
        if client is None:
            return None
        client.follow_redirects = False
        is_async = isinstance(client, httpx.AsyncClient)
        before, after = (
            (_strip_credentials_async, _reject_redirect_async) if is_async else (_strip_credentials, _reject_redirect)
        )
        hooks: dict[str, list[Any]] = client.event_hooks
        client.event_hooks = {"request": [*hooks["request"], before], "response": [after, *hooks["response"]]}
        return client

    return built


def _with_http_client(sdk: Callable[..., Any], client: Callable[[], Any]) -> Callable[..., Any]:
    """Wrap a provider's library, so that it uses our client where litellm passes none."""

    def build_client(**named: Any) -> Any:
        return sdk(**{**named, "http_client": named.get("http_client") or client()})

    return build_client


def _reject_requests_redirect(target: Callable[[Any, Any], str | None]) -> Callable[[Any, Any], str | None]:
    """Wrap the method by which `requests` finds a redirect target, to reject redirects during a call."""

    def get_redirect_target(session: Any, response: Any) -> str | None:
        target_url = target(session, response)
        if target_url is not None and _rejected_redirects.get() is not None:
            request = httpx.Request(response.request.method, response.request.url)
            _reject_redirect(httpx.Response(response.status_code, headers={"location": target_url}, request=request))
        return target_url

    return get_redirect_target


def _strip_credentials(request: httpx.Request) -> None:
    """Remove headers with credentials, and send a placeholder key, because some servers require one."""
    if key := _only_key.get():
        for name in set(request.headers) - TRANSPORT_HEADERS - PROTOCOL_HEADERS:
            if key not in request.headers[name]:
                del request.headers[name]
    if not _send_no_credentials.get():
        return
    for name in set(request.headers) - TRANSPORT_HEADERS:
        del request.headers[name]
    request.headers["authorization"] = f"Bearer {PLACEHOLDER_KEY}"


async def _strip_credentials_async(request: httpx.Request) -> None:
    _strip_credentials(request)


def _reject_redirect(response: httpx.Response) -> None:
    if not response.is_redirect:
        return
    message = render_redirect_error(response)
    if (messages := _rejected_redirects.get()) is not None:
        messages.append(message)
    raise RedirectRejectedError(message, request=response.request)


async def _reject_redirect_async(response: httpx.Response) -> None:
    _reject_redirect(response)
