"""Uploaded files on their way in: admitted, parsed as they arrive, counted, and held on disk, never all in memory."""

from collections import Counter
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import BinaryIO
from uuid import UUID

from fastapi import Request
from starlette.datastructures import FormData, UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser

from offing.api import wire
from offing.api.problems import Refusal, printable
from offing.api.schemas import UploadedOut
from offing.api.strict import refuse_nul
from offing.library.readers import Readers
from offing.services import library
from offing.services.library import Ingested, Upload, collection_name
from offing.storage.pool import Database

MOST_FILE = 25 * 2**20
"""Bytes of one file. A larger one is refused; the others of the request are kept."""

MOST_FILES = 500

MAX_UPLOAD = 256 * 2**20
"""Bytes of one request."""

MAX_UPLOADS = 32
"""Uploads in progress in one process."""

MAX_UPLOADS_OF_TENANT = 16
"""Uploads in progress of one tenant, so that another one finds room."""

MAX_UPLOAD_BYTES = 1024 * 2**20
"""Bytes of all uploads in progress, as their requests announce them."""

MAX_UPLOAD_BYTES_OF_TENANT = MAX_UPLOAD_BYTES // 2
"""The same of one tenant, so that the largest file of another one finds room."""

QUEUE_SECONDS = 300.0
"""Maximum seconds that one document waits for a reader behind the documents of others."""

FIELDS = frozenset({"files", "collection"})
"""Parts that an upload may have."""

REMEDY = "Send multipart/form-data with one or more parts named `files`, and optionally one named `collection`."


@dataclass(frozen=True, slots=True)
class Sent:
    """What a form held."""

    files: tuple[UploadFile, ...]
    too_large: frozenset[int]
    """Indexes in `files` of those that were longer than `MOST_FILE`; their content was dropped."""
    collection: str = ""
    """The collection that the files belong to. Empty: none, they are single files."""


class _CountingParser(MultiPartParser):
    """Stops writing a file to disk at `MOST_FILE`, and goes on with the next one."""

    def on_part_begin(self) -> None:
        super().on_part_begin()
        self._counted = 0

    def on_part_data(self, data: bytes, start: int, end: int) -> None:
        self._counted += end - start
        # One byte more than allowed is written, so that the file's size tells what happened.
        room = max(0, MOST_FILE + 1 - (self._counted - (end - start)))
        super().on_part_data(data, start, min(end, start + room))


@dataclass(slots=True)
class UploadGate:
    """Counts the uploads in progress and rejects the one that does not fit any more, before its body is read.

    Those that are admitted wait for the document readers in the order of their documents.
    """

    by_tenant: Counter[UUID] = field(default_factory=Counter[UUID])
    announced: Counter[UUID] = field(default_factory=Counter[UUID])
    """Bytes by tenant."""

    @contextmanager
    def admitted(self, tenant: UUID, size: int) -> Generator[None]:
        """Hold a place for an upload of `size` bytes. Raises Refusal when there is none."""
        if self.by_tenant[tenant] >= MAX_UPLOADS_OF_TENANT:
            raise Refusal(429, "too_many_uploads", f"{MAX_UPLOADS_OF_TENANT} uploads are in progress.", WAIT)
        if self.by_tenant[tenant] and self.announced[tenant] + size > MAX_UPLOAD_BYTES_OF_TENANT:
            megabytes = MAX_UPLOAD_BYTES_OF_TENANT // 2**20
            raise Refusal(429, "too_many_uploads", f"Uploads of {megabytes} MB are in progress.", WAIT)
        full = self.by_tenant.total() >= MAX_UPLOADS or self.announced.total() + size > MAX_UPLOAD_BYTES
        if full and self.by_tenant.total():
            raise Refusal(503, "too_many_uploads", "Other uploads take up all that this server takes at once.", WAIT)
        self.by_tenant[tenant] += 1
        self.announced[tenant] += size
        try:
            yield
        finally:
            self.by_tenant[tenant] -= 1
            self.announced[tenant] -= size


WAIT = "Send it again when the seconds of Retry-After have passed."


def announced_size(request: Request) -> int:
    """Bytes of the body as the request announces them; a body that is sent in chunks counts as the largest allowed."""
    length = request.headers.get("content-length", "")
    return int(length) if length.isdigit() else MAX_UPLOAD


@asynccontextmanager
async def received(request: Request) -> AsyncGenerator[Sent]:
    """The files of a request, as open temporary files that go away afterwards. Raises Refusal."""
    if not request.headers.get("content-type", "").lower().startswith("multipart/form-data"):
        raise Refusal(422, "invalid_input", "The body is not a form.", REMEDY, "files")
    parser = _CountingParser(request.headers, _stream(request), max_files=MOST_FILES, max_fields=20)
    try:
        form = await parser.parse()
    except (MultiPartException, UnicodeError) as error:
        raise Refusal(422, "invalid_input", f"The form cannot be read: {error}.", REMEDY, "files") from error
    try:
        yield _sent(form)
    finally:
        await form.close()


async def _stream(request: Request) -> AsyncGenerator[bytes]:
    async for chunk in request.stream():
        yield chunk


def _sent(form: FormData) -> Sent:
    files = tuple(part for part in form.getlist("files") if isinstance(part, UploadFile))
    if not files:
        raise Refusal(422, "invalid_input", "The form holds no file.", REMEDY, "files")
    for text in (file.filename or "" for file in files):
        refuse_nul(text, "files")
    too_large = frozenset(i for i, f in enumerate(files) if (f.size or 0) > MOST_FILE)
    return Sent(files, too_large, _collection(form))


def _collection(form: FormData) -> str:
    """The collection that the form names. Raises Refusal for a part that would be ignored."""
    unknown = sorted(set(form) - FIELDS)
    if unknown:
        name = printable(unknown[0])
        raise Refusal(422, "invalid_input", f"The form has no field {name!r}.", REMEDY, name)
    named = form.getlist("collection")
    if len(named) > 1 or any(isinstance(part, UploadFile) for part in named):
        raise Refusal(422, "invalid_input", "`collection` must be one text.", "Send it once.", "collection")
    return collection_name(str(named[0])) if named else ""


async def taken_in(database: Database, readers: Readers, tenant: UUID, sent: Sent) -> list[UploadedOut]:
    """What became of each file, in the order sent. A name that was sent twice counts once, with its last bytes."""
    uploads = [_upload(file) for index, file in enumerate(sent.files) if index not in sent.too_large]
    done = await library.ingest_uploads(database, tenant, uploads, collection=sent.collection, readers=readers)
    taken = {one.name: one for one in done}
    outcomes: list[UploadedOut] = []
    for index, file in enumerate(sent.files):
        if index in sent.too_large:
            outcomes.append(_too_large(file))
        elif (one := taken.pop(library.upload_name(file.filename or "", sent.collection), None)) is not None:
            outcomes.append(await _outcome(database, tenant, one))
    return outcomes


def _upload(file: UploadFile) -> Upload:
    return Upload(file.filename or "", partial(_loaded, file.file), file.size or 0)


def _loaded(file: BinaryIO) -> bytes:
    file.seek(0)
    return file.read()


async def _outcome(database: Database, tenant: UUID, one: Ingested) -> UploadedOut:
    source = None if one.source is None else wire.source_out(await library.source(database, tenant, one.source))
    return UploadedOut(name=one.name, outcome=one.outcome, source=source, problem=one.problem)


def _too_large(file: UploadFile) -> UploadedOut:
    problem = f"The file has more than {MOST_FILE // 2**20} MB. Split it."
    return UploadedOut(name=(file.filename or "")[:200], outcome="refused", source=None, problem=problem)
