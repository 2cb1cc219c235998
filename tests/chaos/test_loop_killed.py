"""A closed loop, from a weak start to a promoted version, while everything that it depends on is killed with -9.

It continues by itself when a program of its stack is killed, and with the same command when it is killed itself; either
way it ends as if nothing had happened, with the same batches, rollouts, steps and versions.
"""

import pytest

from tests.chaos.loop_trial import END, START, Home, complaints, killed, strike

pytestmark = [pytest.mark.chaos, pytest.mark.slow, pytest.mark.timeout(900)]

PHASES = [
    (f"evaluating {START}", 1, True),
    ("loop waiting", 1, True),
    ("loop forward", 2, False),
    ("loop saving", 3, False),
]
"""Phase, the how manieth time it is said, and whether to wait for a rollout to be under way."""


VICTIMS = ("engine", "worker", "valkey", "postgres")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Each turn kills another program in each phase; four turns kill every program in every phase (`make chaos`)."""
    if "turn" in metafunc.fixturenames:
        moments = int(str(metafunc.config.getoption("--moments")))
        metafunc.parametrize("turn", range(min(len(VICTIMS), max(1, moments // 2))))


def test_a_loop_continues_by_itself_when_a_program_is_killed_in_every_phase(begun: Home, turn: int) -> None:
    begun.back_to("begun")
    victims = [VICTIMS[(n + turn) % len(VICTIMS)] for n in range(len(PHASES))]
    struck = list(zip(PHASES, victims, strict=True))
    ran = begun.loop(*(strike(phase, victim, times=times, amid=amid) for (phase, times, amid), victim in struck))
    assert ran.code == 0, ran.output
    assert ran.struck == [f"{phase}: {victim}" for (phase, _, _), victim in struck]
    assert complaints(begun, faults=True) == []


def test_a_loop_that_is_killed_in_every_phase_continues_with_the_same_command(begun: Home) -> None:
    begun.back_to("begun")
    for phase, amid in [
        ("loop waiting", True),
        ("loop forward", False),
        ("loop saving", False),
        (f"evaluating {END}", True),
    ]:
        ran = begun.loop(strike(phase, "loop", amid=amid))
        assert killed(ran), ran.output
    last = begun.loop()
    assert last.code == 0, last.output
    assert complaints(begun, faults=True) == []
