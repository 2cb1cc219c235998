"""`RunContext` in memory, for one worker's hold on a rehearsed run: everything that is recorded is read back first.

Knows no engine but scripts, and no tool but those of the scene.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from langgraph.config import get_config

from offing.core.citation import check
from offing.core.errors import ReplayDiverged
from offing.core.model import EngineFailure, FailureKind
from offing.core.policy import proposed
from offing.core.question import Answer, Asking, answer_json, answer_of, asking_json, said
from offing.core.report import Evidence, Report, ReportDraft
from offing.core.run import Spent, StopReason, exhausted
from offing.core.step import CallKey, Step, StepDraft, StepKind
from offing.core.tool import ToolResult, ToolSpec
from offing.core.trajectory import Fracture
from offing.sdk import AsksPeople, Role, RoleReply, RunView, ToolCall, result_of
from offing.sdk.children import ChildRequest, ChildResult, NoChildren
from offing.sdk.conversation import Note, Recalled
from offing.sdk.values import Input, Output
from offing.testing.stage import Executed, Lost, Stage
from offing.testing.tooling import used

__all__ = ["Lost", "RehearsedContext"]

RECORDS = frozenset(StepKind) - {StepKind.TOOL, StepKind.REPORT}


class RehearsedContext(AsksPeople):
    """One worker's. `journal`: what an earlier one recorded after the checkpoint that this one goes on from."""

    def __init__(self, stage: Stage, journal: dict[CallKey, Step]) -> None:
        self._stage, self._journal = stage, journal
        self._ordinals = Counter[tuple[int, str]]()
        self._waiting: list[StepDraft] = []
        self._turns = stage.spent.turns

    @property
    def run(self) -> RunView:
        return self._stage.run

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        allowed = {rule.tool for rule in self._stage.policy.rules if rule.effect != "forbid"}
        return tuple(tool.spec for name, tool in self._stage.tools.items() if name in allowed)

    @property
    def spent(self) -> Spent:
        return replace(self._stage.spent, turns=self._turns, seconds=self._stage.clock.seconds)

    def stop(self) -> StopReason | None:
        after = self._stage.scene.write_after
        if after is not None and len(self._stage.steps) >= after:
            return StopReason.ASKED_TO_WRITE
        return exhausted(replace(self.spent, turns=self.spent.turns - 1), self.run.budget)

    async def begin_turn(self, number: int) -> None:
        self._turns = max(number, self._turns)

    async def call(
        self, role: Role[Input, Output], given: Input, *, turn: int = 0, fracture: Fracture | None = None
    ) -> RoleReply[Output] | EngineFailure:
        key = self._key()
        if step := self._recorded(key, frozenset({role.kind, StepKind.FAILURE})):
            return _replayed(role, step)
        ms = self._began(role.name, given, key, turn)
        answer = self._stage.scene.answer(role, given, self._stage.asked(role.name), turn)
        self._stage.moment()
        (step,) = self._append(_called(role, answer, key, turn, ms))
        self._stage.moment()
        return answer if isinstance(answer, EngineFailure) else _replayed(role, step)

    async def use(self, call: ToolCall, *, turn: int = 0) -> ToolResult:
        key = self._key()
        if step := self._recorded(key, frozenset({StepKind.TOOL})):
            return result_of(step)
        ms = self._began(call.tool, call.args, key, turn)
        draft = await used(self._stage, call, key, ms / 1000)
        self._stage.moment()
        (step,) = self._append(replace(draft, key=key, turn=turn, ms=ms))
        self._stage.moment()
        return result_of(step)

    async def put(self, asking: Asking, turn: int) -> Answer:
        """A rehearsal does not wait: a person answers at once."""
        key = self._key()
        later = replace(key, path=f"{key.path}?answer")
        if self._recorded(key, frozenset({StepKind.QUESTION})) is None:
            self._append(StepDraft(StepKind.QUESTION, asking.prompt, asking_json(asking), key=key, turn=turn))
            self._stage.moment()
        if step := self._recorded(later, frozenset({StepKind.ANSWER})):
            return answer_of(step.payload["answer"])
        answer = self._stage.scene.reply(asking)
        payload = {"answer": answer_json(asking.kind, answer)}
        self._append(StepDraft(StepKind.ANSWER, said(asking, answer), payload, key=later, turn=turn))
        self._stage.moment()
        return answer

    async def children(
        self, requests: Sequence[ChildRequest], *, turn: int = 0
    ) -> tuple[ChildResult, ...] | NoChildren:
        """A rehearsal is of one graph: it is done in sequence, as in a rollout."""
        return NoChildren("A rehearsal has nobody else to send.") if requests else ()

    async def narrow(self, rules: Sequence[Mapping[str, Any]], *, turn: int = 0) -> str:
        """A rehearsal keeps its policy; what would come of the proposal is said."""
        found = proposed(self._stage.policy, rules)
        refused = found if isinstance(found, str) else ""
        await self.record(StepDraft(StepKind.NOTE, "Narrowing", {"narrow": list(rules), "refused": refused}))
        return refused

    async def conversation(self, words: str, most: int = 8, *, turn: int = 0) -> tuple[Recalled, ...]:
        """A rehearsal's thread has no earlier runs."""
        return ()

    async def remember(self, key: str, text: str) -> None:
        await self.record(StepDraft(StepKind.NOTE, f"{key}: {text}", {"remember": key, "text": text}, "remember"))

    async def remembered(self) -> tuple[Note, ...]:
        return ()

    async def record(self, *drafts: StepDraft) -> None:
        for draft in drafts:
            key = self._key()
            if self._recorded(key, RECORDS) is None:
                self._waiting.append(replace(draft, key=key))
        if not self._stage.graph.turn_key:
            self._append()
        self._stage.moment()

    async def recall(self, kind: StepKind, last: int) -> tuple[Step, ...]:
        self._append()
        return tuple([s for s in self._stage.steps if s.kind is kind][-last:] if last > 0 else ())

    async def fetch(self, seqs: Sequence[int]) -> tuple[Step, ...]:
        known = {step.seq: step for step in self._stage.steps}
        return tuple(known[seq] for seq in seqs if seq in known)

    async def messages(self, after: int) -> tuple[Step, ...]:
        return tuple(s for s in self._stage.steps if s.kind is StepKind.HUMAN and s.seq > after)

    async def evidence(self, last: int) -> tuple[Evidence, ...]:
        return self._stage.book().latest(last)

    async def deliver(self, draft: ReportDraft, reason: StopReason) -> Report:
        key = self._key()
        known = self._recorded(key, frozenset({StepKind.REPORT}))
        report = check(draft, self._stage.book().all(), self._stage.text_of, reason, "the test kit")
        if known is None:
            self._stage.moment()
            self._append(StepDraft(StepKind.REPORT, report.title, {"reason": reason.value}, key=key))
            self._stage.moment()
        self._stage.report = report
        return report

    def settle(self) -> None:
        """The graph has ended: what was left for the next append is appended."""
        self._append()
        self._stage.count(turns=self._turns)

    def _append(self, *drafts: StepDraft) -> list[Step]:
        left, self._waiting = self._waiting, []
        if not left and not drafts:
            return []
        self._stage.count(turns=self._turns)  # a turn is counted with what is recorded, and lost with what is not
        return self._stage.append([*left, *drafts])[len(left) :]

    def _began(self, name: str, given: Any, key: CallKey, turn: int) -> int:
        """Note that something is really executed, and let its time pass; milliseconds."""
        self._stage.executed.append(Executed(name, given, key, turn))
        return int(self._stage.clock.pass_for(name) * 1000)

    def _key(self) -> CallKey:
        self._stage.check_worker()
        metadata: dict[str, Any] = get_config().get("metadata") or {}
        outside = re.sub(r":[^|]*", "", metadata.get("langgraph_checkpoint_ns", "").rpartition("|")[0])
        path = "/".join([*filter(None, [outside]), *map(str, metadata["langgraph_path"])])
        superstep = int(metadata["langgraph_step"])
        ordinal = self._ordinals[superstep, path]
        self._ordinals[superstep, path] += 1
        return CallKey(superstep, path, ordinal)

    def _recorded(self, key: CallKey, expected: frozenset[str]) -> Step | None:
        step = self._journal.pop(key, None)
        if step is not None and step.kind not in expected:
            raise ReplayDiverged(f"{key} recorded {step.kind}; the node now asks for {', '.join(sorted(expected))}.")
        return step


def _called(role: Role[Any, Any], answer: Any, key: CallKey, turn: int, ms: int) -> StepDraft:
    if isinstance(answer, EngineFailure):
        payload = {"role": role.name, "failure": answer.kind, "message": answer.message, "stop": answer.stop}
        title = f"{role.name}: {answer.message}"
        return StepDraft(StepKind.FAILURE, title, payload, "failed", ok=False, ms=ms, turn=turn, key=key)
    head = role.headline(answer)
    payload = {"role": role.name, "engine": "scripted", "model": "", "output": answer.model_dump(mode="json")}
    return StepDraft(role.kind, head.title, payload, role.label, head.detail, ms=ms, turn=turn, key=key)


def _replayed(role: Role[Any, Output], step: Step) -> RoleReply[Output] | EngineFailure:
    p = step.payload
    if step.kind is StepKind.FAILURE:
        return EngineFailure(FailureKind(p["failure"]), p["message"], stop=p["stop"])
    return RoleReply(step.seq, role.output.model_validate(p["output"]))
