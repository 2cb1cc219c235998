"""In a real browser: the rows of a timeline with very different heights never overlap, and none is missing."""

import os
import subprocess
from typing import LiteralString
from uuid import NAMESPACE_OID, uuid5

import psycopg
import pytest

from tests.bench.servers import open_migrated_servers
from tests.bench.web_ui import serve_web_ui
from tests.bench.web_ui_data import add_run
from tests.e2e.conftest import PATIENCE
from tests.e2e.test_web_ui import CHROMIUM, ROOT, browser_is_here

pytestmark = pytest.mark.timeout(2 * PATIENCE)

RUN = uuid5(NAMESPACE_OID, "run with rows of all heights")
STEPS = 3_000

VARY_HEIGHTS: LiteralString = """
    update app.step
       set title = repeat('harbor ', 1 + (seq * 7919 %% 83)::int),
           detail = case when seq %% 3 = 0 then '' else repeat('silt and sand ', (seq * 104729 %% 61)::int) end,
           turn = seq / (1 + seq %% 5)
     where run_id = %(run)s and seq > 1 and seq < %(last)s
"""
"""Texts of one word to several lines, with and without the heading of a turn."""


def test_the_rows_of_a_timeline_never_overlap_and_none_is_missing() -> None:
    browser_is_here()
    with open_migrated_servers(durable=False) as (servers, home), serve_web_ui(servers, home) as (base, link):
        add_run(servers.owner_url, RUN, STEPS, ended=True)
        with psycopg.connect(servers.owner_url) as owner:
            owner.execute(VARY_HEIGHTS, {"run": RUN, "last": STEPS})
        variables = {"OFFING_URL": base, "OFFING_LOGIN": link, "OFFING_CHROMIUM": str(CHROMIUM), "OFFING_RUN": str(RUN)}
        command = ["node", str(ROOT / "frontend/e2e/row-positions.mjs")]
        done = subprocess.run(
            command, env=os.environ | variables, capture_output=True, text=True, timeout=PATIENCE, check=False
        )
    assert done.returncode == 0, done.stderr
