"""Rule of the router in a synthetic world."""

from offing.sdk import RuleContext
from offing_graphs.router.schemas import Chance, Mode, Route, RouterInput


def estimate_by_rule(inputs: RouterInput, _context: RuleContext) -> Route:
    """Estimate by rule: in a synthetic world only the loop can make look-ups."""
    chances = tuple(Chance(mode=o.mode, chance=float(o.mode is Mode.AGENTIC)) for o in inputs.options)
    return Route(why="A question about a made-up world.", chances=chances)
