"""The split of tasks made from runs: what belongs together stays on one side, and stays there when more runs come."""

from dataclasses import replace
from uuid import UUID

import pytest

from offing.core.task_split import AskedRun, is_held_out, is_same_question, plan_split

HALF = 0.5

TOPICS = [
    f"{verb} {noun}?"
    for verb in ("Describe", "Explain", "Compare", "Measure")
    for noun in ("lighthouses", "volcanoes", "glaciers", "bridges", "telescopes", "orchids", "violins", "tides")
]


def run(number: int, question: str, thread: int | None = None, fork_of: int | None = None) -> AskedRun:
    return AskedRun(
        UUID(int=number), UUID(int=1000 + (thread or number)), question, UUID(int=fork_of) if fork_of else None
    )


def test_a_thread_a_fork_and_the_same_words_belong_to_the_oldest_run() -> None:
    runs = [
        run(1, "Who built Bell Rock?"),
        run(2, "When was that?", thread=1),
        run(3, "Which stone is granite made of?", fork_of=2),
        run(4, "who built bell rock"),
        run(5, "How deep is the sea?"),
    ]
    homes = plan_split(runs, 0, HALF).split_run_ids
    assert [homes[one.run_id].int for one in runs] == [1, 1, 1, 1, 5]


def test_questions_that_share_most_terms_belong_together_and_others_do_not() -> None:
    runs = [
        run(1, "Which engineer built the lighthouse of Bell Rock in Scotland?"),
        run(2, "Which engineer built the lighthouse of Bell Rock near Scotland and when?"),
        run(3, "Which painter lived in Florence?"),
    ]
    homes = plan_split(runs, 0, HALF).split_run_ids
    assert [homes[one.run_id].int for one in runs] == [1, 1, 3]


def test_more_runs_never_move_an_earlier_one_to_another_side() -> None:
    runs = [run(n, question) for n, question in enumerate(TOPICS, 1)]
    early = plan_split(runs[:20], 3, HALF)
    late = plan_split([*runs, run(90, " ".join(TOPICS))], 3, HALF)
    assert all(late.split_run_ids[id] == home for id, home in early.split_run_ids.items())
    assert early.bridging <= late.bridging


def test_a_run_between_both_sides_is_on_neither() -> None:
    trained = next(n for n in range(1, 50) if not is_held_out(UUID(int=n), 0, HALF))
    held_out = next(n for n in range(50, 99) if is_held_out(UUID(int=n), 0, HALF))
    runs = [run(trained, "Who built Bell Rock?"), run(held_out, "How deep is the sea?")]
    bridge = run(200, "how deep is the sea", thread=trained)
    plan = plan_split([*runs, bridge], 0, HALF)
    assert plan.bridging == {bridge.run_id}


def test_a_recorded_cluster_is_kept_when_its_oldest_run_is_gone() -> None:
    recorded = replace(run(7, "Who built Bell Rock?"), recorded_split_run_id=UUID(int=1))
    assert plan_split([recorded], 0, HALF).split_run_ids[recorded.run_id] == UUID(int=1)


def test_the_fraction_and_the_seed_decide_the_side() -> None:
    ids = [UUID(int=n) for n in range(2000)]
    held_out = {id for id in ids if is_held_out(id, 0, 0.25)}
    assert 400 < len(held_out) < 600
    assert held_out != {id for id in ids if is_held_out(id, 1, 0.25)}
    assert not any(is_held_out(id, 0, 0.0) for id in ids)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("Who built Bell Rock?", "who built the bell rock", True),
        ("How many people lived in Aberdeen in 1901?", "How many people lived in Aberdeen in 1911?", False),
        ("Who built Bell Rock lighthouse?", "Who built the lighthouse Bell Rock?", True),
        ("Who built Bell Rock?", "Who painted Bell Rock?", False),
        ("?!?", "!!", True),
    ],
)
def test_questions_are_the_same_only_with_the_same_numbers_and_terms(one: str, other: str, same: bool) -> None:
    assert is_same_question(one, other) is same
