"""Profiles of remote clusters, the section ``clusters:`` of the user's configuration file: where each is, what it is called, who
we are to it.

For example::

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

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, field_validator

from quarterdeck.backend.clusters.remote.access import member_url


def _expanded(path: Path) -> Path:
    try:
        return path.expanduser()
    except RuntimeError as problem:
        raise ValueError("nobody of this name has a home here; write the folder out") from problem


HomePath = Annotated[Path, AfterValidator(_expanded)]


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
