"""Rollouts of real flows on questions of a made-up world, all in this process: an algorithm's laboratory.

What is real: the flow's graph, its role's form, the world and its tools, the engine's sampler, how turns are placed in
segments, and how segments become rows. What is left out is transport alone: no Celery, no Postgres, no HTTP, and a
flow's steps are kept in memory (`tests.graphs.stand_in`).

    flow = Flow(graph, role="researcher", form="compact")
    played = await play(flow, Table(opened(folder, "start@1")), [Seat(task, seed), ...], How(turns=8))
    played[0].sample            # what the trainer gets: `offing_trainer.batch.Sample`, rows and episode with reward

The role named by the flow is answered by the policy; every other role by its rule `world`. How a rollout ends is the
flow's own doing, as on the platform: a completion that the form cannot read makes the call fail and the rollout
`violated`, with the completion kept in a segment of its own (`rejected`); a prompt of more than `How.context` tokens is
not asked, the call fails for lack of tokens, and the rollout is `truncated`. Reward: 1 for a right short answer, else
0. The same seeds give the same rollouts.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from random import Random
from typing import Any
from uuid import UUID, uuid5

from offing.core.episode import Cost, Episode
from offing.core.model import Answer, EngineFailure, FailureKind, Message, Sampled, Unusable
from offing.core.run import Budget, RunStatus, StopReason
from offing.core.step import StepDraft, StepKind
from offing.core.tokens import SpanKind, TextSpan, TokenTrace
from offing.core.trajectory import Fracture, Outcome, outcome_of
from offing.kernel.segment_tracker import SegmentTracker
from offing.sdk import Form, Graph, Role, RoleReply
from offing.sdk import Seat as Chair
from offing.storage.training_groups import RunFacts
from offing.tools.tool import ToolFailed, ToolOutput
from offing.world.tasks import WorldTask
from offing_trainer.batch import Group, Sample
from tests.graphs.stand_in import EPOCH, NAMES, Handler, StandIn
from tests.graphs.world_trials import NO_LIBRARY, SPECS, handlers, is_right
from tests.results.drawing import Ask, Table
from tests.results.recorded import Turn, rows_of

OWN_ACCORD = frozenset({Outcome.ANSWERED, Outcome.DONE})


@dataclass(frozen=True, slots=True)
class Flow:
    """A flow, and whose answers in it are trained."""

    graph: Graph
    role: str
    form: str = "compact"
    outage: float = 0.0
    """Share of tool calls that fail, drawn anew for each: what is asked again may be answered."""


@dataclass(frozen=True, slots=True)
class Seat:
    """One rollout to be played."""

    task: WorldTask
    seed: int
    member: int = 0
    """Of its group."""


@dataclass(frozen=True, slots=True)
class How:
    """What holds for all rollouts of a step."""

    turns: int = 12
    """A run's budget."""
    temperature: float = 1.0
    """0: greedy."""
    context: int | None = None
    """Tokens that a prompt may have. None: as many as it takes."""
    most: int = 16
    """Tokens of a completion."""
    reasks: int = 0
    """How often a completion that cannot be used is drawn again; the prompt stays as it is."""


@dataclass(frozen=True, slots=True, eq=False)
class Played:
    """A rollout that is over."""

    task: WorldTask
    sample: Sample
    """Its rows, and its episode with outcome and reward."""
    turns: int
    """Of the flow's loop that were begun."""
    prompts: tuple[int, ...]
    """Tokens of each prompt that was asked, in order."""

    @property
    def reward(self) -> float:
        return self.sample.episode.reward or 0.0

    @property
    def outcome(self) -> str:
        return self.sample.episode.outcome or ""


@dataclass(frozen=True, slots=True)
class Call:
    """One call of the trained role, ready to be answered."""

    role: Role[Any, Any]
    form: Form[Any, Any]
    given: Any
    ids: tuple[int, ...]
    """The prompt."""
    chair: Chair
    asked: int
    """Calls of this rollout so far, this one included; a completion that is drawn again counts."""


Speaker = Callable[[Call], Awaitable[TokenTrace]]
"""Who answers the trained role: a policy (`speaks`), or rules that a policy learns from (`tests.results.taught`)."""


def speaks(table: Table, how: How) -> Speaker:
    """The policy at this table."""
    policy = table.policy

    async def said(call: Call) -> TokenTrace:
        seed = _seed(call.chair, call.asked)
        found = await table.completion(Ask(call.ids, how.most, seed, how.temperature))
        return TokenTrace(
            prompt_ids=call.ids,
            completion_ids=found.ids,
            logprobs=found.logprobs,
            pieces=policy.pieces.of(found.ids),
            policy=policy.name,
            finish=found.finish,
            entropy=found.entropy,
            weights_sha256=policy.hashes.weights,
            tokenizer_sha256=policy.hashes.tokenizer,
            template_sha256=policy.hashes.template,
            engine_build="offing-engine",
        )

    return said


def _seed(chair: Chair, asked: int) -> int:
    return int.from_bytes(blake2b(f"{chair.seed}\0{chair.turn}\0{asked}".encode(), digest_size=8).digest()) >> 1


@dataclass
class Rollout(StandIn):
    """A run context whose trained role is asked token by token."""

    flow: Flow | None = None
    how: How = field(default_factory=How)
    speaker: Speaker | None = None
    renderer: Any = None
    turned: list[Turn] = field(default_factory=list[Turn])
    placing: SegmentTracker = field(default_factory=lambda: _placing())
    asked: int = 0

    async def call(
        self, role: Role[Any, Any], given: Any, *, turn: int = 0, fracture: Fracture | None = None
    ) -> RoleReply[Any] | EngineFailure:
        assert self.flow is not None
        if role.name != self.flow.role:
            return await super().call(role, given, turn=turn, fracture=fracture)
        form = role.form(self.flow.form)
        assert form is not None, f"{role.name} has no form {self.flow.form}"
        messages = form.render(given)
        ids = await self._ids(messages)
        if self.how.context is not None and len(ids) > self.how.context:
            return self._failed(role, turn, FailureKind.OUT_OF_BUDGET, StopReason.TOKEN_LIMIT)
        return await self._answered(role, form, given, messages, ids, turn, fracture)

    async def _answered(
        self,
        role: Role[Any, Any],
        form: Form[Any, Any],
        given: Any,
        messages: tuple[Message, ...],
        ids: tuple[int, ...],
        turn: int,
        fracture: Fracture | None,
    ) -> RoleReply[Any] | EngineFailure:
        assert self.speaker is not None
        for _ in range(1 + self.how.reasks):
            self.asked += 1
            trace = await self.speaker(Call(role, form, given, ids, Chair(self.seed, turn), self.asked))
            output = Unusable("cut off") if trace.finish == "length" else form.parse(trace.text, given)
            if not isinstance(output, Unusable):
                answer = Answer(
                    output, trace.text, trace.policy, messages, {}, trace=trace, spans=form.spans(trace.text)
                )
                return self._accepted(role, answer, trace, turn, fracture)
            self._rejected(role, messages, trace, turn)
        return self._failed(role, turn, FailureKind.INVALID_OUTPUT)

    def _accepted(
        self, role: Role[Any, Any], answer: Answer, trace: TokenTrace, turn: int, fracture: Fracture | None
    ) -> RoleReply[Any]:
        """A step and its turn, as the platform records them."""
        place = self.placing.assign_position(role.name, answer, fracture)
        assert place is not None
        payload = {"role": role.name, "output": answer.output.model_dump(mode="json")}
        seq = self._append(StepDraft(role.kind, "", payload, turn=turn))
        self.placing.placed(role.name, place, seq)
        self.turned.append(Turn(seq, turn, role.name, place, trace, answer.spans, self.how.temperature))
        return RoleReply(seq, answer.output)

    def _rejected(self, role: Role[Any, Any], messages: tuple[Message, ...], trace: TokenTrace, turn: int) -> None:
        place = self.placing.assign_rejected(role.name, Sampled(trace.policy, messages, {}, trace))
        seq = self._append(StepDraft(StepKind.FAILURE, f"{role.name}: unusable", {}, turn=turn))
        whole = (TextSpan(SpanKind.TEXT, 0, len(trace.text)),) if trace.text else ()
        self.turned.append(Turn(seq, turn, role.name, place, trace, whole, self.how.temperature))

    def _failed(
        self, role: Role[Any, Any], turn: int, kind: FailureKind, stop: StopReason | None = None
    ) -> EngineFailure:
        self._append(StepDraft(StepKind.FAILURE, f"{role.name}: {kind}", {}, turn=turn))
        return EngineFailure(kind, str(kind), stop=stop or "")

    async def _ids(self, messages: Sequence[Message]) -> tuple[int, ...]:
        """Going on from the very tokens of an earlier turn where the prompt repeats one, as the engine does."""
        from offing_engine.rendering import Prefix

        last = max((n for n, message in enumerate(messages) if message.turn), default=None)
        known = await self.placing.recall(messages[: last + 1]) if last is not None else None
        prefix = Prefix(known, last + 1) if known and last is not None else None
        return self.renderer.prompt([{"role": m.role, "content": m.text} for m in messages], prefix, {}).ids

    async def record(self, *drafts: StepDraft) -> tuple[int, ...]:
        """What a flow took out of its context unseen is kept, and not trained."""
        gone = {draft.untrains for draft in drafts if draft.untrains}
        self.turned = [turn.untrained() if turn.seq in gone else turn for turn in self.turned]
        return await super().record(*drafts)


def _placing() -> SegmentTracker:
    nowhere: Any = None  # a fresh run's first claim reads nothing back
    return SegmentTracker(nowhere, fresh=True)


async def play(flow: Flow, table: Table, seats: Sequence[Seat], how: How) -> list[Played]:
    """All of them side by side; their results in the order of `seats`."""
    return await played(flow, seats, how, speaks(table, how), table.policy.renderer, table)


async def played(
    flow: Flow, seats: Sequence[Seat], how: How, speaker: Speaker, renderer: Any, table: Table | None = None
) -> list[Played]:
    """As `play`, with somebody else answering. `table`: where they wait for one another."""
    compiled = flow.graph.build().compile()

    if table is not None:
        table.sit(len(seats))

    async def one(seat: Seat) -> Rollout:
        ctx = _context(flow, seat, how, speaker, renderer)
        config = {"configurable": {"thread_id": "t"}, "recursion_limit": 10_000}
        try:
            await compiled.ainvoke(flow.graph.start(ctx.run), config=config, context=ctx)
        finally:
            if table is not None:
                table.leave()
        return ctx

    contexts = await asyncio.gather(*map(one, seats))
    return _results(seats, contexts)


def _context(flow: Flow, seat: Seat, how: How, speaker: Speaker, renderer: Any) -> Rollout:
    return Rollout(
        NO_LIBRARY,
        seat.task.question,
        Budget(turns=how.turns),
        specs=SPECS,
        handlers=_tools(flow, seat),
        rules={role.name: "world" for role in flow.graph.roles if "world" in role.rules},
        seed=seat.seed,
        flow=flow,
        how=how,
        speaker=speaker,
        renderer=renderer,
    )


def _tools(flow: Flow, seat: Seat) -> dict[str, Handler]:
    """The world's, of which so many calls fail; the same seat draws the same."""
    draws = Random(f"outage {seat.seed}")

    def failing(handler: Handler) -> Handler:
        async def called(args: Any) -> ToolOutput:
            if draws.random() < flow.outage:
                raise ToolFailed("out of order")
            return await handler(args)

        return called

    return {name: failing(handler) for name, handler in handlers(seat.task.scope["world"]).items()}


def _results(seats: Sequence[Seat], contexts: Sequence[Rollout]) -> list[Played]:
    episodes = [_episode(seat, ctx) for seat, ctx in zip(seats, contexts, strict=True)]
    turned = [_ended(ctx.turned, episode.outcome) for ctx, episode in zip(contexts, episodes, strict=True)]
    rows = rows_of(episodes, turned)
    return [
        Played(seat.task, Sample(episode, tuple(own)), ctx.turns, tuple(len(t.trace.prompt_ids) for t in ctx.turned))
        for seat, ctx, episode, own in zip(seats, contexts, episodes, rows, strict=True)
    ]


def _episode(seat: Seat, ctx: Rollout) -> Episode:
    """As the platform settles it: every ending is scored by its short answer."""
    assert ctx.flow is not None
    reason = StopReason(ctx.report.reason)
    tokens = [(len(t.trace.prompt_ids), len(t.trace.completion_ids)) for t in ctx.turned]
    return Episode(
        run=uuid5(NAMES, f"{seat.task.name}\0{seat.seed}"),
        kind="rollout",
        graph=ctx.flow.graph.name,
        graph_version=ctx.flow.graph.version,
        question=seat.task.question,
        seed=seat.seed,
        status=RunStatus.DONE,
        stop_reason=reason,
        outcome=outcome_of(RunStatus.DONE, reason),
        reward=float(is_right(seat.task, ctx)),
        created_at=EPOCH,
        started_at=EPOCH,
        ended_at=EPOCH,
        settled_at=EPOCH,
        task_name=seat.task.name,
        member=seat.member,
        cost=Cost(ctx.turns, sum(p for p, _ in tokens), sum(c for _, c in tokens), 0.0, 0.0, len(ctx.calls)),
    )


def _ended(turns: Sequence[Turn], outcome: str | None) -> list[Turn]:
    """The role's last turn is the one that ended the run, where it ended of its own accord."""
    last = max((t.seq for t in turns if t.place.fracture is not Fracture.REJECTED), default=0)
    return [replace(t, done=outcome in OWN_ACCORD and t.seq == last) for t in turns]


def groups_of(played: Sequence[Played]) -> tuple[Group, ...]:
    """Rollouts of one task as a group, in the order in which tasks first appear."""
    found: dict[str, list[Sample]] = {}
    for one in played:
        found.setdefault(one.task.name, []).append(one.sample)
    return tuple(Group(task, task, tuple(samples)) for task, samples in found.items())


def facts_of(played: Sequence[Played]) -> Mapping[UUID, RunFacts]:
    """What each rollout cost, by run."""
    costs = ((one.sample.episode.run, one.sample.episode.cost) for one in played)
    return {run: RunFacts(c.turns, c.prompt_tokens + c.completion_tokens, 0.0, c.tool_calls) for run, c in costs if c}
