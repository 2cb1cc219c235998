"""Counting and the table of baselines."""

from pathlib import Path
from statistics import fmean

from offing_world.question_solver import KnownFact, LookUp
from offing_world.strategies import Attempt
from tests.results import baselines
from tests.results.counting import SeenRollout, by_context, by_relation, count
from tests.results.questions import Questions


def an_attempt(tool: str, relation: str = "home", entity: str = "Ada Bo") -> Attempt:
    return Attempt(tool, LookUp(relation, entity), KnownFact(relation, entity, ("Du Fa",), True))


def test_counting_counts_successes_by_relation_and_tool() -> None:
    seen = [SeenRollout("", (an_attempt("amber"),), True), SeenRollout("", (an_attempt("amber"),), False)]
    seen += [SeenRollout("", (an_attempt("birch"),), True)] * 2
    table = count(seen, by_relation)
    assert set(table) == {("home",)}
    assert table["home",]["birch"] > table["home",]["amber"]


def test_the_conditional_table_tells_a_second_call_from_a_first() -> None:
    seen = [SeenRollout("", (an_attempt("amber"), an_attempt("birch")), True)]
    assert set(count(seen, by_context)) == {("home", None, ""), ("home", None, "amber")}


def test_shelves_are_part_of_the_context_and_are_not_counted_themselves() -> None:
    shelf = Attempt("amber", LookUp("shelf", "Ada Bo"), KnownFact("shelf", "Ada Bo", ("2",), True))
    assert set(count([SeenRollout("", (shelf, an_attempt("birch")), True)], by_context)) == {("home", 2, "")}


def test_counting_solves_plain_worlds_and_fails_where_tools_depend_on_context() -> None:
    for options, most, conditional in (("", 1.0, 0.9), ("+key", 0.4, 0.6), ("+referral", 0.5, 0.6)):
        difficulty = baselines.Difficulty("", Questions((1, 2), tested_hops=(2, 4), options=options), 2)
        reached = baselines.reach(difficulty, difficulty.questions.held_out(40), 1, 4_000)
        means = {name: fmean(rewards) for name, rewards in reached.rewards.items()}
        assert means["oracle"] == 1.0
        assert max(means["random"], means["greedy"]) < 0.4
        assert means["counting 10,000"] <= most
        assert means["conditional 10,000"] >= conditional
        assert reached.overlap.longer_words == 0


def test_the_page_keeps_what_is_above_its_mark(tmp_path: Path) -> None:
    page = tmp_path / "baselines.md"
    page.write_text("# Baselines\n\n")
    difficulty = baselines.Difficulty("plain", Questions((1, 2)))
    reached = baselines.reach(difficulty, difficulty.questions.held_out(6), 1, 50)
    baselines.write_below_mark(page, baselines.render([reached], [(2, reached)], 1))
    text = page.read_text()
    assert text.startswith("# Baselines\n\n<!--")
    assert "| plain | 1.00" in text
