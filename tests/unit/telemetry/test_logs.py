"""What a log line carries, and what it never does."""

import asyncio
import io
import json
import logging
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest

from offing.telemetry.logs import bind_log_context, get_logger, setup_logs

RUN = UUID(int=1)


@pytest.fixture
def lines() -> Iterator[io.StringIO]:
    """The log of this test as JSON lines; the root logger is put back afterwards."""
    root = logging.getLogger()
    before, level = list(root.handlers), root.level
    stream = io.StringIO()
    setup_logs("json", stream=stream)
    yield stream
    root.handlers[:] = before
    root.setLevel(level)


def read(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_lines_carry_the_run_that_they_belong_to(lines: io.StringIO) -> None:
    with bind_log_context(run_id=RUN, tenant_id=None, fence=3):
        get_logger("worker").info("claimed", turns=2)
    get_logger("worker").info("idle")
    first, second = read(lines)
    assert (
        first | {"event": "claimed", "run": str(RUN), "fence": 3, "turns": 2, "level": "info", "logger": "worker"}
        == first
    )
    assert "run" not in second


async def test_concurrent_runs_do_not_mix_their_fields(lines: io.StringIO) -> None:
    async def work(number: int) -> None:
        with bind_log_context(run_id=UUID(int=number)):
            await asyncio.sleep(0)
            get_logger("worker").info("step", number=number)

    await asyncio.gather(*(work(n) for n in range(1, 20)))
    assert all(UUID(line["run"]).int == line["number"] for line in read(lines))


def test_no_secret_reaches_a_line_by_field_message_exception_or_another_library(
    lines: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "canary-secret-value")
    try:
        raise ValueError("refused canary-secret-value")
    except ValueError as error:
        get_logger("a").exception("failed with canary-secret-value", reason=error, nested={"deep": [error]})
    logging.getLogger("other").warning("sent %s", "canary-secret-value")
    text = lines.getvalue()
    assert "canary-secret-value" not in text
    assert "ValueError" in text
    assert len(read(lines)) == 2


def test_console_form_is_for_reading(lines: io.StringIO) -> None:
    stream = io.StringIO()
    setup_logs("console", stream=stream)
    get_logger("a").warning("slow", ms=12)
    assert "slow" in stream.getvalue()
    assert "ms=" in stream.getvalue().replace("\x1b[36m", "").replace("\x1b[0m", "")
