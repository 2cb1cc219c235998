"""In a real browser over 300 stored runs: a search, pinned runs, and the way back to the place in the list."""

import asyncio
import os
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import UUID

import psycopg
import pytest
from pydantic import SecretStr

from offing.api.app import create_app
from offing.clock import new_id
from offing.services import access
from offing.settings import Settings
from offing.storage.migrate import LOCAL_TENANT
from tests.api.conftest import Api, running
from tests.e2e.conftest import PATIENCE
from tests.e2e.test_web_ui import CHROMIUM, ROOT, browser_is_here

pytestmark = pytest.mark.timeout(2 * PATIENCE)

RUNS = 300

ADD_RUNS = """
    insert into app.thread (id, tenant_id, title)
    select lpad(to_hex(n), 32, '0')::uuid, %(tenant)s, 'Question ' || n from generate_series(1, %(runs)s) n;
    insert into app.run (id, tenant_id, thread_id, graph, graph_version, question, title, engines, tool_policy,
                         tool_policy_sha256, budget, status, stop_reason, created_at, started_at, ended_at, turns,
                         work_seconds, cost_usd, pinned_at)
    select lpad(to_hex(n), 32, '0')::uuid, %(tenant)s, lpad(to_hex(case when n = 8 then 7 else n end), 32, '0')::uuid,
           'agentflow', '1', case when n %% 10 = 3
             then 'What did the council of town ' || n || ' decide about dredging the harbor, the locks and the canal?'
             else 'How did town ' || n || ' pay for its lighthouse?' end,
           case when n = 250 then 'Harbor fees' else '' end,
           '{"planner": {"engine": "extractive"}}', '{}', '', '{"max_turns": 3}',
           case when n %% 9 = 0 then 'failed' else 'done' end, case when n %% 9 > 0 then 'answered' end,
           now() - n * interval '3 hours', now() - n * interval '3 hours', now() - n * interval '3 hours', 3, n,
           n / 1000.0, case when n in (40, 120) then now() end
      from generate_series(1, %(runs)s) n;
    insert into app.run_tag (run_id, tag, tenant_id, position, run_created_at)
    select id, 'harbor', tenant_id, 1, created_at from app.run where question like '%%town 200 %%';
    delete from app.thread t where not exists (select from app.run r where r.thread_id = t.id);
"""
"""The runs, the newest with the smallest id. Run 8 is the first question of the thread that run 7 continues."""


@pytest.fixture
def settings(app_url: str, redis_url: str) -> Settings:
    return Settings(app_database_url=SecretStr(app_url), redis_url=SecretStr(redis_url), lease_seconds=3, port=0)


@pytest.fixture
async def api(settings: Settings, app_url: str, owner_url: str) -> AsyncIterator[Api]:
    """The API and the web UI with the stored runs. No worker runs."""
    other: UUID = new_id()
    with psycopg.connect(owner_url, autocommit=True, cursor_factory=psycopg.ClientCursor) as owner:
        owner.execute("insert into app.tenant (id, name) values (%s, 'other')", (other,))
        for statement in ADD_RUNS.split(";\n"):
            if statement.strip():
                owner.execute(statement.encode(), {"tenant": LOCAL_TENANT, "runs": RUNS})
    async with running(create_app(settings), settings, app_url, other) as api:
        yield api


async def test_a_person_finds_a_run_among_300_again_and_comes_back_to_the_place_in_the_list(api: Api) -> None:
    browser_is_here()
    link = await access.create_login_link(api.database, LOCAL_TENANT, api.base)
    environment = os.environ | {
        "OFFING_URL": api.base,
        "OFFING_LOGIN": link,
        "OFFING_CHROMIUM": str(CHROMIUM),
    }
    done = await asyncio.to_thread(walk, environment)
    assert done.returncode == 0, done.stdout + done.stderr


def walk(environment: dict[str, str]) -> "subprocess.CompletedProcess[str]":
    script = ["node", str(Path(ROOT) / "frontend/e2e/coming-back.mjs")]
    return subprocess.run(script, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False)
