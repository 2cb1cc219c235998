"""Selection of the next step's groups, and the ledger reasons of rollouts that are not trained.

Groups are taken in the order in which they became complete. Incomplete and stale groups are decided
when they are reached. A step waits for more groups if too few are informative, so that no step is
taken with almost no signal.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from offing.core.errors import InvalidInput
from offing.storage.training_groups import GroupSummary

STALE, INCOMPLETE_GROUP, INFRA_ERROR = "stale", "incomplete_group", "infra_error"


@dataclass(frozen=True, slots=True)
class StepSize:
    """How many groups a training step needs."""

    target_groups: int
    min_informative: int
    """Minimum number of groups whose rewards differ. `0` means no minimum."""
    max_groups: int
    """Maximum number of groups of a step, even if too few of them are informative."""
    max_version_lag: int | None
    """Maximum number of versions that a group may be behind the trained policy. `None` means no limit."""


@dataclass(frozen=True, slots=True)
class GroupSelection:
    """The groups of a step, and the rollouts that are decided without training."""

    groups: tuple[GroupSummary, ...]
    ledger_reasons: Mapping[UUID, str]
    """Ledger reason by run."""
    examined: int
    """Number of groups that were examined."""
    last_group: tuple[datetime, UUID] | None
    """Completion time and id of the last examined group. `None` means that no group was examined."""
    is_full: bool
    """Whether the step is complete."""
    stale_count: int = 0
    incomplete_count: int = 0

    @property
    def informative_count(self) -> int:
        return sum(head.is_informative for head in self.groups)


def select_groups(summaries: Sequence[GroupSummary], step_size: StepSize, policy: str) -> GroupSelection:
    """Select the groups of a step, in their order. `policy` is the job's initial NAME@VERSION.

    If the result is not full, more groups may complete it. If no more groups will come, it is the last step.
    """
    selected: list[GroupSummary] = []
    ledger_reasons: dict[UUID, str] = {}
    examined = stale = short = informative = 0
    last_group = None
    for summary in summaries:
        if _is_full(len(selected), informative, step_size):
            break
        examined, last_group = examined + 1, (summary.completed_at, summary.id)
        usable = {m.run_id for m in summary.final_members}
        ledger_reasons |= {m.run_id: INFRA_ERROR for m in summary.members if m.run_id not in usable}
        if summary.state != "complete":
            short += 1
            ledger_reasons |= dict.fromkeys(usable, INCOMPLETE_GROUP)
        elif is_stale(summary.policy_labels, policy, step_size.max_version_lag):
            stale += 1
            ledger_reasons |= dict.fromkeys(usable, STALE)
        else:
            selected.append(summary)
            informative += summary.is_informative
    return GroupSelection(
        tuple(selected),
        ledger_reasons,
        examined,
        last_group,
        _is_full(len(selected), informative, step_size),
        stale,
        short,
    )


def is_stale(policies: Sequence[str], policy: str, max_version_lag: int | None) -> bool:
    """Return whether a sampling policy has another name, or lags by more than `max_version_lag`."""
    return max_version_lag is not None and any(_version_lag(one, policy) > max_version_lag for one in policies)


def _version_lag(sampled: str, policy: str) -> float:
    name, _, version = sampled.rpartition("@")
    job_policy, _, current = policy.rpartition("@")
    return int(current) - int(version) if name == job_policy else float("inf")


def _is_full(groups: int, informative: int, step_size: StepSize) -> bool:
    return groups >= step_size.max_groups or (
        groups >= step_size.target_groups and informative >= step_size.min_informative
    )


def check_tokenizers(tokenizers: Mapping[str, int], expected: str, policy: str) -> None:
    """Raise InvalidInput unless all rows have the policy's tokenizer.

    `tokenizers` is the number of rows by tokenizer hash.
    """
    if foreign := {t: n for t, n in tokenizers.items() if t != expected}:
        counts = ", ".join(f"{n} with {t[:12] or 'none'}" for t, n in sorted(foreign.items()))
        raise InvalidInput(
            "data",
            f"rows were sampled with another tokenizer than that of {policy} ({expected[:12]}): {counts}",
            "Select rollouts of this tokenizer with `data.rollout_batches`, `data.tags` or `data.since`.",
        )
