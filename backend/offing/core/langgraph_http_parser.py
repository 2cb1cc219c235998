"""Parser of the keys `http` and `webhooks` of `langgraph.json`."""

import re
from typing import Any, cast

from offing.core.errors import InvalidInput
from offing.core.header_patterns import HeaderPatterns
from offing.core.langgraph_config import ConfigNotice, HttpSettings, MiddlewareOrder, ObjectReference
from offing.core.langgraph_config_reader import JAVASCRIPT_SUFFIXES, ConfigReader, describe, parse_reference
from offing.core.webhook_rules import DEFAULT_ENV_PREFIX, WebhookRules

ROUTE_GROUPS = ("a2a", "assistants", "mcp", "meta", "runs", "store", "threads", "ui", "webhooks")
"""Groups of routes that a project can turn off by `disable_<group>`."""

HTTP_KEYS = (
    "app",
    "configurable_headers",
    "cors",
    "enable_custom_route_auth",
    "logging_headers",
    "middleware_order",
    "mount_prefix",
    *(f"disable_{group}" for group in ROUTE_GROUPS),
)

FORBIDDEN_HEADERS = frozenset(
    {"connection", "content-length", "content-type", "host", "transfer-encoding", "user-agent"}
    | {"webhook-id", "webhook-signature", "webhook-timestamp"}
)
"""Headers that each message has already."""


def parse_http(top: ConfigReader, notices: list[ConfigNotice]) -> HttpSettings:
    """Parse `http`. Raises InvalidInput that names the key."""
    http = top.inner("http")
    if http is None:
        return HttpSettings()
    notices.extend(http.unknown(*HTTP_KEYS))
    cors = http.inner("cors")
    return HttpSettings(
        app=_parse_app(http),
        cors=dict(cors.document) if cors else {},
        disabled_routes=frozenset(group for group in ROUTE_GROUPS if http.flag(f"disable_{group}")),
        mount_prefix=_parse_prefix(http),
        authenticates_app=http.flag("enable_custom_route_auth"),
        middleware_order=_parse_order(http),
        configurable_headers=_parse_patterns(http, "configurable_headers", notices),
        logging_headers=_parse_patterns(http, "logging_headers", notices),
    )


def _parse_app(http: ConfigReader) -> ObjectReference | None:
    """Return the reference of the project's application. Raises InvalidInput for one in JavaScript.

    To leave it out could open what its middleware guards.
    """
    if not (text := http.text("app")):
        return None
    reference = parse_reference(text, http.name("app"))
    if reference.location.endswith(JAVASCRIPT_SUFFIXES):
        problem = f"{reference.location} is JavaScript, and only Python can be served"
        raise InvalidInput(http.name("app"), problem, "Remove the key, if its routes and middleware are not needed.")
    return reference


def _parse_prefix(http: ConfigReader) -> str:
    prefix = http.text("mount_prefix")
    if prefix and not re.fullmatch(r"(/[\w.~-]+)+", prefix):
        raise InvalidInput(http.name("mount_prefix"), f"{prefix!r} is not a prefix", "Use a path such as /api.")
    return prefix


def _parse_order(http: ConfigReader) -> MiddlewareOrder:
    order = http.text("middleware_order") or MiddlewareOrder.MIDDLEWARE_FIRST
    if order not in set(MiddlewareOrder):
        remedy = f"Use one of: {', '.join(MiddlewareOrder)}."
        raise InvalidInput(http.name("middleware_order"), f"{order!r} is not known", remedy)
    return MiddlewareOrder(order)


def _parse_patterns(http: ConfigReader, key: str, notices: list[ConfigNotice]) -> HeaderPatterns | None:
    """Return the patterns of a key. LangGraph's documentation spells their lists in two ways."""
    inner = http.inner(key)
    if inner is None:
        return None
    notices.extend(inner.unknown("includes", "include", "excludes", "exclude"))
    includes = inner.texts("includes") or inner.texts("include")
    return HeaderPatterns(includes, inner.texts("excludes") or inner.texts("exclude"))


def parse_webhooks(top: ConfigReader, notices: list[ConfigNotice], *, is_disabled: bool) -> WebhookRules:
    """Parse `webhooks`. `is_disabled`: `http.disable_webhooks` is set. Raises InvalidInput that names the key."""
    webhooks = top.inner("webhooks")
    if webhooks is None:
        return WebhookRules(is_disabled=is_disabled)
    notices.extend(webhooks.unknown("env_prefix", "headers", "url"))
    url = webhooks.inner("url") or ConfigReader(top.file, "webhooks.url", {})
    notices.extend(
        url.unknown("allowed_domains", "allowed_ports", "disable_loopback", "max_url_length", "require_https")
    )
    if url.get("disable_loopback") is False:
        notices.append(ConfigNotice(url.path("disable_loopback"), "Relative addresses are always rejected."))
    rules = WebhookRules(
        file=top.file,
        env_prefix=webhooks.text("env_prefix") or DEFAULT_ENV_PREFIX,
        headers=_parse_headers(webhooks),
        needs_https=url.flag("require_https"),
        allowed_domains=_parse_domains(url),
        allowed_ports=_parse_ports(url),
        max_url_length=url.whole_number("max_url_length"),
        is_disabled=is_disabled,
    )
    if rules.has_secrets and not rules.allowed_domains:
        effect = "They are sent to every address that a client names. Set webhooks.url.allowed_domains."
        notices.append(ConfigNotice(webhooks.path("headers"), effect))
    return rules


def _parse_headers(webhooks: ConfigReader) -> dict[str, str]:
    headers = webhooks.inner("headers")
    if headers is None:
        return {}
    for name in headers.keys:
        if not re.fullmatch(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+", name) or name.lower() in FORBIDDEN_HEADERS:
            raise InvalidInput(headers.name(name), "this header cannot be set", "Use another name.")
        if not isinstance(headers.get(name), str):
            raise InvalidInput(headers.name(name), f"is {describe(headers.get(name))}, not a text", "Correct it.")
    return {name: headers.get(name) for name in headers.keys}


def _parse_domains(url: ConfigReader) -> tuple[str, ...]:
    domains = url.texts("allowed_domains")
    for one in domains:
        if not re.fullmatch(r"(\*\.)?[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*", one):
            problem = f"{one!r} is neither a host nor *. with a host"
            raise InvalidInput(url.name("allowed_domains"), problem, "Use hooks.example.org, or *.example.org.")
    return domains


def _parse_ports(url: ConfigReader) -> tuple[int, ...]:
    ports = cast(list[Any], url.read("allowed_ports", list, "a list of ports") or [])
    for one in ports:
        if not isinstance(one, int) or isinstance(one, bool) or not 0 < one < 65536:
            raise InvalidInput(url.name("allowed_ports"), f"{one!r} is not a port", "Use numbers such as 443.")
    return tuple(ports)
