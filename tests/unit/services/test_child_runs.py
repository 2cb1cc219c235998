"""What a child may do is never more than what its parent has left: budget, tools and documents."""

from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from offing.core.model import EngineChoice
from offing.core.policy import Policy, Rule, default_policy, is_narrower
from offing.core.run import Budget, RunStatus, Spent
from offing.kernel.store import ParentUsage
from offing.sdk import ChildRequest
from offing.services.child_runs import engines_of, left_of, narrowed, scope_for, shared, within
from offing.storage.runs import RunRow
from tests.workers.graphs import counting

NOBODY: dict[str, int] = {}
FRESH = ParentUsage(Spent(), NOBODY, NOBODY)


def row(**more: Any) -> RunRow:
    made = RunRow(
        id=UUID(int=1),
        thread=UUID(int=2),
        graph="family",
        graph_version="1",
        question="Why?",
        engines={},
        policy={},
        policy_sha256="",
        budget=Budget(turns=10),
        scope={},
        seed=0,
        status=RunStatus.RUNNING,
        stop_reason=None,
        error=None,
        waiting_for=None,
        fence=1,
        cancel_mode=None,
        pause_requested=False,
        deadline=None,
        spent=Spent(),
        last_seq=1,
        created_at=datetime(2026, 1, 1, tzinfo=UTC),
        started_at=None,
        ended_at=None,
        traceparent=None,
        kind="ask",
        durability="sync",
        waiting_since=None,
    )
    return replace(made, **more)


budgets = st.builds(
    Budget,
    turns=st.integers(0, 50),
    tokens=st.none() | st.integers(0, 10_000),
    usd=st.none() | st.decimals(0, 10, places=6),
    seconds=st.none() | st.floats(0, 1_000),
)


@settings(max_examples=200, derandomize=True)
@given(
    budget=budgets,
    wanted=st.none() | budgets,
    turns=st.integers(0, 60),
    tokens=st.integers(0, 12_000),
    among=st.integers(1, 8),
)
def test_all_children_together_may_use_no_more_than_is_left(
    budget: Budget, wanted: Budget | None, turns: int, tokens: int, among: int
) -> None:
    spent = Spent(turns=turns, tokens=tokens, usd=Decimal("0.5"), seconds=3.0)
    left = left_of(budget, spent, ())
    each = within(shared(left, among), wanted)
    assert each.turns * among <= max(0, budget.turns - turns)
    if budget.tokens is not None:
        assert each.tokens is not None
        assert each.tokens * among <= max(0, budget.tokens - tokens)
    if budget.usd is not None:
        assert each.usd is not None
        assert each.usd * among <= max(Decimal(0), budget.usd - spent.usd)
    if budget.seconds is not None:
        assert each.seconds is not None
        assert each.seconds * among <= max(0.0, budget.seconds - 3.0) + 1e-9


def test_what_children_may_still_use_that_were_not_taken_up_is_gone() -> None:
    abroad = row(budget=Budget(turns=4, tokens=300, usd=Decimal(1), seconds=5.0))
    left = left_of(Budget(10, 1_000, Decimal(3), 60.0), Spent(turns=1, tokens=100), [abroad])
    assert left == Budget(5, 600, Decimal(2), 55.0)


def test_a_child_has_its_parents_rules_with_less_of_each_limit() -> None:
    policy = Policy(rules=(Rule(tool="search", most=10, others=True), Rule(tool="write", effect="forbid")))
    had = ParentUsage(Spent(), {"search": 3}, NOBODY)
    child = narrowed(policy, None, 3, had, ())
    assert [(r.tool, r.effect, r.most) for r in child.rules] == [("search", "allow", 2), ("write", "forbid", None)]


@pytest.mark.parametrize("web", [False, True])
def test_what_a_child_is_given_is_proved_to_be_narrower(web: bool) -> None:
    policy = default_policy(web=web)
    had = ParentUsage(Spent(), {"search_library": 7, "fetch_page": 3}, {"fetch_page": 100})
    for tools in (None, ("calculate",), ("search_library", "fetch_page"), ()):
        for among in (1, 3, 16):
            assert is_narrower(narrowed(policy, tools, among, had, ()), policy) is None


def test_calls_that_a_child_may_still_make_are_not_given_twice() -> None:
    policy = Policy(rules=(Rule(tool="search", most=10, others=True),))
    abroad = narrowed(policy, None, 1, ParentUsage(Spent(), {"search": 4}, NOBODY), ())
    assert narrowed(policy, None, 2, FRESH, (abroad,)).rules[0].most == 2


def test_named_tools_are_the_only_ones_that_are_granted_and_prohibitions_stay() -> None:
    forbid = Rule(tool="calculate", effect="forbid")
    policy = Policy(rules=(*default_policy().rules, forbid))
    child = narrowed(policy, ("calculate",), 1, FRESH, ())
    assert [(r.tool, r.effect) for r in child.rules] == [("calculate", "allow"), ("calculate", "forbid")]
    assert narrowed(policy, (), 1, FRESH, ()).rules == (forbid,)


def test_no_scope_grows() -> None:
    mine = {"collections": ["/papers"], "sources": [], "web": True, "world": "w"}
    assert scope_for(mine, ChildRequest("q")) == mine
    narrow = scope_for(mine, ChildRequest("q", collections=("/papers", "/secret"), web=False))
    assert narrow == mine | {"collections": ["/papers"], "web": False}
    none = scope_for(mine, ChildRequest("q", collections=("/secret",)))
    assert none["collections"]
    assert "/secret" not in none["collections"]
    everything = scope_for({}, ChildRequest("q", sources=(UUID(int=7),)))
    assert everything == {"sources": [str(UUID(int=7))]}
    assert "web" not in scope_for({}, ChildRequest("q", web=True))


def test_a_childs_roles_are_answered_by_its_parents_engines() -> None:
    quick, good = EngineChoice(engine="litellm", model="quick"), EngineChoice(engine="litellm", model="good")
    same = row(engines={"lead": good, "writer": good})
    assert engines_of(same, counting, ChildRequest("q")) == {"speaker": good}
    by_name = row(engines={"lead": good, "speaker": quick})
    assert engines_of(by_name, counting, ChildRequest("q")) == {"speaker": quick}
    mapped = ChildRequest("q", engines={"speaker": "lead"})
    assert engines_of(by_name, counting, mapped) == {"speaker": good}
    mixed = row(engines={"lead": good, "writer": quick})
    assert engines_of(mixed, counting, ChildRequest("q")) == {"speaker": EngineChoice()}
