"""`quarterdeck member secret`: the secret of a running cluster turns, one step at all its members at a time."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from quarterdeck.cli.configuration.connection import ConnectionTarget, with_connection
from quarterdeck.cli.configuration.opening import asked
from quarterdeck.cli.exits import BadUsage, CommandFailed, ExitCode, failing_as
from quarterdeck.cli.output import Format, FormatOption, argument, write_rows

if TYPE_CHECKING:
    from quarterdeck.backend.clusters.remote.member_client import MemberClient
    from quarterdeck.backend.member_api.answers import AcceptedSecrets
    from quarterdeck.backend.member_api.beliefs import ThisMember

secrets = typer.Typer(help="Turn the secret of a running cluster: add, use, remove.", rich_markup_mode=None)

COLUMNS = ("member", "used", "accepted")

SecretFile = Annotated[Path, argument("A file with the secret in question.", "FILE")]


@secrets.command("list")
@with_connection
def list_secrets(connection: ConnectionTarget, output: FormatOption = Format.TABLE) -> None:
    """Print which secrets the members use and accept, as fingerprints."""
    _turn(connection, None, "", output)


def _add_step(step: str, sentence: str) -> None:
    @secrets.command(step, help=sentence)
    @with_connection
    def turn(connection: ConnectionTarget, file: SecretFile, output: FormatOption = Format.TABLE) -> None:
        _turn(connection, step, _secret_in(file), output)


_add_step("add", "Have all members accept a second secret.")
_add_step("use", "Have all members introduce themselves with a secret that all accept.")
_add_step(
    "remove",
    "Have all members give up a secret that none of them uses; connections that it has opened are opened anew.",
)


def _secret_in(file: Path) -> str:
    """Return the secret as a member reads it from its own file."""
    with failing_as(ExitCode.BAD_INPUT, OSError, UnicodeDecodeError):
        secret = file.read_text(encoding="utf-8").rstrip("\r\n")
    if not secret:
        raise BadUsage(f"{file} is empty; write the secret into it")
    return secret


def _turn(connection: ConnectionTarget, step: str | None, secret: str, output: Format) -> None:
    target = connection.require_http_api()
    if step is not None:
        target.require_writable()

    async def turn(client: MemberClient) -> list[tuple[str, AcceptedSecrets]]:
        facts, members = await _members_of(client, target)
        found = {url: await _accepted(client, url) for url in members}
        if step is not None:
            _require_ready(step, secret, facts.cluster_name, {members[url]: held for url, held in found.items()})
            found = {url: await _accepted(client, url, {"do": step, "secret": secret}) for url in members}
        return [(members[url], held) for url, held in found.items()]

    rows = asked(target, turn)
    write_rows(({"member": name, "used": held.used, "accepted": held.accepted} for name, held in rows), COLUMNS, output)


async def _members_of(client: MemberClient, target: ConnectionTarget) -> tuple[ThisMember, dict[str, str]]:
    """Return what the first member that answers says of itself, and all on its list: their addresses by URL."""
    from quarterdeck.backend.clusters.remote.access import url_of_other
    from quarterdeck.backend.clusters.remote.member_client import Unreachable

    problems = []
    for url in target.urls:
        try:
            facts = await client.facts(url)
        except Unreachable as problem:
            problems.append(str(problem))
            continue
        return facts, {url_of_other(member.address, url, facts.address): member.address for member in facts.members}
    raise Unreachable("; ".join(problems))


async def _accepted(client: MemberClient, url: str, turn: dict[str, str] | None = None) -> AcceptedSecrets:
    from msgspec.json import Decoder

    from quarterdeck.backend.clusters.remote.member_client import HttpRequest, decoded
    from quarterdeck.backend.member_api.answers import AcceptedSecrets

    request = HttpRequest("GET", "/secret") if turn is None else HttpRequest("POST", "/secret", turn)
    return decoded(Decoder(AcceptedSecrets), await client.send(url, request), url)


def _require_ready(step: str, secret: str, cluster: str, found: dict[str, AcceptedSecrets]) -> None:
    """Raise `CommandFailed` when a step would leave members without a secret in common."""
    from quarterdeck.backend.live.security.cluster_secret import ClusterSecret

    fingerprint = ClusterSecret(secret, cluster).fingerprint
    if step == "use":
        missing = [member for member, held in found.items() if fingerprint not in held.accepted]
        problem = "do not accept it; add it at all members first"
    else:
        missing = [member for member, held in found.items() if step == "remove" and fingerprint == held.used]
        problem = "use it; use the other one at all members first"
    if missing:
        raise CommandFailed(ExitCode.REFUSED, f"nothing was changed: {', '.join(missing)} {problem}")
