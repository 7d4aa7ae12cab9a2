"""The user's configuration file: the clusters that are known, and how the console is wanted.

The file is ``config.yaml`` in the folder that `quarterdeck paths` names; `cli.cluster_profiles` and `cli.console_section` say
what stands in its two sections.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict

from quarterdeck.backend.documents.yaml_document import YamlDocument, text_of
from quarterdeck.cli.configuration.cluster_profiles import Profile
from quarterdeck.cli.configuration.paths import configuration_file

if TYPE_CHECKING:
    from quarterdeck.app.console_state import ConsoleSettings


class UserDocument(BaseModel):
    """The whole file. What stands under `console` is looked at when a console is opened: reading it takes half of Textual."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    clusters: tuple[Profile, ...] = ()
    console: Any = None


class UserConfiguration:
    """What stands in one file."""

    def __init__(self, file: Path | None = None) -> None:
        """Read the user's configuration. No file is the same as an empty one.

        Raises:
            BadDocument: The file is wrong; the message names file, line and field.
        """
        file = file or configuration_file()
        self._document = YamlDocument(text_of(file) if file.exists() else "", str(file))
        data = self._document.fields(
            "is no configuration; write clusters: or console: and what belongs to it", may_be_empty=True
        )
        content = self._document.read(UserDocument, data)
        self._console = content.console
        self.profiles = self._by_label(content.clusters)
        """By label."""

    def console(self) -> ConsoleSettings:
        """How the console is wanted. Raises `BadDocument`."""
        from quarterdeck.app.key_map import BadKeys
        from quarterdeck.cli.configuration.console_section import ConsoleSection, settings_of

        written = {} if self._console is None else self._console
        section = self._document.read(ConsoleSection, written, at=("console",))
        try:
            return settings_of(section)
        except BadKeys as problem:
            raise self._document.first([(("console", "keys", problem.action), str(problem))]) from problem

    def _by_label(self, profiles: tuple[Profile, ...]) -> dict[str, Profile]:
        found: dict[str, Profile] = {}
        for number, profile in enumerate(profiles):
            if profile.label in found:
                problem = f"{profile.label!r} is the label of another cluster already; give each its own"
                self._document.refuse([(("clusters", number, "label"), problem)])
            found[profile.label] = profile
        return found
