"""What a release is made of: a wheel that is the same each time, links that work elsewhere, and pages for the shell."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from datetime import UTC, date, datetime
from pathlib import Path
from zipfile import ZipFile

import pytest
import yaml

from docs.generators.man_pages import COMPLETIONS, man_pages, write_share
from quarterdeck import __version__

ROOT = Path(__file__).parents[2]
BUILD = "import sys; from hatchling.build import build_wheel; print(build_wheel(sys.argv[1]))"


def built(folder: Path, **environment: str) -> Path:
    """Build a wheel into the folder as a build front end does."""
    folder.mkdir()
    command = [sys.executable, "-c", BUILD, str(folder)]
    subprocess.run(command, cwd=ROOT, env={"PATH": "/usr/bin", **environment}, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


def metadata(wheel: Path) -> str:
    with ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return archive.read(name).decode()


def test_the_wheel_is_the_same_bit_for_bit(tmp_path: Path) -> None:
    first = built(tmp_path / "first", PYTHONHASHSEED="1", TZ="UTC")
    second = built(tmp_path / "second", PYTHONHASHSEED="2", TZ="Asia/Tokyo")
    assert first.read_bytes() == second.read_bytes()


def test_links_of_the_readme_work_on_the_page_of_an_index(tmp_path: Path) -> None:
    text = metadata(built(tmp_path / "wheel", QUARTERDECK_REPOSITORY="https://code.example/quarterdeck/"))
    links = re.findall(r"\]\(([^)]+)\)", text)
    assert links
    assert all(link.startswith("https://code.example/quarterdeck/") for link in links)
    assert re.search(r"/raw/v[\d.]+/docs/screenshots/\S+\.svg\)", text)
    assert "Project-URL: Changelog, https://code.example/quarterdeck/blob/v" in text


def test_the_version_is_the_same_wherever_it_stands() -> None:
    heading = next(line for line in (ROOT / "CHANGELOG.md").read_text().splitlines() if line.startswith("## "))
    version, day = heading.removeprefix("## ").split(", ")
    assert version == __version__
    assert date.fromisoformat(day) <= datetime.now(UTC).date()
    manifests = yaml.safe_load((ROOT / "docs" / "operators" / "kubernetes" / "kustomization.yaml").read_text())
    assert manifests["images"] == [{"name": "quarterdeck", "newTag": version}]
    assert f"quarterdeck-{version}.requirements.txt" in (ROOT / "SECURITY.md").read_text()


def test_every_command_has_a_man_page_that_reads_well(tmp_path: Path) -> None:
    write_share(tmp_path)
    pages = man_pages()
    assert {"quarterdeck", "quarterdeck-cluster", "quarterdeck-console"} <= set(pages)
    assert "QUARTERDECK CLUSTER STATUS" in pages["quarterdeck-cluster"].replace("\\-", "-")
    assert all((tmp_path / path).read_text() for path in COMPLETIONS.values())
    if shutil.which("groff") is None:
        pytest.skip("there is no groff on this machine")
    files = sorted((tmp_path / "man" / "man1").iterdir())
    read = subprocess.run(
        ["groff", "-Kutf8", "-ww", "-man", "-Tutf8", "-z", *files], capture_output=True, text=True, check=True
    )
    assert read.stderr == ""
