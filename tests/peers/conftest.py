"""What a graph raised, in the log without the values of all variables, which takes seconds to draw."""

from collections.abc import Iterator

import pytest
import structlog


@pytest.fixture(autouse=True)
def _short_tracebacks() -> Iterator[None]:  # pyright: ignore[reportUnusedFunction]
    renderer = structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)
    structlog.configure(processors=[renderer])
    yield
    structlog.reset_defaults()
