"""HotpotQA (Yang et al. 2018): questions over two Wikipedia paragraphs, with eight distracting ones.

The file is one JSON list, as published (`hotpot_dev_distractor_v1.json`). Each paragraph of `context` becomes a
document, and each sentence of `supporting_facts` is reference evidence. The published data names some sentences that
do not exist; then the paragraph is the evidence. The fields were read from a published sample of the training set.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

from pydantic import BaseModel, Field

from offing.core.errors import InvalidInput
from offing.datasets.dataset_format import DatasetFormat, PublishedDocument, PublishedEvidence, PublishedQuestion
from offing.datasets.records import get_file, iter_records


class HotpotRecord(BaseModel, frozen=True):
    id: str = Field(alias="_id")
    question: str
    context: list[tuple[str, list[str]]]
    """Title and sentences of each paragraph."""
    answer: str | None = None
    supporting_facts: list[tuple[str, int]] = []
    """Title and number of each supporting sentence, from 0."""
    type: str = ""
    level: str = ""


def read_hotpotqa(path: Path) -> Iterator[PublishedQuestion]:
    """Read the questions of a file, or of the first file of a folder."""
    file = get_file(path, "hotpot*.json", "hotpot*.jsonl")
    for location, record in iter_records(file, HotpotRecord):
        yield _convert(record, location)


def _convert(record: HotpotRecord, location: str) -> PublishedQuestion:
    sentences = dict(record.context)
    documents = {title: PublishedDocument(title, "".join(lines).strip()) for title, lines in record.context}
    return PublishedQuestion(
        location,
        record.id,
        record.question,
        None if record.answer is None else (record.answer,),
        tuple(
            _find_evidence(title, number, sentences, documents, f"{location}.supporting_facts.{index}")
            for index, (title, number) in enumerate(record.supporting_facts)
        ),
        tuple(documents.values()),
        tags=tuple(tag for tag in (record.type, record.level) if tag),
    )


def _find_evidence(
    title: str,
    number: int,
    sentences: Mapping[str, list[str]],
    documents: Mapping[str, PublishedDocument],
    location: str,
) -> PublishedEvidence:
    if title not in documents:
        raise InvalidInput(
            location, f"the context has no paragraph {title!r}", "Use the file of the distractor setting."
        )
    lines = sentences[title]
    return PublishedEvidence(documents[title], lines[number].strip() if 0 <= number < len(lines) else "")


FORMAT = DatasetFormat(
    "hotpotqa",
    "Questions over two paragraphs among ten: the JSON file of the distractor setting",
    read_hotpotqa,
    license="CC BY-SA 4.0",
    source="HotpotQA, by its authors",
    citation="Yang et al. 2018: HotpotQA: A Dataset for Diverse, Explainable Multi-hop Question Answering. EMNLP.",
)
