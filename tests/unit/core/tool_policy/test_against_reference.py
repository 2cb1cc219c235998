"""Decisions over random policies and calls, against a slow reference; and what holds of all policies."""

from collections import Counter
from random import Random

from offing.core.tool_policy import DecisionType, ToolPolicy, decide, hash_tool_policy, parse_stored_policy
from tests.unit.core.tool_policy import random_policies as at_random
from tests.unit.core.tool_policy.random_policies import SPEC, STOPPING, Args
from tests.unit.core.tool_policy.reference import verdict

PAIRS = 10_000
DECLARED = set(Args.model_fields)


def test_ten_thousand_random_pairs_of_policy_and_call_are_decided_as_the_reference_decides() -> None:
    chance, verdicts = Random(1), Counter[str]()
    for _ in range(PAIRS):
        policy, args, (context, read) = at_random.policy(chance), at_random.args(chance), at_random.moment(chance)
        expected = verdict(policy, "fetch", DECLARED, args, context, read)
        assert decide(policy, SPEC, args, context).type == expected, (policy, args, context)
        verdicts[expected] += 1
    assert min(verdicts[kind] for kind in DecisionType) > 200, verdicts


def test_the_order_in_which_rules_are_written_does_not_matter() -> None:
    chance = Random(2)
    for _ in range(1_000):
        policy, args, (context, _) = at_random.policy(chance), at_random.args(chance), at_random.moment(chance)
        shuffled = ToolPolicy(rules=tuple(chance.sample(policy.rules, len(policy.rules))))
        assert decide(shuffled, SPEC, args, context).type is decide(policy, SPEC, args, context).type


def test_a_rule_that_does_not_allow_never_lets_a_call_through_at_once() -> None:
    chance = Random(3)
    for _ in range(1_000):
        policy, args, (context, _) = at_random.policy(chance), at_random.args(chance), at_random.moment(chance)
        more = ToolPolicy(rules=(*policy.rules, at_random.rule(chance, STOPPING)))
        assert decide(policy, SPEC, args, context).is_allowed or not decide(more, SPEC, args, context).is_allowed


def test_every_decision_says_why_or_by_which_rule_and_only_a_replacement_calls_something_else() -> None:
    chance = Random(4)
    for _ in range(1_000):
        decision = decide(at_random.policy(chance), SPEC, at_random.args(chance), at_random.moment(chance)[0])
        assert decision.rule or decision.reason
        assert decision.replacement is None or decision.type is DecisionType.REPLACE


def test_a_policy_comes_out_of_storage_as_it_went_in_with_the_same_hash() -> None:
    chance = Random(5)
    for policy in (at_random.policy(chance) for _ in range(300)):
        for stored in (policy.to_json(), policy.model_dump(mode="json")):
            again = parse_stored_policy(stored)
            assert again == policy
            assert again is not None
            assert hash_tool_policy(again) == hash_tool_policy(policy)
