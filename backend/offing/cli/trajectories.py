"""`offing trajectories`: what runs left for training, for a person at a terminal or a job's first step."""

import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any
from uuid import UUID

import orjson
from cyclopts import App, Parameter
from rich.console import Console

from offing.cli.show import find_run, with_database
from offing.cli.token_view import as_document, say
from offing.cli.trajectories_check import check
from offing.core.errors import InvalidInput
from offing.exports.format import FORMATS, Options, Sink, Unit, named, of_file, open_sink, reader
from offing.services import trajectories
from offing.services.trajectories import Exported, Trajectory
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database
from offing.storage.trajectories import Query

app = App(name="trajectories", help="What runs left for training: export, read, check.")
app.command(check)

Flag = Annotated[bool, Parameter(negative="")]

Json = Annotated[bool, Parameter(name="--json", negative="")]

Many = Annotated[tuple[str, ...], Parameter(negative="")]


@app.command
def export(
    out: Path,
    *,
    format: str | None = None,
    cursor: str | None = None,
    kind: str = "rollout",
    graph: str | None = None,
    policy: str | None = None,
    status: str | None = None,
    outcome: Many = (),
    min_reward: float | None = None,
    max_reward: float | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    tag: Many = (),
    batch: UUID | None = None,
    group: UUID | None = None,
    dataset: str | None = None,
    split: str | None = None,
    role: Many = (),
    with_quarantined: Flag = False,
    with_references: Flag = False,
    json: Json = False,
) -> int:
    """Write what a query finds to a file, the first to become final first, and say where the next export goes on.

    Parameters
    ----------
    out
        The file. It has its name only when it is whole.
    format
        parquet, rows, verl, tinker, jsonl_chat, pairs, atif or verl_prompts. None: by the file's name, where that says
        which: x.parquet, x.verl.parquet, x.rows.jsonl.
    cursor
        Where an earlier export ended, to take only what became final since.
    kind
        rollout, or ask: what people asked, where they have agreed to it.
    graph
        Of this graph only.
    policy
        With a turn of this NAME@VERSION.
    status
        done, failed, cancelled or dead.
    outcome
        answered, done, truncated, violated or infra_error; several may be named. None: all but infra_error.
    min_reward
        Scored so high or higher.
    max_reward
        Scored so low or lower.
    since
        Final at that time or later; UTC where no zone is given.
    until
        Final before that time.
    tag
        With this tag of its group or task; several: with all of them.
    batch
        Of this request for rollouts.
    group
        Of this group.
    dataset
        Of tasks of this dataset.
    split
        Of this split of it.
    role
        Turns of this role only; several may be named.
    with_quarantined
        Take turns whose record is in doubt as if it were not.
    with_references
        Write reference answers where the format has a place for them.
    json
        Print only JSON on standard output.
    """
    query = Query(
        *(kind, graph, policy, status, outcome, min_reward, max_reward, _zoned(since), _zoned(until), tag),
        *(batch, group, dataset, split, role),
    )
    chosen = of_file(out.name) if format is None else named(format)
    options = Options(with_quarantined, with_references)
    if kind not in ("rollout", "ask"):
        raise InvalidInput("--kind", f"{kind!r} is none", "Use rollout or ask.")

    async def work(database: Database) -> Exported:
        return await trajectories.export(database, LOCAL_TENANT, query, chosen, options, cursor, out)

    made = with_database(work)
    if json:
        return _dump(asdict(made))
    if format is None:
        print(f"written as {chosen.name}, by the file's name; --format says otherwise", file=sys.stderr)
    for line in _summary(made, out, chosen.unit, options):
        print(line, file=sys.stderr)
    return 0


@app.command
def show(run: str, *, turn: int | None = None, json: Json = False) -> int:
    """Show a run's turns: tokens with mask and log-probability side by side. RUN may be its last characters.

    Parameters
    ----------
    turn
        Only this turn of the graph's loop.
    json
        Print only JSON on standard output.
    """

    async def work(database: Database) -> Trajectory:
        return await trajectories.trajectory(database, LOCAL_TENANT, await find_run(database, run))

    found = with_database(work)
    if json:
        return _dump(as_document(found))
    say(Console(highlight=False, soft_wrap=True), found, turn)
    return 0


@app.command
def replay(run: str, *, json: Json = False) -> int:
    """Run the graph again on its record, without any model or tool. Exit 1: it did something else, which is told."""
    from offing.cli.stack import loaded
    from offing.mcp.catalogue import Catalogue
    from offing.settings import load_settings
    from offing_workers.replay import Replayed, replayed

    settings = load_settings()
    graphs, servers = loaded(settings), Catalogue(settings.mcp)

    async def work(database: Database) -> Replayed:
        return await replayed(database, LOCAL_TENANT, await find_run(database, run), graphs, servers)

    result = with_database(work)
    if json:
        _dump(asdict(result))
    else:
        print(f"{'the same' if result.same else 'NOT the same'}: {result.detail}")
    return 0 if result.same else 1


@app.command(name="import")
def import_(file: Path, *, format: str = "parquet", to: str | None = None, out: Path | None = None) -> int:
    """Read rows back from a file, check them, and write them in another format if one is named.

    Parameters
    ----------
    file
        What `export` wrote.
    format
        parquet or rows.
    to
        parquet, rows, verl or tinker.
    out
        The file to write.
    """
    if not file.is_file():
        raise InvalidInput("FILE", f"{file} is not a file", "Name one that `offing trajectories export` wrote.")
    read = reader(named(format))
    if to is None or out is None:
        print(_counted(read(file), None))
        return 0
    if named(to).unit is not Unit.ROW:
        rows = ", ".join(f.name for f in FORMATS.values() if f.unit is Unit.ROW)
        raise InvalidInput("--to", f"{to} is not made of rows", f"Use one of: {rows}.")
    with out.open("wb") as target:
        sink = open_sink(named(to), target, Options())
        print(_counted(read(file), sink))
        sink.close()
    return 0


def _counted(rows: Iterable[Any], sink: Sink | None) -> str:
    """What was read, and written if there is where to."""
    count, tokens, trained = 0, 0, 0
    runs, groups = set[UUID](), set[UUID | None]()
    for row in rows:
        count, tokens, trained = count + 1, tokens + len(row), trained + int(row.loss_mask.sum())
        runs.add(row.episode.run)
        groups.add(row.episode.group)
        if sink is not None:
            sink.write([row])
    known = len(groups - {None})
    return f"{count} rows, {tokens} tokens of which {trained} are trained, {len(runs)} runs, {known} groups"


def _summary(made: Exported, out: Path, unit: Unit, options: Options) -> Iterator[str]:
    yield f"{made.records} records of {made.runs} runs in {out}"
    if made.without_ids and unit is Unit.ROW:
        yield f"left out: {made.without_ids} turns without token ids; jsonl_chat has their text"
    if made.quarantined:
        what = "trained as they stand" if options.quarantined else "not trained; --with-quarantined takes them"
        yield f"in quarantine: {made.quarantined} turns, {what}"
    if made.cursor:
        yield f"go on later with --cursor {made.cursor}"


def _zoned(at: datetime | None) -> datetime | None:
    return at.replace(tzinfo=UTC) if at is not None and at.tzinfo is None else at


def _dump(value: object) -> int:
    sys.stdout.buffer.write(orjson.dumps(value, option=orjson.OPT_INDENT_2) + b"\n")
    return 0
