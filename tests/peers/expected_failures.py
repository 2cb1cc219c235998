"""Why something does not work yet, in words. A test that is expected to fail for a reason tells when it passes."""

BEGUN_AGAIN = (
    "Each slice is an invocation of its own for LangGraph, so that its count of steps begins again with it, and the"
    " limit on them may never be reached."
)
