"""Users of a project whose `Auth` handlers keep them apart, through LangGraph's Python client."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

import httpx
import pytest
from langgraph_sdk import get_client
from langgraph_sdk.errors import AuthenticationError, ConflictError, NotFoundError, PermissionDeniedError
from pydantic import SecretStr

from offing.api.app import create_app
from offing.services import access
from offing.settings import Settings
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database
from tests.api.conftest import serving
from tests.protocols.langgraph.conftest import ENVIRONMENT, Client
from tests.protocols.langgraph.graphs import GRAPHS
from tests.unit.services.test_langgraph_projects import with_graph
from tests.workers.conftest import SharedServers

__all__ = ["ENVIRONMENT"]

GUARD = """
from langgraph_sdk import Auth

auth = Auth()


@auth.authenticate
async def identify(authorization: str | None, path: str):
    scheme, _, name = (authorization or "").partition(" ")
    assert scheme == "Bearer" and name in ("ada", "bob"), "Who are you?"
    assert not path.startswith("/langgraph")
    return {"identity": name}


@auth.on
async def own(ctx, value):
    if ctx.resource == "store":
        value["namespace"] = (ctx.user.identity, *(value["namespace"] or ()))
        return None
    if ctx.action in ("create", "create_run"):
        value.setdefault("metadata", {})["owner"] = ctx.user.identity
    return {"owner": ctx.user.identity}


@auth.on.threads.delete
async def nobody_deletes(ctx, value):
    return False
"""

TRAIL: Any = {"seen": ["input"]}

YEARLY = "0 0 1 1 *"


@asynccontextmanager
async def serving_users(servers: SharedServers, tmp_path: Path, guard: str = GUARD) -> AsyncGenerator[str]:
    """The address of an API that serves a project with the Auth object."""
    project = with_graph(tmp_path / "project", auth={"path": "./guard.py:auth"})
    (project / "guard.py").write_text(guard)
    settings = Settings(
        app_database_url=SecretStr(servers.app_url),
        redis_url=SecretStr(servers.redis_url),
        lease_seconds=3,
        extra_graphs=GRAPHS,
        graph_paths=str(project),
        home=tmp_path / "home",
        port=0,
    )
    async with serving(create_app(settings), settings) as address:
        yield address


@pytest.fixture
async def base(shared_servers: SharedServers, tmp_path: Path) -> AsyncIterator[str]:
    async with serving_users(shared_servers, tmp_path) as address:
        yield address


@asynccontextmanager
async def open_client(base: str, name: str) -> AsyncGenerator[Client]:
    opened = get_client(url=f"{base}/langgraph", api_key=None, headers={"Authorization": f"Bearer {name}"})
    yield opened
    await opened.aclose()


@pytest.fixture
async def ada(base: str) -> AsyncIterator[Client]:
    async with open_client(base, "ada") as opened:
        yield opened


@pytest.fixture
async def bob(base: str) -> AsyncIterator[Client]:
    async with open_client(base, "bob") as opened:
        yield opened


async def test_a_user_does_not_see_or_use_the_thread_of_another(ada: Client, bob: Client) -> None:
    thread = (await ada.threads.create(metadata={"label": "mine"}))["thread_id"]
    values = await ada.runs.wait(thread, "trail", input=TRAIL)
    assert values == {"seen": ["input", "first", "second"]}
    (run,) = await ada.runs.list(thread)
    assert (await ada.threads.get(thread))["metadata"]["owner"] == "ada"
    for attempt in (
        bob.threads.get(thread),
        bob.threads.update(thread, metadata={"owner": "bob"}),
        bob.threads.copy(thread),
        bob.threads.get_state(thread),
        bob.threads.get_history(thread),
        bob.threads.update_state(thread, {"seen": ["bob"]}),
        bob.runs.create(thread, "trail", input=TRAIL),
        bob.runs.wait(thread, "trail", input=TRAIL),
        bob.runs.create(thread, "trail", input=TRAIL, if_not_exists="create"),
        bob.runs.list(thread),
        bob.runs.get(thread, run["run_id"]),
        bob.runs.join(thread, run["run_id"]),
        bob.runs.cancel(thread, run["run_id"]),
        bob.runs.cancel_many(thread_id=thread, run_ids=[run["run_id"]]),
        bob.crons.create_for_thread(thread, "trail", schedule=YEARLY, input=TRAIL),
    ):
        with pytest.raises((NotFoundError, httpx.HTTPStatusError)) as error:  # wait and join raise the latter
            await attempt
        assert cast(Any, error.value).response.status_code == 404
    assert await bob.threads.search() == []
    assert await bob.threads.count() == 0
    assert [one["thread_id"] for one in await ada.threads.search(ids=[thread])] == [thread]
    with pytest.raises(ConflictError):
        await bob.threads.create(thread_id=thread, if_exists="do_nothing")
    with pytest.raises(httpx.HTTPStatusError):
        async for _ in bob.runs.stream(thread, "trail", input=TRAIL):
            pass


async def test_what_a_handler_rejects_is_answered_with_403(ada: Client, bob: Client) -> None:
    thread = (await ada.threads.create())["thread_id"]
    for client in (ada, bob):
        with pytest.raises(PermissionDeniedError):
            await client.threads.delete(thread)
        with pytest.raises(PermissionDeniedError):
            await client.threads.prune([thread])
    with pytest.raises(PermissionDeniedError):
        await ada.http.get("/metrics")
    assert (await ada.threads.get(thread))["thread_id"] == thread


async def test_the_thread_that_a_run_makes_belongs_to_its_user(ada: Client, bob: Client) -> None:
    for run in (
        await ada.runs.create(None, "trail", input=TRAIL, on_completion="keep"),
        await ada.runs.create(str(uuid4()), "trail", input=TRAIL, if_not_exists="create"),
    ):
        assert (await ada.threads.get(run["thread_id"]))["metadata"]["owner"] == "ada"
        with pytest.raises(NotFoundError):
            await bob.threads.get(run["thread_id"])
        assert await ada.runs.join(run["thread_id"], run["run_id"]) == {"seen": ["input", "first", "second"]}


async def test_a_copied_thread_belongs_to_its_user(ada: Client, bob: Client) -> None:
    thread = (await ada.threads.create())["thread_id"]
    copied: Any = await ada.threads.copy(thread)
    assert copied["metadata"]["owner"] == "ada"
    with pytest.raises(NotFoundError):
        await bob.threads.get(copied["thread_id"])


async def test_a_user_does_not_see_the_assistants_and_crons_of_another(ada: Client, bob: Client) -> None:
    assistant = (await ada.assistants.create("trail", name="Ada's"))["assistant_id"]
    cron = (await ada.crons.create("trail", schedule=YEARLY, input=TRAIL))["cron_id"]
    assert [one["assistant_id"] for one in await ada.assistants.search()] == [assistant]
    assert [one["cron_id"] for one in await ada.crons.search()] == [cron]
    assert (await bob.assistants.search(), await bob.assistants.count()) == ([], 0)
    assert (await bob.crons.search(), await bob.crons.count()) == ([], 0)
    for attempt in (
        bob.assistants.get(assistant),
        bob.assistants.update(assistant, name="Bob's"),
        bob.assistants.delete(assistant),
        bob.assistants.get_versions(assistant),
        bob.assistants.set_latest(assistant, 1),
        bob.assistants.get_graph(assistant),
        bob.assistants.get_schemas(assistant),
        bob.runs.create(None, assistant, input=TRAIL),
        bob.crons.create(assistant, schedule=YEARLY, input=TRAIL),
        bob.crons.update(cron, enabled=False),
        bob.crons.delete(cron),
        bob.http.get(f"/runs/crons/{cron}"),
    ):
        with pytest.raises(NotFoundError):
            await attempt
    await ada.crons.delete(cron)
    await ada.assistants.delete(assistant)


async def test_the_handler_gives_each_user_a_namespace_of_the_store(ada: Client, bob: Client) -> None:
    await ada.store.put_item(["notes"], "tea", {"text": "likes tea"})
    item: Any = await ada.store.get_item(["notes"], "tea")
    assert item["namespace"] == ["ada", "notes"]
    assert await bob.store.get_item(["notes"], "tea") is None
    assert (await bob.store.search_items([]))["items"] == []
    assert (await bob.store.list_namespaces())["namespaces"] == []
    assert [one["key"] for one in (await ada.store.search_items(["notes"]))["items"]] == ["tea"]
    await bob.store.delete_item(["notes"], "tea")
    assert await ada.store.get_item(["notes"], "tea") is not None


async def test_a_key_of_offing_sees_what_all_users_made_and_strangers_are_rejected(
    base: str, ada: Client, key_database: Database
) -> None:
    thread = (await ada.threads.create())["thread_id"]
    key = await access.create_key(key_database, LOCAL_TENANT, str(uuid4()))
    operator = get_client(url=f"{base}/langgraph", api_key=key.key)
    stored: Any = await operator.threads.get(thread)
    assert stored["metadata"]["owner"] == "ada"
    await operator.aclose()
    async with open_client(base, "eve") as eve:
        with pytest.raises(AuthenticationError, match="Who are you"):
            await eve.threads.get(thread)
