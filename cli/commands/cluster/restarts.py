"""`quarterdeck cluster may-stop` and `rolling-restart`: one member after the other, each only when nothing speaks against it."""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

from quarterdeck.backend.clusters.follower import Follower
from quarterdeck.cli.commands.cluster.observation import settled_records
from quarterdeck.cli.commands.run_options import ExpectMembersOption, stopping
from quarterdeck.cli.configuration.connection import ConnectionTarget, with_connection
from quarterdeck.cli.configuration.opening import open_cluster, wait_until_started
from quarterdeck.cli.exits import BadUsage, CommandFailed, ExitCode, fail_if, failing_as
from quarterdeck.cli.output import Format, FormatOption, argument, option, say, write_document, write_line

if TYPE_CHECKING:
    from quarterdeck.backend.core.address import Address
    from quarterdeck.backend.judgement.stop_verdict import StopVerdict

POLL_SECONDS = 0.1

MinimumOption = Annotated[int, option("How many members with data must be left at least.", "N", "--minimum", min=1)]


@with_connection
def may_stop(
    connection: ConnectionTarget,
    member: Annotated[str, argument("Its label or address.", "MEMBER")],
    minimum: MinimumOption = 1,
    expect_members: ExpectMembersOption = None,
    wait: Annotated[float, option("How long to look on while it is not known.", "SECONDS", min=0)] = 40.0,
    output: FormatOption = Format.TABLE,
) -> None:
    """Print whether a member may be stopped now: yes, no or unknown, and why. Exits with 0 only for yes, else with 1.

    Members of Hazelcast report owners and counts, no history: it looks on until what they say has held for as long as they take
    to compare their backups.
    """
    with _followed(connection, expect_members) as followed:
        label = _label_of(followed, member)
        verdict = _judged(followed, label, minimum, time.monotonic() + wait, lambda found: found.answer != "unknown")
        fields = verdict.as_fields(followed.cluster.now_us())
    if output is Format.TABLE:
        write_line(verdict.answer)
        for reason in verdict.reasons:
            write_line(f"  {reason.kind}: {reason.text}")
        if verdict.expected_stop_us is not None:
            write_line(f"  a graceful stop takes about {fields['expected_stop_seconds']} s")
    else:
        write_document({"member": label, **fields}, output)
    fail_if(verdict.answer != "yes")


@with_connection
def rolling_restart(
    connection: ConnectionTarget,
    command: Annotated[
        str | None,
        option("Restart the member that MEMBER and ADDRESS name; by hand when not given.", "COMMAND", "--exec"),
    ] = None,
    minimum: MinimumOption = 1,
    expect_members: ExpectMembersOption = None,
    timeout: Annotated[float, option("How long to wait for a yes, and for a member.", "SECONDS", min=1)] = 900.0,
    state: Annotated[Path, option("Which members are done: go on with the same file.", "FILE")] = Path(
        "rolling-restart.json"
    ),
) -> None:
    """Restart one member after the other, the oldest last, each when it may be stopped; stop at the first doubt.

    What restarts a member is COMMAND, or you. A member is done when another incarnation of it is on the list: at the same
    address, or, as a pod, at one where no member was before.
    """
    stop = threading.Event()
    with stopping(stop), _followed(connection, expect_members) as followed:
        plan = _plan(followed, state)
        left = dict(plan)
        for label, uuid in plan.items():
            if _uuid_of(followed, label) not in (uuid, None):
                say(f"{label} is restarted already")
                continue
            until = time.monotonic() + timeout
            verdict = _judged(followed, label, minimum, until, lambda found: found.answer == "yes", stop)
            if verdict.answer != "yes":
                reasons = "; ".join(reason.text for reason in verdict.reasons)
                raise CommandFailed(ExitCode.CHECK_FAILED, f"{label} is not to be stopped: {reasons}")
            address = followed.picture.address_of(label) or label
            before = _listed(followed)
            say(f"{label} may be stopped" if command else f"restart {label} now")
            if command is not None:
                environment = os.environ | {"MEMBER": label, "ADDRESS": address}
                failing = failing_as(
                    ExitCode.CHECK_FAILED, OSError, subprocess.SubprocessError, about=f"--exec for {label}"
                )
                with failing:
                    subprocess.run(command, shell=True, env=environment, timeout=timeout, check=True)
            until = time.monotonic() + timeout
            while not has_come_back(uuid, before, _listed(followed)):
                if time.monotonic() >= until or stop.wait(POLL_SECONDS):
                    problem = f"{label} has not come back; go on with the same --state when it has"
                    raise CommandFailed(ExitCode.CHECK_FAILED, problem)
                followed.follow()
            del left[label]
            _write_plan(left, state)
            say(f"{label} is back")
    state.unlink(missing_ok=True)
    say(f"all {len(plan)} members are restarted")


@contextmanager
def _followed(connection: ConnectionTarget, expected_members: int | None) -> Iterator[Follower]:
    with closing(open_cluster(connection.require_named(), pod_logs=False)) as cluster:
        wait_until_started(cluster)
        followed = Follower(cluster, expected_members=expected_members)
        followed.fold(settled_records(cluster))
        yield followed


def _label_of(followed: Follower, wanted: str) -> str:
    picture = followed.picture
    listed = {picture.label_of(address) for belief in picture.members.values() for address in belief.listed}
    known = dict.fromkeys((*picture.members, *sorted(listed), *followed.watcher.missed))
    found = wanted if wanted in known else picture.label_of(cast("Address", wanted))
    if found not in known:
        raise BadUsage(f"{wanted}: no such member; there are {', '.join(known)}")
    return found


def _judged(
    followed: Follower,
    label: str,
    minimum: int,
    until: float,
    settles: Callable[[StopVerdict], bool],
    stop: threading.Event | None = None,
) -> StopVerdict:
    """Return the verdict as soon as it settles the matter, or the one that stands at `until`; say what is waited for."""
    stop, said = stop or threading.Event(), ""
    while True:
        followed.follow()
        verdict = followed.judge().may_stop(label, minimum)
        if settles(verdict) or time.monotonic() >= until or stop.wait(POLL_SECONDS):
            return verdict
        kinds = ", ".join(dict.fromkeys(reason.kind for reason in verdict.reasons))
        if kinds != said:
            said = kinds
            say(f"{label}: waits ({kinds}): {verdict.reasons[0].text}")


def _listed(followed: Follower) -> dict[str, Address]:
    return {member.uuid: member.address for master in followed.judge().masters for member in master.members}


def has_come_back(uuid: str, before: Mapping[str, Address], now: Mapping[str, Address]) -> bool:
    """Return whether the member of an incarnation is on the list again.

    It is another incarnation then, at its address or at one where no member was: members that merge keep theirs.
    """
    taken = set(before.values()) - {before.get(uuid)}
    return uuid not in now and any(new not in before and address not in taken for new, address in now.items())


def _uuid_of(followed: Follower, label: str) -> str | None:
    belief = followed.picture.members.get(label)
    if belief is None:
        return None
    return belief.uuid if belief.uuid in _listed(followed) else None


def _plan(followed: Follower, state: Path) -> dict[str, str]:
    """Return the incarnations to replace, the youngest first: those that the file has, or all of now. Raises `CommandFailed`."""
    with failing_as(ExitCode.BAD_INPUT, OSError, ValueError, about=f"--state {state}"):
        if state.exists():
            plan = json.loads(state.read_text(encoding="utf-8"))
            if not isinstance(plan, dict) or not all(isinstance(value, str) for value in plan.values()):
                raise ValueError("is not what this command writes; name another file")
            return plan
        masters = followed.judge().masters
        if len(masters) != 1:
            raise CommandFailed(ExitCode.CHECK_FAILED, followed.judge().health.sentence)
        plan = {followed.picture.label_of(member.address): member.uuid for member in reversed(masters[0].members)}
        _write_plan(plan, state)
    return plan


def _write_plan(plan: dict[str, str], state: Path) -> None:
    state.write_text(json.dumps(plan, indent=1) + "\n", encoding="utf-8")
