"""Compute the vectors of passages that have none, in the background.

A process claims a tenant, embeds the passages of its texts batch by batch, those of the newest sources first, and
stores each batch in a transaction that renews the claim. So two processes never embed the same text, unless one is
interrupted for longer than a claim.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import islice
from typing import Any
from uuid import UUID

import numpy as np

from offing.core.errors import LeaseLostError
from offing.core.model import FailureKind
from offing.core.run import StopReason
from offing.models.embedding import Embedder, Embeddings
from offing.models.role_call import AttemptFailure
from offing.services.library_models import MIN_CALL_COST_USD
from offing.services.tenant_meter import TenantMeter
from offing.storage import vectors
from offing.storage.pool import Database
from offing.storage.vectors import FillingClaim, PassageText, TextVectors, UnfilledText, VectorCoverage

CLAIM_SECONDS = 120.0
"""Seconds after which another process may claim the tenant of a process that does not store anything."""

MAX_CALL_SECONDS = 100.0
"""Maximum number of seconds of one call of the embedding model."""

MAX_TURN_SECONDS = 30.0
"""Seconds after which a process releases a tenant, so that the next one gets its turn."""

CHECK_SECONDS = 600.0
"""Seconds after which all sources of a tenant are checked again. A source that was removed may be back."""

UNUSED_MODEL_SECONDS = 2 * CHECK_SECONDS
"""Seconds without a claim after which the vectors of another model are deleted. Processes with other settings may
still use it, and they check their tenants more often.
"""

SPEND_PAUSE_SECONDS = 300.0
"""Pause of a tenant whose daily spending limit is reached."""

MAX_IDLE_SECONDS = 60.0
"""Seconds without a new vector after which nobody waits for further ones."""

WAIT_POLL_SECONDS = 0.5

MAX_CONCURRENT_CALLS = 4
"""Maximum number of concurrent calls of one process. Until the cost of a call is known, there is one at a time."""

MAX_LISTED_TEXTS = 1_000
"""Maximum number of texts without vectors that are listed at once."""

MAX_DELETED_TEXTS = 500
"""Maximum number of texts whose vectors of another model are deleted per transaction."""

REJECTED = frozenset({FailureKind.BAD_REQUEST, FailureKind.CONTEXT_TOO_LONG, FailureKind.CONTENT_FILTERED})
"""Failures that are caused by the texts."""

UNCLEAR = frozenset({FailureKind.OVERLOADED, FailureKind.TIMEOUT, FailureKind.INVALID_OUTPUT})
"""Failures that are caused by the texts if they are repeated while the model embeds other texts."""

MAX_UNCLEAR_FAILURES = 3
"""Number of successive unclear failures after which the texts are tested."""

PROBE = "A short text."
"""Text that every model accepts, to find out whether a model works."""


@dataclass(frozen=True, slots=True)
class FillingResult:
    """What one turn of a tenant did."""

    text_count: int
    """Number of texts that got vectors, or whose passages the model rejects."""
    failure: AttemptFailure | None = None
    """Why the turn ended early. `None` means that it did not."""


async def fill_next_tenant(
    database: Database,
    embedder: Embedder,
    *,
    failure_count: int = 0,
    is_stopping: Callable[[], bool] = lambda: False,
) -> FillingResult | None:
    """Compute vectors for one tenant until all texts have some, the turn ends or the model fails.

    `failure_count` is the number of successive failures before. `None` means that no tenant has texts without vectors,
    or that other processes have claimed them. Raises LeaseLostError if the claim ended too early.
    """
    claim = await vectors.claim_filling(database, embedder.key, CLAIM_SECONDS, CHECK_SECONDS)
    if claim is None:
        return None
    turn = _Turn(database, embedder, claim, failure_count, is_stopping)
    pause = 0.0
    try:
        result = await turn.fill_tenant()
        if result.failure is not None and result.failure.kind is FailureKind.BUDGET_EXHAUSTED:
            pause = SPEND_PAUSE_SECONDS
    finally:
        async with database.transaction(claim.tenant_id) as connection:
            await vectors.release_claim(connection, claim, pause)
    return result


async def wait_until_filled(
    database: Database,
    tenant_id: UUID,
    embedder: Embedder,
    collections: Sequence[str],
    on_progress: Callable[[VectorCoverage], None],
    *,
    max_idle_seconds: float = MAX_IDLE_SECONDS,
) -> VectorCoverage:
    """Wait until other processes have computed the vectors of collections, or no further ones for `max_idle_seconds`.

    Returns how many texts have vectors at the end.
    """
    done, changed_at = -1, time.monotonic()
    while True:
        async with database.transaction(tenant_id) as connection:
            coverage = await vectors.get_coverage(connection, tenant_id, embedder.key, collections)
        on_progress(coverage)
        if coverage.filled_count + coverage.rejected_count != done:
            done, changed_at = coverage.filled_count + coverage.rejected_count, time.monotonic()
        if done >= coverage.text_count or time.monotonic() - changed_at > max_idle_seconds:
            return coverage
        await asyncio.sleep(WAIT_POLL_SECONDS)


class _Turn:
    """The work of one process for one tenant."""

    def __init__(
        self,
        database: Database,
        embedder: Embedder,
        claim: FillingClaim,
        failure_count: int,
        is_stopping: Callable[[], bool],
    ) -> None:
        self._database, self._claim, self._is_stopping = database, claim, is_stopping
        self._batch_size = embedder.batch_size
        self._passages = _PassageEmbedder(embedder, TenantMeter(database, claim.tenant_id), failure_count, self._renew)
        self._ends_at = time.monotonic() + MAX_TURN_SECONDS

    async def fill_tenant(self) -> FillingResult:
        count = 0
        while not self._is_over():
            async with self._database.transaction(self._claim.tenant_id) as connection:
                texts, next_passage = await vectors.list_unfilled(connection, self._claim, MAX_LISTED_TEXTS)
            if not texts:
                await self._finish(next_passage)
                break
            stored = await self._fill_texts(texts)
            count += stored.text_count
            if stored.failure is not None or not stored.text_count:
                return FillingResult(count, stored.failure)
        return FillingResult(count)

    def _is_over(self) -> bool:
        return self._is_stopping() or time.monotonic() > self._ends_at

    async def _fill_texts(self, texts: Sequence[UnfilledText]) -> FillingResult:
        """Store the vectors of texts until the turn is over, the model fails or the claim is lost."""
        count = 0
        batches = _split_batches(texts, self._batch_size)
        while not self._is_over():
            concurrent = list(islice(batches, MAX_CONCURRENT_CALLS if self._passages.knows_cost else 1))
            embedded = await asyncio.gather(*(self._embed_texts(batch) for batch in concurrent))
            results = [one if isinstance(one, AttemptFailure) else await self._store(one) for one in embedded]
            count += sum(one for one in results if isinstance(one, int))
            failure = next((one for one in results if isinstance(one, AttemptFailure)), None)
            if failure is not None or not concurrent:
                return FillingResult(count, failure)
        return FillingResult(count)

    async def _embed_texts(self, texts: Sequence[UnfilledText]) -> list[TextVectors] | AttemptFailure:
        async with self._database.transaction(self._claim.tenant_id) as connection:
            passages = await vectors.read_passages(connection, self._claim.tenant_id, texts)
        inputs = [_render_passage(text, passage) for text, own in zip(texts, passages, strict=True) for passage in own]
        rows: list[Any] = []
        for first in range(0, len(inputs), self._batch_size):
            if first:
                await self._renew()
            part = await self._passages.embed_each(inputs[first : first + self._batch_size])
            if isinstance(part, AttemptFailure):
                return part
            rows += part
        counts = [len(own) for own in passages]
        return [
            _join_rows(text, rows[end - count : end])
            for text, count, end in zip(texts, counts, np.cumsum(counts), strict=True)
        ]

    async def _renew(self) -> None:
        async with self._database.transaction(self._claim.tenant_id) as connection:
            if await vectors.renew_claim(connection, self._claim, CLAIM_SECONDS, None) is None:
                raise LeaseLostError("The claim of the tenant has ended.")

    async def _store(self, texts: Sequence[TextVectors]) -> int | AttemptFailure:
        dimensions = next((t.vectors.shape[1] for t in texts if t.vectors.any()), None)
        async with self._database.transaction(self._claim.tenant_id) as connection:
            stored = await vectors.renew_claim(connection, self._claim, CLAIM_SECONDS, dimensions)
            if stored is None:
                raise LeaseLostError("The claim of the tenant has ended.")
            if dimensions is not None and stored != dimensions:
                problem = f"The embedding model returned vectors of {dimensions} dimensions instead of {stored}."
                return AttemptFailure(FailureKind.INVALID_OUTPUT, problem)
            return await vectors.insert_vectors(connection, self._claim, texts)

    async def _finish(self, next_passage: int) -> None:
        """Note that all texts have vectors, and delete those of models that are not used any more."""
        claim = self._claim
        async with self._database.transaction(claim.tenant_id) as connection:
            await vectors.set_filled(connection, claim, next_passage)
            unused = await vectors.list_unused_models(connection, claim, UNUSED_MODEL_SECONDS)
        for model_id in unused:
            more = True
            while more and not self._is_over():
                async with self._database.transaction(claim.tenant_id) as connection:
                    more = await vectors.delete_vectors(connection, claim.tenant_id, model_id, MAX_DELETED_TEXTS)


class _PassageEmbedder:
    """Embeds passages within the daily spending limit, and finds those that the model rejects."""

    def __init__(
        self, embedder: Embedder, meter: TenantMeter, failure_count: int, renew: Callable[[], Awaitable[None]]
    ) -> None:
        self._embedder, self._meter, self._failure_count, self._renew = embedder, meter, failure_count, renew
        self._works = False
        """Whether the model has embedded a text."""
        self._cost_per_char: Decimal | None = None
        """Cost of the last call. `None` means that there was none."""
        self._open_cost = Decimal(0)
        """Estimated cost of the calls that have not ended."""

    @property
    def knows_cost(self) -> bool:
        return self._cost_per_char is not None

    async def embed_each(self, texts: Sequence[str]) -> list[Any] | AttemptFailure:
        """Return the vector of each text. A text that the model rejects has the reason instead."""
        result = await self._embed(texts)
        if isinstance(result, Embeddings):
            return list(result.vectors)
        if not await self._is_rejection(result):
            return result
        if len(texts) == 1:
            return [result.message]
        rows: list[Any] = []
        for part in (texts[: len(texts) // 2], texts[len(texts) // 2 :]):
            await self._renew()
            embedded = await self.embed_each(part)
            if isinstance(embedded, AttemptFailure):
                return embedded
            rows += embedded
        return rows

    async def _is_rejection(self, failure: AttemptFailure) -> bool:
        """Return whether the model works and only rejects the texts."""
        is_repeated = failure.kind in UNCLEAR and self._failure_count >= MAX_UNCLEAR_FAILURES
        if failure.kind not in REJECTED and not is_repeated:
            return False
        return self._works or isinstance(await self._embed([PROBE]), Embeddings)

    async def _embed(self, texts: Sequence[str]) -> Embeddings | AttemptFailure:
        chars = sum(map(len, texts))
        cost = MIN_CALL_COST_USD if self._cost_per_char is None else self._cost_per_char * chars
        self._open_cost += cost
        try:
            if await self._meter.reserve(0, self._open_cost) is StopReason.TENANT_SPEND_LIMIT:
                return AttemptFailure(FailureKind.BUDGET_EXHAUSTED, "The daily spending limit is reached.")
            async with asyncio.timeout(MAX_CALL_SECONDS):
                result = await self._embedder.embed(texts, "passage")
            await self._meter.settle(result.usage)
        except TimeoutError:
            return AttemptFailure(FailureKind.TIMEOUT, f"It did not answer within {MAX_CALL_SECONDS:g} seconds.")
        finally:
            self._open_cost -= cost
        if isinstance(result, Embeddings):
            self._works, self._cost_per_char = True, result.usage.cost_usd / max(chars, 1)
        return result


def _split_batches(texts: Sequence[UnfilledText], max_passages: int) -> Iterator[list[UnfilledText]]:
    """Split texts into batches of at most `max_passages` passages. A text with more passages is a batch of its own."""
    batch: list[UnfilledText] = []
    count = 0
    for text in texts:
        if batch and count + text.passage_count > max_passages:
            yield batch
            batch, count = [], 0
        batch.append(text)
        count += text.passage_count
    if batch:
        yield batch


def _render_passage(text: UnfilledText, passage: PassageText) -> str:
    """Return what the model reads of a passage: title, headings and text."""
    return "\n".join(filter(None, (text.title, passage.heading, passage.text)))


def _join_rows(text: UnfilledText, rows: Sequence[Any]) -> TextVectors:
    """Return the vectors of a text. Rejected passages get vectors of zeros."""
    dimensions = next((len(row) for row in rows if not isinstance(row, str)), 1)
    matrix = np.zeros((len(rows), dimensions), np.float32)
    for place, row in enumerate(rows):
        if not isinstance(row, str):
            matrix[place] = row
    rejection = next((row for row in rows if isinstance(row, str)), "")
    return TextVectors(text.text_id, text.first_passage, matrix, rejection)
