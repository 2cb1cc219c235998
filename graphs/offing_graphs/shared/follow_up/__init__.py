"""Follow-ups on the report of a thread: questions on it, edits of it, and new research merged into it.

The included graphs share this flow. `add_follow_up` puts it before their first node, and their reports are
submitted through `submit_findings`.
"""

from offing_graphs.shared.follow_up.flow import FOLLOW_UP, add_follow_up
from offing_graphs.shared.follow_up.submit import submit_findings

__all__ = ["FOLLOW_UP", "add_follow_up", "submit_findings"]
