"""The library: taking documents in, finding passages, and reading stored text. Erasure is in `services.erasure`.

The only home of what becomes of a file: bytes that are known are never read again, whatever they are called.
"""

import asyncio
import hashlib
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Literal
from uuid import UUID

from offing.clock import new_id
from offing.core.errors import InvalidInput, NotFound, Unavailable
from offing.core.tool import Span
from offing.library import digest
from offing.library.extraction import MOST_BYTES, Refused
from offing.library.folder import documents_in
from offing.library.readers import Busy, Document, Readers, Turn
from offing.library.terms import terms
from offing.storage import library as rows
from offing.storage import passages as texts
from offing.storage import search as ranking
from offing.storage.library import KnownText, SourceRow
from offing.storage.passages import PassageRow, PostingRow
from offing.storage.pool import Connection, Database
from offing.storage.search import HitRow
from offing.tools.tool import FoundPassage, LibraryPort, Window

log = logging.getLogger(__name__)

Outcome = Literal["added", "unchanged", "replaced", "refused", "failed"]
"""`refused`: no text can be had from the file. `failed`: it was not stored this time; sending it again can help."""

Progress = Callable[[int, int, str], None]
"""Called with files done, files in all, and the name of the last one."""

MOST_COLLECTION = 200
"""Maximum number of characters of the name of an uploaded collection."""

MOST_PATH = 1000
"""Maximum number of characters of an uploaded file's path inside its folder."""

STORE_PAUSES = (0.5, 2.0, 5.0)
"""Seconds between attempts to store a document that Postgres did not answer for."""

MAX_FAILURES = 4
"""Documents in succession that could not be stored after all attempts; then the rest of a batch is not tried."""

MOST_TERMS = 40
"""Terms of a query that are looked up; the rest of a very long question adds nothing but time."""


@dataclass(frozen=True, slots=True)
class Ingested:
    """What became of one file."""

    name: str
    outcome: Outcome
    source: UUID | None
    """None: it was refused, or failed."""
    problem: str = ""
    """Why it was refused or failed, and what to do."""


@dataclass(frozen=True, slots=True)
class FolderIngested:
    """What became of a folder."""

    collection: str
    """The folder's absolute path; what a run's scope names."""
    files: tuple[Ingested, ...]
    skipped: dict[str, int]
    """Files of types that are not read, by suffix."""
    gone: int
    """Documents that are no longer in the folder, or no longer readable, and were taken out of search."""
    cut_short: bool
    """The folder has more files than one library takes from it."""


@dataclass(frozen=True, slots=True)
class Upload:
    """A file as a person sent it. `data`: its bytes, or a function that loads them from where they lie."""

    name: str
    data: bytes | Callable[[], bytes]
    size: int | None = None
    """Number of bytes. `None`: that of `data`, which are the bytes themselves."""


@dataclass(frozen=True, slots=True)
class LibraryScope:
    """What of the library may be seen. Empty: all of it."""

    collections: tuple[str, ...] = ()
    sources: tuple[UUID, ...] = ()


EVERYTHING = LibraryScope()


@dataclass(frozen=True, slots=True)
class InContext:
    """A span with the text around it."""

    artefact: UUID
    source: UUID
    title: str
    name: str
    start: int
    end: int
    before: str
    text: str
    after: str
    snapshot: bytes


@dataclass(frozen=True, slots=True)
class _File:
    """A file to take in. `load` reads its bytes again, so that no batch is held in memory."""

    name: str
    sha256: bytes
    load: Callable[[], bytes]


@dataclass(slots=True)
class _Batch:
    """Where an ingestion stands."""

    tenant: UUID
    collection: str
    total: int
    on_progress: Progress
    outcomes: dict[str, Ingested] = field(default_factory=dict[str, Ingested])
    failures: int = 0
    """Documents in succession that could not be stored."""

    def settle(self, name: str, outcome: Outcome, source: UUID | None = None, problem: str = "") -> None:
        self.outcomes[name] = Ingested(name, outcome, source, problem)
        self.on_progress(len(self.outcomes), self.total, name)


def _silent(done: int, total: int, name: str) -> None:
    pass


async def ingest_folder(
    db: Database, tenant: UUID, folder: Path, on_progress: Progress = _silent, *, readers: Readers
) -> FolderIngested:
    """Take in what is new in a folder of any size. Raises InvalidInput when the folder cannot be read.

    A single file that is refused or fails has that as its outcome, and the others are taken in.
    """
    listing = await asyncio.to_thread(documents_in, folder)
    batch = _Batch(tenant, str(listing.root), len(listing.names), on_progress)
    files = await asyncio.to_thread(_hashed, listing.root, listing.names, batch)
    await _take_in(db, batch, files, readers)
    outcomes = tuple(batch.outcomes[name] for name in listing.names)
    gone = 0
    if not listing.cut_short and batch.failures < MAX_FAILURES:
        present = [file.name for file in outcomes if file.outcome != "refused"]
        async with db.transaction(tenant) as connection:
            gone = await rows.mark_gone(connection, tenant, batch.collection, present)
    return FolderIngested(batch.collection, outcomes, listing.skipped, gone, listing.cut_short)


def _hashed(root: Path, names: Sequence[str], batch: _Batch) -> list[_File]:
    """The files that can be read and are not too large; the others are refused at once."""
    files: list[_File] = []
    for name in names:
        path = root / name
        try:
            if path.stat().st_size > MOST_BYTES:
                batch.settle(name, "refused", problem=_too_large(path.stat().st_size))
            else:
                files.append(_File(name, hashlib.sha256(path.read_bytes()).digest(), path.read_bytes))
        except OSError as error:
            batch.settle(name, "refused", problem=f"It cannot be read: {error.strerror}. Check its permissions.")
    return files


def _too_large(size: int) -> str:
    return f"The file has {size / 2**20:.0f} MB; {MOST_BYTES // 2**20} MB is the most. Split it."


async def ingest_uploads(
    db: Database, tenant: UUID, uploads: Sequence[Upload], *, collection: str = "", readers: Readers
) -> tuple[Ingested, ...]:
    """Ingest files that a person sent, in the order given. A name sent twice counts once, with its last bytes.

    `collection`: a name that `collection_name` returned; files of a collection keep their path inside the folder.
    Empty: single files. Raises InvalidInput for a file without a usable name.
    """
    named = {upload_name(u.name, collection): u for u in uploads}
    batch = _Batch(tenant, collection, len(named), _silent)
    files = await asyncio.to_thread(_hashed_uploads, named, batch)
    await _take_in(db, batch, files, readers)
    return tuple(batch.outcomes[name] for name in named)


def _hashed_uploads(named: Mapping[str, Upload], batch: _Batch) -> list[_File]:
    """The uploads that are not too large; the others are refused at once."""
    files: list[_File] = []
    for name, upload in named.items():
        data = upload.data
        load = data if callable(data) else partial(bytes, data)
        size = upload.size if upload.size is not None else len(load())
        if size > MOST_BYTES:
            batch.settle(name, "refused", problem=_too_large(size))
        else:
            files.append(_File(name, hashlib.sha256(load()).digest(), load))
    return files


def collection_name(text: str) -> str:
    """Return the name of a collection of uploads. An empty text stays empty and means single files.

    Raises InvalidInput for a path: collections whose name is a path are the folders of this machine.
    """
    name = text.strip()
    if "/" in name or "\\" in name or name in (".", ".."):
        raise InvalidInput("collection", f"{name[:100]!r} is a path", "Send a name without slashes, such as papers.")
    if len(name) > MOST_COLLECTION or not name.isprintable():
        remedy = f"Send at most {MOST_COLLECTION} printable characters."
        raise InvalidInput("collection", "is not a usable name", remedy)
    return name


def upload_name(name: str, collection: str) -> str:
    """Return the name of an uploaded file in a collection. Raises InvalidInput when nothing usable is left of it."""
    return _path_in_folder(name) if collection else _safe_name(name)


def _safe_name(name: str) -> str:
    """A file's name without any folder, as a person may see it. Raises InvalidInput when nothing is left."""
    bare = _printable(name.replace("\\", "/").rpartition("/")[2])[:200]
    if bare in ("", ".", ".."):
        raise InvalidInput("files", "a file has no usable name", "Give it a name such as report.pdf.")
    return bare


def _path_in_folder(name: str) -> str:
    """A file's path inside its folder, without any part that leads out of it. Raises InvalidInput for no path."""
    parts = [_printable(part) for part in name.replace("\\", "/").split("/")]
    path = "/".join(part for part in parts if part not in ("", ".", ".."))
    if not path or len(path) > MOST_PATH:
        problem = "a file has no usable name" if not path else f"a path has more than {MOST_PATH} characters"
        raise InvalidInput("files", problem, "Give it a name such as notes/report.pdf.")
    return path


def _printable(text: str) -> str:
    return "".join(c for c in text if c.isprintable()).strip()


async def _take_in(db: Database, batch: _Batch, files: Sequence[_File], readers: Readers) -> None:
    async with db.transaction(batch.tenant) as connection:
        held = {s.name: s for s in await rows.held_sources(connection, batch.tenant, batch.collection, _names(files))}
        known = await rows.known_texts(connection, batch.tenant, list({f.sha256 for f in files}))
        back = [s.id for s in held.values() if s.gone]
        if back:
            await rows.mark_present(connection, batch.tenant, back)
    ready = {sha: text for sha, text in known.items() if text.digest == digest.VERSION}
    waiting: dict[bytes, list[_File]] = {}
    for file in files:
        before = held.get(file.name)
        if before and before.snapshot == file.sha256 and file.sha256 in ready:
            batch.settle(file.name, "unchanged", before.id)
        else:
            waiting.setdefault(file.sha256, []).append(file)
    replaced = {s.name for s in held.values()}
    todo = ((same, ready.get(sha)) for sha, same in waiting.items())

    async def in_turn() -> None:
        for same, known in todo:
            await _take_one(db, batch, readers, same, known, replaced)

    # Each task takes the next document when its last one is stored. So a folder of any size waits for the database at
    # the pace at which that stores, and has no more documents in the readers' queue than a small one.
    async with asyncio.TaskGroup() as tasks:
        for _ in range(readers.at_once):
            tasks.create_task(in_turn())


def _names(files: Iterable[_File]) -> list[str]:
    return [f.name for f in files]


async def _take_one(
    db: Database, batch: _Batch, readers: Readers, same: list[_File], known: KnownText | None, replaced: set[str]
) -> None:
    """Store one document under every name that its bytes have, read before where its text is not known. Whatever goes
    wrong with it is its outcome, and nobody else's."""
    try:
        if batch.failures >= MAX_FAILURES:
            raise Unavailable("Postgres did not answer for the documents before it.")
        if known is not None:
            return await _stored(db, batch, same, known, replaced)
        async with readers.turn(batch.tenant) as turn:
            await _stored(db, batch, same, await _read(turn, same[0]), replaced)
    except (Refused, OSError) as refusal:
        _settle_all(batch, same, "refused", str(refusal))
    except (Unavailable, Busy) as error:
        _settle_all(batch, same, "failed", f"{error} Take it in again; what is stored by now is not read again.")
    except Exception:  # a fault in one document must not keep the others from being taken in
        log.exception("a document was not taken in", extra={"document": same[0].name})
        _settle_all(batch, same, "failed", "Something unforeseen went wrong; it is in the log.")


async def _read(turn: Turn, file: _File) -> tuple[bytes, Document]:
    data = await asyncio.to_thread(file.load)
    return data, await turn.read(file.name, data)


def _settle_all(batch: _Batch, same: Sequence[_File], outcome: Outcome, problem: str) -> None:
    for file in same:
        batch.settle(file.name, outcome, problem=problem)


async def _stored(
    db: Database, batch: _Batch, same: list[_File], what: KnownText | tuple[bytes, Document], replaced: set[str]
) -> None:
    """Store a document, in as many attempts as `STORE_PAUSES` allows. Raises Unavailable when all have failed."""
    for pause in (*STORE_PAUSES, None):
        try:
            async with db.transaction(batch.tenant) as connection:
                known = isinstance(what, KnownText)
                artefact = what.id if known else await kept(connection, batch.tenant, *what)
                title = what.title if known else what[1].title
                found = await _put(connection, batch, same, artefact, title, replaced)
        except Unavailable:
            if pause is None or batch.failures >= MAX_FAILURES:
                batch.failures += 1
                raise
            await asyncio.sleep(pause)
        else:
            batch.failures = 0
            for one in found:
                batch.settle(one.name, one.outcome, one.source)
            return


async def kept(connection: Connection, tenant: UUID, data: bytes, document: Document) -> UUID:
    """Store a document's bytes with what was read in them; the text's id. Bytes that are known keep theirs."""
    new = rows.Artefact(
        id=new_id(),
        snapshot=hashlib.sha256(data).digest(),
        media_type=document.media_type,
        raw=data,
        extractor=document.extractor,
        sha256=hashlib.sha256(document.text.encode()).digest(),
        text=document.text,
        title=document.title,
    )
    return await _store(connection, tenant, new, document)


async def _store(connection: Connection, tenant: UUID, new: rows.Artefact, document: Document) -> UUID:
    """The text's id, with its passages in place."""
    artefact = await rows.add_artefact(connection, tenant, new)
    if artefact is None:
        known = (await rows.known_texts(connection, tenant, [new.snapshot]))[new.snapshot]
        if known.digest == document.digest:
            return known.id
        artefact = known.id
    await texts.put_digest(
        connection,
        tenant,
        artefact,
        document.digest,
        [PassageRow(*p) for p in document.passages],
        [PostingRow(*p) for p in document.postings],
    )
    return artefact


async def _put(
    connection: Connection, batch: _Batch, same: list[_File], artefact: UUID, title: str, replaced: set[str]
) -> list[Ingested]:
    """Let every one of these names stand for a text; what becomes of each once the transaction is committed."""
    found: list[Ingested] = []
    for file in same:
        source = await rows.put_source(
            connection,
            batch.tenant,
            id=new_id(),
            collection=batch.collection,
            name=file.name,
            title=title or _title_from(file.name),
            artefact=artefact,
        )
        found.append(Ingested(file.name, "replaced" if file.name in replaced else "added", source))
    return found


def _title_from(name: str) -> str:
    return PurePosixPath(name).stem.replace("_", " ").strip() or name


async def search(db: Database, tenant: UUID, query: str, limit: int, scope: LibraryScope = EVERYTHING) -> list[HitRow]:
    """The best passages for a query, best first. Empty when nothing matches or the query has no telling word."""
    wanted = list(dict.fromkeys(terms(query)))[:MOST_TERMS]
    if not wanted:
        return []
    async with db.transaction(tenant) as connection:
        return await ranking.search(
            connection, tenant, wanted, limit, collections=scope.collections, sources=scope.sources
        )


async def source(db: Database, tenant: UUID, id: UUID) -> SourceRow:
    async with db.transaction(tenant) as connection:
        found = await rows.source(connection, tenant, id)
    if found is None:
        raise NotFound("source", str(id))
    return found


async def sources(
    db: Database,
    tenant: UUID,
    *,
    collection: str | None = None,
    text: str | None = None,
    before: tuple[datetime, UUID] | None = None,
    limit: int = 50,
) -> tuple[list[SourceRow], int]:
    """Sources, latest first, and how many match in all. `before`: time and id of the last one of the page before."""
    async with db.transaction(tenant) as connection:
        return await rows.list_sources(connection, tenant, collection=collection, text=text, before=before, limit=limit)


async def texts_of(db: Database, tenant: UUID, spans: Sequence[Span]) -> tuple[str | None, ...]:
    """The exact stored text of each span. None: it is not there (erased), or shorter than the span says."""
    async with db.transaction(tenant) as connection:
        return await texts.texts_of(connection, tenant, spans)


async def passage_in_context(
    db: Database, tenant: UUID, artefact: UUID, start: int, end: int, around: int = 600
) -> InContext:
    """A span and `around` code points on either side. Raises NotFound, or InvalidInput for a span not in the text."""
    first = max(0, start - around)
    async with db.transaction(tenant) as connection:
        row = await texts.in_context(connection, tenant, artefact, first, end + around - first)
    if row is None:
        raise NotFound("text", str(artefact))
    if not 0 <= start < end <= row.length:
        raise InvalidInput("end", f"the text has {row.length} characters", "Ask for a span within it.")
    at, stop = start - first, end - first
    return InContext(
        artefact, row.source, row.title, row.name, start, end,
        before=row.text[:at], text=row.text[at:stop], after=row.text[stop:], snapshot=row.snapshot,
    )  # fmt: skip


def library_port(db: Database, tenant: UUID, scope: LibraryScope = EVERYTHING) -> LibraryPort:
    """The library as the tools of one run see it."""
    return _Port(db, tenant, scope)


@dataclass(frozen=True, slots=True)
class _Port:
    db: Database
    tenant: UUID
    scope: LibraryScope

    async def search(self, query: str, limit: int) -> tuple[FoundPassage, ...]:
        hits = await search(self.db, self.tenant, query, limit, self.scope)
        return tuple(
            FoundPassage(h.artefact, h.source, h.title, h.name, h.heading, h.start, h.end, h.text, h.score)
            for h in hits
        )

    async def read(self, wanted: str, start: int, length: int) -> Window | None:
        async with self.db.transaction(self.tenant) as connection:
            row = await texts.window(
                connection, self.tenant, wanted, start, length,
                collections=self.scope.collections, sources=self.scope.sources,
            )  # fmt: skip
        return row and Window(row.source, row.artefact, row.title, row.name, start, row.text, row.length)

    async def suggest(self, wanted: str, limit: int) -> tuple[str, ...]:
        hits = await search(self.db, self.tenant, wanted, limit * 3, self.scope)
        return tuple(dict.fromkeys(h.name for h in hits))[:limit]
