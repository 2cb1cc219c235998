"""Child runs: requests of a node to run a part of its work, and their results."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from uuid import UUID

from offing.core.report import Evidence
from offing.core.run import Budget, RunStatus, RunUsage, StopReason

CHILD_RUN = "child_run"
"""Tool name in the step that records a child run. It cannot be called."""


@dataclass(frozen=True, slots=True)
class ChildRequest:
    """Request to start one child run. The child never has more permissions than its parent."""

    question: str
    graph: str = "agentflow"
    budget: Budget | None = None
    """Maximum budget of the child.

    `None` means an equal share of what the parent has left. The same share applies to every limit that
    the budget leaves open.
    """
    tools: tuple[str, ...] | None = None
    """Tools of the parent that the child may use. `None` means all of them."""
    collections: tuple[str, ...] = ()
    sources: tuple[UUID, ...] = ()
    """Collections and sources of the parent's document library that the child may see. Empty means all."""
    allow_web: bool = True
    """`False` means that the child may not use the web, even if the parent may."""
    engines: Mapping[str, str] = field(default_factory=dict[str, str])
    """Maps a role of the child's graph to the parent's role whose engine answers it.

    If a role is absent, the engine is that of the parent's role with the same name, else the graph's
    default, else the engine that all roles of the parent share.
    """


@dataclass(frozen=True, slots=True)
class ChildFinding:
    """A sentence of a child's report. It is untrusted, like all text made from documents."""

    text: str
    evidence: tuple[str, ...] = ()
    """Ids of the passages that support the sentence, in the run that reads this.

    Empty means none that it may cite.
    """


@dataclass(frozen=True, slots=True)
class ChildResult:
    """Result of a child run that has ended, with any status."""

    seq: int
    """Number of the parent's step that records it."""
    run_id: UUID
    question: str
    status: RunStatus
    stop: StopReason
    usage: RunUsage
    """Usage of the child, which is also charged to the parent."""
    answer: str
    """Short answer. Empty means that the child gave none."""
    limits: str
    """What the child could not establish, according to its report."""
    evidence: tuple[Evidence, ...]
    """Passages that the child retrieved, with their ids in the parent: those that its report quotes, then those that
    it cites without a quote, then others.

    The parent may cite them.
    """
    findings: tuple[ChildFinding, ...]
    """Sentences of the child's report, the short answer first. Empty means that the child was cancelled."""
    quoted: tuple[str, ...] = ()
    """Ids of the passages that the child's report quotes."""
    cited: tuple[str, ...] = ()
    """Ids of all passages that the child's report cites, the quoted ones first."""
    read_passages: int = 0
    """Number of all passages that the child retrieved, including those that are not in `evidence`."""
    open_points: tuple[str, ...] = ()
    """Parts of the child's question that its last verification did not find covered, with what is missing."""


@dataclass(frozen=True, slots=True)
class ChildRunsUnavailable:
    """The run cannot start child runs now. The work must be done in sequence."""

    reason: str
    """Reason, in a sentence for a person."""
