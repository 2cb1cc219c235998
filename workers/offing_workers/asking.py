"""Putting a question to a person from within a node, and reading the answer back when the node runs again.

The only home of that. A question is a step under the call's key, and the answer another one under a key beside it, so
both are read back after a loss; between the two the run waits. Also how the tool policy asks (`approving.Approver`).
"""

import hashlib

import orjson

from offing.core.question import (
    Answer,
    Answerer,
    Asking,
    Question,
    QuestionKind,
    Unanswered,
    answer_of,
    check_asking,
)
from offing.core.step import CallKey, Step, StepKind
from offing.storage import questions
from offing.storage.pool import Connection, Database
from offing.storage.questions import NewQuestion
from offing_workers.approving import Approval, Approved
from offing_workers.hold import Hold
from offing_workers.interrupts import answered_step, asked_step
from offing_workers.recorder import Recorder
from offing_workers.waiting import ForPerson, wait

QUESTIONS = frozenset({StepKind.QUESTION})
ANSWERS = frozenset({StepKind.ANSWER})


class Asker:
    """One claim's. `alone`: the run is a rollout, and nobody answers it."""

    def __init__(self, database: Database, recorder: Recorder, hold: Hold, *, alone: bool) -> None:
        self._database, self._recorder, self._hold, self._alone = database, recorder, hold, alone

    async def put(self, asking: Asking, key: CallKey, turn: int = 0) -> Answer:
        """The answer; the run waits until it is there. Raises Unanswered in a rollout, for a question without default.

        A run that was told to write asks nobody any more: the default is taken, and without one the run ends.
        """
        later = CallKey(key.superstep, f"{key.path}?answer", key.ordinal)
        step = self._recorder.recorded(key, QUESTIONS)
        if step is None:
            return await self._first(check_asking(asking), key, later, turn)
        if taken := self._recorder.recorded(later, ANSWERS):
            return answer_of(taken.payload["answer"])
        return await self._again(step, asking, later)

    async def approve(self, approval: Approval, key: CallKey) -> Approved:
        """A person's word on one tool call. The key says which call it was: for any other, a person is asked anew."""
        asking = asking_for(approval)
        digest = hashlib.sha256(orjson.dumps([asking.prompt, asking.detail])).hexdigest()[:16]
        try:
            answer = await self.put(asking, CallKey(key.superstep, f"{key.path}?approve {digest}", key.ordinal))
        except Unanswered:
            return Approved(False, "A rollout has nobody to ask.")
        return Approved(answer.approved, answer.comment)

    async def _first(self, asking: Asking, key: CallKey, later: CallKey, turn: int) -> Answer:
        if self._alone and asking.default is None:
            raise Unanswered("A rollout has nobody to ask, and the question has no default.", asking.prompt)
        asks = not self._alone and not (asking.default and self._hold.must_write)

        async def store(connection: Connection, new: list[Step]) -> None:
            await questions.insert(connection, self._recorder.fence, NewQuestion(new[0].seq, asking))

        draft = asked_step(asking, key=key, turn=turn)
        (step,) = await self._recorder.append(draft, also=store if asks else None)
        if asks:
            wait(ForPerson((step.seq,)))
        return await self._take(_defaulted(step, asking), later)

    async def _again(self, step: Step, asking: Asking, later: CallKey) -> Answer:
        question = await self._known(step.seq)
        if question is None:  # it was never put to a person, and its answer was lost
            return await self._take(_defaulted(step, asking), later)
        if question.answer is None:
            wait(ForPerson((step.seq,)))
        return await self._take(question, later)

    async def _known(self, number: int) -> Question | None:
        """The question as it stands, its default taken if it is time. None: it is not among those put to people."""
        run = self._recorder.fence.run
        async with self._database.transaction(self._recorder.fence.tenant) as connection:
            found = await questions.find(connection, run, number)
            if found is None or found.answer or found.asking.default is None:
                return found
            if self._hold.must_write or await questions.overdue(connection, run, number):
                await questions.answer(connection, run, found, found.asking.default, Answerer.DEFAULT)
            return await questions.find(connection, run, number)

    async def _take(self, question: Question, later: CallKey) -> Answer:
        """Put the answer on record, which makes it the one that every later claim reads."""

        async def taken(connection: Connection, new: list[Step]) -> None:
            await questions.take(connection, self._recorder.fence.run, question.number, new[0].seq)

        assert question.answer is not None
        await self._recorder.append(answered_step(question, key=later), also=taken)
        return question.answer


def asking_for(approval: Approval) -> Asking:
    """A tool call as a person is asked to approve it: exactly what the tool would receive."""
    args = orjson.dumps(approval.args, default=str, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS).decode()
    why = f"{approval.rule}: {approval.reason}" if approval.reason else approval.rule
    prompt = f"May the run use {approval.tool}?"
    return Asking(QuestionKind.TOOL, prompt, f"{approval.tool}\n{args}\n\nAsked because of {why}")


def _defaulted(step: Step, asking: Asking) -> Question:
    """A question that was answered by its own default at once."""
    return Question(step.seq, asking, step.at, answered_at=step.at, answer=asking.default, answerer=Answerer.DEFAULT)
