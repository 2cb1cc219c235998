"""Question analysis without a model."""

from offing_graphs.extractive.arithmetic import find_expression
from offing_graphs.extractive.question import extract_key_phrases, split_question
from offing_graphs.extractive.tool_names import CALCULATE
from offing_graphs.shared.schemas import Analysis, TaskContext


def analyze_task(context: TaskContext, tools: tuple[str, ...] = ()) -> Analysis:
    """Analyze the task of a role. `tools` are the names of the tools that the run may use."""
    parts = split_question(context.question, tuple(e.question for e in context.earlier))
    phrases = extract_key_phrases(context.question)[:5]
    sums = bool(find_expression(context.question))
    useful_tools = {CALCULATE} if sums else set(tools) - {CALCULATE}
    about = f"It is about {', '.join(phrases)}." if phrases else "It names nothing that could be looked up."
    return Analysis(
        summary=f"A question in {len(parts)} parts. {about}" if len(parts) > 1 else about,
        sub_questions=parts,
        skills=("arithmetic",) if sums else ("finding passages", "quoting"),
        relevant_tools=tuple(t for t in tools if t in useful_tools),
        considerations="Taken apart by its words alone; what a sentence means was not considered.",
    )
