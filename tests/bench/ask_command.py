"""`offing ask` as a user runs it: with its own data directory and 250 documents, once cold and once warm."""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.bench.measurement import Aim, Measurement

ROOT = Path(__file__).parents[2]

DEMO = ROOT / ".demo" / "docs"

DOCUMENTS = 250


def documents_in(folder: Path) -> None:
    """Create this number of documents: those of the demo, and copies of them that differ in their first line."""
    if not DEMO.is_dir():
        subprocess.run([ROOT / "deploy" / "fetch-demo-docs"], check=True, stdout=subprocess.DEVNULL)
    originals = sorted(path for path in DEMO.rglob("*") if path.is_file() and path.suffix == ".md")
    for number in range(DOCUMENTS):
        copy, original = divmod(number, len(originals))
        text = originals[original].read_text()
        target = folder / f"copy{copy}" / originals[original].relative_to(DEMO)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(f"Copy {copy}\n\n{text}" if copy else text)


def time_ask(home: Path, folder: Path) -> float:
    """Return the wall seconds of the whole command, including the start and stop of servers and worker."""
    words = ["ask", "How does undici pool connections?", "--docs", str(folder), "--json"]
    began = time.perf_counter()
    environment = os.environ | {"OFFING_HOME": str(home)}
    command = [sys.executable, "-m", "offing.cli", *words]
    subprocess.run(command, env=environment, check=True, capture_output=True)
    return time.perf_counter() - began


def cold_and_warm() -> list[Measurement]:
    with tempfile.TemporaryDirectory() as home, tempfile.TemporaryDirectory() as folder:
        documents_in(Path(folder))
        cold = time_ask(Path(home), Path(folder))
        warm = time_ask(Path(home), Path(folder))
    what = f"`offing ask` over {DOCUMENTS} documents, including the start of servers and worker"
    return [
        Measurement(f"{what}, cold", (cold,), "s", aim=Aim("under 45 s", at_most=45)),
        Measurement(f"{what}, warm", (warm,), "s"),
    ]
