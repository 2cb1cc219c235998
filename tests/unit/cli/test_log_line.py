"""Log lines at a terminal."""

from offing.cli.log_line import render_log_line


def test_a_line_of_ours_reads_as_words_with_its_fields() -> None:
    line = '{"event": "fenced", "run": "r1", "fence": 3, "level": "warning", "logger": "x", "timestamp": "t"}'
    assert render_log_line(line) == "warning: fenced  run=r1 fence=3"


def test_a_traceback_follows_its_line() -> None:
    assert (
        render_log_line('{"event": "failed", "level": "error", "exception": "Traceback"}') == "error: failed\nTraceback"
    )


def test_what_is_not_ours_stays_as_it_is() -> None:
    assert [render_log_line(line) for line in ("plain", '{"a": 1}', "[1]", "")] == ["plain", '{"a": 1}', "[1]", ""]
