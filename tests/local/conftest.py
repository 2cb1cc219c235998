"""Homes for process tests."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from offing.local.data_directory import locate_data_directory
from tests.local.processes import NOBODY


@pytest.fixture
def home() -> Iterator[Path]:
    """An empty folder of this user's."""
    yield from _home()


@pytest.fixture
def home_of_nobody() -> Iterator[Path]:
    """An empty folder of an ordinary user's: `nobody`'s when the tests run as root."""
    for folder in _home():
        if os.geteuid() == 0:
            os.chown(folder, NOBODY, NOBODY)
        yield folder


def _home() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="offing-home-")).resolve()
    yield folder
    shutil.rmtree(folder, ignore_errors=True)
    run = locate_data_directory(folder).socket_dir
    for left in run.parent.glob(f"offing-*-{run.name.rpartition('-')[2]}"):
        shutil.rmtree(left, ignore_errors=True)
