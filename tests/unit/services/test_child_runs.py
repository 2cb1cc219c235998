"""What a child may do is never more than what its parent has left: budget, tools and documents."""

from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from offing.core.model import EngineConfig
from offing.core.run import Budget, RunStatus, RunUsage
from offing.core.tool_policy import ToolPolicy, ToolRule, find_unproven_restriction
from offing.kernel.run_store import ParentUsage
from offing.models.model_limits import RoleLimits, resolve_model_limits
from offing.sdk import REPORT_ANSWER_TOKENS, ChildRequest
from offing.services.child_runs import (
    build_child_scope,
    choose_child_engines,
    limit_budget,
    remaining_budget,
    restrict_for_child,
    split_budget,
)
from offing.storage.runs import RunRow
from offing.tools.default_policy import default_tool_policy
from tests.workers.graphs import counting

NOBODY: dict[str, int] = {}
FRESH = ParentUsage(RunUsage(), NOBODY, NOBODY)


def row(**more: Any) -> RunRow:
    created = RunRow(
        id=UUID(int=1),
        thread_id=UUID(int=2),
        graph="family",
        graph_version="1",
        question="Why?",
        engines={},
        tool_policy={},
        tool_policy_sha256="",
        budget=Budget(max_turns=10),
        scope={},
        seed=0,
        status=RunStatus.RUNNING,
        stop_reason=None,
        error=None,
        waiting_for=None,
        fence=1,
        cancel_mode=None,
        pause_requested=False,
        deadline_at=None,
        usage=RunUsage(),
        last_seq=1,
        created_at=datetime(2026, 1, 1, tzinfo=UTC),
        started_at=None,
        ended_at=None,
        traceparent=None,
        kind="ask",
        durability="sync",
        waiting_since=None,
    )
    return replace(created, **more)


budgets = st.builds(
    Budget,
    max_turns=st.integers(0, 50),
    max_tokens=st.none() | st.integers(0, 10_000),
    max_cost_usd=st.none() | st.decimals(0, 10, places=6),
    max_seconds=st.none() | st.floats(0, 1_000),
)


@settings(max_examples=200, derandomize=True)
@given(
    budget=budgets,
    requested=st.none() | budgets,
    turns=st.integers(0, 60),
    tokens=st.integers(0, 12_000),
    among=st.integers(1, 8),
)
def test_all_children_together_may_use_no_more_than_is_left(
    budget: Budget, requested: Budget | None, turns: int, tokens: int, among: int
) -> None:
    spent = RunUsage(turns=turns, tokens=tokens, cost_usd=Decimal("0.5"), seconds=3.0)
    left = remaining_budget(budget, spent, ())
    each = limit_budget(split_budget(left, among), requested)
    assert each.max_turns * among <= max(0, budget.max_turns - turns)
    if budget.max_tokens is not None:
        assert each.max_tokens is not None
        assert each.max_tokens * among <= max(0, budget.max_tokens - tokens)
    if budget.max_cost_usd is not None:
        assert each.max_cost_usd is not None
        assert each.max_cost_usd * among <= max(Decimal(0), budget.max_cost_usd - spent.cost_usd)
    if budget.max_seconds is not None:
        assert each.max_seconds is not None
        assert each.max_seconds * among <= max(0.0, budget.max_seconds - 3.0) + 1e-9


def test_what_unconsumed_children_may_still_use_is_subtracted() -> None:
    abroad = row(budget=Budget(max_turns=4, max_tokens=300, max_cost_usd=Decimal(1), max_seconds=5.0))
    left = remaining_budget(Budget(10, 1_000, Decimal(3), 60.0), RunUsage(turns=1, tokens=100), [abroad])
    assert left == Budget(5, 600, Decimal(2), 55.0)


def test_a_child_has_its_parents_rules_with_less_of_each_limit() -> None:
    policy = ToolPolicy(
        rules=(ToolRule(tool="search", max_calls=10, allow_other_args=True), ToolRule(tool="write", effect="forbid"))
    )
    had = ParentUsage(RunUsage(), {"search": 3}, NOBODY)
    child = restrict_for_child(policy, None, 3, had, ())
    assert [(r.tool, r.effect, r.max_calls) for r in child.rules] == [("search", "allow", 2), ("write", "forbid", None)]


@pytest.mark.parametrize("web", [False, True])
def test_what_a_child_is_given_is_proved_to_be_narrower(web: bool) -> None:
    policy = default_tool_policy(web=web)
    had = ParentUsage(RunUsage(), {"search_library": 7, "fetch_page": 3}, {"fetch_page": 100})
    for tools in (None, ("calculate",), ("search_library", "fetch_page"), ()):
        for among in (1, 3, 16):
            assert find_unproven_restriction(restrict_for_child(policy, tools, among, had, ()), policy) is None


def test_calls_that_a_child_may_still_make_are_not_given_twice() -> None:
    policy = ToolPolicy(rules=(ToolRule(tool="search", max_calls=10, allow_other_args=True),))
    abroad = restrict_for_child(policy, None, 1, ParentUsage(RunUsage(), {"search": 4}, NOBODY), ())
    assert restrict_for_child(policy, None, 2, FRESH, (abroad,)).rules[0].max_calls == 2


def test_named_tools_are_the_only_ones_that_are_granted_and_prohibitions_stay() -> None:
    forbid = ToolRule(tool="calculate", effect="forbid")
    policy = ToolPolicy(rules=(*default_tool_policy().rules, forbid))
    child = restrict_for_child(policy, ("calculate",), 1, FRESH, ())
    assert [(r.tool, r.effect) for r in child.rules] == [("calculate", "allow"), ("calculate", "forbid")]
    assert restrict_for_child(policy, (), 1, FRESH, ()).rules == (forbid,)


def test_no_scope_grows() -> None:
    mine = {"collections": ["/papers"], "sources": [], "web": True, "environment": "w"}
    assert build_child_scope(mine, ChildRequest("q")) == mine
    narrow = build_child_scope(mine, ChildRequest("q", collections=("/papers", "/secret"), allow_web=False))
    assert narrow == mine | {"collections": ["/papers"], "web": False}
    none = build_child_scope(mine, ChildRequest("q", collections=("/secret",)))
    assert none["collections"]
    assert "/secret" not in none["collections"]
    everything = build_child_scope({}, ChildRequest("q", sources=(UUID(int=7),)))
    assert everything == {"sources": [str(UUID(int=7))]}
    assert "web" not in build_child_scope({}, ChildRequest("q", allow_web=True))


def test_a_childs_roles_are_answered_by_its_parents_engines() -> None:
    quick, good = EngineConfig(engine="rules", model="quick"), EngineConfig(engine="rules", model="good")
    same = row(engines={"lead": good, "writer": good})
    assert choose_child_engines(same, counting, ChildRequest("q")) == {"speaker": good}
    by_name = row(engines={"lead": good, "speaker": quick})
    assert choose_child_engines(by_name, counting, ChildRequest("q")) == {"speaker": quick}
    mapped = ChildRequest("q", engines={"speaker": "lead"})
    assert choose_child_engines(by_name, counting, mapped) == {"speaker": good}
    mixed = row(engines={"lead": good, "writer": quick})
    assert choose_child_engines(mixed, counting, ChildRequest("q")) == {"speaker": EngineConfig()}


def test_a_child_of_roles_with_different_limits_has_the_common_engine_with_the_limits_of_its_own_roles() -> None:
    model = EngineConfig(engine="litellm", model="openai/gpt-4o")
    limited = {
        "lead": resolve_model_limits(model, RoleLimits()),
        "writer": resolve_model_limits(model, RoleLimits(REPORT_ANSWER_TOKENS)),
    }
    assert choose_child_engines(row(engines=limited), counting, ChildRequest("q")) == {"speaker": limited["lead"]}
    set_by_user = {"lead": model.model_copy(update={"max_tokens": 99})}
    child = choose_child_engines(row(engines=set_by_user), counting, ChildRequest("q"))["speaker"]
    assert child.answer_tokens == 99
