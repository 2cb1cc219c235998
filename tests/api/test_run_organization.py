"""People name, tag, pin, archive and find runs over HTTP."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID, uuid4

import pytest

from offing.api.problems import describe_rejection
from offing.core.errors import Unavailable
from offing.core.run import RunStatus
from offing.services.run_deletion import DeletionResult, delete_runs
from offing.services.run_labels import LabelChange, change_labels_of_runs
from offing.storage.pool import Connection, Database
from offing.storage.run_summaries import RunSummary
from tests.api.conftest import Api
from tests.api.sse import following
from tests.api.test_input_requests import YEAR, send, waiting


async def listed(api: Api, query: str = "") -> list[str]:
    """Questions of the runs of all pages of a list, with three runs on a page."""
    questions: list[str] = []
    cursor = ""
    while True:
        response = await api.http.get(f"/api/v1/runs?limit=3&{query}{cursor}")
        assert response.status_code == 200, response.text
        page = response.json()
        questions += [run["question"] for run in page["items"]]
        if page["next"] is None:
            return questions
        cursor = f"&cursor={page['next']}"


def marked(item: dict[str, Any]) -> list[str]:
    """The words of the excerpt that are marked."""
    match = item["match"]
    return [match["excerpt"][mark["start"] : mark["end"]] for mark in match["marks"]]


async def change(api: Api, run: UUID | str, **fields: object) -> dict[str, Any]:
    response = await api.http.patch(f"/api/v1/runs/{run}", json=fields)
    assert response.status_code == 200, response.text
    return response.json()


async def ended(api: Api, question: str, status: RunStatus = RunStatus.DONE, **more: object) -> UUID:
    run = await api.submit(question, **more)
    await api.hands.end(await api.hands.claim(run), status)
    return run


async def test_a_run_is_named_tagged_pinned_and_archived_and_each_change_leaves_the_rest(api: Api) -> None:
    run = await api.submit()
    named = await change(api, run, title="  Salt \n water ", tags=["sea", " sea ", "Größe"])
    assert (named["title"], named["given_title"], named["tags"]) == ("Salt water", "Salt water", ["sea", "Größe"])
    pinned = await change(api, run, pinned=True)
    archived = await change(api, run, archived=True, pinned=True)
    assert (archived["title"], archived["tags"]) == ("Salt water", ["sea", "Größe"])
    assert archived["pinned_at"] == pinned["pinned_at"] is not None
    assert archived["archived_at"] is not None
    cleared = await change(api, run, title="", tags=[], pinned=False, archived=False)
    assert [cleared[name] for name in ("title", "given_title", "tags", "pinned_at", "archived_at")] == [
        None, "", [], None, None
    ]  # fmt: skip
    assert (await change(api, run))["id"] == str(run)


async def test_a_given_title_hides_that_of_the_report_until_it_is_removed(api: Api) -> None:
    run = await api.submit()
    await api.hands.report(await api.hands.claim(run), await api.hands.document())
    assert (await api.http.get(f"/api/v1/runs/{run}")).json()["title"] == "Salt"
    assert (await change(api, run, title="Mine"))["title"] == "Mine"
    assert (await change(api, run, title=""))["title"] == "Salt"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"titel": "x"}, "titel"),
        ({"title": "x" * 201}, "title"),
        ({"title": 3}, "title"),
        ({"tags": ["x" * 51]}, "tags"),
        ({"tags": [""]}, "tags"),
        ({"tags": [str(n) for n in range(21)]}, "tags"),
        ({"tags": "sea"}, "tags"),
        ({"pinned": "yes please"}, "pinned"),
    ],
)
async def test_a_change_that_cannot_be_made_is_rejected_by_name_and_nothing_of_it_is_kept(
    api: Api, body: dict[str, object], field: str
) -> None:
    run = await api.submit()
    rejected = await api.http.patch(f"/api/v1/runs/{run}", json={"archived": True, **body})
    assert (rejected.status_code, rejected.json()["field"]) == (422, field)
    assert rejected.json()["remedy"]
    assert (await api.http.get(f"/api/v1/runs/{run}")).json()["archived_at"] is None


async def test_a_run_that_does_not_exist_is_neither_changed_nor_deleted(api: Api) -> None:
    assert (await api.http.patch(f"/api/v1/runs/{uuid4()}", json={"title": "x"})).status_code == 404
    assert (await api.http.delete(f"/api/v1/runs/{uuid4()}")).status_code == 404


async def test_lists_are_filtered_and_keep_their_order_over_pages(api: Api) -> None:
    one = await ended(api, "one?")
    two = await ended(api, "two?", RunStatus.FAILED)
    three = await api.submit("three?")
    four = await ended(api, "four?")
    five = await api.submit("five?")
    await change(api, one, tags=["sea", "salt"], pinned=True)
    await change(api, two, tags=["sea"])
    await change(api, three, tags=["salt"], pinned=True)
    await change(api, four, archived=True, tags=["sea"])
    created, after = [
        (await api.http.get(f"/api/v1/runs/{run}")).json()["created_at"].replace("+00:00", "Z") for run in (three, four)
    ]
    expected = {
        "": ["five?", "three?", "two?", "one?"],
        "archived=only": ["four?"],
        "archived=any": ["five?", "four?", "three?", "two?", "one?"],
        "tag=sea": ["two?", "one?"],
        "tag=sea&archived=any": ["four?", "two?", "one?"],
        "tag=sea&status=failed": ["two?"],
        "tag=se": [],
        "pinned=true": ["three?", "one?"],
        "pinned=false": ["five?", "two?"],
        "status=failed": ["two?"],
        "status=queued": ["five?", "three?"],
        "status_group=active": ["five?", "three?"],
        "status_group=ended": ["two?", "one?"],
        "status_group=ended&archived=any": ["four?", "two?", "one?"],
        "graph=quiet&pinned=true": ["three?", "one?"],
        "graph=other": [],
        f"created_from={created}": ["five?", "three?"],
        f"created_before={created}": ["two?", "one?"],
        f"created_from={created}&created_before={after}": ["three?"],
        f"tag=sea&created_before={created}": ["two?", "one?"],
        "waiting_for_person=true": [],
        "q=two": ["two?"],
        "q=two&status=done": [],
        f"q=three&created_before={after}": ["three?"],
        f"q=three&created_before={created}": [],
        f"q=two&created_from={created}": [],
    }
    for query, questions in expected.items():
        assert await listed(api, query) == questions, query
    assert str(five) in [run["id"] for run in (await api.http.get("/api/v1/runs")).json()["items"]]


async def test_runs_that_wait_for_a_person_are_listed_until_they_are_answered(api: Api) -> None:
    await api.submit("Another question?")
    run, (year,) = await waiting(api, YEAR)
    query = "/api/v1/runs?waiting_for_person=true"
    (item,) = (await api.http.get(query)).json()["items"]
    assert (item["id"], item["pending_input_requests"]) == (str(run), 1)
    assert (await send(api.http, run, year, text="1991")).status_code == 200
    assert (await api.http.get(query)).json()["items"] == []


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("q=%3F%3F", "q"),
        ("q=the%20", "q"),
        ("q=salt&kind=rollout", "q"),
        ("tag=%20sea", "tag"),
        ("tag=" + "x" * 51, "tag"),
        ("status_group=some", "status_group"),
        ("archived=true", "archived"),
        ("created_from=2026-01-01T00:00:00", "created_from"),
        ("created_from=1026-01-01T00:00:00Z", "created_from"),
        ("created_from=2026-01-02T00:00:00Z&created_before=2026-01-01T00:00:00Z", "created_before"),
        ("cursor=nonsense", "cursor"),
        ("q=sea&cursor=nonsense", "cursor"),
        ("q=sea&cursor=WzEsMiwzXQ", "cursor"),
        ("order=cost&cursor=nonsense", "cursor"),
        ("order=best", "order"),
        ("order=cost&q=sea", "order"),
        ("order=cost&kind=rollout", "order"),
        ("pinned_first=3&q=sea", "pinned_first"),
        ("pinned_first=3&pinned=true", "pinned_first"),
    ],
)
async def test_a_filter_that_means_nothing_is_rejected_by_name(api: Api, query: str, field: str) -> None:
    rejected = await api.http.get(f"/api/v1/runs?{query}")
    assert (rejected.status_code, rejected.json()["field"]) == (422, field), rejected.text
    assert rejected.json()["remedy"]


async def test_a_run_is_found_by_words_of_its_question_its_title_and_its_latest_report(api: Api) -> None:
    run = await api.submit("Why do oceans taste as they do?")
    await api.submit("为什么海水是咸的?连接池如何使用Postgres缓存")
    for query, marks in (("OCEAN taste", ["oceans", "taste"]), ("tas", ["taste"])):
        (item,) = (await api.http.get("/api/v1/runs", params={"q": query})).json()["items"]
        assert (item["id"], item["match"]["location"]) == (str(run), "question")
        assert marked(item) == marks
    assert await listed(api, "q=dissolved") == []
    fence = await api.hands.claim(run)
    await api.hands.report(fence, await api.hands.document())
    (item,) = (await api.http.get("/api/v1/runs", params={"q": "dissolving rivers"})).json()["items"]
    assert item["match"]["location"] == "report"
    assert item["match"]["excerpt"] == "Rivers carry dissolved salt into the sea."
    assert marked(item) == ["Rivers", "dissolved"]
    assert await listed(api, "q=oceans dissolved") == ["Why do oceans taste as they do?"]
    await change(api, run, title="Brine and taste")
    (item,) = (await api.http.get("/api/v1/runs", params={"q": "brine"})).json()["items"]
    marks = [{"start": 0, "end": 5}]
    assert item["match"] == {
        "location": "title",
        "excerpt": "Brine and taste",
        "marks": marks,
        "question_marks": [],
        "title_marks": marks,
    }
    await change(api, run, title="")
    assert await listed(api, "q=brine") == []
    for query in ("海水", "咸", "连接池", "缓存", "postgres", "海水 缓存"):
        assert len(await listed(api, f"q={query}")) == 1, query
    assert await listed(api, "q=水海") == []


async def test_a_search_shows_where_nothing_without_a_search_and_says_what_is_not_indexed(api: Api) -> None:
    await api.submit()
    assert (await api.http.get("/api/v1/runs")).json()["items"][0]["match"] is None
    page = (await api.http.get("/api/v1/runs?q=salt")).json()
    assert (len(page["items"]), page["unindexed_runs"]) == (1, 0)
    assert len((await api.http.get("/api/v1/runs?q=%20")).json()["items"]) == 1


async def test_a_search_has_the_order_of_the_list_over_pages(api: Api) -> None:
    for number in range(7):
        run = await api.submit(f"Why is sea {number} salt?")
        await change(api, run, tags=["odd"] if number % 2 else [])
    assert await listed(api, "q=salt") == [f"Why is sea {number} salt?" for number in reversed(range(7))]
    assert await listed(api, "q=salt&tag=odd") == [f"Why is sea {number} salt?" for number in (5, 3, 1)]


async def test_the_best_match_is_first_whatever_its_age_and_the_newest_if_a_person_asks_for_it(api: Api) -> None:
    titled = await api.submit("Which trains run today?")
    await change(api, titled, title="Harbors")
    tagged = await api.submit("Which ships sail today?")
    await change(api, tagged, tags=["harbor"])
    await api.submit("Which harbors silt up?")
    await api.submit("Which canals, locks, rivers, lakes and harbors of the northern countries silt up each spring?")
    reported = await api.submit("Why is the sea salt?")
    await api.hands.report(await api.hands.claim(reported), await api.hands.document())
    await change(api, reported, title="Sea")
    await api.submit("Do rivers fill a harbor with salt?")
    assert await listed(api, "q=harbor") == [
        "Which trains run today?",
        "Which ships sail today?",
        "Which harbors silt up?",
        "Do rivers fill a harbor with salt?",
        "Which canals, locks, rivers, lakes and harbors of the northern countries silt up each spring?",
    ]
    newest = await listed(api, "q=harbor&order=newest")
    assert (newest[0], newest[-1]) == ("Do rivers fill a harbor with salt?", "Which trains run today?")
    assert await listed(api, "q=salt rivers") == ["Do rivers fill a harbor with salt?", "Why is the sea salt?"]
    (item,) = (await api.http.get("/api/v1/runs?q=ships harbors")).json()["items"]
    assert (item["id"], item["match"]["location"]) == (str(tagged), "question")
    (item,) = (await api.http.get("/api/v1/runs?q=harbor&limit=2")).json()["items"][1:]
    assert (item["match"]["location"], item["match"]["excerpt"]) == ("tag", "harbor")


async def test_the_pages_of_a_search_have_each_run_once_while_new_runs_match_and_others_are_deleted(api: Api) -> None:
    for number in range(8):
        await ended(api, f"Why is sea {number} salt?")
    first = (await api.http.get("/api/v1/runs?q=salt&limit=3")).json()
    await ended(api, "Why is sea 8 salt?")
    deleted = first["items"][0]["id"]
    assert (await api.http.delete(f"/api/v1/runs/{deleted}")).status_code == 200
    rest = (await api.http.get("/api/v1/runs", params={"q": "salt", "limit": 10, "cursor": first["next"]})).json()
    assert [run["question"] for run in rest["items"]] == [f"Why is sea {number} salt?" for number in (4, 3, 2, 1, 0)]
    assert rest["next"] is None


async def test_pinned_runs_stand_first_and_no_page_has_a_run_twice(api: Api) -> None:
    runs = [await ended(api, f"Why is sea {number} salt?") for number in range(6)]
    for number in (0, 2, 3):
        await change(api, runs[number], pinned=True)
    first = (await api.http.get("/api/v1/runs?limit=2&pinned_first=2&minimap=true")).json()
    assert [run["question"][11] for run in first["pinned"]] == ["3", "2"]
    assert first["has_more_pinned"]
    assert all(run["minimap"] is not None for run in first["pinned"])
    assert [run["question"][11] for run in first["items"]] == ["5", "4"]
    rest = (await api.http.get(f"/api/v1/runs?limit=2&pinned_first=2&cursor={first['next']}")).json()
    assert ([run["question"][11] for run in rest["items"]], rest["pinned"], rest["next"]) == (["1"], [], None)
    assert (await api.http.get("/api/v1/runs")).json()["pinned"] == []


async def test_runs_are_listed_oldest_first_and_by_cost_and_duration(api: Api) -> None:
    for number, (usd, seconds) in enumerate(((2, 5), (0, 90), (7, 1), (2, 40))):
        run = await ended(api, f"Why is sea {number} salt?")
        async with api.database.transaction(api.tenant) as connection:
            update = "update run set cost_usd = %s, work_seconds = %s where id = %s"
            await connection.execute(update, (usd, seconds, run))
    await api.submit("Why is sea 9 salt?")
    orders = {order: await listed(api, f"order={order}") for order in ("oldest", "cost", "duration")}
    assert {order: "".join(question[11] for question in questions) for order, questions in orders.items()} == {
        "oldest": "01239",
        "cost": "2301",
        "duration": "1302",
    }


async def test_the_latest_run_stands_for_its_thread(api: Api) -> None:
    first = await ended(api, "Why is the sea salt?")
    thread = (await api.http.get(f"/api/v1/runs/{first}")).json()["thread_id"]
    later = await ended(api, "And the lakes?", thread_id=thread)
    await ended(api, "Why is the sky blue?")
    page = (await api.http.get("/api/v1/runs?latest_of_thread=true")).json()
    assert [(run["question"], run["thread_runs"]) for run in page["items"]] == [
        ("Why is the sky blue?", 1),
        ("And the lakes?", 2),
    ]
    await change(api, later, archived=True)
    assert await listed(api, "latest_of_thread=true") == ["Why is the sky blue?", "Why is the sea salt?"]


async def test_the_views_of_the_list_are_counted_for_their_tenant_only(api: Api) -> None:
    await ended(api, "Why is the sea salt?", RunStatus.FAILED)
    await change(api, await ended(api, "Why is the sky blue?"), pinned=True)
    await change(api, await ended(api, "Why is the sun hot?", RunStatus.FAILED), archived=True)
    await waiting(api, YEAR)
    await api.submit()
    counts = (await api.http.get("/api/v1/runs/counts")).json()
    assert counts == {"waiting_for_person": 1, "active": 2, "failed": 1, "pinned": 1, "archived": 1}
    assert set((await api.other.get("/api/v1/runs/counts")).json().values()) == {0}


async def test_several_runs_are_changed_by_one_request_which_says_for_each_what_became_of_it(api: Api) -> None:
    first, second = await ended(api, "Why is the sea salt?"), await ended(api, "Why is the sky blue?")
    unknown = uuid4()
    body = {
        "changes": [
            {"run_id": str(first), "tags": ["sea"], "archived": True},
            {"run_id": str(unknown), "archived": True},
            {"run_id": str(second), "pinned": True, "tags": [""], "title": "Sky"},
        ]
    }
    items = (await api.http.patch("/api/v1/runs", json=body)).json()["items"]
    assert [item["run_id"] for item in items] == [str(first), str(unknown), str(second)]
    assert (items[0]["run"]["tags"], items[0]["problem"]) == (["sea"], None)
    assert [item["problem"] and (item["problem"]["status"], item["problem"]["field"]) for item in items[1:]] == [
        (404, None),
        (422, "tags"),
    ]
    after = (await api.http.get(f"/api/v1/runs/{second}")).json()
    assert (after["given_title"], after["pinned_at"]) == ("", None)
    rejected = await api.http.patch("/api/v1/runs", json={"changes": [{"run_id": str(first)}] * 201})
    assert (rejected.status_code, rejected.json()["field"]) == (422, "changes")


class GoingAway(Database):
    """A database that does not answer from a transaction on."""

    remaining = 0

    @asynccontextmanager
    async def transaction(self, tenant_id: UUID, *, pipelined: bool = False) -> AsyncGenerator[Connection]:
        self.remaining -= 1
        if self.remaining < 0:
            raise Unavailable("on purpose")
        async with super().transaction(tenant_id, pipelined=pipelined) as connection:
            yield connection


async def test_a_bulk_change_says_which_runs_it_changed_before_the_database_went_away(api: Api, app_url: str) -> None:
    runs = [await ended(api, question) for question in ("Why is it salt?", "Why is it blue?", "Why is it deep?")]
    changes = [(run, LabelChange(archived=True)) for run in runs]
    publisher = api.app.state.dependencies.bus
    async with GoingAway(app_url, max_connections=1) as database:
        database.remaining = 1
        first, *others = await change_labels_of_runs(database, publisher, api.tenant, changes)
        assert isinstance(first, RunSummary)
        assert [type(one) for one in others] == [Unavailable, Unavailable]
        assert [describe_rejection(one).status for one in others if isinstance(one, Unavailable)] == [503, 503]
        database.remaining = 0
        with pytest.raises(Unavailable):
            await change_labels_of_runs(database, publisher, api.tenant, changes)
        database.remaining = 2  # the latest is deleted first
        results = await delete_runs(database, api.tenant, runs)
    assert {run: isinstance(results[run], DeletionResult) for run in runs} == dict(
        zip(runs, (False, False, True), strict=True)
    )
    archived = [(await api.http.get(f"/api/v1/runs/{run}")).json().get("archived_at") for run in runs]
    assert [at is not None for at in archived] == [True, False, False]


async def test_several_runs_are_deleted_by_one_request_the_later_ones_of_a_thread_first(api: Api) -> None:
    first = await ended(api, "Why is the sea salt?")
    thread = (await api.http.get(f"/api/v1/runs/{first}")).json()["thread_id"]
    later = await ended(api, "And the lakes?", thread_id=thread)
    active, alone = await api.submit("Why is the sky blue?"), await ended(api, "Why is the sun hot?")
    body = {"run_ids": [str(run) for run in (first, later, active, alone)]}
    items = (await api.http.post("/api/v1/runs/deletions", json=body)).json()["items"]
    assert [item["deletion"] is not None for item in items] == [True, True, False, True]
    assert "has not ended" in items[2]["problem"]["detail"]
    assert await listed(api) == ["Why is the sky blue?"]


async def test_an_earlier_run_takes_the_later_ones_of_its_thread_with_it_if_that_is_asked_for(api: Api) -> None:
    first = await ended(api, "Why is the sea salt?")
    thread = (await api.http.get(f"/api/v1/runs/{first}")).json()["thread_id"]
    later = await ended(api, "And the lakes?", thread_id=thread)
    (rejected,) = (await api.http.post("/api/v1/runs/deletions", json={"run_ids": [str(first)]})).json()["items"]
    assert rejected["problem"]["status"] == 409
    body = {"run_ids": [str(first)], "later_runs": True}
    (item,) = (await api.http.post("/api/v1/runs/deletions", json=body)).json()["items"]
    assert item["deletion"]["run_ids"] == [str(first), str(later)]
    assert await listed(api) == []


async def test_a_page_that_follows_a_run_learns_of_its_new_title_and_tags(api: Api) -> None:
    run = await api.submit()
    async with following(api.http, f"/api/v1/runs/{run}/events") as stream:
        await stream.until(lambda s: bool(s.named("run")))
        await change(api, run, title="Brine", tags=["sea"])
        await stream.until(lambda s: len(s.named("run")) > 1, 4)  # long before it would read the run again by itself
        assert [stream.named("run")[-1].data[name] for name in ("title", "tags")] == ["Brine", ["sea"]]


async def test_a_rollout_is_neither_organized_nor_deleted(api: Api) -> None:
    batch = {"graph": "quiet", "group_size": 1, "tasks": {"items": [{"question": "Why salt?", "answers": ["Rivers"]}]}}
    await api.http.post("/api/v1/rollout-batches", json=batch)
    (rollout,) = (await api.http.get("/api/v1/rollouts")).json()["items"]
    at = f"/api/v1/runs/{rollout['run_id']}"
    for response in (await api.http.patch(at, json={"pinned": True}), await api.http.delete(at)):
        assert response.status_code == 409
        assert "rollout" in response.json()["detail"]


async def test_a_controlled_run_is_returned_with_its_title_tags_and_pin(api: Api) -> None:
    run = await api.submit()
    await change(api, run, title="Mine", tags=["sea"], pinned=True)
    for verb in ("pause", "resume", "cancel"):
        sent = await api.http.post(f"/api/v1/runs/{run}/{verb}", json={"mode": "discard"} if verb == "cancel" else None)
        assert sent.status_code == 200, sent.text
        assert (sent.json()["title"], sent.json()["tags"]) == ("Mine", ["sea"]), verb
        assert sent.json()["pinned_at"] is not None


async def test_the_tags_of_all_runs_are_listed_once_in_pages_and_only_to_their_tenant(api: Api) -> None:
    for tags in (["sea", "Größe"], ["sea", "air"], []):
        await change(api, await api.submit(), tags=tags)
    first = (await api.http.get("/api/v1/tags?limit=2")).json()
    rest = (await api.http.get("/api/v1/tags", params={"limit": 2, "cursor": first["next"]})).json()
    assert sorted(first["items"] + rest["items"]) == ["Größe", "air", "sea"]
    assert (len(first["items"]), rest["next"]) == (2, None)
    assert (await api.other.get("/api/v1/tags")).json() == {"items": [], "next": None}


async def test_the_words_that_match_are_marked_in_the_excerpt(api: Api) -> None:
    await ended(api, "Do connected pools reuse a connection?")
    (item,) = (await api.http.get("/api/v1/runs?q=connecting pool")).json()["items"]
    assert marked(item) == ["connected", "pools", "connection"]


async def test_runs_are_found_by_a_source_that_their_report_cites(api: Api) -> None:
    source = await api.hands.document()
    await ended(api, "Why is the sea wet?")
    run = await api.submit("Why is the sea salt?")
    await api.hands.report(await api.hands.claim(run), source)
    assert await listed(api, f"cites={source}") == ["Why is the sea salt?"]
    assert await listed(api, f"cites={source}&q=sea") == ["Why is the sea salt?"]
    assert (await api.other.get(f"/api/v1/runs?cites={source}")).json()["items"] == []
