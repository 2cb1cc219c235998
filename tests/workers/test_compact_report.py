"""A served policy writes AgentFlow's report in compact words, through real workers: as written, or as a violation."""

from typing import Any

from offing.core.model import EngineConfig
from offing.core.run import Budget, StopReason
from offing.services.runs import RunRequest
from offing.storage import segments
from offing.storage.segments import StoredRoleCall
from offing_world.tasks import generate_tasks
from tests.model_provider.policy_server import Policies, Respond
from tests.model_provider.server import WireServer
from tests.workers.conftest import Platform, StartWorker
from tests.workers.test_models import reported

TASK = next(iter(generate_tasks("heldout-8@small", count=1, hops=(2, 2), kinds=("lookup",))))


def writes(text: str) -> Respond:
    def say(_: dict[str, Any]) -> str:
        return text

    return say


async def calls_of(platform: Platform, text: str, start_worker: StartWorker) -> tuple[Any, list[StoredRoleCall]]:
    written = EngineConfig(engine="policy", model="small@1", prompt_format="compact", options={"max_corrections": 0})
    rules = {name: EngineConfig(engine="rules", model="world") for name in ("analyst", "executor", "verifier")}
    engines = {**rules, "planner": EngineConfig(engine="rules", model="oracle"), "generator": written}
    request = RunRequest(TASK.question, "agentflow", budget=Budget(max_turns=6), engines=engines, scope=TASK.scope)
    async with WireServer(Policies(writes(text))) as server:
        start_worker(OFFING_ENGINE_URL=server.url)
        ended = await platform.ended((await platform.submit(request)).id)
    async with platform.database.transaction(platform.tenant) as connection:
        calls = await segments.read_role_calls(connection, ended.id)
    return ended, [call for call in calls if call.role == "generator"]


async def test_the_report_of_a_run_has_the_answer_and_the_citations_that_the_policy_wrote(
    platform: Platform, start_worker: StartWorker
) -> None:
    ended, (call,) = await calls_of(platform, "answer e0 m1", start_worker)
    report = await reported(platform, ended)
    assert ended.stop_reason is StopReason.ANSWERED
    assert report.answer
    assert report.answer.text in TASK.question  # the entity of the question: wrong, and what the policy wrote
    (sentence,) = [sentence for section in report.sections for sentence in section.sentences]
    assert sentence.text.startswith(f"{TASK.evidence[1].relation} of {TASK.evidence[1].entity}: ")
    assert call.completion == "answer e0 m1"
    assert call.is_accepted


async def test_words_that_are_no_report_are_stored_as_a_violation(
    platform: Platform, start_worker: StartWorker
) -> None:
    ended, (call,) = await calls_of(platform, "answer e0 m9", start_worker)
    assert ended.stop_reason is StopReason.INVALID_OUTPUT
    assert (call.completion, call.is_accepted) == ("answer e0 m9", False)
