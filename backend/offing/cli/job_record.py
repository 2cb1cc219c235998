"""Everything about one training job, for `offing jobs show`."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any
from uuid import UUID

from offing.cli.terminal import strip_control
from offing.core.time_left import describe_time_left
from offing.services import training_jobs
from offing.storage.pool import Database

MAX_SHOWN_EVENTS = 20

MAX_DETAIL_CHARS = 200


async def read_job_record(database: Database, tenant_id: UUID, job: str) -> dict[str, Any]:
    """Return a job with its ledger, the metrics of its last step and its events.

    `job` is an id or its last characters. Raises NotFound and InvalidInput.
    """
    id = await training_jobs.resolve_job_id(database, tenant_id, job)
    job_with_ledger = await training_jobs.get_job(database, tenant_id, id)
    last = max(job_with_ledger.job.step - 1, 0)
    metrics = await training_jobs.list_metrics(database, tenant_id, id, last, None, 500)
    events = await training_jobs.list_events(database, tenant_id, id, None, 200)
    return {
        **asdict(job_with_ledger.job),
        "seconds_left": job_with_ledger.seconds_left,
        "ledger": dict(job_with_ledger.ledger),
        "judges": asdict(job_with_ledger.judges),
        "metrics": {m.name: m.value for m in metrics},
        "events": [asdict(event) for event in events],
    }


def print_job_record(job: Mapping[str, Any]) -> None:
    """Print what the page of a job shows."""
    planned = f" of {job['planned_steps']}" if job["planned_steps"] else ""
    left = describe_time_left(job["seconds_left"])
    print(f"job {job['id']}  {strip_control(job['name'])}")
    print(f"{job['state']}, step {job['step']}{planned}{left and f', {left}'}  {strip_control(job['phase'])}".rstrip())
    if reason := job["error"] or job["stop_reason"]:
        print(strip_control(reason))
    print(f"{job['group_count']:,} groups considered, {job['rollout_count']:,} rollouts trained on")
    if judges := describe_judges(job["judges"]):
        print(judges)
    for name, value in {**job["ledger"], **job["metrics"]}.items():
        print(f"{strip_control(name):>28}  {f'{value:,}' if isinstance(value, int) else f'{value:.4g}'}")
    for event in job["events"][-MAX_SHOWN_EVENTS:]:
        detail = "  ".join(f"{name} {value}" for name, value in event["detail"].items())
        print(f"{event['at']:%Y-%m-%d %H:%M:%S}  {event['kind']}  {strip_control(detail[:MAX_DETAIL_CHARS])}")


def describe_judges(judges: Mapping[str, Any]) -> str:
    """Return what judges have used and may use. Empty if they were not called and have no budget."""
    calls, cost, budget = judges["calls"], judges["cost_usd"], judges["budget"]
    if not calls and all(limit is None for limit in budget.values()):
        return ""
    max_calls = "" if budget["max_calls"] is None else f" of {budget['max_calls']:,}"
    max_cost = "" if budget["max_cost_usd"] is None else f" of {budget['max_cost_usd']:.2f}"
    return f"judges: {calls:,}{max_calls} calls, {cost:.2f}{max_cost} USD"
