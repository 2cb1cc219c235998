"""`offing trajectories`: export, show, replay and check runs as training data."""

import sys
from collections.abc import Iterable, Iterator
from dataclasses import KW_ONLY, asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any
from uuid import UUID

import orjson
from cyclopts import App, Parameter
from rich.console import Console

from offing.cli.options import Flag, Json
from offing.cli.show import get_run_id, run_with_database
from offing.cli.token_view import print_trajectory, render_trajectory
from offing.cli.trajectories_check import check
from offing.core.errors import InvalidInput
from offing.core.trajectory_records import PreferenceSource
from offing.exports.format import (
    FORMATS,
    ExportOptions,
    Format,
    RecordUnit,
    Sink,
    format_from_filename,
    get_reader,
)
from offing.services import trajectories
from offing.services.graphs import register_folders
from offing.services.trajectories import ExportSummary, ReadableTrajectory
from offing.settings import load_settings
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database
from offing.storage.trajectories import TrajectoryQuery

app = App(name="trajectories", help="Trajectories: export, show, replay, import, check.")
app.command(check)

Repeatable = Annotated[tuple[str, ...], Parameter(negative="")]


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class TrajectoryExportOptions:
    """Options of `offing trajectories export`."""

    output: Path
    """The file to write. It appears under this name only when it is complete."""
    _: KW_ONLY
    format: str | None = None
    """parquet, rows, verl, tinker, jsonl_chat, pairs, atif or verl_prompts. Default: from the file
    name, such as x.parquet, x.verl.parquet or x.rows.jsonl."""
    cursor: str | None = None
    """Cursor of an earlier export. Exports only what was finalized since then."""
    kind: str = "rollout"
    """`rollout`, or `interactive` for runs of people who have agreed to it."""
    graph: str | None = None
    """Only runs of this graph."""
    policy: str | None = None
    """Only runs with a role call of this NAME@VERSION."""
    status: str | None = None
    """done, failed or cancelled."""
    outcomes: Annotated[Repeatable, Parameter(name="--outcome")] = ()
    """answered, no_answer, truncated, violated or infra_error. Repeat the option for several. Default:
    all but infra_error."""
    min_reward: float | None = None
    """Minimum reward."""
    max_reward: float | None = None
    """Maximum reward."""
    since: datetime | None = None
    """Finalized at this time or later. UTC if no time zone is given."""
    until: datetime | None = None
    """Finalized before this time."""
    tags: Annotated[Repeatable, Parameter(name="--tag")] = ()
    """Only runs with this tag of their group or task. With several tags, all must match."""
    batch_id: Annotated[UUID | None, Parameter(name="--batch")] = None
    """Only runs of the rollout batch with this id."""
    group_id: Annotated[UUID | None, Parameter(name="--group")] = None
    """Only runs of the group with this id."""
    dataset: str | None = None
    """Only runs of tasks of this dataset."""
    split: str | None = None
    """Only runs of tasks of this split of the dataset."""
    roles: Annotated[Repeatable, Parameter(name="--role")] = ()
    """Only role calls of this role. Repeat the option for several."""
    include_quarantined: Flag = False
    """Include role calls that are in quarantine."""
    include_references: Flag = False
    """Include reference answers if the format supports them."""
    preference: PreferenceSource = PreferenceSource.REWARD
    """What preferences of the format pairs come from: `reward`, or what people said about runs that may
    be learned from: `rating`, or `correction` with `--kind interactive`."""
    as_json: Json = False
    """Print only JSON on standard output."""

    def get_format(self) -> Format:
        """Return the format that is named, or the one of the file name. Raises InvalidInput."""
        if self.format is None:
            return format_from_filename(self.output.name)
        return FORMATS.get_named(self.format, "--format")

    def build_query(self) -> TrajectoryQuery:
        """Return the filter of runs. Raises InvalidInput."""
        if self.kind not in ("rollout", "interactive"):
            raise InvalidInput("--kind", f"{self.kind!r} is not a kind of run", "Use rollout or interactive.")
        return TrajectoryQuery(
            kind=self.kind,
            graph=self.graph,
            policy=self.policy,
            status=self.status,
            outcomes=self.outcomes,
            min_reward=self.min_reward,
            max_reward=self.max_reward,
            since=_with_time_zone(self.since),
            until=_with_time_zone(self.until),
            tags=self.tags,
            batch_id=self.batch_id,
            group_id=self.group_id,
            dataset=self.dataset,
            split=self.split,
            roles=self.roles,
        )

    @property
    def record_options(self) -> ExportOptions:
        return ExportOptions(self.include_quarantined, self.include_references, self.preference)


@app.command
def export(options: TrajectoryExportOptions) -> int:
    """Export the matching trajectories to a file, oldest first, and print the cursor for the next export."""
    register_folders(load_settings())
    query, chosen = options.build_query(), options.get_format()

    async def work(database: Database) -> ExportSummary:
        return await trajectories.export_trajectories(
            database, LOCAL_TENANT, query, chosen, options.record_options, options.cursor, options.output
        )

    summary = run_with_database(work)
    if options.as_json:
        return _print_json(asdict(summary))
    if options.format is None:
        print(
            f"written in the format {chosen.name}, chosen by the file name; --format selects another", file=sys.stderr
        )
    for line in _summarize(summary, options.output, chosen.unit, options.record_options):
        print(line, file=sys.stderr)
    return 0


@app.command
def show(run: str, *, turn: int | None = None, json: Json = False) -> int:
    """Show the role calls of a run: tokens with their loss mask and logprobs.

    RUN is an id or the last characters of an id.

    Parameters
    ----------
    turn
        Only this turn of the graph's loop.
    json
        Print only JSON on standard output.
    """

    async def work(database: Database) -> ReadableTrajectory:
        return await trajectories.get_trajectory(database, LOCAL_TENANT, await get_run_id(database, run))

    trajectory = run_with_database(work)
    if json:
        return _print_json(render_trajectory(trajectory))
    print_trajectory(Console(highlight=False, soft_wrap=True), trajectory, turn)
    return 0


@app.command
def replay(run: str, *, json: Json = False) -> int:
    """Replay a run from its records without any model or tool.

    Exits with 1 and the difference if the graph behaves differently.
    """
    from offing.cli.stack import load_graphs
    from offing.mcp.server_registry import McpServerRegistry
    from offing.settings import load_settings
    from offing_workers.replay import ReplayResult, replay_run

    settings = load_settings()
    graphs, servers = load_graphs(settings), McpServerRegistry(settings.mcp_config)

    async def work(database: Database) -> ReplayResult:
        return await replay_run(database, LOCAL_TENANT, await get_run_id(database, run), graphs, servers)

    result = run_with_database(work)
    if json:
        _print_json(asdict(result))
    else:
        print(f"{'the same' if result.is_same else 'NOT the same'}: {result.detail}")
    return 0 if result.is_same else 1


@app.command(name="import")
def import_rows(
    file: Path, *, format: str = "parquet", to_format: str | None = None, output: Path | None = None
) -> int:
    """Read rows from a file, check them, and optionally write them in another format.

    Parameters
    ----------
    file
        A file that `export` has written.
    format
        Format of the file: parquet or rows.
    to_format
        Format to write: parquet, rows, verl or tinker.
    output
        The file to write.
    """
    if not file.is_file():
        raise InvalidInput("FILE", f"{file} is not a file", "Use a file that `offing trajectories export` has written.")
    register_folders(load_settings())
    read = get_reader(FORMATS.get_named(format, "--format"))
    if to_format is None or output is None:
        print(_count_rows(read(file), None))
        return 0
    written = FORMATS.get_named(to_format, "--to-format")
    if written.unit is not RecordUnit.ROW:
        rows = ", ".join(f.name for f in FORMATS.iter_usable() if f.unit is RecordUnit.ROW)
        raise InvalidInput("--to-format", f"{to_format} is not a format of rows", f"Use one of: {rows}.")
    with output.open("wb") as target:
        sink = written.create_sink(target, ExportOptions())
        print(_count_rows(read(file), sink))
        sink.close()
    return 0


def _count_rows(rows: Iterable[Any], sink: Sink | None) -> str:
    """Write rows to the sink, if there is one, and return a summary of what was read and written."""
    count, tokens, trained = 0, 0, 0
    runs, groups = set[UUID](), set[UUID | None]()
    for row in rows:
        count, tokens, trained = count + 1, tokens + len(row), trained + int(row.loss_mask.sum())
        runs.add(row.metadata.run_id)
        groups.add(row.metadata.group_id)
        if sink is not None:
            sink.write([row])
    known_count = len(groups - {None})
    return f"{count} rows, {tokens} tokens of which {trained} are trained, {len(runs)} runs, {known_count} groups"


def _summarize(summary: ExportSummary, out: Path, unit: RecordUnit, options: ExportOptions) -> Iterator[str]:
    yield f"{summary.record_count} records of {summary.run_count} runs in {out}"
    if summary.without_ids_count and unit is RecordUnit.ROW:
        yield f"left out: {summary.without_ids_count} turns without token ids; jsonl_chat has their text"
    if summary.quarantined_count:
        quarantine_text = (
            "included for training"
            if options.include_quarantined
            else "excluded from training; --include-quarantined includes them"
        )
        yield f"in quarantine: {summary.quarantined_count} turns, {quarantine_text}"
    if summary.cursor:
        yield f"continue later with --cursor {summary.cursor}"


def _with_time_zone(at: datetime | None) -> datetime | None:
    return at.replace(tzinfo=UTC) if at is not None and at.tzinfo is None else at


def _print_json(value: object) -> int:
    sys.stdout.buffer.write(orjson.dumps(value, option=orjson.OPT_INDENT_2) + b"\n")
    return 0
