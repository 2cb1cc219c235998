"""What is wrong with a policy is found before it is used, with its place and a remedy."""

from typing import Any

import pytest
from pydantic import BaseModel

from offing.core.errors import InvalidInput
from offing.core.tool import SideEffect, ToolSpec
from offing.core.tool_policy import (
    ArgumentSource,
    Condition,
    Substitute,
    ToolPolicy,
    ToolRule,
    find_issues,
)
from offing.core.tool_policy.parser import parse_tool_policy
from offing.tools import create_tools
from offing.tools.default_policy import default_tool_policy


class Fetch(BaseModel):
    url: str
    limit: int = 1
    tags: list[str] = []


class Post(BaseModel):
    to: str
    body: str = ""


TOOLS = {
    "fetch": ToolSpec("fetch", "Fetches.", Fetch, "fetch", sends_data_out=True),
    "read": ToolSpec("read", "Reads.", Fetch, "read"),
    "post": ToolSpec("post", "Posts.", Post, "post", SideEffect.AT_MOST_ONCE),
}


def list_issues(*rules: ToolRule) -> list[tuple[str, str]]:
    return [(finding.field, finding.problem) for finding in find_issues(ToolPolicy(rules=rules), TOOLS)]


def read(*when: Condition, **more: Any) -> ToolRule:
    messages: dict[str, Any] = {"allow_other_args": True, **more}
    return ToolRule(tool="read", when=when, **messages)


FORBID = ToolRule(tool="read", effect="forbid")
FORBID_QUERY = FORBID.model_copy(update={"when": (Condition(arg="url", glob="*?token=*"),)})
BAD: list[tuple[str, tuple[ToolRule, ...], str, str]] = [
    ("no such tool", (ToolRule(tool="rea", allow_other_args=True),), "rules.0.tool", "no tool 'rea'"),
    ("no such argument", (read(Condition(arg="uri")),), "rules.0.when.0.arg", "no argument 'uri'"),
    ("a required argument left out", (read(Condition(arg="tags"), allow_other_args=False),), "rules.0.when", "'url'"),
    (
        "an argument with a default left out",
        (read(Condition(arg="url"), allow_other_args=False),),
        "rules.0.when",
        "'limit'",
    ),
    ("a bound for text", (read(Condition(arg="url", minimum=1)),), "rules.0.when.0", "not a number"),
    ("a glob for a number", (read(Condition(arg="limit", glob="1*")),), "rules.0.when.0", "not a string"),
    ("a length for a number", (read(Condition(arg="limit", max_length=1)),), "rules.0.when.0", "no length"),
    ("items of text", (read(Condition(arg="url", items=True, glob="a")),), "rules.0.when.0", "not a list"),
    (
        "values outside the bounds",
        (read(Condition(arg="limit", one_of=(5,), maximum=4)),),
        "rules.0.when.0",
        "meets all",
    ),
    (
        "two conditions that exclude each other",
        (read(Condition(arg="limit", minimum=5), Condition(arg="limit", maximum=4)),),
        "rules.0.when.0",
        "meets all",
    ),
    (
        "two lists without a common value",
        (read(Condition(arg="url", one_of=("a",)), Condition(arg="url", one_of=("b",))),),
        "rules.0.when.0",
        "meets all",
    ),
    ("no call at all", (read(max_calls=0),), "rules.0.max_calls", "allows none"),
    ("behind a forbid rule", (read(), FORBID), "rules.0", "has no effect"),
    (
        "behind a forbid rule with the same condition",
        (read(Condition(arg="url", glob="a*")), FORBID.model_copy(update={"when": (Condition(arg="url", glob="a*"),)})),
        "rules.0",
        "has no effect",
    ),
    ("twice the same", (read(), read()), "rules.1", "has no effect"),
    (
        "an ask rule behind a replace rule",
        (ToolRule(tool="read", effect="ask"), ToolRule(tool="read", effect="replace", message="No.")),
        "rules.0",
        "has no effect",
    ),
    ("a door to the web", (ToolRule(tool="fetch", allow_other_args=True),), "rules.0.when", "outside the platform"),
    ("a door to an effect", (ToolRule(tool="post", allow_other_args=True),), "rules.0.when", "outside the platform"),
    ("copies without a reason", (read(allow_copied_text=True),), "rules.0.allow_copied_text", "copied"),
    (
        "a substitute that there is not",
        (ToolRule(tool="read", effect="replace", substitute=Substitute(tool="rea")),),
        "rules.0.substitute.tool",
        "no tool",
    ),
    (
        "a substitute without what it needs",
        (ToolRule(tool="read", effect="replace", substitute=Substitute(tool="post")),),
        "rules.0.substitute.args",
        "requires 'to'",
    ),
    (
        "a substitute's argument from nowhere",
        (
            ToolRule(
                tool="read",
                effect="replace",
                substitute=Substitute(tool="post", args=(ArgumentSource(arg="to", from_arg="uri"),)),
            ),
        ),
        "rules.0.substitute.args.0.from_arg",
        "no argument",
    ),
]


def fetch(**more: Any) -> ToolRule:
    return ToolRule(tool="fetch", allow_other_args=True, when=(Condition(arg="url", **more),))


BAD.extend(
    [
        ("a question mark meant as a query's", (fetch(glob="*?*=*"),), "rules.0.when.0.glob", "any one character"),
        (
            "a question mark beside a host",
            (fetch(glob="*/search?*", host=("a.example",)),),
            "rules.0.when.0.glob",
            "any one character",
        ),
        (
            "a query in an argument of another name",
            (ToolRule(tool="post", allow_other_args=True, when=(Condition(arg="to", glob="*/new?title=*"),)),),
            "rules.0.when.0.glob",
            "any one character",
        ),
        ("a question mark in a forbid rule", (FORBID_QUERY,), "rules.0.when.0.glob", "any one character"),
        (
            "a class in a glob",
            (fetch(glob="https://a.example/[a-z]*"),),
            "rules.0.when.0.glob",
            "no character classes: [a-z]",
        ),
        ("a host that goes on", (fetch(glob="https://docs.example.org*"),), "rules.0.when.0.glob", "every other host"),
        ("any host that ends so", (fetch(glob="https://*.example.org/*"),), "rules.0.when.0.glob", "every other host"),
        (
            "an unescaped question mark in a regex",
            (fetch(regex=r"https://a\.example/page?id=\d+"),),
            "rules.0.when.0.regex",
            "optional",
        ),
        (
            "an unescaped dot in the host of a regex",
            (fetch(regex="https://docs.example.org/.*"),),
            "rules.0.when.0.regex",
            "any character",
        ),
        (
            "an open host in a regex",
            (fetch(regex=r"https://.*\.example\.org/.*"),),
            "rules.0.when.0.regex",
            "every other host",
        ),
    ]
)


@pytest.mark.parametrize(("rules", "field", "problem"), [case[1:] for case in BAD], ids=[case[0] for case in BAD])
def test_it_is_found_where_it_stands(rules: tuple[ToolRule, ...], field: str, problem: str) -> None:
    assert any(position == field and problem in text for position, text in list_issues(*rules)), list_issues(*rules)


GOOD: list[tuple[ToolRule, ...]] = [
    (read(),),
    (read(Condition(arg="limit", maximum=2)), read(Condition(arg="limit", minimum=2))),
    (read(), ToolRule(tool="read", effect="forbid", when=(Condition(arg="url", glob="*secret*"),))),
    (read(when_tainted=False), ToolRule(tool="read", effect="ask", when_tainted=True, allow_other_args=True)),
    (ToolRule(tool="fetch", allow_other_args=True, reason="It is a closed network."),),
    (ToolRule(tool="fetch", allow_other_args=True, when=(Condition(arg="url", host=("a.example",)),)),),
    (ToolRule(tool="post", effect="ask", allow_other_args=True),),
    (fetch(glob="https://a.example/search[?]q=*"),),
    (fetch(glob="http*://*"),),
    (fetch(glob="*/search[?]*", host=("*.example.org",)),),
    (fetch(regex=r"https?://docs\.example\.org/(a|b)/[^?]*\?id=\d+"),),
    (fetch(regex=r"https://[a-z]+\.example\.org/.*"),),
    (ToolRule(tool="post", allow_other_args=True, when=(Condition(arg="body", glob="report-?.pdf"),)),),
    (read(Condition(arg="url", glob="http://[::1]:8080/*")),),
    (read(), ToolRule(tool="read", effect="forbid", when=(Condition(arg="url", glob="https://*.example.org/*"),))),
]


@pytest.mark.parametrize("rules", GOOD)
def test_what_can_decide_and_limits_what_it_opens_is_left_alone(rules: tuple[ToolRule, ...]) -> None:
    assert list_issues(*rules) == []


def test_nothing_is_wrong_with_the_default_policy() -> None:
    tools = {tool.spec.name: tool.spec for tool in create_tools(web=True)}
    mine = ToolPolicy(rules=tuple(rule for rule in default_tool_policy(web=True).rules if rule.tool in tools))
    assert len(mine.rules) == 5
    assert find_issues(mine, tools) == ()


@pytest.mark.parametrize(
    ("text", "field", "problem"),
    [
        ("", "policy", "not valid JSON"),
        ('{"rules": [], "rules": []}', "policy", "twice"),
        ('{"rules": [{"tool": "a", "effect": "forbid", "effect": "allow"}]}', "policy", "twice"),
        ('{"rules": [{"tool": "a", "when": [{"arg": "x", "maximum": 1e309}]}]}', "policy", "too large"),
        ('{"rules": [{"tool": "a", "when": [{"arg": "x", "maximum": NaN}]}]}', "policy", "not a valid number"),
        ('{"rules": [{"tool": "a", "max_calls": "5"}]}', "rules.0.max_calls", "integer"),
        ('{"rules": [{"tool": "a", "when": [{"arg": "x", "regex": "(?=a)"}]}]}', "rules.0.when.0.regex", "(?:"),
        (
            '{"rules": [{"tool": "a", "when": [{"arg": "x", "host": ["*"]}]}]}',
            "rules.0.when.0.host",
            "not a valid host",
        ),
        (
            '{"rules": [{"tool": "a", "when": [{"arg": "x", "path": "../x"}]}]}',
            "rules.0.when.0.path",
            "not a valid folder",
        ),
        ('{"rules": [{"tool": "a", "effect": "forbid", "max_calls": 5}]}', "rules.0", "only allowed in"),
        ("[" * 100_000, "policy", "not valid JSON"),
    ],
)
def test_a_file_that_two_readers_could_read_differently_is_rejected(text: str, field: str, problem: str) -> None:
    with pytest.raises(InvalidInput) as error:
        parse_tool_policy(text)
    assert error.value.field == field
    assert problem in error.value.problem


def test_a_policy_in_a_file_is_read_like_a_stored_one() -> None:
    assert parse_tool_policy('{"rules": [{"tool": "read", "allow_other_args": true}]}') == ToolPolicy(rules=(read(),))
