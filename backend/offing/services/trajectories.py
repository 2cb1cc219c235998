"""Finished runs as training jobs pull them, and one run as a person reads it.

Portions come from short transactions of their own, so that a slow reader holds neither a connection nor a snapshot, and
nothing but pages of runs and a few batches of segments are in memory.
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

from offing.core.episode import Dialogue, Episode, Talk
from offing.core.errors import InvalidInput
from offing.core.packed import PackedSegment
from offing.exports.format import Format, Options, Unit, open_sink
from offing.services.pieces import Pieces, pieces_of
from offing.services.views import cursor_of, place_of
from offing.storage import stretches, trajectories, views
from offing.storage.pool import Database
from offing.storage.trajectories import Place, Query

PAGE = 256
"""Runs that are looked up at once."""

SETTLING = timedelta(seconds=1)
"""How long after its time stamp a run may take to become visible; a cursor is never given out past such a gap."""


Behind = tuple[Any, Place | None]
"""A unit, and where to go on after it: behind the last run that is whole with it. None: none is."""


@dataclass(frozen=True, slots=True)
class Portion:
    """What is to be written next."""

    units: Callable[[], Sequence[Behind]]
    """Makes what is to be written; work for a thread, beside the reading of the next portion."""
    place: Place | None
    """Where to go on after all of it."""
    runs: int = 0
    """That are whole with it."""
    without_ids: int = 0
    """Turns of which only the text is known, so that they are in no row."""
    quarantined: int = 0
    """Turns whose record is in doubt."""


@dataclass(frozen=True, slots=True)
class Exported:
    """What an export came to."""

    records: int
    runs: int
    without_ids: int
    quarantined: int
    cursor: str | None
    """Where the next export goes on. None: nothing was ever exported."""


@dataclass(frozen=True, slots=True)
class Trajectory:
    """A run as a person reads it. `pieces`: what a turn's ids decode to, by seq, where a tokenizer is at hand."""

    dialogue: Dialogue
    pieces: dict[int, Pieces]
    following: int | None
    """Seq after which the turns go on. None: these were the last."""


async def portions(
    database: Database,
    tenant: UUID,
    wanted: Query,
    unit: Unit,
    options: Options,
    after: Place | None,
    most: int | None = None,
) -> AsyncGenerator[Portion]:
    """Everything that matches, run after run, at most `most` runs; None: all.

    Raises InvalidInput where the tenant has not agreed to it.
    """
    wanted = await _bounded(database, tenant, wanted)
    groups, taken = set[UUID](), 0
    while most is None or taken < most:
        limit = PAGE if most is None else min(PAGE, most - taken)
        async with database.transaction(tenant) as connection:
            page = await trajectories.page(connection, wanted, after, limit, references=options.references)
        if not page:
            return
        taken += len(page)
        match unit:
            case Unit.ROW:
                async for portion in _rows(database, tenant, page, wanted, options, after):
                    yield portion
            case Unit.DIALOGUE:
                async for portion in _dialogues(database, tenant, page, wanted):
                    yield portion
            case Unit.PREFERENCE:
                yield await _preferences(database, tenant, page, wanted, groups, after)
        after = _place(page[-1])


async def export(
    database: Database, tenant: UUID, wanted: Query, format: Format, options: Options, cursor: str | None, out: Path
) -> Exported:
    """Everything that matches, as a file; it has its name only when it is whole."""
    place, runs, without, doubtful = place_of(cursor), 0, 0, 0
    unfinished = out.with_name(out.name + ".part")
    with unfinished.open("wb") as file:
        sink = open_sink(format, file, options)
        writing: asyncio.Future[None] = asyncio.ensure_future(asyncio.sleep(0))
        async for portion in _ahead(portions(database, tenant, wanted, format.unit, options, place)):
            units = await asyncio.to_thread(portion.units)
            await writing
            writing = asyncio.ensure_future(asyncio.to_thread(sink.write, [u for u, _ in units]))  # noqa: RUF006
            place, runs = portion.place, runs + portion.runs
            without, doubtful = without + portion.without_ids, doubtful + portion.quarantined
        await writing
        sink.close()
    unfinished.replace(out)
    return Exported(sink.written, runs, without, doubtful, cursor_of(place) if place else None)


async def stream(
    database: Database, tenant: UUID, wanted: Query, format: Format, options: Options, cursor: str | None, most: int
) -> AsyncGenerator[bytes]:
    """At most `most` runs as JSON lines `{"cursor", "record"}`, and a last line `{"cursor", "more"}`.

    A cursor goes on after the last run that is whole at its line; a run that was cut is sent again from its beginning.
    """
    place, runs = place_of(cursor), 0
    file = BytesIO()
    sink = open_sink(format, file, options)
    found = portions(database, tenant, wanted, format.unit, options, place, most)
    try:
        async for portion in found:
            for unit, behind in await asyncio.to_thread(portion.units):
                sink.write((unit,))
                *lines, last = file.getvalue().splitlines() or [b""]
                file.seek(0)
                file.truncate()
                for line in lines:
                    yield _line(place, line)
                place = behind
                if last:
                    yield _line(place, last)
            place, runs = portion.place, runs + portion.runs
    finally:
        await found.aclose()
    yield b'{"cursor":%s,"more":%s}\n' % (_quoted(place), b"true" if runs >= most else b"false")


async def trajectory(
    database: Database, tenant: UUID, run: UUID, after: int = 0, limit: int | None = None
) -> Trajectory:
    """A run's segments, and its turns after step `after`. `limit` None: all of them. Raises NotFound."""
    async with database.transaction(tenant) as connection:
        episode = await trajectories.episode(connection, run)
        heads = await stretches.heads(connection, run)
        turns = await stretches.talks(connection, run)
        tools = await trajectories.tools(connection, run)
        later = tuple(turn for turn in turns if turn.seq > after)
        shown = later if limit is None else later[:limit]
        places = await trajectories.policy_places(connection, sorted({t.policy for t in shown if t.policy}))
    pieces = await asyncio.to_thread(_all_pieces, shown, places)
    following = shown[-1].seq if shown and len(shown) < len(later) else None
    return Trajectory(Dialogue(episode, heads, shown, tools), pieces, following)


async def _ahead(found: AsyncGenerator[Portion]) -> AsyncGenerator[Portion]:
    """The same, with the next two being read while one is used, so that neither side waits for the other's pauses."""
    read = asyncio.Queue[Portion | Exception | None](1)
    reading = asyncio.ensure_future(_read(found, read))
    try:
        while (portion := await read.get()) is not None:
            if isinstance(portion, Exception):
                raise portion
            yield portion
    finally:
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
        await found.aclose()


async def _read(found: AsyncGenerator[Portion], into: asyncio.Queue[Portion | Exception | None]) -> None:
    """Everything found, and None; or up to the exception that ended it, and that."""
    try:
        async for portion in found:
            await into.put(portion)
    except Exception as error:
        await into.put(error)
    else:
        await into.put(None)


async def _bounded(database: Database, tenant: UUID, wanted: Query) -> Query:
    """The query up to now, waiting until everything that is stamped with an earlier time can be seen."""
    async with database.transaction(tenant) as connection:
        if wanted.kind == "ask" and not (await views.tenant(connection, tenant)).training_opt_in:
            problem = "what people asked is not for training here, because they have not agreed to it"
            raise InvalidInput("kind", problem, "Export rollouts, or switch `training_opt_in` on in the settings.")
        now, newest = await trajectories.newest(connection)
    if newest is not None and newest > now - SETTLING:
        await asyncio.sleep(SETTLING.total_seconds())
    return replace(wanted, until=now if wanted.until is None else min(now, wanted.until))


async def _rows(
    database: Database,
    tenant: UUID,
    page: Sequence[Episode],
    wanted: Query,
    options: Options,
    place: Place | None,
) -> AsyncGenerator[Portion]:
    episodes = {episode.run: episode for episode in page}
    async with database.transaction(tenant) as connection:
        batches, without = await trajectories.batches(connection, list(episodes), wanted.roles)
    last = dict(segment for batch in batches for segment in batch)
    for batch in batches:
        async with database.transaction(tenant) as connection:
            segments = await stretches.segments(connection, batch)
        whole = {(run, s.head.idx): _place(episodes[run]) for run, s in segments if s.head.idx == last[run]}
        doubtful = sum(bool(why) for _, segment in segments for why in segment.turns.quarantine)
        made = partial(_merged, segments, episodes, whole, place, quarantined=options.quarantined)
        place = list(whole.values())[-1] if whole else place
        if batch is batches[-1]:
            yield Portion(made, _place(page[-1]), len(page), without, doubtful)
        else:
            yield Portion(made, place, quarantined=doubtful)
    if not batches:
        yield Portion(tuple, _place(page[-1]), len(page), without)


def _merged(
    segments: Sequence[tuple[UUID, PackedSegment]],
    episodes: Mapping[UUID, Episode],
    whole: Mapping[tuple[UUID, int], Place],
    place: Place | None,
    *,
    quarantined: bool,
) -> list[Behind]:
    """Rows of segments. `whole`: those with which a run is; `place`: where to go on before the first."""
    from offing.core.rows import merged_all  # needs numpy, which the platform itself does without

    rows: list[Behind] = []
    made = merged_all([(episodes[run], segment) for run, segment in segments], quarantined=quarantined)
    for (run, segment), found in zip(segments, made, strict=True):
        before, place = place, whole.get((run, segment.head.idx), place)
        rows += _behind(found, before, place)
    return rows


async def _dialogues(
    database: Database, tenant: UUID, page: Sequence[Episode], wanted: Query
) -> AsyncGenerator[Portion]:
    for episode in page:
        async with database.transaction(tenant) as connection:
            heads = await stretches.heads(connection, episode.run)
            turns = await stretches.talks(connection, episode.run, wanted.roles)
            tools = await trajectories.tools(connection, episode.run)
        doubtful = sum(bool(turn.quarantine) for turn in turns)
        place = _place(episode)
        made = ((Dialogue(episode, heads, turns, tools), place),)
        yield Portion(partial(tuple, made), place, 1, quarantined=doubtful)


async def _preferences(
    database: Database,
    tenant: UUID,
    page: Sequence[Episode],
    wanted: Query,
    seen: set[UUID],
    before: Place | None,
) -> Portion:
    """The preferences of the groups that the page meets first."""
    new = [group for group in dict.fromkeys(e.group for e in page) if group is not None and group not in seen]
    seen.update(new)
    async with database.transaction(tenant) as connection:
        found = [p for group in new for p in await stretches.preferences(connection, group, wanted.roles)]
    place = _place(page[-1])
    return Portion(partial(_behind, found, before, place), place, len(page))


def _all_pieces(turns: Sequence[Talk], places: dict[str, str]) -> dict[int, Pieces]:
    found = {turn.seq: pieces_of(turn, places[turn.policy]) for turn in turns if turn.policy in places}
    return {seq: pieces for seq, pieces in found.items() if pieces is not None}


def _behind(units: Sequence[Any], before: Place | None, after: Place | None) -> list[Behind]:
    """Units of which the last makes something whole."""
    return [(unit, after if nth == len(units) else before) for nth, unit in enumerate(units, 1)]


def _place(episode: Episode) -> Place:
    at = episode.settled_at or episode.ended_at
    assert at is not None, "only runs that are final are in a page"
    return at, episode.run


def _line(place: Place | None, record: bytes) -> bytes:
    return b'{"cursor":%s,"record":%s}\n' % (_quoted(place), record)


def _quoted(place: Place | None) -> bytes:
    return b"null" if place is None else b'"%s"' % cursor_of(place).encode()
