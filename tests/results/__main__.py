"""`make results`: run what is missing, then write one page and one chart per experiment to docs/results.

    .venv/bin/python -m tests.results [--only PREFIX ...] [--seeds SEED ...] [--at-once N] [--size miniature]

A finished run is stored under docs/results/curves, or under .results for the size miniature, and is not repeated; to
repeat it, delete its file. The command starts itself with `--run` for each run. The exit code is 1 if a run failed.
"""

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tests.results import pages, runs
from tests.results.experiment import Experiment, Size

DOCS = Path("docs/results")


def main(argv: Sequence[str]) -> int:
    inputs = _arguments(argv)
    size, folders = Size(inputs.size), _folders(inputs)
    if inputs.run:
        module, arm, seed = inputs.run
        runs.do(runs.Planned(module, runs.experiment_in(module).name, arm, int(seed)), folders, size)
        return 0
    began = time.monotonic()
    docs = DOCS if size is Size.FULL else inputs.folder / size / "pages"
    if not (chosen := _chosen(inputs.only)):
        return 1
    failed = [run for one in chosen for run in _measured(*one, inputs, folders, docs)]
    print(f"{(time.monotonic() - began) / 60:.1f} minutes, {len(failed)} runs failed")
    return 1 if failed else 0


def _folders(inputs: argparse.Namespace) -> runs.Folders:
    if inputs.curves is not None:
        return runs.Folders(inputs.curves, inputs.folder)
    return runs.Folders(DOCS / "curves" if inputs.size == Size.FULL else inputs.folder / inputs.size, inputs.folder)


def _measured(
    module: str, experiment: Experiment, inputs: argparse.Namespace, folders: runs.Folders, docs: Path
) -> list[runs.Planned]:
    """Those of its runs that failed."""
    size = Size(inputs.size)
    print(f"{experiment.name}: {experiment.title}", flush=True)
    plan = runs.planned(module, experiment, inputs.seeds)
    failed = runs.do_all(plan, folders, size, inputs.at_once, lambda line: print(f"  {line}", flush=True))
    if done := runs.finished(experiment, folders.curves):
        print(f"  {pages.write(experiment, done, docs)}")
    return failed


def _chosen(only: Sequence[str]) -> list[tuple[str, Experiment]]:
    """None named: all."""
    every = [(module, runs.experiment_in(module)) for module in runs.modules()]
    results = [one for one in every if not only or one[1].name.startswith(tuple(only))]
    if not results:
        names = ", ".join(one.name for _, one in every)
        print(f"No experiment name starts with {' or '.join(only)}. The experiments are {names}.")
    return results


def _arguments(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.results")
    parser.add_argument("--only", nargs="*", default=[], help="only experiments whose names start with one of these")
    parser.add_argument("--seeds", nargs="*", type=int, default=[])
    parser.add_argument("--at-once", type=int, default=1, help="number of runs in parallel")
    parser.add_argument("--size", choices=list(Size), default=Size.FULL)
    parser.add_argument("--folder", type=Path, default=Path(".results"), help="starting policies and output of runs")
    parser.add_argument("--curves", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--run", nargs=3, metavar=("MODULE", "ARM", "SEED"), help=argparse.SUPPRESS)
    return parser.parse_args(argv)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        print("stopped; the same command continues from here")
        sys.exit(130)
