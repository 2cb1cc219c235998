"""Every flow on a real policy and the real engine: its stored log-probabilities are those of its stored tokens."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from uuid import UUID

import pytest

from offing.core.model import EngineChoice
from offing.core.run import Budget
from offing.models.credentials import Destination
from offing.services import parity
from offing.services.runs import RunRequest
from offing.storage import segments
from offing.storage.runs import RunRow
from offing.storage.segments import StoredSegment
from offing.world.tasks import WorldTask, tasks
from tests.engine.serving import serving
from tests.workers.conftest import Platform, StartWorker
from tests.workers.imitation import Example, taught

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

AGENTS = {"agentflow": "planner", "hiper": "agent", "iterresearch": "researcher", "memact": "agent", "supo": "agent"}
"""The role of each flow that a policy plays."""

OTHERS = {"agentflow": ("analyst", "executor", "verifier", "generator")}

TASKS = tuple(tasks("train-1@50", count=5, hops=(3, 4), kinds=("lookup",)))

TURNS = 10

STEPS = 250
"""Enough for most of what the policy writes to be read by its flow."""

HEATS = (1.0, 0.6)
"""Temperatures; log-probabilities are of the distribution that follows from each."""

TAUGHT = tuple(graph for graph in AGENTS if graph != "supo")
"""Flows that the policy is shown. `supo` has the words of `memact`, so that it is taught, too; shown as well it would
make them so likely that nothing is begun as `hiper` does, from the same prompt."""


def asked(graph: str, task: WorldTask, agent: EngineChoice, seed: int) -> RunRequest:
    rules = EngineChoice(engine="rules", model="world")
    engines = {AGENTS[graph]: agent} | dict.fromkeys(OTHERS.get(graph, ()), rules)
    budget = Budget(turns=TURNS)
    return RunRequest(
        task.question, graph, budget=budget, engines=engines, scope=task.scope, seed=seed, durability="exit"
    )


def sampled_at(temperature: float) -> EngineChoice:
    given = {"engine": "policy", "model": "planner@1", "form": "compact", "max_tokens": 64, "options": {"reasks": 5}}
    return EngineChoice.model_validate(given | {"temperature": temperature})


async def done(
    platform: Platform, flows: Iterable[str], agents: Sequence[EngineChoice], count: int
) -> dict[str, list[RunRow]]:
    """`count` runs of each of `flows` for each of `agents`, all at once."""
    submitted = {
        graph: [
            await platform.submit(asked(graph, task, agent, n))
            for agent in agents
            for n, task in enumerate(TASKS[:count])
        ]
        for graph in flows
    }
    return {graph: [await platform.ended(run.id, 120) for run in runs] for graph, runs in submitted.items()}


async def left(platform: Platform, runs: Sequence[RunRow]) -> list[StoredSegment]:
    async with platform.database.transaction(platform.tenant) as connection:
        return [segment for run in runs for segment in await segments.segments_of(connection, run.id)]


async def examples(platform: Platform) -> list[Example]:
    """What rules wrote in the small planner's words."""
    rules = [EngineChoice(engine="rules", model=rule, form="compact") for rule in ("oracle", "random")]
    written = [
        s for runs in (await done(platform, TAUGHT, rules, len(TASKS))).values() for s in await left(platform, runs)
    ]
    return [(turn.messages, turn.completion) for segment in written for turn in segment.turns]


async def first_turn(platform: Platform, runs: Sequence[RunRow]) -> tuple[UUID, int]:
    """Of the first run that has one."""
    for run in runs:
        if found := await left(platform, [run]):
            return run.id, found[0].turns[0].seq
    raise AssertionError("no run has a turn")


async def flip_an_id(platform: Platform, run: UUID, seq: int) -> None:
    flip = "update turn set completion_ids = set_byte(completion_ids, 0, get_byte(completion_ids, 0) # 1)"
    async with platform.database.transaction(platform.tenant) as connection:
        await connection.execute(f"{flip} where run_id = %s and seq = %s".encode(), (run, seq))


async def test_each_segment_of_each_flow_scores_as_it_was_sampled(
    platform: Platform, start_worker: StartWorker, tmp_path: Path
) -> None:
    teacher = start_worker()
    lessons = await examples(platform)
    teacher.finish()
    taught(tmp_path / "planner@1", lessons, steps=STEPS)
    with serving({"planner@1": tmp_path / "planner@1"}) as engine:
        start_worker(OFFING_ENGINE_URL=engine.url)
        flows = await done(platform, AGENTS, [sampled_at(heat) for heat in HEATS], len(TASKS))
        found = {graph: await left(platform, runs) for graph, runs in flows.items()}
        to = Destination(engine.url)
        checked = await parity.check(platform.database, platform.tenant, to, sample=10_000)
        broken = [await first_turn(platform, runs) for runs in flows.values()]
        for run, seq in broken:
            await flip_an_id(platform, run, seq)
        again = await parity.check(platform.database, platform.tenant, to, sample=10_000)
    turns = {graph: [turn for s in segs for turn in s.turns] for graph, segs in found.items()}
    assert min(sum(turn.accepted for turn in of) for of in turns.values()) >= 10
    assert {turn.trainable for of in turns.values() for turn in of} == {"rl"}
    assert {graph: {str(s.fracture) for s in segs} - {"rejected"} for graph, segs in found.items()} == {
        "agentflow": {"root"},
        "hiper": {"root"},
        "iterresearch": {"root", "workspace_reset"},
        "memact": {"root", "memory_edit"},
        "supo": {"root"},
    }
    assert not all(turn.accepted for of in turns.values() for turn in of)
    assert (checked.checked, checked.doubtful) == (sum(len(of) for of in turns.values()), ())
    assert checked.worst <= 1e-4
    assert {(one.run, one.seq) for one in again.doubtful} >= set(broken)
    assert {one.run for one in again.doubtful} == {run for run, _ in broken}
