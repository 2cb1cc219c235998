"""What a job would find, before it begins: counts, lengths, and what would be refused. Reads no token."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from offing.core.errors import InvalidInput
from offing.storage import training_groups
from offing.storage.policy_versions import VersionRow
from offing.storage.pool import Database
from offing.storage.training_groups import GroupHead, Turns
from offing_trainer.chain import Chain
from offing_trainer.config import TrainConfig
from offing_trainer.job.choosing import too_old
from offing_trainer.job.query import groups_wanted
from offing_trainer.job.reading import read_answers
from offing_trainer.job.trainee import asks_references, imitates


@dataclass(frozen=True, slots=True)
class Found:
    """The data of a configuration."""

    complete: int
    short: int
    stale: int
    informative: int
    """Of the complete ones that are not stale: those whose rewards differ."""
    rollouts: int
    outcomes: Mapping[str, int]
    reward: float | None
    """Mean. None: nothing is scored."""
    turns: Mapping[str, int]
    """By what they can be trained for: rl, sft, none, quarantined."""
    policies: Mapping[str, int]
    """Turns by NAME@VERSION that sampled them."""
    tokens: int
    """Sampled ones that can be trained."""
    lengths: Mapping[int, int] = field(default_factory=dict[int, int])
    """Rollouts by trained tokens, from so many to twice as many."""
    steps: int = 0
    """About so many in a pass."""
    warnings: tuple[str, ...] = ()


async def inspected(database: Database, tenant: UUID, config: TrainConfig, chain: Chain, policy: VersionRow) -> Found:
    """Raises InvalidInput for data that the chain cannot be trained on at all."""
    query = groups_wanted(config.data)
    async with database.transaction(tenant) as connection:
        now, _ = await training_groups.newest(connection)
        heads = await training_groups.all_heads(connection, query, now)
        turns = await training_groups.inspect(connection, query, now)
        lengths = await training_groups.lengths(connection, query, now)
    found = _counted(config, heads, turns, lengths)
    _refuse(config, chain, policy, found, turns)
    if asks_references(chain):
        await read_answers(database, tenant, {head.task for head in heads if head.state == "complete"})
    return found


def _counted(
    config: TrainConfig, heads: Sequence[GroupHead], turns: Sequence[Turns], lengths: Mapping[int, int]
) -> Found:
    whole = [head for head in heads if head.state == "complete"]
    fresh = [head for head in whole if not too_old(head.policies, config.policy, config.data.max_version_lag)]
    members = [member for head in fresh for member in head.standing]
    rewards = [member.reward for member in members if member.reward is not None]
    uses, policies = Counter[str](), Counter[str]()
    for one in turns:
        uses["quarantined" if one.quarantined else one.trainable] += one.turns
        policies[one.policy or "other engines"] += one.turns
    informative = sum(head.informative for head in fresh)
    return Found(
        complete=len(whole),
        short=len(heads) - len(whole),
        stale=len(whole) - len(fresh),
        informative=informative,
        rollouts=len(members),
        outcomes=Counter(member.outcome for member in members),
        reward=sum(rewards) / len(rewards) if rewards else None,
        turns=uses,
        policies=policies,
        tokens=sum(one.tokens for one in turns if one.trainable == "rl" and not one.quarantined),
        lengths=lengths,
        steps=-(-len(fresh) // config.data.groups_per_step),
        warnings=tuple(_warnings(config, fresh, informative, uses)),
    )


def _warnings(config: TrainConfig, fresh: Sequence[GroupHead], informative: int, uses: Mapping[str, int]) -> list[str]:
    found: list[str] = []
    if fresh and config.data.minimum_informative_groups and informative * 4 < len(fresh):
        found.append(f"only {informative} of {len(fresh)} groups have rewards that differ; the others teach nothing")
    if quarantined := uses.get("quarantined", 0):
        found.append(f"{quarantined} turns are in quarantine, and are not trained unless data.quarantined says so")
    if none := uses.get("none", 0):
        found.append(f"{none} turns cannot be trained at all; `offing trajectories show` says why")
    return found


def _refuse(config: TrainConfig, chain: Chain, policy: VersionRow, found: Found, turns: Sequence[Turns]) -> None:
    if not found.complete:
        raise InvalidInput("data", "no complete group fits", "Collect some with `offing rollout`, or ask for others.")
    if not found.rollouts:
        remedy = "Collect new ones with this version, or raise data.max_version_lag."
        raise InvalidInput("data", f"all {found.complete} groups are older than {config.policy}", remedy)
    recorded = [one for one in turns if one.trainable == "rl"]
    if not imitates(chain, config.learner.mode) and not recorded:
        problem = "no turn has recorded token ids and log-probabilities, which this algorithm needs"
        raise InvalidInput("data", problem, "Collect rollouts with a policy of ours, or imitate with algorithm sft.")
    foreign = sorted({one.tokenizer_sha256[:12] for one in recorded} - {policy.tokenizer_sha256[:12]})
    if foreign:
        raise InvalidInput(
            "data",
            f"turns were sampled with another tokenizer than that of {config.policy}: {', '.join(foreign)}",
            "Choose rollouts of one tokenizer with data.batches, data.tags or data.since.",
        )
