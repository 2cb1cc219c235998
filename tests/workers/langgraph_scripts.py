"""What the models of the LangGraph graphs say in tests, and the answers that the graphs then come to."""

from dataclasses import dataclass, field
from typing import Any

from offing.core.model import EngineConfig
from offing.core.run import Budget
from offing.services.runs import RunRequest

PACKAGE = "tests.graphs.langgraph_only"

NAMES = (
    "react",
    "supervisor",
    "map_reduce",
    "swarm",
    "review",
    "reader",
    "durable_side_effect",
    "functional",
    "subgraph_memory",
)

GRAPHS = ",".join(f"{PACKAGE}.{name}:graph" for name in NAMES)


@dataclass(frozen=True)
class Play:
    """A question to a graph, its models' lines, and what must come of it."""

    graph: str
    question: str
    lines: dict[str, dict[str, Any]]
    answer: str
    calls: int
    """Of models."""
    turns: int = 12
    notes: tuple[str, ...] = field(default=())

    def request(self, *, delay_ms: int = 0, thread: Any = None) -> RunRequest:
        engines = {
            role: EngineConfig(engine="scripted", options={"speaks": True, "delay_ms": delay_ms, **script})
            for role, script in self.lines.items()
        }
        return RunRequest(
            self.question, self.graph, engines=engines, budget=Budget(max_turns=self.turns), thread_id=thread
        )


def says(text: str) -> dict[str, Any]:
    return {"text": text}


def calls(tool: str, **args: Any) -> dict[str, Any]:
    return {"calls": [{"name": tool, "args": args}]}


def case(contains: str, answer: dict[str, Any]) -> dict[str, Any]:
    return {"contains": contains, "answer": answer}


REACT = Play(
    "plain_react",
    "How warm are Oslo and Rome together?",
    {
        "agent": {
            "answers": [
                {"calls": [*calls("get_weather", city="Oslo")["calls"], *calls("get_weather", city="Rome")["calls"]]},
                calls("add", a=4, b=19),
                says("Together they have 23 degrees."),
            ]
        }
    },
    "Together they have 23 degrees.",
    3,
)

SUPERVISOR = Play(
    "plain_supervisor",
    "How many moons have three Jupiters?",
    {
        "supervisor": {
            "answers": [calls("Route", next="FINISH")],
            "cases": [
                case("three Jupiters", calls("Route", next="researcher")),
            ],
        },
        "researcher": {
            "answers": [says("It has 17 moons.")],
            "cases": [case("three Jupiters", calls("look_up", subject="Jupiter"))],
        },
        "mathematician": {"answers": [says("51")]},
    },
    "It has 17 moons.",
    4,
)

MAP_REDUCE = Play(
    "plain_map_reduce",
    "animals",
    {
        "writer": {
            "answers": [says("nothing")],
            "cases": [
                case("Name subjects", calls("Subjects", subjects=["cats", "dogs", "owls", "eels"])),
                case("verse about cats", says("A cat on a mat.")),
                case("verse about dogs", says("A dog in the fog.")),
                case("verse about owls", says("An owl on the prowl.")),
                case("verse about eels", says("An eel on a wheel.")),
                case("Choose the best", calls("Best", id=2)),
            ],
        }
    },
    "An owl on the prowl.",
    6,
)

SWARM = Play(
    "plain_swarm",
    "Get me to Rome, and a bed.",
    {
        "flights": {
            "answers": [says("lost")],
            "cases": [
                case("Get me to Rome", calls("book_flight", to="Rome")),
                case("Flight to Rome is booked", calls("transfer_to_hotels")),
            ],
        },
        "hotels": {
            "answers": [says("lost")],
            "cases": [
                case("Handed over to hotels", calls("book_hotel", city="Rome")),
                case("Hotel in Rome is booked", says("Flight and hotel are booked.")),
            ],
        },
    },
    "Flight and hotel are booked.",
    4,
)

REVIEW = Play(
    "plain_review",
    "Write to the landlord.",
    {
        "author": {
            "answers": [says("Dear landlord, the roof leaks.")],
            "cases": [case("Change it: be warmer", says("Dear Ms Berg, sadly the roof leaks."))],
        }
    },
    "Dear Ms Berg, sadly the roof leaks.",
    2,
    notes=("draft 1 is being written", "written", "draft 2 is being written", "written"),
)

FUNCTIONAL = Play(
    "plain_functional",
    "the hall",
    {
        "agent": {
            "answers": [says("lost")],
            "cases": [
                case("the hall outside", says("red")),
                case("the hall inside", says("dark")),
                case("Join: red / dark", says("Red outside, dark inside.")),
            ],
        }
    },
    "Red outside, dark inside.",
    3,
)

REMEMBERING = Play(
    "plain_remembering",
    "Look around.",
    {
        "thinker": {
            "answers": [says("lost")],
            "cases": [
                case("Look around.", says("I see a door.")),
                case("Noted: one, two.", says("Done: one, two.")),
                case("Noted: one.", says("I see a window.")),
            ],
        },
        "noter": {
            "answers": [says("lost")],
            "cases": [
                case("Notes so far: none.", says("one")),
                case("Notes so far: one.", says("two")),
                case("Notes so far: one, two.", says("three")),
            ],
        },
    },
    "Done: one, two.",
    5,
)

PLAYS = (REACT, SUPERVISOR, MAP_REDUCE, SWARM)
"""Those that nobody is asked in."""
