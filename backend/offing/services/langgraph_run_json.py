"""A run in the words of LangGraph's clients, for their API and for the webhooks that they name."""

from dataclasses import replace
from typing import Any

from offing.core.run import RunStatus, StopReason
from offing.storage.langgraph_runs import LangGraphRunRow


def render_run(row: LangGraphRunRow) -> dict[str, Any]:
    return {
        "run_id": str(row.id),
        "thread_id": str(row.thread_id),
        "assistant_id": str(row.assistant_id),
        "created_at": row.created_at,
        "updated_at": row.updated_at,
        "status": find_run_status(row),
        "metadata": row.metadata,
        "multitask_strategy": row.multitask,
        "kwargs": replace(row.arguments, user=None),  # receivers of webhooks are told what was asked, not by whom
    }


def describe_failure(row: LangGraphRunRow) -> dict[str, str] | None:
    """Return the error with which an ended run failed. `None` means that it did not fail."""
    if find_run_status(row) not in ("error", "timeout"):
        return None
    kind, _, message = (row.error or str(row.stop_reason)).partition(": ")
    return {"error": kind, "message": message or kind}


def find_run_status(row: LangGraphRunRow) -> str:
    """Return the status of a run in the words of LangGraph's clients."""
    match row.status:
        case RunStatus.QUEUED | RunStatus.WAITING | RunStatus.PAUSED | RunStatus.RUNNING:
            has_started = row.updated_at > row.created_at
            return "running" if row.status is RunStatus.RUNNING or (has_started and not row.is_enqueued) else "pending"
        case RunStatus.FAILED:
            return "error"
        case RunStatus.CANCELLED:
            return "interrupted"
        case RunStatus.DONE:
            if row.stop_reason is StopReason.TIME_LIMIT:
                return "timeout"
            return "error" if row.error else "success"
