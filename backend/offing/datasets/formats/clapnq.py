"""CLAP NQ (Rosenthal et al. 2024): long answers from one passage, and questions that it does not answer.

The files have one JSON object per line. A folder is read with all of its `.jsonl` files, so that questions with and
without an answer are together. Each passage becomes a document. The selected sentences of all annotators are the
reference evidence. The passages are tokenized, as published. All fields were read from the published development set.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

from pydantic import BaseModel

from offing.core.errors import InvalidInput
from offing.datasets.dataset_format import DatasetFormat, PublishedDocument, PublishedEvidence, PublishedQuestion
from offing.datasets.records import iter_records


class Passage(BaseModel, frozen=True):
    title: str
    text: str


class AnswerMeta(BaseModel, frozen=True):
    skip: bool = False
    """Whether the annotator did not answer. That says nothing about the question."""


class AnnotatedAnswer(BaseModel, frozen=True):
    answer: str
    selected_sentences: list[str] = []
    meta: AnswerMeta = AnswerMeta()


class ClapnqRecord(BaseModel, frozen=True):
    id: str
    input: str
    passages: list[Passage]
    output: list[AnnotatedAnswer]


def read_clapnq(path: Path) -> Iterator[PublishedQuestion]:
    """Read the questions of a file, or of all `.jsonl` files of a folder in the order of their names."""
    files = [path] if path.is_file() else sorted(path.glob("*.jsonl"))
    if not files:
        raise InvalidInput(
            str(path), "there are no .jsonl files", "Give a file, or a folder such as annotated_data/dev."
        )
    for file in files:
        split = next((name for name in ("train", "dev", "test") if f"_{name}_" in file.name), "")
        for location, record in iter_records(file, ClapnqRecord):
            yield _convert(record, location, split)


def _convert(record: ClapnqRecord, location: str, split: str) -> PublishedQuestion:
    documents = tuple(PublishedDocument(one.title, one.text) for one in record.passages)
    outputs = [one for one in record.output if not one.meta.skip]
    answers = tuple(dict.fromkeys(one.answer.strip() for one in outputs if one.answer.strip()))
    selected = dict.fromkeys(sentence.strip() for one in outputs for sentence in one.selected_sentences)
    return PublishedQuestion(
        location,
        record.id,
        record.input,
        answers if outputs else None,
        _list_evidence(selected, documents) if answers else (),
        documents,
        tags=("answerable" if answers else "unanswerable",),
        split=split,
    )


def _list_evidence(sentences: Iterable[str], documents: tuple[PublishedDocument, ...]) -> tuple[PublishedEvidence, ...]:
    """Return each sentence with its passage. Without a sentence that a passage contains, the passages are the evidence.

    An annotator may have written an answer without selecting sentences.
    """
    quoted = [PublishedEvidence(one, sentence) for sentence in sentences for one in documents if sentence in one.text]
    return tuple(quoted or map(PublishedEvidence, documents))


FORMAT = DatasetFormat(
    "clapnq",
    "Long answers from one passage, half of the questions without an answer: a .jsonl file or a folder of them",
    read_clapnq,
    license="Apache-2.0; the passages are from Wikipedia (CC BY-SA)",
    source="CLAP NQ, annotated data",
    citation="Rosenthal et al. 2024: CLAPnq: Cohesive Long-form Answers from Passages in Natural Questions for RAG "
    "systems. arXiv:2404.02103.",
)
