"""`offing policy`: register weights, list versions, change their state."""

import sys
from dataclasses import asdict
from pathlib import Path

import orjson
from rich.console import Console
from rich.table import Table

from offing.cli.show import with_database
from offing.cli.terminal import safe
from offing.core.errors import InvalidInput
from offing.services import policies
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.policy_versions import VersionRow
from offing.storage.pool import Database


def add(name: str, folder: Path, kind: str | None, parent: str, base_model: str, as_json: bool) -> int:
    from offing_engine.folder import checked_folder, is_adapter

    found = "lora" if is_adapter(checked_folder(folder, "FOLDER")) else "full"
    if kind is not None and kind != found:
        raise InvalidInput("--kind", f"{folder} holds {found} weights", f"Say --kind {found}, or leave it out.")
    if found == "lora" and not parent:
        raise InvalidInput("--parent", "an adapter needs the version that it stands on", "Name it as NAME@VERSION.")

    uri = str(folder.resolve())

    async def work(database: Database) -> tuple[VersionRow, bool]:
        above = await policies.named(database, LOCAL_TENANT, parent) if parent else None
        weights, tokenizer, template = hashes(folder, above if found == "lora" else None)
        return await policies.register(
            database,
            LOCAL_TENANT,
            name=name,
            kind=found,
            uri=uri,
            sha256=weights,
            tokenizer_sha256=tokenizer,
            template_sha256=template,
            parent=parent,
            base_model=base_model,
        )

    row, new = with_database(work)
    if as_json:
        return _dump(row)
    print(row.label)
    if not new:
        print("These files are registered already.", file=sys.stderr)
    return 0


def listed(name: str | None, limit: int, as_json: bool) -> int:
    found, _ = with_database(lambda database: policies.page(database, LOCAL_TENANT, name, None, limit))
    if as_json:
        return _dump(found)
    table = Table("policy", "state", "kind", "weights", "folder", box=None)
    for row in found:
        table.add_row(row.label, row.state, row.kind, row.sha256[:12], safe(row.uri))
    Console().print(table)
    return 0


def change(policy: str, state: str) -> int:
    async def work(database: Database) -> VersionRow:
        row = await policies.named(database, LOCAL_TENANT, policy)
        return await policies.change_state(database, LOCAL_TENANT, row.id, state)

    row = with_database(work)
    print(f"{row.label} is {row.state}")
    return 0


def hashes(folder: Path, base: VersionRow | None) -> tuple[str, str, str]:
    """Of weights, tokenizer and chat template, as the policy engine computes them. `base`: what an adapter stands on.

    Empty for the tokenizer and template of full weights that have none; an adapter without its own has its base's.
    """
    from offing_trainer.job.publishing import hashes_of

    found = hashes_of(folder, base)
    return found.weights, found.tokenizer, found.template


def _dump(value: VersionRow | list[VersionRow]) -> int:
    plain = [asdict(row) for row in value] if isinstance(value, list) else asdict(value)
    sys.stdout.write(orjson.dumps(plain, default=str, option=orjson.OPT_INDENT_2).decode() + "\n")
    return 0
