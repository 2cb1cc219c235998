"""What a prompt library is: experiences and cases of earlier runs, its bounds, its files, and how it changes.

The only home of its bounds and of the text that a prompt shows of it. Knows no engine, no storage and no clock.
"""

import hashlib
import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, ValidationError, model_validator

from offing.core.errors import InvalidInput

EXPERIENCES, CASES = "experiences.json", "cases.json"

MOST_EXPERIENCES = 30
LONGEST_EXPERIENCE = 300
"""Code points."""
MOST_CASES = 200
MOST_PLAN = 8
LONGEST_LINE = 160
"""Code points of a line of a case's plan."""
MOST_RUNS = 20
"""Runs that an experience names as its origin; the latest are kept."""

_ID = re.compile(r"x[1-9]\d{0,5}")

Line = Annotated[str, Field(min_length=1, max_length=LONGEST_LINE)]


class Experience(BaseModel, frozen=True, extra="forbid"):
    """One thing that runs taught."""

    id: str = Field(pattern=_ID.pattern)
    """x1, x2, and so on; never used again for another."""
    text: str = Field(min_length=1, max_length=LONGEST_EXPERIENCE)
    runs: tuple[str, ...] = Field(default=(), max_length=MOST_RUNS)
    """Ids of runs that it comes from. Empty: a person wrote it."""
    groups: int = Field(default=0, ge=0)
    """Comparisons of runs that made or changed it."""


class Case(BaseModel, frozen=True, extra="forbid"):
    """One earlier run in short."""

    question: str = Field(min_length=1, max_length=LONGEST_EXPERIENCE)
    plan: tuple[Line, ...] = Field(default=(), max_length=MOST_PLAN)
    """What it did, in order."""
    outcome: str = Field(default="", max_length=LONGEST_EXPERIENCE)
    """Its short answer. Empty: it gave none."""
    reward: float = Field(ge=0, le=1, allow_inf_nan=False)
    run: str = Field(min_length=1, max_length=64)


class Library(BaseModel, frozen=True, extra="forbid"):
    """What a version of a prompt library holds. An empty one leaves a prompt as it is."""

    experiences: tuple[Experience, ...] = Field(default=(), max_length=MOST_EXPERIENCES)
    cases: tuple[Case, ...] = Field(default=(), max_length=MOST_CASES)
    next_id: int = Field(default=1, ge=1)
    """Number of the next experience."""

    @model_validator(mode="after")
    def _ids_are_own(self) -> "Library":
        numbers = [int(one.id[1:]) for one in self.experiences]
        if len(set(numbers)) < len(numbers):
            raise ValueError("two experiences have the same id")
        if numbers and max(numbers) >= self.next_id:
            raise ValueError("next_id must be above every experience's number")
        return self


class Edit(BaseModel, frozen=True, extra="forbid"):
    """One change of the experiences."""

    op: Literal["add", "modify", "delete"]
    id: str = ""
    """Of the experience to modify or delete. Empty for add."""
    text: str = ""
    """What it says from now on. Empty for delete."""


def line(text: str, limit: int = LONGEST_LINE) -> str:
    """A text as one line without control characters, cut at `limit` code points."""
    shown = "".join(c for c in " ".join(text.split()) if unicodedata.category(c) not in ("Cc", "Cf", "Cs"))
    return shown if len(shown) <= limit else shown[: limit - 1].rstrip() + "\u2026"


def files_of(library: Library) -> dict[str, str]:
    """The library as files for people: names and texts, the same for equal libraries."""
    told = library.model_dump(mode="json")
    return {
        EXPERIENCES: _written({"experiences": told["experiences"], "next_id": told["next_id"]}),
        CASES: _written({"cases": told["cases"]}),
    }


def library_of(files: Mapping[str, str]) -> Library:
    """The library that these files hold; a file that is not there is empty. Raises InvalidInput naming the place."""
    told: dict[str, Any] = {}
    for name, known in ((EXPERIENCES, {"experiences", "next_id"}), (CASES, {"cases"})):
        body = _read(name, files.get(name, "{}"))
        if unknown := body.keys() - known:
            raise InvalidInput(name, f"there is no entry {min(unknown)!r}", f"Use {', '.join(sorted(known))}.")
        told |= body
    try:
        return Library.model_validate(told)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"])) or EXPERIENCES
        raise InvalidInput(place, first["msg"], "See docs/design/prompt-libraries.md for its bounds.") from error


def sha256_of(files: Mapping[str, str]) -> str:
    """Over names and texts of all files, in order of name."""
    total = hashlib.sha256()
    for name in sorted(files):
        total.update(f"{name}\0{hashlib.sha256(files[name].encode()).hexdigest()}\0".encode())
    return total.hexdigest()


def edited(library: Library, edits: Sequence[Edit], runs: Sequence[str]) -> tuple[Library, tuple[str, ...]]:
    """The library after changes that came of comparing `runs`, and why some of them were left out.

    What cannot be applied changes nothing: an id that is not there, an empty or repeated text, an addition to a full
    library.
    """
    refused: list[str] = []
    for edit in edits:
        library, why = _edited(library, edit, tuple(runs))
        refused += [why] if why else []
    return library, tuple(refused)


def with_cases(library: Library, cases: Sequence[Case]) -> Library:
    """The library with further cases, the newest last; a run has one case, and the oldest leave where there are too
    many. What is there already stays in its place."""
    new = [case for case in cases if case not in library.cases]
    runs = {case.run for case in new}
    kept = (*(case for case in library.cases if case.run not in runs), *new)
    return library.model_copy(update={"cases": kept[-MOST_CASES:]})


def told_experiences(library: Library) -> str:
    """The experiences as text. Empty: there are none."""
    return "\n".join(f"[{one.id}] {one.text}" for one in library.experiences)


def told_cases(cases: Sequence[Case]) -> str:
    """Cases as text, each with what came of it. Empty: there are none."""
    return "\n\n".join(map(_told, cases))


def _told(case: Case) -> str:
    fate = "judged good" if case.reward >= 0.5 else "judged bad"
    plan = [f"- {one}" for one in case.plan]
    answer = f"It answered: {case.outcome}" if case.outcome else "It gave no answer."
    return "\n".join((f"An earlier question: {case.question}", *plan, answer, f"This was {fate} ({case.reward:.2f})."))


def _edited(library: Library, edit: Edit, runs: tuple[str, ...]) -> tuple[Library, str]:
    text = line(edit.text, LONGEST_EXPERIENCE)
    there = {one.id: one for one in library.experiences}
    if edit.op != "add" and edit.id not in there:
        return library, f"{edit.op}: there is no experience {line(edit.id, 20)!r}"
    if edit.op == "delete":
        return _of(library, [one for one in library.experiences if one.id != edit.id]), ""
    if not text or any(one.text == text for one in library.experiences):
        return library, f"{edit.op}: {'the text is empty' if not text else 'it is there already'}"
    if edit.op == "modify":
        return _of(library, [_changed(one, text, runs) if one.id == edit.id else one for one in there.values()]), ""
    if len(there) >= MOST_EXPERIENCES:
        return library, f"add: there are {MOST_EXPERIENCES} experiences already"
    new = Experience(id=f"x{library.next_id}", text=text, runs=runs[-MOST_RUNS:], groups=1)
    return _of(library, [*there.values(), new]).model_copy(update={"next_id": library.next_id + 1}), ""


def _changed(one: Experience, text: str, runs: tuple[str, ...]) -> Experience:
    origin = tuple(dict.fromkeys((*one.runs, *runs)))[-MOST_RUNS:]
    return Experience(id=one.id, text=text, runs=origin, groups=one.groups + 1)


def _of(library: Library, experiences: Sequence[Experience]) -> Library:
    return library.model_copy(update={"experiences": tuple(experiences)})


def _written(body: Mapping[str, Any]) -> str:
    return json.dumps(body, ensure_ascii=False, indent=2, sort_keys=True) + "\n"


def _read(name: str, text: str) -> dict[str, Any]:
    try:
        body = json.loads(text)
    except ValueError as error:
        raise InvalidInput(name, f"it is not JSON: {error}", "Copy a version's folder and change it.") from error
    if not isinstance(body, dict):
        raise InvalidInput(name, "it is not an object", "Copy a version's folder and change it.")
    return body  # pyright: ignore[reportUnknownVariableType]
