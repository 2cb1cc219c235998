"""Every graph on a real policy and the real engine: its stored log-probabilities are those of its stored tokens."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from uuid import UUID

import pytest

from offing.core.model import EngineConfig
from offing.core.run import Budget
from offing.models.credentials import EngineEndpoint
from offing.services import logprob_parity
from offing.services.runs import RunRequest
from offing.storage import segments
from offing.storage.runs import RunRow
from offing.storage.segments import StoredSegment
from offing_world.tasks import WorldTask, generate_tasks
from tests.engine.engine_server import serving
from tests.workers.conftest import Platform, StartWorker
from tests.workers.imitating_policy import Example, train_policy

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

AGENTS = {"agentflow": "planner", "hiper": "agent", "iterresearch": "researcher", "memact": "agent", "supo": "agent"}
"""The role of each graph that a policy plays."""

OTHERS = {"agentflow": ("analyst", "executor", "verifier", "generator")}

TASKS = tuple(generate_tasks("train-1@50", count=5, hops=(3, 4), kinds=("lookup",)))

TURNS = 10

STEPS = 250
"""Enough for most of what the policy writes to be read by its graph."""

HEATS = (1.0, 0.6)
"""Temperatures; log-probabilities are of the distribution that follows from each."""

TRAINED_GRAPHS = tuple(graph for graph in AGENTS if graph != "supo")
"""Graphs that the policy is shown. `supo` has the words of `memact`, so that it is taught, too; shown as well it would
make them so likely that nothing is begun as `hiper` does, from the same prompt."""


def run_request(graph: str, task: WorldTask, agent: EngineConfig, seed: int) -> RunRequest:
    rules = EngineConfig(engine="rules", model="world")
    engines = {AGENTS[graph]: agent} | dict.fromkeys(OTHERS.get(graph, ()), rules)
    budget = Budget(max_turns=TURNS)
    return RunRequest(
        task.question, graph, budget=budget, engines=engines, scope=task.scope, seed=seed, durability="exit"
    )


def sampled_at(temperature: float) -> EngineConfig:
    inputs = {
        "engine": "policy",
        "model": "planner@1",
        "prompt_format": "compact",
        "max_tokens": 64,
        "options": {"max_corrections": 5},
    }
    return EngineConfig.model_validate(inputs | {"temperature": temperature})


async def done(
    platform: Platform, flows: Iterable[str], agents: Sequence[EngineConfig], count: int
) -> dict[str, list[RunRow]]:
    """`count` runs of each of `graphs` for each of `agents`, all at once."""
    submitted = {
        graph: [
            await platform.submit(run_request(graph, task, agent, n))
            for agent in agents
            for n, task in enumerate(TASKS[:count])
        ]
        for graph in flows
    }
    return {graph: [await platform.ended(run.id, 120) for run in runs] for graph, runs in submitted.items()}


async def left(platform: Platform, runs: Sequence[RunRow]) -> list[StoredSegment]:
    async with platform.database.transaction(platform.tenant) as connection:
        return [segment for run in runs for segment in await segments.read_segments(connection, run.id)]


async def examples(platform: Platform) -> list[Example]:
    """What rules wrote in the small planner's words."""
    rules = [EngineConfig(engine="rules", model=rule, prompt_format="compact") for rule in ("oracle", "random")]
    written = [
        s
        for runs in (await done(platform, TRAINED_GRAPHS, rules, len(TASKS))).values()
        for s in await left(platform, runs)
    ]
    return [(turn.messages, turn.completion) for segment in written for turn in segment.role_calls]


async def first_turn(platform: Platform, runs: Sequence[RunRow]) -> tuple[UUID, int]:
    """Of the first run that has one."""
    for run in runs:
        if result := await left(platform, [run]):
            return run.id, result[0].role_calls[0].seq
    raise AssertionError("no run has a turn")


async def flip_an_id(platform: Platform, run_id: UUID, seq: int) -> None:
    flip = "update role_call set completion_ids = set_byte(completion_ids, 0, get_byte(completion_ids, 0) # 1)"
    async with platform.database.transaction(platform.tenant) as connection:
        await connection.execute(f"{flip} where run_id = %s and seq = %s".encode(), (run_id, seq))


async def test_each_segment_of_each_graph_scores_as_it_was_sampled(
    platform: Platform, start_worker: StartWorker, tmp_path: Path
) -> None:
    teacher = start_worker()
    lessons = await examples(platform)
    teacher.finish()
    train_policy(tmp_path / "planner@1", lessons, steps=STEPS)
    with serving({"planner@1": tmp_path / "planner@1"}) as engine:
        start_worker(OFFING_ENGINE_URL=engine.url)
        flows = await done(platform, AGENTS, [sampled_at(heat) for heat in HEATS], len(TASKS))
        results = {graph: await left(platform, runs) for graph, runs in flows.items()}
        to = EngineEndpoint(engine.url)
        checked = await logprob_parity.measure_parity(platform.database, platform.tenant, to, sample_size=10_000)
        broken = [await first_turn(platform, runs) for runs in flows.values()]
        for run, seq in broken:
            await flip_an_id(platform, run, seq)
        again = await logprob_parity.measure_parity(platform.database, platform.tenant, to, sample_size=10_000)
    turns = {graph: [turn for s in segs for turn in s.role_calls] for graph, segs in results.items()}
    assert min(sum(turn.is_accepted for turn in of) for of in turns.values()) >= 10
    assert {turn.trainable for of in turns.values() for turn in of} == {"rl"}
    assert {graph: {str(s.boundary_reason) for s in segs} - {"rejected"} for graph, segs in results.items()} == {
        "agentflow": {"root"},
        "hiper": {"root"},
        "iterresearch": {"root", "workspace_reset"},
        "memact": {"root", "memory_edit"},
        "supo": {"root"},
    }
    assert not all(turn.is_accepted for of in turns.values() for turn in of)
    assert (checked.scored_count, checked.quarantined) == (sum(len(of) for of in turns.values()), ())
    assert checked.max_difference <= 1e-4
    assert {(one.run_id, one.seq) for one in again.quarantined} >= set(broken)
    assert {one.run_id for one in again.quarantined} == {run for run, _ in broken}
