"""What people have written to a run, as its nodes ask for it."""

from offing.sdk import RunContext


async def newest_message(ctx: RunContext, after: int) -> int:
    """Seq of the latest message after step `after`; `after` itself where there is none."""
    messages = await ctx.messages(after)
    return messages[-1].seq if messages else after
