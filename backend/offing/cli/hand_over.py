"""`offing training hand-over`: the steps of a job as files, for a trainer other than ours."""

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import orjson
from cyclopts import Parameter

from offing.cli.show import with_database
from offing.cli.training import tables_of
from offing.core.errors import InvalidInput
from offing.services import policies
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database


def hand_over(
    config: Path,
    *,
    out: Path,
    set: Annotated[tuple[str, ...], Parameter(negative="")] = (),
    follow: Annotated[bool, Parameter(negative="")] = False,
    json: Annotated[bool, Parameter(name="--json", negative="")] = False,
) -> int:
    """Write the steps of a job as Parquet files for another trainer, such as verl or TRL, with credit and weights.

    Nothing is trained and no ledger is written; called again with the same folder, it goes on where it was stopped.

    Parameters
    ----------
    config
        A TOML file, as `offing train` takes it.
    out
        Folder of the steps.
    set
        An entry of the file, such as `data.groups_per_step=64`.
    follow
        Wait for groups that are yet to become complete, until `steps` of the file, or Ctrl-C.
    json
        Print a line of JSON a step.
    """
    from offing_trainer.bridges.handing import Wrote, hand_over
    from offing_trainer.config import config_of

    asked = config_of(tables_of(config, set))

    def said(wrote: Wrote) -> None:
        if json:
            sys.stdout.write(orjson.dumps(asdict(wrote), default=str).decode() + "\n")
            sys.stdout.flush()
        else:
            print(f"{wrote.file}  {wrote.groups} groups, {wrote.rows} rows, {wrote.tokens} tokens", flush=True)

    async def work(database: Database) -> int:
        policy = await policies.named(database, LOCAL_TENANT, asked.policy)
        place = await hand_over(database, LOCAL_TENANT, asked, policy, out, follow=follow, said=said)
        return place.step

    steps = with_database(work)
    if not steps:
        raise InvalidInput("data", "no complete group fits", "Look with `offing train CONFIG --dry-run`.")
    return 0
