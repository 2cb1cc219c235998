"""Rules of a project for the addresses and headers of its webhooks."""

from typing import Any

import pytest

from offing.core.errors import InvalidInput
from offing.core.header_patterns import HeaderPatterns
from offing.core.langgraph_config_parser import parse_langgraph_config
from offing.core.webhook_rules import WebhookRules

MINIMAL = {"dependencies": ["."], "graphs": {"agent": "./agent.py:graph"}}


def rules_of(**webhooks: Any) -> WebhookRules:
    return parse_langgraph_config({**MINIMAL, "webhooks": webhooks}).webhooks


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("https://hooks.example.org/a", ""),
        ("https://a.gulls.example/a", ""),
        ("https://a.b.GULLS.example:443/a", ""),
        ("https://gulls.example/a", "allowed_domains"),
        ("https://evilgulls.example/a", "allowed_domains"),
        ("https://hooks.example.org.evil.example/a", "allowed_domains"),
        ("https://hooks.example.org@evil.example/a", "allowed_domains"),
        ("http://hooks.example.org/a", "https"),
        ("https://hooks.example.org:8443/a", "allowed_ports"),
        ("https://hooks.example.org/" + "a" * 80, "80 characters"),
    ],
)
def test_an_address_is_allowed_by_scheme_domain_port_and_length(url: str, problem: str) -> None:
    rules = rules_of(
        url={
            "require_https": True,
            "allowed_domains": ["hooks.example.org", "*.gulls.example"],
            "allowed_ports": [443],
            "max_url_length": 80,
        }
    )
    message = rules.find_problem(url)
    assert problem in message
    assert bool(problem) == bool(message)


@pytest.mark.parametrize("url", ["http://[::1", "https://example.com:port/x", "https://example.com:99999/"])
def test_what_is_no_address_is_rejected(url: str) -> None:
    assert WebhookRules().find_problem(url).startswith("it is no address")


def test_without_rules_every_address_is_allowed() -> None:
    assert WebhookRules().find_problem("http://anywhere.example:1/") == ""


def test_headers_get_the_variables_that_the_prefix_allows() -> None:
    headers = {"Authorization": "Bearer ${{ env.LG_WEBHOOK_TOKEN }}", "X-Both": "${{env.LG_WEBHOOK_A}}-b"}
    variables = {"LG_WEBHOOK_TOKEN": "hidden", "LG_WEBHOOK_A": "a", "OTHER": "o"}
    rules = rules_of(headers=headers)
    assert rules.resolve_headers(variables) == {"Authorization": "Bearer hidden", "X-Both": "a-b"}
    other = rules_of(headers={"X-Other": "${{ env.OTHER }}"}, env_prefix="OTH")
    assert other.resolve_headers(variables) == {"X-Other": "o"}


@pytest.mark.parametrize(
    ("value", "variables", "problem"),
    [
        ("${{ env.LG_WEBHOOK_TOKEN }}", {}, "LG_WEBHOOK_TOKEN is not set"),
        ("${{ env.OPENAI_API_KEY }}", {"OPENAI_API_KEY": "hidden"}, "does not begin with LG_WEBHOOK_"),
        ("${{ secrets.TOKEN }}", {}, "template that is not known"),
        ("${{ env.LG_WEBHOOK_TOKEN }}", {"LG_WEBHOOK_TOKEN": "hidden\r\nX: y"}, "characters"),
        ("${{ env.LG_WEBHOOK_TOKEN }}", {"LG_WEBHOOK_TOKEN": "hiddén"}, "characters"),
    ],
)
def test_a_header_that_cannot_be_made_is_an_error_without_its_value(
    value: str, variables: dict[str, str], problem: str
) -> None:
    with pytest.raises(InvalidInput, match=problem) as raised:
        rules_of(headers={"X-A": value}).resolve_headers(variables)
    assert "webhooks.headers.X-A" in str(raised.value)
    assert "hidd" not in str(raised.value)


@pytest.mark.parametrize(
    ("webhooks", "named"),
    [
        ({"headers": {"Host": "a"}}, "webhooks.headers.Host"),
        ({"headers": {"webhook-signature": "a"}}, "webhooks.headers.webhook-signature"),
        ({"headers": {"X A": "a"}}, "webhooks.headers.X A"),
        ({"headers": {"X-A": 1}}, "webhooks.headers.X-A"),
        ({"url": {"allowed_domains": ["https://a.example"]}}, "webhooks.url.allowed_domains"),
        ({"url": {"allowed_domains": ["*"]}}, "webhooks.url.allowed_domains"),
        ({"url": {"allowed_ports": ["443"]}}, "webhooks.url.allowed_ports"),
        ({"url": {"require_https": "yes"}}, "webhooks.url.require_https"),
    ],
)
def test_rules_that_cannot_be_read_are_an_error(webhooks: dict[str, Any], named: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        rules_of(**webhooks)
    assert named in str(raised.value)


@pytest.mark.parametrize(
    ("http", "named"),
    [
        ({"mount_prefix": "agents"}, "http.mount_prefix"),
        ({"mount_prefix": "/agents/"}, "http.mount_prefix"),
        ({"middleware_order": "last"}, "http.middleware_order"),
        ({"app": "./web.ts:app"}, "http.app"),
        ({"configurable_headers": {"includes": "x-*"}}, "http.configurable_headers.includes"),
    ],
)
def test_settings_of_the_server_that_cannot_be_kept_are_an_error(http: dict[str, Any], named: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        parse_langgraph_config({**MINIMAL, "http": http})
    assert named in str(raised.value)


def test_patterns_choose_headers_by_name_and_exclusions_come_first() -> None:
    patterns = HeaderPatterns(("x-*", "user-agent"), ("x-secret-*",))
    chosen = [name for name in ("X-Team", "user-agent", "x-secret-a", "accept", "ax-b") if patterns.matches(name)]
    assert chosen == ["X-Team", "user-agent"]
    assert HeaderPatterns(excludes=("x.a",)).matches("x-a")  # a period is no wildcard
    assert not HeaderPatterns(excludes=("*",)).matches("x-a")
