"""Rollouts of real graphs on questions of a synthetic world, in this process.

The graph, the prompt format of its role, the world with its tools, the engine's sampler, segment positions and the
conversion of segments to rows are those of the platform. Only the transport is left out: there is no Celery, Postgres
or HTTP, and a graph's steps are kept in memory (`tests.graphs.in_memory_context`).

    setup = GraphSetup(graph, role="researcher", form="compact")
    played = await play(setup, Table(opened(folder, "start@1")), [PlannedRollout(task, seed), ...], How(turns=8))
    played[0].sample            # the trainer's input, an `offing_trainer.batch.TrainingRollout`

The policy answers the named role, and the rule `world` answers every other role. A rollout ends as on the platform. If
the prompt format cannot parse a completion, the call fails and the rollout is `violated`; the completion is kept in a
separate segment (`rejected`). A prompt of more than `How.context` tokens is not sent; the call fails for lack of
tokens, and the rollout is `truncated`. The reward is 1 for a correct short answer and 0 otherwise. The same seeds give
the same rollouts.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from random import Random
from typing import Any
from uuid import UUID, uuid5

from offing.core.model import EngineFailure, EngineResponse, FailureKind, InvalidOutput, Message, SampledCompletion
from offing.core.run import Budget, RunStatus, StopReason
from offing.core.step import StepDraft, StepKind
from offing.core.tokens import CompletionSpan, SpanKind, TokenTrace
from offing.core.trajectory import BoundaryReason, Outcome, classify_outcome
from offing.core.trajectory_records import RunCost, TrajectoryMetadata
from offing.kernel.segment_tracker import SegmentTracker
from offing.sdk import Graph, PromptFormat, Role, RoleReply
from offing.sdk import RuleContext as Chair
from offing.storage.training_groups import RolloutStats
from offing.tools.environment import extend_role
from offing.tools.tool import ToolFailedError, ToolOutput
from offing_trainer.batch import RolloutGroup, TrainingRollout
from offing_world.tasks import WorldTask
from tests.graphs.in_memory_context import EPOCH, NAMES, Handler, InMemoryContext
from tests.graphs.world_runs import NO_LIBRARY, SPECS, handlers, is_right
from tests.results.batch_sampling import SamplingRequest, Table
from tests.results.role_call_rows import Turn, rows_of

ENDED_BY_ROLE = frozenset({Outcome.ANSWERED, Outcome.NO_ANSWER})


@dataclass(frozen=True, slots=True)
class GraphSetup:
    """A graph and the role that is trained in it."""

    graph: Graph
    role: str
    form: str = "compact"
    outage: float = 0.0
    """Share of tool calls that fail, drawn for each call. A repeated call may succeed."""
    rules: Mapping[str, Callable[[Any, Chair], Any]] = field(default_factory=dict[str, Callable[[Any, Chair], Any]])
    """Rules for roles that are not trained, by name, in place of the rule `world`. Their inputs have a turn."""
    scores: Callable[[WorldTask, InMemoryContext, str], Mapping[str, float]] | None = None
    """Named values of a rollout with its outcome, from 0 to 1. `reward` is the reward. `None` means that the short
    answer is compared."""


@dataclass(frozen=True, slots=True)
class PlannedRollout:
    """One rollout to play."""

    task: WorldTask
    seed: int
    member: int = 0
    """Index in its group."""
    turns: int | None = None
    """Maximum turns of this rollout. `None` means that of `How`."""


@dataclass(frozen=True, slots=True)
class How:
    """Settings of all rollouts of a step."""

    turns: int = 12
    """Maximum turns of a run."""
    temperature: float = 1.0
    """0 means greedy."""
    context: int | None = None
    """Maximum tokens of a prompt. `None` means no limit."""
    most: int = 16
    """Maximum tokens of a completion."""
    max_corrections: int = 0
    """Number of times an unusable completion is sampled again with the same prompt."""


@dataclass(frozen=True, slots=True, eq=False)
class Played:
    """A finished rollout."""

    task: WorldTask
    sample: TrainingRollout
    """Its rows and its metadata with outcome and reward."""
    turns: int
    """Number of turns of the graph's loop that were started."""
    prompts: tuple[int, ...]
    """Number of tokens of each prompt that was sent, in order."""
    scores: Mapping[str, float] = field(default_factory=dict[str, float])
    """Values of `GraphSetup.scores`, or the reward alone."""

    @property
    def reward(self) -> float:
        return self.sample.metadata.reward or 0.0

    @property
    def outcome(self) -> str:
        return self.sample.metadata.outcome or ""


@dataclass(frozen=True, slots=True)
class Call:
    """One call of the trained role that is ready to be answered."""

    role: Role[Any, Any]
    form: PromptFormat[Any, Any]
    inputs: Any
    ids: tuple[int, ...]
    """The prompt."""
    chair: Chair
    call_count: int
    """Number of calls of this rollout, including this one. A completion that is sampled again counts."""


Speaker = Callable[[Call], Awaitable[TokenTrace]]
"""Answers the trained role: a policy (`speaks`), or rules that a policy imitates
(`tests.results.starting_policies`)."""


def policy_speaker(table: Table, how: How) -> Speaker:
    """Return the answerer that uses the policy of this table."""
    policy = table.policy

    async def answer(call: Call) -> TokenTrace:
        seed = _seed(call.chair, call.call_count)
        result = await table.completion(SamplingRequest(call.ids, how.most, seed, how.temperature))
        return TokenTrace(
            prompt_ids=call.ids,
            completion_ids=result.ids,
            logprobs=result.logprobs,
            token_bytes=policy.token_decoder.decode_each(result.ids),
            policy=policy.name,
            finish_reason=result.finish_reason,
            entropy=result.entropies,
            weights_sha256=policy.hashes.weights,
            tokenizer_sha256=policy.hashes.tokenizer,
            template_sha256=policy.hashes.template,
            engine_build="offing-engine",
        )

    return answer


def _seed(chair: Chair, request: int) -> int:
    return int.from_bytes(blake2b(f"{chair.seed}\0{chair.turn}\0{request}".encode(), digest_size=8).digest()) >> 1


@dataclass
class Rollout(InMemoryContext):
    """A run context that answers the trained role token by token."""

    flow: GraphSetup | None = None
    how: How = field(default_factory=How)
    speaker: Speaker | None = None
    renderer: Any = None
    turned: list[Turn] = field(default_factory=list[Turn])
    placing: SegmentTracker = field(default_factory=lambda: _placing())
    call_count: int = 0

    async def call_role(
        self, role: Role[Any, Any], inputs: Any, *, turn: int = 0, boundary: BoundaryReason | None = None
    ) -> RoleReply[Any] | EngineFailure:
        assert self.flow is not None
        if role.name != self.flow.role:
            return await super().call_role(role, inputs, turn=turn, boundary=boundary)
        self.role_inputs.append((role.name, inputs))
        role = extend_role(role)
        form = role.find_format(self.flow.form)
        assert form is not None, f"{role.name} has no form {self.flow.form}"
        messages = form.render(inputs)
        ids = await self._ids(messages)
        if self.how.context is not None and len(ids) > self.how.context:
            return self._failed(role, turn, FailureKind.BUDGET_EXHAUSTED, StopReason.TOKEN_LIMIT)
        return await self._answered(role, form, inputs, messages, ids, turn, boundary)

    async def _answered(
        self,
        role: Role[Any, Any],
        form: PromptFormat[Any, Any],
        inputs: Any,
        messages: tuple[Message, ...],
        ids: tuple[int, ...],
        turn: int,
        boundary: BoundaryReason | None,
    ) -> RoleReply[Any] | EngineFailure:
        assert self.speaker is not None
        for _ in range(1 + self.how.max_corrections):
            self.call_count += 1
            trace = await self.speaker(Call(role, form, inputs, ids, Chair(self.seed, turn), self.call_count))
            output = InvalidOutput("cut off") if trace.finish_reason == "length" else form.parse(trace.text, inputs)
            if not isinstance(output, InvalidOutput):
                answer = EngineResponse(
                    output, trace.text, trace.policy, messages, {}, trace=trace, spans=form.spans(trace.text)
                )
                return self._accepted(role, answer, trace, turn, boundary)
            self._rejected(role, messages, trace, turn)
        return self._failed(role, turn, FailureKind.INVALID_OUTPUT)

    def _accepted(
        self,
        role: Role[Any, Any],
        answer: EngineResponse,
        trace: TokenTrace,
        turn: int,
        boundary: BoundaryReason | None,
    ) -> RoleReply[Any]:
        """Record a step and its turn as the platform does."""
        position = self.placing.assign_position(role.name, answer, boundary)
        assert position is not None
        payload = {"role": role.name, "output": answer.output.model_dump(mode="json")}
        seq = self._append(StepDraft(role.step_kind, "", payload, turn=turn))
        self.placing.set_tail_seq(role.name, position, seq)
        self.turned.append(Turn(seq, turn, role.name, position, trace, answer.spans, self.how.temperature))
        return RoleReply(seq, answer.output)

    def _rejected(self, role: Role[Any, Any], messages: tuple[Message, ...], trace: TokenTrace, turn: int) -> None:
        position = self.placing.assign_rejected(role.name, SampledCompletion(trace.policy, messages, {}, trace))
        seq = self._append(StepDraft(StepKind.FAILURE, f"{role.name}: unusable", {}, turn=turn))
        whole = (CompletionSpan(SpanKind.TEXT, 0, len(trace.text)),) if trace.text else ()
        self.turned.append(Turn(seq, turn, role.name, position, trace, whole, self.how.temperature))

    def _failed(
        self, role: Role[Any, Any], turn: int, kind: FailureKind, stop: StopReason | None = None
    ) -> EngineFailure:
        self._append(StepDraft(StepKind.FAILURE, f"{role.name}: {kind}", {}, turn=turn))
        return EngineFailure(kind, str(kind), stop_reason=stop or "")

    async def _ids(self, messages: Sequence[Message]) -> tuple[int, ...]:
        """Continue from the exact tokens of an earlier turn if the prompt repeats it, as the engine does."""
        from offing_engine.chat_template import TokenPrefix

        last = max((n for n, message in enumerate(messages) if message.turn), default=None)
        known = await self.placing.find_prefix(messages[: last + 1]) if last is not None else None
        prefix = TokenPrefix(known, last + 1) if known and last is not None else None
        return self.renderer.render_prompt(
            [{"role": m.role, "content": m.text} for m in messages], prefix, {}
        ).token_ids

    async def append_steps(self, *drafts: StepDraft) -> tuple[int, ...]:
        """Keep a completion that a graph removed from its context unseen, and do not train it."""
        deleted = {draft.excluded_role_call_seq for draft in drafts if draft.excluded_role_call_seq}
        self.turned = [turn.untrained() if turn.seq in deleted else turn for turn in self.turned]
        return await super().append_steps(*drafts)


def _placing() -> SegmentTracker:
    nowhere: Any = None  # the first claim of a new run reads nothing from a journal
    return SegmentTracker(nowhere, is_first_claim=True)


async def play(graph_setup: GraphSetup, table: Table, planned: Sequence[PlannedRollout], how: How) -> list[Played]:
    """Play all rollouts concurrently and return their results in the order of `planned`."""
    return await played(graph_setup, planned, how, policy_speaker(table, how), table.policy.chat_template, table)


async def played(
    graph_setup: GraphSetup,
    planned: Sequence[PlannedRollout],
    how: How,
    speaker: Speaker,
    renderer: Any,
    table: Table | None = None,
) -> list[Played]:
    """Do the same as `play` with another answerer. `table` is where the rollouts wait for each other."""
    compiled = graph_setup.graph.build().compile()

    if table is not None:
        table.sit(len(planned))

    async def one(spec: PlannedRollout) -> Rollout:
        ctx = _context(graph_setup, spec, how, speaker, renderer)
        config = {"configurable": {"thread_id": "t"}, "recursion_limit": 10_000}
        try:
            await compiled.ainvoke(graph_setup.graph.initial_state(ctx.run), config=config, context=ctx)
        finally:
            if table is not None:
                table.leave()
        return ctx

    contexts = await asyncio.gather(*map(one, planned))
    return _results(planned, contexts)


def _context(graph_setup: GraphSetup, spec: PlannedRollout, how: How, speaker: Speaker, renderer: Any) -> Rollout:
    return Rollout(
        NO_LIBRARY,
        spec.task.question,
        Budget(max_turns=spec.turns or how.turns),
        specs=SPECS,
        handlers=_tools(graph_setup, spec),
        rules={role.name: "world" for role in map(extend_role, graph_setup.graph.roles) if "world" in role.rules},
        engines={name: _ruled(rule, spec.seed) for name, rule in graph_setup.rules.items()},
        seed=spec.seed,
        flow=graph_setup,
        how=how,
        speaker=speaker,
        renderer=renderer,
    )


def _ruled(rule: Callable[[Any, Chair], Any], seed: int) -> Callable[[Any], Any]:
    return lambda inputs: rule(inputs, Chair(seed, inputs.turn))


def _scored(spec: PlannedRollout, ctx: Rollout) -> Mapping[str, float]:
    """Return the values of a rollout. Its reward alone if there are no others."""
    assert ctx.flow is not None
    if ctx.flow.scores is None:
        return {"reward": float(is_right(spec.task, ctx))}
    return ctx.flow.scores(spec.task, ctx, classify_outcome(RunStatus.DONE, StopReason(ctx.report.stop_reason)))


def _tools(graph_setup: GraphSetup, spec: PlannedRollout) -> dict[str, Handler]:
    """The world's tools, of which the given share of calls fails. The same spec gives the same failures."""
    draws = Random(f"outage {spec.seed}")

    def failing(handler: Handler) -> Handler:
        async def called(args: Any) -> ToolOutput:
            if draws.random() < graph_setup.outage:
                raise ToolFailedError("out of order")
            return await handler(args)

        return called

    return {name: failing(handler) for name, handler in handlers(spec.task.scope["environment"], spec.seed).items()}


def _results(planned: Sequence[PlannedRollout], contexts: Sequence[Rollout]) -> list[Played]:
    scores = [_scored(spec, ctx) for spec, ctx in zip(planned, contexts, strict=True)]
    episodes = [
        _trajectory_metadata(spec, ctx, own["reward"]) for spec, ctx, own in zip(planned, contexts, scores, strict=True)
    ]
    turned = [_ended(ctx.turned, episode.outcome) for ctx, episode in zip(contexts, episodes, strict=True)]
    rows = rows_of(episodes, turned)
    return [
        Played(
            spec.task,
            TrainingRollout(episode, tuple(own)),
            ctx.turns,
            tuple(len(t.trace.prompt_ids) for t in ctx.turned),
            scored,
        )
        for spec, ctx, episode, own, scored in zip(planned, contexts, episodes, rows, scores, strict=True)
    ]


def _trajectory_metadata(spec: PlannedRollout, ctx: Rollout, reward: float) -> TrajectoryMetadata:
    """Finalize a rollout as the platform does: every ending is scored by its short answer."""
    assert ctx.flow is not None
    reason = StopReason(ctx.report.stop_reason)
    tokens = [(len(t.trace.prompt_ids), len(t.trace.completion_ids)) for t in ctx.turned]
    return TrajectoryMetadata(
        run_id=uuid5(NAMES, f"{spec.task.name}\0{spec.seed}"),
        kind="rollout",
        graph=ctx.flow.graph.name,
        graph_version=ctx.flow.graph.version,
        question=spec.task.question,
        seed=spec.seed,
        status=RunStatus.DONE,
        stop_reason=reason,
        outcome=classify_outcome(RunStatus.DONE, reason),
        reward=reward,
        created_at=EPOCH,
        started_at=EPOCH,
        ended_at=EPOCH,
        finalized_at=EPOCH,
        task_name=spec.task.name,
        member=spec.member,
        cost=RunCost(ctx.turns, sum(p for p, _ in tokens), sum(c for _, c in tokens), 0.0, 0.0, len(ctx.calls)),
    )


def _ended(turns: Sequence[Turn], outcome: str | None) -> list[Turn]:
    """Mark the role's last turn as final if the run ended with it."""
    last = max((t.seq for t in turns if t.place.boundary_reason is not BoundaryReason.REJECTED), default=0)
    return [replace(t, done=outcome in ENDED_BY_ROLE and t.seq == last) for t in turns]


def groups_of(played: Sequence[Played]) -> tuple[RolloutGroup, ...]:
    """Return the rollouts of each task as a group, in the order in which the tasks first appear."""
    results: dict[str, list[TrainingRollout]] = {}
    for one in played:
        results.setdefault(one.task.name, []).append(one.sample)
    return tuple(RolloutGroup(task, task, tuple(samples)) for task, samples in results.items())


def facts_of(played: Sequence[Played]) -> Mapping[UUID, RolloutStats]:
    """Return the usage of each rollout, by run."""
    costs = ((one.sample.metadata.run_id, one.sample.metadata.cost) for one in played)
    return {
        run: RolloutStats(c.turns, c.prompt_tokens + c.completion_tokens, 0.0, c.tool_calls) for run, c in costs if c
    }
