"""The whole product on one machine: servers, migrations, API with page, workers, an engine where there are policies.

The only home of what `offing up` and a command that needs a worker do. What migrates and what makes
a login link come in as callables, since this room knows neither tables nor sessions.
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
from offing.local.datadir import Door, Layout, Lock, Note, prepare, read_note, write_note
from offing.local.engine_share import SharedEngine, shared
from offing.local.environment import application_environment
from offing.local.page import free_port, healthy, page_url
from offing.local.policy import engine_program, is_own, with_engine
from offing.local.processes import end_this_command
from offing.local.programs import Echo, OnEnd, Process, module
from offing.local.servers import Guest, Servers, addresses, running_servers, take_part, wait_for_guests
from offing.local.supervisor import Say, Supervisor, silent
from offing.local.training import trainers
from offing.settings import Settings

MOST_WORKERS = 4
"""Processes that are started unasked: each holds some 100 MB, and Postgres needs cores too."""

READY_SECONDS = 180.0
"""How long a second `up` waits for the first to be ready."""


@dataclass(frozen=True, slots=True)
class Hooks:
    """What the rooms above bring."""

    migrate: Callable[[Servers], object]
    """Brings the database to this version, as the owner."""
    login_link: Callable[[Servers, str], str]
    """A one-time link into the page at the given address."""
    release_leases: Callable[[Servers, str], object]
    """Has others take over what the process of that name had claimed, which has ended."""


def up(settings: Settings, hooks: Hooks, *, say: Say, echo: Echo) -> int:
    """Runs everything until asked to stop, or says where it already runs. The exit code.

    0: stopped on request, or already running. 1: a program ended too often. Raises Conflict for a port in use and
    Unavailable when something does not start.
    """
    paths = prepare(settings.home)
    part = take_part(paths)
    if isinstance(part, Guest):
        part.door.leave()
        return attach(settings, part, hooks, say)
    try:
        settings = settings.model_copy(update={"port": free_port(settings.host, settings.port)})
        settings = with_engine(settings, paths)
    except Conflict:
        part.release()
        raise
    asked = threading.Event()
    with _stopping_on_signals(asked) as stoppable:
        return _run(settings, paths, part, hooks, say, echo, asked, stoppable)


def _run(
    settings: Settings,
    paths: Layout,
    lock: Lock,
    hooks: Hooks,
    say: Say,
    echo: Echo,
    asked: threading.Event,
    stoppable: list[Supervisor],
) -> int:
    page = page_url(settings)
    supervisor, engine = Supervisor(say), shared_engine(settings, paths, say, echo)
    stoppable += [supervisor, engine.supervisor] if engine else [supervisor]
    try:
        with shared(engine), running_servers(settings, paths, lock, supervisor):
            note = Note(os.getpid(), str(paths.run), supervisor.names, page, settings.engine_url)
            write_note(paths, note)
            servers = addresses(settings, paths)
            say("applying migrations")
            hooks.migrate(servers)
            released = partial(hooks.release_leases, servers)
            first = worker(settings, paths, servers, echo, on_end=released)
            supervisor.start([api(settings, paths, servers, echo), first])
            if engine is not None:
                engine.until_ready(asked.is_set)
            write_note(paths, replace(note, programs=supervisor.names + (engine.names if engine else ())))
            say(f"Offing is ready. Open {hooks.login_link(servers, page)}")
            say("Ctrl-C stops everything.")
            later = further_workers(settings, paths, servers, echo, released)
            environment = child_environment(settings, servers)
            supervisor.begin([*later, *trainers(paths, environment, echo, released)])
            write_note(paths, replace(note, programs=supervisor.names + (engine.names if engine else ())))
            return 0 if supervisor.watch(asked) and not (engine and engine.given_up) else 1
    except Unavailable:
        if asked.is_set():
            return 0  # a wait was cut short because we were asked to stop
        raise


@contextmanager
def _stopping_on_signals(asked: threading.Event) -> Generator[list[Supervisor]]:
    """The first SIGINT, SIGTERM or SIGHUP sets `asked`; the second kills what the listed supervisors run."""
    stoppable: list[Supervisor] = []

    def handle(_number: int, _frame: FrameType | None) -> None:
        hurry = asked.is_set()
        asked.set()
        for supervisor in stoppable:
            supervisor.kill() if hurry else supervisor.halt()

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.signal(number, handle) for number in numbers]
    try:
        yield stoppable
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


def attach(settings: Settings, host: Guest, hooks: Hooks, say: Say) -> int:
    """Says where the stack that `host` runs is, once it is ready, with a fresh login link. The exit code."""
    if host.note.page_url is None:
        raise Conflict(
            f"Another offing command (pid {host.note.pid}) is using {settings.home} at this moment.",
            "Try again when it is done, or set OFFING_HOME to another folder.",
        )
    note = _ready_note(host.paths)
    say(f"Offing is running (pid {note.pid}).")
    say(f"Open {hooks.login_link(addresses(settings, host.paths), str(note.page_url))}")
    return 0


def _ready_note(paths: Layout) -> Note:
    """The note of the running stack, once its API answers."""
    deadline = time.monotonic() + READY_SECONDS
    while time.monotonic() < deadline:
        note = read_note(paths)
        if note is None:
            break
        if "api" in note.programs:
            return note
        time.sleep(0.1)
    raise Unavailable(f"The offing that runs {paths.home} did not become ready. `offing down` stops it.")


@contextmanager
def working_stack(settings: Settings, hooks: Hooks, *, say: Say = silent, workers: int = 1) -> Generator[Servers]:
    """Servers, migrations and workers for one command; shares those of a running stack.

    The workers write to `<home>/logs/worker.log`. All that was started here is stopped at the end, when no other
    command uses it any more.
    """
    paths = prepare(settings.home)
    part = take_part(paths)
    if isinstance(part, Guest):
        settings = _engine_of_host(settings, part)
        engine = shared_engine(settings, part.paths, say, guest=True)
        with (
            part.door,
            shared(engine),
            _with_workers(settings, part.paths, hooks, Supervisor(say), engine, part.note, workers) as servers,
        ):
            yield servers
        return
    supervisor = Supervisor(say)
    settings = with_engine(settings, paths)
    engine = shared_engine(settings, paths, say)
    with (
        shared(engine),
        Door(paths.door) as door,
        running_servers(settings, paths, part, supervisor),
        _with_workers(settings, paths, hooks, supervisor, engine, None, workers) as servers,
    ):
        yield servers
        wait_for_guests(door, say)


@contextmanager
def _with_workers(
    settings: Settings,
    paths: Layout,
    hooks: Hooks,
    supervisor: Supervisor,
    engine: SharedEngine | None,
    host: Note | None,
    workers: int,
) -> Generator[Servers]:
    servers = replace(addresses(settings, paths), engine_url=settings.engine_url)
    hooks.migrate(servers)
    if host is not None and host.page_url is not None:
        _ready_note(paths)
        if engine is not None:
            engine.until_ready()
        yield servers
        return
    asked = threading.Event()
    watch = threading.Thread(target=watch_or_end, args=(supervisor, asked), name="offing-watch", daemon=True)
    try:
        names = [f"worker-{os.getpid()}" + (f"-{n}" if n else "") for n in range(workers)]
        released = partial(hooks.release_leases, servers)
        supervisor.start([worker(settings, paths, servers, None, name, released) for name in names])
        watch.start()
        if engine is not None:
            engine.until_ready()
        yield servers
    finally:
        asked.set()
        supervisor.halt()
        if watch.ident is not None:
            watch.join()
        if host is not None:
            supervisor.stop()


def shared_engine(
    settings: Settings, paths: Layout, say: Say, echo: Echo | None = None, *, guest: bool = False
) -> SharedEngine | None:
    """This command's part in the engine of its home; `settings` come from `with_engine`. None: it has another's."""
    if not is_own(settings, paths):
        return None
    environment = child_environment(settings, addresses(settings, paths))
    return SharedEngine(settings, paths, engine_program(settings, paths, environment, echo), say, guest=guest)


def _engine_of_host(settings: Settings, host: Guest) -> Settings:
    """`settings` with the engine that the host's workers ask: any of them may get any run, ours too.

    Raises Conflict where ours name another one.
    """
    theirs, ours = host.note.engine_url, with_engine(settings, host.paths).engine_url
    if theirs and ours and theirs != ours:
        raise Conflict(
            f"process {host.note.pid} runs {host.paths.home} and asks the policy engine at {theirs}, not at {ours}.",
            "Set OFFING_ENGINE_URL as it is there, or set OFFING_HOME to another folder.",
        )
    return settings.model_copy(update={"engine_url": theirs or ours})


def watch_or_end(supervisor: Supervisor, asked: threading.Event) -> None:
    """Watches for a command. What is given up ends the command as Ctrl-C does: it would wait for that forever."""
    if not supervisor.watch(asked):
        end_this_command()


def api(settings: Settings, paths: Layout, servers: Servers, echo: Echo | None) -> Process:
    """The API with the page; ready when its own health check says so over loopback."""
    return Process(
        name="api",
        argv=module("offing.api"),
        env=child_environment(settings, servers),
        ready_file=paths.run / "api.ready",
        log=paths.logs / "api.log",
        echo=echo,
        answers=lambda: healthy(settings),
        grace_seconds=10.0,
    )


def worker(
    settings: Settings, paths: Layout, servers: Servers, echo: Echo | None, name: str = "worker", on_end: OnEnd = None
) -> Process:
    """One worker. It hands back the slices it has begun, and ends by itself within 25 s whatever hangs."""
    return Process(
        name=name,
        argv=module("offing_workers"),
        env=child_environment(settings, servers),
        ready_file=paths.run / f"{name}.ready",
        log=paths.logs / "worker.log",
        echo=echo,
        grace_seconds=30.0,
        on_end=on_end,
    )


def worker_processes(settings: Settings) -> int:
    """How many `offing up` runs. One process's Python work stays on one core, whatever its threads."""
    return settings.workers or min(os.cpu_count() or 1, MOST_WORKERS)


def further_workers(
    settings: Settings, paths: Layout, servers: Servers, echo: Echo | None, on_end: OnEnd
) -> list[Process]:
    """All but the first, which alone the page waits for."""
    names = [f"worker-{n}" for n in range(2, worker_processes(settings) + 1)]
    return [worker(settings, paths, servers, echo, name, on_end) for name in names]


def child_environment(settings: Settings, servers: Servers) -> dict[str, str]:
    """Ours, with the addresses of the servers under the application's role; the owner's address stays with us."""
    where = {"OFFING_ENGINE_URL": settings.engine_url} if settings.engine_url else {}
    where |= {"OFFING_GRAPH_PATHS": settings.graph_paths} if settings.graph_paths else {}
    where |= {"OFFING_GRAPH_RELOAD": "1"} if settings.graph_reload else {}
    return application_environment() | {
        **where,
        "OFFING_APP_DATABASE_URL": servers.app_url,
        "REDIS_URL": servers.redis_url,
        "OFFING_HOME": str(settings.home),
        "OFFING_HOST": settings.host,
        "OFFING_PORT": str(settings.port),
    }
