"""What a run has done and seen so far, as the tool policy needs it: the only home of that value.

Pure; whoever runs tools fills it. It does not know how text becomes untrusted, nor where the numbers come from.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from offing.core.policy.copying import NOTHING_SEEN, Seen


@dataclass(frozen=True, slots=True)
class PolicyContext:
    """A moment of one run. The defaults are those of a run that has done and seen nothing."""

    used: Mapping[str, int] = field(default_factory=dict[str, int])
    """Calls of each tool that were allowed so far, those of earlier claims included."""
    received: Mapping[str, int] = field(default_factory=dict[str, int])
    """Bytes that each tool has answered so far, as UTF-8 JSON."""
    tainted: bool = False
    """Untrusted text has entered the run's context. It never becomes False again."""
    seen: Seen = NOTHING_SEEN
    """The untrusted text that entered, to recognise copies of it."""
    known_hosts: frozenset[str] = frozenset()
    """Hosts that the user or search results named, in lower case ASCII and without a port, and whole e-mail addresses,
    in lower case. Whatever goes to another place is going somewhere new."""
    known_addresses: frozenset[str] = frozenset()
    """Whole addresses that the user or search results gave, or that pages were read at, as `core.url` writes them. Any
    other address at a known host must not hold what was copied behind its host."""
    stands_in: bool = False
    """The call takes another's place by a replace rule, and is not replaced again."""


FRESH = PolicyContext()
