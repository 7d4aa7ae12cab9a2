"""A mutant: one rule of the core that somebody forgot, as a small change of the source and the sentence that it breaks.

The files in `faults/` hold them, one for each part of the core. A mutant is planted into a copy of the project, so that every
way of testing can be tried on it: examples, chance, exhaustion.
"""

from __future__ import annotations

import shutil
from functools import cache
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field
from ruamel.yaml import YAML

ROOT = Path(__file__).parents[2]
FAULTS = Path(__file__).parent / "faults"
PACKAGE = "quarterdeck"
LEFT_OUT = shutil.ignore_patterns(".*", "build", "dist", "screenshots")


class Mutant(BaseModel):
    """One planted fault."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    name: str = Field(pattern=r"^[a-z0-9-]+$")
    breaks: str
    """The sentence of a document that no longer holds, and where it stands."""

    file: str
    """The chapter that is changed, as a path from the root of the project."""

    replace: str = Field(min_length=1)
    """Source that stands in the chapter exactly once."""

    by: str
    examples: tuple[str, ...] = Field(min_length=1)
    """What notices it: tests as pytest takes them, and scenarios."""

    quick: bool = False
    """Whether `make test` tries its examples, too."""

    @property
    def unit_tests(self) -> tuple[str, ...]:
        """The examples that pytest runs."""
        return tuple(example for example in self.examples if not example.endswith(".yaml"))

    @property
    def scenarios(self) -> tuple[str, ...]:
        """The examples that are scenarios."""
        return tuple(example for example in self.examples if example.endswith(".yaml"))

    def changed_source(self) -> str:
        """The chapter with the fault in it. Raises ValueError if the source to be replaced is not there exactly once."""
        source = (ROOT / self.file).read_text()
        if (count := source.count(self.replace)) != 1:
            raise ValueError(f"{self.name}: the source that it replaces stands {count} times in {self.file}")
        return source.replace(self.replace, self.by)


@cache
def all_mutants() -> tuple[Mutant, ...]:
    """Every mutant of every file, in the order of the files. Raises pydantic's ValidationError for one that is ill-formed."""
    reader = YAML(typ="safe")
    return tuple(
        Mutant.model_validate(row) for path in sorted(FAULTS.glob("*.yaml")) for row in reader.load(path.read_text())
    )


def plant(mutant: Mutant | None, copy: Path) -> None:
    """Make `copy` a project with the fault in it; without a mutant, a sound one.

    All but the changed file are links to the project: to copy thousands of files would take longer than to notice most faults.
    """
    _link_all(ROOT, copy)
    (copy / PACKAGE).unlink()
    shutil.copytree(ROOT / PACKAGE, copy / PACKAGE, symlinks=True)  # whose links lead to what stands beside it
    if mutant is None:
        return
    changed = copy / mutant.file
    for folder in reversed(changed.relative_to(copy).parents[:-1]):
        (copy / folder).unlink()
        _link_all(ROOT / folder, copy / folder)
    changed.unlink()
    changed.write_text(mutant.changed_source())


def _link_all(folder: Path, copy: Path) -> None:
    """Make `copy` a folder of links to what stands in `folder`."""
    copy.mkdir(parents=True)
    names = [entry.name for entry in folder.iterdir()]
    for name in sorted({*names} - LEFT_OUT(str(folder), names)):
        (copy / name).symlink_to(folder / name)
