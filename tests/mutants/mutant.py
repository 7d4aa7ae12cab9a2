"""A mutant: one rule of the core that somebody forgot, as a small change of the source and the sentence that it breaks.

The files in `faults/` hold them, one for each part of the core. A mutant is planted into a copy of the project, so that every
way of testing can be tried on it: examples, chance, exhaustion.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field
from ruamel.yaml import YAML

ROOT = Path(__file__).parents[2]
FAULTS = Path(__file__).parent / "faults"
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
        return tuple(one for one in self.examples if not one.endswith(".yaml"))

    @property
    def scenarios(self) -> tuple[str, ...]:
        """The examples that are scenarios."""
        return tuple(one for one in self.examples if one.endswith(".yaml"))

    def changed_source(self) -> str:
        """The chapter with the fault in it. Raises ValueError if the source to be replaced is not there exactly once."""
        source = (ROOT / self.file).read_text()
        if (count := source.count(self.replace)) != 1:
            raise ValueError(f"{self.name}: the source that it replaces stands {count} times in {self.file}")
        return source.replace(self.replace, self.by)


def all_mutants() -> tuple[Mutant, ...]:
    """Every mutant of every file, in the order of the files. Raises pydantic's ValidationError for one that is ill-formed."""
    reader = YAML(typ="safe")
    return tuple(
        Mutant.model_validate(one) for path in sorted(FAULTS.glob("*.yaml")) for one in reader.load(path.read_text())
    )


def plant(mutant: Mutant | None, copy: Path) -> None:
    """Make `copy` a project with the fault in it; without a mutant, a sound one."""
    shutil.copytree(ROOT, copy, symlinks=True, ignore=LEFT_OUT)
    if mutant is not None:
        (copy / mutant.file).write_text(mutant.changed_source())
