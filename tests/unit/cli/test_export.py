"""`offing export` writes reports as files."""

from pathlib import Path

import pytest

from offing.cli import show
from offing.cli.commands import app
from offing.core.errors import InvalidInput
from offing.services.report_export import MEDIA_TYPES, Format


@pytest.mark.parametrize("file_format", MEDIA_TYPES)
def test_the_command_line_takes_every_format_of_the_api(file_format: Format) -> None:
    _, bound, _ = app.parse_args(["export", "3f2a", "--format", file_format], exit_on_error=False)
    assert bound.arguments["format"] == file_format


@pytest.mark.parametrize("file_format", ["docx", "pdf"])
def test_a_terminal_gets_no_binary_file(monkeypatch: pytest.MonkeyPatch, file_format: Format) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    with pytest.raises(InvalidInput, match=f"output: .*Name a file, such as --output report.{file_format}"):
        show.export_run("3f2a", file_format, None)


def test_a_binary_file_is_written_as_it_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def render(_: object) -> bytes:
        return b"%PDF-\xff\r\n"

    monkeypatch.setattr(show, "run_with_database", render)
    assert show.export_run("3f2a", "pdf", tmp_path / "report.pdf") == 0
    assert (tmp_path / "report.pdf").read_bytes() == b"%PDF-\xff\r\n"
