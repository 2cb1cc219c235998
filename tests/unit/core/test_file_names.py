"""Names of files that are made of titles."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offing.core.file_names import MAX_NAME_BYTES, MAX_NAME_CHARS, make_file_stem


@pytest.mark.parametrize(
    ("title", "stem"),
    [
        ("Pumps: a survey", "Pumps a survey"),
        ("中国水泵产业研究报告", "中国水泵产业研究报告"),
        ("../../etc/passwd", "etc passwd"),
        ("a\r\nX-Header: b", "a X-Header b"),
        ('x"; filename="evil.exe', "x ; filename= evil.exe"),
        ("\u202etxt.exe\u202c", "txt.exe"),
        ("CON", "report"),
        ("nul.txt", "report"),
        ("...", "report"),
        ("", "report"),
        ("\x00\x07", "report"),
    ],
)
def test_a_name_has_nothing_that_a_file_system_or_a_header_acts_on(title: str, stem: str) -> None:
    assert make_file_stem(title, "report") == stem


@given(st.text())
def test_any_title_gives_a_short_name_that_can_be_encoded(title: str) -> None:
    stem = make_file_stem(title, "report")
    assert 0 < len(stem) <= MAX_NAME_CHARS
    assert len(stem.encode()) <= MAX_NAME_BYTES
    assert not set('<>:"/\\|?*\n\r\t') & set(stem)
