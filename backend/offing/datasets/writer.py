"""Write a published dataset as a folder that `open_dataset` reads."""

import hashlib
import json
import random
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import orjson

from offing.core.errors import InvalidInput
from offing.datasets.dataset import DESCRIPTION, DOCUMENTS, QUESTIONS
from offing.datasets.dataset_format import DatasetFormat, PublishedDocument, PublishedEvidence, PublishedQuestion
from offing.datasets.task import parse_task_line
from offing.library.extraction import extract_text

MAX_STEM_CHARS = 60
"""Maximum characters of a document's title in its file name."""

UNTITLED = "Untitled"


@dataclass(frozen=True, slots=True)
class ImportedDataset:
    """What was written."""

    question_count: int
    document_count: int


def import_dataset(
    dataset_format: DatasetFormat, path: Path, destination: Path, max_questions: int | None = None, seed: int = 0
) -> ImportedDataset:
    """Write a published dataset as a folder.

    `max_questions` selects a random sample, which depends only on the seed and the number of questions; `None` means
    all. The documents of each selected question are written with those that do not contain its answer. Nothing is
    written if this fails. Raises `InvalidInput` if the destination is not empty, or for a record that is not valid.
    """
    destination = destination.resolve()
    _check_destination(destination)
    destination.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=destination.parent, prefix=f".{destination.name[:50]}-") as temporary:
        folder = Path(temporary, "dataset")
        folder.mkdir()
        imported = _write_questions(folder, iter_sampled(dataset_format, path, max_questions, seed))
        if not imported.question_count:
            raise InvalidInput(str(path), "the dataset contains no questions", "Check the path.")
        (folder / DESCRIPTION).write_text(_render_description(destination.name, dataset_format), "utf-8")
        folder.replace(destination)
    return imported


def _write_questions(folder: Path, questions: Iterable[PublishedQuestion]) -> ImportedDataset:
    documents, question_count = DocumentFolder(folder / DOCUMENTS), 0
    with (folder / QUESTIONS).open("wb") as file:
        for question in questions:
            file.write(orjson.dumps(_build_task(question, documents)) + b"\n")
            question_count += 1
    return ImportedDataset(question_count, documents.document_count)


def iter_sampled(
    dataset_format: DatasetFormat, path: Path, max_questions: int | None, seed: int
) -> Iterator[PublishedQuestion]:
    """Yield the questions of a random sample in their order. The files are read twice, and not held in memory."""
    if max_questions is None:
        yield from dataset_format.read(path)
        return
    count = sum(1 for _ in dataset_format.read(path))
    selected = set(random.Random(seed).sample(range(count), min(max_questions, count)))
    yield from (question for index, question in enumerate(dataset_format.read(path)) if index in selected)


@dataclass(slots=True)
class DocumentFolder:
    """The documents of a dataset: one file per document, each content once, with titles that differ."""

    folder: Path
    _titles: dict[bytes, str] = field(default_factory=dict[bytes, str])
    """Titles of the documents that were written, by the hash of title and text."""
    _used: set[str] = field(default_factory=set[str])

    @property
    def document_count(self) -> int:
        return len(self._titles)

    def add(self, document: PublishedDocument) -> str:
        """Write a document unless it was written before, and return the title that it has in the library."""
        digest = hashlib.sha256(f"{document.title}\n{document.text}".encode()).digest()
        if digest not in self._titles:
            heading, title = self._choose_heading(document.title)
            self._titles[digest] = title
            self._used.add(title.casefold())
            self.folder.mkdir(exist_ok=True)
            name = f"{_file_stem(title)}-{digest.hex()[:10]}.md"
            (self.folder / name).write_text(f"# {heading}\n\n{document.text.strip()}\n", "utf-8", newline="\n")
        return self._titles[digest]

    def _choose_heading(self, title: str) -> tuple[str, str]:
        """Return a heading whose title no other document has, and the title that the library reads from it."""
        plain = " ".join(title.split()) or UNTITLED
        number, heading = 1, plain
        while not (read := _read_title(heading)) or read.casefold() in self._used:
            number += 1
            heading = f"{plain[:250]} ({number})" if read else f"{UNTITLED} ({number})"
        return heading, read


def _read_title(heading: str) -> str:
    """Return the title that the library gives to a document with this heading. Empty if it reads none."""
    return extract_text(f"# {heading}\n\nText.\n".encode(), "x.md").title


def _file_stem(title: str) -> str:
    """Return a title as a part of a file name: letters, digits and hyphens only."""
    return re.sub(r"[^\w]+|_+", "-", title.casefold())[:MAX_STEM_CHARS].strip("-") or "document"


def _check_destination(destination: Path) -> None:
    if destination.exists() and (not destination.is_dir() or any(destination.iterdir())):
        raise InvalidInput(str(destination), "the destination is not an empty folder", "Name a folder to create.")


def _build_task(question: PublishedQuestion, folder: DocumentFolder) -> dict[str, Any]:
    """Return the task of a question after its documents were written. Raises `InvalidInput` with its location."""
    titles = {document: folder.add(document) for document in question.documents}
    task: dict[str, Any] = {"question": question.question, "name": question.name}
    if question.answers is not None:
        task["answers"] = list(question.answers)
    if question.evidence:
        task["evidence"] = [_build_evidence(item, titles, folder) for item in question.evidence]
    if question.rubric:
        task["rubric"] = [
            {"text": item.text, "weight": item.weight} | ({"rejected": item.rejected} if item.rejected else {})
            for item in question.rubric
        ]
    task |= {"tags": list(question.tags)} if question.tags else {}
    task |= {"split": question.split} if question.split else {}
    parse_task_line(orjson.dumps(task).decode(), question.location)
    return task


def _build_evidence(
    item: PublishedEvidence, titles: dict[PublishedDocument, str], folder: DocumentFolder
) -> dict[str, str]:
    source = item.source
    if item.document is not None:
        source = titles[item.document] if item.document in titles else folder.add(item.document)
    return {name: value for name, value in (("quote", item.quote), ("source", source)) if value}


def _render_description(name: str, dataset_format: DatasetFormat) -> str:
    fields: Iterable[tuple[str, str]] = (
        ("name", name),
        ("license", dataset_format.license),
        ("source", dataset_format.source),
        ("citation", dataset_format.citation),
    )
    return "".join(f"{field} = {json.dumps(value, ensure_ascii=False)}\n" for field, value in fields)
