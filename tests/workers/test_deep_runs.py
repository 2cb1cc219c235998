"""Deep runs with a language model in every role, through real workers and the provider's wire."""

import json
from pathlib import Path
from typing import Any

from offing.core.report_formats import render_markdown
from offing.core.run import Budget, Depth, RunStatus, StopReason
from offing.services.runs import RunRequest
from offing.storage.runs import RunRow
from tests.documents import ingest_folder
from tests.model_provider.replies import Completion
from tests.model_provider.server import WireServer, scripted
from tests.workers.conftest import Platform
from tests.workers.test_models import ANALYSIS, PLAN, REPORT, TEXT, reported, says, through

PARTS = ("Who built the third tower?", "How high is it?")
DEEP = Budget(max_turns=20, depth=Depth.DEEP)
SEARCH = PLAN | {"args": {"query": "third Eddystone tower"}}


def verdict(covered: int, *, stop: bool) -> dict[str, Any]:
    coverage = [{"sub_question": part, "covered": number < covered} for number, part in enumerate(PARTS)]
    return {"analysis": "The height is missing.", "coverage": coverage, "stop": stop}


def turn(covered: int, *, stop: bool) -> list[Completion]:
    """A turn that searches for the same again."""
    return [says(SEARCH), says(verdict(covered, stop=stop))]


async def ask(platform: Platform, folder: Path, budget: Budget, *turns: list[Completion]) -> tuple[RunRow, list[str]]:
    """The ended run of a question in two parts, and the prompts of its calls."""
    (folder / "tower.md").write_text(f"# Eddystone\n\n{TEXT}\n")
    await ingest_folder(platform.database, platform.tenant, folder)
    replies = [says(ANALYSIS | {"sub_questions": PARTS}), *(one for turn in turns for one in turn), says(REPORT)]
    async with WireServer(scripted(*replies)) as server:
        request = RunRequest("Who built the third tower, and how high is it?", budget=budget, engines=through(server))
        ended = await platform.ended((await platform.submit(request)).id)
    return ended, [json.dumps(body["messages"]) for body in server.bodies]


async def test_a_deep_run_goes_on_when_its_verifier_would_stop_and_ends_when_nothing_new_comes(
    shared_platform: Platform, tmp_path: Path
) -> None:
    turns = [turn(1, stop=True) for _ in range(4)]
    ended, prompts = await ask(shared_platform, tmp_path, DEEP, *turns)
    assert (ended.status, ended.stop_reason, ended.usage.turns) == (RunStatus.DONE, StopReason.SATURATED, 4)
    planner = prompts[1:9:2]
    assert ["first phase, breadth" in prompt for prompt in planner] == [True, True, False, False]
    assert ["second phase, depth" in prompt for prompt in planner] == [False, False, True, True]
    assert "the reason is: saturated" in prompts[9]
    titles = [(step.turn, step.detail) for step in await shared_platform.steps(ended.id) if step.label == "continue"]
    assert titles == [(number, PARTS[1]) for number in (1, 2, 3)]
    text = render_markdown(await reported(shared_platform, ended))
    assert "Partial report. The latest turns of the deep run found nothing new." in text


async def test_a_deep_run_whose_parts_are_covered_ends_as_its_verifier_says(
    shared_platform: Platform, tmp_path: Path
) -> None:
    ended, _ = await ask(shared_platform, tmp_path, DEEP, turn(1, stop=False), turn(2, stop=True))
    assert (ended.stop_reason, ended.usage.turns) == (StopReason.ANSWERED, 2)


async def test_a_standard_run_ends_as_its_verifier_says(shared_platform: Platform, tmp_path: Path) -> None:
    ended, prompts = await ask(shared_platform, tmp_path, Budget(max_turns=20), turn(1, stop=True))
    assert (ended.stop_reason, ended.usage.turns) == (StopReason.ANSWERED, 1)
    assert not any("deep run" in prompt for prompt in prompts)
