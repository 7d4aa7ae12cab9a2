"""All Python that the documents show runs: the blocks of every page, and the notebooks, cell by cell."""

from __future__ import annotations

import json
import os
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import quarterdeck
from quarterdeck.backend.pipeline.tables.store import update_store

ROOT = Path(__file__).parents[2]
SCENARIO = ROOT / "tests" / "scenarios" / "killed-process.yaml"
LOGS = ROOT / "tests" / "hazelcast" / "logs" / "data"
PAGES = {
    str(page.relative_to(ROOT)): blocks
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
    if (blocks := re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL))
}
NOTEBOOKS = sorted((ROOT / "docs" / "spark" / "notebooks").glob("*.ipynb"))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a reader stands: a scenario, a journal and logs under the names that pages use."""
    shutil.copy(SCENARIO, tmp_path / "split.yaml")
    shutil.copytree(LOGS / "formation-and-crash", tmp_path / "logs")
    quarterdeck.simulate(SCENARIO, seed=1, journal=tmp_path / "journals")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("page", PAGES)
def test_the_python_of_a_page_runs(
    spark: SparkSession, folder: Path, capfd: pytest.CaptureFixture[str], page: str
) -> None:
    if page == "docs/reference/tables.md":
        for seed in (2, 3):
            quarterdeck.simulate(SCENARIO, seed=seed, journal=folder / "journals")
            update_store([folder / "journals"], folder / "tables", "delta")
    for number, block in enumerate(PAGES[page]):
        text = block
        for name in ("journals", "logs"):  # Spark began elsewhere, and takes relative paths from there
            text = re.sub(rf'(load\(|register\(spark, )"{name}"', rf'\1"{folder / name}"', text)
        (folder / f"block{number}.py").write_text(text, encoding="utf-8")
        runpy.run_path(str(folder / f"block{number}.py"), init_globals={"spark": spark})
    if page == "docs/spark/library.md":
        printed = capfd.readouterr().out
        assert "list-installed" in printed
        assert re.search(r"raised_cause\|times\|\n.*\n\|10\.77", printed)


@pytest.mark.long
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda one: one.stem)
def test_a_notebook_runs_from_its_first_cell_to_its_last(notebook: Path, tmp_path: Path) -> None:
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] for cell in cells if cell["cell_type"] == "code"), (
        "clear outputs before committing"
    )
    (tmp_path / "notebook.py").write_text("\n\n".join(code), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(tmp_path / "notebook.py")],
        cwd=notebook.parent,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=170,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    if notebook.stem == "removals":
        assert re.search(r"flapping 10\.78\.0\.2:5701 +disconnected +5 ", done.stdout), done.stdout
        assert re.search(r"formation-and-crash: the master 10\.77\.0\.1:5701 was removed", done.stdout)
