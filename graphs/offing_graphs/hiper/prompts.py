"""How a turn reads as a prompt: the only home of prompt text and of its bounds.

The agent sees the task, where it stands, its last two turns whole, what can be cited and the subgoal in force. Earlier
turns are not shown, but for values that no passage holds.
"""

from collections.abc import Sequence

from offing.sdk import Message, shortened
from offing_graphs.extractive.quotes import most_relevant
from offing_graphs.hiper.shapes import ANSWER, GIVE_UP, AgentInput, TurnRecord
from offing_graphs.parts.prompting import compact_json, data, passage, prompt_of, task, tool_cards
from offing_graphs.parts.shapes import Piece

WHOLE = 2
"""Latest turns whose action and observation are shown."""
VALUES = 40
"""Earlier results that are no passages, one a line."""
EVIDENCE = 16_000
"""Code points of passages."""

AGENT = (
    "You answer a question from a library, one action a turn, and keep a subgoal that guides several turns. Each turn, "
    "decide first whether the current subgoal still serves: KEEP it and copy it letter by letter, or SWITCH when it is "
    "reached or leads nowhere, and write a new one in a few words. Then take one action that serves it: a tool call, "
    f"or `{ANSWER}` with the report once the passages and results suffice, or `{GIVE_UP}` with a report that says what "
    "is missing when nothing more can help. Do not repeat an action that has been taken. In a report, every statement "
    "of fact cites a passage by its id and copies from it, letter by letter, the words that carry the statement; the "
    "copied words are checked. Lead with a short answer."
)


def agent(given: AgentInput) -> tuple[Message, ...]:
    shown = (*map(passage, _citable(given)), *_values(given.memory[:-WHOLE]), *map(_pair, given.memory[-WHOLE:]))
    return prompt_of(AGENT, (*task(given), *tool_cards(given.tools), *shown, _standing(given)))


def _citable(given: AgentInput) -> Sequence[Piece]:
    return most_relevant((given.question, *filter(None, (given.subgoal,))), given.evidence, EVIDENCE)


def _values(older: Sequence[TurnRecord]) -> tuple[str, ...]:
    lines = [f"Turn {r.turn}, {shortened(_call(r), 160)}: {shortened(r.value)}" for r in older if r.value]
    return ("Results of earlier turns:\n" + data("\n".join(lines[-VALUES:])),) if lines else ()


def _pair(record: TurnRecord) -> str:
    return (
        f"Turn {record.turn}. Action: {shortened(_call(record), 800)}\nOutcome: {record.status}\n{data(record.finding)}"
    )


def _call(record: TurnRecord) -> str:
    return f"{record.tool} {compact_json(record.args)}"


def _standing(given: AgentInput) -> str:
    current = f"The current subgoal: {given.subgoal or 'None'}"
    if given.reason:
        ended = f"The work must end now; the reason is: {given.reason.replace('_', ' ')}."
        return f"{ended} The action must be `{ANSWER}` or `{GIVE_UP}`.\n{current}"
    return f"This is turn {given.turn} of {given.turn + given.remaining - 1}.\n{current}"
