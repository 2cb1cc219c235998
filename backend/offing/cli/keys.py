"""`offing key`: create, list and revoke API keys."""

import sys

import orjson

from offing.cli.show import run_with_database
from offing.services import access
from offing.storage.migrate import LOCAL_TENANT


def create_key(name: str) -> int:
    created_key = run_with_database(lambda database: access.create_key(database, LOCAL_TENANT, name))
    print(created_key.key)
    print("Store it now. It cannot be shown again.", file=sys.stderr)
    return 0


def list_keys(as_json: bool) -> int:
    keys = run_with_database(lambda database: access.list_keys(database, LOCAL_TENANT))
    if as_json:
        sys.stdout.write(orjson.dumps(keys, default=str, option=orjson.OPT_INDENT_2).decode() + "\n")
        return 0
    for key in keys:
        print(f"{key.id}  {key.name}  {'revoked' if key.revoked_at else 'valid'}")
    return 0


def revoke_key(key_id: str) -> int:
    run_with_database(lambda database: access.revoke_key(database, LOCAL_TENANT, key_id))
    return 0
