"""`offing jobs export-steps`: the training steps of a job as files for another trainer."""

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import orjson
from cyclopts import Parameter

from offing.cli.options import Flag, Json
from offing.cli.show import run_with_database
from offing.cli.training_jobs import load_tables
from offing.core.errors import InvalidInput
from offing.services import policies
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database


def export_steps(
    config: Path,
    *,
    output: Path,
    set: Annotated[tuple[str, ...], Parameter(negative="")] = (),
    follow: Flag = False,
    json: Json = False,
) -> int:
    """Export the training steps of a job as Parquet files for another trainer, such as verl or TRL.

    The files contain advantages and token weights. Nothing is trained and no ledger is written. With
    the same folder, an interrupted export continues.

    Parameters
    ----------
    config
        A TOML file as for `offing train`.
    output
        Folder of the steps.
    set
        An entry that overrides the file, such as `data.groups_per_step=64`.
    follow
        Wait for groups that are not complete yet, until `steps` of the file is reached or Ctrl-C.
    json
        Print one JSON line per step.
    """
    from offing_trainer.bridges.step_exporter import ExportedFile
    from offing_trainer.bridges.step_exporter import export_steps as export
    from offing_trainer.config import parse_config

    job_config = parse_config(load_tables(config, set))

    def print_step(exported: ExportedFile) -> None:
        if json:
            sys.stdout.write(orjson.dumps(asdict(exported), default=str).decode() + "\n")
            sys.stdout.flush()
        else:
            print(
                f"{exported.file}  {exported.groups} groups, {exported.rows} rows, {exported.tokens} tokens", flush=True
            )

    async def work(database: Database) -> int:
        policy = await policies.get_version_by_name(database, LOCAL_TENANT, job_config.policy)
        position = await export(
            database, LOCAL_TENANT, job_config, policy, output, follow=follow, on_exported=print_step
        )
        return position.step

    steps = run_with_database(work)
    if not steps:
        raise InvalidInput("data", "no complete group matches", "See the reasons with `offing train CONFIG --dry-run`.")
    return 0
