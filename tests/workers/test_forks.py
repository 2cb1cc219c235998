"""Forks: what is on record is read back and never done again, whatever run they begin from."""

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from offing.core.model import EngineChoice
from offing.core.policy import Policy, Rule
from offing.core.run import Budget, RunStatus, StopReason
from offing.core.step import Step, StepKind
from offing.services.forks import ForkRequest, fork
from offing.services.graphs import installed
from offing.services.runs import RunRequest, submit
from offing.storage.runs import RunRow
from tests.workers import plain_scripts, shipping
from tests.workers.conftest import Platform
from tests.workers.processes import ALL_GRAPHS

GRAPHS = f"{ALL_GRAPHS},{shipping.GRAPHS},{plain_scripts.GRAPHS}"

FILE = Path(tempfile.mkdtemp()) / "shipped"

STANDING = {"OFFING_GRAPHS": GRAPHS, shipping.SHIPPED: str(FILE)}

SPEAKER = EngineChoice(engine="scripted", options={"answers": [{"word": "w{turn} {nonce}"}]})
"""Its words tell the seed that they were made with."""


@pytest.fixture(autouse=True)
def nothing_shipped() -> None:
    FILE.write_text("")


def shipped() -> list[int]:
    """What was shipped since the last look."""
    found = [int(line) for line in FILE.read_text().split()]
    FILE.write_text("")
    return found


async def begun(platform: Platform, request: RunRequest) -> RunRow:
    made = await submit(platform.database, platform.hints, platform.tenant, request, graphs=installed(GRAPHS))
    return made.run


async def ended(platform: Platform, request: RunRequest) -> RunRow:
    return await platform.ended((await begun(platform, request)).id)


async def forked(platform: Platform, run: UUID, at: int | None = None, **more: Any) -> RunRow:
    request = ForkRequest(run, at, **more)
    made = await fork(platform.database, platform.hints, platform.tenant, request, graphs=installed(GRAPHS))
    return made.run


def shipping_request(**more: Any) -> RunRequest:
    allowed = Policy(rules=(Rule(tool="ship", others=True, reason="It writes to a file of the test."),))
    given: dict[str, Any] = {"budget": Budget(turns=9), "seed": 4, "tool_policy": allowed, **more}
    return RunRequest("Ship", "shipping", engines={"speaker": SPEAKER}, **given)


def told(steps: list[Step]) -> list[tuple[Any, ...]]:
    return [(s.seq, s.kind, s.title, s.payload, s.key, s.at, s.turn, s.tokens) for s in steps]


def words(steps: list[Step]) -> list[str]:
    return [step.title for step in steps if step.kind is StepKind.PLAN]


@pytest.mark.parametrize("durability", ["sync", "exit"])
async def test_a_fork_from_any_step_repeats_no_recorded_call_and_no_effect(durability: str, standing: Platform) -> None:
    origin = await ended(standing, replace(shipping_request(), durability=durability))
    record = await standing.steps(origin.id)
    assert shipped() == [1, 2, 3]
    for at in range(1, len(record)):
        run = await standing.ended((await forked(standing, origin.id, at)).id)
        steps = await standing.steps(run.id)
        assert told(steps[:at]) == told(record[:at])
        assert (run.status, run.stop_reason, run.spent.turns) == (RunStatus.DONE, StopReason.ANSWERED, 3)
        done = [step.payload["args"]["n"] for step in record[:at] if step.kind is StepKind.TOOL]
        assert shipped() == [n for n in (1, 2, 3) if n not in done]
        kinds = [[s.kind for s in found if s.key] for found in (steps, record)]
        assert kinds[0] == kinds[1]
        said = words(record[:at])
        assert words(steps)[: len(said)] == said
        assert not {*words(steps)[len(said) :]} & {*words(record)}
