"""What a run asks of people, and answering it."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Path

from offing.api.auth import Known
from offing.api.parts import Held
from offing.api.questions import AnswerIn, QuestionList, QuestionOut, answer_of, check_decisions, missing, question_out
from offing.api.routes.responses import NO_RUN, TOO_LARGE, problems
from offing.api.routing import StrictRoute
from offing.core.errors import InvalidInput
from offing.services import questions
from offing.services.questions import Asked

router = APIRouter(prefix="/runs", tags=["runs"], route_class=StrictRoute)

Number = Annotated[int, Path(ge=1, le=2**62, description="Seq of the step that asks.")]


@router.get("/{run_id}/questions", responses=NO_RUN)
async def list_questions(caller: Known, held: Held, run_id: UUID) -> QuestionList:
    """What a run has asked so far, oldest first, with the answers that there are."""
    found = await questions.asked(held.database, caller.tenant, run_id)
    return QuestionList(items=[question_out(asked) for asked in found])


@router.post(
    "/{run_id}/questions/{number}/answer",
    responses=problems(_404="There is no such run or question.", _409="It was answered before, or the run has ended.")
    | TOO_LARGE,
)
async def answer_question(caller: Known, held: Held, run_id: UUID, number: Number, wanted: AnswerIn) -> QuestionOut:
    """Answer a question; the first answer stands, and a waiting run goes on."""
    asking = (await questions.question(held.database, caller.tenant, run_id, number)).asking
    if field := missing(asking, wanted):
        raise InvalidInput(field, f"is needed to answer a question of kind {asking.kind}", "Send it.")
    check_decisions(asking, wanted)
    answered = await questions.answer(
        held.database, held.hints, caller.tenant, run_id, number, answer_of(wanted), by=caller.name
    )
    return question_out(Asked(answered, False))
