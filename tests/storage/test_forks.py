"""What a fork copies: every column of every table that holds what belongs to a step."""

import re

import psycopg
import pytest

from offing.storage import forks

COPIED = {
    "langgraph_run": forks.COPY_LANGGRAPH_RUN,
    "step": forks.COPY_STEPS,
    "intent": forks.COPY_INTENTS,
    "segment": forks.COPY_SEGMENTS,
    "role_call": forks.COPY_ROLE_CALLS,
    "completion_span": forks.COPY_SPANS,
    "report": forks.COPY_REPORTS,
    "citation": forks.COPY_CITATIONS,
    "input_request": forks.COPY_INPUT_REQUESTS,
    "run_file": forks.COPY_FILES,
    "checkpoint": forks.COPY_CHECKPOINTS,
    "checkpoint_write": forks.COPY_CHECKPOINTS,
    "checkpoint_value": forks.COPY_CHECKPOINTS,
}

LEFT = {
    *("child_run", "evaluation_result", "experiment_judgment", "experiment_result"),
    *("ledger", "reservation", "reward", "rollout", "store_item"),
    *("run_tag", "run_search", "run_search_queue", "uncounted_run", "ended_run_usage"),
    *("report_share", "run_event", "run_webhook"),
    *("answer_correction", "run_training_consent", "task_origin"),
}
"""What belongs to the origin alone: what it waits for, has reserved and was judged by, how people organize it, and what
is shared anyway. The words of a fork are indexed anew.
"""

ANEW = {
    "langgraph_run": {"deletes_thread", "webhook"},
    "checkpoint": {"nth"},
    "role_call": {"is_final"},
    "report": {"edited_by", "edited_in"},
}
"""The thread of a fork is kept, nobody is told of its end, checkpoints are numbered in the order in which they are
copied, no role has ended the fork, and a version that a person saved is not copied.
"""

COLUMNS = "select column_name from information_schema.columns where table_schema = 'app' and table_name = %s"

OF_RUNS = """
    select table_name from information_schema.columns
     where table_schema = 'app' and column_name = 'run_id' and table_name <> all(%s)
"""


@pytest.mark.parametrize("table", sorted(COPIED))
def test_every_column_of_what_belongs_to_a_step_is_copied(table: str, owner_url: str) -> None:
    with psycopg.connect(owner_url) as connection:
        columns = {str(name) for (name,) in connection.execute(COLUMNS, (table,))}
    match = re.search(rf"insert into {table} \(([^)]*)\)", COPIED[table])
    assert match is not None
    copied = {name.strip() for name in match[1].split(",")}
    assert columns - copied == ANEW.get(table, set())


def test_every_table_of_a_run_is_copied_or_known_to_be_the_origins_alone(owner_url: str) -> None:
    with psycopg.connect(owner_url) as connection:
        results = {str(name) for (name,) in connection.execute(OF_RUNS, ([*COPIED],))}
    assert results <= LEFT, "copy it to forks as far as their steps go, or say here why not"
