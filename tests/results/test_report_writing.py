"""The experiment on written reports: what the teacher shows, how a report is scored, and a small run."""

import asyncio
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import pytest

from offing.sdk import ReportDraft, RuleContext
from offing_engine.random_policy import create_random_policy
from offing_engine.weights import LoadedPolicy
from offing_graphs.shared.schemas import WriterInput
from offing_world.compact_answer import build_cited_report
from offing_world.compact_notation import VOCABULARY, render_compact_question
from offing_world.lookup_rules import list_learned_facts
from offing_world.memact.facts import select_needed_facts
from offing_world.question_solver import find_answer
from tests.results import report_writing
from tests.results.batch_sampling import opened
from tests.results.experiment import Size
from tests.results.report_writing import HOW, QUESTIONS, TESTED, Plans, graph_setup
from tests.results.rollouts import PlannedRollout, Played, played
from tests.results.starting_policies import ruled


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> LoadedPolicy:
    folder: Path = tmp_path_factory.mktemp("words") / "policy"
    create_random_policy(folder, VOCABULARY)
    return opened(folder, "words@1")


def knowing(inputs: WriterInput, _context: RuleContext) -> ReportDraft:
    known = list_learned_facts(inputs.memory)
    answer = find_answer(inputs.question, known) or "unknown"
    return build_cited_report(inputs.question, answer, select_needed_facts(inputs.question, known))


def silent(inputs: WriterInput, _context: RuleContext) -> ReportDraft:
    answer = find_answer(inputs.question, list_learned_facts(inputs.memory)) or "unknown"
    return build_cited_report(inputs.question, answer, ())


def answered(words: LoadedPolicy, rule: Any, count: int = 24) -> list[Played]:
    planned = [PlannedRollout(task, n) for n, task in enumerate(TESTED.held_out(count))]
    speaker = ruled(words, "rule", {"rule": rule})
    return asyncio.run(played(graph_setup(), planned, HOW, speaker, words.chat_template))


def mean(rollouts: list[Played], name: str) -> float:
    return fmean(one.scores[name] for one in rollouts)


def test_a_generator_that_reads_the_records_can_reach_the_full_reward(words: LoadedPolicy) -> None:
    assert {one.reward for one in answered(words, knowing)} == {1.0}


def test_the_teacher_of_the_start_has_the_form_and_not_the_knowledge(words: LoadedPolicy) -> None:
    rollouts = answered(words, report_writing.unknowing)
    assert {one.outcome for one in rollouts} == {"answered"}
    assert mean(rollouts, "exact") < 0.6
    assert mean(rollouts, "precision") < 0.8


def test_a_right_answer_without_citations_has_half_of_the_reward(words: LoadedPolicy) -> None:
    assert {one.reward for one in answered(words, silent, 4)} == {0.5}


def test_only_the_generator_is_trained_once_per_rollout(words: LoadedPolicy) -> None:
    for one in answered(words, knowing, 4):
        (row,) = one.sample.rows
        assert row.segment_info.role == "generator"


def test_no_held_out_composition_is_trained() -> None:
    plans: Plans = report_writing.PLANS[Size.FULL]
    trained = {render_compact_question(t.question) for t in QUESTIONS.drawn(plans.steps * plans.tasks, 0)}
    held_out = {render_compact_question(t.question) for t in TESTED.held_out(plans.held_out)}
    assert not trained & held_out


@pytest.mark.parametrize("arm", report_writing.EXPERIMENT.arms)
def test_a_miniature_runs_from_start_to_end(arm: str, tmp_path: Path) -> None:
    curve = report_writing.EXPERIMENT.run(arm, 0, tmp_path, Size.MINIATURE)
    assert [point.step for point in curve.points] == [0, 1, 2]
    assert all(np.isfinite(value) for point in curve.points for value in point.figures.values())
    assert report_writing.EXPERIMENT.figures.keys() <= curve.points[-1].figures.keys()
    assert len(report_writing.EXPERIMENT.read([curve])) == 11
