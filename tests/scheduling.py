"""Which tests share a process when several processes run side by side, and which of them begin first."""

from collections import defaultdict
from collections.abc import Iterator

import pytest
from xdist.scheduler import LoadScopeScheduling

TOGETHER = ("chaos/test_loop", "chaos", "engine")
"""Beginnings of paths below `tests` whose tests share a process, because they share what takes long to set up.
Elsewhere, a file's tests do."""

SLOWEST_FIRST = (
    "chaos/test_loop",
    "e2e/test_web_ui",
    "chaos",
    "tutorials",
    "e2e/test_evaluation",
    "workers/test_every_prompt_format",
    "workers/test_loop",
    "trainer/test_job_killed",
    "e2e/test_providers",
    "e2e/test_command_line",
    "e2e",
    "trainer/test_learner_process_group",
    "local",
    "workers/test_every_transaction",
    "workers/test_recorded_logprobs",
    "peers",
    "traces",
    "api/test_hostile_screens",
    "api/test_fuzz",
    "engine",
    "workers",
    "trainer",
    "api",
    "protocols",
    "graphs",
    "models",
    "storage",
)
"""Beginnings of paths below `tests`, slowest first. A test begins in the order of the longest beginning that fits it,
so that no process has to wait for another at the end. `make test` prints how long each group took."""


def find_group(nodeid: str) -> str:
    """Return the group of a test: all tests of a group run in one process, in their order."""
    path = _locate(nodeid)
    fitting = [beginning for beginning in TOGETHER if path.startswith(beginning)]
    return max(fitting, key=len) if fitting else path


def find_turn(nodeid: str) -> int:
    """Return a number that is smaller for tests that begin earlier."""
    path = _locate(nodeid)
    fitting = [n for n, beginning in enumerate(SLOWEST_FIRST) if path.startswith(beginning)]
    return max(fitting, key=lambda n: len(SLOWEST_FIRST[n])) if fitting else len(SLOWEST_FIRST)


def _locate(nodeid: str) -> str:
    return nodeid.partition("::")[0].removeprefix("tests/")


class Grouped(LoadScopeScheduling):
    """Gives processes whole groups of tests."""

    def _split_scope(self, nodeid: str) -> str:
        return find_group(nodeid)


class GroupTimes:
    """Adds up how long each group took, and lists the slowest groups at the end."""

    def __init__(self, max_groups: int = 30) -> None:
        self._seconds = defaultdict[str, float](float)
        self._max_groups = max_groups

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.add(report.nodeid, report.duration)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        terminalreporter.section("slowest groups of tests that share a process")
        for line in self.lines():
            terminalreporter.write_line(line)

    def add(self, nodeid: str, seconds: float) -> None:
        self._seconds[find_group(nodeid)] += seconds

    def lines(self) -> Iterator[str]:
        for group, seconds in sorted(self._seconds.items(), key=lambda item: -item[1])[: self._max_groups]:
            yield f"{seconds:8.1f}s {group}"
