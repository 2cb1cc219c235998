"""Reading in child processes: a bad file hurts nothing but itself. The children here are real."""

import asyncio
import contextlib
import signal
import sys
from pathlib import Path
from uuid import UUID

import psutil
import pytest

from offing.library import readers as pool
from offing.library.extraction import DocumentRejectedError
from offing.library.readers import DocumentReaderPool, ReadersBusyError, default_reader_count

TEXT = b"# Pools\n\nA pool keeps sockets open.\n"

MISBEHAVING = """
import os, sys, time
from offing.library import reader_process
real = reader_process.read_document
here = os.path.dirname(__file__)
def meet(name):
    open(os.path.join(here, name), "w").close()
    while sum(one.startswith("meet") for one in os.listdir(here)) < 2: time.sleep(0.02)
def prepared(name, data):
    if name == "crash": os.abort()
    if name == "hang": time.sleep(60)
    while name == "spin": pass
    if name == "raise": raise RuntimeError(name)
    if name == "print": print("noise from a library", flush=True)
    if name == "greedy": bytearray(64 * 2**30)
    if name.startswith("meet"): meet(name)
    return real(name, data)
reader_process.read_document, reader_process.MAX_CPU_SECONDS = prepared, 1
reader_process.main()
"""


@pytest.fixture
def misbehaving(tmp_path: Path) -> tuple[str, ...]:
    """A reader that fails in the way its file's name says."""
    script = tmp_path / "reader.py"
    script.write_text(MISBEHAVING)
    return (sys.executable, str(script))


async def test_a_document_comes_back_with_passages_and_postings() -> None:
    async with DocumentReaderPool(1) as readers:
        document = await readers.read("pools.md", TEXT)
    assert (document.text, document.title) == (TEXT.decode(), "Pools")
    assert [tuple(p) for p in document.passages] == [(0, len(TEXT) - 1, "Pools")]
    assert "pool" in document.postings[0]


def list_reader_environments() -> list[dict[str, str]]:
    """Environments of the processes that this one has started and that still run."""
    environments: list[dict[str, str]] = []
    for child in psutil.Process().children():
        with contextlib.suppress(psutil.NoSuchProcess):
            if any("offing" in word for word in child.cmdline()):
                environments.append(child.environ())
    return environments


async def test_a_reader_does_not_inherit_the_keys_of_providers(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ANTHROPIC_API_KEY", "DATABASE_URL", "OFFING_APP_DATABASE_URL"):
        monkeypatch.setenv(name, "canary")
    async with DocumentReaderPool(1) as readers:
        await readers.read("pools.md", TEXT)
        environments = list_reader_environments()
    assert environments
    assert all("canary" not in environment.values() for environment in environments)


@pytest.mark.parametrize("name", ["crash", "hang", "raise", "greedy"])
async def test_a_file_that_breaks_its_reader_is_rejected_and_the_next_one_read(
    misbehaving: tuple[str, ...], name: str
) -> None:
    async with DocumentReaderPool(1, timeout_seconds=3 if name == "hang" else 90, command=misbehaving) as readers:
        with pytest.raises(DocumentRejectedError) as rejection:
            await readers.read(name, TEXT)
        assert rejection.value.remedy
        readers._readers[0]._timeout_seconds = 90  # pyright: ignore[reportPrivateUsage]
        assert (await readers.read("fine.md", TEXT)).title == "Pools"


async def test_what_a_library_prints_does_not_disturb(misbehaving: tuple[str, ...]) -> None:
    async with DocumentReaderPool(1, command=misbehaving) as readers:
        assert (await readers.read("print", TEXT)).text == TEXT.decode()


async def test_a_cancelled_read_leaves_no_answer_for_the_next_file(misbehaving: tuple[str, ...]) -> None:
    async with DocumentReaderPool(1, command=misbehaving) as readers:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(readers.read("hang", b"other"), 1.5)
        assert (await readers.read("fine.md", TEXT)).text == TEXT.decode()


@pytest.mark.parametrize("at_once", [True, False])
async def test_a_closed_reader_reads_no_further_when_a_caller_gives_up_waiting(
    misbehaving: tuple[str, ...], at_once: bool
) -> None:
    reader = pool.DocumentReader(misbehaving, timeout_seconds=60)
    reading = asyncio.create_task(reader.read("hang", TEXT))
    await asyncio.wait({reading}, timeout=1)
    process = reader._process  # pyright: ignore[reportPrivateUsage]
    assert process is not None
    closing = asyncio.create_task(reader.close(kill=at_once))
    await asyncio.sleep(0)
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    assert await asyncio.wait_for(process.wait(), 10) == -signal.SIGKILL
    with pytest.raises(DocumentRejectedError):
        await reading


async def test_a_reader_is_given_no_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "hunter2")
    script = tmp_path / "tell.py"
    script.write_text(
        "import os\nfrom offing.library import reader_process\nreader_process.read_document = lambda n, d: "
        "{'problem': repr(dict(os.environ)), 'remedy': ''}\nreader_process.main()\n"
    )
    async with DocumentReaderPool(1, command=(sys.executable, str(script))) as readers:
        with pytest.raises(DocumentRejectedError) as error:
            await readers.read("a", b"")
    assert "PATH" in error.value.problem
    assert "hunter2" not in error.value.problem


async def test_rejections_carry_their_reason() -> None:
    async with DocumentReaderPool(1) as readers:
        with pytest.raises(DocumentRejectedError, match="archive"):
            await readers.read("a.zip", b"PK\x03\x04" + b"0" * 50)


async def test_many_readers_work_at_once(misbehaving: tuple[str, ...]) -> None:
    """Neither of two files is read to its end before the other was begun."""
    async with DocumentReaderPool(2, timeout_seconds=90, command=misbehaving) as readers:
        results = await asyncio.gather(*(readers.read(name, TEXT) for name in ("meet-1.md", "meet-2.md")))
    assert [document.title for document in results] == ["Pools", "Pools"]


async def test_a_file_that_takes_too_much_processor_time_is_rejected_for_that(misbehaving: tuple[str, ...]) -> None:
    async with DocumentReaderPool(1, command=misbehaving) as readers:
        with pytest.raises(DocumentRejectedError, match="took more than"):
            await readers.read("spin", TEXT)
        assert (await readers.read("fine.md", TEXT)).title == "Pools"


async def test_a_document_waits_for_its_turn_no_longer_than_it_may() -> None:
    async with DocumentReaderPool(1, max_wait_seconds=0.1) as readers:
        async with readers.acquire(), readers.acquire():
            with pytest.raises(ReadersBusyError):
                await readers.read("pools.md", TEXT)
        assert (await readers.read("pools.md", TEXT)).title == "Pools"


async def test_a_reader_that_has_grown_is_replaced_after_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "MAX_READER_BYTES", 0)
    before = set(psutil.Process().children())
    async with DocumentReaderPool(1) as readers:
        assert (await readers.read("pools.md", TEXT)).title == "Pools"
        assert set(psutil.Process().children()) <= before
        assert (await readers.read("pools.md", TEXT)).title == "Pools"


def test_the_readers_of_a_pool_fit_the_machine() -> None:
    assert 1 <= default_reader_count() <= pool.MAX_READERS
    memory = psutil.virtual_memory().total
    assert (
        default_reader_count() == 1 or default_reader_count() * pool.MAX_MEMORY_BYTES <= memory // pool.MEMORY_DIVISOR
    )


async def test_tenants_take_turns_however_many_documents_of_one_wait() -> None:
    many, few = UUID(int=1), UUID(int=2)
    served: list[UUID] = []
    async with DocumentReaderPool(1) as readers:

        async def one(tenant_id: UUID) -> None:
            async with readers.acquire(tenant_id):
                served.append(tenant_id)
                await asyncio.sleep(0)

        async with readers.acquire(), readers.acquire():  # all that there are
            waiting = [asyncio.create_task(one(tenant)) for tenant in (*[many] * 30, few, few)]
            await asyncio.sleep(0.05)
            waiting[1].cancel()  # one that gives up takes nobody's turn
        await asyncio.gather(*waiting, return_exceptions=True)
    assert served.count(many) == 29
    assert [n for n, tenant in enumerate(served) if tenant == few][1] <= 5


async def test_a_turn_that_nobody_wants_any_more_goes_to_the_next() -> None:
    async with DocumentReaderPool(1) as readers:
        for _ in range(50):
            async with readers.acquire(), readers.acquire():
                waiting = asyncio.create_task(one_turn(readers))
                await asyncio.sleep(0)
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
        async with asyncio.timeout(30), readers.acquire(), readers.acquire():
            pass


async def one_turn(readers: DocumentReaderPool) -> None:
    async with readers.acquire():
        pass
