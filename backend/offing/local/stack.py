"""Stack of one machine: servers, migrations, API with web UI, workers and policy engine.

The policy engine runs if there are policy versions. `offing up` and every command that needs a
worker use the stack. Functions for migrations and login links are passed in, because this package
does not import storage or services.
"""

import os
import signal
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from types import FrameType

from offing.core.errors import Conflict, Unavailable
from offing.local.api_address import choose_ports, get_langgraph_url, get_web_url, is_healthy
from offing.local.child_environment import build_application_environment
from offing.local.data_directory import (
    DataDirectory,
    ExclusiveLock,
    SharedLock,
    StackInfo,
    prepare_data_directory,
    read_stack_info,
    write_stack_info,
)
from offing.local.engine_process import build_engine_process, is_own_engine, with_engine_url
from offing.local.processes import interrupt_command
from offing.local.programs import ExitCallback, LineEcho, ManagedProcess, python_module_command
from offing.local.servers import ServerUrls, SharedStack, get_server_urls, join_or_lock, run_servers, wait_for_users
from offing.local.shared_engine import SharedEngine, join_engine
from offing.local.supervisor import MessageSink, Supervisor, discard_message
from offing.local.trainer_process import build_trainer_processes
from offing.settings import Settings

MAX_WORKERS = 4
"""Maximum number of workers by default: each uses about 100 MB, and Postgres needs cores, too."""

READY_TIMEOUT_SECONDS = 180.0
"""Time for which a second `up` waits until the first is ready."""


@dataclass(frozen=True, slots=True)
class StackHooks:
    """Functions of the layers above."""

    migrate: Callable[[ServerUrls], object]
    """Migrates the database to this version, as its owner."""
    create_login_link: Callable[[ServerUrls, str], str]
    """Returns a one-time login link to the web UI at the given URL."""
    prepare_login_link: Callable[[], object]
    """Imports what `create_login_link` needs, so that the link does not wait for it."""
    release_leases: Callable[[ServerUrls, str], object]
    """Releases the leases of an ended process by its name, so that others can claim its runs."""
    show_login_link: Callable[[str], object] = discard_message
    """Shows the login link, in addition to printing it, when the stack is ready."""


def run_stack(settings: Settings, hooks: StackHooks, *, say: MessageSink, echo: LineEcho) -> int:
    """Run the stack until it is stopped, or show where it already runs. Return the exit code.

    The code is 0 if the stack was stopped on request or already runs, and 1 if a program ended too
    often. Raises Conflict if the port is in use, and Unavailable if a program does not start.
    """
    paths = prepare_data_directory(settings.home)
    part = join_or_lock(paths)
    if isinstance(part, SharedStack):
        part.users_lock.release()
        return show_running_stack(settings, part, hooks, say)
    try:
        settings = with_engine_url(choose_ports(settings), paths)
    except Conflict:
        part.release()
        raise
    stop_requested = threading.Event()
    with _handle_stop_signals(stop_requested) as stoppable:
        return _run_stack(settings, paths, part, hooks, say, echo, stop_requested, stoppable)


def _run_stack(
    settings: Settings,
    paths: DataDirectory,
    lock: ExclusiveLock,
    hooks: StackHooks,
    say: MessageSink,
    echo: LineEcho,
    stop_requested: threading.Event,
    supervisors: list[Supervisor],
) -> int:
    web_url = get_web_url(settings)
    supervisor, engine = Supervisor(say), build_shared_engine(settings, paths, say, echo)
    supervisors += [supervisor, engine.supervisor] if engine else [supervisor]
    try:
        with join_engine(engine), run_servers(settings, paths, lock, supervisor):
            info = StackInfo(os.getpid(), str(paths.socket_dir), supervisor.names, web_url, settings.engine_url)
            write_stack_info(paths, info)
            servers = get_server_urls(settings, paths)
            say("applying migrations")
            hooks.migrate(servers)
            released = partial(hooks.release_leases, servers)
            first = build_worker_process(settings, paths, servers, echo, on_exit=released)
            supervisor.start([build_api_process(settings, paths, servers, echo), first])
            if engine is not None:
                engine.wait_until_ready(stop_requested.is_set)
            write_stack_info(paths, replace(info, programs=supervisor.names + (engine.names if engine else ())))
            login_link = hooks.create_login_link(servers, web_url)
            say(f"Offing is ready. Open {login_link}")
            if (langgraph_url := get_langgraph_url(settings)) is not None:
                say(f"LangGraph's clients connect to {langgraph_url}")
            hooks.show_login_link(login_link)
            say("Press Ctrl-C to stop it.")
            later = build_further_workers(settings, paths, servers, echo, released)
            environment = build_child_environment(settings, servers)
            supervisor.start_without_waiting([*later, *build_trainer_processes(paths, environment, echo, released)])
            write_stack_info(paths, replace(info, programs=supervisor.names + (engine.names if engine else ())))
            return 0 if supervisor.watch(stop_requested) and not (engine and engine.given_up) else 1
    except Unavailable:
        if stop_requested.is_set():
            return 0  # a wait was cancelled by a requested stop
        raise


@contextmanager
def _handle_stop_signals(stop_requested: threading.Event) -> Generator[list[Supervisor]]:
    """Set `stop_requested` on the first SIGINT, SIGTERM or SIGHUP.

    The second one kills the programs of the supervisors.
    """
    stoppable: list[Supervisor] = []

    def handle(_number: int, _frame: FrameType | None) -> None:
        is_second = stop_requested.is_set()
        stop_requested.set()
        for supervisor in stoppable:
            supervisor.kill() if is_second else supervisor.cancel_waits()

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.signal(number, handle) for number in numbers]
    try:
        yield stoppable
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


def show_running_stack(settings: Settings, host: SharedStack, hooks: StackHooks, say: MessageSink) -> int:
    """Wait until the stack of another process is ready, and print its URL with a new login link.

    Return the exit code.
    """
    if host.info.page_url is None:
        raise Conflict(
            f"Another offing command (pid {host.info.pid}) is using {settings.home}.",
            "Try again when it has ended, or set OFFING_HOME to another folder.",
        )
    info = _wait_for_stack_info(host.paths)
    say(f"Offing is running (pid {info.pid}).")
    say(f"Open {hooks.create_login_link(get_server_urls(settings, host.paths), str(info.page_url))}")
    return 0


def _wait_for_stack_info(paths: DataDirectory) -> StackInfo:
    """Return the info of the running stack once its API is ready."""
    deadline = time.monotonic() + READY_TIMEOUT_SECONDS
    while time.monotonic() < deadline:
        info = read_stack_info(paths)
        if info is None:
            break
        if "api" in info.programs:
            return info
        time.sleep(0.1)
    raise Unavailable(f"The stack of {paths.root} did not become ready. Stop it with `offing down`.")


@contextmanager
def open_stack(
    settings: Settings, hooks: StackHooks, *, say: MessageSink = discard_message, worker_count: int = 1
) -> Generator[ServerUrls]:
    """Open servers, migrations and workers for one command, or share those of a running stack.

    The workers write to `<home>/logs/worker.log`. At the end everything that was started here is
    stopped, once no other command uses it.
    """
    paths = prepare_data_directory(settings.home)
    part = join_or_lock(paths)
    if isinstance(part, SharedStack):
        settings = _with_host_engine(settings, part)
        engine = build_shared_engine(settings, part.paths, say, shares_stack=True)
        with (
            part.users_lock,
            join_engine(engine),
            _run_workers(settings, part.paths, hooks, Supervisor(say), engine, part.info, worker_count) as servers,
        ):
            yield servers
        return
    supervisor = Supervisor(say)
    settings = with_engine_url(settings, paths)
    engine = build_shared_engine(settings, paths, say)
    with (
        join_engine(engine),
        SharedLock(paths.users_lock) as users_lock,
        run_servers(settings, paths, part, supervisor),
        _run_workers(settings, paths, hooks, supervisor, engine, None, worker_count) as servers,
    ):
        yield servers
        wait_for_users(users_lock, say)


@contextmanager
def _run_workers(
    settings: Settings,
    paths: DataDirectory,
    hooks: StackHooks,
    supervisor: Supervisor,
    engine: SharedEngine | None,
    host: StackInfo | None,
    worker_count: int,
) -> Generator[ServerUrls]:
    servers = replace(get_server_urls(settings, paths), engine_url=settings.engine_url)
    hooks.migrate(servers)
    if host is not None and host.page_url is not None:
        _wait_for_stack_info(paths)
        if engine is not None:
            engine.wait_until_ready()
        yield servers
        return
    stop_requested = threading.Event()
    watch = threading.Thread(
        target=watch_or_interrupt, args=(supervisor, stop_requested), name="offing-watch", daemon=True
    )
    try:
        names = [f"worker-{os.getpid()}" + (f"-{n}" if n else "") for n in range(worker_count)]
        released = partial(hooks.release_leases, servers)
        supervisor.start([build_worker_process(settings, paths, servers, None, name, released) for name in names])
        watch.start()
        if engine is not None:
            engine.wait_until_ready()
        yield servers
    finally:
        stop_requested.set()
        supervisor.cancel_waits()
        if watch.ident is not None:
            watch.join()
        if host is not None:
            supervisor.stop()


def build_shared_engine(
    settings: Settings,
    paths: DataDirectory,
    say: MessageSink,
    echo: LineEcho | None = None,
    *,
    shares_stack: bool = False,
) -> SharedEngine | None:
    """Return this command's share in the policy engine.

    `None` means that an external engine is configured. `settings` come from `with_engine_url`.
    """
    if not is_own_engine(settings, paths):
        return None
    environment = build_child_environment(settings, get_server_urls(settings, paths))
    return SharedEngine(
        settings, paths, build_engine_process(settings, paths, environment, echo), say, shares_stack=shares_stack
    )


def _with_host_engine(settings: Settings, host: SharedStack) -> Settings:
    """Return `settings` with the engine of the running stack, because its workers may claim any run.

    Raises Conflict if `settings` name another engine.
    """
    theirs, ours = host.info.engine_url, with_engine_url(settings, host.paths).engine_url
    if theirs and ours and theirs != ours:
        raise Conflict(
            f"Process {host.info.pid} uses {host.paths.root} with the policy engine at {theirs}, not at {ours}.",
            "Set OFFING_ENGINE_URL to the same URL, or set OFFING_HOME to another folder.",
        )
    return settings.model_copy(update={"engine_url": theirs or ours})


def watch_or_interrupt(supervisor: Supervisor, stop_requested: threading.Event) -> None:
    """Restart ended programs of a command.

    If one is given up, interrupt the command, which would wait forever.
    """
    if not supervisor.watch(stop_requested):
        interrupt_command()


def build_api_process(
    settings: Settings, paths: DataDirectory, servers: ServerUrls, echo: LineEcho | None
) -> ManagedProcess:
    """Build the process of the API with the web UI.

    It is ready when its health check answers over loopback.
    """
    return ManagedProcess(
        name="api",
        argv=python_module_command("offing.api"),
        env=build_child_environment(settings, servers),
        ready_file=paths.socket_dir / "api.ready",
        log=paths.logs / "api.log",
        echo=echo,
        is_answering=lambda: is_healthy(settings),
        grace_seconds=10.0,
    )


def build_worker_process(
    settings: Settings,
    paths: DataDirectory,
    servers: ServerUrls,
    echo: LineEcho | None,
    name: str = "worker",
    on_exit: ExitCallback = None,
) -> ManagedProcess:
    """Build a worker process. On a stop it releases the runs of its slices, and always ends within 25 s."""
    return ManagedProcess(
        name=name,
        argv=python_module_command("offing_workers"),
        env=build_child_environment(settings, servers),
        ready_file=paths.socket_dir / f"{name}.ready",
        log=paths.logs / "worker.log",
        echo=echo,
        grace_seconds=30.0,
        on_exit=on_exit,
    )


def count_worker_processes(settings: Settings) -> int:
    """Return the number of workers of `offing up`.

    The Python code of one process uses one core, whatever its threads.
    """
    return settings.worker_processes or min(os.cpu_count() or 1, MAX_WORKERS)


def build_further_workers(
    settings: Settings, paths: DataDirectory, servers: ServerUrls, echo: LineEcho | None, on_exit: ExitCallback
) -> list[ManagedProcess]:
    """Build all workers except the first. Only the first is needed before the stack is ready."""
    names = [f"worker-{n}" for n in range(2, count_worker_processes(settings) + 1)]
    return [build_worker_process(settings, paths, servers, echo, name, on_exit) for name in names]


def build_child_environment(settings: Settings, servers: ServerUrls) -> dict[str, str]:
    """Return this environment with the server URLs of the application's role, without the owner's URL."""
    engine_variables = {"OFFING_ENGINE_URL": settings.engine_url} if settings.engine_url else {}
    engine_variables |= {"OFFING_GRAPH_PATHS": settings.graph_paths} if settings.graph_paths else {}
    engine_variables |= {"OFFING_GRAPH_RELOAD": "1"} if settings.graph_reload else {}
    if "keep_checkpoints_days" in settings.model_fields_set:
        engine_variables["OFFING_KEEP_CHECKPOINTS_DAYS"] = str(settings.keep_checkpoints_days)
    if settings.thread_ttl_minutes is not None:
        engine_variables["OFFING_THREAD_TTL_MINUTES"] = str(settings.thread_ttl_minutes)
        engine_variables["OFFING_THREAD_TTL_STRATEGY"] = settings.thread_ttl_strategy
    return build_application_environment() | {
        **engine_variables,
        "OFFING_APP_DATABASE_URL": servers.app_url,
        "REDIS_URL": servers.redis_url,
        "OFFING_HOME": str(settings.home),
        "OFFING_HOST": settings.host,
        "OFFING_PORT": str(settings.port),
        **build_langgraph_variables(settings),
        **({"OFFING_LANGGRAPH_APP": "1"} if settings.langgraph_app else {}),
    }


def build_langgraph_variables(settings: Settings) -> dict[str, str]:
    """Return the variables for LangGraph's API at the root of a port. Empty if it has no such port."""
    if settings.langgraph_port is None:
        return {}
    without_key = {"OFFING_LANGGRAPH_WITHOUT_KEY": "1"} if settings.langgraph_without_key else {}
    return {"OFFING_LANGGRAPH_PORT": str(settings.langgraph_port), **without_key}
