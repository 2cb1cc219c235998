"""State of a run that the tool policy needs to decide a call.

The caller that executes tools fills in the values.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from offing.core.tool_policy.copy_detection import NO_SHINGLES, UntrustedShingles


@dataclass(frozen=True, slots=True)
class ToolCallContext:
    """State of a run at one tool call. The defaults describe a run that has not done anything yet."""

    call_counts: Mapping[str, int] = field(default_factory=dict[str, int])
    """Number of allowed calls of each tool so far, including earlier claims."""
    received_bytes: Mapping[str, int] = field(default_factory=dict[str, int])
    """Number of bytes that each tool has returned so far, as UTF-8 JSON."""
    is_tainted: bool = False
    """Whether untrusted text has entered the run's context. It never becomes `False` again."""
    untrusted_shingles: UntrustedShingles = NO_SHINGLES
    """Untrusted text that has entered the run's context, to recognize copies of it."""
    known_hosts: frozenset[str] = frozenset()
    """Hosts and email addresses that the user or search results named.

    Hosts are in lower-case ASCII and without a port, email addresses in lower case. Any other
    destination is new to the run.
    """
    known_urls: frozenset[str] = frozenset()
    """Full URLs that the user or search results named, or from which pages were read.

    They are in the form that `core.url` writes. The path and query of any other URL at a known host
    must not contain copied text.
    """
    is_substitute: bool = False
    """Whether the call replaces another one by a replace rule. It is then not replaced again."""


NEW_RUN_CONTEXT = ToolCallContext()
