"""A dataset is stored with its documents as a collection, and the rubric of a task stays apart from the task."""

from pathlib import Path

import pytest

from offing.core.errors import Conflict
from offing.core.scoring import Criterion, Reference
from offing.datasets.dataset import open_dataset
from offing.library.readers import DocumentReaderPool
from offing.services import collections, ingestion, tasks
from offing.services.datasets import StoredDataset, store_dataset
from offing.services.ingestion import Upload
from offing.storage import tasks as rows
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database

QUESTIONS = """
{"question": "When did the tower burn?", "answers": ["1755"]}
{"question": "Describe the fire.", "rubric": [{"text": "Names the year.", "weight": 2}]}
{"question": "Who lit it?", "answers": [], "rubric": "Says that nobody knows."}
{"question": "What is it?"}
"""


def write_towers(folder: Path) -> Path:
    (folder / "documents").mkdir(parents=True)
    (folder / "dataset.toml").write_text('name = "towers"')
    (folder / "questions.jsonl").write_text(QUESTIONS)
    (folder / "documents" / "fire.md").write_text("# The fire\n\nThe tower burned down in 1755.\n")
    (folder / "documents" / "storm.md").write_text("# The storm\n\nThe storm came in 1703.\n")
    return folder


async def store(pool: Database, folder: Path) -> StoredDataset:
    async with DocumentReaderPool(1) as readers:
        return await store_dataset(pool, LOCAL_TENANT, open_dataset(folder), readers=readers)


async def test_documents_become_the_collection_of_the_dataset_and_storing_again_changes_nothing(
    pool: Database, tmp_path: Path
) -> None:
    folder = write_towers(tmp_path / "files")
    first = await store(pool, folder)
    again = await store(pool, folder)
    assert first.documents is not None
    assert again.documents is not None
    assert [file.outcome for file in first.documents.files] == ["added", "added"]
    assert [file.outcome for file in again.documents.files] == ["unchanged", "unchanged"]
    assert (first.tasks.new_count, again.tasks.new_count) == (4, 0)
    assert again.tasks.task_ids == first.tasks.task_ids
    task = await tasks.get_task(pool, LOCAL_TENANT, first.tasks.task_ids[0])
    assert (task.dataset, task.scope) == ("towers", {"collections": ["towers"]})


async def test_a_rubric_is_stored_in_the_reference_with_or_without_answers(pool: Database, tmp_path: Path) -> None:
    stored = await store(pool, write_towers(tmp_path / "files"))
    burned, described, lit, unknown = stored.tasks.task_ids
    async with pool.transaction(LOCAL_TENANT) as connection:
        references = await rows.get_references(connection, stored.tasks.task_ids)
        answers = await rows.get_accepted_answers(connection, stored.tasks.task_ids)
    assert references == {
        burned: Reference(("1755",)),
        described: Reference(None, (), (Criterion("Names the year.", 2.0),)),
        lit: Reference((), (), (Criterion("Says that nobody knows."),)),
    }
    assert answers == {burned: ("1755",), lit: ()}
    assert unknown not in references


async def test_a_collection_with_other_documents_is_not_used_for_a_dataset(pool: Database, tmp_path: Path) -> None:
    async with DocumentReaderPool(1) as readers:
        upload = Upload("own.md", b"# Mine\n\nA note of a person.\n")
        await ingestion.ingest_uploads(pool, LOCAL_TENANT, [upload], collection="towers", readers=readers)
    with pytest.raises(Conflict, match=r"contains 'own\.md'"):
        await store(pool, write_towers(tmp_path / "files"))
    (collection,) = await collections.list_collections(pool, LOCAL_TENANT)
    assert (collection.row.name, collection.row.count) == ("towers", 1)
