"""Each tutorial is followed to the letter by somebody who has nothing but the installed command and an empty folder."""

import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.tutorials.tutorial_reader import Follower

pytestmark = pytest.mark.timeout(900)
"""They start what a reader starts, one after another."""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tutorials")


@pytest.fixture
def reader(home: Path, tmp_path: Path) -> Iterator[Follower]:
    follower = Follower(tmp_path, home)
    yield follower
    Follower.run(follower, "offing down")


@pytest.mark.slow
def test_the_first_tutorial_ends_with_a_new_graph_and_its_own_tool_on_the_run_page(reader: Follower) -> None:
    rendered: dict[str, str] = {}
    run = reader.run

    def watched(line: str) -> None:
        if line == "offing down":
            rendered.update(_on_the_page(reader))
        run(line)

    reader.run = watched  # the page is read while the stack is up
    reader.follow("first-graph.md")
    request = next(text for line, text in reader.output.items() if line.startswith("offing ask"))
    assert "1698, 1703, 1759" in request
    assert "Smeaton" in request
    assert "No problems found" in reader.output["offing graph check harbour --path ."]
    assert rendered == {"graph": "harbour", "status": "done", "own": "1698, 1703, 1759", "choice": "harbour"}


def _on_the_page(reader: Follower) -> dict[str, str]:
    """What the page shows of the latest run, as the API returns it to a browser that opened the login link."""
    match = re.search(r"http://\S+/login\?token=\S+", reader.output["offing up --detach --path ."])
    assert match is not None
    base = match[0].partition("/login")[0]
    with httpx.Client(base_url=base, follow_redirects=True, timeout=30) as page:
        page.get(match[0]).raise_for_status()
        (run,) = page.get("/api/v1/runs").json()["items"]
        steps = page.get(f"/api/v1/runs/{run['id']}/steps").json()["items"]
        graphs = [graph["name"] for graph in page.get("/api/v1/graphs").json()]
    own = [step["title"] for step in steps if step["label"] == "years"]
    return {"graph": run["graph"], "status": run["status"], "own": own[0], "choice": "harbour" * ("harbour" in graphs)}


@pytest.mark.slow
def test_the_other_tutorials_end_with_an_own_scorer_an_own_estimator_and_a_trained_policy(reader: Follower) -> None:
    pytest.importorskip("torch")
    reader.follow("own-scorer.md")
    reader.follow("own-estimator.md")
    reader.follow("graph-to-policy.md")
    scored = next(text for line, text in reader.output.items() if "--group-size 2" in line)
    assert "mean reward 1.000" in scored
    assert "sampled by" in reader.output["offing train job.toml --dry-run"]
    assert "seeker@2" in reader.output["offing train job.toml"]
    assert "seeker@2" in reader.output["offing policy list"]
