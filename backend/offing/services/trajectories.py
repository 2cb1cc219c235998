"""Export finalized runs as training records, and read one run as a trajectory.

Each chunk is read in a separate short transaction, so that a slow reader holds neither a connection nor a
snapshot. Only pages of runs and a few batches of segments are in memory.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any
from uuid import UUID

from offing.core.errors import InvalidInput
from offing.core.packed_segment import PackedSegment
from offing.core.trajectory_records import (
    PreferencePair,
    PreferenceSource,
    RoleCallRecord,
    TextTrajectory,
    TrajectoryMetadata,
)
from offing.exports.format import ExportOptions, Format, RecordUnit
from offing.services.token_texts import TokenTexts, decode_tokens
from offing.storage import signal_preferences, tenants, trajectories, trajectory_reads
from offing.storage.pagination import PageKey, parse_page_cursor, render_page_cursor
from offing.storage.pool import Connection, Database
from offing.storage.trajectories import TrajectoryQuery

PAGE_RUNS = 256
"""Number of runs that are looked up at once."""

VISIBILITY_DELAY = timedelta(seconds=1)
"""Maximum time after its time stamp until a run becomes visible. A cursor never skips this window."""


UnitWithKey = tuple[Any, PageKey | None]
"""A record and the page key to continue from after it: that of the last run that is complete with it. `None`
if none is complete.
"""


@dataclass(frozen=True, slots=True)
class ExportChunk:
    """The next records to write."""

    units: Callable[[], Sequence[UnitWithKey]]
    """Builds the records. It runs in a thread while the next chunk is read."""
    page_key: PageKey | None
    """The page key to continue from after this chunk."""
    run_count: int = 0
    """Number of runs that are complete with this chunk."""
    without_ids_count: int = 0
    """Number of role calls of which only the text is known, so that they are in no row."""
    quarantined_count: int = 0
    """Number of role calls in quarantine."""


@dataclass(frozen=True, slots=True)
class ExportSummary:
    """The summary of an export."""

    record_count: int
    run_count: int
    without_ids_count: int
    quarantined_count: int
    cursor: str | None
    """The cursor of the next export. `None` if nothing was ever exported."""


@dataclass(frozen=True, slots=True)
class ReadableTrajectory:
    """A run as a person reads it.

    `token_texts` are the decoded ids of role calls by seq, if a tokenizer is available.
    """

    trajectory: TextTrajectory
    token_texts: dict[int, TokenTexts]
    next_after: int | None
    """Seq after which the role calls continue. `None` means that these were the last."""


async def iter_chunks(
    database: Database,
    tenant_id: UUID,
    query: TrajectoryQuery,
    unit: RecordUnit,
    options: ExportOptions,
    page_key: PageKey | None,
    max_runs: int | None = None,
) -> AsyncGenerator[ExportChunk]:
    """Yield all matching records, run by run, of at most `max_runs` runs. `None` means all runs.

    Raises InvalidInput if the tenant has not opted in, and for a source of preferences that the runs cannot have.
    """
    options.check(unit)
    _check_preference(query, options)
    query = await _bound_query(database, tenant_id, query)
    groups, run_count = set[UUID](), 0
    while max_runs is None or run_count < max_runs:
        limit = PAGE_RUNS if max_runs is None else min(PAGE_RUNS, max_runs - run_count)
        async with database.transaction(tenant_id) as connection:
            page = await trajectories.list_trajectories(
                connection, query, page_key, limit, include_references=options.include_references
            )
        if not page:
            return
        run_count += len(page)
        match unit:
            case RecordUnit.ROW:
                async for chunk in _iter_row_chunks(database, tenant_id, page, query, options, page_key):
                    yield chunk
            case RecordUnit.TRAJECTORY:
                async for chunk in _iter_trajectory_chunks(database, tenant_id, page, query):
                    yield chunk
            case RecordUnit.PREFERENCE:
                source = options.preference
                yield await _build_preference_chunk(database, tenant_id, page, query, groups, page_key, source)
        page_key = _page_key(page[-1])


async def export_trajectories(
    database: Database,
    tenant_id: UUID,
    query: TrajectoryQuery,
    format: Format,
    options: ExportOptions,
    cursor: str | None,
    out: Path,
) -> ExportSummary:
    """Write all matching records to a file. It gets its name only when it is complete."""
    page_key, runs, without, doubtful = parse_page_cursor(cursor), 0, 0, 0
    unfinished = out.with_name(out.name + ".part")
    with unfinished.open("wb") as file:
        sink = format.create_sink(file, options)
        writing: asyncio.Future[None] = asyncio.ensure_future(asyncio.sleep(0))
        async for chunk in _read_ahead(iter_chunks(database, tenant_id, query, format.unit, options, page_key)):
            units = await asyncio.to_thread(chunk.units)
            await writing
            writing = asyncio.ensure_future(asyncio.to_thread(sink.write, [u for u, _ in units]))  # noqa: RUF006
            page_key, runs = chunk.page_key, runs + chunk.run_count
            without, doubtful = without + chunk.without_ids_count, doubtful + chunk.quarantined_count
        await writing
        sink.close()
    unfinished.replace(out)
    return ExportSummary(sink.record_count, runs, without, doubtful, render_page_cursor(page_key) if page_key else None)


async def stream_trajectories(
    database: Database,
    tenant_id: UUID,
    query: TrajectoryQuery,
    format: Format,
    options: ExportOptions,
    cursor: str | None,
    max_runs: int,
) -> AsyncGenerator[bytes]:
    """Yield at most `max_runs` runs as JSON lines `{"cursor", "record"}`, and a last line `{"cursor", "more"}`.

    A cursor continues after the last run that is complete at its line. A run that was interrupted is sent again
    from its beginning.
    """
    page_key, runs = parse_page_cursor(cursor), 0
    file = BytesIO()
    sink = format.create_sink(file, options)
    chunks = iter_chunks(database, tenant_id, query, format.unit, options, page_key, max_runs)
    try:
        async for chunk in chunks:
            for unit, behind in await asyncio.to_thread(chunk.units):
                sink.write((unit,))
                *lines, last = file.getvalue().splitlines() or [b""]
                file.seek(0)
                file.truncate()
                for line in lines:
                    yield _render_line(page_key, line)
                page_key = behind
                if last:
                    yield _render_line(page_key, last)
            page_key, runs = chunk.page_key, runs + chunk.run_count
    finally:
        await chunks.aclose()
    yield b'{"cursor":%s,"more":%s}\n' % (_render_cursor(page_key), b"true" if runs >= max_runs else b"false")


async def get_trajectory(database: Database, tenant_id: UUID, run_id: UUID) -> ReadableTrajectory:
    """Return the segments of a run with all of its role calls and tool calls. Raises NotFound."""
    async with database.transaction(tenant_id) as connection:
        metadata = await trajectories.get_trajectory_metadata(connection, run_id)
        segments = await trajectory_reads.list_segments(connection, run_id)
        role_calls = await trajectory_reads.list_role_calls(connection, run_id)
        tool_calls = await trajectories.list_tool_calls(connection, run_id)
        policy_uris = await _get_policy_uris(connection, role_calls)
    token_texts = await asyncio.to_thread(_decode_role_calls, role_calls, policy_uris)
    return ReadableTrajectory(TextTrajectory(metadata, segments, role_calls, tool_calls), token_texts, None)


async def get_trajectory_page(
    database: Database, tenant_id: UUID, run_id: UUID, after: int, limit: int
) -> ReadableTrajectory:
    """Return the segments of a run and at most `limit` of its role calls after step `after`, without tool calls.

    Only these role calls, and those whose prompts they continue, are read. Raises NotFound.
    """
    async with database.transaction(tenant_id) as connection:
        metadata = await trajectories.get_trajectory_metadata(connection, run_id)
        segments = await trajectory_reads.list_segments(connection, run_id)
        role_calls, following = await trajectory_reads.list_role_call_page(connection, run_id, after, limit)
        policy_uris = await _get_policy_uris(connection, role_calls)
    token_texts = await asyncio.to_thread(_decode_role_calls, role_calls, policy_uris)
    return ReadableTrajectory(TextTrajectory(metadata, segments, role_calls, ()), token_texts, following)


async def _get_policy_uris(connection: Connection, role_calls: Sequence[RoleCallRecord]) -> dict[str, str]:
    return await trajectories.get_policy_uris(connection, sorted({call.policy for call in role_calls if call.policy}))


async def _read_ahead(chunks: AsyncGenerator[ExportChunk]) -> AsyncGenerator[ExportChunk]:
    """Yield the same chunks and read up to two ahead.

    So neither the reader nor the writer waits for the pauses of the other.
    """
    read = asyncio.Queue[ExportChunk | Exception | None](1)
    reading = asyncio.ensure_future(_fill_queue(chunks, read))
    try:
        while (chunk := await read.get()) is not None:
            if isinstance(chunk, Exception):
                raise chunk
            yield chunk
    finally:
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
        await chunks.aclose()


async def _fill_queue(
    chunks: AsyncGenerator[ExportChunk], queue: asyncio.Queue[ExportChunk | Exception | None]
) -> None:
    """Put all chunks into the queue, and then `None`, or the exception that ended the iteration."""
    try:
        async for chunk in chunks:
            await queue.put(chunk)
    except Exception as error:
        await queue.put(error)
    else:
        await queue.put(None)


async def _bound_query(database: Database, tenant_id: UUID, query: TrajectoryQuery) -> TrajectoryQuery:
    """Return the query limited to now, after waiting until all runs with an earlier time stamp are visible."""
    async with database.transaction(tenant_id) as connection:
        if query.kind == "interactive" and not (await tenants.get_tenant(connection, tenant_id)).training_opt_in:
            problem = "interactive runs cannot be exported, because `training_opt_in` is off"
            remedy = 'turn on "Use my runs, ratings and corrections for training" in the settings of the web UI.'
            raise InvalidInput("kind", problem, f"Export rollouts, or {remedy}")
        now, newest = await trajectories.get_high_water_mark(connection)
    if newest is not None and newest > now - VISIBILITY_DELAY:
        await asyncio.sleep(VISIBILITY_DELAY.total_seconds())
    return replace(query, until=now if query.until is None else min(now, query.until))


async def _iter_row_chunks(
    database: Database,
    tenant_id: UUID,
    page: Sequence[TrajectoryMetadata],
    query: TrajectoryQuery,
    options: ExportOptions,
    page_key: PageKey | None,
) -> AsyncGenerator[ExportChunk]:
    episodes = {episode.run_id: episode for episode in page}
    async with database.transaction(tenant_id) as connection:
        batches, without = await trajectories.split_segments(connection, list(episodes), query.roles)
    last = dict(segment for batch in batches for segment in batch)
    for batch in batches:
        async with database.transaction(tenant_id) as connection:
            segments = await trajectory_reads.read_packed_segments(connection, batch)
        whole = {
            (run, s.segment_info.idx): _page_key(episodes[run])
            for run, s in segments
            if s.segment_info.idx == last[run]
        }
        doubtful = sum(bool(why) for _, segment in segments for why in segment.turns.quarantine)
        build_units = partial(
            _build_units, segments, episodes, whole, page_key, quarantined=options.include_quarantined
        )
        page_key = list(whole.values())[-1] if whole else page_key
        if batch is batches[-1]:
            yield ExportChunk(build_units, _page_key(page[-1]), len(page), without, doubtful)
        else:
            yield ExportChunk(build_units, page_key, quarantined_count=doubtful)
    if not batches:
        yield ExportChunk(tuple, _page_key(page[-1]), len(page), without)


def _build_units(
    segments: Sequence[tuple[UUID, PackedSegment]],
    metadata: Mapping[UUID, TrajectoryMetadata],
    completing_keys: Mapping[tuple[UUID, int], PageKey],
    page_key: PageKey | None,
    *,
    quarantined: bool,
) -> list[UnitWithKey]:
    """Build the rows of segments with their page keys.

    `completing_keys` are the keys of segments that complete a run; `page_key` is where to continue before the first.
    """
    from offing.core.training_rows import build_all_rows  # needs numpy, which the platform itself does not install

    rows: list[UnitWithKey] = []
    segment_rows = build_all_rows(
        [(metadata[run], segment) for run, segment in segments], include_quarantined=quarantined
    )
    for (run, segment), row in zip(segments, segment_rows, strict=True):
        before, page_key = page_key, completing_keys.get((run, segment.segment_info.idx), page_key)
        rows += _attach_keys(row, before, page_key)
    return rows


async def _iter_trajectory_chunks(
    database: Database, tenant_id: UUID, page: Sequence[TrajectoryMetadata], query: TrajectoryQuery
) -> AsyncGenerator[ExportChunk]:
    for episode in page:
        async with database.transaction(tenant_id) as connection:
            heads = await trajectory_reads.list_segments(connection, episode.run_id)
            turns = await trajectory_reads.list_role_calls(connection, episode.run_id, query.roles)
            tools = await trajectories.list_tool_calls(connection, episode.run_id)
        doubtful = sum(bool(turn.quarantine) for turn in turns)
        page_key = _page_key(episode)
        units = ((TextTrajectory(episode, heads, turns, tools), page_key),)
        yield ExportChunk(partial(tuple, units), page_key, 1, quarantined_count=doubtful)


async def _build_preference_chunk(
    database: Database,
    tenant_id: UUID,
    page: Sequence[TrajectoryMetadata],
    query: TrajectoryQuery,
    seen_groups: set[UUID],
    page_key: PageKey | None,
    source: PreferenceSource,
) -> ExportChunk:
    """Build the preference pairs of this page: of groups that occur first in it, or of its runs."""
    run_ids = [metadata.run_id for metadata in page]
    async with database.transaction(tenant_id) as connection:
        match source:
            case PreferenceSource.REWARD:
                pairs = await _list_group_preferences(connection, page, query, seen_groups)
            case PreferenceSource.RATING:
                pairs = await signal_preferences.list_rating_preferences(connection, query.kind, run_ids, query.roles)
            case PreferenceSource.CORRECTION:
                pairs = await signal_preferences.list_correction_preferences(connection, run_ids)
    last_key = _page_key(page[-1])
    return ExportChunk(partial(_attach_keys, pairs, page_key, last_key), last_key, len(page))


async def _list_group_preferences(
    connection: Connection, page: Sequence[TrajectoryMetadata], query: TrajectoryQuery, seen_groups: set[UUID]
) -> list[PreferencePair]:
    new = [group for group in dict.fromkeys(e.group_id for e in page) if group is not None and group not in seen_groups]
    seen_groups.update(new)
    return [p for group in new for p in await trajectory_reads.list_preferences(connection, group, query.roles)]


def _check_preference(query: TrajectoryQuery, options: ExportOptions) -> None:
    if options.preference is PreferenceSource.CORRECTION and query.kind != "interactive":
        raise InvalidInput(
            "preference", "people correct the answers of interactive runs, not of rollouts", "Use the kind interactive."
        )


def _decode_role_calls(role_calls: Sequence[RoleCallRecord], policy_dirs: dict[str, str]) -> dict[int, TokenTexts]:
    decoded = {
        turn.seq: decode_tokens(turn, policy_dirs[turn.policy]) for turn in role_calls if turn.policy in policy_dirs
    }
    return {seq: texts for seq, texts in decoded.items() if texts is not None}


def _attach_keys(units: Sequence[Any], before: PageKey | None, after: PageKey | None) -> list[UnitWithKey]:
    """Attach page keys to records of which the last one completes a run."""
    return [(unit, after if nth == len(units) else before) for nth, unit in enumerate(units, 1)]


def _page_key(metadata: TrajectoryMetadata) -> PageKey:
    at = metadata.finalized_at or metadata.ended_at
    assert at is not None, "only finalized runs are in a page"
    return at, metadata.run_id


def _render_line(page_key: PageKey | None, record: bytes) -> bytes:
    return b'{"cursor":%s,"record":%s}\n' % (_render_cursor(page_key), record)


def _render_cursor(page_key: PageKey | None) -> bytes:
    return b"null" if page_key is None else b'"%s"' % render_page_cursor(page_key).encode()
