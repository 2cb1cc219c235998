"""Prompt libraries as versions: who may be given one, what a batch pins, and what a candidate is compared with."""

import os
from pathlib import Path
from uuid import UUID

import psycopg
import pytest
from psycopg.types.json import Jsonb

from offing.clock import new_id
from offing.core.errors import InvalidInput, NotFound
from offing.core.model import EngineConfig, parse_engine
from offing.core.prompt_library import LibraryEdit, PromptLibrary, apply_edits
from offing.models.policy_folder import PolicyHashes
from offing.services import policies, promotion, prompt_library
from offing.services.policies import PolicyRegistration
from offing.services.promotion_gate import GateRules
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.policy_versions import PolicyVersionRow
from offing.storage.pool import Database

ADVICE = ("Search first.", "Quote what you found.")


async def a_library(pool: Database, folder: Path, *texts: str) -> PolicyVersionRow:
    library, _ = apply_edits(PromptLibrary(), [LibraryEdit(op="add", text=text) for text in texts], ["r1"])
    row, _ = await prompt_library.register_library(pool, LOCAL_TENANT, "lessons", library, folder)
    return row


async def pinned(pool: Database, engine: str) -> tuple[EngineConfig, dict[str, UUID]]:
    async with pool.transaction(LOCAL_TENANT) as connection:
        engines = await policies.resolve_versions(connection, {"planner": parse_engine(engine)}, new_id())
        return engines["planner"], await policies.pin_versions(connection, engines)


def evaluated(owner_url: str, version: PolicyVersionRow, model: str, tasks: list[UUID], reward: float) -> None:
    """As an evaluation of the version, read by this model, would have been stored."""
    batch, evaluation = new_id(), new_id()
    choice = EngineConfig(engine="litellm", model=model, prompt_library=f"{version.name}@{version.version}")
    with psycopg.connect(owner_url, autocommit=True) as owner:
        owner.execute("set search_path = app")
        request = Jsonb({"engines": {"planner": choice.model_dump()}})
        owner.execute(
            "insert into rollout_batch (id, tenant_id, request) values (%s, %s, %s)", (batch, LOCAL_TENANT, request)
        )
        owner.execute(
            "insert into evaluation (id, tenant_id, policy_version_id, dataset, mode, graph, seed, batch_id) "
            "values (%s, %s, %s, 'held-out', 'sampled', 'agentflow', 7, %s)",
            (evaluation, LOCAL_TENANT, version.id, batch),
        )
        for task in tasks:
            owner.execute(
                "insert into evaluation_result (evaluation_id, task_id, member, tenant_id, reward, outcome, turns, "
                "tokens) values (%s, %s, 0, %s, %s, 'answered', 1, 9)",
                (evaluation, task, LOCAL_TENANT, reward),
            )


def some_tasks(owner_url: str, count: int) -> list[UUID]:
    created = [new_id() for _ in range(count)]
    with psycopg.connect(owner_url, autocommit=True) as owner:
        for task in created:
            owner.execute(
                "insert into app.task (id, tenant_id, dataset, question, content_sha256) "
                "values (%s, %s, 'held-out', 'Who?', %s)",
                (task, LOCAL_TENANT, task.hex),
            )
    return created


async def test_the_same_text_keeps_its_version_and_another_gets_the_next(pool: Database, tmp_path: Path) -> None:
    first = await a_library(pool, tmp_path, ADVICE[0])
    again = await a_library(pool, tmp_path, ADVICE[0])
    second = await a_library(pool, tmp_path, *ADVICE)
    assert (first.id, again.version, second.version) == (again.id, 1, 2)
    assert sorted(os.listdir(tmp_path)) == ["lessons@1", "lessons@2"]


async def test_a_batch_pins_the_number_of_its_library_beside_its_policies(pool: Database, tmp_path: Path) -> None:
    row = await a_library(pool, tmp_path, ADVICE[0])
    await promotion.promote(pool, LOCAL_TENANT, "lessons@1")
    for text in ("lessons", "lessons@active", "lessons@1"):
        choice, versions = await pinned(pool, f"litellm:openai/m;library={text}")
        assert (choice.prompt_library, versions) == ("lessons@1", {"planner library": row.id})


@pytest.mark.parametrize(
    ("engine", "message"),
    [
        ("extractive;library=lessons@1", "the engine extractive does not use a prompt library"),
        ("litellm+compact:openai/m;library=lessons@1", "the prompt format compact does not use a prompt library"),
        ("litellm:openai/m;library=lessons@7", "there is no policy lessons@7"),
        ("litellm:openai/m;library=lessons@x", "is not NAME@VERSION"),
        ("litellm:openai/m;library=planner@1", "contains weights"),
    ],
)
async def test_a_role_that_cannot_show_a_library_is_rejected_by_name(
    pool: Database, tmp_path: Path, engine: str, message: str
) -> None:
    await a_library(pool, tmp_path, ADVICE[0])
    await policies.register_version(
        pool,
        LOCAL_TENANT,
        PolicyRegistration(name="planner", kind="full", uri="/p", hashes=PolicyHashes("s", "t", "p")),
    )
    with pytest.raises(InvalidInput, match=f"engines.planner.prompt_library: .*{message}"):
        await pinned(pool, engine)


async def test_a_bad_version_is_shown_to_nobody(pool: Database, tmp_path: Path) -> None:
    row = await a_library(pool, tmp_path, ADVICE[0])
    await policies.set_version_state(pool, LOCAL_TENANT, row.id, "blocked")
    with pytest.raises(InvalidInput, match="is blocked"):
        await pinned(pool, "litellm:openai/m;library=lessons@1")


async def test_libraries_are_compared_only_where_the_same_model_read_them(
    pool: Database, owner_url: str, tmp_path: Path
) -> None:
    first, second = await a_library(pool, tmp_path, ADVICE[0]), await a_library(pool, tmp_path, *ADVICE)
    await promotion.promote(pool, LOCAL_TENANT, "lessons@1")
    tasks = some_tasks(owner_url, 8)
    evaluated(owner_url, first, "openai/small", tasks, 0.5)
    evaluated(owner_url, second, "openai/large", tasks, 1.0)
    with pytest.raises(InvalidInput, match="not evaluated on the same tasks"):
        await promotion.run_gate(pool, LOCAL_TENANT, "lessons@2", GateRules())
    evaluated(owner_url, second, "openai/small", tasks, 1.0)
    verdict = await promotion.run_gate(pool, LOCAL_TENANT, "lessons@2", GateRules())
    assert verdict is not None
    assert (verdict.passed, verdict.comparison.difference) == (True, 0.5)


async def test_another_tenant_reads_no_library(pool: Database, other_tenant: UUID, tmp_path: Path) -> None:
    await a_library(pool, tmp_path, ADVICE[0])
    async with pool.transaction(other_tenant) as connection:
        with pytest.raises(NotFound):
            await prompt_library.read_library(connection, "lessons@1")


def test_weights_cannot_be_registered_as_text() -> None:
    assert policies.PROMPT_LIBRARY_KIND not in policies.WEIGHT_KINDS
