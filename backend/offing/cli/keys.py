"""`offing key`: make, list and end API keys."""

import sys

import orjson

from offing.cli.show import with_database
from offing.services import access
from offing.storage.migrate import LOCAL_TENANT


def create_key(name: str) -> int:
    made = with_database(lambda database: access.create_key(database, LOCAL_TENANT, name))
    print(made.key)
    print("Keep it: it cannot be shown again.", file=sys.stderr)
    return 0


def list_keys(as_json: bool) -> int:
    found = with_database(lambda database: access.list_keys(database, LOCAL_TENANT))
    if as_json:
        sys.stdout.write(orjson.dumps(found, default=str, option=orjson.OPT_INDENT_2).decode() + "\n")
        return 0
    for key in found:
        print(f"{key.id}  {key.name}  {'revoked' if key.revoked_at else 'valid'}")
    return 0


def revoke_key(id: str) -> int:
    with_database(lambda database: access.revoke_key(database, LOCAL_TENANT, id))
    return 0
