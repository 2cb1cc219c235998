"""litellm's own warnings are not ours to fix; everything else stays an error."""

import asyncio
import gc
import warnings
from collections.abc import Generator
from pathlib import Path

import pytest

from offing.models import litellm_client

LITELLM_NOISE = (
    "ignore:Items? .* on TypedDict class.* using the `ReadOnly` qualifier:UserWarning",
    "ignore:Accessing the 'model_(computed_)?fields' attribute on the instance is deprecated:DeprecationWarning",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            for noise in LITELLM_NOISE:
                item.add_marker(pytest.mark.filterwarnings(noise))


@pytest.fixture(scope="session", autouse=True)
def litellm() -> None:
    """Imported before the first call, whose timeout it would use up on a busy machine."""
    asyncio.run(litellm_client.get_litellm())


@pytest.fixture(scope="module", autouse=True)
def closed_clients(litellm: None) -> Generator[None]:
    """litellm keeps clients until their loop is gone, and some are never closed: here, and not in a later test."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        asyncio.run(_close_clients())
        gc.collect()


async def _close_clients() -> None:
    await (await litellm_client.get_litellm()).close_litellm_async_clients()
