"""The `words` prompt format of the planner for small policies: choose the words of the question to search for.

A policy that is made from nothing cannot write a search. It can choose: the prompt has one character per word of the
question that says what kind of word it is, and the completion names the chosen words by their letters. So the format
fits any question in any library, and what it teaches is only which kinds of words make a search that finds.
"""

import random
import re
from string import ascii_letters

from offing.sdk import InvalidOutput, Message, PromptFormat, RuleContext
from offing_graphs.agentflow.prompts import find_plan_spans
from offing_graphs.agentflow.schemas import PlannerInput
from offing_graphs.extractive.word_forms import STOP_WORDS, WEAK_WORDS
from offing_graphs.shared.schemas import Plan

SEARCH_TOOL = "search_library"

MAX_WORDS = len(ascii_letters)
"""Maximum number of words of a question that can be chosen, each by one letter."""

MAX_RANDOM_WORDS = 2
"""Maximum number of words that the rule `random-words` chooses."""

_WORD = re.compile(r"\w[\w.\-]*\w|\w")


def list_words(question: str) -> tuple[str, ...]:
    """Return the words of a question in order, each once."""
    words = {word.casefold(): word for word in reversed(_WORD.findall(question))}
    return tuple(reversed(words.values()))[:MAX_WORDS]


def describe_word(word: str) -> str:
    """Return the kind of a word: 0 for one without a meaning, 1 for a weak one, 2 for a name or code, else 3."""
    if word.casefold() in STOP_WORDS:
        return "0"
    if word.casefold() in WEAK_WORDS:
        return "1"
    return "2" if not word.isalpha() or not word.islower() else "3"


def render_word_kinds(inputs: PlannerInput) -> tuple[Message, ...]:
    """Render each word of the question as its letter and its kind."""
    words = list_words(inputs.question)
    text = " ".join(letter + describe_word(word) for letter, word in zip(ascii_letters, words, strict=False))
    return (Message("user", (text,)),)


def parse_chosen_words(text: str, inputs: PlannerInput) -> Plan | InvalidOutput:
    """Parse the letters of the chosen words, in any order."""
    by_letter = dict(zip(ascii_letters, list_words(inputs.question), strict=False))
    letters = text.strip()
    if not letters or any(letter not in by_letter for letter in letters):
        return InvalidOutput("the completion is one or more letters of words of the question")
    return plan_search([word for letter, word in by_letter.items() if letter in letters])


def write_chosen_words(output: Plan, inputs: PlannerInput) -> str:
    """Write a search for words of the question as their letters. Raises ValueError for another plan."""
    query_words = str((output.args or {}).get("query", "")).split()
    by_word = {word: letter for letter, word in zip(ascii_letters, list_words(inputs.question), strict=False)}
    if output.tool != SEARCH_TOOL or not query_words or not all(word in by_word for word in query_words):
        raise ValueError("The plan is no search for words of the question; use another prompt format.")
    return "".join(by_word[word] for word in query_words)


def plan_search(words: list[str]) -> Plan:
    """Return the plan of a search for these words."""
    query = " ".join(words)
    return Plan(
        justification="", context=query, sub_goal=f"Search for {query}", tool=SEARCH_TOOL, args={"query": query}
    )


def choose_random_words(inputs: PlannerInput, context: RuleContext) -> Plan:
    """Search for one or two random words of the question. The choice is the same for the same run and turn."""
    draws, words = random.Random(f"{context.seed}:{context.turn}"), list_words(inputs.question)
    chosen = draws.sample(range(len(words)), min(len(words), draws.randint(1, MAX_RANDOM_WORDS)))
    return plan_search([words[number] for number in sorted(chosen)])


WORDS_FORMAT = PromptFormat(
    "words",
    render_word_kinds,
    parse_chosen_words,
    find_plan_spans,
    write_chosen_words,
    max_tokens=MAX_WORDS + 1,  # a token has at least one letter, and one more token ends the completion
)
RULES = {"random-words": choose_random_words}
"""Rules for the engine `rules`, which show the form of a completion and nothing about which words to choose."""
