"""`offing store`: the items that graphs keep in LangGraph's store."""

import sys
from collections.abc import Awaitable, Callable
from typing import Annotated, Any

import orjson
from cyclopts import App, Parameter
from rich.console import Console

from offing.cli.show import with_database
from offing.cli.terminal import safe
from offing.core.errors import NotFound
from offing.services.store_items import PostgresStore
from offing.storage.migrate import LOCAL_TENANT

app = App(name="store", help="What graphs keep beyond a thread: the items of LangGraph's store.")

Namespace = Annotated[str, Parameter(help="Its labels with a slash between them.")]
Key = Annotated[str, Parameter(help="Its key.")]
Json = Annotated[bool, Parameter(name="--json", negative="")]


@app.command(name="list")
def list_(namespace: str = "", *, limit: int = 100, offset: int = 0, json: Json = False) -> int:
    """List the items in a namespace and those below it, in the order in which they were created.

    Parameters
    ----------
    namespace
        Its labels with a slash between them, such as memories/ada. Empty: all.
    limit
        The maximum number of items.
    offset
        The number of items to skip.
    json
        One JSON object a line, with their values.
    """
    found = _with_store(lambda store: store.asearch(_labels(namespace), limit=limit, offset=offset, refresh_ttl=False))
    console = Console(soft_wrap=True, highlight=False)
    for item in found:
        if json:
            _print(item.dict())
        else:
            where = safe(f"{'/'.join(item.namespace)} {item.key}")
            console.print(f"{where}  {item.updated_at:%Y-%m-%d %H:%M}")
    return 0


@app.command
def show(namespace: Namespace, key: Key) -> int:
    """Show an item as JSON."""
    _print(_with_store(lambda store: _existing(store, namespace, key)).dict())
    return 0


@app.command
def delete(namespace: Namespace, key: Key) -> int:
    """Delete an item."""

    async def work(store: PostgresStore) -> None:
        await _existing(store, namespace, key)
        await store.adelete(_labels(namespace), key)

    _with_store(work)
    return 0


async def _existing(store: PostgresStore, namespace: str, key: str) -> Any:
    found = await store.aget(_labels(namespace), key, refresh_ttl=False)
    if found is None:
        raise NotFound("item", f"{namespace} {key}")
    return found


def _with_store(work: Callable[[PostgresStore], Awaitable[Any]]) -> Any:
    return with_database(lambda database: work(PostgresStore(database, LOCAL_TENANT)))


def _labels(namespace: str) -> tuple[str, ...]:
    return tuple(namespace.split("/")) if namespace else ()


def _print(value: Any) -> None:
    sys.stdout.buffer.write(orjson.dumps(value) + b"\n")
