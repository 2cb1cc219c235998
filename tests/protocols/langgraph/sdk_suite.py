"""Run the integration tests of LangGraph's own Python SDK against `offing dev`.

`python -m tests.protocols.langgraph.sdk_suite CHECKOUT` takes a checkout of the repository langchain-ai/langgraph. The
suite and the graphs that it serves are copied from there to a temporary folder and not changed. The client is the
installed SDK. Some of the tests have the address localhost:2024 in their code, so that port must be free.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from xml.etree import ElementTree

START_SECONDS = 600.0
TEST_SECONDS = 300
STOP_SECONDS = 300
"""Limits that only a fault reaches, also on a busy machine."""

READY = "clients connect to http://127.0.0.1:2024"

REMOTE_VARIABLES = ("LANGGRAPH_INTEGRATION_URL", "LANGSMITH_API_KEY", "LANGGRAPH_API_KEY")


def main() -> int:
    reader = argparse.ArgumentParser(prog="python -m tests.protocols.langgraph.sdk_suite", description=__doc__)
    reader.add_argument("checkout", type=Path, help="a checkout of langchain-ai/langgraph")
    checkout: Path = reader.parse_args().checkout
    source = checkout / "libs/sdk-py"
    if not (source / "tests/integration").is_dir():
        reader.error(f"{source} has no tests/integration")
    with tempfile.TemporaryDirectory(prefix="offing-sdk-suite-") as temporary:
        folder = Path(temporary)
        shutil.copytree(source / "integration", folder / "project")
        shutil.copytree(source / "tests", folder / "suite/tests")
        shutil.copy(source / "pyproject.toml", folder / "suite")
        with serve(folder / "project", folder / "server.log"):
            cases = run_suite(folder / "suite")
    return report(cases, read_commit(checkout))


@contextmanager
def serve(project: Path, log: Path) -> Generator[None]:
    """Serve the project of the suite as a developer would."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("OFFING_")}
    command = [sys.executable, "-m", "offing.cli", "dev", "--no-browser", "--web-port", "0"]
    with log.open("wb") as output:
        server = subprocess.Popen(command, cwd=project, env=environment, stdout=output, stderr=output)
        try:
            wait_until_ready(server, log)
            yield
        finally:
            server.terminate()
            server.wait(STOP_SECONDS)


def wait_until_ready(server: "subprocess.Popen[bytes]", log: Path) -> None:
    give_up = time.monotonic() + START_SECONDS
    while READY not in log.read_text():
        if server.poll() is not None or time.monotonic() > give_up:
            raise SystemExit(f"`offing dev` did not become ready:\n{log.read_text()}")
        time.sleep(0.2)


def run_suite(suite: Path) -> list[ElementTree.Element]:
    """Return the test cases of the suite with their results."""
    results = suite / "results.xml"
    environment = {name: value for name, value in os.environ.items() if name not in REMOTE_VARIABLES}
    options = ["-m", "integration", "-q", "--timeout", str(TEST_SECONDS), "-p", "no:cacheprovider"]
    subprocess.run(
        [sys.executable, "-m", "pytest", "tests/integration", *options, f"--junitxml={results}"],
        cwd=suite,
        env=environment,
        check=False,
    )
    return list(ElementTree.parse(results).iter("testcase"))  # written by pytest just now


def report(cases: list[ElementTree.Element], commit: str) -> int:
    """Print the result, and return the exit code: 0 if every test has passed."""
    unsuccessful = [
        f"{kind}: {case.get('classname')}.{case.get('name')}"
        for case in cases
        for kind in ("failure", "error", "skipped")
        if case.find(kind) is not None
    ]
    print(
        f"{len(cases) - len(unsuccessful)} of {len(cases)} passed; suite commit {commit}, "
        f"langgraph-sdk {version('langgraph-sdk')}, langgraph {version('langgraph')}"
    )
    print("\n".join(unsuccessful))
    return 1 if unsuccessful or not cases else 0


def read_commit(checkout: Path) -> str:
    named = subprocess.run(["git", "-C", checkout, "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
    return named.stdout.strip() if named.returncode == 0 else "unknown, because the folder is no Git checkout"


if __name__ == "__main__":
    sys.exit(main())
