"""Twenty-five stored keys, which their providers repeat in answers and errors, are found in none of nine sinks.

The sinks: all tables, a dump of the database, all of Valkey with what passes through it, the worker's log, its traces,
reports as files, exported trajectories, responses of the API, and the arguments and environment of all processes.
"""

import asyncio
import json
import subprocess
from collections.abc import Mapping
from pathlib import Path

import httpx
import psutil
import pytest
from pydantic import SecretStr

from offing.api.app import create_app
from offing.core.model import EngineConfig
from offing.core.run import Budget
from offing.exports.format import FORMATS, ExportOptions
from offing.local.postgres_tools import choose_tools, dump_schema
from offing.report_files.writers import ReportFileWriter
from offing.services import access, providers, report_export, trajectories
from offing.services.graphs import open_registry
from offing.services.providers import ProviderRequest
from offing.services.runs import RunRequest, submit_run
from offing.settings import Settings
from offing.storage.backup import describe_database, open_snapshot, split_password
from offing.storage.runs import RunRow
from offing.storage.trajectories import TrajectoryQuery
from tests.api.conftest import bearer, serving
from tests.model_provider import Completion, Fault, Received, Reply, WireServer
from tests.workers.conftest import Platform, StartWorker
from tests.workers.processes import ALL_GRAPHS
from tests.workers.rollout_batches import Sql
from tests.workers.test_secrets import find_secrets, list_keys, listening, spellings, tables

COUNT = 25
KEYS = {f"provider{n:02}": f'c4n4ry{n:02}-"x\\y/+{n:02}-of-a-stored-key' for n in range(COUNT)}


def echo(request: Received) -> Reply:
    """Repeats the key of the request in five spellings: in an answer, in an error for a model called `failing`."""
    key = request.headers["authorization"].removeprefix("Bearer ")
    text = " ".join(spellings(key))
    if request.body.get("model") == "failing":
        return Fault(400, text)
    return Completion(json.dumps({"word": text}))


async def run_question(platform: Platform, name: str, model: str) -> RunRow:
    choice = EngineConfig(engine="litellm", model=f"{name}/{model}", options={"output_mode": "text"})
    request = RunRequest("What is echoed?", "counting", budget=Budget(max_turns=1), engines={"speaker": choice})
    submitted = await submit_run(
        platform.database, platform.notifier, platform.tenant, request, graphs=open_registry(ALL_GRAPHS)
    )
    return await platform.ended(submitted.run.id, 90)


def dump_as_text(owner_url: str, file: Path) -> str:
    """What `offing backup` dumps, as SQL."""
    described, (address, password) = describe_database(owner_url), split_password(owner_url)
    tools = choose_tools(described.postgres_version)
    with open_snapshot(owner_url) as stored:
        dump_schema(tools, address, password, "app", file, snapshot=stored.snapshot_name, excluded_tables=())
    done = subprocess.run([tools.folder / "pg_restore", "-f", "-", file], capture_output=True, check=True)
    return done.stdout.decode("utf-8", "replace")


def describe_processes() -> str:
    lines: list[str] = []
    for process in psutil.process_iter():
        try:
            lines.append(f"{process.cmdline()} {process.environ()}")
        except psutil.Error:
            continue
    return "\n".join(lines)


async def call_api(app_url: str, redis_url: str, platform: Platform, ended: Mapping[str, RunRow]) -> str:
    """Everything that the API says of the providers and of the runs."""
    settings = Settings(app_database_url=SecretStr(app_url), redis_url=SecretStr(redis_url), port=0)
    key = await access.create_key(platform.database, platform.tenant, "reader")
    paths = ["/providers", "/presets", "/engines", "/runs", *(f"/providers/{name}" for name in KEYS)]
    for run in ended.values():
        paths += [f"/runs/{run.id}", f"/runs/{run.id}/steps", f"/runs/{run.id}/report"]
        paths += [f"/runs/{run.id}/whole-steps?kind={kind}" for kind in ("note", "failure", "ended")]
    texts: list[str] = []
    async with (
        serving(create_app(settings), settings) as base,
        httpx.AsyncClient(base_url=f"{base}/api/v1", headers=bearer(key.key), timeout=60) as http,
    ):
        for path in paths:
            texts.append((await http.get(path)).text)
        for name, value in list(KEYS.items())[:3]:
            invalid = {"provider": "openai", "api_base": "http://127.0.0.1:1", "key": value}
            texts.append((await http.put(f"/providers/{name}", json=invalid)).text)
            tested = await http.post(f"/providers/{name}/test", json={"model": "failing"})
            assert "[redacted]" in tested.text
            texts.append(tested.text)
    return "\n".join(texts)


@pytest.mark.timeout(400)
async def test_no_stored_key_is_found_in_any_sink(
    platform: Platform,
    start_worker: StartWorker,
    sql: Sql,
    redis_url: str,
    app_url: str,
    owner_url: str,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    sql("update app.tenant set training_opt_in = true")
    ended: dict[str, RunRow] = {}
    async with WireServer(echo) as server:
        for name, key in KEYS.items():
            request = ProviderRequest(name, "openai", server.url, key)
            await providers.put_provider(platform.database, platform.tenant, request)
        worker = start_worker(OTEL_TRACES_EXPORTER="console", OTEL_BSP_SCHEDULE_DELAY="100")
        async with listening(redis_url) as received:
            for number, name in enumerate(KEYS):
                ended[name] = await run_question(platform, name, "failing" if number % 2 else "echoing")
            processes = await asyncio.to_thread(describe_processes)
        keys_sent = {one.headers["authorization"] for one in server.requests}
        responses = await call_api(app_url, redis_url, platform, ended)
    assert len(keys_sent) == COUNT
    steps = [step for run in ended.values() for step in await platform.steps(run.id)]
    assert len([step for step in steps if "[redacted]" in str(step)]) >= COUNT

    live = await list_keys(redis_url)
    assert worker.finish() == 0
    reports: list[bytes] = []
    for run in ended.values():
        for file_format in ("md", "html", "json", "bib", "ris"):
            exported = await report_export.export_report(
                platform.database, ReportFileWriter(), platform.tenant, run.id, file_format
            )
            reports.append(exported.body)
    query, atif = TrajectoryQuery(kind="interactive"), FORMATS["atif"]
    lines = trajectories.stream_trajectories(
        platform.database, platform.tenant, query, atif, ExportOptions(), None, 100
    )
    trajectory_lines = b"".join([line async for line in lines])
    dump = await asyncio.to_thread(dump_as_text, owner_url, tmp_path / "dump")

    sinks = {
        "tables": "\n".join(tables(sql).values()),
        "dump": dump,
        "valkey": live + str(received),
        "log and traces": worker.log.read_text(),
        "reports": b"".join(reports).decode(),
        "trajectories": trajectory_lines.decode(),
        "responses": responses,
        "processes": processes,
        "own log": caplog.text,
    }
    assert all(sinks[name] for name in sinks if name != "own log")
    assert {name: find_secrets(text) for name, text in sinks.items() if find_secrets(text)} == {}
    assert "app.provider" in dump
