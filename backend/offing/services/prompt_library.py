"""Prompt libraries as policy versions: register them, read them, and render excerpts for prompts.

The text is in Postgres, so that every worker has it. The folder of a version is a copy for people.
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
from offing.core.model import EngineConfig
from offing.core.prompt_library import (
    Case,
    PromptLibrary,
    hash_files,
    library_from_files,
    library_to_files,
    render_cases,
    render_experiences,
)
from offing.library.terms import extract_terms
from offing.sdk.library_excerpt import LibraryExcerpt
from offing.services import policies
from offing.storage import policy_versions, prompt_libraries, training_events
from offing.storage.policy_versions import NewPolicyVersion, PolicyVersionRow
from offing.storage.pool import Connection, Database
from offing.storage.runs import RunRow

MAX_CASES_PER_PROMPT = 3
"""Maximum number of cases in a prompt."""

MIN_SIMILARITY = 0.2
"""Minimum similarity of a question to that of a case for the case to be shown."""


@dataclass(frozen=True, slots=True)
class StoredPromptLibrary:
    """A version with its prompt library."""

    version: PolicyVersionRow
    library: PromptLibrary


def check_name(name: str) -> None:
    """Raise InvalidInput for a text that cannot name a prompt library."""
    if not policies.NAME_PATTERN.fullmatch(name):
        raise InvalidInput(
            "name", f"{name!r} is not a valid name of a prompt library", "Use letters, digits, dots and dashes."
        )


async def register_library(
    database: Database,
    tenant_id: UUID,
    name: str,
    library: PromptLibrary,
    folder: Path,
    *,
    parent_id: UUID | None = None,
    lineage: Mapping[str, Any] | None = None,
) -> tuple[PolicyVersionRow, bool]:
    """Register a prompt library as the next version of a name, in state candidate.

    Returns it and whether it is new.

    A library that equals a registered one keeps its version. `folder` gets the readable copy as NAME@VERSION.
    Raises InvalidInput for an invalid name, and Conflict if the name is that of weights.
    """
    check_name(name)
    files = library_to_files(library)
    aside = _write_staging_dir(folder, files)
    try:
        async with database.transaction(tenant_id) as connection:
            return await _insert_version(connection, tenant_id, name, files, aside, parent_id, lineage or {})
    finally:
        shutil.rmtree(aside, ignore_errors=True)


async def get_library(database: Database, tenant_id: UUID, text: str) -> StoredPromptLibrary:
    """Return the prompt library that NAME@VERSION names. Raises InvalidInput."""
    async with database.transaction(tenant_id) as connection:
        row = await policies.require_version(connection, text, "prompt_library")
        return StoredPromptLibrary(row, await read_library(connection, text))


async def find_latest_library(database: Database, tenant_id: UUID, name: str) -> StoredPromptLibrary | None:
    """Return the active version of a name, else its newest that is not blocked.

    `None` means that the name is new.
    """
    async with database.transaction(tenant_id) as connection:
        row = await policy_versions.find_version_in_state(connection, name, "active")
        if row is None:
            versions = await policy_versions.list_versions(connection, name, None, 1000)
            row = next((one for one in versions if one.state != "blocked"), None)
        if row is None:
            return None
        if row.kind != policies.PROMPT_LIBRARY_KIND:
            raise Conflict(
                f"{name} is the name of weights ({row.kind}).", "Choose another name for the prompt library."
            )
        return StoredPromptLibrary(row, await read_library(connection, row.label))


async def read_library(connection: Connection, text: str) -> PromptLibrary:
    """Return the prompt library that NAME@VERSION names. Raises Conflict if it is not what was registered."""
    name, version = policies.parse_version_name(text, "prompt_library")
    files, sha256 = await prompt_libraries.get_files(connection, name, version)
    if hash_files(files) != sha256:
        raise Conflict(
            f"The stored text of {text} differs from the registered text.", "Block this version and use another one."
        )
    return library_from_files(files)


async def get_excerpts(connection: Connection, run: RunRow) -> dict[str, LibraryExcerpt]:
    """Return the library excerpts of a run by role. The result is the same for every call."""
    named = {role: choice.prompt_library for role, choice in run.engines.items() if choice.prompt_library}
    libraries = {text: await read_library(connection, text) for text in sorted(set(named.values()))}
    excerpts = {text: render_excerpt(one, run.question, run.kind == "rollout") for text, one in libraries.items()}
    return {role: LibraryExcerpt(text, excerpts[text]) for role, text in named.items()}


def render_excerpt(library: PromptLibrary, question: str, is_rollout: bool) -> str:
    """Render the excerpt for a prompt: every experience, and the cases nearest to the question.

    Empty if there are none.

    A rollout never sees a case of its own question, so that a score never comes from a stored answer.
    """
    cases = [case for case in library.cases if not (is_rollout and _fold_terms(case.question) == _fold_terms(question))]
    return "\n\n".join(filter(None, (render_experiences(library), render_cases(find_nearest_cases(cases, question)))))


def find_nearest_cases(cases: Sequence[Case], question: str, limit: int = MAX_CASES_PER_PROMPT) -> tuple[Case, ...]:
    """Return the cases whose questions are most similar to this one, best first.

    Of equals, the newer comes first.

    The similarity is the cosine of the terms of both questions, weighted by how few cases have each term
    (tf-idf; Salton and Buckley, Term-weighting approaches in automatic text retrieval, 1988).
    """
    case_terms = [Counter(extract_terms(case.question)) for case in cases]
    spread = Counter(term for one in case_terms for term in one)
    rare = {term: math.log(1 + len(cases) / count) for term, count in spread.items()}
    ours = Counter(extract_terms(question))
    scored = [(_similarity(ours, one, rare, len(cases)), at) for at, one in enumerate(case_terms)]
    best = sorted((pair for pair in scored if pair[0] >= MIN_SIMILARITY), reverse=True)
    return tuple(cases[at] for _, at in best[:limit])


def add_library(engine_config: EngineConfig | None, library: str, role: str) -> EngineConfig:
    """Return the engine config of a role with a prompt library.

    Raises InvalidInput if the role has no language model.
    """
    if engine_config is None or engine_config.engine in policies.PROMPTLESS_ENGINES:
        remedy = f"Use one, such as --engine {role}=litellm:openai/gpt-5-mini."
        raise InvalidInput(f"engines.{role}", "a prompt library needs a language model to read it", remedy)
    return engine_config.model_copy(update={"prompt_library": library})


async def _insert_version(
    connection: Connection,
    tenant_id: UUID,
    name: str,
    files: Mapping[str, str],
    staging_dir: Path,
    parent_id: UUID | None,
    lineage: Mapping[str, Any],
) -> tuple[PolicyVersionRow, bool]:
    await policy_versions.lock_name(connection, name)
    await _check_no_weights(connection, name)
    sha256 = hash_files(files)
    if earlier := await policy_versions.find_identical_version(connection, name, sha256, policies.PROMPT_LIBRARY_KIND):
        return earlier, False
    number = await policy_versions.get_next_number(connection, name)
    version_dir = staging_dir.with_name(f"{name}@{number}")
    new = NewPolicyVersion(
        new_id(), name, policies.PROMPT_LIBRARY_KIND, str(version_dir), sha256, parent_id=parent_id, lineage=lineage
    )
    row, _ = await policy_versions.insert_version(connection, tenant_id, new)
    await prompt_libraries.insert_files(connection, tenant_id, row.id, files)
    detail = {"policy": f"{name}@{row.version}", "sha256": sha256}
    job = UUID(new.lineage["job"]) if new.lineage and "job" in new.lineage else None
    await training_events.insert_event(
        connection, tenant_id, "registered", detail, policy_version_id=row.id, job_id=job
    )
    shutil.rmtree(version_dir, ignore_errors=True)  # left by an attempt that crashed: no row names it
    os.rename(staging_dir, version_dir)
    return row, True


async def _check_no_weights(connection: Connection, name: str) -> None:
    """Raise Conflict if the name is that of weights.

    A name has a single kind, so that its active version can always be compared with a candidate.
    """
    versions = await policy_versions.list_versions(connection, name, None, 1)
    if versions and versions[0].kind != policies.PROMPT_LIBRARY_KIND:
        raise Conflict(
            f"{name} is the name of weights ({versions[0].kind}).", "Choose another name for the prompt library."
        )


def _write_staging_dir(folder: Path, files: Mapping[str, str]) -> Path:
    """Write the files to a temporary folder next to the versions, so that a single rename publishes them."""
    aside = folder.resolve() / f".new-{new_id()}"
    aside.mkdir(parents=True)
    for name, text in files.items():
        (aside / name).write_text(text, encoding="utf-8")
    return aside


def _fold_terms(question: str) -> tuple[str, ...]:
    return tuple(extract_terms(question))


def _similarity(
    question_terms: Counter[str], case_terms: Counter[str], weights: Mapping[str, float], case_count: int
) -> float:
    """Return the similarity of two questions, from 0 to 1."""
    unknown = math.log(1 + case_count)
    weigh = {term: weights.get(term, unknown) for term in question_terms | case_terms}
    product = sum(question_terms[term] * case_terms[term] * weigh[term] ** 2 for term in question_terms)
    lengths = [math.sqrt(sum((n * weigh[t]) ** 2 for t, n in one.items())) for one in (question_terms, case_terms)]
    return product / (lengths[0] * lengths[1]) if all(lengths) else 0.0
