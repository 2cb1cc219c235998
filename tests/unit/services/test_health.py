"""Each failed check of the installation says what to do."""

from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from offing.services.health import (
    MAX_QUEUE_SECONDS,
    MAX_SILENT_SECONDS,
    check_mcp_servers,
    check_search,
    check_workers,
    compare_migrations,
    describe_queue,
)
from offing.settings import Settings
from offing.storage.installation import QueueState, WorkerRow


def worker(silent_seconds: float = 1.0, code_version: str | None = None) -> WorkerRow:
    now = datetime.now(UTC)
    return WorkerRow("host:1:a", code_version or version("offing"), 200, 3, now, silent_seconds)


def test_a_silent_worker_counts_as_gone() -> None:
    assert check_workers([worker()], complete=True).detail == "1 worker process, 3 of at most 200 runs"
    silent = check_workers([worker(MAX_SILENT_SECONDS + 1)], complete=True)
    assert not silent.ok
    assert "offing up" in str(silent.remedy)


def test_workers_of_another_version_are_reported() -> None:
    other = check_workers([worker(), worker(code_version="0.0.1")], complete=True)
    assert (other.ok, "0.0.1" in other.detail) == (False, True)


def test_another_tenant_learns_no_numbers_of_workers() -> None:
    assert check_workers([worker()], complete=False).detail == "alive"


def test_workers_that_cannot_be_read_are_not_reported_as_alive() -> None:
    assert not check_workers(None, complete=True).ok


def test_missing_and_newer_migrations_are_told_apart() -> None:
    assert compare_migrations(["0001", "0002"], ["0001", "0002"]).ok
    assert "offing migrate" in str(compare_migrations(["0001", "0002"], ["0001"]).remedy)
    assert "newer" in compare_migrations(["0001"], ["0001", "0002"]).detail


def test_a_run_that_waits_long_fails_the_check() -> None:
    assert describe_queue(QueueState(0, None), has_workers=True).ok
    assert describe_queue(QueueState(2, MAX_QUEUE_SECONDS), has_workers=True).ok
    late = describe_queue(QueueState(1, MAX_QUEUE_SECONDS + 1), has_workers=False)
    assert (late.ok, late.remedy) == (False, "Start a worker.")


def test_a_search_engine_without_its_key_fails_the_check() -> None:
    check = check_search(Settings(search_engines="brave"))
    assert (check.ok, "BRAVE_API_KEY" in check.detail) == (False, True)


def test_an_mcp_server_that_was_not_reviewed_fails_the_check(tmp_path: Path) -> None:
    assert check_mcp_servers(Settings()).ok
    file = tmp_path / "mcp.toml"
    file.write_text('[servers.wiki]\nurl = "https://a.example/mcp"\n[servers.wiki.tools]\nsearch = {}\n')
    file.chmod(0o600)
    check = check_mcp_servers(Settings(mcp_config=file))
    assert (check.ok, check.detail.startswith("wiki: its tools have not been reviewed")) == (False, True)
