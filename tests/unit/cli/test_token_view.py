"""What `offing trajectories show` prints."""

import io

from rich.console import Console

from offing.cli.token_view import as_document, say
from offing.services.pieces import Pieces
from offing.services.trajectories import Trajectory
from tests.unit.exports.builders import a_dialogue, a_talk


def printed(found: Trajectory, turn: int | None = None, *, colour: bool = False) -> str:
    out = io.StringIO()
    console = Console(file=out, width=200, highlight=False, soft_wrap=True, force_terminal=colour)
    say(console, found, turn)
    return out.getvalue()


def test_tokens_stand_beside_mask_and_log_probability() -> None:
    shown = printed(Trajectory(a_dialogue(), {3: Pieces(("x", "y"), ("look", " up"))}, None))
    rows = [line.split() for line in shown.splitlines()]
    assert ["0", "3", "look", "1", "-0.50000", "0.5000", "action"] in rows
    assert ["1", "4", "up", "1", "-0.25000", "0.5000"] in rows
    assert "segment 0 · planner · root" in shown
    assert "judge of turn 5: none no answer" in shown


def test_one_turn_alone_can_be_shown() -> None:
    shown = printed(Trajectory(a_dialogue(), {}, None), turn=1)
    assert "step 3" in shown
    assert "step 5" not in shown


def test_spans_are_coloured_and_a_terminal_is_not_steered() -> None:
    talk = a_talk(3, "go\x1b[2Jaway")
    shown = printed(Trajectory(a_dialogue(turns=(talk,)), {}, None), colour=True)
    assert "\x1b[36mgo" in shown
    assert "\x1b[2J" not in shown


def test_a_quarantined_turn_says_so() -> None:
    shown = printed(Trajectory(a_dialogue(turns=(a_talk(3, "text", quarantine="other log-probabilities"),)), {}, None))
    assert "IN QUARANTINE: other log-probabilities" in shown


def test_the_document_has_lists_for_tokens() -> None:
    document = as_document(Trajectory(a_dialogue(), {}, None))
    assert document["turns"][0]["tokens"]["completion"] == [3, 4]
    assert document["turns"][2]["tokens"] is None
