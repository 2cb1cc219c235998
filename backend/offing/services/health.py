"""Checks of the running installation, one list for `offing doctor` and the web UI.

Each check fails alone: what cannot be asked is reported with its remedy. A detail contains no secret, and nothing of
another tenant.
"""

import asyncio
import os
import shutil
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Self, TypeVar
from urllib.parse import unquote
from uuid import UUID

from pydantic import SecretStr

from offing.core.check import Check, CheckCode, coded
from offing.core.errors import InvalidInput, OffingError
from offing.mcp.server_registry import McpServerRegistry
from offing.packaged_files import get_migrations_dir
from offing.services.code_execution import open_code_runner
from offing.services.search_engines import describe_search
from offing.settings import Settings
from offing.storage import installation
from offing.storage.installation import QueueState, WorkerRow
from offing.storage.migrate import LOCAL_TENANT, load_migrations
from offing.storage.pool import Database

PACKAGE = "offing"
MIN_DISK_GB = 2.0
WORKER_REPORT_SECONDS = 10.0
"""Interval at which a worker process reports that it is alive."""
MAX_SILENT_SECONDS = 45.0
"""Seconds after the last report of a worker process when it counts as gone."""
MAX_QUEUE_SECONDS = 60.0
"""Seconds that a run may wait in the queue before the check fails."""
CHECK_TIMEOUT_SECONDS = 5.0

T = TypeVar("T")


def sees_installation(tenant_id: UUID) -> bool:
    """Return whether a tenant is that of the machine, which may see workers, sizes and the queue of all tenants."""
    return tenant_id == LOCAL_TENANT


@dataclass(frozen=True, slots=True)
class Health:
    """The state of a running installation, as a tenant may see it."""

    checks: Sequence[Check]
    workers: Sequence[WorkerRow]
    """Worker processes. Empty for another tenant than that of the machine."""


async def get_health(
    database: Database, settings: Settings, tenant_id: UUID, is_redis_reachable: Callable[[], Awaitable[bool]]
) -> Health:
    """Run the checks that need a running installation.

    Another tenant than that of the machine gets only whether each part works, and its own queue.
    """
    complete = sees_installation(tenant_id)
    workers = await _list_workers(database)
    postgres, schema, redis, queue = await asyncio.gather(
        _check_postgres(database, settings),
        _check_migrations(database),
        _check_redis(settings, is_redis_reachable),
        _check_queue(database, tenant_id, has_workers=any(map(_is_alive, workers or ()))),
    )
    checks = [check_version(), postgres, schema, redis, check_workers(workers, complete=complete), queue]
    if not complete:
        return Health(checks, ())
    own = [check_disk(settings.home), check_search(settings), check_mcp_servers(settings)]
    return Health([*checks, *own], workers or ())


async def _list_workers(database: Database) -> Sequence[WorkerRow] | None:
    """Return the worker processes. `None` if Postgres does not answer."""
    try:
        return await _limit_time(installation.list_workers(database))
    except (OffingError, TimeoutError):
        return None


def _is_alive(worker: WorkerRow) -> bool:
    return worker.silent_seconds <= MAX_SILENT_SECONDS


class SandboxCheck:
    """The check of the sandbox, which takes several seconds and is made once per process, in the background."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._task: asyncio.Task[Check] | None = None

    def get_result(self) -> Check:
        """Return the result, or that the check is still running. The first call starts it."""
        if self._task is None or self._task.cancelled():
            self._task = asyncio.create_task(check_sandbox(self._settings))
        if not self._task.done():
            return coded(
                CheckCode.SANDBOX_RUNNING, Check("Sandbox", True, "is being tested, which takes a few seconds")
            )
        if error := self._task.exception():
            self._task = None
            name = type(error).__name__
            failed = Check("Sandbox", False, f"the test failed ({name})", "See the log of the API.")
            return coded(CheckCode.SANDBOX_FAILED, failed, error=name)
        return self._task.result()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)


def check_version() -> Check:
    ours = version(PACKAGE)
    return coded(CheckCode.API_VERSION, Check("API", True, f"Offing {ours}"), version=ours)


async def _check_postgres(database: Database, settings: Settings) -> Check:
    name = "Postgres"
    try:
        number = await _limit_time(installation.get_postgres_version(database))
    except (OffingError, TimeoutError):
        return coded(CheckCode.POSTGRES_DOWN, Check(name, False, "does not answer", _SERVER_REMEDY))
    short, origin = number.split()[0], _describe_origin(settings.app_database_url)
    return coded(CheckCode.POSTGRES_WORKS, Check(name, True, f"{short}, {origin}"), version=short, origin=origin)


async def _check_redis(settings: Settings, is_reachable: Callable[[], Awaitable[bool]]) -> Check:
    try:
        answers = await _limit_time(is_reachable())
    except TimeoutError:
        answers = False
    if not answers:
        detail = "does not answer. Runs continue, but the web UI is updated a few seconds later"
        remedy = _SERVER_REMEDY.replace("DATABASE_URL", "REDIS_URL")
        return coded(CheckCode.REDIS_DOWN, Check("Redis", False, detail, remedy))
    origin = _describe_origin(settings.redis_url)
    return coded(CheckCode.REDIS_WORKS, Check("Redis", True, f"answers, {origin}"), origin=origin)


_UNREADABLE = "cannot be read, because Postgres does not answer"
_SERVER_REMEDY = "Start that server, or correct DATABASE_URL. For an installation of `offing up`, run it again."


def _describe_origin(url: SecretStr | None) -> str:
    """Return whether `offing up` started the server. Only its servers have sockets in our own folder."""
    text = unquote(url.get_secret_value()) if url else ""
    return "embedded" if f"/offing-{os.geteuid()}-" in text else "external"


async def _check_migrations(database: Database) -> Check:
    name = "Database schema"
    expected = [one.version for one in load_migrations(get_migrations_dir())]
    try:
        applied = await _limit_time(installation.list_migrations(database))
    except (OffingError, TimeoutError):
        return coded(CheckCode.SCHEMA_UNREADABLE, Check(name, False, _UNREADABLE, _SERVER_REMEDY))
    return compare_migrations(expected, applied)


def compare_migrations(expected: Sequence[str], applied: Sequence[str]) -> Check:
    name = "Database schema"
    if missing := [one for one in expected if one not in applied]:
        remedy = "Run `offing migrate`, and restart the workers."
        check = Check(name, False, f"{len(missing)} migrations are missing, first {missing[0]}", remedy)
        return coded(CheckCode.SCHEMA_OUTDATED, check, count=len(missing), first=missing[0])
    if newer := [one for one in applied if one not in expected]:
        remedy = "Update this process to the version of Offing that migrated the database, and restart it."
        check = Check(name, False, f"is newer than this process: it has {newer[-1]}", remedy)
        return coded(CheckCode.SCHEMA_NEWER, check, latest=newer[-1])
    if not applied:
        return coded(CheckCode.SCHEMA_EMPTY, Check(name, True, "empty"))
    check = Check(name, True, f"{len(applied)} migrations, the last is {applied[-1]}")
    return coded(CheckCode.SCHEMA_WORKS, check, count=len(applied), latest=applied[-1])


def check_workers(workers: Sequence[WorkerRow] | None, *, complete: bool) -> Check:
    """Check that a worker is alive and that all have the version of this process."""
    name, ours = "Workers", version(PACKAGE)
    if workers is None:
        return coded(CheckCode.WORKERS_UNREADABLE, Check(name, False, _UNREADABLE, _SERVER_REMEDY))
    alive = [one for one in workers if _is_alive(one)]
    if not alive:
        remedy = "Run `offing up`, or start a worker. Its log says why one has ended."
        return coded(CheckCode.WORKERS_NONE, Check(name, False, "none is alive, so no run advances", remedy))
    if others := sorted({one.version for one in alive} - {ours}):
        remedy = "Restart the workers, so that all processes have the same version."
        versions = ", ".join(others)
        check = Check(name, False, f"some have version {versions}, and the API has {ours}", remedy)
        return coded(CheckCode.WORKERS_MIXED, check, versions=versions, version=ours)
    if not complete:
        return coded(CheckCode.WORKERS_ALIVE, Check(name, True, "alive"))
    noun = "worker process" if len(alive) == 1 else "worker processes"
    busy, slots = sum(one.runs for one in alive), sum(one.slots for one in alive)
    check = Check(name, True, f"{len(alive)} {noun}, {busy} of at most {slots} runs")
    return coded(CheckCode.WORKERS_BUSY, check, count=len(alive), runs=busy, slots=slots)


async def _check_queue(database: Database, tenant_id: UUID, *, has_workers: bool) -> Check:
    try:
        state = await _limit_time(_get_queue_state(database, tenant_id))
    except (OffingError, TimeoutError):
        return coded(CheckCode.QUEUE_UNREADABLE, Check("Queue", False, _UNREADABLE, _SERVER_REMEDY))
    return describe_queue(state, has_workers=has_workers)


async def _get_queue_state(database: Database, tenant_id: UUID) -> QueueState:
    if sees_installation(tenant_id):
        return await installation.get_queue_state(database)
    async with database.transaction(tenant_id) as connection:
        return await installation.get_own_queue_state(connection)


def describe_queue(state: QueueState, *, has_workers: bool) -> Check:
    if not state.run_count or state.oldest_seconds is None:
        return coded(CheckCode.QUEUE_EMPTY, Check("Queue", True, "no run waits for a worker"))
    noun = "run waits" if state.run_count == 1 else "runs wait"
    detail = f"{state.run_count} {noun} for a worker, the oldest for {state.oldest_seconds:.0f} s"
    facts = {"count": state.run_count, "seconds": f"{state.oldest_seconds:.0f}"}
    if state.oldest_seconds <= MAX_QUEUE_SECONDS:
        return coded(CheckCode.QUEUE_WAITING, Check("Queue", True, detail), **facts)
    remedy = (
        "Start more workers, or increase OFFING_WORKER_CONCURRENCY. A run of a graph that no worker has waits for one."
        if has_workers
        else "Start a worker."
    )
    code = CheckCode.QUEUE_SLOW if has_workers else CheckCode.QUEUE_WITHOUT_WORKER
    return coded(code, Check("Queue", False, detail, remedy), **facts)


def check_disk(folder: Path) -> Check:
    """Check the free space of the data directory's disk."""
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    gb = shutil.disk_usage(existing).free / 1e9
    ok = gb >= MIN_DISK_GB
    remedy = None if ok else f"Free {MIN_DISK_GB:g} GB, or set OFFING_HOME to another disk."
    check = Check("Disk", ok, f"{gb:.1f} GB free for {folder}", remedy)
    code = CheckCode.DISK_FREE if ok else CheckCode.DISK_FULL
    return coded(code, check, gb=f"{gb:.1f}", folder=folder, min_gb=f"{MIN_DISK_GB:g}")


def check_search(settings: Settings) -> Check:
    """Check that the search engines of the settings can be used."""
    setup = describe_search(settings)
    if setup.problem:
        return coded(CheckCode.SEARCH_PROBLEM, Check("Web search", False, setup.problem, setup.remedy))
    engines = ", ".join(one.name for one in setup.engines if one.is_used)
    return coded(CheckCode.SEARCH_WORKS, Check("Web search", True, engines), engines=engines)


def check_mcp_servers(settings: Settings) -> Check:
    """Check that the files of the MCP servers can be read, and that each server can be used. None is contacted."""
    name = "MCP servers"
    if settings.mcp_config is None:
        return coded(CheckCode.MCP_NONE, Check(name, True, "none configured"))
    try:
        servers = McpServerRegistry(settings.mcp_config).list_servers()
    except InvalidInput as error:
        return coded(CheckCode.MCP_INVALID, Check(name, False, f"{error.field}: {error.problem}", error.remedy))
    if unusable := [one for one in servers.values() if one.problem]:
        remedy = "Review its tools in Settings, MCP servers, or with `offing mcp check`."
        check = Check(name, False, f"{unusable[0].name}: {unusable[0].problem}", remedy)
        return coded(CheckCode.MCP_UNUSABLE, check)
    if not servers:
        return coded(CheckCode.MCP_NONE, Check(name, True, "none configured"))
    names = ", ".join(servers)
    return coded(CheckCode.MCP_WORKS, Check(name, True, names), servers=names)


async def check_sandbox(settings: Settings) -> Check:
    """Test the sandbox driver of this machine, which takes several seconds. Only runs with code need one."""
    async with open_code_runner(settings) as runner:
        choice = await runner.choose_driver()
    rejected = "; ".join(f"{name}: {why}" for name, why in choice.rejected.items())
    if choice.sandbox is not None:
        detail = f"{choice.sandbox.name}{f' ({rejected})' if rejected else ''}"
        return coded(CheckCode.SANDBOX_WORKS, Check("Sandbox", True, detail))
    if settings.sandbox == "off":
        off = Check("Sandbox", True, "turned off by OFFING_SANDBOX; runs cannot execute code")
        return coded(CheckCode.SANDBOX_OFF, off)
    none = f"none, so runs cannot execute code: {rejected}"
    return coded(CheckCode.SANDBOX_NONE, Check("Sandbox", True, none, "Install bubblewrap or the extra `sandbox`."))


async def _limit_time(awaitable: Awaitable[T]) -> T:
    async with asyncio.timeout(CHECK_TIMEOUT_SECONDS):
        return await awaitable
