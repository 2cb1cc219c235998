"""Runs that wait for a person: nothing is lost, doubled or asked twice, whatever happens meanwhile."""

from uuid import UUID

from offing.core.question import Answer
from offing.core.run import RunStatus
from offing.core.step import StepKind
from offing.services.questions import Asked, answer, asked
from offing.services.runs import RunRequest
from offing.storage.runs import RunRow
from tests.workers.conftest import Platform


def waits(row: RunRow) -> bool:
    return row.status is RunStatus.WAITING


async def open_questions(platform: Platform, run: UUID) -> list[Asked]:
    return [one for one in await asked(platform.database, platform.tenant, run) if one.open]


async def say(platform: Platform, run: UUID, number: int, given: Answer) -> None:
    await answer(platform.database, platform.hints, platform.tenant, run, number, given, by="somebody")


async def test_a_plain_interrupt_becomes_a_question_and_its_answer_is_what_it_returns(standing: Platform) -> None:
    run = await standing.submit(RunRequest("Ask me", graph="plain_ask"))
    waiting = await standing.until(run.id, waits)
    (one,) = await open_questions(standing, run.id)
    await say(standing, run.id, one.question.number, Answer(text="[1, 2]"))
    ended = await standing.ended(run.id)
    kinds = [s.kind for s in await standing.steps(run.id)]
    assert waiting.waiting_for == "a person's answer"
    assert one.question.asking.prompt == "Which one?"
    assert (ended.status, kinds.count(StepKind.QUESTION), kinds.count(StepKind.ANSWER)) == (RunStatus.DONE, 1, 1)


async def test_two_interrupts_of_a_node_and_of_its_neighbour_are_answered_in_any_order(standing: Platform) -> None:
    run = await standing.submit(RunRequest("Ask me", graph="plain_branches"))
    for words in ("second first", "b", "c"):
        await standing.until(run.id, waits)
        still_open = await open_questions(standing, run.id)
        await say(standing, run.id, still_open[-1].question.number, Answer(text=words))
    ended = await standing.ended(run.id)
    prompts = [one.question.asking.prompt for one in await asked(standing.database, standing.tenant, run.id)]
    assert ended.status is RunStatus.DONE
    assert sorted(prompts) == ["First?", "Second?", "Which one?"]
