"""Stored runs of each state in a running stack, made by real runs of the extractive engine."""

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import httpx

from tests.e2e.conftest import BELL_ROCK, EDDYSTONE, FRESNEL
from tests.e2e.training_job import commit, database_of, under_way

QUESTION = "Who built the third Eddystone tower?"

RUNS: Mapping[str, Mapping[str, Any]] = {
    "answered": {"question": QUESTION},
    "iterresearch": {"question": "How long could the builders of Bell Rock work?", "graph": "iterresearch"},
    "memact": {"question": "When was the Fresnel lens first lit?", "graph": "memact"},
    "hiper": {"question": "Who directed the work at Bell Rock?", "graph": "hiper"},
    "waiting": {"question": "Which towers stood on reefs?", "graph": "research_team_reviewed"},
    "failed": {"question": "What did the archive of 1703 contain?", "graph": "failing"},
}
"""What is submitted, by the name under which the screens know the run."""

FAILING_GRAPH = Path(__file__).with_name("failing_graph.py")
"""Must be in `OFFING_GRAPH_PATHS` of the stack."""

DOCUMENTS = {"eddystone.md": EDDYSTONE, "bell-rock.txt": BELL_ROCK, "fresnel.html": FRESNEL}

PATIENCE = 240
"""Seconds until all runs are in their state. Only a fault takes longer."""


def fill(base: str, link: str) -> dict[str, str]:
    """Add documents and runs to a stack.

    Returns the id of each run, `source`, a document, and `shared`, the address of a shared report.

    `link` is a login link, whose session the requests use.
    """
    with httpx.Client(base_url=base, timeout=60, follow_redirects=False) as http:
        http.get(link)
        http.headers["X-CSRF-Token"] = _get(http, "/session")["csrf_token"]
        files = [("files", (name, text.encode())) for name, text in DOCUMENTS.items()]
        http.post("/api/v1/library", files=files, data={"collection": "lighthouses"}).raise_for_status()
        ids = {name: _submit(http, body) for name, body in RUNS.items()}
        _until(lambda: all(_settled(_get(http, f"/runs/{run}")) for run in ids.values()))
        followed = {
            "question": "Who lit the first tower?",
            "follow_up": {"run_id": ids["answered"], "kind": "research"},
        }
        ids["followed"] = _submit(http, followed)
        organized = {"title": "Towers on reefs", "tags": ["lighthouses", "review"], "pinned": True}
        http.patch(f"/api/v1/runs/{ids['iterresearch']}", json=organized).raise_for_status()
        _until(lambda: _settled(_get(http, f"/runs/{ids['followed']}")))
        ids["shared"] = _share(http, ids["answered"])
        ids["source"] = _get(http, "/library")["items"][0]["id"]
        return ids


async def add_training_job(home: Path) -> str:
    """Add a job with a few steps, and a candidate of its policy. Returns the id of the job."""
    async with database_of(home) as database:
        held = await under_way(database)
        for step in range(2, 40):
            await commit(database, held, step)
        return str(held.job_id)


def _get(http: httpx.Client, path: str) -> Any:
    response = http.get(f"/api/v1{path}")
    response.raise_for_status()
    return response.json()


def _submit(http: httpx.Client, body: Mapping[str, Any]) -> str:
    response = http.post("/api/v1/runs", json={"budget": {"max_turns": 4}, **body})
    response.raise_for_status()
    return response.json()["id"]


def _share(http: httpx.Client, run: str) -> str:
    response = http.post(f"/api/v1/runs/{run}/shares", json={"days": 30, "label": "For the museum"})
    response.raise_for_status()
    return response.json()["path"]


def _settled(run: Mapping[str, Any]) -> bool:
    return run["ended_at"] is not None or run["pending_input_requests"] > 0


def _until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end, "the runs did not reach their states"
        time.sleep(0.3)
