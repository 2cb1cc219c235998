"""Fallbacks of engines in runs of real workers: another provider answers, and the record says so."""

import asyncio
import json
from decimal import Decimal
from pathlib import Path

import pytest

from offing.core.model import EngineConfig
from offing.core.run import Budget, CancelMode, RunStatus, StopReason
from offing.core.step import Step, StepKind
from offing.services.graphs import open_registry
from offing.services.runs import RunRequest, cancel_run
from offing_workers.replay import replay_run
from tests.documents import ingest_folder
from tests.model_provider import Completion, Fault, Reply, Slow, Tokens, WireServer, scripted
from tests.workers.conftest import Platform
from tests.workers.processes import ALL_GRAPHS
from tests.workers.test_models import ANALYSIS, COMMAND, PLAN, REPORT, ROLES, TEXT, VERDICT, reported, says

MAIN, SPARE = "openai/gpt-4o-mini", "openai/gpt-4o"
READ = Tokens(1_000, 0)


def chain(main: WireServer, *spares: WireServer) -> EngineConfig:
    def one(model: str, server: WireServer) -> EngineConfig:
        options = {"output_mode": "text"}
        return EngineConfig(engine="litellm", model=model, api_base=server.url, options=options)

    return one(MAIN, main).model_copy(update={"fallbacks": tuple(one(SPARE, server) for server in spares)})


def list_answers(steps: list[Step]) -> list[Step]:
    return [step for step in steps if "output" in step.payload]


def speaking(config: EngineConfig) -> RunRequest:
    return RunRequest("Count for me", "counting", budget=Budget(max_turns=2), engines={"speaker": config})


@pytest.mark.parametrize("status", [429, 503])
async def test_another_provider_answers_every_role_and_the_report_and_the_record_name_it(
    shared_platform: Platform, tmp_path: Path, status: int
) -> None:
    (tmp_path / "tower.md").write_text(f"# Eddystone\n\n{TEXT}\n")
    await ingest_folder(shared_platform.database, shared_platform.tenant, tmp_path)
    answers = [says(one) for one in (ANALYSIS, PLAN, COMMAND, VERDICT, REPORT)]
    limited = Fault(status, headers={"retry-after": "120"})
    async with WireServer(lambda _: limited) as main, WireServer(scripted(*answers)) as spare:
        engines = {role: chain(main, spare) for role in ROLES}
        request = RunRequest("Who built the third tower?", budget=Budget(max_turns=3), engines=engines)
        run = await shared_platform.ended((await shared_platform.submit(request)).id)
    assert (run.status, run.stop_reason) == (RunStatus.DONE, StopReason.ANSWERED)
    assert (await reported(shared_platform, run)).written_by == SPARE
    steps = list_answers(await shared_platform.steps(run.id))
    assert len(steps) == 5
    for step in steps:
        assert (step.payload["model"], step.payload["fallback"]) == (SPARE, SPARE)
        (reason,) = step.payload["passed_over"]
        assert (reason["model"], reason["failure"]) == (MAIN, "rate_limited" if status == 429 else "overloaded")
        assert f"answered by the fallback {SPARE} ({MAIN}: " in step.detail
    assert len(main.requests) == 1, "the pause of the first call holds for the others, and no call waits for it"


async def test_the_run_is_charged_the_price_of_each_engine_and_replays_without_them(shared_platform: Platform) -> None:
    """The first engine writes what cannot be used, which costs, and is then down."""
    unusable, usable = Completion("no", tokens=READ), Completion('{"word": "one"}', tokens=READ)
    async with (
        WireServer(scripted(unusable, *[Fault(401)] * 9)) as main,
        WireServer(scripted(usable, usable)) as spare,
    ):
        run = await shared_platform.submit(speaking(chain(main, spare)))
        ended = await shared_platform.ended(run.id)
    assert (ended.status, ended.usage.cost_usd) == (RunStatus.DONE, Decimal("0.00015") + 2 * Decimal("0.0025"))
    graphs = open_registry(ALL_GRAPHS)
    result = await replay_run(shared_platform.database, shared_platform.tenant, run.id, graphs)
    assert result.is_same, result.detail
    assert result.replayed_calls == result.recorded_calls
    assert (len(main.requests), len(spare.requests)) == (3, 2)


async def test_a_run_whose_engines_all_fail_says_why_each_of_them_did(shared_platform: Platform) -> None:
    async with WireServer(lambda _: Fault(401, "wrong key")) as main, WireServer(lambda _: Fault(404, "gone")) as spare:
        run = await shared_platform.submit(speaking(chain(main, spare)))
        await shared_platform.ended(run.id)
    steps = await shared_platform.steps(run.id)
    failure = next(step for step in steps if step.kind is StepKind.FAILURE and "attempts" in step.payload)
    attempts = [(one["model"], one["failure"]) for one in failure.payload["attempts"]]
    assert attempts == [(MAIN, "authentication_failed"), (SPARE, "model_unavailable")]
    assert "wrong key" in failure.title
    assert "gone" in failure.payload["message"]


async def test_a_cancelled_run_does_not_go_on_to_the_fallback(shared_platform: Platform) -> None:
    slow: Reply = Slow(Completion(json.dumps({"word": "late"})), 60)
    async with WireServer(lambda _: slow) as main, WireServer(lambda _: slow) as spare:
        run = await shared_platform.submit(speaking(chain(main, spare)))
        while not main.requests:  # noqa: ASYNC110  the server has no event for this
            await asyncio.sleep(0.02)
        await cancel_run(
            shared_platform.database, shared_platform.notifier, shared_platform.tenant, run.id, CancelMode.DISCARD
        )
        ended = await shared_platform.ended(run.id, 20)
    assert ended.status is RunStatus.CANCELLED
    assert not spare.requests
