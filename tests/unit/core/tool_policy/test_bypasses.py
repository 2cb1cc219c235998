"""Calls that try to get around a policy: none of them is allowed, and what they resemble is."""

from typing import Any

import pytest
from pydantic import BaseModel

from offing.core.tool import ToolSpec
from offing.core.tool_policy import (
    Condition,
    DecisionType,
    ToolCallContext,
    ToolPolicy,
    ToolRule,
    UntrustedShingles,
    decide,
)
from tests.unit.core.tool_policy.bypasses import GOOD, GUARDED, LEAKS, READ


class Args(BaseModel):
    url: str = ""
    path: str = ""
    code: str = ""
    count: int = 1
    who: list[str] = []
    extra: str = ""


SPEC = ToolSpec("deliver", "Delivers.", Args, "deliver", sends_data_out=True)
POLICY = ToolPolicy(
    rules=(
        ToolRule(
            tool="deliver",
            when=(
                Condition(arg="url", host=("docs.example.org",), max_length=1_000),
                Condition(arg="path", path="/srv/reports"),
                Condition(arg="code", regex="[A-Z]{2}-[0-9]{4}"),
                Condition(arg="count", minimum=1, maximum=10),
                Condition(arg="who", items=True, one_of=("ann@example.org", "bob@example.org")),
                Condition(arg="who", min_length=1, max_length=5),
            ),
            max_calls=5,
        ),
    )
)
OPEN = ToolPolicy(
    rules=(ToolRule(tool="deliver", when=(Condition(arg="url", host=("*.example", "*.net")),), max_calls=5),)
)


@pytest.mark.parametrize("args", [args for _, args in GUARDED], ids=[name for name, _ in GUARDED])
def test_no_way_around_a_guarded_argument(args: dict[str, Any]) -> None:
    decision = decide(POLICY, SPEC, args)
    assert decision.type is DecisionType.DENY
    assert decision.reason


@pytest.mark.parametrize("args", [args for _, args in LEAKS], ids=[name for name, _ in LEAKS])
def test_nothing_that_was_read_goes_to_a_host_that_nobody_named(args: dict[str, Any]) -> None:
    assert not decide(OPEN, SPEC, args, READING).is_allowed


READING = ToolCallContext(
    is_tainted=True, untrusted_shingles=UntrustedShingles().add_texts(READ), known_hosts=frozenset({"known.example"})
)


def test_the_bypasses_are_at_least_three_hundred_and_all_different() -> None:
    names = [name for name, _ in (*GUARDED, *LEAKS)]
    assert len(set(names)) == len(names) >= 300


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"url": "https://docs.example.org"},
        {"url": "HTTPS://DOCS.EXAMPLE.ORG/a?b=c#d"},
        {"url": "https://docs.example.org:443/"},
        {"url": "https://docs.example.org./a"},
        {"url": "http://docs.example.org/"},
        {"path": "a.txt"},
        {"path": "/srv/reports"},
        {"path": "/srv/./reports//a b/\u00e9.txt"},
        {"path": "..a/b.."},
        {"code": "ZZ-0000"},
        {"count": 10},
        {"count": 1.0},
        {"who": ["bob@example.org", "ann@example.org"]},
    ],
)
def test_an_ordinary_call_is_allowed(change: dict[str, Any]) -> None:
    assert decide(POLICY, SPEC, GOOD | change).is_allowed


@pytest.mark.parametrize(
    "url",
    [
        "https://new.example/about",
        "https://new.example/?q=tide+tables",
        "https://known.example/",
        "https://new.example/ledger",
    ],
)
def test_what_was_not_read_may_go_to_a_new_host(url: str) -> None:
    assert decide(OPEN, SPEC, {"url": url}, READING).is_allowed


def test_what_was_read_may_be_searched_for_where_no_address_is_named() -> None:
    search = ToolSpec("deliver", "Searches.", Args, "search", sends_data_out=True)
    policy = ToolPolicy(rules=(ToolRule(tool="deliver", when=(Condition(arg="extra"),)),))
    assert decide(policy, search, {"extra": "ledger key 7f3a-99bd-41cc"}, READING).is_allowed


def _unknown_context() -> ToolCallContext:
    return ToolCallContext(is_tainted=True, untrusted_shingles=UntrustedShingles(is_complete=False))


def test_when_too_much_was_read_to_remember_everything_counts_as_copied() -> None:
    assert not decide(OPEN, SPEC, {"url": "https://new.example/anything"}, _unknown_context()).is_allowed
    known = ToolCallContext(
        is_tainted=True, untrusted_shingles=UntrustedShingles(is_complete=False), known_hosts=frozenset({"new.example"})
    )
    assert decide(OPEN, SPEC, {"url": "https://new.example/"}, known).is_allowed


def test_limits_on_calls_and_on_bytes_hold_at_the_limit_and_beyond() -> None:
    limited = ToolPolicy(rules=(ToolRule(tool="deliver", max_calls=2, max_bytes=100),))
    for used, received, allowed in [(1, 99, True), (2, 0, False), (0, 100, False), (10**9, 0, False)]:
        context = ToolCallContext(call_counts={"deliver": used}, received_bytes={"deliver": received})
        assert decide(limited, SPEC, {}, context).is_allowed is allowed


def test_a_rule_for_untainted_runs_ends_with_the_first_untrusted_text() -> None:
    policy = ToolPolicy(
        rules=(
            ToolRule(tool="deliver", when_tainted=False),
            ToolRule(tool="deliver", effect="ask", when_tainted=True, allow_other_args=True),
        )
    )
    assert decide(policy, SPEC, {}).is_allowed
    assert decide(policy, SPEC, {}, ToolCallContext(is_tainted=True)).type is DecisionType.ASK


def test_a_forbidden_host_is_forbidden_at_every_port_and_in_every_spelling() -> None:
    policy = ToolPolicy(
        rules=(
            ToolRule(tool="deliver", allow_other_args=True),
            ToolRule(tool="deliver", effect="forbid", when=(Condition(arg="url", host=("evil.net", "*.evil.net")),)),
        )
    )
    for url in (
        "https://evil.net:8443/",
        "https://EVIL.net./",
        "http://a.evil.net/",
        "https://evil.net\\@x/",
        "evil.net",
    ):
        assert not decide(policy, SPEC, {"url": url}).is_allowed, url
    assert decide(policy, SPEC, {"url": "https://good.net/"}).is_allowed


def test_a_forbidden_folder_is_forbidden_in_every_spelling_and_a_relative_path_cannot_be_decided() -> None:
    policy = ToolPolicy(
        rules=(
            ToolRule(tool="deliver", allow_other_args=True),
            ToolRule(tool="deliver", effect="forbid", when=(Condition(arg="path", path="/etc"),)),
        )
    )
    for path in ("/etc", "/etc/x", "/ETC/x", "/./etc//x", "/srv/../etc", "etc", "\uff0fetc", "/e\u0074c/x"):
        assert not decide(policy, SPEC, {"path": path}).is_allowed, path
    assert decide(policy, SPEC, {"path": "/srv/etc"}).is_allowed


def test_one_forbidden_item_of_a_list_is_enough() -> None:
    some = ToolRule(tool="deliver", effect="forbid", when=(Condition(arg="who", items=True, glob="*@evil.net"),))
    policy = ToolPolicy(rules=(ToolRule(tool="deliver", allow_other_args=True), some))
    assert not decide(policy, SPEC, {"who": ["ann@example.org", "eve@evil.net"]}).is_allowed
    assert decide(policy, SPEC, {"who": ["ann@example.org"]}).is_allowed
