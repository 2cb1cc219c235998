"""In a real browser: sign in by link, ask, see the report, open a citation; the state of each graph; training."""

import asyncio
import base64
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from tests.api.openapi_contract import Contract, Exchange
from tests.e2e.conftest import PATIENCE, Finished, Offing, running_stack
from tests.e2e.training_job import database_of, under_way, until_told
from tests.model_provider.policy_server import Policies, says
from tests.model_provider.server import WireServer
from tests.programs import unavailable

pytestmark = pytest.mark.timeout(3 * PATIENCE)

ROOT = Path(__file__).parents[2]

CHROMIUM = Path(os.environ.get("OFFING_CHROMIUM", "/usr/bin/chromium"))


def browser_is_here() -> None:
    if not CHROMIUM.exists():
        unavailable(f"{CHROMIUM} is not installed", "Install Debian's chromium, or set OFFING_CHROMIUM.")
    if not (ROOT / "frontend/dist/index.html").exists():
        unavailable("The built page is not there", "Run `make setup`, which builds it.")


def drive(started: Finished, script: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    """Sign in with the link that `offing up` or `offing login` printed, and run a script of frontend/e2e."""
    link = re.search(r"http://\S+/login\?token=\S+", started.out + started.err)
    assert link, started.err
    environment = os.environ | {
        "OFFING_URL": link.group(0).split("/login")[0],
        "OFFING_LOGIN": link.group(0),
        "OFFING_CHROMIUM": str(CHROMIUM),
        **variables,
    }
    command = ["node", str(ROOT / "frontend/e2e" / script)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False)


QUESTION = "Who built the third Eddystone tower?"

GRAPHS = ("agentflow", "iterresearch", "memact", "hiper")

ANSWER = """<nothing_found>
# Sharks
No document of these speaks of sharks.
</nothing_found>"""
"""What the stand-in for a policy writes: one of the agent's blocks, so that its ids have a part."""


@pytest.fixture(scope="module")
def up(offing: Offing, documents: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Offing]:
    """`offing …` in a home whose stack is up, with the documents, one answered question, and as many workers as
    without a variable. Tests share it, because starting it takes longer than most of them."""
    browser_is_here()
    with running_stack(offing, tmp_path_factory.mktemp("up"), OFFING_WORKER_PROCESSES="2") as run:
        ask(run, QUESTION, documents)
        yield run


def ask(offing: Offing, question: str, documents: Path, *words: str) -> str:
    """Ask about the documents. Returns the id of the run."""
    answer = offing("ask", question, "--docs", str(documents), "--json", *words)
    assert answer.code == 0, answer.err
    return answer.json["run_id"]


def test_a_person_asks_a_question_and_opens_a_citation(up: Offing, tmp_path: Path) -> None:
    shot = tmp_path / "run.png"
    done = drive(up("login"), "run-page.mjs", OFFING_QUESTION=QUESTION, OFFING_SHOT=str(shot))
    assert done.returncode == 0, done.stdout + done.stderr
    assert shot.stat().st_size > 10_000


def test_the_options_of_a_question_explain_themselves_and_several_questions_become_runs(up: Offing) -> None:
    done = drive(up("login"), "asking.mjs")
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_person_edits_a_report_compares_its_versions_exports_one_and_reads_a_long_one(
    up: Offing, documents: Path
) -> None:
    done = drive(up("login"), "report-editing.mjs", OFFING_RUN=ask(up, QUESTION, documents))
    assert done.returncode == 0, done.stdout + done.stderr


def test_an_edit_is_a_new_version_a_conclusion_says_what_it_follows_from_and_sources_open_their_documents(
    up: Offing, documents: Path
) -> None:
    question = "Who built the third Eddystone tower, who built the Bell Rock lighthouse?"
    done = drive(up("login"), "follow-up-edit.mjs", OFFING_RUN=ask(up, question, documents))
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_plan_review_is_completed_with_the_keyboard_alone(up: Offing, tmp_path: Path) -> None:
    variables = {"OFFING_QUESTION": QUESTION, "OFFING_SHOTS": str(tmp_path)}
    done = drive(up("login"), "input-requests.mjs", **variables)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_new_user_adds_a_folder_asks_and_follows_up_and_no_draft_is_lost(
    offing: Offing, documents: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser_is_here()
    folder = tmp_path / "lighthouses"
    shutil.copytree(documents, folder / "deep")
    shutil.copytree(documents, folder, dirs_exist_ok=True)
    (folder / "logo.png").write_bytes(b"not a document")
    monkeypatch.setenv("OFFING_PORT", "0")
    home = tmp_path / "home"
    try:
        started = offing("up", "--detach", home=home)
        done = drive(
            started, "newcomer.mjs", OFFING_FOLDER=str(folder), OFFING_EXCHANGES=str(tmp_path / "exchanges.json")
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert not (faults := faults_of(tmp_path / "exchanges.json")), "\n".join(faults)
    finally:
        offing("down", home=home)


def faults_of(stored: Path) -> list[str]:
    """What of a browser's exchanges the OpenAPI document does not know. Refusals may be part of what is tried."""
    contract = Contract(orjson.loads((ROOT / "frontend/openapi.json").read_bytes()))
    faults: list[str] = []
    for kept_one in orjson.loads(stored.read_bytes()):
        message = kept_one | {"body": base64.b64decode(kept_one["body"]), "answer": kept_one["answer"].encode()}
        exchange = Exchange(**message)
        # A browser does not tell the bytes of a form; `tests/api/test_web_ui_contract.py` sees them on the wire.
        if exchange.headers["content-type"].startswith("multipart/"):
            continue
        faults += [fault for fault in contract.faults(exchange) if "was refused with" not in fault]
    assert contract.used, "the browser told of no request"
    return faults


async def test_each_graph_shows_its_state_and_a_run_of_a_policy_its_tokens(
    offing: Offing, documents: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser_is_here()
    async with WireServer(Policies(says(ANSWER))) as engine:
        monkeypatch.setenv("OFFING_PORT", "0")
        monkeypatch.setenv("OFFING_ENGINE_URL", engine.url.removesuffix("/v1"))
        try:
            done = await asyncio.to_thread(open_state_tabs, offing, documents)
        finally:
            await asyncio.to_thread(offing, "down")
    assert done.returncode == 0, done.stdout + done.stderr


def open_state_tabs(offing: Offing, documents: Path) -> "subprocess.CompletedProcess[str]":
    """Run each graph over the documents, and one more that a policy answers, and open their tabs in a browser."""
    started = offing("up", "--detach")
    runs = {graph: ask(offing, QUESTION, documents, "--graph", graph) for graph in GRAPHS}
    policy = ("--graph", "memact", "--engine", "agent=policy+text:small@1")
    runs["tokens"] = ask(offing, "Which sharks swim at Bell Rock?", documents, *policy)
    return drive(started, "graph-state.mjs", OFFING_RUNS=json.dumps(runs))


async def test_a_training_job_is_watched_paused_and_cancelled_and_a_version_promoted(
    offing: Offing, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser_is_here()
    monkeypatch.setenv("OFFING_PORT", "0")
    try:
        started = await asyncio.to_thread(offing, "up", "--detach")
        async with database_of(home) as database:
            held = await under_way(database)
            task = asyncio.create_task(until_told(database, held))
            try:
                done = await asyncio.to_thread(drive, started, "training.mjs", OFFING_SHOTS=str(tmp_path))
                assert done.returncode == 0, done.stdout + done.stderr
                assert await task == "pause"
            finally:
                task.cancel()
    finally:
        await asyncio.to_thread(offing, "down")
