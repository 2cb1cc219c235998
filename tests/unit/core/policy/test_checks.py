"""What is wrong with a policy is found before it is used, with its place and a remedy."""

from typing import Any

import pytest
from pydantic import BaseModel

from offing.core.errors import InvalidInput
from offing.core.policy import Condition, Given, Policy, Rule, Substitute, default_policy, findings
from offing.core.policy.reading import read_policy
from offing.core.tool import Effect, ToolSpec
from offing.tools import registry


class Fetch(BaseModel):
    url: str
    limit: int = 1
    tags: list[str] = []


class Post(BaseModel):
    to: str
    body: str = ""


TOOLS = {
    "fetch": ToolSpec("fetch", "Fetches.", Fetch, "fetch", outward=True),
    "read": ToolSpec("read", "Reads.", Fetch, "read"),
    "post": ToolSpec("post", "Posts.", Post, "post", Effect.AT_MOST_ONCE),
}


def found(*rules: Rule) -> list[tuple[str, str]]:
    return [(finding.field, finding.problem) for finding in findings(Policy(rules=rules), TOOLS)]


def read(*when: Condition, **more: Any) -> Rule:
    said: dict[str, Any] = {"others": True, **more}
    return Rule(tool="read", when=when, **said)


FORBID = Rule(tool="read", effect="forbid")
FORBID_QUERY = FORBID.model_copy(update={"when": (Condition(arg="url", glob="*?token=*"),)})
BAD: list[tuple[str, tuple[Rule, ...], str, str]] = [
    ("no such tool", (Rule(tool="rea", others=True),), "rules.0.tool", "no tool 'rea'"),
    ("no such argument", (read(Condition(arg="uri")),), "rules.0.when.0.arg", "no argument 'uri'"),
    ("a required argument left out", (read(Condition(arg="tags"), others=False),), "rules.0.when", "'url'"),
    ("an argument with a default left out", (read(Condition(arg="url"), others=False),), "rules.0.when", "'limit'"),
    ("a bound for text", (read(Condition(arg="url", minimum=1)),), "rules.0.when.0", "no number"),
    ("a glob for a number", (read(Condition(arg="limit", glob="1*")),), "rules.0.when.0", "no text"),
    ("a length for a number", (read(Condition(arg="limit", max_length=1)),), "rules.0.when.0", "no length"),
    ("items of text", (read(Condition(arg="url", items=True, glob="a")),), "rules.0.when.0", "no list"),
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
    ("no call at all", (read(most=0),), "rules.0.most", "admits none"),
    ("behind a forbid rule", (read(), FORBID), "rules.0", "never reached"),
    (
        "behind a forbid rule with the same condition",
        (read(Condition(arg="url", glob="a*")), FORBID.model_copy(update={"when": (Condition(arg="url", glob="a*"),)})),
        "rules.0",
        "never reached",
    ),
    ("twice the same", (read(), read()), "rules.1", "never reached"),
    (
        "an ask rule behind a replace rule",
        (Rule(tool="read", effect="ask"), Rule(tool="read", effect="replace", message="No.")),
        "rules.0",
        "never reached",
    ),
    ("a door to the web", (Rule(tool="fetch", others=True),), "rules.0.when", "beyond the platform"),
    ("a door to an effect", (Rule(tool="post", others=True),), "rules.0.when", "beyond the platform"),
    ("copies without a reason", (read(copies=True),), "rules.0.copies", "copied"),
    (
        "a substitute that there is not",
        (Rule(tool="read", effect="replace", instead=Substitute(tool="rea")),),
        "rules.0.instead.tool",
        "no tool",
    ),
    (
        "a substitute without what it needs",
        (Rule(tool="read", effect="replace", instead=Substitute(tool="post")),),
        "rules.0.instead.args",
        "needs 'to'",
    ),
    (
        "a substitute's argument from nowhere",
        (Rule(tool="read", effect="replace", instead=Substitute(tool="post", args=(Given(arg="to", of="uri"),))),),
        "rules.0.instead.args.0.of",
        "no argument",
    ),
]


def fetch(**more: Any) -> Rule:
    return Rule(tool="fetch", others=True, when=(Condition(arg="url", **more),))


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
            (Rule(tool="post", others=True, when=(Condition(arg="to", glob="*/new?title=*"),)),),
            "rules.0.when.0.glob",
            "any one character",
        ),
        ("a question mark in a forbid rule", (FORBID_QUERY,), "rules.0.when.0.glob", "any one character"),
        ("a class in a glob", (fetch(glob="https://a.example/[a-z]*"),), "rules.0.when.0.glob", "no classes: [a-z]"),
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
def test_it_is_found_where_it_stands(rules: tuple[Rule, ...], field: str, problem: str) -> None:
    assert any(place == field and problem in said for place, said in found(*rules)), found(*rules)


GOOD: list[tuple[Rule, ...]] = [
    (read(),),
    (read(Condition(arg="limit", maximum=2)), read(Condition(arg="limit", minimum=2))),
    (read(), Rule(tool="read", effect="forbid", when=(Condition(arg="url", glob="*secret*"),))),
    (read(tainted=False), Rule(tool="read", effect="ask", tainted=True, others=True)),
    (Rule(tool="fetch", others=True, reason="It is a closed network."),),
    (Rule(tool="fetch", others=True, when=(Condition(arg="url", host=("a.example",)),)),),
    (Rule(tool="post", effect="ask", others=True),),
    (fetch(glob="https://a.example/search[?]q=*"),),
    (fetch(glob="http*://*"),),
    (fetch(glob="*/search[?]*", host=("*.example.org",)),),
    (fetch(regex=r"https?://docs\.example\.org/(a|b)/[^?]*\?id=\d+"),),
    (fetch(regex=r"https://[a-z]+\.example\.org/.*"),),
    (Rule(tool="post", others=True, when=(Condition(arg="body", glob="report-?.pdf"),)),),
    (read(Condition(arg="url", glob="http://[::1]:8080/*")),),
    (read(), Rule(tool="read", effect="forbid", when=(Condition(arg="url", glob="https://*.example.org/*"),))),
]


@pytest.mark.parametrize("rules", GOOD)
def test_what_can_decide_and_limits_what_it_opens_is_left_alone(rules: tuple[Rule, ...]) -> None:
    assert found(*rules) == []


def test_nothing_is_wrong_with_the_default_policy() -> None:
    tools = {tool.spec.name: tool.spec for tool in registry(web=True)}
    mine = Policy(rules=tuple(rule for rule in default_policy(web=True).rules if rule.tool in tools))
    assert len(mine.rules) == 5
    assert findings(mine, tools) == ()


@pytest.mark.parametrize(
    ("text", "field", "problem"),
    [
        ("", "policy", "no JSON"),
        ('{"rules": [], "rules": []}', "policy", "twice"),
        ('{"rules": [{"tool": "a", "effect": "forbid", "effect": "allow"}]}', "policy", "twice"),
        ('{"rules": [{"tool": "a", "when": [{"arg": "x", "maximum": 1e309}]}]}', "policy", "too large"),
        ('{"rules": [{"tool": "a", "when": [{"arg": "x", "maximum": NaN}]}]}', "policy", "no number"),
        ('{"rules": [{"tool": "a", "most": "5"}]}', "rules.0.most", "integer"),
        ('{"rules": [{"tool": "a", "when": [{"arg": "x", "regex": "(?=a)"}]}]}', "rules.0.when.0.regex", "(?:"),
        ('{"rules": [{"tool": "a", "when": [{"arg": "x", "host": ["*"]}]}]}', "rules.0.when.0.host", "no host"),
        ('{"rules": [{"tool": "a", "when": [{"arg": "x", "path": "../x"}]}]}', "rules.0.when.0.path", "no folder"),
        ('{"rules": [{"tool": "a", "effect": "forbid", "most": 5}]}', "rules.0", "belongs to"),
        ("[" * 100_000, "policy", "no JSON"),
    ],
)
def test_a_file_that_two_readers_could_read_differently_is_refused(text: str, field: str, problem: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read_policy(text)
    assert refused.value.field == field
    assert problem in refused.value.problem


def test_a_policy_in_a_file_is_read_as_it_is_stored() -> None:
    assert read_policy('{"rules": [{"tool": "read", "others": true}]}') == Policy(rules=(read(),))
