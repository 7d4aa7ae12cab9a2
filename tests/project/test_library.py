"""The library as a user meets it: the example of the documents runs and is type-checked, and `import quarterdeck` is light."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import quarterdeck

ROOT = Path(__file__).parents[2]
EXAMPLE = re.search(
    r"```python\n(.*?)```", (ROOT / "docs" / "spark" / "library.md").read_text(encoding="utf-8"), re.DOTALL
)[1]  # type: ignore[index]
MISTAKES = """
import quarterdeck

reveal_type(quarterdeck.simulate("split.yaml").members["athens"].version)
quarterdeck.simulate(7)
quarterdeck.read_jurnal("journals")
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder in which a user has written the example, with a scenario and some logs."""
    (tmp_path / "example.py").write_text(EXAMPLE, encoding="utf-8")
    (tmp_path / "mistakes.py").write_text(MISTAKES, encoding="utf-8")
    shutil.copy(ROOT / "tests" / "scenarios" / "killed-process.yaml", tmp_path / "split.yaml")
    shutil.copytree(ROOT / "tests" / "hazelcast" / "logs" / "data" / "formation-and-crash", tmp_path / "logs")
    return tmp_path


def run_python(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(ROOT), "MYPYPATH": str(ROOT)}
    return subprocess.run([sys.executable, *arguments], cwd=folder, env=environment, text=True, capture_output=True)


def test_the_example_of_the_documents_runs(folder: Path) -> None:
    child = run_python(folder, "example.py")
    assert child.returncode == 0, child.stderr
    first, *_ = child.stdout.splitlines()
    assert first.startswith("True ")
    *_, problems, logs, slave, master, judged = child.stdout.splitlines()
    assert problems == "0 lines are not records"
    assert all(line.startswith("logs member-lost ") for line in (slave, master))
    assert re.fullmatch(r"[1-9]\d* records; \d+ messages were not understood", logs)
    assert re.fullmatch(r"[1-9]\d* records, 0 findings", judged)


def test_a_user_of_the_library_is_type_checked(folder: Path) -> None:
    # With the cache of `make lint`, and so with its configuration: the whole package is not checked again.
    mypy = ("-m", "mypy", "--config-file", str(ROOT / "pyproject.toml"), "--cache-dir", str(ROOT / ".mypy_cache"))
    said = run_python(folder, *mypy, "example.py", "mistakes.py").stdout
    assert "example.py" not in said, said
    assert 'Revealed type is "int"' in said
    assert 'Argument 1 to "simulate" has incompatible type "int"' in said
    assert 'Module has no attribute "read_jurnal"' in said


def test_importing_the_package_imports_nothing_else() -> None:
    child = run_python(
        ROOT, "-c", "import sys, quarterdeck; print(*(n for n in sys.modules if n.startswith('quarterdeck.')))"
    )
    assert child.stdout.split() == []


def test_no_spark_is_needed() -> None:
    code = (
        "import sys; sys.modules['pyspark'] = sys.modules['pyarrow'] = None; import quarterdeck; quarterdeck.simulate"
    )
    assert run_python(ROOT, "-c", code).returncode == 0


def test_every_public_name_is_there_and_documented() -> None:
    table = (ROOT / "docs" / "spark" / "library.md").read_text(encoding="utf-8")
    for name in quarterdeck.__all__:
        assert getattr(quarterdeck, name) is not None
        assert name == "__version__" or f"`{name}" in table, name
    with pytest.raises(AttributeError, match="has no attribute 'read_jurnal'"):
        _ = quarterdeck.read_jurnal  # type: ignore[attr-defined]


def test_a_run_is_not_written_over_another(tmp_path: Path) -> None:
    scenario = quarterdeck.read_scenario(ROOT / "tests" / "scenarios" / "killed-process.yaml")
    outcome = quarterdeck.simulate(scenario, seed=3, journal=tmp_path)
    assert quarterdeck.simulate(scenario, seed=3) == outcome
    assert len(list(quarterdeck.read_journal(tmp_path))) > 0
    with pytest.raises(FileExistsError, match="recorded already"):
        quarterdeck.simulate(scenario, seed=3, journal=tmp_path)


def test_the_license_is_part_of_what_is_built() -> None:
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert 'license = "Apache-2.0"' in project
    assert '"LICENSE"' in project.partition("[tool.hatch.build.targets.sdist]")[2].partition("\n\n")[0]
    assert "Apache License" in (ROOT / "LICENSE").read_text(encoding="utf-8")
