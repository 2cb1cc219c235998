"""Progress output for a terminal, on standard error. Without a terminal it is plain text."""

import re
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Self, TextIO

import orjson
from rich.console import Console
from rich.markup import escape
from rich.text import Text

from offing.core.answer_draft import AnswerDraft
from offing.core.step import Step, StepKind

if TYPE_CHECKING:
    from offing.services.ingestion import IngestedFolder
    from offing.storage.vectors import VectorCoverage

COLORS = {
    StepKind.PLAN: "magenta",
    StepKind.ANALYSIS: "magenta",
    StepKind.TOOL_RESULT: "cyan",
    StepKind.MEMORY: "yellow",
    StepKind.REPORT: "yellow",
    StepKind.INPUT_REQUEST: "yellow",
    StepKind.VERIFICATION: "green",
    StepKind.FAILURE: "red",
}

PROGRESS_SECONDS = 30.0
"""Interval between two lines of progress where there is no terminal."""

MAX_DRAFT_LINES = 6
"""Maximum number of lines of a draft on a terminal."""

HIDDEN_KINDS = frozenset({StepKind.QUEUED, StepKind.TOOL_CALL})

CONTROL_CHARS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def strip_control(text: str) -> str:
    """Return untrusted text without control characters and markup."""
    return escape(CONTROL_CHARS.sub("", text))


def print_json(value: object) -> int:
    """Print a value as indented JSON on standard output, and return the exit code 0."""
    sys.stdout.write(orjson.dumps(value, default=str, option=orjson.OPT_INDENT_2).decode() + "\n")
    return 0


class ProgressPrinter:
    """Printer of progress, one line per event. On a terminal, counters overwrite their line."""

    def __init__(self, out: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._printed_at = clock, clock()
        self._console = Console(file=out, highlight=False, soft_wrap=True)
        self._status = self._console.status("starting")

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._status.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._status.stop()

    def show_status(self, text: str) -> None:
        self._status.update(strip_control(text))
        self._printed_at = self._clock()
        if not self._console.is_terminal:
            self._console.print(strip_control(text), style="dim")

    def show_progress(self, text: str) -> None:
        """Show text that changes often. Without a terminal, print it only every half minute."""
        self._status.update(strip_control(text))
        now = self._clock()
        if not self._console.is_terminal and now - self._printed_at >= PROGRESS_SECONDS:
            self._printed_at = now
            self._console.print(strip_control(text), style="dim")

    @property
    def is_terminal(self) -> bool:
        return self._console.is_terminal

    def show_draft(self, draft: AnswerDraft, text: str) -> None:
        """Show the end of an answer that is being written, below the steps. Shows nothing without a terminal."""
        if not self._console.is_terminal:
            return
        attempt = f", attempt {draft.attempt}" if draft.attempt > 1 else ""
        mark = ", unverified until it is checked" if draft.is_unverified else ""
        room = max(20, self._console.width - 4) * MAX_DRAFT_LINES
        tail = CONTROL_CHARS.sub("", text)[-room:].split("\n")[-MAX_DRAFT_LINES:]
        label = CONTROL_CHARS.sub("", draft.label or draft.role)
        self._status.update(Text(f"{label} is being written{attempt}{mark}\n" + "\n".join(tail)))

    def show_wait(self, waiting_for: str) -> None:
        self._console.print(
            f"[yellow]waiting for {strip_control(waiting_for)}[/yellow]; after Ctrl-C the run keeps waiting"
        )

    def print_line(self, text: str) -> None:
        """Print a line after removing control characters."""
        self._console.print(strip_control(text))

    @contextmanager
    def paused(self) -> Generator[None]:
        """Stop the status line while a person types."""
        self._status.stop()
        try:
            yield
        finally:
            if self._console.is_terminal:
                self._status.start()

    def document_read(self, done: int, total: int, name: str) -> None:
        self._status.update(f"reading documents · {done} of {total} · {strip_control(name)}")

    def folder_ingested(self, result: "IngestedFolder") -> None:
        counts: dict[str, int] = {}
        for outcome in result.files:
            counts[outcome.outcome] = counts.get(outcome.outcome, 0) + 1
        summary = ", ".join(f"{n} {name}" for name, n in sorted(counts.items())) or "no documents"
        self._console.print(f"[bold]{strip_control(result.collection)}[/bold]  {summary}")
        for outcome in result.files:
            if outcome.outcome in ("rejected", "failed"):
                self._console.print(
                    f"  [red]{outcome.outcome}[/red] {strip_control(outcome.name)}: {strip_control(outcome.problem)}"
                )

    def vectors_counted(self, coverage: "VectorCoverage") -> None:
        self._status.update(f"computing vectors · {coverage.filled_count} of {coverage.text_count} documents")

    def vectors_computed(self, coverage: "VectorCoverage") -> None:
        """Say which documents are searched by their words alone."""
        if coverage.filled_count < coverage.text_count:
            line = f"Only {coverage.filled_count} of {coverage.text_count} documents have vectors."
            self._console.print(f"[yellow]{line}[/yellow] The others are found by their words alone.")

    def print_step(self, step: Step) -> None:
        """Print one step as a line of the timeline."""
        if step.kind in HIDDEN_KINDS:
            return
        color = COLORS.get(step.kind, "default") if step.ok else "red"
        ms = "" if step.ms is None else f"  [dim]{step.ms} ms[/dim]"
        detail = f"  [dim]{strip_control(step.detail)}[/dim]" if step.detail else ""
        self._console.print(
            f"[dim]{step.seq:>4}[/dim] [{color}]{step.label:<9}[/{color}] {strip_control(step.title)}{detail}{ms}"
        )
        self._status.update(f"after step {step.seq}")
