"""Formats in which datasets are published: what an importer returns for each question, and how formats are found.

The module of a format is imported when the format is used.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from offing.core.scoring import Criterion
from offing.registry import Group, Registry


@dataclass(frozen=True, slots=True)
class PublishedDocument:
    """A document of a published dataset. Documents with the same title and text are one document."""

    title: str
    text: str


@dataclass(frozen=True, slots=True)
class PublishedEvidence:
    """Reference evidence of a published question."""

    document: PublishedDocument | None = None
    """The document that has the evidence. `None` if the dataset does not contain the document."""
    quote: str = ""
    """Words of the document. Empty means the whole document."""
    source: str = ""
    """Title or id of a document that the dataset does not contain. It is used only without `document`."""


@dataclass(frozen=True, slots=True)
class PublishedQuestion:
    """A question of a published dataset with everything that belongs to it."""

    location: str
    """File and line or number of the question, for errors."""
    name: str
    """Id of the question in its dataset."""
    question: str
    answers: tuple[str, ...] | None
    """Accepted answers. Empty: the question cannot be answered. `None`: the correct answer is unknown."""
    evidence: tuple[PublishedEvidence, ...] = ()
    documents: tuple[PublishedDocument, ...] = ()
    """All documents that were published with the question, with those that do not contain its answer."""
    rubric: tuple[Criterion, ...] = ()
    tags: tuple[str, ...] = ()
    split: str = ""


@dataclass(frozen=True, slots=True)
class DatasetFormat:
    """A format of published datasets."""

    name: str
    description: str
    """What a dataset of this format measures, and which files `read` expects."""
    read: Callable[[Path], Iterator[PublishedQuestion]]
    """Reads the questions one by one. Raises `InvalidInput` that names the file, the line and the field."""
    license: str
    """License under which the data was published, for `dataset.toml`. Check it before you share the data."""
    source: str
    citation: str


DATASET_FORMATS: Registry[DatasetFormat] = Registry(
    Group.DATASET_FORMATS,
    "a dataset format",
    accepts=lambda value: isinstance(value, DatasetFormat),
    remedy="Register an offing.datasets.dataset_format.DatasetFormat.",
    name_of=lambda dataset_format: dataset_format.name,
)
"""The dataset formats by name."""
