"""Answers that are being written, on a terminal and without one."""

import io
from typing import Any

import pytest

from offing.bus.live import LiveBus
from offing.cli.draft_view import DraftView
from offing.cli.terminal import ProgressPrinter
from offing.clock import new_id
from offing.core.answer_draft import AnswerDraft, DraftChange, DraftEnd, DraftPart

DRAFT = AnswerDraft("call", fence=1, attempt=2, role="generator", label="write", is_unverified=True)

CHANGES = (DraftPart(DRAFT, 0, "The tower \x1b[31m"), DraftPart(DRAFT, 15, "[bold]was built."), DraftEnd("call", 1))


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


async def show(out: io.StringIO, *changes: DraftChange) -> str:
    progress = ProgressPrinter(out)
    async with LiveBus("redis://127.0.0.1:1") as bus:
        with progress:
            view = DraftView(bus, new_id(), new_id(), progress)
            for change in changes:
                await view.apply(change)
            status: Any = progress._status.status  # pyright: ignore[reportPrivateUsage]
    return str(status)


async def test_a_terminal_shows_the_text_with_its_attempt_and_that_it_is_unverified(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    status = await show(Terminal(), *CHANGES[:2])
    assert status == (
        "write is being written, attempt 2, unverified until it is checked\nThe tower [31m[bold]was built."
    )


async def test_a_terminal_removes_a_draft_that_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    assert await show(Terminal(), *CHANGES) == "working"


async def test_without_a_terminal_nothing_is_shown() -> None:
    out = io.StringIO()
    await show(out, *CHANGES)
    assert out.getvalue() == ""
