"""MuSiQue (Trivedi et al. 2022): questions that need two to four paragraphs, with distracting paragraphs.

The file has one JSON object per line, as published, or is one JSON list, as in samples that other projects publish.
Each paragraph becomes a document. The alternative `MuSiQue-Full` has questions that cannot be answered; the test
set has no answers. Fields were read from a published sample of the training set, and the lines of the original files
from their documentation.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from pydantic import BaseModel

from offing.datasets.dataset_format import DatasetFormat, PublishedDocument, PublishedEvidence, PublishedQuestion
from offing.datasets.records import get_file, iter_records


class Paragraph(BaseModel, frozen=True):
    title: str
    paragraph_text: str
    is_supporting: bool = False


class MusiqueRecord(BaseModel, frozen=True):
    id: str
    question: str
    paragraphs: list[Paragraph]
    answer: str | None = None
    answer_aliases: list[str] = []
    answerable: bool = True


def read_musique(path: Path) -> Iterator[PublishedQuestion]:
    """Read the questions of a file, or of the first file of a folder."""
    file = get_file(path, "*.jsonl", "musique*.json")
    for location, record in iter_records(file, MusiqueRecord):
        yield _convert(record, location)


def _convert(record: MusiqueRecord, location: str) -> PublishedQuestion:
    documents = [PublishedDocument(one.title, one.paragraph_text) for one in record.paragraphs]
    supporting = [d for one, d in zip(record.paragraphs, documents, strict=True) if one.is_supporting]
    hops = re.match(r"\d+hop", record.id)
    return PublishedQuestion(
        location,
        record.id,
        record.question,
        _list_answers(record),
        tuple(PublishedEvidence(document, document.text) for document in supporting) if record.answerable else (),
        tuple(documents),
        tags=(hops[0],) if hops else (),
    )


def _list_answers(record: MusiqueRecord) -> tuple[str, ...] | None:
    if not record.answerable:
        return ()
    return None if record.answer is None else tuple(dict.fromkeys([record.answer, *record.answer_aliases]))


FORMAT = DatasetFormat(
    "musique",
    "Questions over two to four paragraphs: a .jsonl file, or one JSON list",
    read_musique,
    license="CC BY 4.0; the paragraphs are from Wikipedia (CC BY-SA)",
    source="MuSiQue, by its authors",
    citation="Trivedi et al. 2022: MuSiQue: Multihop Questions via Single-hop Question Composition. TACL 10.",
)
