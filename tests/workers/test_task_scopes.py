"""What the scope of a task lets its rollouts use: checked when stored, pinned by a batch, and no more than that."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import orjson
import psycopg
import pytest
from pydantic import ValidationError

from offing.core.errors import Conflict, InvalidInput
from offing.core.step import StepKind
from offing.core.tool_policy import ToolPolicy, ToolRule
from offing.core.trajectory import Outcome
from offing.mcp.server_registry import McpServerRegistry
from offing.services import rollouts, tasks, tool_policies
from offing.services.graphs import open_registry
from offing.services.rollouts import BatchRequest, CreatedBatch
from offing.storage.migrate import LOCAL_TENANT
from tests.documents import ingest_text
from tests.mcp.config_files import entry, pin_all, written
from tests.mcp.servers import MisbehavingServer, misbehaving_server, tool
from tests.web.site import Reply, Site, running
from tests.workers import mcp_graph, web_graphs
from tests.workers.conftest import Platform, StartWorker
from tests.workers.rollout_batches import Collector, Sql, a_task

CALCULATES_ONLY = ToolPolicy(rules=(ToolRule(tool="calculate", allow_other_args=True),))


@pytest.fixture
async def served() -> AsyncIterator[MisbehavingServer]:
    async with misbehaving_server() as server:
        yield server


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with running() as site:
        results = {"results": [{"url": f"http://127.0.0.1:{site.port}/tides", "title": "Tides", "content": "Moon"}]}
        site.pages = {
            "/search": Reply(orjson.dumps(results), headers={"Content-Type": "application/json"}),
            "/tides": Reply(page_of("The moon pulls the sea twice a day.")),
        }
        yield site


def page_of(text: str) -> bytes:
    return f"<html><head><title>Tides</title></head><body><main><p>{text}</p></main></body></html>".encode()


TIDES = "# Tides\n\nThe moon pulls the sea twice a day.\n"


def another_tenant(owner_url: str) -> UUID:
    id = uuid4()
    with psycopg.connect(owner_url, autocommit=True) as owner:
        owner.execute("insert into app.tenant (id, name) values (%s, 'other')", (id,))
    return id


async def created(
    platform: Platform | Collector,
    graph: str,
    scope: Mapping[str, Any],
    graphs: str,
    servers: McpServerRegistry | None = None,
    question: str = "What pulls the sea twice a day?",
    **more: Any,
) -> CreatedBatch:
    task = a_task(question, scope=scope, name="t1")
    stored = await tasks.store_tasks(platform.database, platform.tenant, "test", [task], servers)
    request = BatchRequest(graph, stored.task_ids, 1, **more)
    return await rollouts.create_batch(
        platform.database, platform.notifier, platform.tenant, request, graphs=open_registry(graphs), servers=servers
    )


async def ended_tools(platform: Platform, batch: CreatedBatch) -> list[dict[str, Any]]:
    """Wait for the rollouts of a batch, and return the payloads of their tool results."""
    for _ in range(600):
        if not (await rollouts.get_batch(platform.database, platform.tenant, batch.batch.id)).progress.open:
            break
        await asyncio.sleep(0.1)
    members, _ = await rollouts.list_rollouts(
        platform.database, platform.tenant, rollouts.RolloutFilter(batch.batch.id), None, 10
    )
    log = [step for one in members for step in await platform.steps(one.run_id)]
    return [dict(step.payload) for step in log if step.kind is StepKind.TOOL_RESULT]


async def test_a_scope_names_only_what_the_tenant_has_and_the_error_says_which_task_field_and_remedy(
    collector: Collector, owner_url: str, tmp_path: Path
) -> None:
    other = another_tenant(owner_url)
    await ingest_text(collector.database, other, tmp_path / "theirs", TIDES)
    await tool_policies.put_policy(collector.database, other, "theirs", CALCULATES_ONLY)
    await ingest_text(collector.database, LOCAL_TENANT, tmp_path / "ours", TIDES)
    unknown: dict[str, dict[str, Any]] = {
        "collections": {"collections": ["ours", "theirs"]},
        "sources": {"sources": [str(uuid4())]},
        "tool_policy": {"tool_policy": "theirs"},
        "mcp": {"mcp": ["gone"]},
        "pages": {"pages": ["https://example.org/never-read"]},
        "code": {"environment": "train-1@50", "code": True},
    }
    for name, scope in unknown.items():
        with pytest.raises(InvalidInput) as error:
            await tasks.store_tasks(collector.database, LOCAL_TENANT, "d", [a_task(scope=scope, name="t7")])
        assert (error.value.field, bool(error.value.remedy)) == (f"tasks.t7.scope.{name}", True)
    stored = await tasks.store_tasks(collector.database, LOCAL_TENANT, "d", [a_task(scope={"collections": ["ours"]})])
    assert len(stored.task_ids) == 1


@pytest.mark.parametrize(
    "scope",
    [
        {"web": True, "pages": ["https://example.org/"]},
        {"only_domains": ["example.org"]},
        {"web": True, "only_domains": ["no domain"]},
        {"pages": ["file:///etc/passwd"]},
        {"mcp_pins": {"own": "a" * 64}},
        {"mcp": ["own"], "mcp_pins": {"own": "short"}},
        {"anything": True},
    ],
)
def test_a_scope_that_contradicts_itself_is_rejected(scope: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        a_task(scope=scope)


async def test_what_a_task_names_is_checked_again_when_a_batch_is_created(collector: Collector) -> None:
    await tool_policies.put_policy(collector.database, LOCAL_TENANT, "careful", CALCULATES_ONLY)
    stored = await tasks.store_tasks(
        collector.database, LOCAL_TENANT, "d", [a_task(scope={"tool_policy": "careful"}, name="t3")]
    )
    await tool_policies.delete_policy(collector.database, LOCAL_TENANT, "careful")
    with pytest.raises(InvalidInput, match=r"tasks\.t3\.scope\.tool_policy: there is no tool policy 'careful'"):
        await collector.collect_ids(stored.task_ids)


async def test_rollouts_get_the_policy_and_tools_of_their_own_task_as_the_batch_pinned_them(
    collector: Collector, sql: Sql
) -> None:
    await tool_policies.put_policy(collector.database, LOCAL_TENANT, "careful", CALCULATES_ONLY)
    specs = [
        a_task("One?", scope={"tool_policy": "careful"}),
        a_task("Two?", scope={"web": True, "only_domains": ["example.org"], "code": True}),
        a_task("Three?"),
    ]
    batch = await collector.collect(*specs, size=1, idempotency_key="k")
    assert set(batch.batch.request["pins"]) == {"tool_policies"}
    rows = sql("select question, scope, tool_policy from app.run order by question")
    allowed = {question: {rule["tool"] for rule in policy["rules"]} for question, _, policy in rows}
    assert allowed["One?"] == {"calculate"}
    assert allowed["Two?"] > allowed["Three?"] >= {"search_library"}
    assert allowed["Two?"] - allowed["Three?"] == {"web_search", "fetch_page", "run_python"}
    assert {question: scope for question, scope, _ in rows}["Two?"] == {
        "web": True, "only_domains": ["example.org"], "code": True,
    }  # fmt: skip
    looser = ToolPolicy(rules=(ToolRule(tool="search_library", allow_other_args=True),))
    await tool_policies.put_policy(collector.database, LOCAL_TENANT, "careful", looser)
    sql("delete from app.rollout_group where (select question from app.task where id = task_id) = 'One?' returning id")
    again = await collector.collect(*specs, size=1, idempotency_key="k")
    assert (again.is_new, again.new_run_count) == (False, 1)
    (policy,) = sql("select tool_policy from app.run where question = 'One?' order by created_at desc limit 1")[0]
    assert {rule["tool"] for rule in policy["rules"]} == {"calculate"}, "the batch keeps the policy that it pinned"


async def test_a_policy_for_tools_that_the_task_does_not_have_is_rejected_by_name_of_the_task(
    collector: Collector,
) -> None:
    browsing = ToolPolicy(rules=(ToolRule(tool="web_search", allow_other_args=True),))
    await tool_policies.put_policy(collector.database, LOCAL_TENANT, "browsing", browsing)
    with pytest.raises(InvalidInput) as error:
        await collector.collect(a_task(scope={"tool_policy": "browsing"}, name="t5"))
    assert error.value.field == "tasks.t5.scope.tool_policy"


async def test_a_rollout_reads_the_recorded_text_of_a_page_although_the_site_says_something_else_now(
    platform: Platform, start_worker: StartWorker, site: Site
) -> None:
    address = f"127.0.0.1:{site.port}"
    url = f"http://{address}/tides"
    start_worker(
        OFFING_EXTRA_GRAPHS=web_graphs.GRAPHS,
        SEARXNG_URL=f"http://{address}",
        OFFING_ALLOWED_FETCH_HOSTS=address,
        OFFING_SEARCH_ENGINES="searxng",
    )
    live = await ended_tools(platform, await created(platform, "surfing", {"web": True}, web_graphs.GRAPHS))
    assert [one["status"] for one in live] == ["ok", "ok"]
    requests_before, site.pages["/tides"] = len(site.requests), Reply(page_of("The sun does it."))
    batch = await created(platform, "surfing", {"pages": [url]}, web_graphs.GRAPHS)
    assert list(batch.batch.request["pins"]["pages"]) == [url]
    searched, page = await ended_tools(platform, batch)
    assert [hit["url"] for hit in searched["content"]["results"]] == [url]
    assert "The moon pulls the sea" in page["content"]["text"]
    assert len(site.requests) == requests_before, "nothing was fetched"


async def test_rollouts_have_the_approved_tools_of_their_batch_or_fail(
    platform: Platform, start_worker: StartWorker, served: MisbehavingServer, tmp_path: Path
) -> None:
    file = written(tmp_path, entry(served.url))
    await pin_all(file)
    servers = McpServerRegistry(file)
    scope, question = {"mcp": ["own"]}, "own: What pulls the sea?"
    batch = await created(platform, "asking", scope, mcp_graph.GRAPHS, servers, question, idempotency_key="k")
    pin = batch.batch.request["pins"]["mcp"]["own"]
    served.tools = [tool(description="Says it again, and sends it on.")]
    await pin_all(file)
    with pytest.raises(Conflict, match="approved tools of the MCP server own have changed"):
        await created(platform, "asking", scope, mcp_graph.GRAPHS, servers, question, idempotency_key="k")
    with pytest.raises(InvalidInput, match="mcp_pins"):
        await created(platform, "asking", {**scope, "mcp_pins": {"own": pin}}, mcp_graph.GRAPHS, servers, question)
    start_worker(OFFING_EXTRA_GRAPHS=mcp_graph.GRAPHS, OFFING_MCP_CONFIG=str(file))
    assert await ended_tools(platform, batch) == []
    members, _ = await rollouts.list_rollouts(
        platform.database, platform.tenant, rollouts.RolloutFilter(batch.batch.id), None, 10
    )
    assert {one.outcome for one in members} == {Outcome.INFRA_ERROR}
    assert served.calls() == []
    (answered,) = await ended_tools(
        platform, await created(platform, "asking", scope, mcp_graph.GRAPHS, servers, question)
    )
    assert (answered["status"], answered["origin"]) == ("ok", "mcp:own")
