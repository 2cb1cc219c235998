"""Ingest documents into the library, from a folder or from uploads.

Bytes that are already stored are never read again, even under another name.
"""

import asyncio
import hashlib
import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Literal
from uuid import UUID

from offing.clock import new_id
from offing.core.errors import Conflict, InvalidInput, Unavailable
from offing.library import document_index
from offing.library.extraction import MAX_FILE_BYTES, DocumentRejectedError
from offing.library.folder import list_documents
from offing.library.readers import DocumentReaderPool, ParsedDocument, ReadersBusyError, ReaderTurn
from offing.services.document_storage import store_documents
from offing.storage import library as rows
from offing.storage.library import NewSource, StoredText
from offing.storage.pool import Database

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

MAX_BATCH_DOCUMENTS = 256
"""Maximum number of documents that one transaction stores."""

MAX_BATCH_CHARS = 2_000_000
"""Number of code points of text after which a transaction stores no further document."""

MAX_BATCH_SECONDS = 2.0
"""Seconds after which the documents that were read are stored, even if they are few."""


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
    ready = {
        sha: text
        for sha, text in known.items()
        if text.index_version == document_index.INDEX_VERSION and text.has_publication
    }
    waiting: dict[bytes, list[_File]] = {}
    for file in files:
        before = held.get(file.name)
        if before and before.snapshot_sha256 == file.sha256 and file.sha256 in ready:
            batch.set_outcome(file.name, "unchanged", before.id)
        else:
            waiting.setdefault(file.sha256, []).append(file)
    storing = _StoreQueue(db, batch, {s.name for s in held.values()})
    todo = ((same, ready.get(sha)) for sha, same in waiting.items())

    async def in_turn() -> None:
        for same, known in todo:
            await _ingest_document(storing, readers, same, known)

    # Each task takes the next document after its last one was read, and waits while a full batch is being stored. So a
    # folder of any size proceeds at the pace of the database, and has no more documents in the queue of the readers
    # than a small folder.
    async with asyncio.TaskGroup() as tasks:
        for _ in range(readers.max_documents):
            tasks.create_task(in_turn())
    await storing.flush()


def _display_names(files: Iterable[_File]) -> list[str]:
    return [f.name for f in files]


@dataclass(frozen=True, slots=True)
class _Document:
    """A document that is ready to be stored under every name that its bytes have."""

    files: list[_File]
    text: StoredText | tuple[bytes, ParsedDocument]
    """The stored text, or the bytes and what was read from them."""

    @property
    def title(self) -> str:
        return self.text.title if isinstance(self.text, StoredText) else self.text[1].title

    @property
    def char_count(self) -> int:
        return 0 if isinstance(self.text, StoredText) else len(self.text[1].text)


class _StoreQueue:
    """The documents of an ingestion that were read and wait to be stored together."""

    def __init__(self, db: Database, batch: _IngestBatch, replaced: set[str]) -> None:
        self.db, self.batch, self.replaced = db, batch, replaced
        self._waiting: list[_Document] = []
        self._storing = asyncio.Lock()
        self._stored_at = time.monotonic()

    async def add(self, document: _Document) -> None:
        """Add a document. Store all that wait if they are many, and wait for it."""
        self._waiting.append(document)
        while self._is_due():
            async with self._storing:
                if self._is_due():
                    await self._store_waiting()

    async def flush(self) -> None:
        """Store the documents that still wait."""
        async with self._storing:
            await self._store_waiting()

    def _is_due(self) -> bool:
        return bool(self._waiting) and (
            len(self._waiting) >= MAX_BATCH_DOCUMENTS
            or sum(document.char_count for document in self._waiting) >= MAX_BATCH_CHARS
            or time.monotonic() - self._stored_at >= MAX_BATCH_SECONDS
        )

    async def _store_waiting(self) -> None:
        documents, self._waiting = self._waiting, []
        if documents:
            await _store_batch(self, documents)
        self._stored_at = time.monotonic()


async def _ingest_document(
    storing: _StoreQueue, readers: DocumentReaderPool, files: list[_File], known_text: StoredText | None
) -> None:
    """Read one document if its text is not stored yet, and queue it to be stored.

    An error becomes the outcome of this document and does not affect the others.
    """
    batch = storing.batch
    try:
        if batch.failures >= MAX_CONSECUTIVE_FAILURES:
            raise Unavailable("Postgres did not respond while earlier documents were being stored.")
        if known_text is not None:
            text = known_text
        else:
            async with readers.acquire(batch.tenant_id) as turn:
                text = await _read_document(turn, files[0])
    except Exception as error:
        return _set_failure(batch, files, error)
    await storing.add(_Document(files, text))


def _set_failure(batch: _IngestBatch, files: Sequence[_File], error: Exception) -> None:
    """Note why a document was not ingested. It must not prevent the others from being ingested."""
    match error:
        case Conflict():
            _set_outcomes(batch, files, "failed", str(error))
        case DocumentRejectedError() | OSError():
            _set_outcomes(batch, files, "rejected", str(error))
        case Unavailable() | ReadersBusyError():
            remedy = "Ingest the document again. Documents that are already stored are not read again."
            _set_outcomes(batch, files, "failed", f"{error} {remedy}")
        case _:
            log.error("a document was not ingested", exc_info=error, extra={"document": files[0].name})
            _set_outcomes(batch, files, "failed", "An internal error occurred. See the log for details.")


async def _read_document(turn: ReaderTurn, file: _File) -> tuple[bytes, ParsedDocument]:
    data = await asyncio.to_thread(file.load)
    return data, await turn.read(file.name, data)


def _set_outcomes(batch: _IngestBatch, files: Sequence[_File], outcome: IngestOutcome, problem: str) -> None:
    for file in files:
        batch.set_outcome(file.name, outcome, problem=problem)


async def _store_batch(storing: _StoreQueue, documents: Sequence[_Document]) -> None:
    """Store documents in one transaction. If it fails because of one of them, store each in its own.

    While Postgres does not answer, repeat it with the pauses of `STORE_RETRY_SECONDS`.
    """
    batch = storing.batch
    for pause in (*STORE_RETRY_SECONDS, None):
        try:
            linked_files = await _store_once(storing, documents)
        except Unavailable as error:
            if pause is None or batch.failures >= MAX_CONSECUTIVE_FAILURES:
                batch.failures += len(documents)
                return _set_failures(batch, documents, error)
            await asyncio.sleep(pause)
        except Exception as error:
            if len(documents) == 1:
                return _set_failures(batch, documents, error)
            for document in documents:
                await _store_batch(storing, [document])
            return
        else:
            batch.failures = 0
            for one in linked_files:
                batch.set_outcome(one.name, one.outcome, one.source_id)
            return


def _set_failures(batch: _IngestBatch, documents: Iterable[_Document], error: Exception) -> None:
    for document in documents:
        _set_failure(batch, document.files, error)


async def _store_once(storing: _StoreQueue, documents: Sequence[_Document]) -> list[IngestedFile]:
    """Return the outcomes that apply once the transaction is committed."""
    batch = storing.batch
    new = [document.text for document in documents if not isinstance(document.text, StoredText)]
    files = [file for document in documents for file in document.files]
    names, hashes = [file.name for file in files], [file.sha256 for file in files]
    async with storing.db.transaction(batch.tenant_id) as connection:
        # Erasing a source locks it, its texts, and then the index. In another order, one could wait for the other.
        text_ids = await rows.lock_sources(connection, batch.tenant_id, batch.collection, names, hashes)
        if any(isinstance(d.text, StoredText) and d.text.id not in text_ids for d in documents):
            raise Conflict("The text of the document was erased meanwhile.", "Ingest the document again.")
        stored = iter(await store_documents(connection, batch.tenant_id, new))
        sources = [
            NewSource(new_id(), file.name, document.title or _title_from_name(file.name), text_id)
            for document in documents
            for text_id in [document.text.id if isinstance(document.text, StoredText) else next(stored)]
            for file in document.files
        ]
        ids = await rows.upsert_sources(connection, batch.tenant_id, batch.collection, sources)
    return [IngestedFile(name, "replaced" if name in storing.replaced else "added", id) for name, id in ids.items()]


def _title_from_name(name: str) -> str:
    return PurePosixPath(name).stem.replace("_", " ").strip() or name
