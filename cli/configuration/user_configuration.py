"""The user's configuration file: the clusters that are known, and how the console is wanted.

The file is ``config.yaml`` in the folder that `quarterdeck paths` names; `cli.cluster_profiles` and `cli.console_section` tell
what stands in its two sections.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from quarterdeck.backend.documents.yaml_document import (
    BadDocument,
    FieldPath,
    YamlDocument,
    did_you_mean,
    field_text,
    text_of,
    validation_problem_text,
    validation_problems,
)
from quarterdeck.cli.configuration.cluster_profiles import Profile
from quarterdeck.cli.configuration.paths import configuration_file

if TYPE_CHECKING:
    from quarterdeck.app.settings import ConsoleSettings

Model = TypeVar("Model", bound=BaseModel)


class UserDocument(BaseModel):
    """The whole file. What stands under `console` is looked at when a console is opened: reading it takes half of Textual."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    clusters: tuple[Profile, ...] = ()
    console: Any = None


class UserConfiguration:
    """What stands in one file."""

    def __init__(self, file: Path | None = None) -> None:
        """Raises `BadDocument`, which names file, line and field. No file is the same as an empty one."""
        file = file or configuration_file()
        self._document = YamlDocument(text_of(file) if file.exists() else "", str(file))
        data = {} if self._document.data is None else self._document.data
        if not isinstance(data, dict):
            raise BadDocument(
                str(file), 1, "", "is no configuration; write clusters: or console: and what belongs to it"
            )
        content = self._read(UserDocument, data, ())
        self._console = content.console
        self.profiles = self._by_label(content.clusters)
        """By label."""

    def console(self) -> ConsoleSettings:
        """How the console is wanted. Raises `BadDocument`."""
        from quarterdeck.app.key_map import BadKeys
        from quarterdeck.cli.configuration.console_section import ConsoleSection, settings_of

        section = self._read(ConsoleSection, {} if self._console is None else self._console, ("console",))
        try:
            return settings_of(section)
        except BadKeys as problem:
            raise self._bad(("console", "keys", problem.action), str(problem)) from problem

    def _by_label(self, profiles: tuple[Profile, ...]) -> dict[str, Profile]:
        found: dict[str, Profile] = {}
        for number, profile in enumerate(profiles):
            if profile.label in found:
                problem = f"{profile.label!r} is the label of another cluster already; give each its own"
                raise self._bad(("clusters", number, "label"), problem)
            found[profile.label] = profile
        return found

    def _read(self, model: type[Model], data: object, at: FieldPath) -> Model:
        """`data`, which stands at the place `at` of the file, as a `model`."""
        try:
            return model.model_validate(data)
        except ValidationError as failure:
            place, error = next(validation_problems(failure))
            if error["type"] != "extra_forbidden":
                problem = validation_problem_text(error)
            else:
                around: type[BaseModel] = Profile if len(place) > 1 and place[0] == "clusters" else model
                known = [name.replace("_", "-") for name in around.model_fields]
                problem = f"there is no such field; {did_you_mean(str(place[-1]), known)}"
            raise self._bad((*at, *place), problem) from failure

    def _bad(self, place: FieldPath, problem: str) -> BadDocument:
        return BadDocument(self._document.file, self._document.line(place), field_text(place), problem)
