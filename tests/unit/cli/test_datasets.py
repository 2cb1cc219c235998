"""`offing datasets`: published datasets become folders, and a folder is described."""

import json
from pathlib import Path

import pytest

from offing.cli import datasets
from offing.core.errors import InvalidInput

PARAGRAPHS = [{"title": "The fire", "paragraph_text": "The tower burned in 1755.", "is_supporting": True}]


def write_musique(folder: Path) -> Path:
    lines = [
        {"id": f"2hop__{n}", "question": f"When did tower {n} burn?", "answer": "1755", "paragraphs": PARAGRAPHS}
        for n in range(3)
    ]
    (folder / "musique.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder / "musique.jsonl"


def test_a_dataset_is_imported_and_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    destination = tmp_path / "towers"
    assert datasets.import_published("musique", write_musique(tmp_path), destination, max_questions=2) == 0
    assert "2 questions, 1 documents" in capsys.readouterr().out
    assert datasets.show(destination, json=True) == 0
    description = json.loads(capsys.readouterr().out)
    assert (description["name"], description["tasks"], description["documents"]) == ("towers", 2, 1)
    assert (description["with_answers"], description["with_evidence"], description["with_rubric"]) == (2, 2, 0)
    assert description["tags"] == {"2hop": 2}
    assert datasets.show(destination) == 0
    assert "When did tower" in capsys.readouterr().out


def test_a_sample_depends_on_the_seed(tmp_path: Path) -> None:
    file = write_musique(tmp_path)
    samples = set[str]()
    for seed in range(5):
        datasets.import_published("musique", file, tmp_path / str(seed), max_questions=1, seed=seed)
        samples.add((tmp_path / str(seed) / "questions.jsonl").read_text())
    assert len(samples) > 1


def test_each_count_is_that_of_the_tasks_that_have_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tasks: list[dict[str, object]] = [
        {"question": "Question 1", "answers": ["1755"], "evidence": [{"quote": "in 1755"}]},
        {"question": "Question 2", "answers": ["1759"]},
        *({"question": f"Question {n}", "answers": []} for n in (3, 4, 5)),
        *({"question": f"Question {n}", "rubric": "Is short."} for n in (6, 7, 8, 9)),
        {"question": "Question 10"},
    ]
    file = tmp_path / "tasks.jsonl"
    file.write_text("".join(json.dumps(task) + "\n" for task in tasks))
    datasets.show(file, json=True)
    description = json.loads(capsys.readouterr().out)
    assert (description["tasks"], description["with_answers"], description["unanswerable"]) == (10, 2, 3)
    assert (description["with_evidence"], description["with_rubric"], description["documents"]) == (1, 4, 0)
    datasets.show(file)
    assert capsys.readouterr().out.count("Question") == datasets.SHOWN_TASKS


def test_formats_are_listed_with_their_license(capsys: pytest.CaptureFixture[str]) -> None:
    assert datasets.formats(json=True) == 0
    listed = {one["name"]: one for one in json.loads(capsys.readouterr().out)}
    assert set(listed) >= {"browsecomp_plus", "clapnq", "deep_research_bench", "frames", "hotpotqa", "musique"}
    assert all(one["license"] and one["description"] for one in listed.values())


def test_a_format_or_a_size_that_does_not_exist_is_rejected(tmp_path: Path) -> None:
    file = write_musique(tmp_path)
    with pytest.raises(InvalidInput, match=r"no dataset format 'squad'\. Use one of: browsecomp_plus"):
        datasets.import_published("squad", file, tmp_path / "x")
    with pytest.raises(InvalidInput, match="--max-questions"):
        datasets.import_published("musique", file, tmp_path / "x", max_questions=0)
