"""What each stage of a training loop has cost: seconds, rollouts, tokens and USD, of the runs and of their judges."""

from collections.abc import Callable
from dataclasses import dataclass, field
from uuid import UUID

from offing.storage import rollout_costs
from offing.storage.pool import Database
from offing.storage.rollout_costs import RolloutCosts


@dataclass(frozen=True, slots=True)
class StageCost:
    """The cost of a stage."""

    name: str
    seconds: float
    """Seconds since the stage before, in this process. A stage that was finished before takes almost none."""
    rollouts: RolloutCosts
    """All rollouts of the stage, also those that an interrupted loop collected before."""

    def describe(self) -> str:
        """Return the cost in one line."""
        used = self.rollouts
        of_judges = f" · judges: {used.judge_calls} calls, {used.judge_cost_usd:.4f} USD" if used.judge_calls else ""
        return (
            f"{self.name}: {self.seconds:.1f} s, {used.rollouts} rollouts, {used.tokens} tokens, "
            f"{used.cost_usd:.4f} USD{of_judges}"
        )


@dataclass(slots=True)
class CostRecorder:
    """Records the cost of one stage after another. `read_clock` returns seconds that only increase."""

    database: Database
    tenant_id: UUID
    read_clock: Callable[[], float]
    report: Callable[[str], None]
    stages: list[StageCost] = field(default_factory=list[StageCost])
    _since: float = field(init=False)

    def __post_init__(self) -> None:
        self._since = self.read_clock()

    async def end_stage(self, name: str, *key_prefixes: str) -> None:
        """Record a stage whose batches have idempotency keys that begin with one of the prefixes."""
        now = self.read_clock()
        async with self.database.transaction(self.tenant_id) as connection:
            used = await rollout_costs.sum_costs(connection, key_prefixes)
        stage = StageCost(name, now - self._since, used)
        self._since = now
        self.stages.append(stage)
        self.report(stage.describe())
