"""What `offing trajectories show` prints."""

import io

from rich.console import Console

from offing.cli.token_view import print_trajectory, render_trajectory
from offing.services.token_texts import TokenTexts
from offing.services.trajectories import ReadableTrajectory
from tests.unit.exports.builders import a_dialogue, a_role_call


def printed(result: ReadableTrajectory, turn: int | None = None, *, colour: bool = False) -> str:
    out = io.StringIO()
    console = Console(file=out, width=200, highlight=False, soft_wrap=True, force_terminal=colour)
    print_trajectory(console, result, turn)
    return out.getvalue()


def test_tokens_stand_beside_mask_and_log_probability() -> None:
    rendered = printed(ReadableTrajectory(a_dialogue(), {3: TokenTexts(("x", "y"), ("look", " up"))}, None))
    rows = [line.split() for line in rendered.splitlines()]
    assert ["0", "3", "look", "1", "-0.50000", "0.5000", "action"] in rows
    assert ["1", "4", "up", "1", "-0.25000", "0.5000"] in rows
    assert "segment 0 · planner · root" in rendered
    assert "judge of turn 5: none no answer" in rendered


def test_one_turn_alone_can_be_shown() -> None:
    rendered = printed(ReadableTrajectory(a_dialogue(), {}, None), turn=1)
    assert "step 3" in rendered
    assert "step 5" not in rendered


def test_spans_are_colored_and_a_terminal_is_not_steered() -> None:
    role_call = a_role_call(3, "go\x1b[2Jaway")
    rendered = printed(ReadableTrajectory(a_dialogue(role_calls=(role_call,)), {}, None), colour=True)
    assert "\x1b[36mgo" in rendered
    assert "\x1b[2J" not in rendered


def test_a_quarantined_turn_says_so() -> None:
    rendered = printed(
        ReadableTrajectory(
            a_dialogue(role_calls=(a_role_call(3, "text", quarantine="other log-probabilities"),)), {}, None
        )
    )
    assert "IN QUARANTINE: other log-probabilities" in rendered


def test_the_document_has_lists_for_tokens() -> None:
    document = render_trajectory(ReadableTrajectory(a_dialogue(), {}, None))
    assert document["role_calls"][0]["tokens"]["completion_ids"] == [3, 4]
    assert document["role_calls"][2]["tokens"] is None
