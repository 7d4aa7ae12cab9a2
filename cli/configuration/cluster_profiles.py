"""Profiles of remote clusters, the section ``clusters:`` of the user's configuration file.

A profile says where a cluster is, what it is called, and who we are to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, field_validator

from quarterdeck.backend.clusters.kubernetes.service_url import PODS, BadService, service_of
from quarterdeck.backend.clusters.remote.access import BadUrl, member_url
from quarterdeck.backend.core.address import DEFAULT_PORT, Address, BadAddress, parse_address
from quarterdeck.backend.hazelcast import SCHEME


def _expanded(path: Path) -> Path:
    try:
        return path.expanduser()
    except RuntimeError as problem:
        raise ValueError("this machine has no user of that name; write the folder in full") from problem


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
