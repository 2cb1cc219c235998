"""A worker with a tool whose effect must not happen twice: `python -m tests.workers.launcher`.

`launch` writes a line to the file that LAUNCHES names, and then kills its worker, as a power cut in the worst moment
would, unless LAUNCH_SAFELY is set.
"""

import os
from collections.abc import Sequence
from pathlib import Path

import offing_workers.claim_setup
from offing.core.tool import SideEffect, ToolOutput, ToolSpec
from offing.sdk import CustomTool
from offing.tools import Tool, create_tools
from offing.tools.tool import ToolArgs, ToolScope
from offing_workers import app


class LaunchArgs(ToolArgs, frozen=True):
    what: str


class Launch:
    spec = ToolSpec(
        "launch", "Launches something, for good.", LaunchArgs, "launch", side_effect=SideEffect.AT_MOST_ONCE
    )

    async def __call__(self, args: LaunchArgs, scope: ToolScope) -> ToolOutput:
        _write(f"{args.what} {scope.idempotency_key}\n")
        if not os.environ.get("LAUNCH_SAFELY"):
            os._exit(9)
        return ToolOutput(content={"launched": args.what}, title=args.what)


def _write(line: str) -> None:
    with Path(os.environ["LAUNCHES"]).open("a") as file:
        file.write(line)


def with_launch(
    environment: str, *, web: bool, code: bool = False, custom: Sequence[CustomTool] = ()
) -> tuple[Tool, ...]:
    return (*create_tools(environment, web=web, code=code, custom=custom), Launch())


if __name__ == "__main__":
    offing_workers.claim_setup.create_tools = with_launch  # pyright: ignore[reportPrivateImportUsage]
    app.main()
