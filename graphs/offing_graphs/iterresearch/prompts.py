"""How a workspace reads as a prompt: the only home of its text and of its bounds.

The prompt is the whole context: one system message that never changes, and one user message built anew. The report is
shown whole, always; where room is short, what came back from the last call is cut, and the cut is said.
"""

from collections.abc import Sequence

from offing.sdk import Message, shortened
from offing_graphs.iterresearch.shapes import REPORT_TOKENS, Call, Result, Stage, Workspace
from offing_graphs.parts.measuring import tokens_of, within
from offing_graphs.parts.prompting import DATA_RULE, compact_json, data, prompt_of, task, tool_cards
from offing_graphs.parts.shapes import Piece

WORKSPACE_TOKENS = 40_960
"""Prompt and answer together, by estimate; the paper's."""
ANSWER_TOKENS = 8_192
"""Of these, for the answer."""
RESULT_TOKENS = 8_000
"""What came back from the last call, at most."""
LEAST_RESULT = 200
"""Of a result that hardly fits, this much is shown in any case."""
MARKS = 60
"""For the lines around what is shown, and for saying that it was cut."""
CALL = 2_000
"""Code points of the last call's arguments."""

RESEARCHER = (
    "You research a question in rounds. In each round you see the question, your report so far, your last tool call "
    "and what it brought back. You see nothing else of earlier rounds, and in the next round you will not see what you "
    "see now: only the report that you write is carried over. So rewrite it whole each round. Keep in it what has been "
    "found, with the ids of passages such as [E3] and, in quotation marks, the very words that matter; what has been "
    "tried in vain; what is still open; and what you mean to do next. Leave out what no longer helps. It may have "
    f"{REPORT_TOKENS:,} tokens at most; a much shorter one is better. A result that was cut can be read on with a "
    "tool. In the answer every statement of fact cites at least one passage by its id and copies from it, letter by "
    "letter, the words that carry it; the copied words are checked against the stored text. Say what could not be "
    "established."
)
STAGES = {
    Stage.FIRST: "This is the first round. There is no report yet: begin it, and make one tool call. Do not answer.",
    Stage.MIDDLE: "Either make one tool call, or, if the report holds what answers the question, answer it.",
    Stage.FINAL: "This is the last round: no tool can be called any more. Answer the question from what is known.",
}


def researcher(given: Workspace) -> tuple[Message, ...]:
    """The prompt of a round, a pure function of the workspace."""
    tools = () if given.stage is Stage.FINAL else tool_cards(given.tools)
    before = (*task(given), *tools, *_report(given.report), *_call(given.action))
    asked = STAGES[given.stage]
    spent = tokens_of(RESEARCHER, DATA_RULE, *before, asked) + ANSWER_TOKENS + MARKS
    room = max(LEAST_RESULT, min(RESULT_TOKENS, WORKSPACE_TOKENS - spent))
    last = (_result(given.result, room),) if given.action else ()
    return prompt_of(RESEARCHER, (*before, *last, asked))


def _report(report: str) -> tuple[str, ...]:
    """It is the model's own, and quotes strangers."""
    return (f"Your report so far:\n{data(report)}",) if report else ()


def _call(action: Call | None) -> tuple[str, ...]:
    if action is None:
        return ()
    return (f"Your last tool call: {action.tool} {shortened(compact_json(action.args), CALL)}",)


def _result(result: Result | None, room: int) -> str:
    """What came back, within `room` tokens."""
    if result is None:
        return "It was not made."
    if result.message:
        return f"It failed ({result.status}):\n{_cut(result.message, room)}"
    if result.pieces:
        return "It brought back:\n" + "\n".join(_passages(result.pieces, room))
    return "It brought back:\n" + _cut(result.value or "Nothing was found.", room)


def _passages(pieces: Sequence[Piece], room: int) -> list[str]:
    """Passages while they fit, the last one perhaps in part, and the ids of those that are left out."""
    shown: list[str] = []
    for number, piece in enumerate(pieces):
        head = _head(piece)
        left = room - tokens_of(head) - MARKS
        if left <= 0 and shown:
            ids = ", ".join(p.id for p in pieces[number:])
            return [*shown, f"(There was no room for {len(pieces) - number} more passages: {ids}.)"]
        shown.append(f"{head}\n{_cut(piece.text, left)}")
        room -= tokens_of(shown[-1])
    return shown


def _head(piece: Piece) -> str:
    place = f"{piece.title} \u203a {piece.heading}" if piece.heading else piece.title
    where = f"Passage {piece.id} (source {piece.source}, {piece.start} to {piece.end}), under:"
    return f"{where}\n{data(shortened(place))}\nIts text:"


def _cut(text: str, room: int) -> str:
    """Text as data, and outside of it how much of it is not there."""
    kept = within(text, room)
    left = len(text) - len(kept)
    note = f"\n(Cut here: the last {left:,} of {len(text):,} characters are not shown.)" if left else ""
    return data(kept) + note
