"""`offing store`: the items of graphs in LangGraph's store."""

import sys
from collections.abc import Awaitable, Callable
from typing import Annotated, Any

import orjson
from cyclopts import App, Parameter
from rich.console import Console

from offing.cli.options import Json
from offing.cli.show import run_with_database
from offing.cli.terminal import strip_control
from offing.core.errors import NotFound
from offing.services.store_items import PostgresStore
from offing.storage.migrate import LOCAL_TENANT

app = App(name="store", help="Items that graphs store outside their threads, in LangGraph's store.")

Namespace = Annotated[str, Parameter(help="Its labels with a slash between them.")]
Key = Annotated[str, Parameter(help="Its key.")]


@app.command(name="list")
def list_items(namespace: str = "", *, limit: int = 100, offset: int = 0, json: Json = False) -> int:
    """List the items of a namespace and the namespaces below it, in order of creation.

    Parameters
    ----------
    namespace
        Labels separated by slashes, such as memories/ada. Empty: all namespaces.
    limit
        Maximum number of items.
    offset
        Number of items to skip.
    json
        Print one JSON object per line, including values.
    """
    items = _run_with_store(
        lambda store: store.asearch(_parse_namespace(namespace), limit=limit, offset=offset, refresh_ttl=False)
    )
    console = Console(soft_wrap=True, highlight=False)
    for item in items:
        if json:
            _print_json(item.dict())
        else:
            location = strip_control(f"{'/'.join(item.namespace)} {item.key}")
            console.print(f"{location}  {item.updated_at:%Y-%m-%d %H:%M}")
    return 0


@app.command
def show(namespace: Namespace, key: Key) -> int:
    """Show an item as JSON."""
    _print_json(_run_with_store(lambda store: _get_item(store, namespace, key)).dict())
    return 0


@app.command
def delete(namespace: Namespace, key: Key) -> int:
    """Delete an item."""

    async def work(store: PostgresStore) -> None:
        await _get_item(store, namespace, key)
        await store.adelete(_parse_namespace(namespace), key)

    _run_with_store(work)
    return 0


async def _get_item(store: PostgresStore, namespace: str, key: str) -> Any:
    item = await store.aget(_parse_namespace(namespace), key, refresh_ttl=False)
    if item is None:
        raise NotFound("item", f"{namespace} {key}")
    return item


def _run_with_store(function: Callable[[PostgresStore], Awaitable[Any]]) -> Any:
    return run_with_database(lambda database: function(PostgresStore(database, LOCAL_TENANT)))


def _parse_namespace(namespace: str) -> tuple[str, ...]:
    return tuple(namespace.split("/")) if namespace else ()


def _print_json(value: Any) -> None:
    sys.stdout.buffer.write(orjson.dumps(value) + b"\n")
