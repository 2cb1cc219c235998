"""A dataset is read from a folder or a file, and every mistake is named by its file, line and field."""

from pathlib import Path

import pytest

from offing.core.errors import InvalidInput
from offing.core.scoring import Criterion, Reference, ReferenceEvidence, reference_from_json, reference_to_json
from offing.datasets.dataset import open_dataset
from offing.datasets.task import TaskSpec
from offing.services.tasks import hash_task

LINE = '{"question": "When did the tower burn?", "answers": ["1755"], "name": "t1"}\n'


def write_dataset(folder: Path, questions: str = LINE, description: str = "", documents: bool = True) -> Path:
    folder.mkdir()
    (folder / "questions.jsonl").write_text(questions, encoding="utf-8")
    if description:
        (folder / "dataset.toml").write_text(description, encoding="utf-8")
    if documents:
        (folder / "documents").mkdir()
        (folder / "documents" / "fire.md").write_text("# The fire\n\nThe tower burned down in 1755.\n")
    return folder


def test_a_folder_is_read_with_its_description_and_limits_its_tasks_to_its_documents(tmp_path: Path) -> None:
    own_scope = '{"question": "Who built it?", "scope": {"collections": ["harbours"]}}\n'
    description = 'name = "towers"\nlicense = "CC0-1.0"\nsource = "A lighthouse keeper"\ncitation = "Keeper 1903"\n'
    dataset = open_dataset(write_dataset(tmp_path / "x", LINE + own_scope, description))
    assert (dataset.name, dataset.license, dataset.source) == ("towers", "CC0-1.0", "A lighthouse keeper")
    assert dataset.citation == "Keeper 1903"
    assert dataset.documents == (tmp_path / "x" / "documents").resolve()
    assert [task.scope_of_run() for task in dataset.tasks] == [
        {"collections": ["towers"]},
        {"collections": ["harbours"]},
    ]


def test_a_folder_without_documents_and_a_single_file_leave_the_scope_of_tasks_open(tmp_path: Path) -> None:
    folder = open_dataset(write_dataset(tmp_path / "plain", documents=False))
    (tmp_path / "tower.jsonl").write_text(LINE * 3)
    file = open_dataset(tmp_path / "tower.jsonl", 2)
    assert [(one.name, one.documents, len(one.tasks)) for one in (folder, file)] == [
        ("plain", None, 1),
        ("tower", None, 2),
    ]
    assert folder.tasks[0].scope_of_run() == {}


@pytest.mark.parametrize(
    ("questions", "description", "message"),
    [
        (LINE + '{"question": "Why?", "anwser": "x"}\n', "", r"questions\.jsonl line 2\.anwser: Extra inputs"),
        (LINE + '{"question": "Why?", "rubric": [{"text": "dated", "weight": 0}]}', "", r"line 2\.rubric\..*weight"),
        ("\n", "", "the dataset contains no tasks"),
        (LINE, "name = ", r"dataset\.toml: the file is not valid TOML"),
        (LINE, 'name = "a/b"', r"dataset\.toml\.name"),
        (LINE, 'licence = "MIT"', r"dataset\.toml\.licence: Extra inputs"),
    ],
)
def test_a_mistake_is_named_by_file_line_and_field(
    tmp_path: Path, questions: str, description: str, message: str
) -> None:
    with pytest.raises(InvalidInput, match=message):
        open_dataset(write_dataset(tmp_path / "x", questions, description))


def test_a_task_that_is_not_utf8_is_named_by_its_line(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_bytes(LINE.encode() + LINE.replace("tower", "café").encode("latin-1"))
    with pytest.raises(InvalidInput, match=r"t\.jsonl line 2"):
        open_dataset(tmp_path / "t.jsonl")


def test_a_path_without_a_dataset_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="there is no such file or folder"):
        open_dataset(tmp_path / "absent")
    with pytest.raises(InvalidInput, match=r"has no file questions\.jsonl"):
        open_dataset(tmp_path)


def test_a_rubric_is_a_list_of_criteria_or_one_text_and_needs_no_answers() -> None:
    criteria = [{"text": "Names the year."}, {"text": "Cites a witness.", "weight": 3}]
    listed = TaskSpec.model_validate({"question": "When did it burn?", "rubric": criteria})
    text = TaskSpec.model_validate({"question": "When did it burn?", "answers": [], "rubric": "Names the year."})
    assert listed.reference == Reference(None, (), (Criterion("Names the year."), Criterion("Cites a witness.", 3.0)))
    assert text.reference == Reference((), (), (Criterion("Names the year."),))


def test_a_task_without_a_rubric_keeps_the_id_that_it_had_before_rubrics() -> None:
    spec = TaskSpec.model_validate({"question": "When?", "answers": ["1755"], "evidence": [{"quote": "in 1755"}]})
    assert hash_task(spec) == "06a2df829c1385379de18254aced71c2c80ee3b40ea6137aafcf569f869c6ecc"
    assert hash_task(spec.model_copy(update={"rubric": "Names the year."})) != hash_task(spec)


def test_a_reference_is_the_same_after_it_was_json() -> None:
    evidence = (ReferenceEvidence("in 1755", "The fire", 3, 9),)
    for reference in (
        Reference(("1755",), evidence),
        Reference(None, evidence, (Criterion("Names the year.", 2.0),)),
        Reference((), (), (Criterion("Says that nobody knows."),)),
    ):
        assert reference_from_json(reference_to_json(reference)) == reference
    assert "rubric" not in reference_to_json(Reference(("1755",)))
