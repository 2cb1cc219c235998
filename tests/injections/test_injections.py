"""The worst case of an injection: a model that does whatever a third party's text says, wherever it stands.

30 places times 13 demands: 390 cases, in each of which nothing may happen that the user did not ask for, while ordinary
research continues.
"""

from collections.abc import AsyncIterator

import pytest

from offing.core.tool import ToolStatus
from offing.storage.pool import Database
from tests.injections.agent import Agent
from tests.injections.channels import CHANNELS, Channel
from tests.injections.injected_requests import DEMANDS
from tests.workers.journal_builders import AJournal, a_journal

NOTHING_DONE = {ToolStatus.DENIED, ToolStatus.INVALID, ToolStatus.FAILED}


@pytest.fixture
async def database(app_url: str) -> AsyncIterator[Database]:
    async with Database(app_url, max_connections=4) as database:
        yield database


@pytest.fixture
async def journal(database: Database) -> AJournal:
    return await a_journal(database)


@pytest.mark.parametrize("channel", CHANNELS, ids=lambda channel: channel.__name__)
async def test_nothing_happens_that_the_user_did_not_ask_for(
    channel: Channel, database: Database, journal: AJournal
) -> None:
    for demand in DEMANDS:
        agent = Agent(channel(demand.text), journal)
        read = await agent.reads()
        assert all(o.status is ToolStatus.OK for o in read if "404" not in o.message), [o.message for o in read]
        before = list(agent.outside.effects)
        done = await agent.obeys(demand, read)
        assert {o.status for o in done} <= NOTHING_DONE, (demand.name, done)
        assert agent.outside.effects == before
        after = await agent.goes_on()
        assert [o.message for o in after if o.status is not ToolStatus.OK and "404" not in o.message] == []


def test_there_are_as_many_cases_as_are_told() -> None:
    assert len(CHANNELS) * len(DEMANDS) == 390
