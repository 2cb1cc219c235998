"""Runs that a node starts to have a part of its work done, and what they bring back.

Knows no platform: how a child is made, waited for and paid is the worker's business.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from uuid import UUID

from offing.core.report import Evidence
from offing.core.run import Budget, RunStatus, Spent, StopReason

CHILD_RUN = "child_run"
"""The tool that the step of a collected child names. Nobody can call it."""


@dataclass(frozen=True, slots=True)
class ChildRequest:
    """One run to be started. What it may do is never more than its parent may."""

    question: str
    graph: str = "agentflow"
    budget: Budget | None = None
    """At most this. None: an equal share of what its parent has left, as without it every limit that it leaves open."""
    tools: tuple[str, ...] | None = None
    """Of the tools that the parent may use, those that the child may. None: all of them."""
    collections: tuple[str, ...] = ()
    sources: tuple[UUID, ...] = ()
    """What of the parent's library the child may see. Empty: all of it."""
    web: bool = True
    """False: without the web, though the parent may use it."""
    engines: Mapping[str, str] = field(default_factory=dict[str, str])
    """A role of the child's graph to the parent's role whose engine answers it. Absent: the parent's role of the same
    name, or else the graph's default, or else the engine that all roles of the parent share."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A sentence of an earlier report. Untrusted, as everything that was made from documents."""

    text: str
    evidence: tuple[str, ...] = ()
    """Ids, in the run that reads this, of the passages that it stands on. Empty: none that it may cite."""


@dataclass(frozen=True, slots=True)
class ChildResult:
    """A child that has ended, whatever its ending was."""

    seq: int
    """The parent's step that records it."""
    run: UUID
    question: str
    status: RunStatus
    stop: StopReason
    spent: Spent
    """Booked to the parent as well."""
    answer: str
    """Its short answer. Empty: it gave none."""
    limits: str
    """What its report says that it could not establish."""
    evidence: tuple[Evidence, ...]
    """Passages that it brought, those it cites first, by the ids that they have in the parent: it may cite them."""
    findings: tuple[Finding, ...]
    """The sentences of its report, the short answer first. Empty: it was cancelled."""


@dataclass(frozen=True, slots=True)
class NoChildren:
    """This run may start none now; do the work in sequence."""

    reason: str
    """Why not, in a sentence for a person."""
