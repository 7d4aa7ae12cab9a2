"""Profiles of remote clusters, in the user's configuration file: where each is, what it is called, who we are to it.

The file is ``config.yaml`` in the folder that `quarterdeck paths` names::

    clusters:
      - label: orders
        urls: [https://orders-1:5701, https://orders-2:5701]
        environment: PROD
        read-only: true
        user: hugo
        password-file: ~/.secrets/orders
        ca-file: /etc/ssl/orders.pem
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, field_validator

from backend.clusters.remote_access import member_url
from backend.documents.yaml_document import (
    BadDocument,
    YamlDocument,
    did_you_mean,
    field_text,
    mistake_text,
    mistakes,
    text_of,
)
from cli.paths import configuration_file

HomePath = Annotated[Path, AfterValidator(lambda path: path.expanduser())]


def _dashed(name: str) -> str:
    return name.replace("_", "-")


class Profile(BaseModel):
    """One cluster that the user knows."""

    model_config = ConfigDict(extra="forbid", frozen=True, alias_generator=_dashed)

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

    @field_validator("urls")
    @classmethod
    def _urls_of_members(cls, urls: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(map(member_url, urls))


class UserConfiguration(BaseModel):
    """The whole file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    clusters: tuple[Profile, ...] = ()


KNOWN_NAMES = {
    True: tuple(map(_dashed, UserConfiguration.model_fields)),
    False: tuple(map(_dashed, Profile.model_fields)),
}
"""By whether a field stands at the top."""


def load_profiles(file: Path | None = None) -> dict[str, Profile]:
    """The profiles by label; none when there is no file. Raises `BadDocument`, which names file, line and field."""
    file = file or configuration_file()
    if not file.exists():
        return {}
    document = YamlDocument(text_of(file), str(file))
    if document.data is None:
        return {}
    if not isinstance(document.data, dict):
        raise BadDocument(str(file), 1, "", "is no configuration; write clusters: and a list of profiles")
    try:
        profiles = UserConfiguration.model_validate(document.data).clusters
    except ValidationError as failure:
        place, error = next(mistakes(failure))
        known = KNOWN_NAMES[len(place) == 1]
        unknown = error["type"] == "extra_forbidden"
        problem = f"there is no such field; {did_you_mean(str(place[-1]), known)}" if unknown else mistake_text(error)
        raise BadDocument(str(file), document.line(place), field_text(place), problem) from failure
    found: dict[str, Profile] = {}
    for number, profile in enumerate(profiles):
        if profile.label in found:
            place = ("clusters", number, "label")
            problem = f"{profile.label!r} is the label of another cluster already; give each its own"
            raise BadDocument(str(file), document.line(place), field_text(place), problem)
        found[profile.label] = profile
    return found
