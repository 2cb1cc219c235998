"""Settings of the embedded Postgres for the machine that it is on.

The machine is shared with the API, the workers, a policy engine and what else a person runs, so Postgres gets less than
a server of its own would. All statements are short reads and writes by key.
"""

from offing.local.machine import Machine

MEBIBYTE = 2**20

GIBIBYTE = 2**30


def choose_settings(machine: Machine) -> dict[str, str]:
    """Return Postgres settings by name for a machine."""
    memory = machine.memory_bytes // MEBIBYTE
    return {
        "shared_buffers": f"{_within(memory // 8, 32, 2048)}MB",
        "effective_cache_size": f"{max(64, memory // 2)}MB",
        "work_mem": f"{_within(memory // 1024, 4, 32)}MB",
        "maintenance_work_mem": f"{_within(memory // 32, 32, 512)}MB",
        "max_connections": "100" if machine.memory_bytes < GIBIBYTE else "200",
        # Planning for parallel workers costs more than they save where the other cores are busy.
        "max_parallel_workers_per_gather": "0" if machine.cores < 4 else "2",
        "max_parallel_maintenance_workers": str(_within(machine.cores // 2, 0, 2)),
        # Compiling a plan takes longer than running it.
        "jit": "off",
        # A page that is changed often is written to the log in full once per checkpoint.
        "checkpoint_timeout": "15min",
        "max_wal_size": f"{_within(memory // 8, 512, 2048)}MB",
        "min_wal_size": "128MB",
        # Random reads of an SSD take about as long as sequential ones.
        "random_page_cost": "1.1",
    }


def _within(value: int, low: int, high: int) -> int:
    return max(low, min(value, high))
