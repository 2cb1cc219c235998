"""Rollouts in one process: their rows, their log-probabilities, and how they end."""

import asyncio
from pathlib import Path

import numpy as np
import pytest

from offing.core.role_call import SegmentPosition
from offing.core.rows import SPAN_CODES, TrainRow
from offing.core.step import StepDraft, StepKind
from offing.core.tokens import TokenTrace
from offing.world.compact import VOCABULARY
from offing_engine.small import new_policy
from offing_engine.weights import Policy
from offing_graphs.iterresearch import graph as iterresearch
from offing_graphs.memact import graph as memact
from offing_trainer.batch import Group
from offing_trainer.learner.local import open_learner
from offing_trainer.learner.settings import Settings
from offing_trainer.views.policy_turns import Shown, policy_turns
from tests.graphs.world_trials import NO_LIBRARY
from tests.results.drawing import Table, opened
from tests.results.play import Call, Flow, How, Played, Rollout, Seat, groups_of, play, played
from tests.results.questions import Questions
from tests.results.recorded import Turn
from tests.results.taught import ruled
from tests.results.training import Trained

RESEARCH, EDITING = Flow(iterresearch, "researcher"), Flow(memact, "agent")
TASK, OTHER = Questions((2, 2), ("lookup",)).drawn(2, 0)
"""How high does the twin town of Cunoth Hugrau lie? Two look-ups, one after the other."""

SPAN_KINDS = {code: kind for kind, code in SPAN_CODES.items()}


@pytest.fixture(scope="module")
def blank(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("blank") / "policy"
    new_policy(folder, VOCABULARY)
    return folder


@pytest.fixture(scope="module")
def versed(blank: Path) -> Path:
    """A policy that has learned by heart how the two flows go with the one question."""
    learner = {"learning_rate": 1e-2, "minibatches": 2, "epochs": 24}
    trained = Trained(blank, {"algorithm": "sft", "chain": {"select": []}, "learner": learner})
    policy = opened(blank, "blank@1")
    trained.step([one for flow in (RESEARCH, EDITING) for one in by_rule(policy, flow, count=4)], 0.0)
    return trained.exported(blank.parent / "versed")


def by_rule(policy: Policy, flow: Flow, *, count: int = 1, how: How | None = None) -> list[Played]:
    seats = [Seat(TASK, seed) for seed in range(count)]
    return asyncio.run(played(flow, seats, how or How(), ruled(policy, "oracle"), policy.renderer))


def by_policy(folder: Path, flow: Flow, *seeds: int, how: How | None = None) -> list[Played]:
    return asyncio.run(play(flow, Table(opened(folder, "p@7")), [Seat(TASK, seed) for seed in seeds], how or How()))


def words(policy: Policy, row: TrainRow) -> str:
    """Sampled words in brackets."""
    named = [policy.renderer.token(int(id)).removeprefix("▁") for id in row.token_ids]
    return " ".join(f"[{word}]" if own else word for word, own in zip(named, row.loss_mask, strict=True))


def test_a_flow_that_builds_its_context_anew_has_a_row_a_round(blank: Path) -> None:
    policy = opened(blank, "p@1")
    (one,) = by_rule(policy, RESEARCH)
    rows = one.sample.rows
    assert [words(policy, row) for row in rows] == [
        "<|user|> ask e0 r6 r11 <|end|> <|assistant|> [t5] [r6] [e0] [<|end|>]",
        "<|user|> ask e0 r6 r11 known r6 e0 e1 t5 r6 e0 result e1 <|end|> <|assistant|> [t5] [r11] [e1] [<|end|>]",
        "<|user|> ask e0 r6 r11 known r6 e0 e1 known r11 e1 1 1 7 t5 r11 e1 result 1 1 7 <|end|> <|assistant|>"
        " [answer] [<|end|>]",
    ]
    assert [row.head.fracture for row in rows] == ["root", "workspace_reset", "workspace_reset"]
    assert [row.turns.number for row in rows] == [(1,), (2,), (3,)]
    assert [row.turns.done for row in rows] == [(False,), (False,), (True,)]
    assert (one.reward, one.outcome, one.turns, one.prompts) == (1.0, "answered", 3, (7, 16, 24))


def test_a_flow_that_appends_has_one_row(blank: Path) -> None:
    policy = opened(blank, "p@1")
    (one,) = by_rule(policy, EDITING)
    (row,) = one.sample.rows
    assert words(policy, row) == (
        "<|user|> ask e0 r6 r11 <|end|> <|assistant|> [t5] [r6] [e0] [<|end|>]"
        " <|user|> e1 <|end|> <|assistant|> [t5] [r11] [e1] [<|end|>]"
        " <|user|> 1 1 7 <|end|> <|assistant|> [answer] [<|end|>]"
    )
    assert row.turns.done == (False, False, True)
    assert [SPAN_KINDS[code] for code in row.span_kind[row.loss_mask]] == ["action"] * 8 + ["answer"] * 2
    assert one.prompts == (7, 15, 25)


def test_log_probabilities_are_those_of_the_weights(versed: Path) -> None:
    learner = open_learner(versed, Settings(threads=1, device="cpu"))
    for flow in (RESEARCH, EDITING):
        found = by_policy(versed, flow, *range(6))
        rows = [row for one in found for row in one.sample.rows]
        assert max(one.turns for one in found) > 2, "the policy is too weak to try this"
        behaviour = np.concatenate([row.behaviour_logprobs[row.loss_mask] for row in rows])
        seen = learner.forward(rows)
        assert np.abs(behaviour - seen.logp).max() < 1e-4
        assert np.abs(np.concatenate([row.entropy[row.loss_mask] for row in rows]) - seen.entropy).max() < 2e-3
        assert {name for row in rows for name in row.turns.policy} == {"p@7"}


def test_what_is_drawn_depends_on_the_seed_and_not_on_the_company(versed: Path) -> None:
    together = by_policy(versed, RESEARCH, *range(6))
    alone = [one for seed in range(6) for one in by_policy(versed, RESEARCH, seed)]
    ids = [[row.token_ids.tolist() for row in one.sample.rows] for one in together]
    assert ids == [[row.token_ids.tolist() for row in one.sample.rows] for one in alone]


def test_greedy_rollouts_of_a_task_are_the_same_whatever_the_seed(versed: Path) -> None:
    found = by_policy(versed, RESEARCH, 1, 2, 3, how=How(temperature=0.0))
    ids = [[row.token_ids.tolist() for row in one.sample.rows] for one in found]
    assert ids[0] == ids[1] == ids[2]


def test_a_prompt_over_the_limit_is_not_asked_and_ends_the_rollout_as_truncated(blank: Path) -> None:
    policy = opened(blank, "p@1")
    for flow in (RESEARCH, EDITING):
        (one,) = by_rule(policy, flow, how=How(context=15))
        assert (one.outcome, one.sample.episode.stop_reason, one.reward) == ("truncated", "token_limit", 0.0)
        assert max(one.prompts) <= 15
        assert not any(done for row in one.sample.rows for done in row.turns.done)
    (whole,) = by_rule(policy, RESEARCH, how=How(context=24))
    assert whole.outcome == "answered"


def test_the_turn_budget_makes_a_flow_answer_and_the_rollout_truncated(blank: Path) -> None:
    (one,) = by_rule(opened(blank, "p@1"), RESEARCH, how=How(turns=2))
    assert (one.outcome, one.reward, one.turns) == ("truncated", 0.0, 2)


def test_what_the_form_cannot_read_ends_the_rollout_as_violated_and_is_kept_aside(blank: Path) -> None:
    policy = opened(blank, "p@1")
    (one,) = scripted(policy, "t5 r6 e0", "e0 e0")
    assert (one.outcome, one.reward) == ("violated", 0.0)
    assert [row.head.fracture for row in one.sample.rows] == ["root", "rejected"]
    assert words(policy, one.sample.rows[1]).endswith("[e0] [e0] [<|end|>]")
    (shown,) = policy_turns(Shown(), [Group("g", "t", (one.sample,))])
    assert [row.head.fracture for row in shown.samples[0].rows] == ["root"]


def test_what_cannot_be_read_may_be_asked_for_again(blank: Path) -> None:
    policy = opened(blank, "p@1")
    (one,) = scripted(policy, "e0", "t5 r6 e0", "e0", "t5 r11 e1", "answer", how=How(reasks=1))
    assert (one.outcome, one.reward, one.turns) == ("answered", 1.0, 3)
    fractures = ["rejected", "root", "rejected", "workspace_reset", "workspace_reset"]
    assert [row.head.fracture for row in one.sample.rows] == fractures


async def test_what_a_flow_took_out_of_its_context_unseen_is_not_trained() -> None:
    trace = TokenTrace((1,), (2,), (-1.0,), (b"a",), "p@1", "stop")
    turns = [Turn(seq, seq, "agent", SegmentPosition(0, seq - 1), trace, (), 1.0) for seq in (1, 2)]
    ctx = Rollout(NO_LIBRARY, TASK.question, turned=turns)
    await ctx.record(StepDraft(StepKind.MEMORY, "discard", untrains=2))
    assert [turn.trainable for turn in ctx.turned] == ["rl", "none"]


def test_rollouts_of_a_task_are_a_group(blank: Path) -> None:
    seats = [Seat(task, seed, seed) for task in (TASK, OTHER) for seed in range(2)]
    policy = opened(blank, "p@1")
    found = groups_of(asyncio.run(played(RESEARCH, seats, How(), ruled(policy, "oracle"), policy.renderer)))
    assert [(group.task, len(group.samples)) for group in found] == [(TASK.name, 2), (OTHER.name, 2)]
    assert len({s.episode.run for group in found for s in group.samples}) == 4


def scripted(policy: Policy, *said: str, how: How | None = None) -> list[Played]:
    """One rollout of the researcher in which these words are written one after the other."""
    left, (end,) = iter(said), policy.ends

    async def speaker(call: Call) -> TokenTrace:
        ids = (*policy.renderer.ids(next(left)), end)
        return TokenTrace(call.ids, ids, (-1.0,) * len(ids), policy.pieces.of(ids), "p@1", "stop")

    return asyncio.run(played(RESEARCH, [Seat(TASK, 0)], how or How(), speaker, policy.renderer))
