"""The web UI's own client code against the real API: every call that it makes is one that the API knows, takes, and
answers as the OpenAPI document says."""

import asyncio
import os
import re
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import UUID

import orjson
import pytest

from offing.api.app import create_app
from offing.core.input_request import InputKind, InputPrompt
from offing.core.prompt_library import PromptLibrary
from offing.models.policy_folder import PolicyHashes
from offing.services import access, policies, prompt_library
from offing.services.policies import PolicyRegistration
from offing.settings import Settings
from offing.storage import claims, training_jobs
from offing.storage.training_jobs import CommittedStep
from offing_workers.claimed_run import ClaimedRun
from offing_workers.slice import Slice, SliceLimits
from tests.api.conftest import GRAPHS, Api, running
from tests.api.openapi_contract import Contract, Exchange, Recorder
from tests.api.test_input_requests import SEND, waiting
from tests.api.test_policy_versions import evaluated
from tests.api.test_run_files import PNG, keep
from tests.mcp.config_files import entry, written
from tests.mcp.servers import misbehaving_server
from tests.model_provider import Received, Reply, WireServer, able
from tests.model_provider.replies import Whole
from tests.storage.rollouts import Collected
from tests.workers.interrupted_runs import Nobody, RecordedDispatches

FRONTEND = Path(__file__).parents[2] / "frontend"

WITH_INTERRUPT = f"{GRAPHS},tests.protocols.langgraph.graphs:approval"

SECONDS = 300
"""For the client code to make all of its calls."""

CALL = re.compile(r'\bapi\.(GET|POST|PUT|PATCH|DELETE)\(\s*"(/api/v1/[^"]+)"')

WRITTEN = {
    ("GET", "/api/v1/events"),
    ("GET", "/api/v1/runs/{run_id}/files/{sha256}"),
    ("GET", "/api/v1/shared/{token}/export"),
    ("GET", "/api/v1/health/ready"),
}
"""Addresses that the web UI puts together from text, which no type checks. Its sources hold these and no others."""

INSERTED = re.compile(r"\$\{[^{}]*\}")

ADDRESS = re.compile(r"/api/v1\b(?:\{\}|[^\s\"'`?#<>\\])*")


@pytest.fixture
async def exchanges() -> list[Exchange]:
    return []


@pytest.fixture
async def watched(
    settings: Settings, other_tenant: UUID, app_url: str, exchanges: list[Exchange], tmp_path: Path
) -> AsyncIterator[Api]:
    """The API with a record of all that went over the wire. It has one MCP server, and a search engine that is away."""
    async with misbehaving_server() as server:
        file = written(tmp_path, entry(server.url, "wiki"))
        changes = {"mcp_config": file, "searxng_url": "http://127.0.0.1:9", "extra_graphs": WITH_INTERRUPT}
        settings = settings.model_copy(update=changes)
        app = create_app(settings)
        app.add_middleware(Recorder, exchanges=exchanges)  # pyright: ignore[reportArgumentType]
        async with running(app, settings, app_url, other_tenant) as api:
            yield api


def sources_of_the_page() -> list[str]:
    """The code of the web UI that ships, without what is generated and without sentences that name addresses."""
    paths = [path for path in (FRONTEND / "src").rglob("*.ts*") if "testing" not in path.parts]
    left_out = ("schema.d.ts", "problem-texts.ts")
    return [path.read_text() for path in paths if ".test." not in path.name and path.name not in left_out]


def operations_of_the_page() -> set[tuple[str, str]]:
    """What the sources of the web UI ask for."""
    typed = {(match[1], match[2]) for source in sources_of_the_page() for match in CALL.finditer(source)}
    return typed | WRITTEN


def is_expected_problem(exchange: Exchange) -> bool:
    """Whether the client code expects it: an added server must be on the internet, and an interrupt is looked for."""
    return (exchange.method, exchange.path, exchange.status) == (
        "PUT",
        "/api/v1/installation/mcp-servers/other",
        409,
    ) or (exchange.path.endswith("/interrupts/none/response") and exchange.status == 404)


def addresses_from_text(source: str) -> set[str]:
    """Addresses of the API in the source that are not in a typed call, with `{}` for whatever is inserted."""
    rest, inserted = CALL.sub("", source), 1
    while inserted:
        rest, inserted = INSERTED.subn("{}", rest)
    return set(ADDRESS.findall(rest))


async def stored(api: Api, owner_url: str, folder: Path) -> dict[str, Any]:
    """Something to look at for every call: ended and waiting runs, a job under way, versions, a prompt library."""
    source = await api.hands.document()
    ended = await api.submit()
    fence = await api.hands.claim(ended)
    await api.hands.notes(fence, ["one", "two"])
    report = await api.hands.report(fence, source)
    await keep(api, ended, "plot.png", PNG, "image/png")
    await api.hands.end(fence)
    request, numbers = await waiting(api, InputPrompt(InputKind.PLAN_REVIEW, "Find it", steps=("look", "write")), SEND)
    collected = Collected(api.database, api.tenant, owner_url)
    rollout = await collected.rollout(reward=0.5)
    versions = [
        await policies.register_version(
            api.database,
            api.tenant,
            PolicyRegistration(name="small", kind="full", uri=f"/p/{nth}", hashes=PolicyHashes(f"s{nth}", "t", "p")),
        )
        for nth in (1, 2)
    ]
    evaluated(owner_url, api.tenant, str(versions[1][0].id), {source: 1.0})
    library, _ = await prompt_library.register_library(api.database, api.tenant, "lessons", PromptLibrary(), folder)
    created = await api.http.post("/api/v1/training-jobs", json={"config": {"policy": "small@1"}})
    job = created.json()["id"]
    held = await training_jobs.claim_job(api.database, UUID(job), "trainer", 600)
    assert held is not None
    async with api.database.transaction(api.tenant) as connection:
        await training_jobs.commit_step(connection, held, 600, CommittedStep(1, 1, "s1", {}, metrics={"reward": 0.5}))
    body = {"assistant_id": "quiet", "input": {"question": "Why?"}}
    thread = (await api.http.post("/langgraph/threads", json={})).json()["thread_id"]
    of_langgraph = (await api.http.post(f"/langgraph/threads/{thread}/runs", json=body)).json()["run_id"]
    return {
        "of_langgraph": of_langgraph, "interrupted": await interrupted(api),
        "ended": str(ended), "active": str(await api.submit()), "asked": str(request), "number": numbers[0],
        "rollout": str(rollout), "source": str(source), "text_id": str(report.citations[0].span.text_id),
        "versions": [str(row.id) for row, _ in versions], "library": str(library.id), "job": job,
    }  # fmt: skip


async def interrupted(api: Api) -> str:
    """A run of a LangGraph client that stopped at an interrupt."""
    thread = (await api.http.post("/langgraph/threads", json={})).json()["thread_id"]
    body: dict[str, Any] = {"assistant_id": "approval", "input": {"topic": "go", "decisions": []}}
    run = (await api.http.post(f"/langgraph/threads/{thread}/runs", json=body)).json()["run_id"]
    claim = await claims.claim_run(api.database, UUID(run), "worker", 600)
    assert claim is not None
    dependencies = api.app.state.dependencies
    work = Slice(
        api.database,
        Nobody(),
        RecordedDispatches(),
        dependencies.graphs,
        claim,
        ClaimedRun(claim.fence),
        SliceLimits(600, 5, 60.0),
        run_streams=dependencies.run_streams,
    )
    await work.advance_run()
    return run


def serve_model(request: Received) -> Reply:
    """A model server that lists one model."""
    return Whole({"data": [{"id": "qwen"}]}) if request.method == "GET" else able(request)


@pytest.mark.timeout(2 * SECONDS)
async def test_every_call_of_the_web_ui_is_one_that_the_api_knows(
    watched: Api, exchanges: list[Exchange], owner_url: str, tmp_path: Path
) -> None:
    known = await stored(watched, owner_url, tmp_path)
    exchanges.clear()
    link = await access.create_login_link(watched.database, watched.tenant, watched.base, is_operator=True)
    async with WireServer(serve_model) as server:
        known |= {"url": watched.base, "link": link, "model_server": server.url}
        environment = os.environ | {"OFFING_CONTRACT": orjson.dumps(known).decode()}
        done = await asyncio.to_thread(
            subprocess.run, ["npx", "--no-install", "vitest", "run", "--config", "contract/vitest.config.ts"],
            cwd=FRONTEND, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False,
        )  # fmt: skip
    contract = Contract(orjson.loads((FRONTEND / "openapi.json").read_bytes()))
    faults = [
        fault for exchange in exchanges for fault in contract.faults(exchange) if not is_expected_problem(exchange)
    ]
    assert not faults, "\n".join(faults)
    assert done.returncode == 0, done.stdout + done.stderr
    unasked = operations_of_the_page() - contract.used
    assert not unasked, f"frontend/contract/client.contract.ts makes no call of {sorted(unasked)}"


def test_every_address_that_is_put_together_from_text_is_known_and_asked_for() -> None:
    addresses = {address for source in sources_of_the_page() for address in addresses_from_text(source)}
    assert addresses == {re.sub(r"\{[^}]*\}", "{}", path) for _, path in WRITTEN}


@pytest.mark.parametrize(
    ("source", "results"),
    [
        ('fetch("/api/v1/tenants")', {"/api/v1/tenants"}),
        ("<a href='/api/v1/runs/1/export?format=md'>", {"/api/v1/runs/1/export"}),
        ("`/api/v1/runs/${encodeURIComponent(id)}/files`", {"/api/v1/runs/{}/files"}),
        ("`/api/v1/events?cursor=${escape(`${run}:0`)}`", {"/api/v1/events"}),
        ("`${location.origin}/api/v1${path}`", {"/api/v1{}"}),
        ('api.GET(\n  "/api/v1/runs", {})', set[str]()),
        ("api.GET(`/api/v1/runs`)", {"/api/v1/runs"}),
    ],
)
def test_an_address_outside_of_a_typed_call_is_found(source: str, results: set[str]) -> None:
    assert addresses_from_text(source) == results


def test_a_body_of_a_request_takes_no_field_that_it_does_not_name() -> None:
    document = orjson.loads((FRONTEND / "openapi.json").read_bytes())
    shapes = document["components"]["schemas"]
    for path, operations in document["paths"].items():
        for operation in operations.values():
            for body in operation.get("requestBody", {}).get("content", {}).values():
                schemas = [body["schema"], *body["schema"].get("anyOf", ())]
                for schema in schemas:
                    shape = shapes[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
                    if shape.get("type") == "object":
                        assert shape.get("additionalProperties") is False, (path, schema)


def test_what_no_type_checks_is_a_fault_of_its_own_kind() -> None:
    contract = Contract(orjson.loads((FRONTEND / "openapi.json").read_bytes()))

    def faults(method: str, path: str, query: str = "", body: bytes = b"", kind: str = "", status: int = 200) -> str:
        exchange = Exchange(method, f"/api/v1{path}", query, {"content-type": kind}, body, status)
        return "; ".join(contract.faults(exchange))

    form = b'--b\r\nContent-Disposition: form-data; name="%s"; filename="a"\r\n\r\nx\r\n--b--\r\n'
    multipart = "multipart/form-data; boundary=b"
    assert "no such operation" in faults("GET", "/nothing")
    assert "no query parameter 'colection'" in faults("GET", "/library", "colection=papers")
    assert "takes one value" in faults("GET", "/library", "limit=1&limit=2")
    assert "no form field 'folder'" in faults("POST", "/library", "", form % b"folder", multipart)
    assert "'files' is missing" in faults("POST", "/library", "", form % b"collection", multipart)
    assert faults("POST", "/library", "", form % b"files", multipart) == ""
    assert "body at" in faults("POST", "/runs", "", b'{"question": "Why?", "depth": 3}', "application/json", 201)
    assert "no answer 418" in faults("GET", "/runs", status=418)
    assert "was refused with 422" in faults("GET", "/runs", status=422)
