"""Which run started which, over HTTP: for its tenant alone, in the order of asking."""

from uuid import UUID

from offing.clock import new_id
from offing.core.run import RunStatus
from offing.core.step import CallKey
from offing.storage import child_runs
from tests.api.conftest import Api


async def child_of(api: Api, parent_id: UUID, ordinal: int) -> UUID:
    """A run that was started by another one."""
    child = await api.submit(question=f"Part {ordinal}?")
    async with api.database.transaction(api.tenant) as connection:
        await child_runs.insert_child(connection, api.tenant, parent_id, CallKey(1, "delegate", ordinal), 1, child)
    return child


async def test_a_run_names_its_children_in_order_and_a_child_its_parent(api: Api) -> None:
    parent = await api.submit()
    second, first = await child_of(api, parent, 1), await child_of(api, parent, 0)
    await api.hands.end(await api.hands.claim(first), RunStatus.FAILED)
    family = (await api.http.get(f"/api/v1/runs/{parent}/tree")).json()
    assert family["parent_id"] is None
    assert [(c["id"], c["question"], c["status"]) for c in family["children"]] == [
        (str(first), "Part 0?", "failed"),
        (str(second), "Part 1?", "queued"),
    ]
    assert family["children"][0]["ended_at"] is not None
    assert (await api.http.get(f"/api/v1/runs/{first}/tree")).json() == {"parent_id": str(parent), "children": []}


async def test_another_tenant_sees_no_family(api: Api) -> None:
    parent = await api.submit()
    assert (await api.other.get(f"/api/v1/runs/{parent}/tree")).status_code == 404
    assert (await api.http.get(f"/api/v1/runs/{new_id()}/tree")).status_code == 404
