"""Patterns that search third-party text take linear time, also for a long run of one character."""

import re
import time

import pytest

from offing.core import citation, scoring
from offing.kernel import taint
from offing.library import passages

PATTERNS = (
    (citation._MARKER, " "),  # pyright: ignore[reportPrivateUsage]
    (scoring._MARKER, " "),  # pyright: ignore[reportPrivateUsage]
    (taint._EMAIL, "a"),  # pyright: ignore[reportPrivateUsage]
    (passages._LINK, "["),  # pyright: ignore[reportPrivateUsage]
    (passages._LINK, "[]("),  # pyright: ignore[reportPrivateUsage]
    (passages._MARKUP, "<"),  # pyright: ignore[reportPrivateUsage]
    (passages._HEADING, "# "),  # pyright: ignore[reportPrivateUsage]
)


@pytest.mark.parametrize(("pattern", "sign"), PATTERNS)
def test_a_long_run_of_one_sign_is_searched_once(pattern: re.Pattern[str], sign: str) -> None:
    def seconds(size: int) -> float:
        text = sign * size + "b"
        began = time.process_time()
        pattern.sub("", text)
        return time.process_time() - began

    # Quadratic work on the longer text would take a hundred million steps, which are seconds.
    ratios = [seconds(40_000) / max(seconds(10_000), 0.005) for _ in range(3)]
    assert min(ratios) < 8, ratios
