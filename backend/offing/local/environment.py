"""Which variables of our environment each child process gets.

Allow-lists, so that a key that is set tomorrow reaches no process that does not need it. The database and key-value
servers get what a program needs to start. The policy engine and the trainer also get the settings of Offing and of the
libraries that they compute with. The API and the workers call providers, search engines and MCP servers under names
that the operator chooses, so they get everything but the owner's database address.
"""

import os
from collections.abc import Mapping

SYSTEM = ("PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "LANG", "LANGUAGE", "TZ", "TZDIR", "TMPDIR")
"""What any program may need to start: where programs and libraries are, the locale, the time zone."""

USER = ("HOME", "USER", "LOGNAME", "VIRTUAL_ENV")

COMPUTE = (
    "ACCELERATE_",
    "CUBLAS_",
    "CUDA_",
    "GOMP_",
    "HF_HOME",
    "HF_HUB_CACHE",
    "HF_HUB_OFFLINE",
    "HIP_",
    "HSA_",
    "KMP_",
    "MKL_",
    "NCCL_",
    "NUMEXPR_",
    "NVIDIA_",
    "OMP_",
    "OPENBLAS_",
    "PYTHON",
    "PYTORCH_",
    "ROCR_",
    "TOKENIZERS_",
    "TORCH",
    "TRANSFORMERS_",
    "TRITON_",
    "XDG_",
)
"""How the names begin that torch, its back ends and the interpreter read."""

_SECRET_ENDINGS = ("_KEY", "_TOKEN", "_SECRET", "_PASSWORD", "_DATABASE_URL")


def server_environment(ours: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the environment of an embedded server and of the tools that set it up."""
    return {name: value for name, value in ours.items() if name in SYSTEM or name.startswith("LC_")}


def compute_environment(ours: Mapping[str, str], *secrets: str) -> dict[str, str]:
    """Return the environment of a process that computes with our weights.

    `secrets` are the names of the secret variables of Offing that it needs. It gets no other secret.
    """
    return server_environment(ours) | {name: value for name, value in ours.items() if _computes(name, secrets)}


def _computes(name: str, secrets: tuple[str, ...]) -> bool:
    if name.startswith("OFFING_"):
        return name in secrets or not name.endswith(_SECRET_ENDINGS)
    return name in USER or name.startswith(COMPUTE)


def application_environment(ours: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the environment of the API and of workers: ours without the address of the database's owner."""
    return {name: value for name, value in ours.items() if name != "DATABASE_URL"}
