"""The tables of an experiment: their width, their columns and what they say about themselves."""

import csv
import io
from uuid import UUID

from offing.services.experiment_formats import (
    MAX_COLUMNS,
    build_blocks,
    render_csv,
    render_markdown,
    render_text,
)
from offing.services.experiment_summary import ExperimentSummary, summarize
from offing.storage.experiments import ExperimentTaskRow, JudgmentRow, ResultRow

TASKS = [UUID(int=n) for n in range(12)]

NAMES = ["a-configuration-with-a-very-long-name", "iterresearch", "c"]


def a_result(number: int, task: UUID, value: float) -> ResultRow:
    scores: dict[str, float | None] = {"exact_match": value, "citation_precision": None}
    return ResultRow(number, task, task, "answered", False, scores, 12, 1_234_567, 0.1234, 1234.5)


RESULTS = [a_result(number, task, float(n % 2)) for number in range(3) for n, task in enumerate(TASKS)]


def a_summary() -> ExperimentSummary:
    judgments = [
        JudgmentRow(number, task, swapped, "first", "", "", 0, 0.0)
        for number in (1, 2)
        for task in TASKS
        for swapped in (False, True)
    ]
    weights = {"exact_match": 1.0, "citation_precision": 0.0}
    return summarize(NAMES, dict.fromkeys(TASKS, False), weights, RESULTS, judgments)


def test_the_text_is_at_most_100_columns_wide() -> None:
    text = render_text(["x " * 90], build_blocks(NAMES, a_summary(), "litellm:openai/a-model-with-a-long-name"))
    assert max(map(len, text.splitlines())) <= MAX_COLUMNS
    assert "no difference shown" in text
    assert "1,234,567" in text


def test_each_table_explains_its_columns_and_what_was_left_out() -> None:
    text = " ".join(render_text([], build_blocks(NAMES, a_summary(), "judge")).split())
    for phrase in (
        "exact_match: 1 if the answer equals an accepted answer",
        "Left out of citation_precision: 12 of a-configuration-with-a-very-long-name could not be scored",
        "in both orders",
        "50 % means that the order does not matter",
        "They count in no other column and in no mean.",
    ):
        assert phrase in text


def test_the_judge_s_agreement_with_itself_is_shown() -> None:
    lines = render_text([], build_blocks(NAMES, a_summary(), "judge")).splitlines()
    row = next(line for line in lines if line.startswith("iterresearch") and "100 %" in line)
    assert row.split() == [*("iterresearch", "0", "12", "0", "+0.000"), *("-0.154", "to", "+0.154"),
                           *("0", "%", "100", "%", "no", "difference", "shown")]  # fmt: skip


def test_one_configuration_has_no_columns_of_a_comparison() -> None:
    rows = [row for row in RESULTS if row.number == 0]
    text = render_text([], build_blocks(NAMES[:1], summarize(NAMES[:1], {}, {"exact_match": 1.0}, rows, None), ""))
    assert "difference" not in text
    assert "verdict" not in text


def test_markdown_has_a_table_for_each_block_and_cells_cannot_break_it() -> None:
    text = render_markdown(["pipes | are escaped"], build_blocks(["a|b", "c", "d"], a_summary(), "judge"))
    tables = [line for line in text.splitlines() if line.startswith("|")]
    assert all(len(line.replace("\\|", "").split("|")) in (11, 10, 9, 8, 7) for line in tables)
    assert "a\\|b" in text
    assert sum(line.startswith("| :--") for line in tables) == 4


def test_csv_has_one_line_per_question_and_configuration() -> None:
    tasks = [ExperimentTaskRow(task, "t, 1", "Why?", True, False) for task in TASKS]
    rows = list(csv.DictReader(io.StringIO(render_csv(NAMES, ["exact_match", "citation_precision"], tasks, RESULTS))))
    assert len(rows) == 36
    assert (rows[3]["task"], rows[3]["configuration"], rows[3]["exact_match"]) == ("t, 1", NAMES[0], "1")
    assert rows[3]["citation_precision"] == ""
