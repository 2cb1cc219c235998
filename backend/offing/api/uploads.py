"""Receive uploaded files.

A request is admitted, parsed as it arrives, counted and kept on disk instead of in memory.
"""

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

from offing.api import serializers
from offing.api.problems import ProblemError, sanitize_for_response
from offing.api.schemas.library import UploadedFileOut
from offing.api.strict_request import check_no_nul
from offing.library.readers import DocumentReaderPool
from offing.services import ingestion, library
from offing.services.ingestion import IngestedFile, Upload, normalize_collection_name
from offing.storage.pool import Database

MAX_FILE_BYTES = 25 * 2**20
"""Maximum bytes of one file. A larger file is rejected; the other files of the request are kept."""

MAX_FILES = 500

MAX_REQUEST_BYTES = 256 * 2**20
"""Maximum bytes of one request."""

MAX_CONCURRENT_UPLOADS = 32
"""Maximum number of uploads in progress in one process."""

MAX_CONCURRENT_UPLOADS_PER_TENANT = 16
"""Maximum number of uploads in progress of one tenant, so that other tenants can upload too."""

MAX_PENDING_BYTES = 1024 * 2**20
"""Maximum bytes of all uploads in progress, as announced by their requests."""

MAX_PENDING_BYTES_PER_TENANT = MAX_PENDING_BYTES // 2
"""The same for one tenant, so that the largest file of another tenant fits."""

MAX_READER_WAIT_SECONDS = 300.0
"""Maximum seconds that one document waits for a reader behind the documents of others."""

FORM_FIELDS = frozenset({"files", "collection"})
"""Form fields that an upload may have."""

REMEDY = "Send multipart/form-data with one or more parts named `files`, and optionally one named `collection`."


@dataclass(frozen=True, slots=True)
class ReceivedFiles:
    """The files and fields of an upload form."""

    files: tuple[UploadFile, ...]
    too_large: frozenset[int]
    """Indexes in `files` of those that were longer than `MAX_FILE_BYTES`. Their content was dropped."""
    collection: str = ""
    """The collection that the files belong to. Empty means that they are single files."""


class _BoundedParser(MultiPartParser):
    """A multipart parser that stops writing a file to disk at `MAX_FILE_BYTES` and continues with the next one."""

    def on_part_begin(self) -> None:
        super().on_part_begin()
        self._counted = 0

    def on_part_data(self, data: bytes, start: int, end: int) -> None:
        self._counted += end - start
        # One byte more than allowed is written, so that the size of the file shows that it was too large.
        remaining_bytes = max(0, MAX_FILE_BYTES + 1 - (self._counted - (end - start)))
        super().on_part_data(data, start, min(end, start + remaining_bytes))


@dataclass(slots=True)
class UploadGate:
    """Counts the uploads in progress and rejects an upload that does not fit before its body is read.

    Admitted uploads wait for the document readers in the order of their documents.
    """

    uploads_by_tenant: Counter[UUID] = field(default_factory=Counter[UUID])
    pending_bytes_by_tenant: Counter[UUID] = field(default_factory=Counter[UUID])
    """Announced bytes of the uploads in progress, by tenant."""

    @contextmanager
    def admit(self, tenant_id: UUID, size_bytes: int) -> Generator[None]:
        """Count an upload of `size_bytes` while the block runs. Raises ProblemError if it does not fit."""
        if self.uploads_by_tenant[tenant_id] >= MAX_CONCURRENT_UPLOADS_PER_TENANT:
            raise ProblemError(
                429,
                "too_many_uploads",
                f"This tenant already has {MAX_CONCURRENT_UPLOADS_PER_TENANT} uploads in progress, which "
                "is the maximum.",
                RETRY_REMEDY,
            )
        if (
            self.uploads_by_tenant[tenant_id]
            and self.pending_bytes_by_tenant[tenant_id] + size_bytes > MAX_PENDING_BYTES_PER_TENANT
        ):
            megabytes = MAX_PENDING_BYTES_PER_TENANT // 2**20
            raise ProblemError(
                429,
                "too_many_uploads",
                f"The uploads of this tenant that are in progress can total at most {megabytes} MB.",
                RETRY_REMEDY,
            )
        full = (
            self.uploads_by_tenant.total() >= MAX_CONCURRENT_UPLOADS
            or self.pending_bytes_by_tenant.total() + size_bytes > MAX_PENDING_BYTES
        )
        if full and self.uploads_by_tenant.total():
            raise ProblemError(
                503, "too_many_uploads", "The server is processing as many uploads as it can.", RETRY_REMEDY
            )
        self.uploads_by_tenant[tenant_id] += 1
        self.pending_bytes_by_tenant[tenant_id] += size_bytes
        try:
            yield
        finally:
            self.uploads_by_tenant[tenant_id] -= 1
            self.pending_bytes_by_tenant[tenant_id] -= size_bytes


RETRY_REMEDY = "Send the request again after the number of seconds in Retry-After."


def get_announced_bytes(request: Request) -> int:
    """Return the number of bytes that the request announces.

    A chunked body counts with the maximum size.
    """
    length = request.headers.get("content-length", "")
    return int(length) if length.isdigit() else MAX_REQUEST_BYTES


@asynccontextmanager
async def receive_files(request: Request) -> AsyncGenerator[ReceivedFiles]:
    """Yield the files of a request as open temporary files, which are deleted afterwards. Raises ProblemError."""
    if not request.headers.get("content-type", "").lower().startswith("multipart/form-data"):
        raise ProblemError(422, "invalid_input", "The body is not multipart/form-data.", REMEDY, "files")
    parser = _BoundedParser(request.headers, _iter_body(request), max_files=MAX_FILES, max_fields=20)
    try:
        form = await parser.parse()
    except (MultiPartException, UnicodeError) as error:
        raise ProblemError(422, "invalid_input", f"The form cannot be read: {error}.", REMEDY, "files") from error
    try:
        yield _files_from_form(form)
    finally:
        await form.close()


async def _iter_body(request: Request) -> AsyncGenerator[bytes]:
    async for chunk in request.stream():
        yield chunk


def _files_from_form(form: FormData) -> ReceivedFiles:
    files = tuple(part for part in form.getlist("files") if isinstance(part, UploadFile))
    if not files:
        raise ProblemError(422, "invalid_input", "The form contains no file.", REMEDY, "files")
    for text in (file.filename or "" for file in files):
        check_no_nul(text, "files")
    too_large = frozenset(i for i, f in enumerate(files) if (f.size or 0) > MAX_FILE_BYTES)
    return ReceivedFiles(files, too_large, _collection_from_form(form))


def _collection_from_form(form: FormData) -> str:
    """Return the collection that the form names. Raises ProblemError for a field that would be ignored."""
    unknown = sorted(set(form) - FORM_FIELDS)
    if unknown:
        name = sanitize_for_response(unknown[0])
        raise ProblemError(422, "invalid_input", f"The form has no field {name!r}.", REMEDY, name)
    named = form.getlist("collection")
    if len(named) > 1 or any(isinstance(part, UploadFile) for part in named):
        raise ProblemError(
            422, "invalid_input", "`collection` must be a single text.", "Send `collection` once.", "collection"
        )
    return normalize_collection_name(str(named[0])) if named else ""


async def ingest_files(
    database: Database, document_readers: DocumentReaderPool, tenant_id: UUID, received: ReceivedFiles
) -> list[UploadedFileOut]:
    """Return the outcome of each file in the order sent.

    A name that was sent twice counts once, with its last bytes.
    """
    uploads = [_build_upload(file) for index, file in enumerate(received.files) if index not in received.too_large]
    ingested = await ingestion.ingest_uploads(
        database, tenant_id, uploads, collection=received.collection, readers=document_readers
    )
    by_name = {one.name: one for one in ingested}
    outcomes: list[UploadedFileOut] = []
    for index, file in enumerate(received.files):
        if index in received.too_large:
            outcomes.append(_serialize_too_large(file))
        elif (
            one := by_name.pop(ingestion.normalize_upload_name(file.filename or "", received.collection), None)
        ) is not None:
            outcomes.append(await _serialize_outcome(database, tenant_id, one))
    return outcomes


def _build_upload(file: UploadFile) -> Upload:
    return Upload(file.filename or "", partial(_read_file, file.file), file.size or 0)


def _read_file(file: BinaryIO) -> bytes:
    file.seek(0)
    return file.read()


async def _serialize_outcome(database: Database, tenant_id: UUID, ingested: IngestedFile) -> UploadedFileOut:
    source = (
        None
        if ingested.source_id is None
        else serializers.serialize_source(await library.get_source(database, tenant_id, ingested.source_id))
    )
    return UploadedFileOut(name=ingested.name, outcome=ingested.outcome, source=source, problem=ingested.problem)


def _serialize_too_large(file: UploadFile) -> UploadedFileOut:
    problem = f"The file has more than {MAX_FILE_BYTES // 2**20} MB. Split it."
    return UploadedFileOut(name=(file.filename or "")[:200], outcome="rejected", source=None, problem=problem)
