"""What LangGraph says of a store holds of ours as it does of its own in memory."""

import asyncio
from datetime import datetime
from typing import Any

import pytest
from langgraph.store.base import GetOp, InvalidNamespaceError, ListNamespacesOp, MatchCondition, PutOp, SearchOp

from offing.storage.pool import Database
from tests.storage.item_stores import INDEX, KINDS, a_store, cosine, keys


@pytest.fixture(params=KINDS)
async def store(request: pytest.FixtureRequest, pool: Database) -> Any:
    return a_store(request.param, pool)


@pytest.fixture(params=KINDS)
async def indexed(request: pytest.FixtureRequest, pool: Database) -> Any:
    return a_store(request.param, pool, INDEX)


async def test_an_item_is_found_by_its_namespace_and_key(store: Any) -> None:
    await store.aput(("memories", "ada"), "cat", {"name": "Tom", "age": 3, "tags": ["a", None], "more": {"x": 1.5}})
    item = await store.aget(("memories", "ada"), "cat")
    assert item.value == {"name": "Tom", "age": 3, "tags": ["a", None], "more": {"x": 1.5}}
    assert (item.namespace, item.key) == (("memories", "ada"), "cat")
    assert isinstance(item.created_at, datetime)
    assert item.created_at.tzinfo is not None
    assert item.created_at <= item.updated_at
    assert await store.aget(("memories",), "cat") is None
    assert await store.aget(("memories", "ada"), "dog") is None


async def test_a_put_replaces_the_whole_value(store: Any) -> None:
    await store.aput(("a",), "k", {"one": 1})
    before = await store.aget(("a",), "k")
    first = before.updated_at
    await store.aput(("a",), "k", {"two": 2})
    after = await store.aget(("a",), "k")
    assert after.value == {"two": 2}
    assert after.updated_at > first


async def test_an_item_is_deleted_by_name_or_by_putting_none(store: Any) -> None:
    for key in ("a", "b", "c"):
        await store.aput(("n",), key, {})
    await store.adelete(("n",), "a")
    await store.abatch([PutOp(("n",), "b", None)])
    await store.adelete(("n",), "never there")
    assert keys(await store.asearch(("n",))) == ["c"]


async def test_a_batch_answers_in_order_and_reads_before_it_puts(store: Any) -> None:
    await store.aput(("n",), "a", {"is": "old"})
    got, put, listed, searched, none = await store.abatch(
        [
            GetOp(("n",), "a"),
            PutOp(("n",), "a", {"is": "new"}),
            ListNamespacesOp(),
            SearchOp(("n",)),
            GetOp(("n",), "z"),
        ]
    )
    assert got.value == {"is": "old"}
    assert (put, none) == (None, None)
    assert listed == [("n",)]
    assert [item.value for item in searched] == [{"is": "old"}]
    assert (await store.aget(("n",), "a")).value == {"is": "new"}
    assert await store.abatch([]) == []


async def test_of_several_puts_of_an_item_in_a_batch_the_last_counts(store: Any) -> None:
    await store.abatch(
        [
            PutOp(("n",), "a", {"v": 1}),
            PutOp(("n",), "b", {"v": 1}),
            PutOp(("n",), "a", {"v": 2}),
            PutOp(("n",), "b", None),
        ]
    )
    assert [(i.key, i.value) for i in await store.asearch(("n",))] == [("a", {"v": 2})]


async def test_items_are_found_in_the_order_in_which_they_were_created(store: Any) -> None:
    for namespace, key in ((("n", "x"), "z"), (("n", "a"), "y"), (("n", "x"), "b"), (("n", "x"), "a")):
        await store.aput(namespace, key, {})
    await store.aput(("n", "x"), "z", {"changed": True})
    assert keys(await store.asearch(("n",))) == ["z", "b", "a", "y"]
    await store.adelete(("n", "x"), "z")
    await store.aput(("n", "x"), "z", {})
    assert keys(await store.asearch(("n", "x"))) == ["b", "a", "z"]


async def test_a_search_gives_pages(store: Any) -> None:
    for nth in range(15):
        await store.aput(("n",), f"{nth:02}", {})
    assert keys(await store.asearch(("n",))) == [f"{nth:02}" for nth in range(10)]
    assert keys(await store.asearch(("n",), limit=3, offset=11)) == ["11", "12", "13"]
    assert await store.asearch(("n",), offset=15) == []
    assert await store.asearch(("n",), limit=0) == []


async def test_a_prefix_is_of_whole_labels(store: Any) -> None:
    for labels in (("a",), ("a", "b"), ("a", "b", "c"), ("ab",), ("a-", "b"), ("a/", "b"), ("a%", "b"), ("b", "a")):
        await store.aput(labels, "k", {})
    assert [i.namespace for i in await store.asearch(("a",))] == [("a",), ("a", "b"), ("a", "b", "c")]
    assert [i.namespace for i in await store.asearch(("a", "b"))] == [("a", "b"), ("a", "b", "c")]
    assert len(await store.asearch(())) == 8


FILTERS: list[tuple[dict[str, Any], list[str]]] = [
    ({"color": "red"}, ["apple", "tomato"]),
    ({"color": "red", "n": 5}, ["tomato"]),
    ({"n": 5}, ["tomato", "half"]),
    ({"n": 5.0}, ["tomato", "half"]),
    ({"n": {"$eq": 5}}, ["tomato", "half"]),
    ({"n": {"$ne": 5}}, ["apple", "pear"]),
    ({"n": {"$gt": 5}}, ["apple"]),
    ({"n": {"$gte": 5}}, ["apple", "tomato", "half"]),
    ({"n": {"$lt": 5}}, ["pear"]),
    ({"n": {"$gt": "4.5"}}, ["apple", "tomato", "half"]),
    ({"n": {"$gt": 1, "$lt": 10}}, ["tomato", "pear", "half"]),
    ({"missing": {"$ne": "x"}}, ["apple", "tomato", "pear", "half"]),
    ({"missing": {"$eq": None}}, ["apple", "tomato", "pear", "half"]),
    ({"missing": None}, ["apple", "tomato", "pear", "half"]),
    ({"none": None}, ["apple", "tomato", "pear", "half"]),
    ({"color": {"$ne": None}}, ["apple", "tomato", "pear"]),
    ({"tags": ["a", "b"]}, ["apple"]),
    ({"tags": ["b", "a"]}, []),
    ({"tags": ["a"]}, ["pear"]),
    ({"tags": []}, ["half"]),
    ({"tags": [{"$ne": "b"}]}, ["pear"]),
    ({"from": {"land": "Chile"}}, ["apple"]),
    ({"from": {"land": "Chile", "city": "Arica"}}, ["apple"]),
    ({"from": {"city": {"$ne": "Arica"}}}, ["pear"]),
    ({"from": {"$eq": {"land": "Chile"}}}, []),
    ({"from": {"$eq": {"city": "Arica", "land": "Chile"}}}, ["apple"]),
    ({"from": {}}, ["apple", "pear"]),
    ({"color": {}}, []),
    ({"ripe": True}, ["apple"]),
    ({"ripe": False}, ["pear"]),
    ({"quote's": 'he said "x"'}, ["tomato"]),
    ({}, ["apple", "tomato", "pear", "half"]),
]


async def test_a_filter_compares_fields(store: Any) -> None:
    here = {"land": "Chile", "city": "Arica"}
    fruits: dict[str, dict[str, Any]] = {
        "apple": {"color": "red", "n": 10, "tags": ["a", "b"], "from": here, "ripe": True, "none": None},
        "tomato": {"color": "red", "n": 5, "tags": "a", "quote's": 'he said "x"'},
        "pear": {"color": "green", "n": 2, "tags": ["a"], "from": {"city": "Ica"}, "ripe": False},
        "half": {"n": 5, "tags": []},
    }
    for key, value in fruits.items():
        await store.aput(("fruit",), key, value)
    results = [(expected, keys(await store.asearch(("fruit",), filter=expected))) for expected, _ in FILTERS]
    assert results == FILTERS


async def test_an_operator_that_there_is_not_is_rejected(store: Any) -> None:
    await store.aput(("n",), "k", {"a": 1})
    with pytest.raises(ValueError, match="Unsupported operator"):
        await store.asearch(("n",), filter={"a": {"$in": [1]}})


NAMESPACES = (
    ("a", "b", "c"),
    ("a", "b", "d", "e"),
    ("a", "b", "d", "i"),
    ("a", "b", "f"),
    ("a", "c", "f"),
    ("a-", "f"),
)

LISTINGS: list[tuple[dict[str, Any], list[tuple[str, ...]]]] = [
    ({}, list(NAMESPACES)),
    ({"prefix": ("a", "b"), "max_depth": 3}, [("a", "b", "c"), ("a", "b", "d"), ("a", "b", "f")]),
    ({"suffix": ("f",)}, [("a", "b", "f"), ("a", "c", "f"), ("a-", "f")]),
    ({"prefix": ("a", "*", "f")}, [("a", "b", "f"), ("a", "c", "f")]),
    ({"suffix": ("d", "*")}, [("a", "b", "d", "e"), ("a", "b", "d", "i")]),
    ({"prefix": ("a",), "suffix": ("f",)}, [("a", "b", "f"), ("a", "c", "f")]),
    ({"prefix": ("a", "b", "c", "d")}, []),
    ({"max_depth": 1}, [("a",), ("a-",)]),
    ({"prefix": ("*",), "max_depth": 2, "limit": 2, "offset": 1}, [("a", "c"), ("a-", "f")]),
    ({"limit": 0}, []),
]


async def test_namespaces_are_listed_by_prefix_suffix_and_depth(store: Any) -> None:
    for labels in NAMESPACES:
        await store.aput(labels, "k", {})
    assert [(how, await store.alist_namespaces(**how)) for how, _ in LISTINGS] == LISTINGS


async def test_a_condition_without_labels_matches_all(store: Any) -> None:
    await store.aput(("a",), "k", {})
    conditions = (MatchCondition("prefix", ()), MatchCondition("suffix", ()))
    assert await store.abatch([ListNamespacesOp(match_conditions=conditions)]) == [[("a",)]]


async def test_a_namespace_that_cannot_be_is_rejected(store: Any) -> None:
    for labels in ((), ("a.b",), ("",), ("langgraph", "x"), ("a", 1), ("a\0",)):
        with pytest.raises(InvalidNamespaceError):
            await store.aput(labels, "k", {})


LABELS = ("ä", "日本", "a b", "*", "a*", "'", '"', "\\", "%", "_", "(", "[x]", "$", "\n", "|", "-", "\U0001f600")


async def test_labels_and_keys_are_any_text(store: Any) -> None:
    for label in LABELS:
        await store.aput((label, "x"), label, {f"f{label}": label})
    for label in LABELS:
        assert (await store.aget((label, "x"), label)).value == {f"f{label}": label}
        assert keys(await store.asearch((label,), filter={f"f{label}": label})) == [label]
        assert await store.alist_namespaces(prefix=(label,)) == (
            [(label, "x")] if label != "*" else sorted((one, "x") for one in LABELS)
        )


async def test_the_sync_forms_do_the_same_in_a_thread(store: Any) -> None:
    def work() -> Any:
        store.put(("n",), "a", {"x": 1})
        store.put(("n",), "b", {"x": 2})
        store.delete(("n",), "b")
        return store.get(("n",), "a").value, keys(store.search(("n",))), store.list_namespaces()

    assert await asyncio.to_thread(work) == ({"x": 1}, ["a"], [("n",)])


# By meaning --------------------------------------------------------------------------------------------------------


async def test_a_search_ranks_by_meaning(indexed: Any) -> None:
    texts = {"1": "a boat at sea", "2": "tea", "3": "tea and coffee", "4": "the sea"}
    for key, text in texts.items():
        await indexed.aput(("n",), key, {"text": text})
    items = await indexed.asearch(("n",), query="tea")
    assert keys(items)[:2] == ["2", "3"]
    assert [round(item.score, 4) for item in items] == [round(cosine("tea", texts[item.key]), 4) for item in items]
    assert keys(await indexed.asearch(("n",), query="tea", limit=1, offset=1)) == ["3"]
    assert keys(await indexed.asearch(("n",), query="sea", filter={"text": "tea"})) == ["2"]


async def test_the_best_of_several_texts_counts(indexed: Any) -> None:
    await indexed.aput(("n",), "one", {"text": "coffee", "notes": [{"text": "boat"}, {"text": "tea"}]})
    await indexed.aput(("n",), "two", {"text": "tea coffee"})
    assert keys(await indexed.asearch(("n",), query="tea")) == ["one", "two"]


async def test_what_is_not_indexed_comes_last_and_has_no_score(indexed: Any) -> None:
    await indexed.aput(("n",), "none", {"text": "tea"}, index=False)
    await indexed.aput(("n",), "other", {"words": "boat", "text": "tea"}, index=["words"])
    await indexed.aput(("n",), "missing", {"words": "tea"})
    await indexed.aput(("n",), "here", {"text": "tea"})
    items = await indexed.asearch(("n",), query="tea")
    assert keys(items) == ["here", "other", "none", "missing"]
    assert [item.score is None for item in items] == [False, False, True, True]


async def test_without_words_an_indexed_store_searches_in_order(indexed: Any) -> None:
    await indexed.aput(("n",), "b", {"text": "tea"})
    await indexed.aput(("n",), "a", {"text": "boat"})
    items = await indexed.asearch(("n",))
    assert [(item.key, item.score) for item in items] == [("b", None), ("a", None)]


async def test_without_an_index_words_are_not_looked_at(store: Any) -> None:
    await store.aput(("n",), "b", {"text": "boat"}, index=["text"])
    await store.aput(("n",), "a", {"text": "tea"})
    assert [(i.key, i.score) for i in await store.asearch(("n",), query="tea")] == [("b", None), ("a", None)]
