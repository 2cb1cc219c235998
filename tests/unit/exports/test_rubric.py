"""The rubric of a task is a part of an exported reference, and a reference without one is as it was before rubrics."""

import pytest

from offing.core.trajectory_records import Reference
from offing.exports.row_values import trajectory_metadata_columns, trajectory_metadata_from_columns
from offing.exports.verl_prompts import build_prompt_row
from tests.unit.exports.builders import trajectory_metadata

RUBRIC = ({"text": "Names the year.", "weight": 2.0},)


@pytest.mark.parametrize("reference", [Reference(None, (), RUBRIC), Reference(("1755",), (), RUBRIC), Reference(())])
def test_a_reference_is_exported_with_its_rubric_and_read_again(reference: Reference) -> None:
    metadata = trajectory_metadata(reference=reference)
    columns = trajectory_metadata_columns(metadata)
    assert trajectory_metadata_from_columns(columns) == metadata
    assert ("rubric" in columns["reference"]) == bool(reference.rubric)


def test_a_task_whose_answer_is_unknown_has_no_ground_truth() -> None:
    rows = [build_prompt_row(trajectory_metadata(reference=r)) for r in (Reference(None, (), RUBRIC), Reference(()))]
    assert [row["reward_model"]["ground_truth"] for row in rows] == [None, "[]"]
