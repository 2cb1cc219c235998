"""Ingest documents into the library, from a folder or from uploads.

Bytes that are already stored are never read again, even under another name.
"""

import asyncio
import hashlib
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Literal
from uuid import UUID

from offing.clock import new_id
from offing.core.errors import InvalidInput, Unavailable
from offing.library import document_index
from offing.library.extraction import MAX_FILE_BYTES, DocumentRejectedError
from offing.library.folder import list_documents
from offing.library.readers import DocumentReaderPool, ParsedDocument, ReadersBusyError, ReaderTurn
from offing.storage import library as rows
from offing.storage import passages as texts
from offing.storage.library import StoredText
from offing.storage.passages import PassageRow, PostingRow
from offing.storage.pool import Connection, Database

log = logging.getLogger(__name__)


IngestOutcome = Literal["added", "unchanged", "replaced", "rejected", "failed"]
"""`rejected`: no text can be extracted from the file. `failed`: it was not stored this time; sending it again
can help.
"""

ProgressCallback = Callable[[int, int, str], None]
"""Called with the number of finished files, the number of all files, and the name of the last one."""

MAX_COLLECTION_CHARS = 200
"""Maximum number of characters of the name of an uploaded collection."""

MAX_PATH_CHARS = 1000
"""Maximum number of characters of an uploaded file's path inside its folder."""

STORE_RETRY_SECONDS = (0.5, 2.0, 5.0)
"""Seconds between attempts to store a document while Postgres does not answer."""

MAX_CONSECUTIVE_FAILURES = 4
"""Number of successive documents that cannot be stored, after which the remaining documents are skipped."""


@dataclass(frozen=True, slots=True)
class IngestedFile:
    """The outcome of one file."""

    name: str
    outcome: IngestOutcome
    source_id: UUID | None
    """The source of the file. `None` if the file was rejected or failed."""
    problem: str = ""
    """Why the file was rejected or failed, and what to do."""


@dataclass(frozen=True, slots=True)
class IngestedFolder:
    """The outcome of a folder."""

    collection: str
    """The name of the collection, which a run's scope names. By default the absolute path of the folder."""
    files: tuple[IngestedFile, ...]
    skipped: dict[str, int]
    """Number of files of unsupported types, by suffix."""
    removed_count: int
    """Number of documents that are no longer in the folder or no longer readable, and were removed from search."""
    truncated: bool
    """Whether the folder has more files than the library ingests from one folder."""


@dataclass(frozen=True, slots=True)
class Upload:
    """A file that a person sent. `data` is its bytes, or a function that loads them."""

    name: str
    data: bytes | Callable[[], bytes]
    size: int | None = None
    """Number of bytes. `None` means the length of `data`, which then holds the bytes."""


@dataclass(frozen=True, slots=True)
class _File:
    """A file to ingest. `load` reads its bytes again, so that a batch is never held in memory."""

    name: str
    sha256: bytes
    load: Callable[[], bytes]


@dataclass(slots=True)
class _IngestBatch:
    """The progress of an ingestion."""

    tenant_id: UUID
    collection: str
    total: int
    on_progress: ProgressCallback
    outcomes: dict[str, IngestedFile] = field(default_factory=dict[str, IngestedFile])
    failures: int = 0
    """Number of successive documents that could not be stored."""

    def set_outcome(self, name: str, outcome: IngestOutcome, source_id: UUID | None = None, problem: str = "") -> None:
        self.outcomes[name] = IngestedFile(name, outcome, source_id, problem)
        self.on_progress(len(self.outcomes), self.total, name)


def ignore_progress(done: int, total: int, name: str) -> None:
    """Do nothing for each file: the callback for callers that show no progress."""


async def ingest_folder(
    db: Database,
    tenant_id: UUID,
    folder: Path,
    on_progress: ProgressCallback = ignore_progress,
    *,
    collection: str = "",
    readers: DocumentReaderPool,
) -> IngestedFolder:
    """Ingest new and changed files of a folder of any size. Raises InvalidInput if the folder cannot be read.

    `collection` is the name of the collection. Empty means the absolute path of the folder. A file that is
    rejected or fails does not affect the others.
    """
    listing = await asyncio.to_thread(list_documents, folder)
    batch = _IngestBatch(tenant_id, collection or str(listing.root), len(listing.names), on_progress)
    files = await asyncio.to_thread(_hash_files, listing.root, listing.names, batch)
    await _ingest_files(db, batch, files, readers)
    outcomes = tuple(batch.outcomes[name] for name in listing.names)
    removed_count = 0
    if not listing.truncated and batch.failures < MAX_CONSECUTIVE_FAILURES:
        present = [file.name for file in outcomes if file.outcome != "rejected"]
        async with db.transaction(tenant_id) as connection:
            removed_count = await rows.mark_removed(connection, tenant_id, batch.collection, present)
    return IngestedFolder(batch.collection, outcomes, listing.skipped, removed_count, listing.truncated)


def _hash_files(root: Path, names: Sequence[str], batch: _IngestBatch) -> list[_File]:
    """Return the files that can be read and are not too large. The others are rejected at once."""
    files: list[_File] = []
    for name in names:
        path = root / name
        try:
            if path.stat().st_size > MAX_FILE_BYTES:
                batch.set_outcome(name, "rejected", problem=_too_large_problem(path.stat().st_size))
            else:
                files.append(_File(name, hashlib.sha256(path.read_bytes()).digest(), path.read_bytes))
        except OSError as error:
            batch.set_outcome(
                name, "rejected", problem=f"The file cannot be read: {error.strerror}. Check its permissions."
            )
    return files


def _too_large_problem(bytes_count: int) -> str:
    return f"The file has {bytes_count / 2**20:.0f} MB; the maximum is {MAX_FILE_BYTES // 2**20} MB. Split it."


async def ingest_uploads(
    db: Database, tenant_id: UUID, uploads: Sequence[Upload], *, collection: str = "", readers: DocumentReaderPool
) -> tuple[IngestedFile, ...]:
    """Ingest files that a person sent, in the order given.

    A name that was sent twice counts once, with its last bytes.

    `collection` is a name that `normalize_collection_name` returned; files of a collection keep their path
    inside the folder. Empty means single files. Raises InvalidInput for a file without a usable name.
    """
    named = {normalize_upload_name(u.name, collection): u for u in uploads}
    batch = _IngestBatch(tenant_id, collection, len(named), ignore_progress)
    files = await asyncio.to_thread(_hash_uploads, named, batch)
    await _ingest_files(db, batch, files, readers)
    return tuple(batch.outcomes[name] for name in named)


def _hash_uploads(named: Mapping[str, Upload], batch: _IngestBatch) -> list[_File]:
    """Return the uploads that are not too large. The others are rejected at once."""
    files: list[_File] = []
    for name, upload in named.items():
        data = upload.data
        load = data if callable(data) else partial(bytes, data)
        size = upload.size if upload.size is not None else len(load())
        if size > MAX_FILE_BYTES:
            batch.set_outcome(name, "rejected", problem=_too_large_problem(size))
        else:
            files.append(_File(name, hashlib.sha256(load()).digest(), load))
    return files


def normalize_collection_name(text: str) -> str:
    """Return the name of a collection of uploads. An empty text stays empty and means single files.

    Raises InvalidInput for a path, because collections named by a path are folders of this machine.
    """
    name = text.strip()
    if "/" in name or "\\" in name or name in (".", ".."):
        raise InvalidInput("collection", f"{name[:100]!r} is a path", "Use a name without slashes, such as papers.")
    if len(name) > MAX_COLLECTION_CHARS or not name.isprintable():
        remedy = f"Use at most {MAX_COLLECTION_CHARS} printable characters."
        raise InvalidInput("collection", "is not a valid name", remedy)
    return name


def normalize_upload_name(name: str, collection: str) -> str:
    """Return the name of an uploaded file in a collection.

    Raises InvalidInput if nothing usable is left of it.
    """
    return _relative_path(name) if collection else _base_name(name)


def _base_name(name: str) -> str:
    """Return the name of a file without any folder, in a printable form.

    Raises InvalidInput if nothing is left.
    """
    bare = _make_printable(name.replace("\\", "/").rpartition("/")[2])[:200]
    if bare in ("", ".", ".."):
        raise InvalidInput("files", "a file has no valid name", "Use a name such as report.pdf.")
    return bare


def _relative_path(name: str) -> str:
    """Return the path of a file inside its folder, without parts that lead out of it.

    Raises InvalidInput for no path.
    """
    parts = [_make_printable(part) for part in name.replace("\\", "/").split("/")]
    path = "/".join(part for part in parts if part not in ("", ".", ".."))
    if not path or len(path) > MAX_PATH_CHARS:
        problem = "a file has no valid name" if not path else f"a path has more than {MAX_PATH_CHARS} characters"
        raise InvalidInput("files", problem, "Use a name such as notes/report.pdf.")
    return path


def _make_printable(text: str) -> str:
    return "".join(c for c in text if c.isprintable()).strip()


async def _ingest_files(db: Database, batch: _IngestBatch, files: Sequence[_File], readers: DocumentReaderPool) -> None:
    async with db.transaction(batch.tenant_id) as connection:
        held = {
            s.name: s
            for s in await rows.list_current_sources(
                connection, batch.tenant_id, batch.collection, _display_names(files)
            )
        }
        known = await rows.list_stored_texts(connection, batch.tenant_id, list({f.sha256 for f in files}))
        back = [s.id for s in held.values() if s.is_removed]
        if back:
            await rows.mark_present(connection, batch.tenant_id, back)
    ready = {sha: text for sha, text in known.items() if text.index_version == document_index.INDEX_VERSION}
    waiting: dict[bytes, list[_File]] = {}
    for file in files:
        before = held.get(file.name)
        if before and before.snapshot_sha256 == file.sha256 and file.sha256 in ready:
            batch.set_outcome(file.name, "unchanged", before.id)
        else:
            waiting.setdefault(file.sha256, []).append(file)
    replaced = {s.name for s in held.values()}
    todo = ((same, ready.get(sha)) for sha, same in waiting.items())

    async def in_turn() -> None:
        for same, known in todo:
            await _ingest_document(db, batch, readers, same, known, replaced)

    # Each task takes the next document after its last one is stored. So a folder of any size proceeds at the pace of
    # the database, and has no more documents in the queue of the readers than a small folder.
    async with asyncio.TaskGroup() as tasks:
        for _ in range(readers.max_documents):
            tasks.create_task(in_turn())


def _display_names(files: Iterable[_File]) -> list[str]:
    return [f.name for f in files]


async def _ingest_document(
    db: Database,
    batch: _IngestBatch,
    readers: DocumentReaderPool,
    files: list[_File],
    known_text: StoredText | None,
    replaced: set[str],
) -> None:
    """Store one document under every name that its bytes have, and read it first if its text is not stored yet.

    An error becomes the outcome of this document and does not affect the others.
    """
    try:
        if batch.failures >= MAX_CONSECUTIVE_FAILURES:
            raise Unavailable("Postgres did not respond while earlier documents were being stored.")
        if known_text is not None:
            return await _store_with_retry(db, batch, files, known_text, replaced)
        async with readers.acquire(batch.tenant_id) as turn:
            await _store_with_retry(db, batch, files, await _read_document(turn, files[0]), replaced)
    except (DocumentRejectedError, OSError) as rejection:
        _set_outcomes(batch, files, "rejected", str(rejection))
    except (Unavailable, ReadersBusyError) as error:
        _set_outcomes(
            batch,
            files,
            "failed",
            f"{error} Ingest the document again. Documents that are already stored are not read again.",
        )
    except Exception:  # an error in one document must not prevent the others from being ingested
        log.exception("a document was not ingested", extra={"document": files[0].name})
        _set_outcomes(batch, files, "failed", "An internal error occurred. See the log for details.")


async def _read_document(turn: ReaderTurn, file: _File) -> tuple[bytes, ParsedDocument]:
    data = await asyncio.to_thread(file.load)
    return data, await turn.read(file.name, data)


def _set_outcomes(batch: _IngestBatch, files: Sequence[_File], outcome: IngestOutcome, problem: str) -> None:
    for file in files:
        batch.set_outcome(file.name, outcome, problem=problem)


async def _store_with_retry(
    db: Database,
    batch: _IngestBatch,
    files: list[_File],
    document: StoredText | tuple[bytes, ParsedDocument],
    replaced: set[str],
) -> None:
    """Store a document with the retries of `STORE_RETRY_SECONDS`. Raises Unavailable if all attempts fail."""
    for pause in (*STORE_RETRY_SECONDS, None):
        try:
            async with db.transaction(batch.tenant_id) as connection:
                known = isinstance(document, StoredText)
                text_id = document.id if known else await store_document(connection, batch.tenant_id, *document)
                title = document.title if known else document[1].title
                linked_files = await _link_sources(connection, batch, files, text_id, title, replaced)
        except Unavailable:
            if pause is None or batch.failures >= MAX_CONSECUTIVE_FAILURES:
                batch.failures += 1
                raise
            await asyncio.sleep(pause)
        else:
            batch.failures = 0
            for one in linked_files:
                batch.set_outcome(one.name, one.outcome, one.source_id)
            return


async def store_document(connection: Connection, tenant_id: UUID, data: bytes, document: ParsedDocument) -> UUID:
    """Store the bytes and the extracted text of a document. Returns the id of the text.

    Bytes that are already stored keep their text.
    """
    new = rows.NewExtractedText(
        id=new_id(),
        snapshot_sha256=hashlib.sha256(data).digest(),
        media_type=document.media_type,
        content=data,
        extractor=document.extractor,
        text_sha256=hashlib.sha256(document.text.encode()).digest(),
        text=document.text,
        title=document.title,
    )
    return await _insert_text(connection, tenant_id, new, document)


async def _insert_text(
    connection: Connection, tenant_id: UUID, new: rows.NewExtractedText, document: ParsedDocument
) -> UUID:
    """Store an extracted text with its passages. Returns its id."""
    text_id = await rows.insert_text(connection, tenant_id, new)
    if text_id is None:
        known = (await rows.list_stored_texts(connection, tenant_id, [new.snapshot_sha256]))[new.snapshot_sha256]
        if known.index_version == document.digest:
            return known.id
        text_id = known.id
    await texts.replace_index(
        connection,
        tenant_id,
        text_id,
        document.digest,
        [PassageRow(*p) for p in document.passages],
        [PostingRow(*p) for p in document.postings],
    )
    return text_id


async def _link_sources(
    connection: Connection, batch: _IngestBatch, files: list[_File], text_id: UUID, title: str, replaced: set[str]
) -> list[IngestedFile]:
    """Link every one of these names to a text.

    Returns the outcomes that apply once the transaction is committed.
    """
    linked_files: list[IngestedFile] = []
    for file in files:
        source = await rows.upsert_source(
            connection,
            batch.tenant_id,
            source_id=new_id(),
            collection=batch.collection,
            name=file.name,
            title=title or _title_from_name(file.name),
            text_id=text_id,
        )
        linked_files.append(IngestedFile(file.name, "replaced" if file.name in replaced else "added", source))
    return linked_files


def _title_from_name(name: str) -> str:
    return PurePosixPath(name).stem.replace("_", " ").strip() or name
