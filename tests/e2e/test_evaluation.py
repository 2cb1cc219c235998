"""`offing evaluate` as a person starts it: killed in the middle, started again, shown and exported."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.e2e.conftest import PATIENCE, Offing

pytestmark = pytest.mark.timeout(5 * PATIENCE)

QUESTIONS = 20

COMMAND = (
    *("evaluate", "world:train-1@50", "--max-questions", str(QUESTIONS), "--engine", "all=rules:world", "--json"),
    *("--config", "oracle=planner=rules:oracle", "--config", "random=planner=rules:random"),
)


def measurements(result: dict[str, Any]) -> list[Any]:
    """What was measured, without ids, times and run ids."""
    fields = ("number", "outcome", "has_abstained", "scores", "turns", "tokens")
    return [
        (question["question"], [[row[name] for name in fields] for row in question["results"]])
        for question in result["questions"]
    ]


def start_and_kill(home: Path) -> str:
    """Start the command, kill a worker and the command after the first answers, and return the experiment's id."""
    environment = os.environ | {"OFFING_HOME": str(home), "NO_COLOR": "1", "TERM": "dumb"}
    command = [sys.executable, "-m", "offing.cli", *COMMAND]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    experiment = ""
    for line in process.stderr:
        experiment = match[1] if (match := re.match(r"experiment (\S+);", line)) else experiment
        if re.search(r"oracle [1-9]\d* of 20", line):
            break
    worker = next(
        child for child in psutil.Process(process.pid).children(recursive=True) if "offing_workers" in child.cmdline()
    )
    worker.send_signal(signal.SIGKILL)
    process.kill()
    process.stderr.close()
    process.wait()
    return experiment


def test_a_killed_evaluation_continues_and_finds_the_same_as_one_that_was_not_interrupted(
    offing: Offing, tmp_path: Path
) -> None:
    home = tmp_path / "killed"
    experiment = start_and_kill(home)
    (before,) = offing("evaluate", "list", "--json", home=home).json
    assert (before["id"], before["completed_at"]) == (experiment, None)
    unfinished = offing("evaluate", "show", experiment, home=home)
    assert (unfinished.code, f"offing evaluate resume {experiment}" in unfinished.err) == (1, True)
    continued = offing(*COMMAND, home=home)
    assert continued.code == 0, continued.err
    assert continued.json["id"] == experiment
    batches = offing("rollouts", "list", "--json", home=home).json
    assert [batch["progress"]["rollouts"] for batch in batches] == [QUESTIONS, QUESTIONS]  # none was repeated
    undisturbed = offing(*COMMAND, home=tmp_path / "undisturbed")
    assert measurements(continued.json) == measurements(undisturbed.json)
    assert len(continued.json["questions"]) == QUESTIONS
    assert continued.json["summary"] | {"answers": []} == undisturbed.json["summary"] | {"answers": []}

    rendered = offing("evaluate", "show", experiment[-8:], home=home)
    assert "worse" in rendered.out
    assert max(map(len, rendered.out.splitlines())) <= 100
    assert offing("evaluate", "export", experiment, "--format", "csv", home=home).out.count("\n") == 2 * QUESTIONS + 1
    file = tmp_path / "table.md"
    assert offing("evaluate", "export", experiment, "--output", str(file), home=home).code == 0
    assert "| exact_match | random | 20 |" in file.read_text()


def test_documents_of_a_dataset_are_read_once_and_mistakes_name_the_option(offing: Offing, tmp_path: Path) -> None:
    towers = tmp_path / "towers"
    (towers / "documents").mkdir(parents=True)
    (towers / "documents" / "bell.md").write_text("# Bell Rock\n\nRobert Stevenson built Bell Rock in 1810.\n")
    question = {"question": "Who built Bell Rock?", "answers": ["Robert Stevenson"]}
    (towers / "questions.jsonl").write_text(json.dumps(question))
    first = offing("evaluate", str(towers))
    again = offing("evaluate", str(towers))
    assert (first.code, again.code) == (0, 0), first.err + again.err
    assert "1 added" in first.err
    assert "1 unchanged" in again.err
    assert "this experiment is complete" in again.err
    assert first.out == again.out
    wrong = offing("evaluate", str(towers), "--config", "alone", "--judge", "extractive")
    assert (wrong.code, "--config" in wrong.err) == (2, True)
    judge = offing("evaluate", str(towers), "--judge", "extractive")
    assert (judge.code, "judge" in judge.err) == (2, True)
