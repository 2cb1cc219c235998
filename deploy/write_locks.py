"""Write all lock files.

Run `make lock`, or `make lock ARGS="--upgrade-package redis"` to upgrade one package. Pins that
still fit are kept. Each Python requirement gets the hashes of all its files in the registry, for
every platform, and each npm package gets its integrity. `ARGS` are passed to each `uv pip compile`.
"""

import json
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
UV = Path(sys.executable).with_name("uv")

BASE = "requirements.lock"
BUILD = "requirements-build.lock"
TRAIN = "requirements-train.lock"
CUDA = "requirements-cuda.lock"
CPU = "requirements-cpu.lock"
PEERS = "requirements-peers.lock"

HEADERS = {
    BASE: "Requirements for running, testing and checking.",
    BUILD: "uv, hatchling and their requirements, which install and build the rest.",
    TRAIN: "Additional requirements of the extras `train` and `dev-train`.",
    CUDA: "Additional requirements of the registry's build of torch for Linux. A CPU build needs none of them.",
    CPU: "CPU builds of torch, which the registry does not have. If pip's setting `find-links` names a folder with one,"
    " it is installed, and its hash must be one of these. Otherwise the registry's build is installed.",
    PEERS: "Additional requirements of the group `peers`: third-party graphs for tests/peers, without packages that"
    " those tests do not use.",
}

CPU_BUILDS = {
    "torch==2.13.0": {
        "torch-2.13.0+cpu-cp311-cp311-manylinux_2_28_x86_64.whl": (
            "sha256:6746dbcbeb526eb61330b76b41ff1b4eb848951103a892eeb080dfa2b264667b"
        ),
    },
}
"""Hashes of CPU builds, by the registry's pin and by file name. `pip hash FILE` prints one."""

UNRESOLVED_EXTRAS = {
    "deepagents": ["langchain-google-genai"],
    "langgraph-reflection": ["mypy"],
    "open-deep-research": [
        *("arxiv", "azure-identity", "azure-search", "azure-search-documents", "beautifulsoup4", "build"),
        *("duckduckgo-search", "exa-py", "ipykernel", "langchain-community", "langchain-deepseek", "langchain-groq"),
        *("langchain-google-vertexai", "langchain-mcp-adapters", "langchain-tavily", "langgraph-cli", "linkup-sdk"),
        *("markdownify", "pymupdf", "setuptools", "supabase", "wheel", "xmltodict"),
    ],
}
"""Requirements of packages in the group `peers` that tests/peers does not use. Some of them conflict
with our pins, and the rest is several hundred megabytes. `pip check` in the Makefile ignores these
packages.
"""

FOR_CUDA = re.compile(r"(nvidia|cuda)-|triton$")
"""Names of packages that only the CUDA build of torch needs."""

Lock = dict[str, str]
"""Entries of each package by name: pin, marker and hashes, in uv's format. One entry, or one per range of Python
versions.
"""


def main(options: list[str]) -> None:
    base = compile_lock([BASE], ["pyproject.toml", "--extra=dev"], options)
    write_lock(BASE, base)
    write_lock(BUILD, compile_lock([BUILD], ["--group=pyproject.toml:build", f"--constraint={BASE}"], options))
    extras = ["pyproject.toml", "--extra=train", "--extra=dev-train", f"--constraint={BASE}"]
    compiled = compile_lock([TRAIN, CUDA], extras, options)
    added = {name: entry for name, entry in compiled.items() if name not in base}
    write_lock(TRAIN, {name: entry for name, entry in added.items() if not FOR_CUDA.match(name)})
    write_lock(CUDA, {name: entry for name, entry in added.items() if FOR_CUDA.match(name)})
    write_lock(CPU, cpu_builds(compiled["torch"].split()[0]))
    peers = compile_peers([f"--constraint={BASE}", f"--constraint={TRAIN}", *options])
    write_lock(PEERS, {name: entry for name, entry in peers.items() if name not in base | compiled})
    write_npm_lock(ROOT / "frontend")


def compile_lock(pinned_by: list[str], inputs: list[str], options: list[str]) -> Lock:
    """Resolve `inputs` for all platforms and Python versions.

    uv prefers the pins of the locks in `pinned_by`.
    """
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "lock"
        output.write_text("".join((ROOT / lock).read_text() for lock in pinned_by if (ROOT / lock).is_file()))
        flags = ["--universal", "--python-version=3.11", "--generate-hashes", "--no-header", "--no-annotate"]
        command = [str(UV), "pip", "compile", "--quiet", "--no-emit-index-url", *flags, *inputs, *options]
        subprocess.run([*command, f"--output-file={output}"], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        return parse_lock(output.read_text())


def compile_peers(options: list[str]) -> Lock:
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as excluded:
        excluded.write("\n".join(name for names in UNRESOLVED_EXTRAS.values() for name in names))
        excluded.flush()
        return compile_lock([PEERS], ["--group=pyproject.toml:peers", f"--excludes={excluded.name}"], options)


def parse_lock(text: str) -> Lock:
    """Return the entries of a lock. Lines before the first pin are left out."""
    lock: Lock = {}
    for name, rest in re.findall(r"^([\w.-]+)(==.*\n(?: .*\n)*)", text, re.MULTILINE):
        lock[name] = lock.get(name, "") + name + rest
    return lock


def cpu_builds(pin: str) -> Lock:
    """Return the entry of the CPU builds of torch for the registry's `pin`. Empty if none is known."""
    hashes = CPU_BUILDS.get(pin, {}).values()
    return {"torch": f"{pin}+cpu" + "".join(f" \\\n    --hash={digest}" for digest in hashes) + "\n"} if hashes else {}


def write_lock(lock: str, entries: Lock) -> None:
    header = textwrap.fill(f"{HEADERS[lock]} Written by `make lock`.", 118, initial_indent="# ", subsequent_indent="# ")
    (ROOT / lock).write_text(header + "\n" + "".join(entries.values()))


def write_npm_lock(frontend_dir: Path) -> None:
    """Resolve the npm packages in an empty folder, because npm omits the integrity of installed packages."""
    with tempfile.TemporaryDirectory() as folder:
        for name in ("package.json", "package-lock.json", ".npmrc"):
            shutil.copy(frontend_dir / name, folder)
        lock = Path(folder) / "package-lock.json"
        remove_unchecked(lock)
        command = ["npm", "install", "--package-lock-only", "--ignore-scripts", "--no-audit", "--no-fund"]
        subprocess.run([*command, "--loglevel=error"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        if remove_unchecked(lock):
            sys.exit(f"npm wrote no integrity for some packages. {frontend_dir / 'package-lock.json'} is unchanged.")
        shutil.copy(lock, frontend_dir)


def remove_unchecked(lock: Path) -> int:
    """Remove packages without integrity, so that npm asks the registry for them. Return their number."""
    content = json.loads(lock.read_text())
    packages = content["packages"]
    checked = {name: entry for name, entry in packages.items() if not name or "integrity" in entry}
    content["packages"] = checked
    lock.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n")
    return len(packages) - len(checked)


if __name__ == "__main__":
    main(sys.argv[1:])
