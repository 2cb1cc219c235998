"""Test kit for graph authors: runs a graph in process.

Answers are scripted, the clock is virtual, and documents are in memory. The test kit follows all
rules of the platform that a graph can notice: the order of steps, recorded results after a crash,
argument schemas, tool policies, budgets, checkpoints of plain data, and the verification of every
quote.
"""

from offing.core.input_request import InputResponse
from offing.testing.clock import VirtualClock
from offing.testing.faults import RecoveryMismatchError, assert_survives_worker_loss
from offing.testing.recording import Recording, RecordingMismatchError, replay_recording
from offing.testing.scenario import OutOfAnswersError, Scenario
from offing.testing.simulation import SimulatedRun, simulate_run
from offing.testing.simulation_store import WorkerLost

__all__ = [
    "InputResponse",
    "OutOfAnswersError",
    "Recording",
    "RecordingMismatchError",
    "RecoveryMismatchError",
    "Scenario",
    "SimulatedRun",
    "VirtualClock",
    "WorkerLost",
    "assert_survives_worker_loss",
    "replay_recording",
    "simulate_run",
]
