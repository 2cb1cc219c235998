"""The tool that runs Python where it can reach nothing. What it prints and draws is no evidence: it cites no source."""

from typing import Any

from pydantic import Field

from offing.core.step import shortened
from offing.core.tool import Effect, ToolOutput, ToolSpec
from offing.tools.tool import CodeRan, ToolArgs, ToolFailed, ToolScope

SHOWN = 12_000
"""Characters of what was printed that a model is shown, from its beginning and its end."""


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
        verb="compute",
        effect=Effect.PURE,
        timeout_seconds=180.0,
        untrusted=True,
    )

    async def __call__(self, args: RunPythonArgs, scope: ToolScope) -> ToolOutput:
        if scope.code is None:
            raise ToolFailed("This run may not run code.")
        ran = await scope.code.run(args.code, args.files)
        if isinstance(ran, str):
            raise ToolFailed(ran)
        return ToolOutput(content=_shown(ran), title=_title(args.code), detail=_told(ran))


def _shown(ran: CodeRan) -> dict[str, Any]:
    content: dict[str, Any] = {"exit": ran.exit, "stdout": _ends(ran.stdout), "error": _error(ran)}
    content["files"] = [
        {"name": file.name, "sha256": file.sha256, "bytes": file.size, "kind": file.media_type} for file in ran.files
    ]
    if ran.left_out:
        content["left_out"] = list(ran.left_out)
    if ran.put_in:
        content["put_in"] = [
            {"name": one.name, **({"artefact": str(one.artefact)} if one.artefact else {})} for one in ran.put_in
        ]
    return content


def _error(ran: CodeRan) -> str:
    """Empty: it ended well and complained of nothing."""
    return "\n".join(text for text in (_ends(ran.stderr), ran.stopped) if text)


def _ends(text: str) -> str:
    if len(text) <= SHOWN:
        return text
    half = SHOWN // 2
    return f"{text[:half]}\n… {len(text) - 2 * half:,} characters left out …\n{text[-half:]}"


def _title(code: str) -> str:
    """The first line that is more than an import."""
    lines = [line.strip() for line in code.splitlines() if line.strip()]
    telling = [line for line in lines if not line.startswith(("import ", "from ", "#"))]
    return shortened((telling or lines or ["code"])[0])


def _told(ran: CodeRan) -> str:
    if ran.stopped:
        return ran.stopped
    if ran.exit:
        return f"failed with status {ran.exit}"
    printed = f"{len(ran.stdout):,} characters printed" if ran.stdout else "nothing printed"
    return f"{printed}, {len(ran.files)} file{'s' if len(ran.files) != 1 else ''}" if ran.files else printed
