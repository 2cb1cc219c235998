"""Prompt libraries as policy versions: registering them, reading them, and what of one a run's prompts show.

Their text is in Postgres, so that every worker has it; the folder that a version names is a copy for people.
"""

import math
import os
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

from offing.clock import new_id
from offing.core.errors import Conflict, InvalidInput
from offing.core.model import EngineChoice
from offing.core.prompt_library import (
    Case,
    Library,
    files_of,
    library_of,
    sha256_of,
    told_cases,
    told_experiences,
)
from offing.library.terms import terms
from offing.sdk.advice import Advice
from offing.services import policies
from offing.storage import policy_versions, prompt_libraries, training_events
from offing.storage.policy_versions import NewVersion, VersionRow
from offing.storage.pool import Connection, Database
from offing.storage.runs import RunRow

MOST_SHOWN = 3
"""Cases in a prompt."""

LEAST_ALIKE = 0.2
"""Of a question to a case's, so that a far one is not shown."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A version with what it holds."""

    version: VersionRow
    library: Library


def check_name(name: str) -> None:
    """Raises InvalidInput for a name that cannot be a library's."""
    if not policies.NAME.fullmatch(name):
        raise InvalidInput("name", f"{name!r} cannot name a library", "Use letters, digits, dots and dashes.")


async def register(
    database: Database,
    tenant: UUID,
    name: str,
    library: Library,
    folder: Path,
    *,
    parent: UUID | None = None,
    lineage: Mapping[str, Any] | None = None,
) -> tuple[VersionRow, bool]:
    """Store a library as the next version of a name, a candidate, and whether it is new: equal ones keep their version.

    `folder`: where the readable copy goes, as NAME@VERSION. Raises InvalidInput for a name that cannot be one, and
    Conflict where it is the name of weights.
    """
    check_name(name)
    files = files_of(library)
    aside = _written(folder, files)
    try:
        async with database.transaction(tenant) as connection:
            return await _added(connection, tenant, name, files, aside, parent, lineage or {})
    finally:
        shutil.rmtree(aside, ignore_errors=True)


async def of_version(database: Database, tenant: UUID, text: str) -> Stored:
    """The library that NAME@VERSION names. Raises InvalidInput."""
    async with database.transaction(tenant) as connection:
        row = await policies.known(connection, text, "library")
        return Stored(row, await read(connection, text))


async def latest(database: Database, tenant: UUID, name: str) -> Stored | None:
    """The active version of a name, else its newest that is not bad. None: the name is new."""
    async with database.transaction(tenant) as connection:
        row = await policy_versions.in_state(connection, name, "active")
        if row is None:
            found = await policy_versions.latest(connection, name, None, 1000)
            row = next((one for one in found if one.state != "bad"), None)
        if row is None:
            return None
        if row.kind != policies.PROMPTS:
            raise Conflict(f"{name} names weights ({row.kind}).", "Choose another name for the library.")
        return Stored(row, await read(connection, row.label))


async def read(connection: Connection, text: str) -> Library:
    """The library that NAME@VERSION names. Raises Conflict when it is not what was registered."""
    name, version = policies.parsed(text, "library")
    files, sha256 = await prompt_libraries.files(connection, name, version)
    if sha256_of(files) != sha256:
        raise Conflict(f"The text of {text} is not what was registered.", "Mark it as bad, and use another version.")
    return library_of(files)


async def advice(connection: Connection, run: RunRow) -> dict[str, Advice]:
    """What roles of a run are shown, by role; the same whenever it is asked for."""
    named = {role: choice.library for role, choice in run.engines.items() if choice.library}
    libraries = {text: await read(connection, text) for text in sorted(set(named.values()))}
    shown = {text: told(one, run.question, run.kind == "rollout") for text, one in libraries.items()}
    return {role: Advice(text, shown[text]) for role, text in named.items()}


def told(library: Library, question: str, rollout: bool) -> str:
    """The text for a prompt: every experience, and the cases nearest to the question. Empty: there is nothing.

    A rollout is never shown a case of its own question, so that a score is not that of a memory of the answer.
    """
    cases = [case for case in library.cases if not (rollout and _folded(case.question) == _folded(question))]
    return "\n\n".join(filter(None, (told_experiences(library), told_cases(nearest(cases, question)))))


def nearest(cases: Sequence[Case], question: str, most: int = MOST_SHOWN) -> tuple[Case, ...]:
    """The cases whose questions are most like this one, the best first; of equals the newer.

    Likeness is the cosine of both questions' terms, each weighted by how few cases have it (tf-idf; Salton and Buckley,
    Term-weighting approaches in automatic text retrieval, 1988).
    """
    asked = [Counter(terms(case.question)) for case in cases]
    spread = Counter(term for one in asked for term in one)
    rare = {term: math.log(1 + len(cases) / count) for term, count in spread.items()}
    ours = Counter(terms(question))
    scored = [(_alike(ours, one, rare, len(cases)), at) for at, one in enumerate(asked)]
    best = sorted((pair for pair in scored if pair[0] >= LEAST_ALIKE), reverse=True)
    return tuple(cases[at] for _, at in best[:most])


def with_library(choice: EngineChoice | None, library: str, role: str) -> EngineChoice:
    """The engine of a role, with a library in its prompt. Raises InvalidInput where no model was named for it."""
    if choice is None or choice.engine in policies.UNREAD:
        remedy = f"Name one, such as --engine {role}=litellm:openai/gpt-5-mini."
        raise InvalidInput(f"engines.{role}", "a prompt library needs a language model to read it", remedy)
    return choice.model_copy(update={"library": library})


async def _added(
    connection: Connection,
    tenant: UUID,
    name: str,
    files: Mapping[str, str],
    aside: Path,
    parent: UUID | None,
    lineage: Mapping[str, Any],
) -> tuple[VersionRow, bool]:
    await policy_versions.one_at_a_time(connection, name)
    await _refuse_weights(connection, name)
    sha256 = sha256_of(files)
    if earlier := await policy_versions.same(connection, name, sha256, policies.PROMPTS):
        return earlier, False
    number = await policy_versions.next_number(connection, name)
    place = aside.with_name(f"{name}@{number}")
    new = NewVersion(new_id(), name, policies.PROMPTS, str(place), sha256, parent=parent, lineage=lineage)
    row, _ = await policy_versions.add(connection, tenant, new)
    await prompt_libraries.add(connection, tenant, row.id, files)
    detail = {"policy": f"{name}@{row.version}", "sha256": sha256}
    job = UUID(new.lineage["job"]) if new.lineage and "job" in new.lineage else None
    await training_events.add(connection, tenant, "registered", detail, policy=row.id, job=job)
    shutil.rmtree(place, ignore_errors=True)  # of an attempt that was lost: no row names it
    os.rename(aside, place)
    return row, True


async def _refuse_weights(connection: Connection, name: str) -> None:
    """A name is of one kind, so that what is active under it can always be compared with a candidate."""
    found = await policy_versions.latest(connection, name, None, 1)
    if found and found[0].kind != policies.PROMPTS:
        raise Conflict(f"{name} names weights ({found[0].kind}).", "Choose another name for the library.")


def _written(folder: Path, files: Mapping[str, str]) -> Path:
    """The files in a folder aside, among the versions, so that renaming it is one step."""
    aside = folder.resolve() / f".new-{new_id()}"
    aside.mkdir(parents=True)
    for name, text in files.items():
        (aside / name).write_text(text, encoding="utf-8")
    return aside


def _folded(question: str) -> tuple[str, ...]:
    return tuple(terms(question))


def _alike(ours: Counter[str], theirs: Counter[str], rare: Mapping[str, float], cases: int) -> float:
    """0 to 1."""
    unknown = math.log(1 + cases)
    weigh = {term: rare.get(term, unknown) for term in ours | theirs}
    product = sum(ours[term] * theirs[term] * weigh[term] ** 2 for term in ours)
    lengths = [math.sqrt(sum((n * weigh[t]) ** 2 for t, n in one.items())) for one in (ours, theirs)]
    return product / (lengths[0] * lengths[1]) if all(lengths) else 0.0
