"""Which groups make the next step, and what is decided about those that do not. Pure.

Groups are taken in the order in which they became complete. A short group and a stale one are decided on as they are
met; too few informative ones make a step wait for more, so that no step is taken on next to no signal.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from offing.core.errors import InvalidInput
from offing.storage.training_groups import GroupHead

STALE, SHORT, FAULT = "stale", "short_group", "infra_error"


@dataclass(frozen=True, slots=True)
class Wanted:
    """How large a step is."""

    groups: int
    informative: int
    """At least so many whose rewards differ. 0: it does not matter."""
    most: int
    """Groups of a step at most, however few are informative."""
    max_lag: int | None
    """Versions that a group may be older than the policy it is to train. None: any."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The groups of a step, and the rollouts that are decided on without training."""

    groups: tuple[GroupHead, ...]
    decided: Mapping[UUID, str]
    """Ledger reason by run."""
    looked: int
    """Groups that were looked at."""
    after: tuple[datetime, UUID] | None
    """Where those end. None: there were none."""
    enough: bool
    """Whether it is a whole step."""
    stale: int = 0
    short: int = 0

    @property
    def informative(self) -> int:
        return sum(head.informative for head in self.groups)


def choose(heads: Sequence[GroupHead], wanted: Wanted, policy: str) -> Choice:
    """A step from groups in their order; `policy` is the NAME@VERSION that the job began with.

    Not `enough`: more groups may complete it; with no more to come, it is what is left.
    """
    taken: list[GroupHead] = []
    decided: dict[UUID, str] = {}
    looked = stale = short = informative = 0
    after = None
    for head in heads:
        if _full(len(taken), informative, wanted):
            break
        looked, after = looked + 1, (head.completed_at, head.id)
        standing = {m.run for m in head.standing}
        decided |= {m.run: FAULT for m in head.members if m.run not in standing}
        if head.state != "complete":
            short += 1
            decided |= dict.fromkeys(standing, SHORT)
        elif too_old(head.policies, policy, wanted.max_lag):
            stale += 1
            decided |= dict.fromkeys(standing, STALE)
        else:
            taken.append(head)
            informative += head.informative
    return Choice(tuple(taken), decided, looked, after, _full(len(taken), informative, wanted), stale, short)


def too_old(sampled: Sequence[str], policy: str, max_lag: int | None) -> bool:
    """Whether one of the policies that sampled is another one, or lags by more than `max_lag` versions."""
    return max_lag is not None and any(_lag(one, policy) > max_lag for one in sampled)


def _lag(sampled: str, policy: str) -> float:
    name, _, version = sampled.rpartition("@")
    ours, _, current = policy.rpartition("@")
    return int(current) - int(version) if name == ours else float("inf")


def _full(groups: int, informative: int, wanted: Wanted) -> bool:
    return groups >= wanted.most or (groups >= wanted.groups and informative >= wanted.informative)


def refuse_mixed(tokenizers: Mapping[str, int], expected: str, policy: str) -> None:
    """`tokenizers`: rows by hash. Raises InvalidInput unless all are the policy's own."""
    if foreign := {t: n for t, n in tokenizers.items() if t != expected}:
        told = ", ".join(f"{n} with {t[:12] or 'none'}" for t, n in sorted(foreign.items()))
        raise InvalidInput(
            "data",
            f"rows were sampled with another tokenizer than that of {policy} ({expected[:12]}): {told}",
            "Choose rollouts of one tokenizer with `data.batches`, `data.tags` or `data.since`.",
        )
