"""Input requests of a node, and their responses when the node runs again.

An input request is a step under the key of the call. Its response is another step under a side key,
so both are read back after a crash. The run waits in between. Approvals of the tool policy work in
the same way.
"""

import hashlib
from dataclasses import dataclass, replace
from typing import Any, Protocol

import orjson

from offing.core.input_request import (
    InputKind,
    InputPrompt,
    InputRequest,
    InputResponse,
    NoResponderError,
    Responder,
    check_prompt,
    prompt_to_json,
    response_from_json,
    response_to_json,
    summarize_response,
)
from offing.core.step import Step, StepDraft, StepKind
from offing.kernel.budget import RunControls
from offing.kernel.call_key import NodeCall
from offing.kernel.journal import Journal
from offing.kernel.run_store import InputRequestAttachment, InputRequestStore, InputResponseAttachment, JournalEntry
from offing.kernel.wait_conditions import HumanInputWait, suspend_node

INPUT_REQUEST_KINDS = frozenset({StepKind.INPUT_REQUEST})
INPUT_RESPONSE_KINDS = frozenset({StepKind.INPUT_RESPONSE})


@dataclass(frozen=True, slots=True)
class ApprovalRequest:
    """What a person is asked to approve: exactly this tool call."""

    tool: str
    args: dict[str, Any]
    """The arguments as the tool would receive them: validated, with defaults filled in."""
    rule: str
    """The rule of the tool policy that requires an approval."""
    reason: str
    """The reason, in the words of the rule's author. Empty means that the rule gives none."""


@dataclass(frozen=True, slots=True)
class ApprovalResult:
    """The result of an approval request."""

    is_approved: bool
    comment: str = ""
    """The person's comment, or why no person could be asked.

    The result of a denied call shows it to the model.
    """


class Approver(Protocol):
    """Asks for an approval and records the response under the key of the call.

    Nothing has been counted, declared or executed when it is called, so it may raise an exception that
    suspends the run. Then the same call is asked again under the same key. The recorded response is
    valid only for the tool and the arguments that were shown. For other arguments under that key, a
    person is asked again.
    """

    async def approve(self, request: ApprovalRequest, call: NodeCall) -> ApprovalResult: ...


class DenyingApprover:
    """Denies every call, for runs in which no person can be asked."""

    async def approve(self, request: ApprovalRequest, call: NodeCall) -> ApprovalResult:
        return ApprovalResult(False, "Nobody can be asked.")


class HumanInput:
    """Input requests of one claim. With `is_rollout`, no person can respond."""

    def __init__(self, journal: Journal, store: InputRequestStore, controls: RunControls, *, is_rollout: bool) -> None:
        self._journal, self._store, self._controls, self._is_rollout = journal, store, controls, is_rollout

    async def request_input(self, prompt: InputPrompt, call: NodeCall, turn: int = 0) -> InputResponse:
        """Return the response to an input request. The run waits until there is one.

        Raises NoResponderError in a rollout if the request has no default. A run that must finish does
        not ask: the default is used, and without a default the run ends.
        """
        response = call.side_call("answer")
        step = self._journal.take_recorded(call, INPUT_REQUEST_KINDS)
        if step is None:
            self._journal.check_new(call)
            await self._journal.recorded_calls.check_input_request(call)
            return await self._create_request(check_prompt(prompt), call, response, turn)
        if recorded := self._journal.take_recorded(response, INPUT_RESPONSE_KINDS):
            return response_from_json(recorded.payload["answer"])
        self._journal.check_new(response)
        return await self._resume_request(step, prompt, response)

    async def approve(self, request: ApprovalRequest, call: NodeCall) -> ApprovalResult:
        """Ask a person to approve one tool call.

        The key contains a digest of the call. For any other call, a person is asked again.
        """
        asking = build_approval_prompt(request)
        digest = hashlib.sha256(orjson.dumps([asking.prompt, asking.detail])).hexdigest()[:16]
        try:
            answer = await self.request_input(
                asking, replace(call.side_call(f"approve {digest}"), request=call.request)
            )
        except NoResponderError:
            return ApprovalResult(False, "A rollout has nobody to ask.")
        return ApprovalResult(answer.approved, answer.comment)

    async def _create_request(
        self, prompt: InputPrompt, call: NodeCall, response: NodeCall, turn: int
    ) -> InputResponse:
        if self._is_rollout and prompt.default is None:
            raise NoResponderError(
                "A rollout has no person to ask, and the input request has no default.", prompt.prompt
            )
        asks = not self._is_rollout and not (prompt.default and self._controls.forced_stop_reason())
        draft = draft_input_request(prompt, call_key=call.key, turn=turn)
        (step,) = await self._journal.append(JournalEntry(draft, InputRequestAttachment(prompt) if asks else None))
        if asks:
            suspend_node(HumanInputWait((step.seq,)))
        return await self._consume_response(_answer_with_default(step, prompt), response)

    async def _resume_request(self, step: Step, prompt: InputPrompt, response: NodeCall) -> InputResponse:
        take_default = self._controls.forced_stop_reason() is not None
        question = await self._store.find_input_request(step.seq, take_default=take_default)
        if question is None:  # no person was asked, and a crash prevented the step with the default
            return await self._consume_response(_answer_with_default(step, prompt), response)
        if question.response is None:
            suspend_node(HumanInputWait((step.seq,)))
        return await self._consume_response(question, response)

    async def _consume_response(self, request: InputRequest, response: NodeCall) -> InputResponse:
        """Record a response. Every later claim reads the recorded response."""
        assert request.response is not None
        draft = draft_input_response(request, call_key=response.key)
        await self._journal.append(JournalEntry(draft, InputResponseAttachment(request.seq)))
        return request.response


def draft_input_request(prompt: InputPrompt, **step_fields: Any) -> StepDraft:
    """Return the step of an input request."""
    return StepDraft(StepKind.INPUT_REQUEST, prompt.prompt, prompt_to_json(prompt), detail=prompt.detail, **step_fields)


def draft_input_response(request: InputRequest, **step_fields: Any) -> StepDraft:
    """Return the step with which a run consumes an input response."""
    assert request.response is not None
    payload = {
        "question": request.seq,
        "answer": response_to_json(request.input_prompt.kind, request.response),
        "answerer": request.responder,
        "by": request.responded_by,
    }
    return StepDraft(
        StepKind.INPUT_RESPONSE, summarize_response(request.input_prompt, request.response), payload, **step_fields
    )


def build_approval_prompt(request: ApprovalRequest) -> InputPrompt:
    """Return the prompt that asks a person to approve a tool call.

    It shows exactly what the tool receives.
    """
    args = orjson.dumps(request.args, default=str, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS).decode()
    why = f"{request.rule}: {request.reason}" if request.reason else request.rule
    prompt = f"May the run use {request.tool}?"
    return InputPrompt(InputKind.TOOL, prompt, f"{request.tool}\n{args}\n\nAsked because of {why}")


def _answer_with_default(step: Step, prompt: InputPrompt) -> InputRequest:
    """Return an input request that was answered with its default immediately."""
    return InputRequest(
        step.seq, prompt, step.at, responded_at=step.at, response=prompt.default, responder=Responder.DEFAULT
    )
