"""Compare a policy's canary with the active version while both answer runs, and withdraw it if it is worse.

The looks are in `services.canary_comparison`. Each is recorded once as an event of the canary, so that it stays as it
was found when rewards change later.
"""

from dataclasses import asdict
from uuid import UUID

from offing.core.errors import Conflict
from offing.services.canary_comparison import CanaryLook, CanaryVerdict, compare_canary, find_look_tasks
from offing.storage import evaluations, policy_versions, training_events
from offing.storage.policy_versions import PolicyVersionRow
from offing.storage.pool import Connection, Database
from offing.storage.training_events import CANARY_COMPARED, TrainingEvent

WORSE_MARGIN = 0.05
"""How much lower the mean reward of a canary may be before it is withdrawn."""


async def check_canary(database: Database, tenant_id: UUID, name: str, margin: float = WORSE_MARGIN) -> list[str]:
    """Take the looks at the canary of a policy that are due, and withdraw it at the first one that finds it worse.

    Return a sentence for each look that decides: better, or worse by more than `margin`. A look at as many tasks has
    been taken once per canary, and looks at all canaries of the policy with the same active version are counted
    together, each stricter than the one before. Returns nothing without a canary or an active version.
    """
    async with database.transaction(tenant_id) as connection:
        await policy_versions.lock_name(connection, name)
        canary = await policy_versions.find_version_in_state(connection, name, "canary")
        active = await policy_versions.find_version_in_state(connection, name, "active")
        if canary is None or active is None or canary.canary_since is None:
            return []
        earlier = await training_events.list_canary_looks(connection, name, active.label)
        due = compare_canary(
            await evaluations.list_live_rewards(connection, canary.id, canary.canary_since),
            await evaluations.list_live_rewards(connection, active.id, canary.canary_since),
            done=len(_select_looks(earlier, canary)),
            looks=len(earlier),
            margin=margin,
        )
        for look in due:
            detail = {"policy": canary.label, "active_version": active.label, **asdict(look)}
            await training_events.insert_event(
                connection, tenant_id, CANARY_COMPARED, detail, policy_version_id=canary.id, job_id=canary.job_id
            )
        if due and due[-1].verdict is CanaryVerdict.WORSE:
            await end_canary(connection, tenant_id, canary, _describe_look(due[-1], active))
    return [_describe_decision(look, canary, active) for look in due if look.verdict is not CanaryVerdict.UNDECIDED]


async def require_better_canary(connection: Connection, version: PolicyVersionRow) -> None:
    """Raise Conflict unless a look has found that this version, as the canary, is better than the active version."""
    active = await policy_versions.find_version_in_state(connection, version.name, "active")
    if version.state != "canary" or active is None:
        raise Conflict(
            f"{version.label} is not compared with an active version as a canary.",
            "Start a canary with `offing policy canary`.",
        )
    looks = _select_looks(await training_events.list_canary_looks(connection, version.name, active.label), version)
    if not any(look.detail["verdict"] == CanaryVerdict.BETTER for look in looks):
        raise Conflict(
            f"No look has found {version.label} better than {active.label}: {_describe_last(looks)}.",
            "Wait for more runs, or evaluate both on the same tasks with `offing policy evaluate`.",
        )


async def end_canary(connection: Connection, tenant_id: UUID, canary: PolicyVersionRow, reason: str) -> None:
    """Make a canary a candidate again and record why."""
    locked = await policy_versions.lock_version(connection, canary.id)
    await policy_versions.set_state(connection, locked, "candidate")
    detail = {"policy": canary.label, "reason": reason}
    await training_events.insert_event(
        connection, tenant_id, "canary_withdrawn", detail, policy_version_id=canary.id, job_id=canary.job_id
    )


def _select_looks(looks: list[TrainingEvent], canary: PolicyVersionRow) -> list[TrainingEvent]:
    """Return the looks at a version since it became the canary."""
    since = canary.canary_since
    return [one for one in looks if one.policy_version_id == canary.id and since is not None and one.at > since]


def _describe_last(looks: list[TrainingEvent]) -> str:
    if not looks:
        return f"fewer than {find_look_tasks(1)} tasks of each have been completed since it is the canary"
    last = looks[-1].detail
    return (
        f"after {last['tasks']} tasks of each, the difference is {last['difference']:+.3f}, "
        f"from {last['low']:+.3f} to {last['high']:+.3f}"
    )


def _describe_decision(look: CanaryLook, canary: PolicyVersionRow, active: PolicyVersionRow) -> str:
    if look.verdict is CanaryVerdict.WORSE:
        return f"{canary.label} was withdrawn: {_describe_look(look, active)}"
    return (
        f"{canary.label} is better: its mean reward is at least {look.low:.3f} above that of {active.label} "
        f"(look {look.look}, {look.tasks} tasks of each)"
    )


def _describe_look(look: CanaryLook, active: PolicyVersionRow) -> str:
    return (
        f"its mean reward is at least {-look.high:.3f} below that of {active.label} "
        f"(look {look.look}, {look.tasks} tasks of each)"
    )
