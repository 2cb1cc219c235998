"""Rollouts in one process: their rows, their log-probabilities, and how they end."""

import asyncio
from pathlib import Path

import numpy as np
import pytest

from offing.core.role_call import SegmentPosition
from offing.core.step import StepDraft, StepKind
from offing.core.tokens import TokenTrace
from offing.core.training_rows import SPAN_CODES, TrainingRow
from offing_engine.random_policy import create_random_policy
from offing_engine.weights import LoadedPolicy
from offing_graphs.iterresearch import graph as iterresearch
from offing_graphs.memact import graph as memact
from offing_trainer.batch import RolloutGroup
from offing_trainer.learner.local_learner import open_learner
from offing_trainer.learner.settings import LearnerSettings
from offing_trainer.views.policy_turns import ViewOptions, policy_turns
from offing_world.compact_notation import VOCABULARY
from tests.graphs.world_runs import NO_LIBRARY
from tests.results.batch_sampling import Table, opened
from tests.results.questions import Questions
from tests.results.role_call_rows import Turn
from tests.results.rollouts import Call, GraphSetup, How, PlannedRollout, Played, Rollout, groups_of, play, played
from tests.results.starting_policies import ruled
from tests.results.training import Trained

RESEARCH, EDITING = GraphSetup(iterresearch, "researcher"), GraphSetup(memact, "agent")
TASK, OTHER = Questions((2, 2), ("lookup",)).drawn(2, 0)
"""How high does the twin town of Cunoth Hugrau lie? Two look-ups, one after the other."""

SPAN_KINDS = {code: kind for kind, code in SPAN_CODES.items()}


@pytest.fixture(scope="module")
def blank(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("blank") / "policy"
    create_random_policy(folder, VOCABULARY)
    return folder


@pytest.fixture(scope="module")
def versed(blank: Path) -> Path:
    """A policy that has learned by heart how the two graphs go with the one question."""
    learner = {"learning_rate": 1e-2, "minibatches": 2, "epochs": 24}
    trained = Trained(blank, {"algorithm": "sft", "pipeline": {"selectors": []}, "learner": learner})
    policy = opened(blank, "blank@1")
    trained.step([one for graph_setup in (RESEARCH, EDITING) for one in by_rule(policy, graph_setup, count=4)], 0.0)
    return trained.exported(blank.parent / "versed")


def by_rule(policy: LoadedPolicy, graph_setup: GraphSetup, *, count: int = 1, how: How | None = None) -> list[Played]:
    planned = [PlannedRollout(TASK, seed) for seed in range(count)]
    return asyncio.run(played(graph_setup, planned, how or How(), ruled(policy, "oracle"), policy.chat_template))


def by_policy(folder: Path, graph_setup: GraphSetup, *seeds: int, how: How | None = None) -> list[Played]:
    return asyncio.run(
        play(graph_setup, Table(opened(folder, "p@7")), [PlannedRollout(TASK, seed) for seed in seeds], how or How())
    )


def words(policy: LoadedPolicy, row: TrainingRow) -> str:
    """Sampled words in brackets."""
    named = [policy.chat_template.token_name(int(id)).removeprefix("▁") for id in row.token_ids]
    return " ".join(f"[{word}]" if own else word for word, own in zip(named, row.loss_mask, strict=True))


def test_a_graph_that_builds_its_context_anew_has_a_row_a_round(blank: Path) -> None:
    policy = opened(blank, "p@1")
    (one,) = by_rule(policy, RESEARCH)
    rows = one.sample.rows
    assert [words(policy, row) for row in rows] == [
        "<|user|> ask e0 r6 r11 <|end|> <|assistant|> [t5] [r6] [e0] [<|end|>]",
        "<|user|> ask e0 r6 r11 known r6 e0 e1 t5 r6 e0 result e1 <|end|> <|assistant|> [t5] [r11] [e1] [<|end|>]",
        "<|user|> ask e0 r6 r11 known r6 e0 e1 known r11 e1 1 1 7 t5 r11 e1 result 1 1 7 <|end|> <|assistant|>"
        " [answer] [<|end|>]",
    ]
    assert [row.segment_info.boundary_reason for row in rows] == ["root", "workspace_reset", "workspace_reset"]
    assert [row.turns.turn for row in rows] == [(1,), (2,), (3,)]
    assert [row.turns.is_final for row in rows] == [(False,), (False,), (True,)]
    assert (one.reward, one.outcome, one.turns, one.prompts) == (1.0, "answered", 3, (7, 16, 24))


def test_a_graph_that_appends_has_one_row(blank: Path) -> None:
    policy = opened(blank, "p@1")
    (one,) = by_rule(policy, EDITING)
    (row,) = one.sample.rows
    assert words(policy, row) == (
        "<|user|> ask e0 r6 r11 <|end|> <|assistant|> [t5] [r6] [e0] [<|end|>]"
        " <|user|> e1 <|end|> <|assistant|> [t5] [r11] [e1] [<|end|>]"
        " <|user|> 1 1 7 <|end|> <|assistant|> [answer] [<|end|>]"
    )
    assert row.turns.is_final == (False, False, True)
    assert [SPAN_KINDS[code] for code in row.span_kind[row.loss_mask]] == ["action"] * 8 + ["answer"] * 2
    assert one.prompts == (7, 15, 25)


def test_log_probabilities_are_those_of_the_weights(versed: Path) -> None:
    learner = open_learner(versed, LearnerSettings(cpu_threads=1, device="cpu"))
    for graph_setup in (RESEARCH, EDITING):
        result = by_policy(versed, graph_setup, *range(6))
        rows = [row for one in result for row in one.sample.rows]
        assert max(one.turns for one in result) > 2, "the policy is too weak to try this"
        behavior = np.concatenate([row.behavior_logprobs[row.loss_mask] for row in rows])
        seen = learner.forward(rows)
        assert np.abs(behavior - seen.logprobs).max() < 1e-4
        assert np.abs(np.concatenate([row.entropy[row.loss_mask] for row in rows]) - seen.entropy).max() < 2e-3
        assert {name for row in rows for name in row.turns.policy} == {"p@7"}


def test_what_is_drawn_depends_on_the_seed_and_not_on_the_company(versed: Path) -> None:
    together = by_policy(versed, RESEARCH, *range(6))
    alone = [one for seed in range(6) for one in by_policy(versed, RESEARCH, seed)]
    ids = [[row.token_ids.tolist() for row in one.sample.rows] for one in together]
    assert ids == [[row.token_ids.tolist() for row in one.sample.rows] for one in alone]


def test_greedy_rollouts_of_a_task_are_the_same_for_any_seed(versed: Path) -> None:
    result = by_policy(versed, RESEARCH, 1, 2, 3, how=How(temperature=0.0))
    ids = [[row.token_ids.tolist() for row in one.sample.rows] for one in result]
    assert ids[0] == ids[1] == ids[2]


def test_a_prompt_over_the_limit_is_not_asked_and_ends_the_rollout_as_truncated(blank: Path) -> None:
    policy = opened(blank, "p@1")
    for graph_setup in (RESEARCH, EDITING):
        (one,) = by_rule(policy, graph_setup, how=How(context=15))
        assert (one.outcome, one.sample.metadata.stop_reason, one.reward) == ("truncated", "token_limit", 0.0)
        assert max(one.prompts) <= 15
        assert not any(done for row in one.sample.rows for done in row.turns.is_final)
    (whole,) = by_rule(policy, RESEARCH, how=How(context=24))
    assert whole.outcome == "answered"


def test_the_turn_budget_makes_a_graph_answer_and_the_rollout_truncated(blank: Path) -> None:
    (one,) = by_rule(opened(blank, "p@1"), RESEARCH, how=How(turns=2))
    assert (one.outcome, one.reward, one.turns) == ("truncated", 0.0, 2)


def test_what_the_form_cannot_read_ends_the_rollout_as_violated_and_is_kept_aside(blank: Path) -> None:
    policy = opened(blank, "p@1")
    (one,) = scripted(policy, "t5 r6 e0", "e0 e0")
    assert (one.outcome, one.reward) == ("violated", 0.0)
    assert [row.segment_info.boundary_reason for row in one.sample.rows] == ["root", "rejected"]
    assert words(policy, one.sample.rows[1]).endswith("[e0] [e0] [<|end|>]")
    (rendered,) = policy_turns(ViewOptions(), [RolloutGroup("g", "t", (one.sample,))])
    assert [row.segment_info.boundary_reason for row in rendered.rollouts[0].rows] == ["root"]


def test_what_cannot_be_read_may_be_asked_for_again(blank: Path) -> None:
    policy = opened(blank, "p@1")
    (one,) = scripted(policy, "e0", "t5 r6 e0", "e0", "t5 r11 e1", "answer", how=How(max_corrections=1))
    assert (one.outcome, one.reward, one.turns) == ("answered", 1.0, 3)
    boundaries = ["rejected", "root", "rejected", "workspace_reset", "workspace_reset"]
    assert [row.segment_info.boundary_reason for row in one.sample.rows] == boundaries


async def test_what_a_graph_took_out_of_its_context_unseen_is_not_trained() -> None:
    trace = TokenTrace((1,), (2,), (-1.0,), (b"a",), "p@1", "stop")
    turns = [Turn(seq, seq, "agent", SegmentPosition(0, seq - 1), trace, (), 1.0) for seq in (1, 2)]
    ctx = Rollout(NO_LIBRARY, TASK.question, turned=turns)
    await ctx.append_steps(StepDraft(StepKind.MEMORY, "discard", excluded_role_call_seq=2))
    assert [turn.trainable for turn in ctx.turned] == ["rl", "none"]


def test_rollouts_of_a_task_are_a_group(blank: Path) -> None:
    planned = [PlannedRollout(task, seed, seed) for task in (TASK, OTHER) for seed in range(2)]
    policy = opened(blank, "p@1")
    result = groups_of(asyncio.run(played(RESEARCH, planned, How(), ruled(policy, "oracle"), policy.chat_template)))
    assert [(group.task, len(group.rollouts)) for group in result] == [(TASK.name, 2), (OTHER.name, 2)]
    assert len({s.metadata.run_id for group in result for s in group.rollouts}) == 4


def scripted(policy: LoadedPolicy, *message: str, how: How | None = None) -> list[Played]:
    """One rollout of the researcher in which these words are written one after the other."""
    left, (end,) = iter(message), policy.end_ids

    async def speaker(call: Call) -> TokenTrace:
        ids = (*policy.chat_template.encode(next(left)), end)
        return TokenTrace(call.ids, ids, (-1.0,) * len(ids), policy.token_decoder.decode_each(ids), "p@1", "stop")

    return asyncio.run(played(RESEARCH, [PlannedRollout(TASK, 0)], how or How(), speaker, policy.chat_template))
