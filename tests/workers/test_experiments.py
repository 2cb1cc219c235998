"""Experiments on a real database: pinned, interrupted and continued, judged in both orders, and used by the gate."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from offing.core.errors import Conflict, InvalidInput, NotFound
from offing.core.judge_budget import NO_JUDGE_LIMIT, JudgeBudget
from offing.core.model import EngineConfig
from offing.core.run import Budget, RunStatus, StopReason
from offing.models.policy_folder import PolicyHashes
from offing.sdk import Graph
from offing.services import experiments, policies, policy_files, promotion, tasks
from offing.services.experiment_judging import judge_reports
from offing.services.experiment_summary import ComparisonVerdict
from offing.services.experiments import (
    Configuration,
    Experiment,
    ExperimentRequest,
    ExperimentResults,
)
from offing.services.graphs import open_registry
from offing.services.policies import PolicyRegistration
from offing.services.promotion_gate import GateRules
from offing.services.rollouts import ScorerSpec
from offing.services.tasks import TaskSpec
from offing.storage import training_events
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database
from offing.storage.rollouts import RolloutRow
from offing_workers.rollout_finalizer import finalize_overdue
from tests.documents import ingest_text
from tests.model_provider import Completion, Fault, Received, Reply, WireServer
from tests.workers.processes import ALL_GRAPHS
from tests.workers.rollout_batches import JUDGE, Collector, Sql, a_task, wait_until_finalized

GRAPHS: dict[str, Graph] = dict(open_registry(ALL_GRAPHS))

QUESTIONS = 10

BILLED_JUDGE: dict[str, Any] = {**JUDGE, "options": {**JUDGE["options"], "usage": {"prompt_tokens": 10}}}
"""A judge whose calls count."""

Answer = Callable[[RolloutRow, int], str]
"""What a configuration answers to a question, by the number of the configuration."""


def right_only_in_the_second(row: RolloutRow, number: int) -> str:
    return f"Town {row.question.split()[-1]}" if number == 1 else "Somewhere"


@dataclass
class Laboratory:
    """Creates experiments and answers their questions in place of the workers."""

    collector: Collector
    names: Sequence[str] = ("first", "second")
    ended: set[UUID] = field(default_factory=set[UUID])

    @property
    def database(self) -> Database:
        return self.collector.database

    async def create(self, *, again: bool = False, **more: Any) -> Experiment:
        specs = more.pop("specs", [a_task(f"Which town is {n}", answers=[f"Town {n}"]) for n in range(QUESTIONS)])
        stored = await tasks.store_tasks(self.database, LOCAL_TENANT, "towns", specs)
        configurations = more.pop("configurations", None) or [
            Configuration(name, "counting", budget=Budget(2)) for name in self.names
        ]
        request = ExperimentRequest("towns", stored.task_ids, configurations, **more)
        return await experiments.create_experiment(self.database, LOCAL_TENANT, request, graphs=GRAPHS, again=again)

    async def start(self, experiment: Experiment, judge_budget: JudgeBudget | None = None) -> list[UUID]:
        notifier = self.collector.notifier
        return await experiments.start_batches(
            self.database, notifier, LOCAL_TENANT, experiment, graphs=GRAPHS, judge_budget=judge_budget
        )

    async def answer(self, batch_ids: Sequence[UUID], answer: Answer) -> None:
        """End every run that has not ended."""
        for row in await self.collector.members():
            if row.run_id in self.ended or row.batch_id not in batch_ids:
                continue
            text = answer(row, batch_ids.index(row.batch_id))
            await self.collector.end(row.run_id, text)
            await wait_until_finalized(self.collector, row.run_id)
            self.ended.add(row.run_id)

    async def finish(self, experiment: Experiment) -> ExperimentResults:
        await experiments.store_results(self.database, LOCAL_TENANT, experiment.row.id)
        await judge_reports(self.database, LOCAL_TENANT, experiment, lambda done, total: None)
        await experiments.complete_experiment(self.database, LOCAL_TENANT, experiment.row.id)
        return await experiments.load_results(self.database, LOCAL_TENANT, experiment.row.id)

    async def measure(self, answer: Answer = right_only_in_the_second, **more: Any) -> ExperimentResults:
        experiment = await self.create(**more)
        await self.answer(await self.start(experiment, more.get("judge_budget", NO_JUDGE_LIMIT)), answer)
        return await self.finish(experiment)


@pytest.fixture
def laboratory(collector: Collector) -> Laboratory:
    return Laboratory(collector)


async def test_two_configurations_are_compared_on_the_same_questions_with_the_same_seeds(
    laboratory: Laboratory,
) -> None:
    results = await laboratory.measure()
    metric = results.summarize().metrics[0]
    assert [one.estimate and one.estimate.mean for one in metric.cells] == [0.0, 1.0]
    assert metric.cells[1].verdict is ComparisonVerdict.BETTER
    rows = await laboratory.collector.members()
    seeds = [{(row.task_id, row.seed) for row in rows if row.batch_id == batch} for batch in {r.batch_id for r in rows}]
    assert seeds[0] == seeds[1]
    assert len(seeds[0]) == QUESTIONS


async def test_the_same_request_continues_the_experiment_and_another_request_does_not(laboratory: Laboratory) -> None:
    first = await laboratory.create()
    batches = await laboratory.start(first)
    again = await laboratory.create()
    assert again.row.id == first.row.id
    assert await laboratory.start(again) == batches
    assert len(await laboratory.collector.members()) == 2 * QUESTIONS
    others = [await laboratory.create(seed=1), await laboratory.create(name="other"), await laboratory.create(
        scorers=[ScorerSpec("token_f1")])]  # fmt: skip
    assert len({first.row.id, *(one.row.id for one in others)}) == 4


async def test_a_complete_experiment_is_returned_and_measured_again_only_on_request(laboratory: Laboratory) -> None:
    results = await laboratory.measure()
    id = results.experiment.row.id
    assert (await laboratory.create()).row.id == id
    again = await laboratory.create(again=True)
    assert again.row.id != id
    assert (await laboratory.create(again=True)).row.id == again.row.id  # it is not complete
    listed, following = await experiments.list_experiments(laboratory.database, LOCAL_TENANT, None, 1)
    assert ([one.row.id for one in listed], following) == ([again.row.id], again.row.id)


async def test_results_wait_for_all_rollouts_and_are_stored_once(laboratory: Laboratory) -> None:
    experiment = await laboratory.create()
    id = experiment.row.id
    with pytest.raises(Conflict, match="were not requested"):
        await experiments.store_results(laboratory.database, LOCAL_TENANT, id)
    batches = await laboratory.start(experiment)
    with pytest.raises(Conflict, match="still running"):
        await experiments.store_results(laboratory.database, LOCAL_TENANT, id)
    with pytest.raises(Conflict, match=f"offing evaluate resume {id}"):
        await experiments.load_results(laboratory.database, LOCAL_TENANT, id)
    await laboratory.answer(batches, right_only_in_the_second)
    await experiments.store_results(laboratory.database, LOCAL_TENANT, id)
    results = await laboratory.finish(experiment)
    assert len(results.results) == 2 * QUESTIONS


async def test_each_metric_leaves_out_the_questions_that_it_cannot_score(laboratory: Laboratory) -> None:
    evidence = [{"quote": "Town 3"}]
    specs = [a_task("Which town is 3", answers=["Town 3"], evidence=evidence)]
    specs += [a_task(f"Which town is {n}", answers=[f"Town {n}"]) for n in range(3)]
    specs += [a_task("Which town is nowhere", answers=[]), TaskSpec(question="What is a town?")]
    results = await laboratory.measure(specs=specs)
    metrics = {metric.name: metric for metric in results.summarize().metrics}
    counts = {name: metric.cells[0].estimate and metric.cells[0].estimate.count for name, metric in metrics.items()}
    assert counts["exact_match"] == counts["token_f1"] == 5
    assert counts["citation_recall"] == 2  # without an answer, nothing is to be cited
    assert (metrics["exact_match"].inapplicable, metrics["citation_recall"].inapplicable) == (1, 4)


async def test_a_refusal_and_a_fault_of_the_platform_are_counted_apart(laboratory: Laboratory, sql: Sql) -> None:
    specs = [a_task(f"Which town is {n}", answers=[f"Town {n}"] if n else []) for n in range(3)]
    experiment = await laboratory.create(specs=specs)
    batches = await laboratory.start(experiment)
    await laboratory.answer(batches[:1], lambda row, _: "Not answerable" if row.question.endswith("0") else "Town 1")
    sql("update app.rollout_group set max_attempts = 1")
    for row in await laboratory.collector.members():
        if row.batch_id == batches[1]:
            fault = row.question.endswith("1")
            status = RunStatus.FAILED if fault else RunStatus.DONE
            reason = StopReason.PROVIDER_DOWN if fault else StopReason.NOTHING_FOUND
            await laboratory.collector.end(row.run_id, None if fault else "Nothing.", status=status, reason=reason)
            await wait_until_finalized(laboratory.collector, row.run_id)
    first, second = (await laboratory.finish(experiment)).summarize().answers
    assert (first.answered, first.right_abstentions, first.wrong_answers, first.failed) == (2, 1, 0, 0)
    assert (second.answered, second.unanswered, second.right_abstentions, second.failed) == (0, 1, 1, 1)


async def test_the_scope_of_a_configuration_is_added_to_that_of_its_questions(
    laboratory: Laboratory, sql: Sql, tmp_path: Path
) -> None:
    await ingest_text(laboratory.database, LOCAL_TENANT, tmp_path / "towns", "# Towns\n\nTown 1 is by the sea.\n")
    configurations = [Configuration("off", "counting"), Configuration("on", "counting", scope={"web": True})]
    specs = [a_task("Which town is 1", scope={"collections": ["towns"]})]
    await laboratory.start(await laboratory.create(configurations=configurations, specs=specs))
    scopes = [scope for (scope,) in sql("select scope from app.run order by scope ? 'web'")]
    assert scopes == [{"collections": ["towns"]}, {"collections": ["towns"], "web": True}]


async def test_unusable_requests_name_the_field(laboratory: Laboratory) -> None:
    requests: list[tuple[dict[str, Any], str]] = [
        ({"configurations": [Configuration("a", "counting")] * 2}, "configurations"),
        ({"configurations": [Configuration("a", "counting")], "judge": EngineConfig(engine="scripted")}, "judge"),
        ({"judge": EngineConfig(engine="extractive")}, "judge"),
        ({"scorers": [ScorerSpec("report_rubric", 1, {"engine": "scripted"})]}, "scorers"),
        ({"scorers": [ScorerSpec("exact_match", -1)]}, "scorers"),
        ({"specs": [TaskSpec(question="What is a town?")], "scorers": [ScorerSpec("exact_match")]}, "scorers"),
    ]
    for more, field_name in requests:
        with pytest.raises(InvalidInput) as error:
            await laboratory.create(**more)
        assert error.value.field == field_name


async def test_another_tenant_sees_nothing_of_an_experiment(laboratory: Laboratory, sql: Sql) -> None:
    results = await laboratory.measure()
    other = UUID(int=9)
    sql("insert into app.tenant (id, name) values (%s, 'other')", other)
    with pytest.raises(NotFound):
        await experiments.get_experiment(laboratory.database, other, results.experiment.row.id)
    assert await experiments.list_experiments(laboratory.database, other, None, 10) == ([], None)


# The judge ---------------------------------------------------------------------------------------------------------


def prompt_of(request: Received) -> str:
    return "\n".join(message["content"] for message in request.body["messages"])


def decide(verdict: str) -> Completion:
    return Completion(json.dumps({"reason": "because", "verdict": verdict}))


def prefers_towns_or_the_first(request: Received) -> Reply:
    """A judge that is right about even towns, and otherwise prefers the first report."""
    prompt = prompt_of(request)
    number = int(prompt.partition("Which town is ")[2].split()[0])
    first = prompt.partition("First report:")[2].partition("Second report:")[0]
    if number % 2:
        return decide("first")
    return decide("first" if "Town" in first else "second")


def judge_at(server: WireServer) -> EngineConfig:
    return EngineConfig(engine="litellm", model="openai/judge", api_base=server.url)


@pytest.fixture(autouse=True)
def _with_a_provider_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")


async def test_a_judge_that_prefers_a_position_gives_ties_and_its_bias_is_reported(laboratory: Laboratory) -> None:
    async with WireServer(prefers_towns_or_the_first) as server:
        results = await laboratory.measure(judge=judge_at(server))
    (judged_pairs,) = results.summarize().comparisons
    assert (judged_pairs.wins, judged_pairs.ties, judged_pairs.losses, judged_pairs.failed) == (5, 5, 0, 0)
    assert (judged_pairs.agreement, judged_pairs.first_preferred) == (0.5, 0.75)
    assert judged_pairs.verdict is ComparisonVerdict.BETTER
    assert len(server.requests) == 2 * QUESTIONS
    assert all("Text between a line `data <code>`" in prompt_of(request) for request in server.requests)


async def test_an_interrupted_judge_is_not_asked_again_for_what_it_has_judged(laboratory: Laboratory) -> None:
    calls = 0

    def fails_after_six(request: Received) -> Reply:
        nonlocal calls
        calls += 1
        return prefers_towns_or_the_first(request) if calls <= 6 else Fault(401, "no more")

    async with WireServer(fails_after_six) as server:
        experiment = await laboratory.create(judge=judge_at(server))
        await laboratory.answer(await laboratory.start(experiment, NO_JUDGE_LIMIT), right_only_in_the_second)
        await experiments.store_results(laboratory.database, LOCAL_TENANT, experiment.row.id)
        await judge_reports(laboratory.database, LOCAL_TENANT, experiment, lambda done, total: None)
        server.respond = prefers_towns_or_the_first
        before = len(server.requests)
        results = await laboratory.finish(experiment)
    assert len(server.requests) - before == 2 * QUESTIONS - 6
    assert len([row for row in results.judgments if row.verdict is not None]) == 2 * QUESTIONS


async def test_a_judge_that_fails_is_counted_and_gives_no_verdict(laboratory: Laboratory) -> None:
    async with WireServer(lambda _: Fault(401, "no")) as server:
        results = await laboratory.measure(judge=judge_at(server))
    (judged_pairs,) = results.summarize().comparisons
    assert (judged_pairs.failed, judged_pairs.wins, judged_pairs.net_wins) == (QUESTIONS, 0, None)
    assert "authentication_failed" in results.judgments[0].reason


async def test_the_judge_s_cost_counts_towards_the_daily_spending_limit(laboratory: Laboratory, sql: Sql) -> None:
    sql("update app.tenant set max_daily_spend_usd = 0")
    async with WireServer(prefers_towns_or_the_first) as server:
        judge = judge_at(server).model_copy(update={"model": "openai/gpt-4o-mini"})
        results = await laboratory.measure(judge=judge)
    assert server.requests == []
    assert all("tenant spend limit" in row.reason for row in results.judgments)
    sql("update app.tenant set max_daily_spend_usd = null")
    async with WireServer(prefers_towns_or_the_first) as server:
        judge = judge_at(server).model_copy(update={"model": "openai/gpt-4o-mini"})
        results = await laboratory.measure(judge=judge)
    ((charged,),) = sql("select used_usd from app.daily_spend")
    assert float(charged) == pytest.approx(sum(row.cost_usd for row in results.judgments))
    assert charged > 0


async def test_a_judge_that_has_spent_its_calls_stops_the_experiment_and_verdicts_are_kept(
    laboratory: Laboratory, sql: Sql
) -> None:
    budget = JudgeBudget(max_calls=5)
    async with WireServer(prefers_towns_or_the_first) as server:
        experiment = await laboratory.create(judge=judge_at(server), judge_budget=budget)
        await laboratory.answer(await laboratory.start(experiment, budget), right_only_in_the_second)
        with pytest.raises(Conflict, match="judges of second have spent their budget"):
            await laboratory.finish(experiment)
        with pytest.raises(Conflict, match="judges of second have spent their budget"):
            await laboratory.finish(experiment)
    assert len(server.requests) == 5
    assert sql("select count(*) from app.experiment_judgment where verdict is not null") == [(5,)]
    assert sql("select judge_calls from app.rollout_batch order by name") == [(0,), (5,)]
    assert sql("select completed_at from app.experiment") == [(None,)]


async def test_another_judge_budget_is_another_experiment(laboratory: Laboratory) -> None:
    async with WireServer(prefers_towns_or_the_first) as server:
        budgets = (JudgeBudget(), JudgeBudget(max_calls=5), JudgeBudget(max_calls=5), JudgeBudget(max_calls=6))
        created = [await laboratory.create(judge=judge_at(server), judge_budget=budget) for budget in budgets]
    ids = [one.row.id for one in created]
    assert ids[1] == ids[2]
    assert len(set(ids)) == 3


async def test_an_experiment_whose_scorers_have_spent_their_budget_is_never_complete(
    laboratory: Laboratory, sql: Sql
) -> None:
    budget, collector = JudgeBudget(max_calls=1), laboratory.collector
    scorers = [ScorerSpec("rubric_judge", 1.0, {"engine": BILLED_JUDGE})]
    specs = [a_task(f"Which town is {n}") for n in range(2)]
    experiment = await laboratory.create(scorers=scorers, judge_budget=budget, specs=specs)
    await laboratory.start(experiment, budget)
    for row in await collector.members():
        await collector.end(row.run_id, "an answer")
        await wait_until_finalized(collector, row.run_id)
    sql("update app.rollout set due_at = now() - interval '1 hour' where finalized_at is null returning run_id")
    await finalize_overdue(collector.database, collector.notifier, 0)
    with pytest.raises(Conflict, match="judges of first have spent their budget"):
        await experiments.store_results(laboratory.database, LOCAL_TENANT, experiment.row.id)
    assert sql("select judge_calls, stop_reason from app.rollout_batch") == [(1, "judge_budget")] * 2


async def test_a_resumed_experiment_keeps_the_judge_budget_of_its_batches(laboratory: Laboratory, sql: Sql) -> None:
    async with WireServer(prefers_towns_or_the_first) as server:
        experiment = await laboratory.create(judge=judge_at(server), judge_budget=JudgeBudget(max_calls=5))
        with pytest.raises(Conflict, match="its judge budget is not stored"):
            await laboratory.start(experiment)
        await laboratory.start(experiment, JudgeBudget(max_calls=5))
        sql("update app.experiment_configuration set batch_id = null where number = 1")
        sql("update app.rollout_batch set idempotency_key = 'lost' where name like 'second%%'")
        await laboratory.start(experiment)
    assert sql("select judge_max_calls from app.rollout_batch") == [(5,)] * 3


# The gate ----------------------------------------------------------------------------------------------------------


@pytest.fixture
async def versions(laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch) -> list[Configuration]:
    """The active version planner@1 and the candidate planner@2, each in a configuration."""

    async def accept(*_: object) -> None: ...

    monkeypatch.setattr(policy_files, "check_files", accept)
    for number in (1, 2):
        hashes = PolicyHashes(f"s{number}", "t", "p")
        registration = PolicyRegistration(name="speaker", kind="full", uri=f"/p/{number}", hashes=hashes)
        await policies.register_version(laboratory.database, LOCAL_TENANT, registration)
    await promotion.promote(laboratory.database, LOCAL_TENANT, "speaker@1")
    role = GRAPHS["counting"].roles[0].name
    return [
        Configuration(f"v{number}", "counting", {role: EngineConfig(engine="policy", model=f"speaker@{number}")})
        for number in (1, 2)
    ]


async def test_a_candidate_that_is_better_in_an_experiment_is_promoted(
    laboratory: Laboratory, versions: list[Configuration]
) -> None:
    results = await laboratory.measure(configurations=versions)
    row, gate = await promotion.promote(
        laboratory.database, LOCAL_TENANT, "speaker@2", GateRules(confident=True),
        experiment_id=results.experiment.row.id,
    )  # fmt: skip
    assert gate is not None
    assert (row.state, gate.comparison.pairs, gate.comparison.difference) == ("active", QUESTIONS, 1.0)


async def test_a_candidate_that_is_worse_is_rejected_by_the_named_metric_and_that_is_recorded(
    laboratory: Laboratory, versions: list[Configuration]
) -> None:
    results = await laboratory.measure(
        lambda row, number: f"Town {row.question.split()[-1]}" if number == 0 else "Elsewhere",
        configurations=versions,
    )
    id = results.experiment.row.id
    with pytest.raises(Conflict, match="the difference to the active version is -1"):
        await promotion.promote(
            laboratory.database, LOCAL_TENANT, "speaker@2", GateRules(), experiment_id=id, metric="token_f1"
        )
    version = await policies.get_version_by_name(laboratory.database, LOCAL_TENANT, "speaker@2")
    async with laboratory.database.transaction(LOCAL_TENANT) as connection:
        (event,) = await training_events.list_events(connection, policy_version_id=version.id)
    assert (event.kind, event.detail["experiment"], event.detail["metric"]) == ("gate", str(id), "token_f1")
    assert (event.detail["passed"], version.state) == (False, "candidate")


async def test_the_gate_rejects_an_experiment_that_did_not_compare_these_versions(
    laboratory: Laboratory, versions: list[Configuration]
) -> None:
    async def run_gate(experiment_id: UUID, metric: str | None = None) -> object:
        return await promotion.run_gate(
            laboratory.database, LOCAL_TENANT, "speaker@2", GateRules(), experiment_id=experiment_id, metric=metric
        )

    unrelated = await laboratory.measure()
    with pytest.raises(InvalidInput, match=r"0 configurations of the experiment use speaker@2"):
        await run_gate(unrelated.experiment.row.id)
    longer = Configuration("v2", "counting", versions[1].engines, Budget(5))
    other = await laboratory.measure(configurations=[versions[0], longer])
    with pytest.raises(InvalidInput, match="also differ in their budget"):
        await run_gate(other.experiment.row.id)
    open_experiment = await laboratory.create(configurations=versions)
    with pytest.raises(Conflict, match="is not complete"):
        await run_gate(open_experiment.row.id)
    same = await laboratory.measure(configurations=versions)
    with pytest.raises(InvalidInput, match="no metric 'rouge'"):
        await run_gate(same.experiment.row.id, "rouge")
    with pytest.raises(InvalidInput, match="not evaluated on the same tasks"):
        await promotion.run_gate(laboratory.database, LOCAL_TENANT, "speaker@2", GateRules(), metric="token_f1")


async def test_what_is_active_is_resolved_when_the_experiment_is_created(
    laboratory: Laboratory, versions: list[Configuration]
) -> None:
    role = next(iter(versions[0].engines))
    newest = [Configuration("active", "counting", {role: EngineConfig(engine="policy", model="speaker@active")})]
    first = await laboratory.create(configurations=newest)
    await promotion.promote(laboratory.database, LOCAL_TENANT, "speaker@2")
    second = await laboratory.create(configurations=newest)
    assert [one.configurations[0].engines[role]["model"] for one in (first, second)] == ["speaker@1", "speaker@2"]
    assert first.row.id != second.row.id
