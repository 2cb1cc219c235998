"""Rooms, look-ups that fail, and the teacher: which the experiments on memory use."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean

import pytest

from offing.sdk import Graph
from offing_engine.random_policy import create_random_policy
from offing_engine.weights import LoadedPolicy
from offing_world.compact_notation import VOCABULARY
from tests.results.batch_sampling import opened
from tests.results.memory import OUTAGE, QUARTER, QUESTIONS, RULES, TURNS, WHOLE, editing, summing_up
from tests.results.rollouts import GraphSetup, How, PlannedRollout, Played, played
from tests.results.starting_policies import ruled


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> LoadedPolicy:
    """A policy whose tokenizer writes what rules say."""
    folder: Path = tmp_path_factory.mktemp("words") / "policy"
    create_random_policy(folder, VOCABULARY)
    return opened(folder, "words@1")


def by_rule(words: LoadedPolicy, graph: Graph, rule: str, count: int = 16, first: int = 0) -> list[Played]:
    planned = [PlannedRollout(task, first + n) for n, task in enumerate(QUESTIONS.held_out(count))]
    graph_setup = GraphSetup(graph, "agent", outage=OUTAGE)
    return asyncio.run(played(graph_setup, planned, How(TURNS), ruled(words, rule, RULES), words.chat_template))


def success(results: Sequence[Played]) -> float:
    return fmean(one.reward for one in results)


def test_a_quarter_of_the_context_is_enough_only_for_good_edits(words: LoadedPolicy) -> None:
    assert success(by_rule(words, editing(WHOLE), "hoarding")) > 0.75
    assert success(by_rule(words, editing(QUARTER), "hoarding")) < 0.25
    assert success(by_rule(words, editing(QUARTER), "careful")) > 0.75
    assert success(by_rule(words, editing(QUARTER), "forgetful")) < 0.4


def test_a_quarter_of_the_context_is_enough_only_for_good_summaries(words: LoadedPolicy) -> None:
    assert success(by_rule(words, summing_up(WHOLE, 0), "careful")) > 0.75
    assert success(by_rule(words, summing_up(QUARTER, 0), "careful")) < 0.25
    assert success(by_rule(words, summing_up(QUARTER), "careful")) > 0.75
    assert success(by_rule(words, summing_up(QUARTER), "forgetful")) < 0.65


def test_a_prompt_in_a_quarter_of_the_context_has_less_than_a_third_of_the_tokens(words: LoadedPolicy) -> None:
    whole = max(max(one.prompts) for one in by_rule(words, editing(WHOLE), "hoarding"))
    for graph in (editing(QUARTER), summing_up(QUARTER)):
        assert max(max(one.prompts) for one in by_rule(words, graph, "forgetful")) < whole / 3


def test_look_ups_fail_at_the_given_rate_and_the_same_for_the_same_seed(words: LoadedPolicy) -> None:
    def calls(first: int) -> list[int]:
        result = by_rule(words, editing(WHOLE), "hoarding", first=first)
        return [one.sample.metadata.cost.tool_calls if one.sample.metadata.cost else 0 for one in result]

    once, again, elsewhere = calls(0), calls(0), calls(1000)
    assert once == again != elsewhere
    needed = fmean(task.hops for task in QUESTIONS.held_out(16)) / (1 - OUTAGE)
    assert needed * 0.7 < fmean(once) < needed * 1.3
