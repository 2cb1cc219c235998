"""The tool policy against a slow reference, and against calls that try to get around it."""

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from offing.core.tool import ToolSpec
from offing.core.tool_policy import (
    DENY_ALL,
    Condition,
    DecisionType,
    ToolCallContext,
    ToolPolicy,
    ToolPolicyDecision,
    ToolRule,
    decide,
    hash_tool_policy,
    parse_stored_policy,
)
from offing.core.tool_policy.rules import RuleEffect
from offing.tools import create_tools
from offing.tools.default_policy import default_tool_policy


class Args(BaseModel):
    url: str = ""
    path: str = ""
    count: int = 1
    flag: bool = False
    tags: list[str] = []
    extra: dict[str, Any] = {}


SPEC = ToolSpec("fetch", "Fetches.", Args, "fetch")
BUILT_IN = {tool.spec.name: tool.spec for tool in create_tools()}


def allow(*when: Condition, **more: Any) -> ToolRule:
    return ToolRule(tool="fetch", when=when, **more)


def forbid(*when: Condition) -> ToolRule:
    return ToolRule(tool="fetch", effect="forbid", when=when)


def verdict(policy: ToolPolicy | None, args: dict[str, Any], used: int = 0) -> bool:
    return decide(policy, SPEC, args, ToolCallContext(call_counts={"fetch": used})).is_allowed


# A slow reference, written another way: every rule is turned into a list of findings, and the findings are weighed.


def reference(policy: ToolPolicy, tool: str, declared: set[str], args: dict[str, Any], used: int) -> bool:
    if not set(args) <= declared:
        return False
    findings = [(r.effect, reference_rule(r, args, used)) for r in policy.rules if r.tool == tool]
    if any(effect == "forbid" and finding != "no" for effect, finding in findings):
        return False
    return any(effect == "allow" and finding == "yes" for effect, finding in findings)


def reference_rule(rule: ToolRule, args: dict[str, Any], used: int) -> str:
    """yes, no, or unclear."""
    allows = rule.effect == "allow"
    if allows and rule.max_calls is not None and not used < rule.max_calls:
        return "no"
    if allows and not rule.allow_other_args and set(args) - {c.arg for c in rule.when}:
        return "no"
    for condition in rule.when:
        if condition.arg in args:
            finding = reference_condition(condition, args[condition.arg])
        else:
            finding = "yes" if condition.optional else "no"
        if finding != "yes":
            return finding
    return "yes"


def reference_condition(c: Condition, value: Any) -> str:
    tests: list[Any] = []
    if c.one_of is not None:
        tests.append(lambda: any(kind(value) == kind(v) and value == v for v in c.one_of or ()))
    if c.glob is not None:
        signs: list[str] = re.findall(r"\[[?*[]\]|.", c.glob, re.DOTALL)
        pattern = "".join({"*": "(?:.*)", "?": "."}.get(s, re.escape(s[1] if len(s) == 3 else s)) for s in signs)
        tests.append(lambda: kind(value) == "text" and re.fullmatch(pattern, value, re.DOTALL) is not None)
    for bound, low in ((c.min_length, True), (c.max_length, False)):
        if bound is not None:
            tests.append(lambda b=bound, low=low: len(value) >= b if low else len(value) <= b)
    for bound, low in ((c.minimum, True), (c.maximum, False)):
        if bound is not None:
            tests.append(lambda b=bound, low=low: value >= b if low else value <= b)
    needs = [None, "text", "sized", "sized", "number", "number"]
    present = [c.one_of, c.glob, c.min_length, c.max_length, c.minimum, c.maximum]
    expected = [need for need, value in zip(needs, present, strict=True) if value is not None]
    for need, test in zip(expected, tests, strict=True):
        fits = {None: True, "text": kind(value) == "text", "sized": kind(value) in {"text", "list"}}
        if not fits.get(need, kind(value) == "number"):
            return "unclear"
        if not test():
            return "no"
    return "yes"


def kind(value: Any) -> str:
    for type_, name in ((bool, "bool"), (int, "number"), (float, "number"), (str, "text"), (list, "list")):
        if isinstance(value, type_):
            return name
    return "null" if value is None else "object"


NAMES = st.sampled_from(["url", "path", "count", "flag", "tags", "extra"])
TEXTS = st.text(alphabet="ab*?\n.é", max_size=6)
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(-3, 3), st.sampled_from([0.5, 1.0]), TEXTS)
VALUES = st.one_of(
    SCALARS, st.lists(SCALARS, max_size=3), st.dictionaries(st.sampled_from(["a", "b"]), SCALARS, max_size=2)
)
EFFECTS: st.SearchStrategy[RuleEffect] = st.sampled_from(("allow", "allow", "forbid"))
LENGTHS = st.one_of(st.none(), st.tuples(st.integers(0, 2), st.integers(2, 5)))


@st.composite
def conditions(draw: st.DrawFn) -> Condition:
    lengths, numbers = draw(LENGTHS), draw(LENGTHS)
    some = st.lists(SCALARS, min_size=1, max_size=3)
    return Condition(
        arg=draw(NAMES),
        optional=draw(st.booleans()),
        one_of=tuple(draw(some)) if draw(st.booleans()) else None,
        glob=draw(st.one_of(st.none(), st.text(alphabet="ab*?.[]", min_size=1, max_size=6))),
        min_length=lengths[0] if lengths else None,
        max_length=lengths[1] if lengths else None,
        minimum=numbers[0] if numbers else None,
        maximum=numbers[1] if numbers else None,
    )


@st.composite
def rules(draw: st.DrawFn) -> ToolRule:
    effect = draw(EFFECTS)
    allows = effect == "allow"
    return ToolRule(
        tool=draw(st.sampled_from(["fetch", "fetch", "other"])),
        effect=effect,
        when=tuple(draw(st.lists(conditions(), max_size=2))),
        allow_other_args=allows and draw(st.booleans()),
        max_calls=draw(st.one_of(st.none(), st.integers(0, 3))) if allows else None,
    )


ARGS = st.dictionaries(st.one_of(NAMES, st.just("surprise")), VALUES, max_size=4)


@settings(max_examples=400)
@given(st.lists(rules(), max_size=5), ARGS, st.integers(0, 4))
def test_the_policy_agrees_with_a_slow_reference(rule_list: list[ToolRule], args: dict[str, Any], used: int) -> None:
    policy = ToolPolicy(rules=tuple(rule_list))
    assert verdict(policy, args, used) == reference(policy, "fetch", set(Args.model_fields), args, used)


@given(st.lists(rules(), max_size=4), ARGS, st.integers(0, 4), rules())
def test_a_forbid_rule_never_widens_and_an_allow_rule_never_narrows(
    rule_list: list[ToolRule], args: dict[str, Any], used: int, more: ToolRule
) -> None:
    before = verdict(ToolPolicy(rules=tuple(rule_list)), args, used)
    after = verdict(ToolPolicy(rules=(*rule_list, more)), args, used)
    assert before == after or after == (more.effect == "allow")


@given(st.lists(rules(), max_size=4), ARGS, st.integers(0, 4))
def test_the_order_of_rules_does_not_matter(rule_list: list[ToolRule], args: dict[str, Any], used: int) -> None:
    assert verdict(ToolPolicy(rules=tuple(rule_list)), args, used) == verdict(
        ToolPolicy(rules=tuple(rule_list[::-1])), args, used
    )


@given(st.lists(rules(), max_size=4))
def test_a_policy_survives_storage_with_its_hash(rule_list: list[ToolRule]) -> None:
    policy = ToolPolicy(rules=tuple(rule_list))
    again = parse_stored_policy(policy.model_dump(mode="json"))
    assert again is not None
    assert again == policy
    assert hash_tool_policy(policy) == hash_tool_policy(again)


def test_another_policy_has_another_hash() -> None:
    hashes = {
        hash_tool_policy(p)
        for p in (DENY_ALL, default_tool_policy(), ToolPolicy(rules=(allow(),)), ToolPolicy(rules=(forbid(),)))
    }
    assert len(hashes) == 4


GUARDED = ToolPolicy(
    rules=(
        ToolRule(
            tool="fetch",
            name="docs only",
            when=(
                Condition(arg="url", glob="https://docs.example.org/*", max_length=200),
                Condition(arg="count", optional=True, minimum=1, maximum=10),
                Condition(arg="flag", optional=True, one_of=(False,)),
                Condition(arg="tags", optional=True, max_length=2),
            ),
            max_calls=5,
        ),
        ToolRule(tool="fetch", effect="forbid", name="no secrets", when=(Condition(arg="url", glob="*secret*"),)),
    )
)
GOOD = "https://docs.example.org/a"


def test_what_is_allowed_is_allowed_and_says_by_which_rule() -> None:
    assert decide(GUARDED, SPEC, {"url": GOOD, "count": 3, "flag": False}) == ToolPolicyDecision(
        DecisionType.ALLOW, "docs only"
    )


BYPASSES: list[tuple[str, dict[str, Any]]] = [
    ("no arguments at all", {}),
    ("the guarded argument left out", {"count": 1}),
    ("the guarded argument null", {"url": None}),
    ("the guarded argument a list", {"url": [GOOD]}),
    ("the guarded argument an object", {"url": {"url": GOOD}}),
    ("the guarded argument a number", {"url": 1}),
    ("the guarded argument true", {"url": True}),
    ("an empty address", {"url": ""}),
    ("another host", {"url": "https://example.org/a"}),
    ("a longer host with the same beginning", {"url": "https://docs.example.org.evil.net/a"}),
    ("the allowed host as user name", {"url": "https://docs.example.org@evil.net/a"}),
    ("the allowed host as a path", {"url": "https://evil.net/https://docs.example.org/"}),
    ("the allowed host as a query", {"url": "https://evil.net/?https://docs.example.org/"}),
    ("the allowed host as a fragment", {"url": "https://evil.net/#https://docs.example.org/"}),
    ("another scheme", {"url": "http://docs.example.org/a"}),
    ("a file", {"url": "file:///etc/passwd"}),
    ("script", {"url": "javascript:https://docs.example.org/"}),
    ("capital letters in the scheme", {"url": "HTTPS://docs.example.org/a"}),
    ("capital letters in the host", {"url": "https://DOCS.example.org/a"}),
    ("a space in front", {"url": " " + GOOD}),
    ("a tab in front", {"url": "\t" + GOOD}),
    ("a line break in front", {"url": "\n" + GOOD}),
    ("another line in front", {"url": "x\n" + GOOD}),
    ("a zero-width space in front", {"url": "\u200b" + GOOD}),
    ("a byte order mark in front", {"url": "\ufeff" + GOOD}),
    ("a zero-width space in the host", {"url": "https://docs.\u200bexample.org/a"}),
    ("a soft hyphen in the host", {"url": "https://docs.exam\u00adple.org/a"}),
    ("a full-width stop in the host", {"url": "https://docs\uff0eexample\uff0eorg/a"}),
    ("an ideographic stop in the host", {"url": "https://docs\u3002example.org/a"}),
    ("a Cyrillic letter in the host", {"url": "https://d\u043ecs.example.org/a"}),
    ("a full-width solidus", {"url": "https:\uff0f\uff0fdocs.example.org/a"}),
    ("a back slash for a slash", {"url": "https:\\\\docs.example.org\\a"}),
    ("a percent sign in the host", {"url": "https://docs%2eexample.org/a"}),
    ("a stop after the host", {"url": "https://docs.example.org./a"}),
    ("a port after the host", {"url": "https://docs.example.org:8443/a"}),
    ("a right-to-left override in front", {"url": "\u202e" + GOOD}),
    ("combining marks in the host", {"url": "https://do\u0301cs.example.org/a"}),
    ("a NUL at the end", {"url": GOOD + "\0"}),
    ("a NUL in the host", {"url": "https://docs.example.org\0.evil.net/"}),
    ("half a surrogate pair", {"url": GOOD + "\ud800"}),
    ("a forbidden word", {"url": GOOD + "/secret"}),
    ("a forbidden word on a second line", {"url": GOOD + "\nsecret"}),
    ("an address that is too long", {"url": GOOD + "a" * 200}),
    ("an address that is much too long", {"url": GOOD + "a" * 5_000}),
    ("an address of a megabyte", {"url": GOOD + "a" * 1_000_000}),
    ("an argument that the tool does not declare", {"url": GOOD, "method": "DELETE"}),
    ("an argument with a space in its name", {"url": GOOD, "url ": "http://evil.net"}),
    ("an argument in capital letters", {"url": GOOD, "URL": "http://evil.net"}),
    ("an argument with a look-alike name", {"url": GOOD, "\u0443rl": "http://evil.net"}),
    ("an argument that the rule does not name", {"url": GOOD, "path": "/etc"}),
    ("an object that the rule does not name", {"url": GOOD, "extra": {"url": "http://evil.net"}}),
    ("a number that is too large", {"url": GOOD, "count": 11}),
    ("a number that is too small", {"url": GOOD, "count": 0}),
    ("a negative number", {"url": GOOD, "count": -1}),
    ("a number beyond all bounds", {"url": GOOD, "count": 10**400}),
    ("infinity", {"url": GOOD, "count": float("inf")}),
    ("1e309", {"url": GOOD, "count": 1e309}),
    ("not a number", {"url": GOOD, "count": float("nan")}),
    ("a number as text", {"url": GOOD, "count": "3"}),
    ("true for a number", {"url": GOOD, "count": True}),
    ("null for a number", {"url": GOOD, "count": None}),
    ("a list for a number", {"url": GOOD, "count": [3]}),
    ("true where false is allowed", {"url": GOOD, "flag": True}),
    ("zero for false", {"url": GOOD, "flag": 0}),
    ("an empty text for false", {"url": GOOD, "flag": ""}),
    ("null for false", {"url": GOOD, "flag": None}),
    ("text for a list", {"url": GOOD, "tags": "abc"}),
    ("a list that is too long", {"url": GOOD, "tags": ["a", "b", "c"]}),
    ("a number for a list", {"url": GOOD, "tags": 2}),
    ("a set", {"url": GOOD, "tags": {"a"}}),
    ("bytes", {"url": GOOD.encode()}),
    ("a key that is no text", {"url": GOOD, 1: "x"}),  # type: ignore[dict-item]
    ("a value that is no JSON", {"url": GOOD, "tags": [object()]}),
]


@pytest.mark.parametrize("args", [args for _, args in BYPASSES], ids=[name for name, _ in BYPASSES])
def test_no_way_around(args: dict[str, Any]) -> None:
    decision = decide(GUARDED, SPEC, args)
    assert not decision.is_allowed
    assert decision.reason


def nested(depth: int) -> dict[str, Any]:
    value: Any = "x"
    for _ in range(depth):
        value = [value]
    return {"tags": value}


@pytest.mark.parametrize("args", [nested(100), nested(100_000), {"tags": ["x"] * 100_000}])
def test_arguments_that_are_too_large_to_judge_are_denied_even_where_anything_goes(args: dict[str, Any]) -> None:
    open_door = ToolPolicy(rules=(allow(allow_other_args=True),))
    assert verdict(open_door, {"tags": ["x"]})
    assert not verdict(open_door, args)


def test_a_forbid_rule_that_cannot_be_tried_denies() -> None:
    policy = ToolPolicy(rules=(allow(allow_other_args=True), forbid(Condition(arg="extra", glob="*secret*"))))
    assert verdict(policy, {"extra": "fine"})
    assert not verdict(policy, {"extra": {"a": "secret"}})
    assert not verdict(policy, {"extra": "a" * 5_000})


def test_a_limit_on_calls_holds_for_the_run() -> None:
    assert verdict(GUARDED, {"url": GOOD}, used=4)
    assert "5 times" in decide(GUARDED, SPEC, {"url": GOOD}, ToolCallContext(call_counts={"fetch": 5})).reason


def test_a_tool_is_known_by_its_exact_name() -> None:
    for name in ("Fetch", "fetch ", "fetc", "fetch2", "fetch\u200b", "*"):
        assert not decide(ToolPolicy(rules=(ToolRule(tool=name, allow_other_args=True),)), SPEC, {}).is_allowed


def test_without_rules_or_without_a_policy_nothing_is_allowed() -> None:
    assert not decide(DENY_ALL, SPEC, {}).is_allowed
    assert decide(None, SPEC, {}) == ToolPolicyDecision(DecisionType.DENY, reason="The run has no valid tool policy.")


INVALID: list[Any] = [
    None,
    [],
    "allow",
    {"rules": None},
    {"rules": [{"tool": "fetch", "effect": "permit"}]},
    {"rules": [{"tool": "fetch", "allow_other_args": "yes"}]},
    {"rules": [{"tool": "", "allow_other_args": True}]},
    {"rules": [{"tool": "fetch", "allow_other_args": True, "priority": 9}]},
    {"rules": [{"tool": "fetch", "when": [{"arg": "url", "regex": "(.*"}]}]},
    {"rules": [{"tool": "fetch", "when": [{"arg": "url", "one_of": []}]}]},
    {"rules": [{"tool": "fetch", "when": [{"arg": "url", "glob": ""}]}]},
    {"rules": [{"tool": "fetch", "when": [{"arg": "url", "glob": "*a" * 9}]}]},
    {"rules": [{"tool": "fetch", "when": [{"arg": "url", "min_length": 3, "max_length": 2}]}]},
    {"rules": [{"tool": "fetch", "when": [{"arg": "count", "minimum": 3, "maximum": 2}]}]},
    {"rules": [{"tool": "fetch", "max_calls": -1, "allow_other_args": True}]},
    {"rule": []},
]


@pytest.mark.parametrize("stored", INVALID)
def test_an_invalid_policy_denies_everything(stored: object) -> None:
    assert parse_stored_policy(stored) is None
    assert not decide(parse_stored_policy(stored), SPEC, {}).is_allowed


def test_an_unforeseen_failure_denies() -> None:
    class Broken(BaseModel):
        @property
        def rules(self) -> tuple[ToolRule, ...]:
            raise RuntimeError("broken")

    decision = decide(Broken(), SPEC, {})  # type: ignore[arg-type]
    assert decision == ToolPolicyDecision(
        DecisionType.DENY, reason="The tool policy could not be evaluated (RuntimeError)."
    )


def test_a_policy_cannot_be_changed_in_place() -> None:
    with pytest.raises(ValidationError):
        GUARDED.rules[0].tool = "other"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("tool", "args", "allowed"),
    [
        ("search_library", {"query": "connection pooling", "limit": 8}, True),
        ("search_library", {"query": "x" * 500, "limit": 20}, True),
        ("search_library", {"query": "x" * 501, "limit": 8}, False),
        ("search_library", {"query": "", "limit": 8}, False),
        ("search_library", {"query": "x", "limit": 21}, False),
        ("search_library", {"limit": 8}, False),
        ("read_source", {"source": "guide.md", "start": 0, "length": 3_000}, True),
        ("read_source", {"source": "guide.md", "start": -1, "length": 3_000}, False),
        ("read_source", {"source": "guide.md", "start": 0, "length": 6_001}, False),
        ("read_source", {"source": "guide.md", "start": 0, "length": True}, False),
        ("calculate", {"expression": "1 + 1"}, True),
        ("calculate", {"expression": "1" * 501}, False),
        ("calculate", {"expression": "1", "locals": {}}, False),
    ],
)
def test_the_default_policy_admits_the_tools_that_come_with_the_platform(
    tool: str, args: dict[str, Any], allowed: bool
) -> None:
    assert decide(default_tool_policy(), BUILT_IN[tool], args).is_allowed is allowed


def test_the_default_policy_admits_no_other_tool() -> None:
    assert set(BUILT_IN) == {"search_library", "read_source", "calculate"}
    assert not decide(default_tool_policy(), SPEC, {"url": GOOD}).is_allowed


def test_a_glob_with_many_stars_on_a_long_text_is_decided_quickly() -> None:
    policy = ToolPolicy(rules=(allow(Condition(arg="url", glob="*a*a*a*a*a*a*a*b")),))
    assert not verdict(policy, {"url": "a" * 4_000})
