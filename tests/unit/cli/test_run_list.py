"""What the options of `offing runs` select."""

from datetime import UTC, datetime

import pytest

from offing.cli.options import RunListOptions
from offing.cli.run_list import build_filter
from offing.core.errors import InvalidInput
from offing.core.run import RunStatus
from offing.storage.run_filter import RunFilter


def test_without_options_all_runs_but_archived_ones_are_listed() -> None:
    assert build_filter(RunListOptions()) == RunFilter(archived=False)
    assert build_filter(RunListOptions(archived=True)).archived is True
    assert build_filter(RunListOptions(all=True)).archived is None


def test_each_option_is_a_filter() -> None:
    options = RunListOptions(
        status="failed", group="ended", waiting=True, graph="quiet", tag="sea", pinned=True,
        since="2026-11-01T09:30+00:00", until="2026-11-02T00:00Z",
    )  # fmt: skip
    assert build_filter(options) == RunFilter(
        status=RunStatus.FAILED,
        graph="quiet",
        status_group="ended",
        waiting_for_person=True,
        tag="sea",
        pinned=True,
        archived=False,
        created_from=datetime(2026, 11, 1, 9, 30, tzinfo=UTC),
        created_before=datetime(2026, 11, 2, tzinfo=UTC),
    )


def test_a_date_without_an_offset_is_local() -> None:
    since = build_filter(RunListOptions(since="2026-11-01")).created_from
    assert since is not None
    assert since.replace(tzinfo=None) == datetime(2026, 11, 1)  # noqa: DTZ001 - local
    assert since.utcoffset() is not None


@pytest.mark.parametrize(
    ("options", "field"),
    [
        (RunListOptions(since="yesterday"), "--since"),
        (RunListOptions(until="2026-13-01"), "--until"),
        (RunListOptions(limit=0), "--limit"),
        (RunListOptions(archived=True, all=True), "--all"),
    ],
)
def test_options_that_mean_nothing_are_rejected_by_name(options: RunListOptions, field: str) -> None:
    with pytest.raises(InvalidInput) as rejected:
        build_filter(options)
    assert rejected.value.field == field
