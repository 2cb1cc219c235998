"""The filter of system calls, run by a small machine of its own: both processors are tried, whichever this one is."""

import struct

import pytest

from offing.sandbox.seccomp import (
    ARCHITECTURES,
    ASM_GENERIC,
    DENIED_CALLS,
    FILE_COMMANDS,
    SOCKET_OPTIONS,
    X86_64,
    build_filter,
)

ALLOWED, KILLED = 0x7FFF0000, 0x80000000
NUMBERS = {"x86_64": X86_64, "aarch64": ASM_GENERIC}
OTHER = {"x86_64": {"read": 0, "execve": 59, "fork": 57}, "aarch64": {"read": 63, "execve": 221, "openat": 56}}


def decided(
    machine: str, number: int, first: int = 0, second: int = 0, third: int = 0, *, audit: int | None = None
) -> int:
    """What the filter answers to a call."""
    data = struct.pack("<IIQ6Q", number, audit or ARCHITECTURES[machine].audit_arch, 0, first, second, third, 0, 0, 0)
    lines = list(struct.iter_unpack("<HBBI", build_filter(machine)))
    at, loaded = 0, 0
    while True:
        code, met, unmet, value = lines[at]
        at += 1
        if code == 0x20:
            (loaded,) = struct.unpack_from("<I", data, value)
        elif code == 0x06:
            return value
        else:
            holds = {0x15: loaded == value, 0x35: loaded >= value, 0x45: bool(loaded & value)}[code]
            at += met if holds else unmet


def error(number: int) -> int:
    return 0x00050000 | number


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_what_sandboxed_code_needs_is_allowed_and_what_is_listed_is_rejected(machine: str) -> None:
    assert {decided(machine, number) for number in OTHER[machine].values()} == {ALLOWED}
    column = ARCHITECTURES[machine].syscall_column
    assert {decided(machine, pair[column]) for pair in DENIED_CALLS.values() if pair[column] is not None} == {error(1)}  # pyright: ignore[reportArgumentType]
    assert decided(machine, OTHER[machine]["read"], audit=0x40000003) == KILLED
    if machine == "x86_64":
        assert decided(machine, 0x40000000 + 39) == KILLED


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_calls_are_decided_by_their_arguments(machine: str) -> None:
    calls = NUMBERS[machine]
    assert decided(machine, calls["clone"], 0x01200011) == ALLOWED
    assert decided(machine, calls["clone"], 0x003D0F00) == ALLOWED
    for bit in (0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000):
        assert decided(machine, calls["clone"], 17 | bit) == error(1)
    assert decided(machine, calls["clone3"]) == error(38)
    assert decided(machine, calls["socketpair"], 1) == ALLOWED
    assert {decided(machine, calls["socketpair"], family) for family in (0, 2, 10, 16, 17, 38, 40)} == {error(97)}
    assert {decided(machine, calls["socket"], family) for family in (0, 1, 2, 10, 16, 17, 38, 40)} == {error(97)}
    assert decided(machine, calls["ioctl"], 0, 0x5401) == ALLOWED
    assert {decided(machine, calls["ioctl"], 0, what) for what in (0x5412, 0x541C)} == {error(1)}


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_no_option_and_no_command_makes_the_kernel_hold_more(machine: str) -> None:
    setsockopt, fcntl = NUMBERS[machine]["setsockopt"], NUMBERS[machine]["fcntl"]
    for level in (0, 1, 255):
        options = SOCKET_OPTIONS.values()
        assert {decided(machine, setsockopt, 3, level, option) for option in options} == {error(1)}
        assert {decided(machine, setsockopt, 3, level, option) for option in (1, 2, 16, 20, 21)} == {ALLOWED}
    assert {decided(machine, fcntl, 3, command) for command in FILE_COMMANDS.values()} == {error(1)}
    assert {decided(machine, fcntl, 3, command) for command in (0, 1, 2, 3, 4, 5, 6, 7, 1030, 1032)} == {ALLOWED}
