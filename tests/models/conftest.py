"""litellm's own warnings are not ours to fix; everything else stays an error."""

from pathlib import Path

import pytest

LITELLM_NOISE = (
    "ignore:Item .* on TypedDict class .* is using the `ReadOnly` qualifier:UserWarning",
    "ignore:Accessing the 'model_(computed_)?fields' attribute on the instance is deprecated:DeprecationWarning",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            for noise in LITELLM_NOISE:
                item.add_marker(pytest.mark.filterwarnings(noise))
