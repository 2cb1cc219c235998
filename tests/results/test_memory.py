"""Rooms, look-ups that fail, and the teacher: what the experiments on memory stand on."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean

import pytest

from offing.sdk import Graph
from offing.world.compact import VOCABULARY
from offing_engine.small import new_policy
from offing_engine.weights import Policy
from tests.results.drawing import opened
from tests.results.memory import OUTAGE, QUARTER, QUESTIONS, RULES, TURNS, WHOLE, editing, summing_up
from tests.results.play import Flow, How, Played, Seat, played
from tests.results.taught import ruled


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> Policy:
    """A policy whose tokenizer writes what rules say."""
    folder: Path = tmp_path_factory.mktemp("words") / "policy"
    new_policy(folder, VOCABULARY)
    return opened(folder, "words@1")


def by_rule(words: Policy, graph: Graph, rule: str, count: int = 16, first: int = 0) -> list[Played]:
    seats = [Seat(task, first + n) for n, task in enumerate(QUESTIONS.held_out(count))]
    flow = Flow(graph, "agent", outage=OUTAGE)
    return asyncio.run(played(flow, seats, How(TURNS), ruled(words, rule, RULES), words.renderer))


def success(found: Sequence[Played]) -> float:
    return fmean(one.reward for one in found)


def test_a_quarter_of_the_room_is_enough_only_for_who_edits_well(words: Policy) -> None:
    assert success(by_rule(words, editing(WHOLE), "hoarding")) > 0.75
    assert success(by_rule(words, editing(QUARTER), "hoarding")) < 0.25
    assert success(by_rule(words, editing(QUARTER), "careful")) > 0.75
    assert success(by_rule(words, editing(QUARTER), "forgetful")) < 0.4


def test_a_quarter_of_the_room_is_enough_only_for_who_sums_up_well(words: Policy) -> None:
    assert success(by_rule(words, summing_up(WHOLE, 0), "careful")) > 0.75
    assert success(by_rule(words, summing_up(QUARTER, 0), "careful")) < 0.25
    assert success(by_rule(words, summing_up(QUARTER), "careful")) > 0.75
    assert success(by_rule(words, summing_up(QUARTER), "forgetful")) < 0.65


def test_a_prompt_in_a_quarter_of_the_room_has_less_than_a_third_of_the_tokens(words: Policy) -> None:
    whole = max(max(one.prompts) for one in by_rule(words, editing(WHOLE), "hoarding"))
    for graph in (editing(QUARTER), summing_up(QUARTER)):
        assert max(max(one.prompts) for one in by_rule(words, graph, "forgetful")) < whole / 3


def test_look_ups_fail_as_often_as_is_said_and_the_same_for_the_same_seat(words: Policy) -> None:
    def calls(first: int) -> list[int]:
        found = by_rule(words, editing(WHOLE), "hoarding", first=first)
        return [one.sample.episode.cost.tool_calls if one.sample.episode.cost else 0 for one in found]

    once, again, elsewhere = calls(0), calls(0), calls(1000)
    assert once == again != elsewhere
    assert 2 / (1 - OUTAGE) * 0.7 < fmean(once) < 2 / (1 - OUTAGE) * 1.3
