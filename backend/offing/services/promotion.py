"""Which version of a policy new runs get: evaluating, promoting, trying on a share of runs, and going back.

Each change is one transaction with a record of who gave way to whom; files are never touched, so that going back is a
change of two rows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any
from uuid import UUID

from offing.clock import new_id
from offing.core.errors import Conflict, InvalidInput, NotFound
from offing.core.model import EngineChoice
from offing.core.run import Budget
from offing.sdk import Graph
from offing.services import policies, policy_files, rollouts
from offing.services.prompt_library import with_library
from offing.services.rollouts import BatchRequest, Created, Hints, ScorerSpec
from offing.services.training_gate import Result, Rules, Verdict, judged, paired
from offing.storage import evaluations, groups, policy_versions, training_events, training_jobs
from offing.storage.evaluations import Evaluation, ResultRow
from offing.storage.policy_versions import VersionRow
from offing.storage.pool import Connection, Database

EVALUATION = "evaluation"
"""Tag of groups that are never trained on unless they are asked for by it."""

LEAST_CANARY = 20
"""Scored rollouts of each side before a canary is judged."""


@dataclass(frozen=True, slots=True)
class Frozen:
    """What candidates and champions are compared on."""

    dataset: str
    tasks: Sequence[UUID]
    graph: str
    role: str
    members: int = 1
    greedy: bool = True
    seed: int = 0
    form: str = ""
    max_tokens: int = EngineChoice.model_fields["max_tokens"].default
    """Of an answer by weights."""
    budget: Budget = field(default_factory=Budget)
    engines: Mapping[str, EngineChoice] | None = None
    """Of the other roles. None: the graph's own."""
    scorers: Sequence[ScorerSpec] | None = None

    @property
    def mode(self) -> str:
        return "greedy" if self.greedy else "sampled"


async def evaluate(
    database: Database,
    hints: Hints,
    tenant: UUID,
    policy: str,
    frozen: Frozen,
    *,
    graphs: Mapping[str, Graph],
    key: str | None = None,
) -> Created:
    """Collect the rollouts of an evaluation; `settle_evaluation` stores it when they have ended. Raises InvalidInput.

    With `key`, the same request is the same batch. Members' seeds depend on seed, task and member alone, so that two
    versions get the same. Raises Conflict for a version whose files are damaged.
    """
    choice = await _answering(database, tenant, policy, frozen)
    await policy_files.refuse_damaged(database, tenant, await policies.named(database, tenant, policy))
    request = BatchRequest(
        graph=frozen.graph,
        tasks=frozen.tasks,
        group_size=frozen.members,
        engines={**(frozen.engines or {}), frozen.role: choice},
        scorers=frozen.scorers,
        budget=frozen.budget,
        seed=frozen.seed,
        tags=(EVALUATION,),
        name=f"{policy} on {frozen.dataset}, {frozen.mode}",
        idempotency_key=key,
    )
    return await rollouts.create(database, hints, tenant, request, graphs=graphs)


async def _answering(database: Database, tenant: UUID, policy: str, frozen: Frozen) -> EngineChoice:
    """Weights answer the role themselves; a prompt library is shown to the model that was named for it, which keeps
    its temperature but for greedy evaluations."""
    policies.parsed(policy, "policy")
    async with database.transaction(tenant) as connection:
        row = await policies.known(connection, policy, "policy")
    if row.kind != policies.PROMPTS:
        heat = 0.0 if frozen.greedy else 1.0
        return EngineChoice(
            engine="policy", model=policy, form=frozen.form, temperature=heat, max_tokens=frozen.max_tokens
        )
    choice = with_library((frozen.engines or {}).get(frozen.role), policy, frozen.role)
    return choice.model_copy(update={"temperature": 0.0}) if frozen.greedy else choice


async def settle_evaluation(database: Database, tenant: UUID, policy: str, batch: UUID, frozen: Frozen) -> UUID:
    """Store an evaluation whose batch has ended. Raises Conflict when it has not."""
    seen = await rollouts.one_batch(database, tenant, batch)
    if seen.progress.open or seen.progress.made < seen.batch.groups:
        raise Conflict("Rollouts of the evaluation are still running.", "Wait for them.")
    async with database.transaction(tenant) as connection:
        row = await policies.known(connection, policy, "policy")
        id = new_id()
        new = {
            "id": id,
            "policy": row.id,
            "dataset": frozen.dataset,
            "mode": frozen.mode,
            "graph": frozen.graph,
            "seed": frozen.seed,
            "batch": batch,
        }
        await evaluations.add(connection, tenant, new)
    return id


async def gate(
    database: Database, tenant: UUID, policy: str, rules: Rules, *, dataset: str | None = None, mode: str | None = None
) -> Verdict | None:
    """A candidate against the active version of its name, by their latest evaluations on the same tasks.

    None: there is no active version to compare with. Raises InvalidInput where an evaluation is missing.
    """
    async with database.transaction(tenant) as connection:
        candidate = await policies.known(connection, policy, "policy")
        champion = await policy_versions.in_state(connection, candidate.name, "active")
        if champion is None or champion.id == candidate.id:
            return None
        ours, theirs = await _comparable(connection, candidate, champion, dataset, mode)
        kl = await _kl(connection, candidate)
        verdict = judged(paired(ours, theirs), rules, kl)
        detail = {"champion": champion.label, **_told(verdict)}
        await training_events.add(connection, tenant, "gate", detail, policy=candidate.id, job=_job(candidate))
    return verdict


async def promote(
    database: Database,
    tenant: UUID,
    policy: str,
    rules: Rules | None = None,
    *,
    dataset: str | None = None,
    mode: str | None = None,
) -> tuple[VersionRow, Verdict | None]:
    """Make a version the active one, if it passes the gate; `rules` None: whatever it is worth.

    Raises Conflict that says why it did not pass; the refusal is on record. Raises Conflict for damaged files, too.
    """
    await policy_files.refuse_damaged(database, tenant, await policies.named(database, tenant, policy))
    verdict = await gate(database, tenant, policy, rules, dataset=dataset, mode=mode) if rules else None
    if verdict is not None and not verdict.passed:
        raise Conflict(f"{policy} did not pass the gate: {'; '.join(verdict.why_not)}.", "Train on, or say --force.")
    async with database.transaction(tenant) as connection:
        row = await _following(connection, policy, "active")
        if row.state == "active":
            return row, verdict
        before = await policy_versions.in_state(connection, row.name, "active")
        detail = {
            "policy": policy,
            "before": None if before is None else str(before.id),
            "gate": "not asked" if rules is None else "passed" if verdict else "nothing to compare with",
        }
        made = await policy_versions.set_state(connection, row, "active")
        await training_events.add(connection, tenant, "promoted", detail, policy=made.id, job=_job(made))
    return made, verdict


async def try_canary(database: Database, tenant: UUID, policy: str, share: float) -> VersionRow:
    """Let a version answer a share of the new runs that name the policy without a version. Raises InvalidInput."""
    if not 0 < share <= 1:
        raise InvalidInput("share", f"{share} is out of range", "Use more than 0, and 1 at most.")
    await policy_files.refuse_damaged(database, tenant, await policies.named(database, tenant, policy))
    async with database.transaction(tenant) as connection:
        row = await _following(connection, policy, "canary")
        made = await policy_versions.set_state(connection, row, "canary", share)
        detail = {"policy": policy, "share": share}
        await training_events.add(connection, tenant, "canary", detail, policy=made.id, job=_job(made))
    return made


async def roll_back(database: Database, tenant: UUID, name: str, why: str = "a person asked for it") -> str:
    """One step back: a canary leaves; without one, the active version gives way to the one before it. What was done.

    Raises NotFound and Conflict where there is nothing to go back to.
    """
    async with database.transaction(tenant) as connection:
        await policy_versions.one_at_a_time(connection, name)
        if (canary := await policy_versions.in_state(connection, name, "canary")) is not None:
            await _canary_leaves(connection, tenant, canary, why)
            return f"{canary.label} is no canary any more"
        active = await policy_versions.in_state(connection, name, "active")
        if active is None:
            raise NotFound("active version of policy", name)
        return await _gives_way(connection, tenant, active, why)


async def take_back(database: Database, tenant: UUID, id: UUID, why: str = "a person asked for it") -> str:
    """This very version leaves its place, as a canary or as the active one. What was done.

    Raises NotFound, and Conflict for one that new runs do not get, or that took over from none.
    """
    async with database.transaction(tenant) as connection:
        await policy_versions.one_at_a_time(connection, (await policy_versions.by_id(connection, id)).name)
        row = await policy_versions.locked(connection, id)
        if row.state == "canary":
            await _canary_leaves(connection, tenant, row, why)
            return f"{row.label} is no canary any more"
        if row.state != "active":
            raise Conflict(f"{row.label} is {row.state}, and new runs do not get it.", "Nothing is left to do.")
        return await _gives_way(connection, tenant, row, why)


async def _gives_way(connection: Connection, tenant: UUID, active: VersionRow, why: str) -> str:
    """Raises Conflict where there is no version before it."""
    before = await _before(connection, active)
    detail = {"policy": active.label, "back_to": before.label, "why": why}
    await policy_versions.set_state(connection, await policy_versions.locked(connection, before.id), "active")
    await training_events.add(connection, tenant, "rolled_back", detail, policy=active.id, job=_job(active))
    return f"{before.label} is active again, in place of {active.label}"


async def spare(database: Database, tenant: UUID, name: str, refused: str = "") -> list[str]:
    """NAME@VERSION of versions that no server needs: see `policy_versions.spare`, less the one to go back to."""
    async with database.transaction(tenant) as connection:
        found = await policy_versions.spare(connection, name, refused)
        active = await policy_versions.in_state(connection, name, "active")
        try:
            kept = (await _before(connection, active)).label if active else ""
        except Conflict:
            kept = ""
    return [label for label in found if label != kept]


async def watch_canary(database: Database, tenant: UUID, name: str, margin: float = 0.05) -> str | None:
    """Take a canary back that does worse than the active version by more than `margin`, surely. What was done, if so.

    Compared are the scored rollouts of both since the canary began; sure is a whole interval of the difference.
    """
    async with database.transaction(tenant) as connection:
        await policy_versions.one_at_a_time(connection, name)
        canary = await policy_versions.in_state(connection, name, "canary")
        active = await policy_versions.in_state(connection, name, "active")
        if canary is None or active is None or canary.canary_since is None:
            return None
        ours = await evaluations.collected(connection, canary.id, canary.canary_since)
        theirs = await evaluations.collected(connection, active.id, canary.canary_since)
        if min(len(ours), len(theirs)) < LEAST_CANARY:
            return None
        _, high = unpaired([r.reward or 0.0 for r in ours], [r.reward or 0.0 for r in theirs])
        if high >= -margin:
            return None
        why = f"its mean reward is below that of {active.label} by {-high:.3f} at least"
        await _canary_leaves(connection, tenant, canary, why)
    return f"{canary.label} was taken back: {why}"


def unpaired(ours: Sequence[float], theirs: Sequence[float]) -> tuple[float, float]:
    """95 % interval of the difference of two means (Welch's standard error, normal approximation)."""
    gain = sum(ours) / len(ours) - sum(theirs) / len(theirs)
    error = (_variance(ours) / len(ours) + _variance(theirs) / len(theirs)) ** 0.5
    return gain - 1.96 * error, gain + 1.96 * error


def _variance(values: Sequence[float]) -> float:
    mean = sum(values) / len(values)
    return sum((value - mean) ** 2 for value in values) / max(len(values) - 1, 1)


async def _canary_leaves(connection: Connection, tenant: UUID, canary: VersionRow, why: str) -> None:
    locked = await policy_versions.locked(connection, canary.id)
    await policy_versions.set_state(connection, locked, "candidate")
    detail = {"policy": canary.label, "why": why}
    await training_events.add(connection, tenant, "canary_taken_back", detail, policy=canary.id, job=_job(canary))


async def _following(connection: Connection, policy: str, state: str) -> VersionRow:
    """The version, locked, if it may have this state next. Raises InvalidInput and Conflict."""
    known = await policies.known(connection, policy, "policy")
    await policy_versions.one_at_a_time(connection, known.name)
    row = await policy_versions.locked(connection, known.id)
    if state != row.state and state not in policies.FOLLOWING[row.state]:
        raise Conflict(f"{policy} is {row.state}, and cannot be {state}.", "Choose another version.")
    return row


async def _before(connection: Connection, active: VersionRow) -> VersionRow:
    """The version that the active one took over from. Raises Conflict."""
    events = await training_events.listed(connection, policy=active.id, limit=1000)
    promoted = [event for event in events if event.kind == "promoted"]
    before = promoted[-1].detail.get("before") if promoted else None
    row = await policy_versions.by_id(connection, UUID(before)) if before else None
    if row is None or row.state == "bad":
        raise Conflict(f"{active.label} took over from no version that could go on.", "Promote one by its number.")
    return row


async def _comparable(
    connection: Connection, candidate: VersionRow, champion: VersionRow, dataset: str | None, mode: str | None
) -> tuple[list[Result], list[Result]]:
    """Results of both on the same tasks, the latest such; of prompt libraries, read by the same models."""
    theirs = await evaluations.latest(connection, champion.id, dataset, mode)
    for one in await evaluations.latest(connection, candidate.id, dataset, mode):
        for other in theirs:
            same = (one.dataset, one.mode, one.graph, one.seed) == (other.dataset, other.mode, other.graph, other.seed)
            if same and (candidate.kind != policies.PROMPTS or await _same_readers(connection, one, other)):
                ours = await evaluations.results(connection, one.id)
                return _results(ours), _results(await evaluations.results(connection, other.id))
    raise InvalidInput(
        "policy",
        f"{candidate.label} and {champion.label} were not evaluated on the same tasks",
        "Run `offing policy evaluate` for both with the same tasks and seed, or say --force.",
    )


async def _same_readers(connection: Connection, one: Evaluation, other: Evaluation) -> bool:
    """Whether the same engines answered in the rollouts of both. False: it is not known any more."""
    if one.batch is None or other.batch is None:
        return False
    ours, theirs = [(await groups.batch(connection, id)).request["engines"] for id in (one.batch, other.batch)]
    return _readers(ours) == _readers(theirs)


def _readers(engines: Mapping[str, Any]) -> dict[str, EngineChoice]:
    choices = {role: EngineChoice.model_validate(choice) for role, choice in engines.items()}
    return {role: choice.model_copy(update={"library": ""}) for role, choice in choices.items()}


async def _kl(connection: Connection, candidate: VersionRow) -> float | None:
    """The last `kl` that the version's job measured. None: it came of no job."""
    job = _job(candidate)
    found = await training_jobs.metrics_since(connection, job, 0, ["kl"], 100_000) if job else []
    return found[-1].value if found else None


def _results(rows: Sequence[ResultRow]) -> list[Result]:
    return [Result(row.task, row.member, row.reward, row.outcome, row.turns, row.tokens) for row in rows]


def _told(verdict: Verdict) -> dict[str, Any]:
    return {
        "passed": verdict.passed,
        "why_not": list(verdict.why_not),
        **asdict(verdict.paired),
        "rules": asdict(verdict.rules),
    }


def _job(version: VersionRow) -> UUID | None:
    job = version.lineage.get("job")
    return UUID(job) if job else None
