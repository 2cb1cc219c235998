"""The rows of LangGraph's clients: whose they are, and what is left of them."""

from collections.abc import Iterator
from uuid import UUID

import psycopg
import pytest

from tests.protocols.langgraph.conftest import ENVIRONMENT, Client
from tests.workers.conftest import SharedServers

__all__ = ["ENVIRONMENT"]

TABLES = ("langgraph_run", "langgraph_thread", "assistant", "assistant_version", "cron", "run_webhook")

OF_THREAD = {
    "run": "thread_id",
    "thread": "id",
    "langgraph_thread": "thread_id",
    "checkpoint": "thread_id",
    "checkpoint_value": "thread_id",
    "checkpoint_write": "thread_id",
    "cron": "thread_id",
}

OF_RUN = ("langgraph_run", "run_webhook", "step", "role_call", "report", "intent", "input_request")

ADD_WEBHOOK = (
    "insert into app.run_webhook (run_id, tenant_id, address) select id, tenant_id, 'x' from app.run where id = %s"
)


@pytest.fixture
def owner(shared_servers: SharedServers) -> Iterator[psycopg.Connection]:
    with psycopg.connect(shared_servers.owner_url, autocommit=True) as connection:
        yield connection


async def fill(client: Client, owner: psycopg.Connection) -> tuple[str, str]:
    """A row in each table; the thread and the run."""
    thread = (await client.threads.create(ttl=60))["thread_id"]
    assistant = await client.assistants.create("nested_approval", name="mine")
    run = await client.runs.create(thread, assistant["assistant_id"], input={"topic": "go", "decisions": []})
    await client.runs.join(thread, run["run_id"])
    await client.crons.create_for_thread(thread, "trail", schedule="0 0 1 1 *", input={"seen": []})
    owner.execute(ADD_WEBHOOK, (run["run_id"],))
    return thread, run["run_id"]


async def test_another_tenant_sees_and_changes_no_row_of_langgraphs_clients(
    client: Client, owner: psycopg.Connection, shared_servers: SharedServers, other_tenant: UUID
) -> None:
    thread, _ = await fill(client, owner)
    for tenant in (str(other_tenant), ""):
        with psycopg.connect(shared_servers.app_url, autocommit=True) as connection:
            connection.execute("select set_config('app.tenant', %s, false)", (tenant,))
            for table in TABLES:
                named = f"app.{table}"
                assert connection.execute(f"select count(*) from {named}".encode()).fetchone() == (0,), table
                assert connection.execute(f"update {named} set tenant_id = tenant_id".encode()).rowcount == 0, table
                assert connection.execute(f"delete from {named}".encode()).rowcount == 0, table
            assert connection.execute("select app.queue_next_run(%s)", (thread,)).fetchone() == (None,)
    for table in TABLES:
        row = owner.execute(f"select count(*) from app.{table}".encode()).fetchone()
        assert row is not None
        assert row[0] > 0, table


async def test_a_deleted_thread_leaves_no_row(client: Client, owner: psycopg.Connection) -> None:
    thread, run = await fill(client, owner)
    await client.threads.delete(thread)
    left = {
        table: owner.execute(f"select count(*) from app.{table} where {column} = %s".encode(), (thread,)).fetchone()
        for table, column in OF_THREAD.items()
    }
    left |= {
        table: owner.execute(f"select count(*) from app.{table} where run_id = %s".encode(), (run,)).fetchone()
        for table in OF_RUN
    }
    assert set(left.values()) == {(0,)}, left


async def test_a_deleted_tenant_leaves_no_row(client: Client, other_client: Client, owner: psycopg.Connection) -> None:
    thread, _ = await fill(other_client, owner)
    (tenant,) = owner.execute("select tenant_id from app.thread where id = %s", (thread,)).fetchall()[0]
    count = "select count(*) from app.{} where tenant_id = %s"
    assert owner.execute(count.format("cron").encode(), (tenant,)).fetchone() == (1,)
    owner.execute("delete from app.tenant where id = %s", (tenant,))
    for table in (*TABLES, "run", "thread", "checkpoint"):
        assert owner.execute(count.format(table).encode(), (tenant,)).fetchone() == (0,), table
