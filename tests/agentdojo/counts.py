"""Counts over all user tasks of AgentDojo, and over all pairs of a user task and an injection with a call that acts."""

from collections import Counter
from dataclasses import dataclass

from offing.core.tool_policy import DecisionType
from tests.agentdojo.minimal_policies import CASES, acts, replayed


@dataclass(frozen=True, slots=True)
class Counts:
    calls: int
    allowed: int
    approvals: int
    denied: int
    pairs: int
    safe: int
    """Pairs in which no call was allowed at once."""


def benign() -> Counts:
    """The solutions' own calls."""
    tasks = [(suite, task) for suite, cases in CASES.items() for task in cases["user"].values()]
    return counted([replayed(suite, task, task["calls"], "") for suite, task in tasks])


def injected() -> Counts:
    """Injected calls that act. An injection whose authors give no call for it is left out."""
    verdicts: list[list[DecisionType]] = []
    for suite, cases in CASES.items():
        for task in cases["user"].values():
            for injection in cases["injection"].values():
                if calls := [call for call in injection["calls"] if acts(call)]:
                    verdicts.append(replayed(suite, task, calls, injection["goal"]))
    return counted(verdicts)


def counted(verdicts: list[list[DecisionType]]) -> Counts:
    all_ = Counter(verdict for one in verdicts for verdict in one)
    safe = sum(DecisionType.ALLOW not in one for one in verdicts)
    return Counts(
        all_.total(), all_[DecisionType.ALLOW], all_[DecisionType.ASK], all_[DecisionType.DENY], len(verdicts), safe
    )
