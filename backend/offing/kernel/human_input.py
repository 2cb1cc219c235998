"""Asking people from within a node, and reading their responses back when the node runs again.

An input request is a step under the call's key, and the response another one under a key beside it, so both are read
back after a loss. Between the two the run waits. The tool policy asks in the same way.
"""

import hashlib
from dataclasses import dataclass, replace
from typing import Any, Protocol

import orjson

from offing.core.question import (
    Answer,
    Answerer,
    Asking,
    Question,
    QuestionKind,
    Unanswered,
    answer_json,
    answer_of,
    asking_json,
    check_asking,
    said,
)
from offing.core.step import Step, StepDraft, StepKind
from offing.kernel.budget import RunControls
from offing.kernel.call_key import Call
from offing.kernel.journal import Journal
from offing.kernel.store import Entry, InputRequestRecord, InputRequestStore, ResponseRecord
from offing.kernel.wait_conditions import ForPerson, wait

REQUESTS = frozenset({StepKind.QUESTION})
RESPONSES = frozenset({StepKind.ANSWER})


@dataclass(frozen=True, slots=True)
class Approval:
    """What a person is asked to approve: exactly this call, and no other."""

    tool: str
    args: dict[str, Any]
    """As the tool would receive them: validated, with its defaults filled in."""
    rule: str
    """The rule of the tool policy that wants a person to be asked."""
    reason: str
    """Why, in the words of who wrote the rule. Empty: none were given."""


@dataclass(frozen=True, slots=True)
class Approved:
    """The result of asking."""

    allowed: bool
    words: str = ""
    """What the person said with it, or why nobody could be asked. A refused call's result carries it to the model."""


class Approver(Protocol):
    """Asks, and remembers the response under the call's key.

    Nothing has been counted, declared or executed when this is called, so it may leave by an exception that suspends
    the run. The same call is then asked again under the same key, and the recorded response holds for exactly the tool
    and the arguments that were shown: for others under that key a person is asked anew.
    """

    async def approve(self, approval: Approval, call: Call) -> Approved: ...


class NobodyToAsk:
    """Denies: for runs in which no person can be asked."""

    async def approve(self, approval: Approval, call: Call) -> Approved:
        return Approved(False, "Nobody can be asked.")


class HumanInput:
    """Input requests of one claim. `alone`: the run is a rollout, and nobody responds."""

    def __init__(self, journal: Journal, store: InputRequestStore, controls: RunControls, *, alone: bool) -> None:
        self._journal, self._store, self._controls, self._alone = journal, store, controls, alone

    async def put(self, asking: Asking, call: Call, turn: int = 0) -> Answer:
        """Return the response; the run waits until it is there.

        Raises Unanswered in a rollout, for a request without a default. A run that was told to finish asks nobody any
        more: the default is taken, and without one the run ends.
        """
        response = call.beside("answer")
        step = self._journal.take(call, REQUESTS)
        if step is None:
            self._journal.check_new(call)
            await self._journal.recorded.check_request(call)
            return await self._first(check_asking(asking), call, response, turn)
        if taken := self._journal.take(response, RESPONSES):
            return answer_of(taken.payload["answer"])
        self._journal.check_new(response)
        return await self._again(step, asking, response)

    async def approve(self, approval: Approval, call: Call) -> Approved:
        """Ask a person about one tool call. The key says which call it was: for any other, a person is asked anew."""
        asking = asking_for(approval)
        digest = hashlib.sha256(orjson.dumps([asking.prompt, asking.detail])).hexdigest()[:16]
        try:
            answer = await self.put(asking, replace(call.beside(f"approve {digest}"), request=call.request))
        except Unanswered:
            return Approved(False, "A rollout has nobody to ask.")
        return Approved(answer.approved, answer.comment)

    async def _first(self, asking: Asking, call: Call, response: Call, turn: int) -> Answer:
        if self._alone and asking.default is None:
            raise Unanswered("A rollout has nobody to ask, and the question has no default.", asking.prompt)
        asks = not self._alone and not (asking.default and self._controls.forced_stop())
        draft = request_step(asking, key=call.key, turn=turn)
        (step,) = await self._journal.append(Entry(draft, InputRequestRecord(asking) if asks else None))
        if asks:
            wait(ForPerson((step.seq,)))
        return await self._consume(_defaulted(step, asking), response)

    async def _again(self, step: Step, asking: Asking, response: Call) -> Answer:
        take_default = self._controls.forced_stop() is not None
        question = await self._store.input_request(step.seq, take_default=take_default)
        if question is None:  # it was never put to a person, and its response was lost
            return await self._consume(_defaulted(step, asking), response)
        if question.answer is None:
            wait(ForPerson((step.seq,)))
        return await self._consume(question, response)

    async def _consume(self, question: Question, response: Call) -> Answer:
        """Put the response on record, which makes it the one that every later claim reads."""
        assert question.answer is not None
        draft = response_step(question, key=response.key)
        await self._journal.append(Entry(draft, ResponseRecord(question.number)))
        return question.answer


def request_step(asking: Asking, **more: Any) -> StepDraft:
    """Return the step of an input request."""
    return StepDraft(StepKind.QUESTION, asking.prompt, asking_json(asking), detail=asking.detail, **more)


def response_step(question: Question, **more: Any) -> StepDraft:
    """Return the step with which a run consumes a response."""
    assert question.answer is not None
    payload = {
        "question": question.number,
        "answer": answer_json(question.asking.kind, question.answer),
        "answerer": question.answerer,
        "by": question.answered_by,
    }
    return StepDraft(StepKind.ANSWER, said(question.asking, question.answer), payload, **more)


def asking_for(approval: Approval) -> Asking:
    """Return a tool call as a person is asked to approve it: exactly what the tool would receive."""
    args = orjson.dumps(approval.args, default=str, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS).decode()
    why = f"{approval.rule}: {approval.reason}" if approval.reason else approval.rule
    prompt = f"May the run use {approval.tool}?"
    return Asking(QuestionKind.TOOL, prompt, f"{approval.tool}\n{args}\n\nAsked because of {why}")


def _defaulted(step: Step, asking: Asking) -> Question:
    """A request whose own default was taken at once."""
    return Question(step.seq, asking, step.at, answered_at=step.at, answer=asking.default, answerer=Answerer.DEFAULT)
