"""Limits of one execution: time, memory, processes, output and files."""

from dataclasses import dataclass

MEBIBYTE = 1 << 20


@dataclass(frozen=True, slots=True)
class SandboxLimits:
    """Limits of one execution."""

    timeout_seconds: float = 30.0
    """Maximum seconds of wall-clock time. Each process has the same limit on processor time."""
    max_memory_bytes: int = 1024 * MEBIBYTE
    """Maximum bytes: address space of each process, and resident memory of all together."""
    max_processes: int = 32
    """Maximum number of processes, including threads."""
    max_output_bytes: int = 64 * 1024
    """Bytes of standard output that are kept, and the same for standard error. At 16 times as many the code is stopped.
    """
    max_file_bytes: int = 8 * MEBIBYTE
    """Maximum bytes of one file."""
    max_files: int = 16
    """Maximum number of output files."""
    max_total_bytes: int = 32 * MEBIBYTE
    """Maximum bytes of all files in the workspace and of all output files."""


DEFAULT_LIMITS = SandboxLimits()
