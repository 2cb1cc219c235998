"""What a closed loop makes is looked at before anybody relies on it: a damaged candidate, a canary that does worse."""

import asyncio
import sys
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager

import pytest

from offing.bus.notifier import BusNotifier
from offing.cli.hooks import build_hooks
from offing.cli.loop import build_loop_context
from offing.clock import new_id
from offing.core.model import EngineConfig, parse_engine
from offing.core.run import Budget
from offing.local.data_directory import locate_data_directory
from offing.local.engine_process import with_engine_url
from offing.local.processes import spawn_process
from offing.local.servers import ServerUrls
from offing.local.stack import build_child_environment, open_stack
from offing.services import policies, promotion, tasks
from offing.services.rollouts import BatchRequest
from offing.settings import Settings
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database
from offing.storage.training_jobs import TrainingJobRow
from offing.tools.environment import TaskSample
from offing_trainer.loop import LoopContext
from tests.chaos.loop_trial import ACTIVE, END, SHORT, START, Home, complaints, flip, strike

pytestmark = [pytest.mark.chaos, pytest.mark.slow, pytest.mark.timeout(900)]

BLANK = "planner@1"
"""Random weights."""

SIDES = {BLANK, END}


def test_a_candidate_that_was_damaged_is_rejected_and_the_same_command_continues_when_it_is_repaired(
    begun: Home,
) -> None:
    begun.back_to("begun")
    ran = begun.loop(strike("loop done", f"{END}/model.safetensors"))
    assert ran.code == 1
    assert f"{END} is damaged: model.safetensors is missing or differs from the registered file" in ran.output
    assert f"Restore the files, or run `offing policy set-state {END} blocked`" in ran.output
    with begun.asking() as ask:
        assert ask(ACTIVE) == [(START,)]
        assert ask("select count(*) from app.evaluation") == [(2,)], "only the start was evaluated"
    flip(begun.policies / END / "model.safetensors")
    assert begun.loop().code == 0
    assert complaints(begun) == []
    begun.save_copy("ended")


@pytest.fixture
def ended(begun: Home) -> Home:
    if not (begun.folder / "ended").exists():
        begun.back_to("begun")
        assert begun.loop().code == 0
        begun.save_copy("ended")
    begun.back_to("ended")
    return begun


async def test_a_canary_that_does_worse_is_taken_back_by_the_trainer(
    ended: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in SHORT.items():
        monkeypatch.setenv(name, value)
    settings = ended.settings.model_copy(update={"policy_dir": ended.policies})
    engine = with_engine_url(settings, locate_data_directory(settings.home))
    with open_stack(settings, build_hooks()) as servers, trainer(build_child_environment(engine, servers)):
        async with at_work(servers, engine) as context:
            database = context.collector.database
            for version in SIDES:
                named = await policies.get_version_by_name(database, LOCAL_TENANT, version)
                await context.collector.deploy_version(LOCAL_TENANT, named)
            await promotion.start_canary(database, LOCAL_TENANT, BLANK, 0.5)
            assert {await answering(database) for _ in range(40)} == SIDES
            await until_both_have_done_enough(context)
            async with asyncio.timeout(60):
                while (await policies.get_version_by_name(database, LOCAL_TENANT, BLANK)).state == "canary":  # noqa: ASYNC110
                    await asyncio.sleep(0.2)
            assert {await answering(database) for _ in range(40)} == {END}
            blank = await policies.get_version_by_name(database, LOCAL_TENANT, BLANK)
            last = (await policies.list_events(database, LOCAL_TENANT, blank.id, None, 100))[-1]
    assert (blank.state, last.kind) == ("candidate", "canary_withdrawn")
    assert f"below that of {END}" in last.detail["reason"]


@contextmanager
def trainer(environment: Mapping[str, str]) -> Generator[None]:
    """`offing trainer`, as `offing up` runs it."""
    child = spawn_process("trainer", [sys.executable, "-m", "offing.cli", "trainer"], env=environment)
    try:
        yield
    finally:
        child.stop(20)


@asynccontextmanager
async def at_work(servers: ServerUrls, settings: Settings) -> AsyncGenerator[LoopContext]:
    async with Database(servers.app_url, max_connections=4) as database, BusNotifier(servers.redis_url) as notifier:
        yield build_loop_context(database, notifier, settings, say=print, report_progress=unheard)


def unheard(_job: TrainingJobRow, _phase: str, _figures: Mapping[str, float]) -> None:
    """No phase matters here."""


async def answering(database: Database) -> str:
    """The version that a new run gets that names none."""
    engines = {"planner": EngineConfig(engine="policy", model="planner")}
    async with database.transaction(LOCAL_TENANT) as connection:
        return (await policies.resolve_versions(connection, engines, new_id()))["planner"].model


async def until_both_have_done_enough(context: LoopContext) -> None:
    """Batches of runs that name no version, until each version has answered in six of them: enough for three looks.

    An earlier look may have decided by then.
    """
    had, database = dict.fromkeys(SIDES, 0), context.collector.database
    while (
        min(had.values()) < 6 and (await policies.get_version_by_name(database, LOCAL_TENANT, BLANK)).state == "canary"
    ):
        created = await context.collector.run_batch(LOCAL_TENANT, await a_batch(context, sum(had.values())))
        had[created.batch.request["engines"]["planner"]["model"]] += 1


async def a_batch(context: LoopContext, seed: int) -> BatchRequest:
    expected = TaskSample("train-2@50", 8, (1, 1), None, seed)
    drawn = await tasks.store_sampled_tasks(context.collector.database, LOCAL_TENANT, expected)
    others = parse_engine("rules:world")
    engines = {role.name: others for role in context.collector.graphs["agentflow"].roles}
    ours = EngineConfig(engine="policy", model="planner", prompt_format="compact", options={"max_corrections": 0})
    return BatchRequest("agentflow", drawn, 1, {**engines, "planner": ours}, budget=Budget(max_turns=3), seed=seed)
