"""The runs of an experiment, the files of finished runs, and the process of each run.

A run is finished when its file exists. Files are complete or absent. Each run is a process, so a run that crashes does
not affect others. Files of the full size are part of the repository, so that another seed adds to the published ones.
"""

import hashlib
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import orjson
from pydantic import TypeAdapter

from offing.garbage_collection import collect_rarely
from tests.results.experiment import Curve, Experiment, Size


@dataclass(frozen=True, slots=True)
class Planned:
    """One run, and the module of its experiment."""

    module: str
    experiment: str
    arm: str
    seed: int

    def __str__(self) -> str:
        return f"{self.experiment}: {self.arm}, seed {self.seed}"


@dataclass(frozen=True, slots=True)
class Finished:
    curve: Curve
    minutes: float
    """Minutes of the whole process."""
    commit: str = ""
    """Commit of the code that ran, see `commit_of_checkout`. Empty if it was not recorded."""
    setting: str = ""
    """Digest of the experiment's setup, see `setting_of`, so that a page never mixes runs of two settings."""


@dataclass(frozen=True, slots=True)
class Folders:
    """Where runs of one size write."""

    curves: Path
    """Files of finished runs, in a folder per experiment."""
    work: Path
    """What runs need and write before that: starting policies, versions, and the output of each process."""


_FINISHED = TypeAdapter(Finished)
_HAS_ONE = re.compile(r"^EXPERIMENT\b", re.MULTILINE)
_ROOT = Path(__file__).parents[2]


def modules() -> list[str]:
    """Return the modules of this folder with an experiment, by name."""
    here = Path(__file__).parent
    return [
        f"tests.results.{file.stem}" for file in sorted(here.glob("*.py")) if _HAS_ONE.search(file.read_text("utf-8"))
    ]


def experiment_in(module: str) -> Experiment:
    result: Experiment = import_module(module).EXPERIMENT
    return result


def planned(module: str, experiment: Experiment, seeds: Sequence[int] = ()) -> list[Planned]:
    """List the runs seed by seed, so that an interrupted call has complete comparisons. No seeds means those of the
    experiment."""
    return [
        Planned(module, experiment.name, arm, seed) for seed in seeds or experiment.seeds for arm in experiment.arms
    ]


def setting_of(experiment: Experiment) -> str:
    """Return a digest of what the page says of the setup. Runs with another one are not shown and run again."""
    return hashlib.sha256(experiment.setup.encode()).hexdigest()[:12]


def is_finished(run: Planned, curves: Path) -> bool:
    """Return whether the run has a result in the present setting."""
    file = file_of(run, curves)
    if not file.is_file():
        return False
    return _FINISHED.validate_json(file.read_bytes()).setting == setting_of(experiment_in(run.module))


def file_of(run: Planned, curves: Path) -> Path:
    return curves / run.experiment / f"{run.arm}-{run.seed}.json"


def finished(experiment: Experiment, curves: Path) -> list[Finished]:
    """Return the finished runs of all seeds in the present setting, ordered by arm and then by seed."""
    results = [_FINISHED.validate_json(file.read_bytes()) for file in (curves / experiment.name).glob("*.json")]
    order = list(experiment.arms)
    known = [one for one in results if one.curve.arm in order and one.setting == setting_of(experiment)]
    return sorted(known, key=lambda one: (order.index(one.curve.arm), one.curve.seed))


def do(run: Planned, folders: Folders, size: Size) -> None:
    """Execute the run in this process."""
    began = time.monotonic()
    experiment = experiment_in(run.module)
    collect_rarely()  # rollouts make many objects and few cycles
    curve = experiment.run(run.arm, run.seed, folders.work, size)
    file = file_of(run, folders.curves)
    file.parent.mkdir(parents=True, exist_ok=True)
    half = file.with_suffix(".half")
    run_as = Finished(curve, (time.monotonic() - began) / 60, commit_of_checkout(), setting_of(experiment))
    half.write_bytes(orjson.dumps(run_as, option=orjson.OPT_INDENT_2))
    half.replace(file)


def commit_of_checkout() -> str:
    """Return the commit of the checkout, with `-dirty` if files differ from it. `unknown` without git.

    Pages and curves, which runs write, do not count as a difference.
    """
    try:
        commit = _git("rev-parse", "--short=7", "HEAD")
        changed = _git("status", "--porcelain", "--untracked-files=no", "--", ".", ":(exclude)docs/results")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return f"{commit}-dirty" if changed else commit


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=_ROOT, capture_output=True, text=True, check=True).stdout.strip()


def do_all(
    runs: Sequence[Planned], folders: Folders, size: Size, at_once: int = 1, say: Callable[[str], None] = print
) -> list[Planned]:
    """Execute the runs that are not finished, each in its own process, and return those that failed."""
    missing = [run for run in runs if not is_finished(run, folders.curves)]
    say(f"{len(runs)} runs, {len(runs) - len(missing)} of them finished earlier")

    def one(run: Planned) -> Planned | None:
        return None if _in_a_process(run, folders, size, say) else run

    with ThreadPoolExecutor(at_once) as pool:
        return [run for run in pool.map(one, missing) if run is not None]


def _in_a_process(run: Planned, folders: Folders, size: Size, say: Callable[[str], None]) -> bool:
    log = folders.work / "logs" / run.experiment / f"{run.arm}-{run.seed}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "tests.results", "--run", run.module, run.arm, str(run.seed)]
    command += ["--folder", str(folders.work.resolve()), "--curves", str(folders.curves.resolve()), "--size", size]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"}
    began = time.monotonic()
    say(f"  {run} …")
    with log.open("wb") as text:
        code = subprocess.run(command, cwd=_ROOT, env=environment, stdout=text, stderr=subprocess.STDOUT).returncode
    took = f"{time.monotonic() - began:.0f} s"
    if code == 0:
        say(f"  {run}: {took}")
        return True
    last = log.read_text("utf-8", "replace").rstrip().rpartition("\n")[2]
    say(f"  {run}: failed after {took} with {code}: {last} (complete log: {log})")
    return False
