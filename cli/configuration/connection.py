"""Which running cluster a command is for, and who we are to it: the same options wherever a command needs them.

No option takes a secret, for others can read a process's arguments: secrets come from files or from the environment.
"""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

from quarterdeck.backend.clusters.kubernetes.service_url import PODS
from quarterdeck.backend.hazelcast import SCHEME
from quarterdeck.cli.exits import BadUsage, CommandFailed, ExitCode, failing_as
from quarterdeck.cli.output import flag, option

PASSWORD_VARIABLE = "QUARTERDECK_PASSWORD"
TOKEN_VARIABLE = "QUARTERDECK_TOKEN"


@dataclass(frozen=True)
class ConnectionTarget:
    """A cluster to reach. Without URLs: none was named."""

    urls: tuple[str, ...] = ()
    label: str = ""
    environment: str = ""
    read_only: bool = False
    """Its profile wants nothing changed from here."""
    user: str = ""
    password: str = field(default="", repr=False)
    token: str = field(default="", repr=False)
    ca_file: Path | None = None
    certificate_file: Path | None = None
    key_file: Path | None = None
    cluster_name: str = "dev"
    """What members of Hazelcast want to know before they answer."""
    tls: bool = False
    """Members of Hazelcast are spoken to over TLS. Those of ours say it in their URLs."""
    address_map: tuple[tuple[str, str], ...] = ()
    """Of members of Hazelcast: by the address that a member names itself, the one where it is reached from here."""
    logs: tuple[str, ...] = ()
    """Where members of Hazelcast log: ADDRESS=PATH, a directory, or - for standard input."""
    size_file: Path | None = None
    """Of members of Hazelcast: where the size of their cluster is kept that an operator has accepted."""
    secret_files: tuple[str, ...] = ()
    """The options that name the files of the password and the token, where they came from options."""

    def options(self) -> tuple[str, ...]:
        """Return the options, all but the URLs, with which another command reaches the same members of Hazelcast."""
        named = ("--cluster", self.label) if self.label else ("--cluster-name", self.cluster_name)
        given = zip(
            ("--user", "--ca-file", "--certificate-file", "--key-file", "--size-file"),
            (self.user, *self.tls_files, self.size_file),
            strict=True,
        )
        return (
            *named,
            *(word for option, value in given if value for word in (option, str(value))),
            *self.secret_files,
            *(("--tls",) if self.tls else ()),
            *(word for inner, outer in self.address_map for word in ("--address-map", f"{inner}={outer}")),
        )

    @property
    def tls_files(self) -> tuple[Path | None, Path | None, Path | None]:
        """The files of the authority, of our certificate and of its key."""
        return self.ca_file, self.certificate_file, self.key_file

    @property
    def has_http_api(self) -> bool:
        """Whether members are asked by our HTTP API; else they are watched as their clients see them."""
        return not self.urls or not self.urls[0].startswith((SCHEME, PODS))

    def require_named(self) -> ConnectionTarget:
        """Itself. Raises `CommandFailed` when no cluster was named."""
        if not self.urls:
            raise BadUsage("which cluster? give --connect URL of a member, or --cluster NAME")
        return self

    def require_writable(self) -> ConnectionTarget:
        """Itself. Raises `CommandFailed` when nothing may be changed from here."""
        if self.read_only:
            raise CommandFailed(ExitCode.REFUSED, f"the profile of {self.label} is read-only; change it there")
        return self

    def require_http_api(self) -> ConnectionTarget:
        """Itself. Raises `CommandFailed` when no cluster was named, or its members have no HTTP API of ours."""
        if not self.require_named().has_http_api:
            raise BadUsage("members of Hazelcast cannot be asked this; see docs/operators/hazelcast.md")
        return self


TEXT, TEXTS, FILE = str | None, list[str] | None, Path | None

OPTIONS = {
    "connect": Annotated[TEXTS, option(
        "A running member, hazelcast://HOST[:PORT][,…] or k8s://NAMESPACE/SERVICE[:PORT]; the others are found from there. "
        "Repeatable.", "URL", "--connect", "--url",
    )],
    "cluster": Annotated[TEXT, option("A cluster of the configuration file.", "NAME")],
    "user": Annotated[TEXT, option("Your user name.", "NAME", envvar="QUARTERDECK_USER")],
    "password_file": Annotated[FILE, option(
        "A file with the password of --user.", "FILE", envvar="QUARTERDECK_PASSWORD_FILE",
    )],
    "token_file": Annotated[FILE, option(
        "A file with a token, instead of a user.", "FILE", envvar="QUARTERDECK_TOKEN_FILE",
    )],
    "ca_file": Annotated[FILE, option(
        "The authority that signs the members' certificates.", "FILE", "--ca-file", "--tls-ca",
        envvar="QUARTERDECK_CA_FILE",
    )],
    "certificate_file": Annotated[FILE, option(
        "Your certificate, if members ask for one.", "FILE", envvar="QUARTERDECK_CERTIFICATE_FILE",
    )],
    "key_file": Annotated[FILE, option(
        "The key of your certificate, if it is in another file.", "FILE", envvar="QUARTERDECK_KEY_FILE",
    )],
    "cluster_name": Annotated[TEXT, option("Members of Hazelcast: the name of their cluster; dev by default.", "NAME")],
    "tls": Annotated[bool, flag("Members of Hazelcast: speak to them over TLS.", "--tls")],
    "address_map": Annotated[TEXTS, option(
        "Members of Hazelcast: call the member that names itself A at B. Repeatable.", "A=B",
    )],
    "size_file": Annotated[FILE, option(
        "Members of Hazelcast: keep the size there that `cluster expect` accepts; they keep none themselves.", "FILE",
    )],
    "logs": Annotated[TEXTS, option(
        "Members of Hazelcast: their logs, a file, a directory, or - for standard input. Repeatable.", "[ADDRESS=]PATH",
    )],
}  # fmt: skip
"""The options of all commands that reach a cluster. What is not given is the profile's."""


def connection_of(
    *,
    connect: list[str] | None = None,
    cluster: str | None = None,
    password_file: Path | None = None,
    token_file: Path | None = None,
    address_map: list[str] | None = None,
    logs: list[str] | None = None,
    **said: Any,
) -> ConnectionTarget:
    """Return the connection that `OPTIONS` describe; what is given goes before the profile.

    Raises:
        CommandFailed: An option is wrong.
    """
    known = profile_of(cluster) if cluster is not None else ConnectionTarget()
    token = _secret(token_file, "--token-file", TOKEN_VARIABLE) or ("" if said.get("user") else known.token)
    password = _secret(password_file, "--password-file", PASSWORD_VARIABLE) or known.password
    files = (("--password-file", password_file), ("--token-file", token_file))
    given = {
        "urls": _urls(connect) if connect else (),
        "address_map": _pairs(address_map) if address_map else (),
        "logs": tuple(logs or ()),
        "secret_files": tuple(word for option, file in files if file is not None for word in (option, str(file))),
        **said,
    }
    return replace(known, password=password, token=token, **{name: value for name, value in given.items() if value})


def with_connection(command: Callable[..., None]) -> Callable[..., None]:
    """`command` with `OPTIONS` in place of its parameter `connection`."""
    own = inspect.signature(command, eval_str=True).parameters

    @functools.wraps(command)
    def connected(*arguments: Any, **given: Any) -> None:
        chosen = {name: given.pop(name) for name in OPTIONS if name in given}
        command(*arguments, **given, connection=connection_of(**chosen))

    kept = [parameter for name, parameter in own.items() if name != "connection"]
    named = inspect.Parameter.KEYWORD_ONLY
    parameters = [parameter.replace(kind=named) for parameter in kept]
    for name, annotation in OPTIONS.items():
        default = False if name == "tls" else None
        parameters.append(inspect.Parameter(name, named, default=default, annotation=annotation))
    del connected.__dict__["__wrapped__"]  # typer is to see the new parameters
    connected.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    connected.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return connected


def profile_of(label: str) -> ConnectionTarget:
    """Return what the profile of this label says, and nothing else.

    Secrets in the environment are for the cluster that a command names.

    Raises:
        CommandFailed: There is no such profile, or it is wrong.
    """
    from quarterdeck.backend.documents.yaml_document import BadDocument
    from quarterdeck.cli.configuration.paths import configuration_file
    from quarterdeck.cli.configuration.user_configuration import UserConfiguration

    with failing_as(ExitCode.BAD_INPUT, BadDocument):
        profiles = UserConfiguration().profiles
    if label not in profiles:
        known = ", ".join(profiles) or "none"
        raise BadUsage(f"--cluster {label}: {configuration_file()} has {known}")
    profile = profiles[label]
    return ConnectionTarget(
        **profile.model_dump(exclude={"password_file", "token_file", "address_map"}),
        password=_content(profile.password_file, f"password-file of {label}"),
        token=_content(profile.token_file, f"token-file of {label}"),
        address_map=tuple(profile.address_map.items()),
    )


def _urls(texts: list[str]) -> tuple[str, ...]:
    from quarterdeck.backend.clusters.remote.access import BadUrl
    from quarterdeck.cli.configuration.user_configuration import member_urls

    with failing_as(ExitCode.BAD_INPUT, BadUrl, about="--connect"):
        return member_urls(texts)


def _pairs(texts: list[str]) -> tuple[tuple[str, str], ...]:
    pairs = tuple(text.partition("=")[::2] for text in texts)
    if wrong := next((text for text, pair in zip(texts, pairs, strict=True) if not all(pair)), ""):
        raise BadUsage(f"--address-map {wrong}: write it as ADDRESS=ADDRESS")
    return pairs


def _secret(file: Path | None, option: str, variable: str) -> str:
    return _content(file, option) or os.environ.get(variable, "")


def _content(file: Path | None, about: str) -> str:
    """Return the content of the file, without the line end that editors put there."""
    if file is None:
        return ""
    with failing_as(ExitCode.BAD_INPUT, OSError, UnicodeDecodeError, about=about):
        content = file.read_text(encoding="utf-8").rstrip("\r\n")
    if not content or not content.isprintable():
        raise BadUsage(f"{about}: {file} has to hold one line of visible letters")
    return content
