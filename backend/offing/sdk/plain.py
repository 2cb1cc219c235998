"""What the platform must know of a graph that is written for LangGraph alone, beside what every graph declares."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

from offing.core.report import Evidence, ReportDraft
from offing.sdk.context import RunView

Answer = Callable[[RunView, Mapping[str, Any], tuple[Evidence, ...]], ReportDraft | None]
"""The report from the run, the graph's last values and what its tools have retrieved. None: the values hold none."""


@dataclass(frozen=True, slots=True, eq=False)
class Plain:
    """Its nodes find the run through `offing.sdk.running`, and its calls are keyed by what they ask."""

    answer: Answer
    context: Callable[[RunView], Any] | None = None
    """The graph's own runtime context. None: it has none."""
    types: tuple[type, ...] = ()
    """Classes of its own that its state holds, beside LangChain's messages; others come back from a checkpoint as plain
    data."""
    around: Callable[[], AbstractContextManager[None]] = nullcontext
    """What is in force while it is executed."""
    store_index: Any = None
    """How its store indexes items, an IndexConfig of LangGraph's. None: they are not searched by meaning."""
    store_ttl: Any = None
    """After how long items expire, a TTLConfig of LangGraph's. None: they do not."""
