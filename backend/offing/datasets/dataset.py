"""Read a dataset: a folder with `questions.jsonl`, and optionally `documents/` and `dataset.toml`, or a single file.

Each line of `questions.jsonl` is one task. The documents are ingested as a collection that has the name of the
dataset, and only they are in the scope of its tasks.
"""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, Field, StringConstraints, ValidationError

from offing.core.errors import InvalidInput
from offing.datasets.task import TaskSpec, read_task_file

QUESTIONS, DOCUMENTS, DESCRIPTION = "questions.jsonl", "documents", "dataset.toml"
"""Names in the folder of a dataset."""

Name = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200, pattern=r"^[^/\\]+$")]
"""Name of a dataset, which is also that of its collection. A collection cannot have a path as its name."""


class DatasetDescription(BaseModel, frozen=True, extra="forbid"):
    """The content of `dataset.toml`."""

    name: Name | None = Field(default=None, description="`None` means the name of the folder.")
    license: str = ""
    source: str = Field(default="", description="Where the data is from.")
    citation: str = Field(default="", description="What to cite when results are published.")


@dataclass(frozen=True, slots=True)
class Dataset:
    """Tasks with their documents. Reading a dataset does not read its documents."""

    name: str
    tasks: tuple[TaskSpec, ...]
    """The tasks in the order of the file. With documents, the scope of a task without one is the collection."""
    documents: Path | None = None
    """The folder of the documents. `None` means that the dataset has none."""
    license: str = ""
    source: str = ""
    citation: str = ""


def open_dataset(path: Path, max_tasks: int | None = None) -> Dataset:
    """Read a dataset from its folder or from a file with one task per line.

    If `max_tasks` is `None`, all tasks are read. Raises InvalidInput that names the file, and the line and the
    field of a task that is not valid.
    """
    if not path.exists():
        remedy = f"Use a folder with {QUESTIONS}, or a file with one JSON object per line."
        raise InvalidInput(str(path), "there is no such file or folder", remedy)
    folder = path.resolve() if path.is_dir() else None
    specs = read_task_file(path if folder is None else _get_questions(folder), max_tasks)
    if not specs:
        raise InvalidInput(str(path), "the dataset contains no tasks", "Write one JSON object per line.")
    if folder is None:
        return Dataset(path.stem, tuple(specs))
    description = read_description(folder)
    name = description.name or folder.name
    documents = folder / DOCUMENTS if (folder / DOCUMENTS).is_dir() else None
    if documents is not None:
        specs = [_limit_scope(spec, name) for spec in specs]
    return Dataset(name, tuple(specs), documents, description.license, description.source, description.citation)


def read_description(folder: Path) -> DatasetDescription:
    """Read `dataset.toml` of a folder. Without the file, all fields are empty. Raises InvalidInput."""
    file = folder / DESCRIPTION
    if not file.is_file():
        return DatasetDescription()
    try:
        return DatasetDescription.model_validate(tomllib.loads(file.read_text(encoding="utf-8")))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(str(file), f"the file is not valid TOML: {error}", "Correct the file.") from None
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        field = ".".join([str(file), *map(str, first["loc"])])
        raise InvalidInput(field, first["msg"], "The fields are name, license, source and citation.") from None


def _get_questions(folder: Path) -> Path:
    if not (folder / QUESTIONS).is_file():
        remedy = f"The tasks of a dataset are in {QUESTIONS}, one JSON object per line."
        raise InvalidInput(str(folder), f"the folder has no file {QUESTIONS}", remedy)
    return folder / QUESTIONS


def _limit_scope(spec: TaskSpec, collection: str) -> TaskSpec:
    """Return the task with the collection in its scope, unless it names documents or an environment."""
    if spec.scope.environment or spec.scope.collections or spec.scope.sources:
        return spec
    return spec.model_copy(update={"scope": spec.scope.model_copy(update={"collections": [collection]})})
