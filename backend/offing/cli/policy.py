"""`offing policy`: register weights, list versions and set their state."""

import sys
from dataclasses import asdict
from pathlib import Path

import orjson
from rich.console import Console
from rich.table import Table

from offing.cli.show import run_with_database
from offing.cli.terminal import strip_control
from offing.core.errors import InvalidInput
from offing.services import policies
from offing.services.policies import PolicyRegistration
from offing.services.policy_files import hash_files
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.policy_versions import PolicyVersionRow
from offing.storage.pool import Database


def add_version(name: str, folder: Path, kind: str | None, parent: str, base_model: str, as_json: bool) -> int:
    from offing.models.policy_folder import check_folder, is_adapter

    detected_kind = "lora" if is_adapter(check_folder(folder, "FOLDER")) else "full"
    if kind is not None and kind != detected_kind:
        raise InvalidInput(
            "--kind", f"{folder} contains {detected_kind} weights", f"Use --kind {detected_kind}, or omit the option."
        )
    if detected_kind == "lora" and not parent:
        raise InvalidInput(
            "--parent", "an adapter needs the version that it was trained from", "Use --parent NAME@VERSION."
        )

    uri = str(folder.resolve())

    async def work(database: Database) -> tuple[PolicyVersionRow, bool]:
        above = await policies.get_version_by_name(database, LOCAL_TENANT, parent) if parent else None
        registration = PolicyRegistration(
            name=name,
            kind=detected_kind,
            uri=uri,
            hashes=hash_files(folder, above if detected_kind == "lora" else None),
            parent_version=parent,
            base_model=base_model,
        )
        return await policies.register_version(database, LOCAL_TENANT, registration)

    row, new = run_with_database(work)
    if as_json:
        return _print_json(row)
    print(row.label)
    if not new:
        print("These files are already registered.", file=sys.stderr)
    return 0


def list_versions(name: str | None, limit: int, as_json: bool) -> int:
    versions, _ = run_with_database(lambda database: policies.list_versions(database, LOCAL_TENANT, name, None, limit))
    if as_json:
        return _print_json(versions)
    table = Table("policy", "state", "kind", "weights", "folder", box=None)
    for row in versions:
        table.add_row(row.label, row.state, row.kind, row.sha256[:12], strip_control(row.uri))
    Console().print(table)
    return 0


def set_state(policy: str, state: str) -> int:
    async def work(database: Database) -> PolicyVersionRow:
        row = await policies.get_version_by_name(database, LOCAL_TENANT, policy)
        return await policies.set_version_state(database, LOCAL_TENANT, row.id, state)

    row = run_with_database(work)
    print(f"{row.label} is {row.state}")
    return 0


def _print_json(value: PolicyVersionRow | list[PolicyVersionRow]) -> int:
    plain = [asdict(row) for row in value] if isinstance(value, list) else asdict(value)
    sys.stdout.write(orjson.dumps(plain, default=str, option=orjson.OPT_INDENT_2).decode() + "\n")
    return 0
