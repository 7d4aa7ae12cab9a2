"""The user's configuration file: the clusters that are known, and how the console is wanted.

The file is ``config.yaml`` in the folder that `quarterdeck paths` names. A profile in its section ``clusters:`` says where a
cluster is, what it is called, and who we are to it; `cli.configuration.console_section` says what stands in the other section.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, field_validator

from quarterdeck.backend.clusters.kubernetes.service_url import PODS, BadService, service_of
from quarterdeck.backend.clusters.remote.access import BadUrl, member_url
from quarterdeck.backend.core.address import DEFAULT_PORT, Address, BadAddress, parse_address
from quarterdeck.backend.documents.yaml_document import YamlDocument, text_of
from quarterdeck.backend.hazelcast import SCHEME
from quarterdeck.cli.configuration.paths import configuration_file

if TYPE_CHECKING:
    from quarterdeck.app.console_state import ConsoleSettings


def _expanded(path: Path) -> Path:
    try:
        return path.expanduser()
    except RuntimeError as problem:
        raise ValueError("this machine has no user of that name; write the folder in full") from problem


HomePath = Annotated[Path, AfterValidator(_expanded)]


class Profile(BaseModel):
    """One cluster that the user knows."""

    model_config = ConfigDict(extra="forbid", frozen=True, alias_generator=lambda name: name.replace("_", "-"))

    label: str = Field(min_length=1)
    urls: tuple[str, ...] = Field(min_length=1)
    environment: str = ""
    """A badge for the console, such as PROD."""
    read_only: bool = False
    """Nothing is changed from here, whatever is asked."""
    user: str = ""
    password_file: HomePath | None = None
    token_file: HomePath | None = None
    ca_file: HomePath | None = None
    certificate_file: HomePath | None = None
    key_file: HomePath | None = None
    cluster_name: str = "dev"
    """Of members of Hazelcast, as is all that follows."""
    tls: bool = False
    address_map: dict[str, str] = Field(default_factory=dict)
    logs: tuple[str, ...] = ()

    @field_validator("urls")
    @classmethod
    def _urls_of_members(cls, urls: tuple[str, ...]) -> tuple[str, ...]:
        return member_urls(urls)


def member_urls(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the URLs of members in their one form: all of ours, or all of Hazelcast, of which a text may name several.

    Raises:
        BadUrl: A text is none.
    """
    texts = tuple(texts)
    theirs = [text.strip().startswith((SCHEME, PODS)) for text in texts]
    if any(theirs) and not all(theirs):
        raise BadUrl(f"members of Hazelcast ({SCHEME}…, {PODS}…) and others are not watched together")
    if not any(theirs):
        return tuple(map(member_url, texts))
    return tuple(dict.fromkeys(url for text in texts for url in _urls(text.strip())))


def _urls(text: str) -> Iterator[str]:
    if not text.startswith(PODS):
        for part in text.removeprefix(SCHEME).strip("/").split(","):
            yield f"{SCHEME}{_address(part)}"
        return
    try:
        yield service_of(text).url
    except BadService as problem:
        raise BadUrl(str(problem)) from problem


def _address(text: str) -> Address:
    try:
        return parse_address(text, DEFAULT_PORT)
    except BadAddress as problem:
        raise BadUrl(f"{problem}; write {SCHEME}HOST[:PORT][,…]") from problem


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
        hint = "is no configuration; write clusters: or console: and what belongs to it"
        data = self._document.fields(hint, may_be_empty=True)
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
