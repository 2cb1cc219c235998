"""How the roles' inputs read as prompts: the only home of prompt text and of its bounds.

A part that says the same as in the turn before is the same string, so that it is stored once. Text from documents and
tools stands between two lines that carry a hash of that text, which the text itself cannot contain.
"""

from collections.abc import Sequence

from offing.sdk import Message, shortened
from offing_graphs.agentflow.shapes import AnalystInput, ExecutorInput, PlannerInput, Verdict, VerifierInput
from offing_graphs.parts.prompting import analysed, compact_json, data, passage, passages, prompt_of, task, tool_cards
from offing_graphs.parts.shapes import Piece, Record, WriterInput

WHOLE = 8
"""Latest records shown whole; older ones take a line each."""
LINES = 40
"""Older records that get a line."""
MEMORY_LIMIT = 12_000
"""Code points of all records together."""
VERIFIER_EVIDENCE = 16_000
WRITER_EVIDENCE = 32_000
"""Code points of passages in one prompt."""

ANALYST = (
    "You prepare research on a question that will be answered from a library of documents. Say what is asked, split it "
    "into parts that can be looked up one by one, and name what helps. Do not answer the question yet."
)
PLANNER = (
    "You plan research one step at a time. Choose the single next step that brings the answer closest: one sub-goal "
    "and one tool. Build on the memory of earlier steps; do not repeat a step that has been taken, and after a search "
    "that found little, use other words. Mind how many steps remain, and follow what people wrote during the run."
)
EXECUTOR = (
    "You turn a planned step into one call of the planned tool. Give arguments that its JSON schema accepts, and no "
    "others. Take ids and positions from the plan, the memory or the passages as they stand there."
)
VERIFIER = (
    "You judge whether what has been retrieved is enough to answer the question. Say for every sub-question whether "
    "passages answer it and which. Set stop to true only if the question is answered, or if further steps cannot help; "
    "otherwise set it to false."
)
WRITER = (
    "You write a report that answers a question from retrieved passages and from nothing else. Every statement of fact "
    "cites at least one passage by its id and copies from it, letter by letter, the words that carry the statement; "
    "the copied words are checked against the stored text. Say what could not be established. Lead with a short answer "
    "and put the ids of the passages it stands on behind it, like [E3]."
)


def analyst(given: AnalystInput) -> tuple[Message, ...]:
    return prompt_of(ANALYST, (*task(given), *tool_cards(given.tools)))


def planner(given: PlannerInput) -> tuple[Message, ...]:
    parts = (*task(given), analysed(given.analysis), *tool_cards(given.tools), *_memory(given.memory))
    return prompt_of(PLANNER, (*parts, *_verdict(given.verdict), _remaining(given.turn, given.remaining)))


def executor(given: ExecutorInput) -> tuple[Message, ...]:
    plan = "The planned step:\n" + compact_json(given.plan.model_dump(mode="json"))
    named = tuple(p for p in given.evidence if p.id in _ids_in(given.plan.context, given.evidence))
    shown = (*(passage(p) for p in named), *_memory(given.memory))
    return prompt_of(EXECUTOR, (f"The question:\n{given.question}", *tool_cards((given.tool,)), *shown, plan))


def verifier(given: VerifierInput) -> tuple[Message, ...]:
    shown = passages(given.question, given.analysis, given.evidence, VERIFIER_EVIDENCE)
    parts = (*task(given), analysed(given.analysis), *_memory(given.memory), *shown)
    return prompt_of(VERIFIER, (*parts, f"Steps that remain after this one: {given.remaining}."))


def writer(given: WriterInput) -> tuple[Message, ...]:
    shown = passages(given.question, given.analysis, given.evidence, WRITER_EVIDENCE)
    ended = f"Collecting has ended; the reason is: {given.reason.replace('_', ' ')}."
    return prompt_of(WRITER, (*task(given), analysed(given.analysis), *_memory(given.memory), *shown, ended))


def _memory(memory: Sequence[Record]) -> tuple[str, ...]:
    """Latest records whole, older ones in a line, within the limit; what is left out is counted."""
    shown: list[str] = []
    used = 0
    for age, record in enumerate(reversed(memory)):
        part = _whole(record) if age < WHOLE else _line(record)
        if age >= WHOLE + LINES or used + len(part) > MEMORY_LIMIT:
            break
        shown.append(part)
        used += len(part)
    left_out = len(memory) - len(shown)
    head = (f"{left_out} earlier steps are not shown.",) if left_out else ()
    return (*head, *reversed(shown))


def _whole(record: Record) -> str:
    call = f"{record.tool} {compact_json(record.args)}"
    after = f"\nVerifier before it: {record.verdict_before}" if record.verdict_before else ""
    return (
        f"Step {record.turn}: {record.sub_goal}{after}\nCall: {shortened(call, 800)}\n"
        f"Outcome: {record.status}\n{data(record.finding)}"
    )


def _line(record: Record) -> str:
    return f"Step {record.turn}: {shortened(record.sub_goal, 120)} ({record.tool}, {record.status}, {record.fresh} new)"


def _verdict(verdict: Verdict | None) -> tuple[str, ...]:
    return () if verdict is None else ("The verifier says: " + compact_json(verdict.model_dump(mode="json")),)


def _remaining(turn: int, remaining: int) -> str:
    return f"This is step {turn}. Steps that remain, this one included: {remaining}."


def _ids_in(text: str, evidence: Sequence[Piece]) -> frozenset[str]:
    words = {word.strip(".,;:()[]") for word in text.split()}
    return frozenset(p.id for p in evidence if p.id in words)
