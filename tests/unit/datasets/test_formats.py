"""Each published format is imported as tasks with their documents; samples are written here, not copied."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from offing.core.errors import InvalidInput
from offing.core.scoring import Criterion, ReferenceEvidence
from offing.datasets.dataset import Dataset, open_dataset
from offing.datasets.dataset_format import DATASET_FORMATS
from offing.datasets.writer import ImportedDataset, import_dataset
from offing.library.extraction import extract_text

Record = dict[str, Any]


def run_import(format: str, path: Path, destination: Path, **more: Any) -> tuple[ImportedDataset, Dataset]:
    imported = import_dataset(DATASET_FORMATS[format], path, destination, **more)
    return imported, open_dataset(destination)


def write_lines(file: Path, *records: object) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(json.dumps(one) + "\n" for one in records), encoding="utf-8")
    return file


def read_documents(dataset: Dataset) -> dict[str, str]:
    """Text below the heading of each document, by the title that the library gives to it."""
    assert dataset.documents is not None
    texts = dict[str, str]()
    for file in dataset.documents.iterdir():
        text = file.read_text(encoding="utf-8")
        texts[extract_text(text.encode(), file.name).title] = text.split("\n", 2)[2].strip()
    return texts


def a_musique(**more: Any) -> dict[str, Any]:
    paragraphs = [
        {"idx": 0, "title": "The fire", "paragraph_text": "The tower burned in 1755.", "is_supporting": True},
        {"idx": 1, "title": "The storm", "paragraph_text": "It blew in 1703.", "is_supporting": False},
        {"idx": 2, "title": "The fire", "paragraph_text": "It was made of wood.", "is_supporting": True},
    ]
    return {"id": "2hop__1_2", "question": "When did the wooden tower burn?", "answer": "1755", "answerable": True,
            "answer_aliases": ["in 1755", "1755"], "paragraphs": paragraphs} | more  # fmt: skip


def test_musique_has_aliases_as_answers_and_supporting_paragraphs_as_evidence(tmp_path: Path) -> None:
    impossible = a_musique(id="3hop1__9", question="When did the iron tower burn?", answerable=False)
    untold = {name: value for name, value in a_musique(question="And when?").items() if name != "answer"}
    file = write_lines(tmp_path / "musique.jsonl", a_musique(), impossible, untold)
    imported, dataset = run_import("musique", file, tmp_path / "towers")
    assert imported == ImportedDataset(3, 3)
    first, second, third = dataset.tasks
    assert (first.answers, second.answers, third.answers) == (["1755", "in 1755"], [], None)
    assert (first.name, first.tags, second.tags) == ("2hop__1_2", ["2hop"], ["3hop"])
    assert first.scope_of_run() == {"collections": ["towers"]}
    assert first.reference is not None
    assert first.reference.evidence == (
        ReferenceEvidence("The tower burned in 1755.", "The fire"),
        ReferenceEvidence("It was made of wood.", "The fire (2)"),
    )
    assert second.evidence == []
    assert read_documents(dataset) == {
        "The fire": "The tower burned in 1755.",
        "The storm": "It blew in 1703.",
        "The fire (2)": "It was made of wood.",
    }
    assert (dataset.name, dataset.license[:9]) == ("towers", "CC BY 4.0")


def test_hotpotqa_has_supporting_sentences_as_evidence(tmp_path: Path) -> None:
    record = {
        "_id": "5a", "question": "Which paint has the tower?", "answer": "red", "type": "bridge", "level": "easy",
        "context": [["Tower", ["The tower is tall.", " It is red."]], ["Stone", ["A stone is grey."]]],
        "supporting_facts": [["Tower", 1], ["Stone", 7]],
    }  # fmt: skip
    (tmp_path / "hotpot_dev.json").write_text(json.dumps([record]))
    imported, dataset = run_import("hotpotqa", tmp_path, tmp_path / "out")
    assert imported == ImportedDataset(1, 2)
    (task,) = dataset.tasks
    assert (task.answers, task.tags) == (["red"], ["bridge", "easy"])
    assert task.reference is not None
    assert task.reference.evidence == (ReferenceEvidence("It is red.", "Tower"), ReferenceEvidence("", "Stone"))
    assert read_documents(dataset)["Tower"] == "The tower is tall. It is red."


def test_clapnq_has_questions_with_and_without_an_answer(tmp_path: Path) -> None:
    passage: Record = {"title": "Tides", "text": "The moon pulls . The sea rises . ", "sentences": []}
    skipped: Record = {"answer": "", "selected_sentences": [], "meta": {"skip": True}}
    answer: Record = {
        "answer": "Because of the moon .",
        "selected_sentences": ["The moon pulls ."],
        "meta": {"skip": False},
    }
    silent: Record = {"answer": "The moon .", "selected_sentences": [], "meta": {"skip": False}}
    nothing: Record = {"answer": "", "selected_sentences": [], "meta": {"skip": False}}
    folder = tmp_path / "dev"
    write_lines(
        folder / "clapnq_dev_answerable.jsonl",
        {"id": "1", "input": "why do tides rise", "passages": [passage], "output": [answer, skipped, answer]},
        {"id": "2", "input": "why do tides fall", "passages": [passage], "output": [silent]},
        {"id": "3", "input": "why do tides exist", "passages": [passage], "output": [skipped]},
    )
    write_lines(
        folder / "clapnq_dev_unanswerable.jsonl",
        {"id": "4", "input": "who found the tides", "passages": [passage], "output": [nothing]},
    )
    imported, dataset = run_import("clapnq", folder, tmp_path / "out")
    assert imported == ImportedDataset(4, 1)
    assert [task.answers for task in dataset.tasks] == [["Because of the moon ."], ["The moon ."], None, []]
    assert [len(task.evidence) for task in dataset.tasks] == [1, 1, 0, 0]
    assert dataset.tasks[0].evidence[0].quote == "The moon pulls ."
    assert (dataset.tasks[1].evidence[0].quote, dataset.tasks[1].evidence[0].source) == ("", "Tides")
    assert {task.split for task in dataset.tasks} == {"dev"}


def write_bench(folder: Path, weights: dict[str, float]) -> Path:
    criteria = {"insight": [{"criterion": "Depth", "explanation": "It explains why.", "weight": 0.5}],
                "readability": [{"criterion": "Short", "weight": 1.0}]}  # fmt: skip
    write_lines(folder / "data/prompt_data/query.jsonl", {"id": 7, "prompt": "Study the tides.", "language": "en"})
    record = {"id": 7, "prompt": "Study the tides.", "dimension_weight": weights, "criterions": criteria}
    write_lines(folder / "data/criteria_data/criteria.jsonl", record)
    return folder


def test_deep_research_bench_has_a_rubric_whose_weights_are_those_of_dimension_and_criterion(tmp_path: Path) -> None:
    folder = write_bench(tmp_path / "bench", {"insight": 0.6, "readability": 0.4})
    imported, dataset = run_import("deep_research_bench", folder, tmp_path / "out")
    assert imported == ImportedDataset(1, 0)
    (task,) = dataset.tasks
    assert task.reference is not None
    assert task.reference.answers is None
    assert task.reference.rubric == (Criterion("Depth: It explains why.", 0.3), Criterion("Short", 0.4))
    assert (task.name, task.tags, dataset.documents) == ("7", ["en"], None)


def test_frames_has_the_titles_of_its_articles_as_evidence(tmp_path: Path) -> None:
    (tmp_path / "test.tsv").write_text(
        "\tPrompt\tAnswer\twikipedia_link_1\treasoning_types\twiki_links\n"
        "0\tWhich tower is older?\tThe red one\thttps://en.wikipedia.org/wiki/Red_Tower\tTemporal | Tabular\t"
        "\"['https://en.wikipedia.org/wiki/Red_Tower', 'https://en.wikipedia.org/wiki/Caf%C3%A9_(tower)#History']\"\n"
    )
    imported, dataset = run_import("frames", tmp_path / "test.tsv", tmp_path / "out")
    (task,) = dataset.tasks
    assert imported == ImportedDataset(1, 0)
    assert (task.name, task.answers, task.tags) == ("0", ["The red one"], ["Temporal", "Tabular"])
    assert [item.source for item in task.evidence] == ["Red Tower", "Café (tower)"]


def a_page(docid: str, text: str = "A page.") -> dict[str, str]:
    return {"docid": docid, "text": text, "url": "https://example.org"}


def test_browsecomp_plus_has_evidence_documents_and_hard_negatives(tmp_path: Path) -> None:
    titled = a_page("12", '---\nauthor: A\ntitle: "The red tower"\n---\nIt is red.')
    record = {
        "query_id": "769", "query": "Which tower is red?", "answer": "The red tower",
        "evidence_docs": [titled, a_page("13")], "gold_docs": [titled],
        "negative_docs": [a_page("14", "No tower."), a_page("15", "---\nurl: x\n---\ntitle: No")],
    }  # fmt: skip
    write_lines(tmp_path / "x" / "browsecomp_plus_decrypted.jsonl", record)
    imported, dataset = run_import("browsecomp_plus", tmp_path / "x", tmp_path / "out")
    assert imported == ImportedDataset(1, 4)
    assert "Document 15" in read_documents(dataset)
    assert [item.source for item in dataset.tasks[0].evidence] == ["The red tower", "Document 13"]
    assert read_documents(dataset)["Document 14"] == "No tower."
    encrypted = write_lines(tmp_path / "raw.jsonl", record | {"query": "cEQZkv2vON1wV9G1t9Q2ob9Xncc"})
    with pytest.raises(InvalidInput, match=r"raw\.jsonl line 1\.query: .* still encrypted"):
        run_import("browsecomp_plus", encrypted, tmp_path / "other")


def test_browsecomp_plus_without_its_documents_has_the_ids_of_relevant_documents_as_evidence(tmp_path: Path) -> None:
    folder = tmp_path / "topics"
    folder.mkdir()
    (folder / "queries.tsv").write_text("769\tWhich tower is red?\n")
    (folder / "qrel_evidence.txt").write_text("769 Q0 12 1\n769 Q0 13 0\n770 Q0 9 1\n")
    _, dataset = run_import("browsecomp_plus", folder, tmp_path / "out")
    (task,) = dataset.tasks
    assert task.answers is None
    assert [item.source for item in task.evidence] == ["12"]
    (folder / "qrel_evidence.txt").write_text("769 Q0 12 1\n769 12\n")
    with pytest.raises(InvalidInput, match=r"qrel_evidence\.txt line 2: the line is not a TREC relevance judgment"):
        run_import("browsecomp_plus", folder, tmp_path / "other")


def write_text(name: str, text: str) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        (folder / name).write_text(text)
        return folder / name

    return write


def write_latin_table(folder: Path) -> Path:
    (folder / "f.tsv").write_bytes("Prompt\tAnswer\nWho?\tRené\n".encode("latin-1"))
    return folder / "f.tsv"


def write_nothing(folder: Path) -> Path:
    return folder


def write_unweighted_bench(folder: Path) -> Path:
    return write_bench(folder, {"insight": 1})


BROKEN_PARAGRAPH = json.dumps(a_musique(paragraphs=[{"title": "x"}]))
HOTPOT: dict[str, Any] = {
    "_id": "5a",
    "question": "Which is it?",
    "context": [["Tower", ["Tall."]]],
    "supporting_facts": [["Sea", 0]],
}


@pytest.mark.parametrize(
    ("format", "write", "message"),
    [
        ("musique", write_text("m.jsonl", "\n{nope\n"), r"m\.jsonl line 2: is not valid JSON"),
        ("musique", write_text("m.jsonl", BROKEN_PARAGRAPH), r"m\.jsonl line 1\.paragraphs\.0\.paragraph_text"),
        ("musique", write_text("m.jsonl", json.dumps(a_musique(question=""))), r"m\.jsonl line 1\.question"),
        ("frames", write_latin_table, r"f\.tsv line 2: is not valid UTF-8"),
        ("musique", write_text("m.jsonl", ""), "the dataset contains no questions"),
        ("musique", write_nothing, r"Give the file, or a folder with \*\.jsonl or"),
        ("hotpotqa", write_text("h.json", "{}"), r"h\.json: the file is not a JSON list"),
        ("hotpotqa", write_text("h.json", json.dumps([HOTPOT])), r"h\.json record 1\.supporting_facts\.0: .*'Sea'"),
        ("frames", write_text("f.csv", "Prompt,Answer\nWhich?,\n"), r"f\.csv line 2\.Answer: the column is empty"),
        ("clapnq", write_nothing, r"there are no \.jsonl files"),
        ("deep_research_bench", write_unweighted_bench, r"line 1\.dimension_weight"),
    ],
)  # fmt: skip
def test_a_published_file_that_cannot_be_read_is_named_and_nothing_is_written(
    tmp_path: Path, format: str, write: Callable[[Path], Path], message: str
) -> None:
    published, destination = tmp_path / "in", tmp_path / "out" / "dataset"
    published.mkdir()
    with pytest.raises(InvalidInput, match=message):
        run_import(format, write(published), destination)
    assert list((tmp_path / "out").iterdir()) == []


def test_a_sample_has_all_documents_of_its_questions_and_depends_only_on_the_seed(tmp_path: Path) -> None:
    def a_record(n: int) -> dict[str, Any]:
        own = {"title": f"Tower {n}", "paragraph_text": f"It burned in {n}.", "is_supporting": True}
        other = {"title": f"Sea {n}", "paragraph_text": f"It rose in {n}.", "is_supporting": False}
        return a_musique(id=str(n), question=f"When did tower {n} burn?", paragraphs=[own, other])

    file = write_lines(tmp_path / "m.jsonl", *map(a_record, range(40)))
    imported, first = run_import("musique", file, tmp_path / "a", max_questions=5, seed=1)
    _, again = run_import("musique", file, tmp_path / "b", max_questions=5, seed=1)
    _, other = run_import("musique", file, tmp_path / "c", max_questions=5, seed=2)
    _, whole = run_import("musique", file, tmp_path / "d", max_questions=400)
    assert imported == ImportedDataset(5, 10)
    names = [[task.name for task in one.tasks] for one in (first, again, other)]
    assert names[0] == names[1] != names[2]
    assert names[0] == sorted(names[0], key=int)
    assert len(whole.tasks) == 40
    assert set(read_documents(first)) == {f"{kind} {n}" for n in names[0] for kind in ("Tower", "Sea")}


def test_documents_have_safe_names_and_distinct_titles(tmp_path: Path) -> None:
    titles = ["../../etc/passwd", "CON", "", "*Bold* _tower_", "Tower " * 90, "東京タワー", "tower", "Tower"]
    paragraphs = [
        {"title": title, "paragraph_text": f"Text {n}.", "is_supporting": True} for n, title in enumerate(titles)
    ]
    _, dataset = run_import(
        "musique", write_lines(tmp_path / "m.jsonl", a_musique(paragraphs=paragraphs)), tmp_path / "out"
    )
    assert dataset.documents is not None
    names = sorted(file.name for file in dataset.documents.iterdir())
    assert len(names) == len(titles)
    assert all(len(name) < 90 and "/" not in name and not name.startswith(".") for name in names)
    texts = read_documents(dataset)
    assert {texts[item.source]: item.quote for item in dataset.tasks[0].evidence} == {
        f"Text {n}.": f"Text {n}." for n in range(len(titles))
    }


def test_a_destination_with_files_is_not_overwritten(tmp_path: Path) -> None:
    file = write_lines(tmp_path / "m.jsonl", a_musique())
    (tmp_path / "out").mkdir()
    run_import("musique", file, tmp_path / "out")
    with pytest.raises(InvalidInput, match="not an empty folder"):
        run_import("musique", file, tmp_path / "out")
