"""The tool that runs Python in a sandbox. Its output is no evidence, because it cites no source."""

from typing import Any

from pydantic import Field

from offing.core.step import shorten_line
from offing.core.tool import SideEffect, ToolOutput, ToolSpec
from offing.core.tool_policy import Condition, ToolRule
from offing.tools.platform_tool import MAX_CODE_CALLS, PlatformTool
from offing.tools.tool import CodeOutput, ToolArgs, ToolFailedError, ToolScope

MAX_OUTPUT_CHARS = 12_000
"""Maximum characters of output that a model sees, from its beginning and its end."""


class RunPythonArgs(ToolArgs, frozen=True):
    code: str = Field(min_length=1, max_length=20_000, description="Python source. It prints what should be seen.")
    files: list[str] = Field(
        default=[],
        max_length=8,
        description="Names of sources, or of files that earlier code of this run wrote, to find in the working folder.",
    )


class RunPython:
    spec = ToolSpec(
        name="run_python",
        description="Run Python in an empty folder, without network and for at most 30 seconds. Each call begins "
        "anew. Files that it writes there are kept; a PNG or SVG is shown as a picture.",
        args=RunPythonArgs,
        label="compute",
        side_effect=SideEffect.PURE,
        timeout_seconds=180.0,
        untrusted=True,
    )

    async def __call__(self, args: RunPythonArgs, scope: ToolScope) -> ToolOutput:
        if scope.code is None:
            raise ToolFailedError("This run may not run code.")
        ran = await scope.code.run(args.code, [await scope.resolve_source(name) for name in args.files])
        if isinstance(ran, str):
            raise ToolFailedError(ran)
        return ToolOutput(content=_render_output(ran), title=_find_title(args.code), detail=_summarize(ran))


TOOL = PlatformTool(
    RunPython(),
    ToolRule(
        tool="run_python",
        when=(
            Condition(arg="code", min_length=1, max_length=20_000),
            Condition(arg="files", optional=True, max_length=8),
        ),
        max_calls=MAX_CODE_CALLS,
        reason="The run was asked with code.",
    ),
    position=60,
    permission="code",
)


def _render_output(ran: CodeOutput) -> dict[str, Any]:
    content: dict[str, Any] = {
        "exit": ran.exit_status,
        "stdout": _truncate_middle(ran.stdout),
        "error": _find_error(ran),
    }
    content["files"] = [
        {"name": file.name, "sha256": file.sha256, "bytes": file.size_bytes, "kind": file.media_type}
        for file in ran.files
    ]
    if ran.skipped:
        content["skipped"] = list(ran.skipped)
    if ran.inputs:
        content["put_in"] = [
            {"name": one.name, **({"text_id": str(one.text_id)} if one.text_id else {})} for one in ran.inputs
        ]
    return content


def _find_error(ran: CodeOutput) -> str:
    """Return the error output. Empty if the code ended well and wrote none."""
    return "\n".join(text for text in (_truncate_middle(ran.stderr), ran.stop_message) if text)


def _truncate_middle(text: str) -> str:
    if len(text) <= MAX_OUTPUT_CHARS:
        return text
    half = MAX_OUTPUT_CHARS // 2
    return f"{text[:half]}\n… {len(text) - 2 * half:,} characters left out …\n{text[-half:]}"


def _find_title(code: str) -> str:
    """Return the first line that is not an import."""
    lines = [line.strip() for line in code.splitlines() if line.strip()]
    telling = [line for line in lines if not line.startswith(("import ", "from ", "#"))]
    return shorten_line((telling or lines or ["code"])[0])


def _summarize(ran: CodeOutput) -> str:
    if ran.stop_message:
        return ran.stop_message
    if ran.exit_status:
        return f"failed with status {ran.exit_status}"
    printed = f"{len(ran.stdout):,} characters printed" if ran.stdout else "nothing printed"
    return f"{printed}, {len(ran.files)} file{'s' if len(ran.files) != 1 else ''}" if ran.files else printed
