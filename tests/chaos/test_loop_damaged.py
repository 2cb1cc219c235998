"""What a closed loop makes is looked at before anybody relies on it: a damaged candidate, a canary that does worse."""

import asyncio
import sys
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager

import pytest

from offing.bus.hints import BusHints
from offing.cli.hooks import hooks
from offing.cli.loop import loop_room
from offing.clock import new_id
from offing.core.model import EngineChoice, parse_engine
from offing.core.run import Budget
from offing.local.datadir import layout
from offing.local.policy import with_engine
from offing.local.processes import spawn
from offing.local.servers import Servers
from offing.local.stack import child_environment, working_stack
from offing.services import policies, promotion, tasks
from offing.services.rollouts import BatchRequest
from offing.services.tasks import Drawn
from offing.settings import Settings
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database
from offing.storage.training_jobs import JobRow
from offing_trainer.loop import LoopRoom
from tests.chaos.loop_home import ACTIVE, END, SHORT, START, Home, complaints, flip, strike

pytestmark = [pytest.mark.chaos, pytest.mark.slow, pytest.mark.timeout(900)]

BLANK = "planner@1"
"""Random weights."""

SIDES = {BLANK, END}


def test_a_candidate_that_was_damaged_is_refused_and_the_same_command_goes_on_when_it_is_mended(begun: Home) -> None:
    begun.back_to("begun")
    ran = begun.loop(strike("loop done", f"{END}/model.safetensors"))
    assert ran.code == 1
    assert f"{END} is damaged: model.safetensors is missing, or is not what was registered" in ran.said
    assert f"Put it back, or say `offing policy state {END} bad`" in ran.said
    with begun.asking() as ask:
        assert ask(ACTIVE) == [(START,)]
        assert ask("select count(*) from app.evaluation") == [(2,)], "only the start was evaluated"
    flip(begun.policies / END / "model.safetensors")
    assert begun.loop().code == 0
    assert complaints(begun) == []
    begun.kept("ended")


@pytest.fixture
def ended(begun: Home) -> Home:
    if not (begun.folder / "ended").exists():
        begun.back_to("begun")
        assert begun.loop().code == 0
        begun.kept("ended")
    begun.back_to("ended")
    return begun


async def test_a_canary_that_does_worse_is_taken_back_by_the_trainer(
    ended: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in SHORT.items():
        monkeypatch.setenv(name, value)
    settings = ended.settings.model_copy(update={"policies": ended.policies})
    engine = with_engine(settings, layout(settings.home))
    with working_stack(settings, hooks()) as servers, trainer(child_environment(engine, servers)):
        async with at_work(servers, engine) as room:
            database = room.collector.database
            for version in SIDES:
                named = await policies.named(database, LOCAL_TENANT, version)
                await room.collector.served(LOCAL_TENANT, named)
            await promotion.try_canary(database, LOCAL_TENANT, BLANK, 0.5)
            assert {await answering(database) for _ in range(40)} == SIDES
            await until_both_have_done_enough(room)
            async with asyncio.timeout(60):
                while (await policies.named(database, LOCAL_TENANT, BLANK)).state == "canary":  # noqa: ASYNC110
                    await asyncio.sleep(0.2)
            assert {await answering(database) for _ in range(40)} == {END}
            blank = await policies.named(database, LOCAL_TENANT, BLANK)
            last = (await policies.events(database, LOCAL_TENANT, blank.id, None, 100))[-1]
    assert (blank.state, last.kind) == ("candidate", "canary_taken_back")
    assert f"its mean reward is below that of {END}" in last.detail["why"]


@contextmanager
def trainer(environment: Mapping[str, str]) -> Generator[None]:
    """`offing trainer`, as `offing up` runs it."""
    child = spawn("trainer", [sys.executable, "-m", "offing.cli", "trainer"], env=environment)
    try:
        yield
    finally:
        child.stop(20)


@asynccontextmanager
async def at_work(servers: Servers, settings: Settings) -> AsyncGenerator[LoopRoom]:
    async with Database(servers.app_url, most=4) as database, BusHints(servers.redis_url) as hints:
        yield loop_room(database, hints, settings, say=print, told=unheard)


def unheard(_job: JobRow, _phase: str, _figures: Mapping[str, float]) -> None:
    """No phase matters here."""


async def answering(database: Database) -> str:
    """The version that a new run gets that names none."""
    engines = {"planner": EngineChoice(engine="policy", model="planner")}
    async with database.transaction(LOCAL_TENANT) as connection:
        return (await policies.resolved(connection, engines, new_id()))["planner"].model


async def until_both_have_done_enough(room: LoopRoom) -> None:
    """Batches of runs that name no version, until each version has answered in three of them."""
    had = dict.fromkeys(SIDES, 0)
    while min(had.values()) < 3:
        made = await room.collector.made(LOCAL_TENANT, await a_batch(room, sum(had.values())))
        had[made.batch.request["engines"]["planner"]["model"]] += 1


async def a_batch(room: LoopRoom, seed: int) -> BatchRequest:
    wanted = Drawn("train-2@50", 8, (1, 1), None, seed)
    drawn = await tasks.of_world_stored(room.collector.database, LOCAL_TENANT, wanted)
    others = parse_engine("rules:world")
    engines = {role.name: others for role in room.collector.graphs["agentflow"].roles}
    ours = EngineChoice(engine="policy", model="planner", form="compact", options={"reasks": 0})
    return BatchRequest("agentflow", drawn, 1, {**engines, "planner": ours}, budget=Budget(turns=3), seed=seed)
