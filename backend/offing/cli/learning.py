"""`offing learn`: judged runs become the next version of a prompt library, a candidate."""

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import orjson
from cyclopts import Parameter

from offing.cli.show import with_database
from offing.cli.terminal import safe
from offing.core.errors import InvalidInput
from offing.core.prompt_library import CASES, EXPERIENCES, Library, library_of
from offing.models.discover import default_choice, engine_named
from offing.services import prompt_library
from offing.settings import load_settings
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.policy_versions import VersionRow
from offing.storage.pool import Database

if TYPE_CHECKING:
    from offing_trainer.prompts.learning import Learned, Wanted

FOLDER = "prompts"
"""Under OFFING_HOME; one folder a version."""

Json = Annotated[bool, Parameter(name="--json", negative="")]


def learn(
    name: str,
    *,
    engine: str | None = None,
    graph: str | None = None,
    tag: str | None = None,
    groups: int = 50,
    cases: bool = True,
    usd: float | None = None,
    folder: Path | None = None,
    json: Json = False,
) -> int:
    """Compare judged runs and register what they teach as a candidate of the prompt library NAME.

    `offing policy evaluate`, `promote` and `rollback` treat it as any policy; a run shows it to a role with
    `--engine 'planner=litellm:openai/gpt-5-mini;library=NAME'`.

    Parameters
    ----------
    engine
        Who compares, such as litellm:openai/gpt-5-mini. None: OFFING_ENGINE; extractive takes over corrections only.
    graph
        Only runs of this graph.
    tag
        Only rollouts of batches with this tag.
    groups
        Groups of runs to compare at most.
    cases
        Remember runs as cases, too; the nearest are shown to later questions.
    usd
        Money after which no further group is compared.
    folder
        Register this folder, a version's copy that you changed, instead of learning.
    json
        Print only JSON on standard output.
    """
    place = load_settings().home / FOLDER
    if folder is not None:
        return _said(with_database(lambda database: _registered(database, name, _read(folder), place)), json)
    from offing_trainer.prompts.learning import Wanted

    if not 1 <= groups <= 10_000:
        raise InvalidInput("--groups", f"{groups} is out of range", "Use 1 to 10000.")
    choice = engine_named(engine, "--engine") if engine else default_choice()
    wanted = Wanted(name, choice, graph, tag, groups, cases, usd)
    return _told(with_database(lambda database: _learned(database, wanted, place)), json)


async def _learned(database: Database, wanted: "Wanted", place: Path) -> "Learned":
    from offing_trainer.prompts.learning import learn as work
    from offing_workers.collection import TenantMeter

    return await work(database, LOCAL_TENANT, wanted, place, TenantMeter(database, LOCAL_TENANT))


async def _registered(database: Database, name: str, library: Library, place: Path) -> VersionRow:
    from offing_trainer.prompts.learning import begun

    parent = await begun(database, LOCAL_TENANT, name, place)
    lineage = {**parent.version.lineage, "from": f"{name}@{parent.version.version}", "engine": "a person"}
    row, _ = await prompt_library.register(
        database, LOCAL_TENANT, name, library, place, parent=parent.version.id, lineage=lineage
    )
    return row


def _read(folder: Path) -> Library:
    if not (folder / EXPERIENCES).is_file():
        raise InvalidInput("--folder", f"{folder} holds no {EXPERIENCES}", "Copy a version's folder and change it.")
    try:
        texts = {n: (folder / n).read_text("utf-8") for n in (EXPERIENCES, CASES) if (folder / n).is_file()}
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput("--folder", f"{folder} cannot be read: {error}", "Copy a version's folder.") from error
    return library_of(texts)


def _told(learned: "Learned", as_json: bool) -> int:
    if as_json:
        return _dump(asdict(learned) | {"library": learned.library.model_dump(mode="json")})
    for why in learned.refused:
        print(f"left out: {safe(why)}", file=sys.stderr)
    if learned.stopped:
        print(f"stopped early: {safe(learned.stopped)}", file=sys.stderr)
    print(f"{learned.compared} groups compared, {learned.edits} changes", file=sys.stderr)
    if learned.version is None:
        print("Nothing was learned, and there is no candidate.", file=sys.stderr)
        return 1 if learned.stopped else 0
    return _said(learned.version, False)


def _said(row: VersionRow, as_json: bool) -> int:
    if as_json:
        return _dump(asdict(row))
    print(f"{row.name}@{row.version}")
    print(f"{row.state}; its files are in {safe(row.uri)}", file=sys.stderr)
    return 0


def _dump(value: Any) -> int:
    sys.stdout.write(orjson.dumps(value, default=str, option=orjson.OPT_INDENT_2).decode() + "\n")
    return 0
