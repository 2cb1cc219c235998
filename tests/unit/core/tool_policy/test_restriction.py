"""What is accepted as narrower allows no more, at any moment; and what a person would call narrower is accepted."""

from random import Random
from typing import Any

import pytest

from offing.core.tool_policy import (
    Condition,
    DecisionType,
    ToolCallContext,
    ToolPolicy,
    ToolRule,
    UnprovenRestriction,
    apply_restriction,
    decide,
    find_unproven_restriction,
    parse_restriction,
)
from offing.tools.default_policy import default_tool_policy
from tests.unit.core.tool_policy import random_policies as at_random
from tests.unit.core.tool_policy.random_policies import SEEN, SPEC

RANK = {DecisionType.ALLOW: 2, DecisionType.ASK: 1, DecisionType.REPLACE: 0, DecisionType.DENY: 0}


def likely(chance: Random) -> tuple[ToolPolicy, ToolPolicy]:
    """A policy, and another one that came of it by small changes, most of which narrow."""
    old = at_random.policy(chance, 3)
    new = [changed(rule, chance) for rule in old.rules if chance.random() < 0.85]
    more = [at_random.rule(chance)] if chance.random() < 0.3 else []
    return old, ToolPolicy(rules=(*new, *more))


def changed(rule: ToolRule, chance: Random) -> ToolRule:
    way = chance.randint(0, 6)
    match way:
        case 0 if rule.when:
            return rule.model_copy(update={"when": rule.when[:-1]})
        case 1 if rule.when:
            return rule.model_copy(update={"when": (at_random.condition(chance, rule.when[0].arg), *rule.when[1:])})
        case 2 if rule.effect in ("allow", "ask"):
            return rule.model_copy(
                update={"max_calls": chance.randint(0, 2), "allow_other_args": False, "allow_copied_text": False}
            )
        case 3:
            return rule.model_copy(update={"when_tainted": chance.choice([True, False, None])})
        case 4:
            return rule.model_copy(update={"when": (*rule.when, at_random.condition(chance))})
        case _:
            return rule


def test_no_call_at_no_moment_is_let_further_by_what_is_proved_narrower() -> None:
    chance, proved = Random(6), 0
    for _ in range(4_000):
        old, new = likely(chance)
        if find_unproven_restriction(new, old) is None and any(rule.effect in ("allow", "ask") for rule in new.rules):
            proved += 1
            for _ in range(12):
                args, (context, _) = at_random.args(chance), at_random.moment(chance)
                before, after = decide(old, SPEC, args, context), decide(new, SPEC, args, context)
                assert RANK[after.type] <= RANK[before.type], (old, new, args, context)
    assert proved > 500


def test_one_allow_rule_is_proved_to_cover_another_only_where_it_does() -> None:
    chance, proved = Random(7), 0
    for _ in range(6_000):
        arg = chance.choice(at_random.NAMES)
        old, new = (conditioned(chance, arg) for _ in range(2))
        if find_unproven_restriction(new, old) is None:
            proved += 1
            for args in ({}, *({arg: at_random.value(chance, arg)} for _ in range(12))):
                assert decide(old, SPEC, args).is_allowed or not decide(new, SPEC, args).is_allowed, (old, new, args)
    assert proved > 500


def conditioned(chance: Random, arg: str) -> ToolPolicy:
    when = tuple(at_random.condition(chance, arg) for _ in range(chance.randint(0, 2)))
    return ToolPolicy(rules=(ToolRule(tool="fetch", when=when, allow_other_args=True),))


def allow(**condition: Any) -> ToolRule:
    return ToolRule(tool="fetch", when=(Condition(arg="url", **condition),))


def policy(*rules: ToolRule) -> ToolPolicy:
    return ToolPolicy(rules=rules)


ACCEPTED: list[tuple[ToolRule, ToolRule]] = [
    (allow(one_of=("a",)), allow(one_of=("a", "b"))),
    (allow(one_of=("https://a.example/",)), allow(host=("*.example",), max_length=30)),
    (allow(glob="https://a.example/docs/*"), allow(glob="https://a.example/*")),
    (allow(regex="[0-9]{4}"), allow(regex="\\d+")),
    (allow(regex="a(b|c)d"), allow(glob="a?d")),
    (allow(glob="ab*", max_length=5), allow(glob="*")),
    (allow(host=("docs.a.example",)), allow(host=("*.a.example", "b.example"))),
    (allow(host=("*.docs.a.example",)), allow(host=("*.a.example",))),
    (allow(path="/data", max_length=9), allow(path="/data")),
    (allow(minimum=2, maximum=3), allow(minimum=1, maximum=3)),
    (allow(items=True, one_of=("a",)), allow(items=True, one_of=("a", "b"))),
    (allow().model_copy(update={"max_calls": 3}), allow().model_copy(update={"max_calls": 4})),
    (allow().model_copy(update={"when_tainted": False}), allow()),
]


@pytest.mark.parametrize(("narrow", "wide"), ACCEPTED)
def test_what_is_plainly_narrower_is_proved_and_its_reverse_is_not(narrow: ToolRule, wide: ToolRule) -> None:
    assert find_unproven_restriction(policy(narrow), policy(wide)) is None
    assert isinstance(find_unproven_restriction(policy(wide), policy(narrow)), UnprovenRestriction)


FORBID = ToolRule(tool="fetch", effect="forbid", when=(Condition(arg="url", glob="*secret*"),))


def test_a_policy_is_narrower_than_itself_and_nothing_is_narrower_than_all() -> None:
    assert find_unproven_restriction(default_tool_policy(web=True), default_tool_policy(web=True)) is None
    assert find_unproven_restriction(default_tool_policy(), default_tool_policy(web=True)) is None
    assert find_unproven_restriction(policy(), default_tool_policy()) is None
    assert find_unproven_restriction(default_tool_policy(web=True), default_tool_policy()) is not None


def test_a_rule_that_stopped_calls_must_stay() -> None:
    unproven = find_unproven_restriction(policy(allow(glob="*")), policy(allow(glob="*"), FORBID))
    assert isinstance(unproven, UnprovenRestriction)
    assert unproven.rule == "forbid fetch #2"
    wider = FORBID.model_copy(update={"when": ()})
    assert find_unproven_restriction(policy(allow(glob="*"), wider), policy(allow(glob="*"), FORBID)) is None


def test_what_a_person_decided_is_not_decided_without_one() -> None:
    ask = ToolRule(tool="fetch", effect="ask", when=(Condition(arg="url"),))
    assert find_unproven_restriction(policy(allow(glob="*")), policy(ask)) is not None
    assert find_unproven_restriction(policy(ask), policy(allow())) is None
    assert find_unproven_restriction(policy(ask), policy(ask)) is None


def test_a_proposal_replaces_what_was_allowed_of_its_tools_and_keeps_all_that_was_stopped() -> None:
    old = policy(allow(glob="https://*"), FORBID, ToolRule(tool="other"))
    new = apply_restriction(old, [allow(glob="https://a.example/*")])
    assert new == policy(FORBID, ToolRule(tool="other"), allow(glob="https://a.example/*"))


def test_a_proposal_that_allows_more_is_rejected_and_says_which_rule() -> None:
    rejected = apply_restriction(
        policy(allow(glob="https://*")), [allow(glob="*").model_copy(update={"name": "all of it"})]
    )
    assert isinstance(rejected, UnprovenRestriction)
    assert rejected.rule == "all of it"


def test_copied_text_is_read_as_such_in_these_tests() -> None:
    args = {"url": "https://evil.net/?q=the+harbour+master"}
    context = ToolCallContext(untrusted_shingles=SEEN)
    assert not decide(policy(allow(glob="*")), SPEC, args, context).is_allowed
    assert decide(
        policy(allow(glob="*").model_copy(update={"allow_copied_text": True})), SPEC, args, context
    ).is_allowed


HOSTILE: list[tuple[Any, str]] = [
    ([{"tool": "fetch", "allow_other_args": True}], "not proved"),
    ([{"tool": "fetch", "when": [{"arg": "url", "glob": "https://*"}], "allow_copied_text": True}], "not proved"),
    ([{"tool": "other", "when": [{"arg": "url", "one_of": ["https://a.example/"]}]}], "not proved"),
    ([{"tool": "fetch", "effect": "permit"}], "0.effect"),
    ([{"tool": "fetch", "when": [{"arg": "url", "regex": "(a"}]}], "0.when.0.regex"),
    ([{"tool": "fetch", "when": [{"arg": "url", "regex": "((((a{100}){100}){100}){100})"}]}], "0.when.0.regex"),
    ([{"tool": "fetch", "allow_other_args": True}] * 101, "more than 100"),
    ([{}], "0.tool"),
    ([{"tool": "fetch", "effect": "ask", "allow_other_args": True}], "not proved"),
]


@pytest.mark.parametrize(("rules", "problem"), HOSTILE)
def test_a_proposal_that_widens_or_is_none_leaves_the_policy_and_says_why(rules: Any, problem: str) -> None:
    text = parse_restriction(policy(allow(glob="https://*"), FORBID), rules)
    assert isinstance(text, str)
    assert problem in text


def test_a_proposal_may_forbid_and_replace_whatever_it_likes() -> None:
    rules = [
        {"tool": "fetch", "effect": "forbid", "when": [{"arg": "url", "glob": "*private*"}]},
        {"tool": "other", "effect": "replace", "message": "Not needed."},
    ]
    restriction = parse_restriction(policy(allow(glob="https://*")), rules)
    assert isinstance(restriction, ToolPolicy)
    assert len(restriction.rules) == 3
