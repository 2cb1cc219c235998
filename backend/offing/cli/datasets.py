"""`offing datasets`: import published datasets, and show what a dataset contains."""

from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter
from rich.console import Console
from rich.table import Table

from offing.cli.options import Json
from offing.cli.terminal import print_json, strip_control
from offing.core.errors import InvalidInput
from offing.datasets.dataset import Dataset, open_dataset
from offing.datasets.dataset_format import DATASET_FORMATS
from offing.datasets.writer import import_dataset
from offing.library.folder import list_documents

app = App(name="datasets", help="Datasets: tasks with their documents, as files.")

SHOWN_TASKS = 3
"""Number of tasks whose questions are shown."""


@app.command(name="import")
def import_published(
    format: Annotated[str, Parameter(help="A format of `offing datasets formats`.")],
    path: Annotated[Path, Parameter(help="The published file or folder.")],
    destination: Annotated[Path, Parameter(help="The folder to create. Its name is that of the dataset.")],
    *,
    max_questions: int | None = None,
    seed: int = 0,
    json: Json = False,
) -> int:
    """Write a published dataset as a folder for `offing rollouts collect --tasks`.

    Parameters
    ----------
    max_questions
        Size of a random sample of the questions. Their documents are written with those that do not contain an answer.
        Default: all questions.
    seed
        Seed of the sample.
    """
    if max_questions is not None and max_questions < 1:
        raise InvalidInput("--max-questions", f"{max_questions} is out of range", "Use 1 or more.")
    imported = import_dataset(DATASET_FORMATS.get_named(format, "FORMAT"), path, destination, max_questions, seed)
    if json:
        return print_json({"path": str(destination), **asdict(imported)})
    print(f"{destination}: {imported.question_count:,} questions, {imported.document_count:,} documents")
    return 0


@app.command
def formats(*, json: Json = False) -> int:
    """List the formats that can be imported."""
    known = list(DATASET_FORMATS.iter_usable())
    if json:
        return print_json([{"name": f.name, "description": f.description, "license": f.license} for f in known])
    table = Table("format", "content", "license", box=None)
    for one in known:
        table.add_row(one.name, one.description, one.license)
    Console().print(table)
    return 0


@app.command
def show(path: Path, *, json: Json = False) -> int:
    """Show what a dataset contains: a folder, or a file with one task per line."""
    dataset = open_dataset(path)
    description = describe_dataset(dataset)
    if json:
        return print_json(description)
    for name, value in description.items():
        if value not in ("", {}):
            text = ", ".join(f"{k} {n}" for k, n in value.items()) if isinstance(value, dict) else str(value)
            print(f"{name.replace('_', ' '):<14} {strip_control(text)}")
    for task in dataset.tasks[:SHOWN_TASKS]:
        print(f"\n{strip_control(task.name)}  {strip_control(task.question)}")
    return 0


def describe_dataset(dataset: Dataset) -> dict[str, str | int | dict[str, int]]:
    """Return the counts of a dataset, and where it is from."""
    references = [task.reference for task in dataset.tasks]
    known = [reference for reference in references if reference is not None]
    documents = len(list_documents(dataset.documents).names) if dataset.documents else 0
    return {
        "name": dataset.name,
        "tasks": len(dataset.tasks),
        "documents": documents,
        "with_answers": sum(bool(one.answers) for one in known),
        "unanswerable": sum(one.answers == () for one in known),
        "with_evidence": sum(bool(one.evidence) for one in known),
        "with_rubric": sum(bool(one.rubric) for one in known),
        "splits": dict(Counter(task.split for task in dataset.tasks if task.split)),
        "tags": dict(Counter(tag for task in dataset.tasks for tag in task.tags).most_common(20)),
        "license": dataset.license,
        "source": dataset.source,
        "citation": dataset.citation,
    }
