"""A report on the data of a job before it starts: counts, lengths and problems. It reads no tokens."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from offing.core.errors import InvalidInput
from offing.storage import training_groups
from offing.storage.policy_versions import PolicyVersionRow
from offing.storage.pool import Database
from offing.storage.training_groups import GroupSummary, TurnStats
from offing_trainer.config import TrainConfig
from offing_trainer.job.group_loader import load_reference_answers
from offing_trainer.job.group_query import build_group_query
from offing_trainer.job.group_selection import is_stale
from offing_trainer.job.pipeline_trainer import needs_reference_answers, trains_on_text
from offing_trainer.pipeline import Pipeline


@dataclass(frozen=True, slots=True)
class DataReport:
    """The data that a configuration selects."""

    complete_groups: int
    incomplete_groups: int
    stale_groups: int
    informative_groups: int
    """Complete groups that are not stale and whose rewards differ."""
    rollouts: int
    outcomes: Mapping[str, int]
    mean_reward: float | None
    """Mean reward. `None` means that nothing is scored."""
    turns_by_trainability: Mapping[str, int]
    """Number of turns by trainability: `rl`, `sft`, `none`, `quarantined`."""
    turns_by_policy: Mapping[str, int]
    """Number of turns by NAME@VERSION of the sampling policy."""
    trainable_tokens: int
    """Number of sampled tokens that can be trained."""
    rollouts_by_tokens: Mapping[int, int] = field(default_factory=dict[int, int])
    """Number of rollouts by trained tokens. Each bin reaches from its key to twice that number."""
    steps_per_pass: int = 0
    """Approximate number of steps per pass over the data."""
    warnings: tuple[str, ...] = ()


async def build_data_report(
    database: Database, tenant_id: UUID, config: TrainConfig, pipeline: Pipeline, policy: PolicyVersionRow
) -> DataReport:
    """Build the report. Raises InvalidInput if the pipeline cannot be trained on this data at all."""
    query = build_group_query(config.data)
    async with database.transaction(tenant_id) as connection:
        now, _ = await training_groups.get_high_water_mark(connection)
        summaries = await training_groups.list_all_groups(connection, query, now)
        turns = await training_groups.list_turn_stats(connection, query, now)
        lengths = await training_groups.count_rollout_lengths(connection, query, now)
    report = _build_report(config, summaries, turns, lengths)
    _check_trainable(config, pipeline, policy, report, turns)
    if needs_reference_answers(pipeline):
        await load_reference_answers(
            database, tenant_id, {head.task_id for head in summaries if head.state == "complete"}
        )
    return report


def _build_report(
    config: TrainConfig, summaries: Sequence[GroupSummary], turns: Sequence[TurnStats], lengths: Mapping[int, int]
) -> DataReport:
    complete = [head for head in summaries if head.state == "complete"]
    fresh = [head for head in complete if not is_stale(head.policy_labels, config.policy, config.data.max_version_lag)]
    members = [member for head in fresh for member in head.final_members]
    rewards = [member.reward for member in members if member.reward is not None]
    uses, policies = Counter[str](), Counter[str]()
    for one in turns:
        uses["quarantined" if one.is_quarantined else one.trainable] += one.turn_count
        policies[one.policy or "other engines"] += one.turn_count
    informative = sum(head.is_informative for head in fresh)
    return DataReport(
        complete_groups=len(complete),
        incomplete_groups=len(summaries) - len(complete),
        stale_groups=len(complete) - len(fresh),
        informative_groups=informative,
        rollouts=len(members),
        outcomes=Counter(member.outcome for member in members),
        mean_reward=sum(rewards) / len(rewards) if rewards else None,
        turns_by_trainability=uses,
        turns_by_policy=policies,
        trainable_tokens=sum(one.token_count for one in turns if one.trainable == "rl" and not one.is_quarantined),
        rollouts_by_tokens=lengths,
        steps_per_pass=-(-len(fresh) // config.data.groups_per_step),
        warnings=tuple(_warnings(config, fresh, informative, uses)),
    )


def _warnings(
    config: TrainConfig, fresh: Sequence[GroupSummary], informative: int, uses: Mapping[str, int]
) -> list[str]:
    warnings: list[str] = []
    if fresh and config.data.min_informative_groups and informative * 4 < len(fresh):
        warnings.append(f"only {informative} of {len(fresh)} groups have differing rewards; the others have no effect")
    if quarantined := uses.get("quarantined", 0):
        warnings.append(
            f"{quarantined} turns are in quarantine and are excluded unless data.include_quarantined is true"
        )
    if none := uses.get("none", 0):
        warnings.append(f"{none} turns cannot be trained; `offing trajectories show` prints the reasons")
    return warnings


def _check_trainable(
    config: TrainConfig, pipeline: Pipeline, policy: PolicyVersionRow, report: DataReport, turns: Sequence[TurnStats]
) -> None:
    if not report.complete_groups:
        raise InvalidInput(
            "data",
            "no complete group matches",
            "Collect groups with `offing rollouts collect`, or change the selection.",
        )
    if not report.rollouts:
        remedy = "Collect new groups with this version, or increase data.max_version_lag."
        raise InvalidInput("data", f"all {report.complete_groups} groups are stale for {config.policy}", remedy)
    recorded = [one for one in turns if one.trainable == "rl"]
    if not trains_on_text(pipeline, config.learner.mode) and not recorded:
        problem = "no turn has recorded token ids and logprobs, which this algorithm needs"
        raise InvalidInput("data", problem, "Collect rollouts with the policy engine, or use the algorithm sft.")
    foreign = sorted({one.tokenizer_sha256[:12] for one in recorded} - {policy.tokenizer_sha256[:12]})
    if foreign:
        raise InvalidInput(
            "data",
            f"turns were sampled with another tokenizer than that of {config.policy}: {', '.join(foreign)}",
            "Select rollouts of this tokenizer with data.rollout_batches, data.tags or data.since.",
        )
