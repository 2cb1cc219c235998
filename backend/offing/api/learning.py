"""Learning from judged runs on the wire: what there is to learn from, what a version says, and where it is from."""

from typing import Any, Literal
from uuid import UUID

from pydantic import Field

from offing.api.schemas import Wire
from offing.core.model import EngineChoice
from offing.core.prompt_library import Case, Experience
from offing.services.learning import MOST_GROUPS, MOST_MEMBERS, MOST_TASKS, Change, Contents, Gate, Outlook


class GateIn(Wire):
    """On what the candidate is measured against the active version."""

    dataset: str = Field(min_length=1, max_length=200, description="Of stored tasks, others than those learned from.")
    engine: EngineChoice | None = Field(
        default=None, description="Who reads the library and answers every role. null: the installation's default."
    )
    graph: str = Field(default="agentflow", max_length=100)
    role: str = Field(default="planner", max_length=100, description="Which role is shown the library.")
    tasks: int = Field(default=50, ge=1, le=MOST_TASKS, description="Tasks at most.")
    members: int = Field(default=1, ge=1, le=MOST_MEMBERS, description="Runs of each task.")
    turns: int = Field(default=12, ge=0, le=2048)
    usd: float | None = Field(
        default=None, ge=0, le=100_000, description="Money of one run. null: the daily cap alone."
    )


class LearnIn(Wire):
    """What to learn from, and who compares."""

    engine: EngineChoice | None = Field(
        default=None, description="Who compares. null: the installation's default; extractive takes over corrections."
    )
    graph: str | None = Field(default=None, max_length=100, description="Only runs of this graph. null: of any.")
    tag: str | None = Field(default=None, max_length=100, description="Only rollouts of batches with it. null: any.")
    groups: int = Field(default=50, ge=1, le=MOST_GROUPS, description="Comparisons at most.")
    cases: bool = Field(default=True, description="Remember runs as cases, too.")
    usd: float | None = Field(
        default=None, ge=0, le=100_000, description="Money of all comparisons. null: only the tenant's daily cap."
    )
    gate: GateIn | None = Field(default=None, description="null: the candidate is registered and not measured.")


class OutlookOut(Wire):
    """What a job that is asked for now would learn from."""

    name: str
    start: str = Field(description="The version that it learns on from. Empty: the name is new.")
    job_id: UUID | None = Field(description="The job that learns for this library. null: there is none.")
    runs: int = Field(description="Rated runs and scored rollouts together.")
    rated_runs: int = Field(description="Of `runs`, those that people asked for, and rated or corrected.")
    new_runs: int = Field(description="Of `runs`, those that `start` has not learned from, as they are judged now.")
    new_rated_runs: int = Field(description="Of `new_runs`, those that people asked for, and rated or corrected.")
    new_groups: int = Field(description="Those, grouped by what can be compared.")
    comparisons: int = Field(description="Groups of them that say something: each is one call of the engine.")
    withheld: int = Field(description="People's rated runs that are left out while `training_opt_in` is off.")
    waiting: str = Field(description="A candidate that was learned from `start` and waits. Empty: there is none.")


class ExperienceOut(Wire):
    id: str
    text: str = Field(description="Untrusted: a model wrote it.")
    runs: list[UUID] = Field(description="The latest runs that it comes from. Empty: a person wrote it.")
    groups: int = Field(description="Comparisons that made or changed it.")


class ChangeOut(Wire):
    """How an experience differs from the version before."""

    kind: Literal["added", "changed", "removed"]
    id: str
    before: str = Field(description="Its text there. Empty: it is new.")
    after: str = Field(description="Its text here. Empty: it is gone.")
    runs: list[UUID]


class CaseOut(Wire):
    question: str
    plan: list[str]
    outcome: str
    reward: float
    run_id: UUID | None
    new: bool = Field(description="Not in the version before.")


class LibraryText(Wire):
    """What a version of a prompt library says, and how it differs from the one that it comes from."""

    policy: str = Field(description="NAME@VERSION.")
    before: str = Field(description="NAME@VERSION. Empty: it is a name's first.")
    changes: list[ChangeOut]
    experiences: list[ExperienceOut]
    cases: list[CaseOut] = Field(description="The newest first.")
    new_cases: int
    lost_cases: int = Field(description="Cases of the version before that are not here any more.")


def gate_of(wanted: GateIn, default: EngineChoice) -> Gate:
    """What the service is asked for; `default`: who reads where nobody was named."""
    w = wanted
    return Gate(
        w.dataset, w.engine or default, w.graph, w.role, count=w.tasks, members=w.members, turns=w.turns, usd=w.usd
    )


def outlook_out(name: str, found: Outlook) -> OutlookOut:
    return OutlookOut(
        name=name,
        start=found.start.label if found.start else "",
        job_id=found.job.id if found.job else None,
        runs=found.runs,
        rated_runs=found.rated,
        new_runs=sum(len(group.runs) for group in found.new),
        new_rated_runs=sum(len(group.runs) for group in found.new if group.people),
        new_groups=len(found.new),
        comparisons=sum(group.telling for group in found.new),
        withheld=found.withheld,
        waiting=found.waiting.label if found.waiting else "",
    )


def library_text(found: Contents) -> LibraryText:
    library = found.stored.library
    new = set(found.new_cases)
    return LibraryText(
        policy=found.stored.version.label,
        before=found.before.label if found.before else "",
        changes=[_change(one) for one in found.changes],
        experiences=[_experience(one) for one in library.experiences],
        cases=[_case(one, one in new) for one in reversed(library.cases)],
        new_cases=len(new),
        lost_cases=found.lost_cases,
    )


def _experience(one: Experience) -> ExperienceOut:
    return ExperienceOut(id=one.id, text=one.text, runs=_ids(one.runs), groups=one.groups)


def _change(one: Change) -> ChangeOut:
    there = one.after or one.before
    assert there is not None
    before, after = (side.text if side else "" for side in (one.before, one.after))
    return ChangeOut.model_validate(
        {"kind": one.kind, "id": there.id, "before": before, "after": after, "runs": _ids(there.runs)}
    )


def _case(one: Case, new: bool) -> CaseOut:
    run = next(iter(_ids((one.run,))), None)
    return CaseOut(
        question=one.question, plan=list(one.plan), outcome=one.outcome, reward=one.reward, run_id=run, new=new
    )


def _ids(texts: tuple[str, ...]) -> list[UUID]:
    """Those that are ids: a library that a person changed by hand may hold anything there."""
    found: list[UUID] = []
    for text in texts:
        try:
            found.append(UUID(text))
        except ValueError:
            continue
    return found


_RUN = "01980000-0000-7000-8000-000000000001"

OUTLOOK: dict[str, Any] = {
    "name": "lessons",
    "start": "lessons@1",
    "job_id": None,
    "runs": 48,
    "rated_runs": 9,
    "new_runs": 12,
    "new_rated_runs": 4,
    "new_groups": 5,
    "comparisons": 3,
    "withheld": 0,
    "waiting": "",
}
"""Of OutlookOut, for the OpenAPI document."""

TEXT: dict[str, Any] = {
    "policy": "lessons@2",
    "before": "lessons@1",
    "changes": [
        {"kind": "added", "id": "x1", "before": "", "after": "Search the library before computing.", "runs": [_RUN]}
    ],
    "experiences": [{"id": "x1", "text": "Search the library before computing.", "runs": [_RUN], "groups": 1}],
    "cases": [
        {
            "question": "Who built the third tower?",
            "plan": ["search: third tower"],
            "outcome": "John Smeaton",
            "reward": 1.0,
            "run_id": _RUN,
            "new": True,
        }
    ],
    "new_cases": 1,
    "lost_cases": 0,
}
"""Of LibraryText."""
