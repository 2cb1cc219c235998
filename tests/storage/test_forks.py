"""What a fork copies: every column of every table that holds what belongs to a step."""

import re

import psycopg
import pytest

from offing.storage import forks

COPIED = {
    "step": forks.STEPS,
    "intent": forks.INTENTS,
    "segment": forks.SEGMENTS,
    "turn": forks.TURNS,
    "span": forks.SPANS,
    "report": forks.REPORTS,
    "citation": forks.CITATIONS,
    "question": forks.QUESTIONS,
    "run_file": forks.FILES,
    "checkpoint": forks.CHECKPOINTS,
    "checkpoint_write": forks.CHECKPOINTS,
    "checkpoint_value": forks.CHECKPOINTS,
}

LEFT = {"child_run", "evaluation_result", "ledger", "reservation", "reward", "rollout", "store_item"}
"""What belongs to the origin alone: what it waits for, has reserved and was judged by, and what is shared anyway."""

ANEW = {"checkpoint": {"nth"}, "turn": {"done"}}
"""Checkpoints are numbered in the order in which they are copied, and no role has ended the fork."""

COLUMNS = "select column_name from information_schema.columns where table_schema = 'app' and table_name = %s"

OF_RUNS = """
    select table_name from information_schema.columns
     where table_schema = 'app' and column_name = 'run_id' and table_name <> all(%s)
"""


@pytest.mark.parametrize("table", sorted(COPIED))
def test_every_column_of_what_belongs_to_a_step_is_copied(table: str, owner_url: str) -> None:
    with psycopg.connect(owner_url) as connection:
        columns = {str(name) for (name,) in connection.execute(COLUMNS, (table,))}
    found = re.search(rf"insert into {table} \(([^)]*)\)", COPIED[table])
    assert found is not None
    copied = {name.strip() for name in found[1].split(",")}
    assert columns - copied == ANEW.get(table, set())


def test_every_table_of_a_run_is_copied_or_known_to_be_the_origins_alone(owner_url: str) -> None:
    with psycopg.connect(owner_url) as connection:
        found = {str(name) for (name,) in connection.execute(OF_RUNS, ([*COPIED],))}
    assert found <= LEFT, "copy it to forks as far as their steps go, or say here why not"
