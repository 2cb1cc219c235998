"""Prompt libraries: experiences and cases of earlier runs.

The module defines their limits, their files, their edits, and the text that a prompt includes. It
depends on no engine, no storage and no clock.
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

MAX_EXPERIENCES = 30
MAX_EXPERIENCE_CHARS = 300
"""Maximum number of code points of an experience."""
MAX_CASES = 200
MAX_PLAN_LINES = 8
MAX_LINE_CHARS = 160
"""Maximum number of code points of a line of a case's plan."""
MAX_SOURCE_RUNS = 20
"""Maximum number of source runs of an experience; the latest are kept."""

_ID = re.compile(r"x[1-9]\d{0,5}")

PlanLine = Annotated[str, Field(min_length=1, max_length=MAX_LINE_CHARS)]


class Experience(BaseModel, frozen=True, extra="forbid"):
    """One experience that was distilled from runs."""

    id: str = Field(pattern=_ID.pattern)
    """Ids are x1, x2 and so on. An id is never reused."""
    text: str = Field(min_length=1, max_length=MAX_EXPERIENCE_CHARS)
    run_ids: tuple[str, ...] = Field(default=(), max_length=MAX_SOURCE_RUNS)
    """Ids of the source runs. Empty means that a person wrote the experience."""
    groups: int = Field(default=0, ge=0)
    """Number of group comparisons that created or changed it."""


class Case(BaseModel, frozen=True, extra="forbid"):
    """Short record of one earlier run."""

    question: str = Field(min_length=1, max_length=MAX_EXPERIENCE_CHARS)
    plan: tuple[PlanLine, ...] = Field(default=(), max_length=MAX_PLAN_LINES)
    """Steps of the run in order."""
    outcome: str = Field(default="", max_length=MAX_EXPERIENCE_CHARS)
    """Short answer of the run. Empty means that it gave none."""
    reward: float = Field(ge=0, le=1, allow_inf_nan=False)
    run_id: str = Field(min_length=1, max_length=64)


class PromptLibrary(BaseModel, frozen=True, extra="forbid"):
    """Content of one version of a prompt library. An empty library leaves prompts unchanged."""

    experiences: tuple[Experience, ...] = Field(default=(), max_length=MAX_EXPERIENCES)
    cases: tuple[Case, ...] = Field(default=(), max_length=MAX_CASES)
    next_id: int = Field(default=1, ge=1)
    """Number of the next experience."""

    @model_validator(mode="after")
    def _check_ids(self) -> "PromptLibrary":
        numbers = [int(one.id[1:]) for one in self.experiences]
        if len(set(numbers)) < len(numbers):
            raise ValueError("two experiences have the same id")
        if numbers and max(numbers) >= self.next_id:
            raise ValueError("next_id must be greater than the number of every experience")
        return self


class LibraryEdit(BaseModel, frozen=True, extra="forbid"):
    """One change of the experiences."""

    op: Literal["add", "modify", "delete"]
    id: str = ""
    """Id of the experience to modify or delete. Empty for `add`."""
    text: str = ""
    """New text of the experience. Empty for `delete`."""


def to_single_line(text: str, max_chars: int = MAX_LINE_CHARS) -> str:
    """Return text as one line without control characters, cut at `max_chars` code points."""
    printable = "".join(c for c in " ".join(text.split()) if unicodedata.category(c) not in ("Cc", "Cf", "Cs"))
    return printable if len(printable) <= max_chars else printable[: max_chars - 1].rstrip() + "\u2026"


def library_to_files(library: PromptLibrary) -> dict[str, str]:
    """Return the library as files for people: texts by file name. Equal libraries give equal files."""
    data = library.model_dump(mode="json")
    return {
        EXPERIENCES: _render_json({"experiences": data["experiences"], "next_id": data["next_id"]}),
        CASES: _render_json({"cases": data["cases"]}),
    }


def library_from_files(files: Mapping[str, str]) -> PromptLibrary:
    """Parse the files of a library. A missing file counts as empty.

    Raises InvalidInput, which names the file and the field.
    """
    data: dict[str, Any] = {}
    for name, known_keys in ((EXPERIENCES, {"experiences", "next_id"}), (CASES, {"cases"})):
        body = _parse_json(name, files.get(name, "{}"))
        if unknown := body.keys() - known_keys:
            raise InvalidInput(
                name, f"there is no field {min(unknown)!r}", f"Use only {', '.join(sorted(known_keys))}."
            )
        data |= body
    try:
        return PromptLibrary.model_validate(data)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        location = ".".join(map(str, first["loc"])) or EXPERIENCES
        raise InvalidInput(location, first["msg"], "See docs/design/prompt-libraries.md for the limits.") from error


def hash_files(files: Mapping[str, str]) -> str:
    """Return the SHA-256 of names and texts of all files, in order of name."""
    total = hashlib.sha256()
    for name in sorted(files):
        total.update(f"{name}\0{hashlib.sha256(files[name].encode()).hexdigest()}\0".encode())
    return total.hexdigest()


def apply_edits(
    library: PromptLibrary, edits: Sequence[LibraryEdit], run_ids: Sequence[str]
) -> tuple[PromptLibrary, tuple[str, ...]]:
    """Apply edits that result from a comparison of runs, and return the library and the rejected edits.

    An edit is rejected if its id does not exist, if its text is empty or already present, or if it adds
    to a full library. It then changes nothing.
    """
    rejected: list[str] = []
    for edit in edits:
        library, why = _apply_edit(library, edit, tuple(run_ids))
        rejected += [why] if why else []
    return library, tuple(rejected)


def add_cases(library: PromptLibrary, cases: Sequence[Case]) -> PromptLibrary:
    """Return the library with further cases, newest last.

    A run has one case. If there are too many cases, the oldest are dropped. Existing cases keep their
    position.
    """
    new = [case for case in cases if case not in library.cases]
    runs = {case.run_id for case in new}
    remaining = (*(case for case in library.cases if case.run_id not in runs), *new)
    return library.model_copy(update={"cases": remaining[-MAX_CASES:]})


def render_experiences(library: PromptLibrary) -> str:
    """Render the experiences as text. Empty means that there are none."""
    return "\n".join(f"[{one.id}] {one.text}" for one in library.experiences)


def render_cases(cases: Sequence[Case]) -> str:
    """Render cases as text, each with its outcome. Empty means that there are none."""
    return "\n\n".join(map(_render_case, cases))


def _render_case(case: Case) -> str:
    verdict = "judged good" if case.reward >= 0.5 else "judged bad"
    plan = [f"- {one}" for one in case.plan]
    answer = f"It answered: {case.outcome}" if case.outcome else "It gave no answer."
    return "\n".join(
        (f"An earlier question: {case.question}", *plan, answer, f"This was {verdict} ({case.reward:.2f}).")
    )


def _apply_edit(library: PromptLibrary, edit: LibraryEdit, run_ids: tuple[str, ...]) -> tuple[PromptLibrary, str]:
    text = to_single_line(edit.text, MAX_EXPERIENCE_CHARS)
    there = {one.id: one for one in library.experiences}
    if edit.op != "add" and edit.id not in there:
        return library, f"{edit.op}: there is no experience {to_single_line(edit.id, 20)!r}"
    if edit.op == "delete":
        return _replace_experiences(library, [one for one in library.experiences if one.id != edit.id]), ""
    if not text or any(one.text == text for one in library.experiences):
        return library, f"{edit.op}: {'the text is empty' if not text else 'the text already exists'}"
    if edit.op == "modify":
        return _replace_experiences(
            library, [_update_experience(one, text, run_ids) if one.id == edit.id else one for one in there.values()]
        ), ""
    if len(there) >= MAX_EXPERIENCES:
        return library, f"add: there are already {MAX_EXPERIENCES} experiences, which is the maximum"
    new = Experience(id=f"x{library.next_id}", text=text, run_ids=run_ids[-MAX_SOURCE_RUNS:], groups=1)
    return _replace_experiences(library, [*there.values(), new]).model_copy(update={"next_id": library.next_id + 1}), ""


def _update_experience(experience: Experience, text: str, run_ids: tuple[str, ...]) -> Experience:
    origin = tuple(dict.fromkeys((*experience.run_ids, *run_ids)))[-MAX_SOURCE_RUNS:]
    return Experience(id=experience.id, text=text, run_ids=origin, groups=experience.groups + 1)


def _replace_experiences(library: PromptLibrary, experiences: Sequence[Experience]) -> PromptLibrary:
    return library.model_copy(update={"experiences": tuple(experiences)})


def _render_json(body: Mapping[str, Any]) -> str:
    return json.dumps(body, ensure_ascii=False, indent=2, sort_keys=True) + "\n"


def _parse_json(name: str, text: str) -> dict[str, Any]:
    try:
        body = json.loads(text)
    except ValueError as error:
        raise InvalidInput(name, f"it is not JSON: {error}", "Use an edited copy of a version's folder.") from error
    if not isinstance(body, dict):
        raise InvalidInput(name, "it is not an object", "Use an edited copy of a version's folder.")
    return body  # pyright: ignore[reportUnknownVariableType]
