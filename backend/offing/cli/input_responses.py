"""Prompt for input requests at the terminal, and `offing answer`.

Prompts go to standard error. Their text comes from the run and is untrusted.
"""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from uuid import UUID

from offing.bus.notifier import BusNotifier
from offing.cli.hooks import migrate
from offing.cli.show import get_run_id
from offing.cli.terminal import ProgressPrinter
from offing.core.errors import Conflict, InvalidInput
from offing.core.input_request import (
    InputKind,
    InputPrompt,
    InputRequest,
    InputResponse,
    ReviewDecision,
    check_response,
)
from offing.core.response_form import ResponseForm, ResponseShape, ToolReview
from offing.core.review_responses import describe_choices
from offing.local.background import get_status
from offing.local.servers import open_servers
from offing.services import input_requests
from offing.settings import load_settings
from offing.storage.migrate import LOCAL_TENANT
from offing.storage.pool import Database

LineReader = Callable[[], Awaitable[str]]
"""Return the next line that a person types, without its line end. Raises EOFError at the end of input."""

LinePrinter = Callable[[str], None]

RESPONDED_BY = "terminal"
"""Value of `responded_by` for responses that are typed at the terminal."""

YES_NO_WORDS = {"y": True, "yes": True, "n": False, "no": False}


async def read_line() -> str:
    """Read a line from standard input without blocking the event loop, so that Ctrl-C works.

    Raises EOFError at the end of input.
    """
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


async def prompt_for_response(input_prompt: InputPrompt, next_line: LineReader, say: LinePrinter) -> InputResponse:
    """Show an input request and read lines until a response is valid. Raises EOFError."""
    say(input_prompt.prompt)
    if input_prompt.response_form is not None:
        _show_form(input_prompt.response_form, say)
    if input_prompt.detail and _needs_detail(input_prompt.response_form):
        say(input_prompt.detail)
    for number, line in enumerate(input_prompt.steps or input_prompt.choices, 1):
        say(f"  {number}. {line}")
    while True:
        say(_describe_input(input_prompt))
        try:
            return check_response(input_prompt, await _read_response(input_prompt, next_line, say))
        except InvalidInput as error:
            say(str(error))


async def _read_response(input_prompt: InputPrompt, next_line: LineReader, say: LinePrinter) -> InputResponse:
    line = (await next_line()).strip()
    if input_prompt.response_form is not None and line == "each" and len(input_prompt.response_form.reviews) > 1:
        return InputResponse(text=await _read_decisions(input_prompt.response_form.reviews, next_line, say))
    match input_prompt.kind:
        case InputKind.FREE_TEXT | InputKind.INTERRUPT:
            return InputResponse(text=_resolve_choice(input_prompt.choices, line))
        case InputKind.APPROVAL | InputKind.TOOL:
            return _parse_approval(line)
        case InputKind.PLAN_REVIEW if line == "e":
            say("Type the plan with one step per line. End with an empty line.")
            return InputResponse(decision=ReviewDecision.EDITED, steps=await _read_lines(next_line))
        case InputKind.PLAN_REVIEW:
            return InputResponse(decision=ReviewDecision.COMMENTED, comment=line) if line else InputResponse()


def _needs_detail(form: ResponseForm | None) -> bool:
    """Return whether the detail of a request must be shown.

    The detail of an interrupt is its whole value. A form that shows all arguments repeats it.
    """
    return form is None or not form.reviews or any(review.args is None for review in form.reviews)


def _show_form(form: ResponseForm, say: LinePrinter) -> None:
    for number, review in enumerate(form.reviews, 1):
        args = "(too long to display)" if review.args is None else json.dumps(review.args, indent=2, ensure_ascii=False)
        say("\n".join(filter(None, (f"{number}. {review.name}", review.description, args))))
        say(f"   {describe_choices(review)}")
    if form.shape is ResponseShape.VALUE:
        say(json.dumps(form.schema, indent=2, ensure_ascii=False))


async def _read_decisions(reviews: Sequence[ToolReview], next_line: LineReader, say: LinePrinter) -> str:
    """Read one decision per tool call, each on its own line."""
    lines: list[str] = []
    for number, review in enumerate(reviews, 1):
        say(f"{number}. {review.name}: {describe_choices(review)}")
        lines.append((await next_line()).strip())
    return "\n".join(lines)


def _describe_form_input(form: ResponseForm) -> str:
    match form.reviews:
        case ():
            return "Type JSON that fits the schema."
        case (_,):
            return "Type one of the decisions."
        case _:
            return "Type one decision for all of them, or `each` to decide one by one."


def _describe_input(input_prompt: InputPrompt) -> str:
    if input_prompt.response_form is not None:
        return _describe_form_input(input_prompt.response_form)
    match input_prompt.kind:
        case InputKind.FREE_TEXT if input_prompt.choices:
            return "Type a choice or its number."
        case InputKind.FREE_TEXT:
            return "Type your answer."
        case InputKind.APPROVAL | InputKind.TOOL:
            return "Type y or n, optionally followed by a comment for the run."
        case InputKind.PLAN_REVIEW:
            return "Press Enter to accept the plan, type e to edit it, or type a comment to request another plan."
        case InputKind.INTERRUPT:
            return "Type the value with which the run continues. Valid JSON is parsed."


def _resolve_choice(choices: tuple[str, ...], line: str) -> str:
    """Return the choice with the typed number, or the line itself."""
    if line.isascii() and line.isdigit() and line not in choices and 1 <= int(line) <= len(choices):
        return choices[int(line) - 1]
    return line


def _parse_approval(line: str) -> InputResponse:
    word, _, comment = line.partition(" ")
    decided = YES_NO_WORDS.get(word.lower().rstrip(",.:;"))
    if decided is None:
        raise InvalidInput("answer", "must begin with y or n", "Type y or n, optionally followed by a comment.")
    return InputResponse(approved=decided, comment=comment.strip())


async def _read_lines(next_line: LineReader) -> tuple[str, ...]:
    lines: list[str] = []
    with suppress(EOFError):
        while line := (await next_line()).strip():
            lines.append(line)
    return tuple(lines)


async def respond_to_pending(
    database: Database,
    notifier: BusNotifier,
    run_id: UUID,
    progress: ProgressPrinter,
    next_line: LineReader = read_line,
) -> int:
    """Prompt for each pending input request of a run and return the number of responses.

    Raises EOFError at the end of input.
    """
    response_count = 0
    for question in await list_pending_requests(database, run_id):
        with progress.paused():
            response = await prompt_for_response(question.input_prompt, next_line, progress.print_line)
        try:
            await input_requests.submit_response(
                database, notifier, LOCAL_TENANT, run_id, question.seq, response, responded_by=RESPONDED_BY
            )
            response_count += 1
        except Conflict as error:
            progress.print_line(str(error))
    return response_count


async def list_pending_requests(database: Database, run_id: UUID) -> list[InputRequest]:
    statuses = await input_requests.list_input_requests(database, LOCAL_TENANT, run_id)
    return [status_of_request.request for status_of_request in statuses if status_of_request.pending]


def answer_run(run_text: str, line: str | None) -> int:
    """Respond to the pending input requests of a run and return the exit code.

    The code is 0 if a response was stored, and 1 if no request is pending. If `line` is `None`, prompt
    at the terminal for all pending requests.
    """
    settings = load_settings()
    idle = get_status(settings).pid is None
    with open_servers(settings) as servers:
        if idle:
            migrate(servers)
        return asyncio.run(_answer_run(servers.app_url, servers.redis_url, run_text, line))


async def _answer_run(app_url: str, redis_url: str, run_text: str, line: str | None) -> int:
    progress = ProgressPrinter(sys.stderr)
    async with Database(app_url, max_connections=2) as database, BusNotifier(redis_url) as notifier:
        run = await get_run_id(database, run_text)
        pending = await list_pending_requests(database, run)
        if not pending:
            progress.print_line(f"Run {run} has no pending input request.")
            return 1
        if line is None:
            _require_terminal()
            await respond_to_pending(database, notifier, run, progress)
            return 0
        response = await parse_typed_response(pending[0].input_prompt, line, progress.print_line)
        await input_requests.submit_response(
            database, notifier, LOCAL_TENANT, run, pending[0].seq, response, responded_by=RESPONDED_BY
        )
        return 0


async def parse_typed_response(input_prompt: InputPrompt, text: str, say: LinePrinter) -> InputResponse:
    """Parse the value of `--text` as a response. Raises InvalidInput if it is not valid."""
    try:
        return await prompt_for_response(
            replace(input_prompt, detail=""),
            _fixed_line_reader(text, whole=input_prompt.response_form is not None),
            say,
        )
    except EOFError:
        raise InvalidInput(
            "--text", "is not a valid response to this request", "Omit it to be prompted for a response."
        ) from None


def _require_terminal() -> None:
    if not sys.stdin.isatty():
        raise InvalidInput("answer", "standard input is not a terminal", "Use: offing answer RUN --text TEXT.")


def _fixed_line_reader(line: str, *, whole: bool) -> LineReader:
    """Return a line reader that yields the given lines only.

    If `whole` is true, it yields all of them at once, as the response to a form.
    """
    lines = iter([line] if whole else line.split("\n"))

    async def read() -> str:
        try:
            return next(lines)
        except StopIteration:
            raise EOFError from None

    return read
