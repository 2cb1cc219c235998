"""Environment variables that each child process gets.

They are allow-lists, so that a new secret reaches no process that does not need it. Database and
key-value servers get what any program needs to start. The policy engine and the trainer also get
the settings of Offing and of their libraries. The API and the workers get everything except the
database owner's URL, because the operator chooses the names of provider keys.
"""

from collections.abc import Mapping

from offing.environment import VARIABLES

SYSTEM_VARIABLES = ("PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "LANG", "LANGUAGE", "TZ", "TZDIR", "TMPDIR")
"""Variables that any program may need to start: search paths, locale and time zone."""

USER_VARIABLES = ("HOME", "USER", "LOGNAME", "VIRTUAL_ENV")

COMPUTE_PREFIXES = (
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
"""Prefixes of the variables that torch, its back ends and the interpreter read."""

_SECRET_ENDINGS = ("_KEY", "_TOKEN", "_SECRET", "_PASSWORD", "_DATABASE_URL")


def build_server_environment(environment: Mapping[str, str] = VARIABLES) -> dict[str, str]:
    """Return the environment of an embedded server and of the tools that set it up."""
    return {name: value for name, value in environment.items() if name in SYSTEM_VARIABLES or name.startswith("LC_")}


def build_compute_environment(environment: Mapping[str, str], *secrets: str) -> dict[str, str]:
    """Return the environment of a process that computes with policy weights.

    `secrets` are the names of the secret variables of Offing that it needs. It gets no other secret.
    """
    return build_server_environment(environment) | {
        name: value for name, value in environment.items() if _is_compute_variable(name, secrets)
    }


def _is_compute_variable(name: str, secrets: tuple[str, ...]) -> bool:
    if name.startswith("OFFING_"):
        return name in secrets or not name.endswith(_SECRET_ENDINGS)
    return name in USER_VARIABLES or name.startswith(COMPUTE_PREFIXES)


def build_application_environment(environment: Mapping[str, str] = VARIABLES) -> dict[str, str]:
    """Return the environment of the API and the workers: all variables except the database owner's URL."""
    return {name: value for name, value in environment.items() if name != "DATABASE_URL"}
