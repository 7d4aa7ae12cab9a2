"""`quarterdeck member`: one member as a process of its own, what members were asked, and the secret of a running cluster.

The secret turns one step at all members at a time.
"""

from __future__ import annotations

import os
import re
import sys
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from msgspec.json import Decoder

from quarterdeck.cli.commands.console import PresetName
from quarterdeck.cli.commands.run_options import PropertyOption, named_values, stopping
from quarterdeck.cli.configuration.connection import ConnectionTarget, with_connection
from quarterdeck.cli.configuration.opening import asked
from quarterdeck.cli.exits import BadUsage, CommandFailed, ExitCode, failing_as
from quarterdeck.cli.output import Format, FormatOption, argument, flag, option, write_line, write_rows

if TYPE_CHECKING:
    from quarterdeck.backend.clusters.remote.member_client import MemberClient
    from quarterdeck.backend.journal.audit_log import AuditEntry, AuditLogReader
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


group = typer.Typer(
    help="Run one member, print what members were asked, and turn the secret of running ones.", rich_markup_mode=None
)
group.add_typer(secrets, name="secret")


AUDIT_COLUMNS = (
    "at", "member", "user", "identified", "address", "what", "detail", "outcome", "status", "reason", "count",
)  # fmt: skip
FOLLOW_SECONDS = 0.5
SECONDS_OF = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}


@group.command("start")
def start(
    config: Annotated[Path | None, option("Its configuration, in Hazelcast's YAML.", "FILE")] = None,
    name: Annotated[str | None, option("What people call this member.", "LABEL")] = None,
    cluster_name: Annotated[str | None, option("The cluster it belongs to.", "NAME")] = None,
    port: Annotated[int | None, option("Its port, for members and for HTTP; it takes no other.")] = None,
    bind: Annotated[str | None, option("Where to listen; loopback by default.", "HOST")] = None,
    public_address: Annotated[
        str | None, option("The address that others call, if it listens at another one.", "HOST")
    ] = None,
    join: Annotated[list[str] | None, option("Where to look for the cluster; may be repeated.", "HOST[:PORT]")] = None,
    rest_port: Annotated[int | None, option("Serve HTTP at this port too.")] = None,
    properties: PropertyOption = None,
    preset: Annotated[PresetName | None, option("Timing properties to begin with.")] = None,
    lite: Annotated[bool, flag("Make it a lite member, which holds no data.", "--lite")] = False,
    zone: Annotated[str | None, option("Its zone: a rack, a room, or whatever else fails as one.")] = None,
    journal: Annotated[Path | None, option("Record into this folder.", "DIR")] = None,
    run: Annotated[str | None, option("The name of the recorded run; the cluster's name by default.", "NAME")] = None,
    log_format: Annotated[
        Literal["console", "json"] | None, option("For people, or as one JSON object on each line.")
    ] = None,
    log_level: Annotated[str | None, option("DEBUG, INFO, WARNING or ERROR.", "LEVEL")] = None,
    ready_file: Annotated[
        Path | None, option("A file that it writes when it has joined and removes when it has left.", "FILE")
    ] = None,
    allow_faults: Annotated[
        bool, flag("Accept injected faults from users with the role fault, for training.", "--allow-faults")
    ] = False,
    read_only: Annotated[bool, flag("Refuse every change over HTTP.", "--read-only")] = False,
    open_to_all: Annotated[
        str | None, option("Listen beyond this machine although no credentials are needed.", "WORDS")
    ] = None,
) -> None:
    """Run a member until it is asked to leave (SIGTERM; twice: at once). Its log goes to stderr.

    A flag goes before an environment variable (HZ_…, QUARTERDECK_…), that before the file. Exits with 0 when it has left, 1
    when it has crashed, 2 for a bad configuration, 3 when its port is taken or no cluster would have it.
    """
    from quarterdeck.backend.service.configuration.sources import PROPERTY_PLACE, Override, process_configuration
    from quarterdeck.backend.service.process.foreground_member import CannotRun, run_member

    network = ("hazelcast", "network")
    texts: list[tuple[str, tuple[str, ...], object]] = [
        ("--name", ("hazelcast", "instance-name"), name),
        ("--cluster-name", ("hazelcast", "cluster-name"), cluster_name),
        ("--port", (*network, "port", "port"), port),
        ("--port", (*network, "port", "auto-increment"), None if port is None else False),
        ("--bind", ("quarterdeck", "bind"), bind),
        ("--public-address", (*network, "public-address"), public_address),
        ("--join", (*network, "join", "tcp-ip", "member-list"), ",".join(join) if join else None),
        ("--rest-port", (*network, "rest-api", "port"), rest_port),
        ("--preset", ("quarterdeck", "preset"), preset),
        ("--lite", ("hazelcast", "lite-member", "enabled"), lite or None),
        ("--zone", ("hazelcast", "member-attributes", "zone"), zone),
        ("--journal", ("quarterdeck", "journal"), journal),
        ("--run", ("quarterdeck", "run"), run),
        ("--log-format", ("quarterdeck", "log", "format"), log_format),
        ("--log-level", ("quarterdeck", "log", "level"), log_level),
        ("--allow-faults", ("quarterdeck", "allow-faults"), allow_faults or None),
        ("--read-only", ("quarterdeck", "read-only"), read_only or None),
        ("--open-to-all", ("quarterdeck", "security", "open-to-all"), open_to_all),
    ]
    given = [Override(place, value, flag) for flag, place, value in texts if value is not None]
    for property_name, value in named_values(properties or ()).items():
        given.append(Override((*PROPERTY_PLACE, property_name), value, "--property"))
    configuration = process_configuration(config, os.environ, given)
    try:
        end = run_member(configuration, ready_file)
    except CannotRun as problem:
        raise CommandFailed(ExitCode(problem.end), str(problem)) from problem
    if end:
        raise typer.Exit(end)


@group.command("audit-log")
def print_audit_log(
    path: Annotated[Path, argument("The folder of a member's journal, or of its audit log.", "DIR")],
    user: Annotated[str | None, option("Only what this user did or tried.", "NAME")] = None,
    address: Annotated[str | None, option("Only what came from there.", "HOST")] = None,
    outcome: Annotated[
        Literal["done", "refused", "unknown"] | None, option("Only what was done, refused, or is not known.")
    ] = None,
    what: Annotated[str, option("Only requests with this in path or detail.", "TEXT")] = "",
    since: Annotated[
        str | None, option("Only from then on: 2026-01-31T12:00 (UTC), or 90s, 15m, 2h, 7d ago.", "TIME")
    ] = None,
    follow: Annotated[bool, flag("Go on as requests come, until interrupted.", "--follow")] = False,
    output: FormatOption = Format.TABLE,
) -> None:
    """Print who asked members for what over HTTP, and what became of it. Exits with 1 when a line could not be read."""
    from quarterdeck.backend.journal.audit_log import AuditLogReader

    if follow and output not in (Format.TABLE, Format.JSONL):
        raise BadUsage(f"--follow: {output} has an end; use -o jsonl or a table")
    after = "" if since is None else _utc_of(since)

    def wanted(entry: AuditEntry) -> bool:
        return (
            user in (None, entry.user)
            and address in (None, entry.address, entry.address.rpartition(":")[0])
            and outcome in (None, entry.outcome)
            and what in f"{entry.what} {entry.detail}"
            and entry.at >= after
        )

    reader = AuditLogReader(path)
    if follow:
        _follow(reader, wanted, output)
    else:
        write_rows((_audit_row(entry) for entry in reader.new_entries() if wanted(entry)), AUDIT_COLUMNS, output)
    if reader.problems:
        raise CommandFailed(ExitCode.CHECK_FAILED, f"{path}: {reader.problems} lines are no entries of an audit log")


def _follow(reader: AuditLogReader, wanted: Callable[[AuditEntry], bool], output: Format) -> None:
    stop = threading.Event()
    with stopping(stop):
        while True:
            for entry in filter(wanted, reader.new_entries()):
                if output is Format.JSONL:
                    write_rows([_audit_row(entry)], AUDIT_COLUMNS, output)
                else:
                    write_line(_sentence(entry))
            sys.stdout.flush()
            if stop.wait(FOLLOW_SECONDS):
                return


def _sentence(entry: AuditEntry) -> str:

    who = f"{entry.user or 'a client'}{'' if entry.identified or not entry.user else ' (not identified)'}"
    parts = [f"{entry.what} {entry.detail}".strip(), f"{entry.outcome}{f': {entry.reason}' * bool(entry.reason)}"]
    times = [f"{entry.count} times"] if entry.count > 1 else []
    return f"{entry.at} {entry.member}: {who} at {entry.address}, {', '.join([*parts, *times])}"


def _audit_row(entry: AuditEntry) -> dict[str, object]:
    return {name: getattr(entry, name) for name in entry.__struct_fields__}


def _utc_of(text: str) -> str:
    ago = re.fullmatch(r"(\d+)([smhd])", text)
    try:
        if ago is not None:
            at = datetime.now(UTC) - timedelta(seconds=int(ago[1]) * SECONDS_OF[ago[2]])
        else:
            at = datetime.fromisoformat(text)
            at = at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    except (ValueError, OverflowError):
        hint = "write 2026-01-31T12:00 (UTC), or how long ago: 90s, 15m, 2h, 7d"
        raise BadUsage(f"--since: {text!r} is not a time; {hint}") from None
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
