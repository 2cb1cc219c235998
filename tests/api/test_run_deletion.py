"""Deleting an ended run over HTTP: all that belongs to it is gone, what must stay stays, and the rest says why not."""

from typing import Any
from uuid import UUID

import psycopg
import pytest

from offing.core.run import RunStatus
from tests.api.conftest import Api
from tests.api.test_input_requests import YEAR, waiting

REFERENCES = """
    select table_name, column_name from information_schema.columns
     where table_schema = 'app' and data_type = 'uuid' and table_name <> 'tenant'
"""

ADD_ROLE_CALLS = """
    insert into app.text_part (tenant_id, sha256, body)
    values (%(tenant)s, decode(repeat('aa', 32), 'hex'), 'shared'),
           (%(tenant)s, decode(repeat('bb', 32), 'hex'), 'own');
    insert into app.role_call (run_id, seq, tenant_id, role, engine, prompt, trainable)
    select id, 1, %(tenant)s, 'speaker', 'scripted', case when id = %(run)s
      then jsonb_build_array(jsonb_build_array('user', jsonb_build_array(repeat('aa', 32), repeat('bb', 32))))
      else jsonb_build_array(jsonb_build_array('user', jsonb_build_array(repeat('aa', 32)))) end, 'none'
      from app.run;
"""


async def ended(api: Api, question: str = "Why is the sea salt?", **more: object) -> dict[str, Any]:
    """A run with a report, a rating and tags that has ended."""
    run = await api.submit(question, **more)
    fence = await api.hands.claim(run)
    await api.hands.report(fence, await api.hands.document())
    await api.hands.end(fence)
    assert (await api.http.post(f"/api/v1/runs/{run}/ratings", json={"value": 1})).status_code in (200, 201)
    await api.http.patch(f"/api/v1/runs/{run}", json={"tags": ["sea"], "title": "Brine"})
    await api.http.get("/api/v1/runs?q=brine")
    return (await api.http.get(f"/api/v1/runs/{run}")).json()


async def delete(api: Api, run: object, query: str = "") -> dict[str, Any]:
    response = await api.http.delete(f"/api/v1/runs/{run}{query}")
    assert response.status_code == 200, response.text
    return response.json()


def mentions(owner_url: str, *ids: str) -> list[tuple[str, str]]:
    """Tables and columns that refer to one of these runs or threads."""
    with psycopg.connect(owner_url) as owner:
        columns = owner.execute(REFERENCES.encode()).fetchall()
        return [
            (table, column)
            for table, column in columns
            if owner.execute(
                f"select 1 from app.{table} where {column} = any(%s)".encode(), ([*map(UUID, ids)],)
            ).rowcount
        ]


async def test_no_table_refers_to_a_deleted_run_and_others_keep_theirs(api: Api, owner_url: str) -> None:
    run, other = await ended(api), await ended(api, question="Why is the sky blue?")
    with psycopg.connect(owner_url) as owner:
        for statement in ADD_ROLE_CALLS.split(";\n")[:-1]:
            owner.execute(statement.encode(), {"tenant": api.tenant, "run": run["id"]})
    assert len(mentions(owner_url, run["id"], run["thread_id"])) > 8
    before = mentions(owner_url, other["id"], other["thread_id"])
    assert await delete(api, run["id"]) == {"run_ids": [run["id"]], "child_runs": 0, "kept_fork_ids": []}
    assert mentions(owner_url, run["id"], run["thread_id"]) == []
    assert mentions(owner_url, other["id"], other["thread_id"]) == before
    with psycopg.connect(owner_url) as owner:
        assert owner.execute("select body from app.text_part").fetchall() == [("shared",)]
    assert (await api.http.get(f"/api/v1/runs/{run['id']}")).status_code == 404
    assert (await api.http.delete(f"/api/v1/runs/{run['id']}")).status_code == 404
    assert [item["id"] for item in (await api.http.get("/api/v1/runs?q=brine")).json()["items"]] == [other["id"]]
    assert len((await api.http.get("/api/v1/library")).json()["items"]) > 0  # documents stay


async def test_an_active_run_is_cancelled_first(api: Api) -> None:
    queued, (waiting_run, _) = await api.submit(), await waiting(api, YEAR)
    for run, status in ((queued, "queued"), (waiting_run, "waiting")):
        rejected = await api.http.delete(f"/api/v1/runs/{run}")
        assert rejected.status_code == 409
        assert f"has not ended ({status})" in rejected.json()["detail"]
        assert rejected.json()["remedy"] == "Cancel it first, then delete it."
        await api.http.post(f"/api/v1/runs/{run}/cancel", json={"mode": "discard"})
        await delete(api, run)


async def test_a_run_on_which_later_runs_build_is_deleted_after_them_or_with_them(api: Api) -> None:
    first = await ended(api)
    second, third = [await ended(api, thread_id=first["thread_id"]) for _ in range(2)]
    rejected = await api.http.delete(f"/api/v1/runs/{first['id']}")
    assert (rejected.status_code, rejected.json()["detail"]) == (
        409, f"2 later runs of its thread build on run {first['id']}."
    )  # fmt: skip
    assert "later_runs" in rejected.json()["remedy"]
    await delete(api, third["id"])
    assert (await api.http.get(f"/api/v1/threads/{first['thread_id']}")).json()["runs"][-1]["id"] == second["id"]
    assert (await delete(api, first["id"], "?later_runs=true"))["run_ids"] == [first["id"], second["id"]]
    assert (await api.http.get(f"/api/v1/threads/{first['thread_id']}")).status_code == 404


async def test_a_later_run_that_is_active_keeps_the_earlier_ones(api: Api) -> None:
    first = await ended(api)
    later = await api.submit(thread_id=first["thread_id"])
    rejected = await api.http.delete(f"/api/v1/runs/{first['id']}?later_runs=true")
    assert rejected.status_code == 409
    assert str(later) in rejected.json()["detail"]
    assert (await api.http.get(f"/api/v1/runs/{first['id']}")).status_code == 200


async def test_a_fork_stays_with_its_steps_and_names_its_origin_no_more(api: Api) -> None:
    run = await ended(api)
    fork = (await api.http.post(f"/api/v1/runs/{run['id']}/fork", json={"at_seq": 1})).json()
    assert (await api.http.delete(f"/api/v1/runs/{run['id']}")).status_code == 409
    await api.hands.end(await api.hands.claim(UUID(fork["id"])), RunStatus.DONE)
    assert (await delete(api, run["id"]))["kept_fork_ids"] == [fork["id"]]
    after = (await api.http.get(f"/api/v1/runs/{fork['id']}")).json()
    assert (after["forked_from_id"], after["forked_at_seq"]) == (None, 1)
    assert (await api.http.get(f"/api/v1/runs/{fork['id']}/steps")).json()["items"][0]["kind"] == "queued"


async def test_a_key_of_a_deleted_run_makes_a_new_one(api: Api) -> None:
    body, key = {"question": "Why is the sea salt?", "graph": "quiet"}, {"Idempotency-Key": "one"}
    first = (await api.http.post("/api/v1/runs", json=body, headers=key)).json()
    await api.http.post(f"/api/v1/runs/{first['id']}/cancel")
    await delete(api, first["id"])
    assert (await api.http.post("/api/v1/runs", json=body, headers=key)).status_code == 201


@pytest.mark.parametrize("query", ["?later_runs=perhaps", "?later_runs="])
async def test_a_deletion_with_a_parameter_that_means_nothing_deletes_nothing(api: Api, query: str) -> None:
    run = await ended(api)
    rejected = await api.http.delete(f"/api/v1/runs/{run['id']}{query}")
    assert (rejected.status_code, rejected.json()["field"]) == (422, "later_runs")
    assert (await api.http.get(f"/api/v1/runs/{run['id']}")).status_code == 200
