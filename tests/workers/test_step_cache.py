"""What a claim remembers of its run while branches of the graph read and append side by side."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import pytest

from offing.core.run import FencingToken
from offing.core.step import CallKey, Step, StepDraft, StepKind
from offing.core.usage import UsageDelta
from offing.kernel.step_cache import StepCache
from offing.storage import runs, steps
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Connection, Database
from offing_workers.fenced_checkpointer import FencedCheckpointer
from tests.storage.builders import TERM, claimed
from tests.workers.journal_builders import journal_over


class Slow(Database):
    """A reader's answer comes late: whatever is appended after it was read is not in it."""

    def __init__(self, url: str, *, maximum: int) -> None:
        super().__init__(url, max_connections=maximum)
        self.read, self.go_on = asyncio.Event(), asyncio.Event()

    @asynccontextmanager
    async def transaction(self, tenant_id: UUID, *, pipelined: bool = False) -> AsyncGenerator[Connection]:
        async with super().transaction(tenant_id, pipelined=pipelined) as connection:
            yield connection
        self.read.set()
        await self.go_on.wait()


@pytest.fixture
async def slow(app_url: str) -> AsyncIterator[Slow]:
    async with Slow(app_url, maximum=4) as slow:
        yield slow


@pytest.fixture
async def database(app_url: str) -> AsyncIterator[Database]:
    async with Database(app_url, max_connections=4) as database:
        yield database


def observation(nth: int) -> StepDraft:
    passage = {
        "text_id": str(UUID(int=nth)),
        "source": str(UUID(int=nth)),
        "start": 0,
        "end": 4,
        "text": f"text {nth}",
    }
    payload = {"tool": "search", "content": {"passages": [passage]}}
    return StepDraft(StepKind.TOOL_RESULT, f"observation {nth}", payload, call_key=CallKey(nth, "node", 0))


async def appended(database: Database, fence: FencingToken, draft: StepDraft) -> Step:
    async with database.transaction(LOCAL_TENANT) as connection:
        (step,) = await steps.append_steps(connection, fence, TERM, [draft], UsageDelta())
    return step


async def a_cache(slow: Slow, database: Database, fence: FencingToken, *, last_seq: int, fresh: bool) -> StepCache:
    async with database.transaction(LOCAL_TENANT) as connection:
        row = await runs.get_run(connection, fence.run_id)
    store = journal_over(slow, row, FencedCheckpointer(slow, fence), fence).store
    return StepCache(store, last_seq=last_seq, is_first_claim=fresh)


async def while_read(
    database: Database, slow: Slow, draft: StepDraft, read: Callable[[StepCache], Awaitable[Any]]
) -> tuple[StepCache, Any]:
    """What a branch reads while another appends. One observation is stored before."""
    fence = (await claimed(database, LOCAL_TENANT)).fence
    known = await appended(database, fence, observation(1))
    cache = await a_cache(slow, database, fence, last_seq=known.seq, fresh=False)
    reading = asyncio.ensure_future(read(cache))
    await slow.read.wait()
    cache.add_steps([await appended(database, fence, draft)])
    slow.go_on.set()
    return cache, await reading


async def test_what_is_retrieved_while_the_evidence_is_read_back_is_evidence(database: Database, slow: Slow) -> None:
    cache, book = await while_read(database, slow, observation(2), StepCache.get_evidence)
    assert [piece.text for piece in book.as_dict().values()] == ["text 1", "text 2"]
    assert await cache.get_evidence() is book


async def test_branches_that_ask_for_evidence_at_once_share_one_book(database: Database, slow: Slow) -> None:
    slow.go_on.set()
    fence = (await claimed(database, LOCAL_TENANT)).fence
    cache = await a_cache(slow, database, fence, last_seq=1, fresh=False)
    one, other = await asyncio.gather(cache.get_evidence(), cache.get_evidence())
    assert one is other


async def test_evidence_is_numbered_in_the_order_of_its_steps(database: Database, slow: Slow) -> None:
    slow.go_on.set()
    fence = (await claimed(database, LOCAL_TENANT)).fence
    cache = await a_cache(slow, database, fence, last_seq=1, fresh=True)
    for nth in (1, 2, 3):
        cache.add_steps([await appended(database, fence, observation(nth))])
    read_back = await a_cache(slow, database, fence, last_seq=4, fresh=False)
    assert (await cache.get_evidence()).as_dict() == (await read_back.get_evidence()).as_dict()
    assert list((await read_back.get_evidence()).as_dict()) == ["E1", "E2", "E3"]


async def test_a_step_that_is_noted_while_its_kind_is_read_is_among_the_last(database: Database, slow: Slow) -> None:
    async def last(cache: StepCache) -> tuple[Step, ...]:
        return await cache.last_steps(StepKind.TOOL_RESULT, 5)

    cache, read = await while_read(database, slow, observation(2), last)
    assert [step.title for step in read] == ["observation 1", "observation 2"]
    assert await last(cache) == read


async def test_a_message_that_comes_while_messages_are_read_is_not_missed(database: Database, slow: Slow) -> None:
    fence = (await claimed(database, LOCAL_TENANT)).fence
    cache = await a_cache(slow, database, fence, last_seq=1, fresh=False)
    reading = asyncio.ensure_future(cache.get_user_messages(0))
    await slow.read.wait()
    async with database.transaction(LOCAL_TENANT) as connection:
        message = StepDraft(StepKind.USER_MESSAGE, "look closer", {"text": "look closer"})
        await steps.append_external(connection, fence.run_id, [message])
    cache.add_steps([await appended(database, fence, observation(1))])  # behind the gap that the message left
    slow.go_on.set()
    assert [step.title for step in await reading] == ["look closer"]
