"""Runs a program where the kernel rejects new user namespaces, as a container's default filter does.

Run as `without_namespaces.py program arguments`, by root. The filter answers `unshare` with EPERM and is inherited.
"""

import ctypes
import os
import platform
import struct
import sys

UNSHARE = {"x86_64": 272, "aarch64": 97}
PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 22, 2
LOAD_WORD, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, REFUSE = 0x7FFF0000, 0x00050000 | 1


def main(argv: list[str]) -> None:
    instructions = [
        (LOAD_WORD, 0, 0, 0),
        (JUMP_IF_EQUAL, 0, 1, UNSHARE[platform.machine()]),
        (RETURN, 0, 0, REFUSE),
        (RETURN, 0, 0, ALLOW),
    ]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *i) for i in instructions))
    program = struct.pack("HxxxxxxP", len(instructions), ctypes.addressof(code))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.c_char_p(program)) != 0:
        sys.exit(f"the filter was not accepted: {os.strerror(ctypes.get_errno())}")
    os.execv(argv[0], argv)


main(sys.argv[1:])
