"""The context as a conversation: the only home of its prompt text, and of the rule that it only grows between edits.

A record is an assistant message, the action as it was written, and a user message, its observation. Words of people
stand behind the record after which they were first shown. A completion names its turn only within its own segment: in
later ones it is text that the agent finds in its context.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from offing.sdk import Message
from offing_graphs.memact.shapes import Act, AgentInput, Entry
from offing_graphs.parts.measuring import tokens_of
from offing_graphs.parts.prompting import DATA_RULE, compact_json, data, task, tool_cards

Said = Callable[[Act, AgentInput], str]

AGENT = (
    "You answer a question with tools, one action at a time. Each action and what came back of it is a record of this "
    "conversation, with an id such as r1. Answer when what you have is enough, or when more work cannot help. State "
    "nothing that is not in what you retrieved: every statement of fact cites at least one passage by its id and "
    "copies from it, letter by letter, the words that carry the statement. The copied words are checked against the "
    "stored text. A question whose answer is a single name, number or value is answered with that alone."
)
EDITING = (
    "This conversation may hold about {window} tokens; when it holds more, the work is lost. Keep it short: call prune "
    "with the ids of records that are of no more use, and with a note of what they told that you still need: the "
    "question's aim, facts with their passage ids and exact words, what has been tried, what is open. A note is a "
    "record, too, and can be removed by its id. write keeps a note and removes nothing."
)
SUMMING_UP = (
    "This conversation may hold about {window} tokens. When it is full you will be asked for a summary, and go on from "
    "the question and that summary alone."
)
SUMMARY = (
    "The conversation is full, and the last action with its result has been taken out of it. Do not act now. Write the "
    "summary that you will go on from: facts with their passage ids and exact words, what has been tried and with what "
    "result, what is open. Nothing else is kept."
)
ANSWER = "The work ends here. Do not call tools any more: answer now with what you have, and say what is missing."


def chat(given: AgentInput, said: Said, rules: Sequence[str] = ()) -> tuple[Message, ...]:
    """The whole conversation. `said`: an action as it is written in this form. `rules`: how the form is written."""
    messages = [Message("system", _system(given, rules)), Message("user", _question(given))]
    for n, entry in enumerate(given.records):
        seq = entry.seq if entry.fresh else 0
        messages.append(Message("assistant", (said(entry.act, given),), seq))
        messages.append(Message("user", (_observation(entry), *_wishes_after(n, given))))
    return (*messages[:-1], _with(messages[-1], _request(given)))


def as_json(act: Act, _: AgentInput) -> str:
    """An action as a model with tool calling writes it."""
    return compact_json(act.model_dump(mode="json", exclude={"written"}, exclude_defaults=True))


def render(given: AgentInput) -> tuple[Message, ...]:
    """The conversation for models that answer with JSON."""
    return chat(given, as_json)


def size(given: AgentInput) -> int:
    """Estimated tokens of the conversation. Forms for small planners are shorter."""
    return tokens_of(*(part for message in render(given) for part in message.parts))


def _system(given: AgentInput, rules: Sequence[str]) -> tuple[str, ...]:
    limit = (EDITING if given.edits else SUMMING_UP).format(window=given.window)
    return (AGENT, limit, DATA_RULE, *tool_cards(given.tools), *rules)


def _question(given: AgentInput) -> tuple[str, ...]:
    summed = f"Part {given.stage} of the work. Your summary of what was done before:\n{data(given.summary)}"
    case = given.model_copy(update={"wishes": ()})
    return (*task(case), *((summed,) if given.summary else ()), *_wishes_after(-1, given))


def _observation(entry: Entry) -> str:
    name = entry.found.tool if entry.found else entry.act.tool or "answer"
    outcome = "ok" if entry.ok else entry.found.status if entry.found else "failed"
    return f"{entry.id} {name}: {outcome}\n{entry.observation}"


def _wishes_after(nth: int, given: AgentInput) -> Iterable[str]:
    """What people wrote, behind the last record of before it was shown."""
    for wish, turn in zip(given.wishes, given.heard, strict=True):
        before = sum(entry.turn < turn for entry in given.records)
        if before == nth + 1:
            yield f"A person wrote during the run: {wish}"


def _request(given: AgentInput) -> tuple[str, ...]:
    asked: dict[str, Any] = {"summary": (SUMMARY,), "answer": (ANSWER,)}
    return asked.get(given.ask, ())


def _with(message: Message, parts: tuple[str, ...]) -> Message:
    return Message(message.role, (*message.parts, *parts), message.turn)
