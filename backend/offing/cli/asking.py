"""What a run asks, put to the person at the terminal, and `offing answer`.

The only home of how an answer is typed. Questions go to standard error; what a run asks is text from outside.
"""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from uuid import UUID

from offing.bus.hints import BusHints
from offing.cli.hooks import migrate
from offing.cli.show import find_run
from offing.cli.terminal import Progress
from offing.core.decisions import describe_choices
from offing.core.errors import Conflict, InvalidInput
from offing.core.question import Answer, Asking, Question, QuestionKind, Verdict, check_answer
from offing.core.response_form import ResponseForm, ResponseShape, ToolReview
from offing.local.background import status
from offing.local.servers import local_servers
from offing.services import questions
from offing.settings import load_settings
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database

Read = Callable[[], Awaitable[str]]
"""The next line that a person types, its end left out. Raises EOFError when there is none."""

Say = Callable[[str], None]

BY = "terminal"
"""How answers that are typed here name where they came from."""

WORDS = {"y": True, "yes": True, "n": False, "no": False}


async def typed() -> str:
    """A line from standard input. Waits beside everything else, so that Ctrl-C is heard."""
    loop = asyncio.get_running_loop()
    ready = loop.create_future()
    loop.add_reader(sys.stdin.fileno(), lambda: ready.done() or ready.set_result(None))
    try:
        await ready
    finally:
        loop.remove_reader(sys.stdin.fileno())
    if not (line := sys.stdin.readline()):
        raise EOFError
    return line.rstrip("\n")


async def asked_for(asking: Asking, read: Read, say: Say) -> Answer:
    """Show a question and read until an answer fits. Raises EOFError."""
    say(asking.prompt)
    if asking.form is not None:
        _show_form(asking.form, say)
    if asking.detail and _shows_detail(asking.form):
        say(asking.detail)
    for number, line in enumerate(asking.steps or asking.choices, 1):
        say(f"  {number}. {line}")
    while True:
        say(_how(asking))
        try:
            return check_answer(asking, await _read(asking, read, say))
        except InvalidInput as error:
            say(str(error))


async def _read(asking: Asking, read: Read, say: Say) -> Answer:
    line = (await read()).strip()
    if asking.form is not None and line == "each" and len(asking.form.reviews) > 1:
        return Answer(text=await _read_each(asking.form.reviews, read, say))
    match asking.kind:
        case QuestionKind.ASK | QuestionKind.INTERRUPT:
            return Answer(text=_chosen(asking.choices, line))
        case QuestionKind.APPROVE | QuestionKind.TOOL:
            return _decided(line)
        case QuestionKind.REVIEW if line == "e":
            say("The plan, one step a line; an empty line ends it.")
            return Answer(verdict=Verdict.EDITED, steps=await _lines(read))
        case QuestionKind.REVIEW:
            return Answer(verdict=Verdict.COMMENTED, comment=line) if line else Answer()


def _shows_detail(form: ResponseForm | None) -> bool:
    """The detail of an interrupt is its whole value, which a form with all arguments repeats."""
    return form is None or not form.reviews or any(review.args is None for review in form.reviews)


def _show_form(form: ResponseForm, say: Say) -> None:
    for number, review in enumerate(form.reviews, 1):
        args = (
            "(too long to be shown)" if review.args is None else json.dumps(review.args, indent=2, ensure_ascii=False)
        )
        say("\n".join(filter(None, (f"{number}. {review.name}", review.description, args))))
        say(f"   {describe_choices(review)}")
    if form.shape is ResponseShape.VALUE:
        say(json.dumps(form.schema, indent=2, ensure_ascii=False))


async def _read_each(reviews: Sequence[ToolReview], read: Read, say: Say) -> str:
    """One decision for each tool call, a line each."""
    lines: list[str] = []
    for number, review in enumerate(reviews, 1):
        say(f"{number}. {review.name}: {describe_choices(review)}")
        lines.append((await read()).strip())
    return "\n".join(lines)


def _how_to_respond(form: ResponseForm) -> str:
    match form.reviews:
        case ():
            return "Type JSON that fits the schema."
        case (_,):
            return "Type one of the decisions."
        case _:
            return "Type one decision for all of them, or `each` to decide one by one."


def _how(asking: Asking) -> str:
    if asking.form is not None:
        return _how_to_respond(asking.form)
    match asking.kind:
        case QuestionKind.ASK if asking.choices:
            return "Type a number or the choice itself."
        case QuestionKind.ASK:
            return "Type your answer."
        case QuestionKind.APPROVE | QuestionKind.TOOL:
            return "y or n, and a word to the run behind it if you like."
        case QuestionKind.REVIEW:
            return "Enter follows the plan, e rewrites it, anything else asks for another one with these words in mind."
        case QuestionKind.INTERRUPT:
            return "Type what the run should go on with; JSON is read as JSON."


def _chosen(choices: tuple[str, ...], line: str) -> str:
    """The choice that a number stands for, or the line itself."""
    if line.isascii() and line.isdigit() and line not in choices and 1 <= int(line) <= len(choices):
        return choices[int(line) - 1]
    return line


def _decided(line: str) -> Answer:
    word, _, comment = line.partition(" ")
    decided = WORDS.get(word.lower().rstrip(",.:;"))
    if decided is None:
        raise InvalidInput("answer", "is neither y nor n", "Begin with one of them.")
    return Answer(approved=decided, comment=comment.strip())


async def _lines(read: Read) -> tuple[str, ...]:
    lines: list[str] = []
    with suppress(EOFError):
        while line := (await read()).strip():
            lines.append(line)
    return tuple(lines)


async def answer_open(database: Database, hints: BusHints, run: UUID, progress: Progress, read: Read = typed) -> int:
    """Put each open question of a run to the person at the terminal; how many were answered. Raises EOFError."""
    answered = 0
    for question in await open_questions(database, run):
        with progress.silence():
            given = await asked_for(question.asking, read, progress.tell)
        try:
            await questions.answer(database, hints, LOCAL_TENANT, run, question.number, given, by=BY)
            answered += 1
        except Conflict as error:
            progress.tell(str(error))
    return answered


async def open_questions(database: Database, run: UUID) -> list[Question]:
    found = await questions.asked(database, LOCAL_TENANT, run)
    return [asked.question for asked in found if asked.open]


def answer(text: str, line: str | None) -> int:
    """0: answered. 1: the run asks nothing. `line` None: ask at the terminal, everything that is open."""
    settings = load_settings()
    idle = status(settings).pid is None
    with local_servers(settings) as servers:
        if idle:
            migrate(servers)
        return asyncio.run(_answer(servers.app_url, servers.redis_url, text, line))


async def _answer(app_url: str, redis_url: str, text: str, line: str | None) -> int:
    progress = Progress(sys.stderr)
    async with Database(app_url, most=2) as database, BusHints(redis_url) as hints:
        run = await find_run(database, text)
        open_ones = await open_questions(database, run)
        if not open_ones:
            progress.tell(f"Run {run} asks nothing.")
            return 1
        if line is None:
            _check_terminal()
            await answer_open(database, hints, run, progress)
            return 0
        given = await answer_in(open_ones[0].asking, line, progress.tell)
        await questions.answer(database, hints, LOCAL_TENANT, run, open_ones[0].number, given, by=BY)
        return 0


async def answer_in(asking: Asking, text: str, say: Say) -> Answer:
    """The answer that `--say` gives. Raises InvalidInput when it does not fit."""
    try:
        return await asked_for(replace(asking, detail=""), _only(text, whole=asking.form is not None), say)
    except EOFError:
        raise InvalidInput("--say", "does not answer this question", "Leave it out to be asked.") from None


def _check_terminal() -> None:
    if not sys.stdin.isatty():
        raise InvalidInput("answer", "There is no terminal to type it at", "Give it: offing answer RUN --say TEXT.")


def _only(line: str, *, whole: bool) -> Read:
    """A person who types these lines and no more. `whole`: all of them at once, as the answer to a form."""
    lines = iter([line] if whole else line.split("\n"))

    async def read() -> str:
        try:
            return next(lines)
        except StopIteration:
            raise EOFError from None

    return read
