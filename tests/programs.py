"""What a test does when a program that it needs is not installed."""

import os
from typing import NoReturn

import pytest


def unavailable(what: str, fix: str = "") -> NoReturn:
    """Fail the test, or skip it with the same sentence if the environment variable `SKIP_MISSING` is set.

    `make test` installs the programs (tests/install-programs), so that no test is left out unnoticed.
    """
    reason = f"{what}. {fix or 'tests/install-programs names what to install.'}"
    if os.environ.get("SKIP_MISSING"):
        pytest.skip(reason)
    pytest.fail(f"{reason} SKIP_MISSING=1 skips the tests that need it.", pytrace=False)
