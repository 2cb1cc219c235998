"""The task of a run as its roles receive it: the question, what people wrote, and the tools."""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from pydantic import BaseModel, ValidationError

from offing.sdk import (
    RunContext,
    RunInfo,
    Step,
    StepDraft,
    StepKind,
    ToolSpec,
    find_plan_change,
    is_plan_change,
    shorten_line,
)
from offing_graphs.shared.outline import parts_from_change
from offing_graphs.shared.schemas import PriorExchange, TaskContext, ToolCard

MESSAGE_READ = "message read"
"""Label of the note that records which user messages were read. The web UI shows it."""
MAX_USER_MESSAGES = 20
"""Maximum number of user messages that are passed on. The latest are kept."""


def task_from_run(run: RunInfo, user_messages: Iterable[str] = ()) -> TaskContext:
    """Return the task of a run."""
    earlier = tuple(PriorExchange(question=q, answer=a) for q, a in run.prior_exchanges)
    return TaskContext(
        question=run.question, earlier=earlier, user_messages=tuple(user_messages), report_style=run.report_style
    )


async def load_task(ctx: RunContext, last_message_seq: int) -> TaskContext:
    """Load the task with the user messages up to step `last_message_seq`, and the plan if one of them changed it."""
    messages = [m for m in await ctx.get_user_messages(0) if m.seq <= last_message_seq]
    texts = [get_message_text(m) for m in messages if not is_plan_change(m)]
    task = task_from_run(ctx.run, texts[-MAX_USER_MESSAGES:])
    plan = parts_from_change(find_plan_change(messages))
    return task.model_copy(update={"plan": plan}) if plan else task


async def find_last_message_seq(ctx: RunContext, after_seq: int) -> int:
    """Return the seq of the latest user message after step `after_seq`, or `after_seq` if there is none."""
    messages = await ctx.get_user_messages(after_seq)
    return messages[-1].seq if messages else after_seq


async def read_new_messages(ctx: RunContext, after_seq: int, turn: int) -> int:
    """Return the seq of the latest user message after step `after_seq`, and record that the new ones were read.

    A node calls it where its next prompts contain the messages. Without a new one, it records nothing.
    """
    messages = await ctx.get_user_messages(after_seq)
    await note_messages(ctx, messages, turn)
    return messages[-1].seq if messages else after_seq


async def note_messages(ctx: RunContext, messages: Iterable[Step], turn: int) -> None:
    """Record that messages were read: all prompts after this step contain them.

    A change of the plan has a note of its own.
    """
    texts = [message for message in messages if not is_plan_change(message)]
    if texts:
        seqs = [message.seq for message in texts]
        title = f"Message read: {shorten_line(get_message_text(texts[-1]), 80)}"
        detail = f"step {', '.join(map(str, seqs))}"
        await ctx.append_steps(StepDraft(StepKind.NOTE, title, {"messages": seqs}, MESSAGE_READ, detail, turn=turn))


def get_message_text(message: Step) -> str:
    return str(message.payload.get("text") or message.title)


def build_tool_cards(specs: Iterable[ToolSpec]) -> tuple[ToolCard, ...]:
    """Return the tools as the roles see them."""
    return tuple(
        ToolCard(
            name=spec.name,
            description=spec.description,
            parameters=_get_args_schema(spec.args),
            third_party=spec.third_party,
        )
        for spec in specs
    )


def find_args_problem(ctx: RunContext, tool: str, args: Mapping[str, Any]) -> str | None:
    """Return why arguments do not fit the schema of a tool. `None` means that they do."""
    spec = next((spec for spec in ctx.tools if spec.name == tool), None)
    if spec is None:
        return f"There is no tool {tool}."
    try:
        spec.args.model_validate(dict(args))
    except ValidationError as error:
        return error.errors(include_url=False)[0]["msg"]
    return None


@lru_cache(maxsize=256)
def _get_args_schema(args: type[BaseModel]) -> dict[str, Any]:
    """Return the JSON schema of the arguments. The dictionary is cached and must not be changed."""
    return args.model_json_schema()
