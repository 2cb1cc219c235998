"""Items of the tenant's LangGraph store."""

from typing import Annotated, Any, cast

from fastapi import APIRouter, Query, Response
from langgraph.store.base import InvalidNamespaceError, Item, SearchItem

from offing.core.errors import InvalidInput
from offing.kernel.item_index import build_item_index
from offing.protocols.langgraph.access import allow_item
from offing.protocols.langgraph.bodies import ItemIn, ItemKey, ItemSearch, NamespaceSearch
from offing.protocols.langgraph.context import Caller, CurrentCaller
from offing.protocols.langgraph.rendering import respond_json
from offing.services.project_http import find_store_options
from offing.services.store_items import PostgresStore

router = APIRouter(prefix="/store")


def _open(caller: Caller) -> PostgresStore:
    """Return the store, with the index and the expiry that the graphs of this server declare."""
    index, ttl = find_store_options(caller.context.graphs)
    declared: Any = ttl
    return PostgresStore(caller.database, caller.tenant_id, index=build_item_index(cast(Any, index)), ttl=declared)


def _check_index(store: PostgresStore, field: str) -> None:
    if store.index is None:
        problem = "the graphs of this server declare no index of the store"
        raise InvalidInput(field, problem, "Set store.index in langgraph.json, or leave it out.")


@router.put("/items", status_code=204)
async def put_item(caller: CurrentCaller, body: ItemIn) -> Response:
    """Store an item. `ttl` is in minutes."""
    more: dict[str, Any] = {} if body.ttl is None else {"ttl": body.ttl}
    store = _open(caller)
    if body.index not in (None, False):
        _check_index(store, "index")
    value: dict[str, Any] = {
        "namespace": tuple(body.namespace),
        "key": body.key,
        "value": body.value,
        "index": body.index,
    }
    namespace = await allow_item(caller, "put", value)
    await store.aput(namespace, value["key"], value["value"], value["index"], **more)
    return Response(status_code=204)


@router.get("/items")
async def get_item(
    caller: CurrentCaller, key: str, namespace: Annotated[str, Query()] = "", refresh_ttl: bool | None = None
) -> Response:
    """Get an item, or null. The labels of `namespace` are separated by periods."""
    value: dict[str, Any] = {"namespace": tuple(namespace.split(".")) if namespace else (), "key": key}
    labels = await allow_item(caller, "get", value)
    item = await _open(caller).aget(labels, value["key"], refresh_ttl=refresh_ttl)
    return respond_json(None if item is None else _render(item))


@router.delete("/items", status_code=204)
async def delete_item(caller: CurrentCaller, body: ItemKey) -> Response:
    """Delete an item, if there is one."""
    value: dict[str, Any] = {"namespace": tuple(body.namespace), "key": body.key}
    namespace = await allow_item(caller, "delete", value)
    await _open(caller).adelete(namespace, value["key"])
    return Response(status_code=204)


@router.post("/items/search")
async def search_items(caller: CurrentCaller, body: ItemSearch) -> Response:
    """List the items below a namespace that match a filter, with `query` those closest to its meaning first."""
    store = _open(caller)
    if body.query is not None:
        _check_index(store, "query")
    value: dict[str, Any] = {
        "namespace": tuple(body.namespace_prefix),
        "filter": body.filter,
        "limit": body.limit,
        "offset": body.offset,
        "query": body.query,
    }
    prefix = await allow_item(caller, "search", value)
    try:
        matches = await store.asearch(
            prefix,
            query=value["query"],
            filter=value["filter"],
            limit=value["limit"],
            offset=value["offset"],
            refresh_ttl=body.refresh_ttl,
        )
    except InvalidNamespaceError:
        raise
    except ValueError as error:  # an operator that LangGraph's stores do not have
        raise InvalidInput("filter", str(error), "Use $eq, $ne, $gt, $gte, $lt or $lte.") from error
    return respond_json({"items": [{**_render(item), "score": item.score} for item in matches]})


@router.post("/namespaces")
async def list_namespaces(caller: CurrentCaller, body: NamespaceSearch) -> Response:
    """List namespaces."""
    value: dict[str, Any] = {
        "namespace": tuple(body.prefix) if body.prefix else None,
        "suffix": tuple(body.suffix) if body.suffix else None,
        "max_depth": body.max_depth,
        "limit": body.limit,
        "offset": body.offset,
    }
    prefix = await allow_item(caller, "list_namespaces", value)
    matches = await _open(caller).alist_namespaces(
        prefix=prefix or None,
        suffix=value["suffix"],
        max_depth=value["max_depth"],
        limit=value["limit"],
        offset=value["offset"],
    )
    return respond_json({"namespaces": [list(one) for one in matches]})


def _render(item: Item | SearchItem) -> dict[str, Any]:
    return {
        "namespace": list(item.namespace),
        "key": item.key,
        "value": item.value,
        "created_at": item.created_at,
        "updated_at": item.updated_at,
    }
