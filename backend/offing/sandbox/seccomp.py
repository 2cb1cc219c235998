"""Build the seccomp filter that denies system calls which sandboxed code does not need.

Namespaces and limits do the rest. The filter reduces the attack surface of the kernel and closes gaps that
they leave, such as sockets that belong to no network namespace.
"""

import platform
import struct
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

EPERM, EAFNOSUPPORT, ENOSYS = 1, 97, 38

_LOAD, _JUMP_EQUAL, _JUMP_ABOVE, _JUMP_ANY, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL, _ERROR = 0x7FFF0000, 0x80000000, 0x00050000
_NUMBER, _ARCHITECTURE, _FIRST, _SECOND, _THIRD = 0, 4, 16, 24, 32
"""Offsets in seccomp_data: the number, the architecture, and the low halves of three arguments."""

NEW_NAMESPACES = 0x7E020000
"""Flags of clone: cgroup, uts, ipc, user, pid, net and mount."""

X32 = 0x40000000
"""Numbers from here on belong to the x32 ABI on x86-64."""

AF_UNIX = 1
TIOCSTI, TIOCLINUX = 0x5412, 0x541C

SOCKET_OPTIONS = {
    "SO_SNDBUF": 7,
    "SO_RCVBUF": 8,
    "SO_ATTACH_FILTER": 26,
    "SO_SNDBUFFORCE": 32,
    "SO_RCVBUFFORCE": 33,
    "SO_ATTACH_BPF": 50,
    "SO_ATTACH_REUSEPORT_CBPF": 51,
    "SO_ATTACH_REUSEPORT_EBPF": 52,
    "SO_ZEROCOPY": 60,
}
"""Socket options that increase kernel memory. They are denied at any level, because socket pairs have no other."""

FILE_COMMANDS = {"F_OFD_SETLK": 37, "F_OFD_SETLKW": 38, "F_NOTIFY": 1026, "F_SETPIPE_SZ": 1031}
"""Commands of fcntl that do the same for a pipe, a file or a folder."""

ASM_GENERIC = {
    "clone": 220, "clone3": 435, "socket": 198, "socketpair": 199, "ioctl": 29, "setsockopt": 208, "fcntl": 25,
}  # fmt: skip
"""Calls whose arguments are checked, with their numbers on aarch64."""

X86_64 = {"clone": 56, "clone3": 435, "socket": 41, "socketpair": 53, "ioctl": 16, "setsockopt": 54, "fcntl": 72}

DENIED_CALLS: Mapping[str, tuple[int | None, int | None]] = {
    # name: number on x86-64, and on aarch64; None: the machine does not have it
    "unshare": (272, 97),
    "setns": (308, 268),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "open_tree_attr": (467, 467),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "kcmp": (312, 272),
    "pidfd_getfd": (438, 438),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "reboot": (169, 142),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "acct": (163, 89),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "syslog": (103, 116),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "clock_adjtime": (305, 266),
    "adjtimex": (159, 171),
    "personality": (135, 92),
    "vhangup": (153, 58),
    "iopl": (172, None),
    "ioperm": (173, None),
    "modify_ldt": (154, None),
    "lookup_dcookie": (212, 18),
    "nfsservctl": (180, 42),
    "fanotify_init": (300, 262),
    "move_pages": (279, 239),
    "migrate_pages": (256, 238),
    "mbind": (237, 235),
    "set_mempolicy": (238, 237),
    # Memory that neither a process limit nor the size of a file system counts.
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "shmget": (29, 194),
    "msgget": (68, 186),
    "semget": (64, 190),
    "mq_open": (240, 180),
    # Queues whose length grows with the names of senders or with connections that are never accepted.
    "bind": (49, 200),
    "listen": (50, 201),
    "connect": (42, 203),
    "accept": (43, 202),
    "accept4": (288, 242),
    # Pages that stay in a pipe after the process has released them; a slot can hold a huge page.
    "vmsplice": (278, 75),
    "splice": (275, 76),
    "tee": (276, 77),
    # Kernel memory for watches, contexts, rules and attributes.
    "inotify_init": (253, None),
    "inotify_init1": (294, 26),
    "io_setup": (206, 0),
    "landlock_create_ruleset": (444, 444),
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    "setxattrat": (463, 463),
}


@dataclass(frozen=True, slots=True)
class Architecture:
    """A processor architecture with its numbers in the kernel."""

    audit_arch: int
    argument_checks: Mapping[str, int]
    syscall_column: int
    """Column in `DENIED_CALLS`."""
    has_x32: bool = False


ARCHITECTURES = {
    "x86_64": Architecture(0xC000003E, X86_64, 0, has_x32=True),
    "aarch64": Architecture(0xC00000B7, ASM_GENERIC, 1),
}


def build_filter(machine_name: str = "") -> bytes:
    """Return the filter in the form that the kernel reads.

    An empty `machine_name` means this machine. Raises KeyError for one whose numbers are unknown.
    """
    kind = ARCHITECTURES[machine_name or platform.machine()]
    lines = [
        _load_instruction(_ARCHITECTURE),
        _jump_instruction(_JUMP_EQUAL, kind.audit_arch, 1, 0),
        _return_instruction(_KILL),
        _load_instruction(_NUMBER),
    ]
    if kind.has_x32:
        lines += [_jump_instruction(_JUMP_ABOVE, X32, 0, 1), _return_instruction(_KILL)]
    denied_numbers = sorted(
        number for pair in DENIED_CALLS.values() if (number := pair[kind.syscall_column]) is not None
    )
    for number in denied_numbers:
        lines += [_jump_instruction(_JUMP_EQUAL, number, 0, 1), _errno_action(EPERM)]
    lines += _argument_instructions(kind.argument_checks)
    return b"".join([*lines, _return_instruction(_ALLOW)])


def _argument_instructions(numbers: Mapping[str, int]) -> Iterable[bytes]:
    """Yield instructions for calls that depend on an argument.

    Each loads the number again, which the check overwrites.
    """
    # glibc falls back to clone, whose flags can be checked; those of clone3 are in memory
    yield from (_jump_instruction(_JUMP_EQUAL, numbers["clone3"], 0, 1), _errno_action(ENOSYS))
    yield from (_jump_instruction(_JUMP_EQUAL, numbers["clone"], 0, 4), _load_instruction(_FIRST))
    yield from (_jump_instruction(_JUMP_ANY, NEW_NAMESPACES, 0, 1), _errno_action(EPERM), _return_instruction(_ALLOW))
    yield from (_jump_instruction(_JUMP_EQUAL, numbers["socket"], 0, 1), _errno_action(EAFNOSUPPORT))
    yield from (_jump_instruction(_JUMP_EQUAL, numbers["socketpair"], 0, 4), _load_instruction(_FIRST))
    yield from (_jump_instruction(_JUMP_EQUAL, AF_UNIX, 1, 0), _errno_action(EAFNOSUPPORT), _return_instruction(_ALLOW))
    yield from _deny_argument_values(numbers["ioctl"], _SECOND, (TIOCSTI, TIOCLINUX))
    yield from _deny_argument_values(numbers["fcntl"], _SECOND, FILE_COMMANDS.values())
    yield from _deny_argument_values(numbers["setsockopt"], _THIRD, SOCKET_OPTIONS.values())


def _deny_argument_values(number: int, argument: int, values: Collection[int]) -> Iterable[bytes]:
    """Yield instructions that deny a call whose argument has one of these values, and allow it otherwise."""
    yield from (_jump_instruction(_JUMP_EQUAL, number, 0, len(values) + 3), _load_instruction(argument))
    for behind, value in zip(range(len(values), 0, -1), values, strict=True):
        yield _jump_instruction(_JUMP_EQUAL, value, behind, 0)
    yield from (_return_instruction(_ALLOW), _errno_action(EPERM))


def _load_instruction(offset: int) -> bytes:
    return struct.pack("<HBBI", _LOAD, 0, 0, offset)


def _jump_instruction(code: int, value: int, met: int, unmet: int) -> bytes:
    """Return a jump. `met` and `unmet` are the numbers of instructions to skip if the comparison holds or not."""
    return struct.pack("<HBBI", code, met, unmet, value)


def _return_instruction(action: int) -> bytes:
    return struct.pack("<HBBI", _RETURN, 0, 0, action)


def _errno_action(number: int) -> bytes:
    return _return_instruction(_ERROR | number)
