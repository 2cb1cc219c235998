"""What a person sees on the terminal while something goes on: on standard error, plain when it is not a terminal."""

import re
from collections.abc import Generator
from contextlib import contextmanager
from typing import Self, TextIO

from rich.console import Console
from rich.markup import escape

from offing.core.step import Step, StepKind
from offing.services.library import FolderIngested

COLOURS = {
    StepKind.PLAN: "magenta",
    StepKind.ANALYSIS: "magenta",
    StepKind.TOOL: "cyan",
    StepKind.MEMORY: "yellow",
    StepKind.REPORT: "yellow",
    StepKind.QUESTION: "yellow",
    StepKind.VERDICT: "green",
    StepKind.FAILURE: "red",
}

HIDDEN = frozenset({StepKind.QUEUED, StepKind.COMMAND})

CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def safe(text: str) -> str:
    """Text from outside without what could steer a terminal."""
    return escape(CONTROL.sub("", text))


class Progress:
    """Says what happens, a line each; a line that only counts is overwritten on a terminal."""

    def __init__(self, out: TextIO) -> None:
        self._console = Console(file=out, highlight=False, soft_wrap=True)
        self._status = self._console.status("starting")

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._status.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._status.stop()

    def say(self, text: str) -> None:
        self._status.update(safe(text))
        if not self._console.is_terminal:
            self._console.print(safe(text), style="dim")

    def waits(self, for_what: str) -> None:
        self._console.print(f"[yellow]waiting for {safe(for_what)}[/yellow]; Ctrl-C leaves it waiting")

    def tell(self, text: str) -> None:
        """A line for a person, as it is."""
        self._console.print(safe(text))

    @contextmanager
    def silence(self) -> Generator[None]:
        """While a person types, nothing is drawn over it."""
        self._status.stop()
        try:
            yield
        finally:
            if self._console.is_terminal:
                self._status.start()

    def document(self, done: int, total: int, name: str) -> None:
        self._status.update(f"reading documents · {done} of {total} · {safe(name)}")

    def taken_in(self, taken: FolderIngested) -> None:
        counts: dict[str, int] = {}
        for outcome in taken.files:
            counts[outcome.outcome] = counts.get(outcome.outcome, 0) + 1
        said = ", ".join(f"{n} {name}" for name, n in sorted(counts.items())) or "no documents"
        self._console.print(f"[bold]{safe(taken.collection)}[/bold]  {said}")
        for outcome in taken.files:
            if outcome.outcome in ("refused", "failed"):
                self._console.print(f"  [red]{outcome.outcome}[/red] {safe(outcome.name)}: {safe(outcome.problem)}")

    def step(self, step: Step) -> None:
        """One line of the timeline."""
        if step.kind in HIDDEN:
            return
        colour = COLOURS.get(step.kind, "default") if step.ok else "red"
        ms = "" if step.ms is None else f"  [dim]{step.ms} ms[/dim]"
        detail = f"  [dim]{safe(step.detail)}[/dim]" if step.detail else ""
        self._console.print(
            f"[dim]{step.seq:>4}[/dim] [{colour}]{step.label:<9}[/{colour}] {safe(step.title)}{detail}{ms}"
        )
        self._status.update(f"after step {step.seq}")
