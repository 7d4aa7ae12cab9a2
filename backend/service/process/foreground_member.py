"""A member as the whole of a process: from its configuration until it is asked to leave.

At the first SIGTERM or SIGINT it gives away what only it holds, and says goodbye; at the second it only says goodbye.
"""

from __future__ import annotations

import asyncio
import errno
import os
import re
import resource
import signal
import socket
import time
from collections.abc import Mapping
from dataclasses import replace
from enum import IntEnum
from hashlib import sha256
from pathlib import Path
from random import SystemRandom
from typing import NoReturn

import msgspec

from quarterdeck.backend.core.address import HIGHEST_PORT, host_of, make_address, port_of
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.membership.events import JoinFailed
from quarterdeck.backend.journal.audit_log import FINISHED, AuditLog
from quarterdeck.backend.journal.writer import JournalFailed, JournalInUse, JournalWriter
from quarterdeck.backend.live.member.member_host import RunClock
from quarterdeck.backend.live.security.tls import BadCertificate
from quarterdeck.backend.live.transport.limits import DEFAULT_LIMITS, TransportLimits, limits_within
from quarterdeck.backend.live.transport.network import LiveNetwork
from quarterdeck.backend.service.configuration.process_configuration import ProcessConfiguration
from quarterdeck.backend.service.member_log import LOGGER, MemberLog, configure_logging, software_version
from quarterdeck.backend.service.process.abandonable_threads import run_and_end
from quarterdeck.backend.service.process.member_service import MemberService

CLOSE_TIMEOUT_SECONDS = 2.0
"""How long a member that has left waits until its last messages and answers are sent."""


class ExitStatus(IntEnum):
    """How the process ended, as its status."""

    LEFT = 0
    CRASHED = 1
    BAD_CONFIGURATION = 2
    NEVER_JOINED = 3
    """Its port was taken, or it found no cluster that admitted it."""


class CannotRun(Exception):
    """The member could not begin. `end` is the status of its process; the message says why."""

    def __init__(self, end: ExitStatus, reason: str) -> None:
        super().__init__(reason)
        self.end = end


def run_member(configuration: ProcessConfiguration, ready_file: Path | None = None) -> ExitStatus:
    """Run one member in this process until it has ended. Raises `CannotRun`."""
    return run_and_end(_run(configuration, ready_file))


async def _run(configuration: ProcessConfiguration, ready_file: Path | None) -> ExitStatus:
    try:
        ready = None if ready_file is None else ReadyFile(ready_file)
    except OSError as problem:
        raise CannotRun(ExitStatus.BAD_CONFIGURATION, f"--ready-file {ready_file}: {problem.strerror}") from problem
    process = await _start(configuration)
    service = process.service
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, _on_stop_signal, service, number)
    announcing = loop.create_task(_announce(service, service.joined, "READY=1", "has joined", ready))
    announcing_end = loop.create_task(_announce(service, service.leaving, "STOPPING=1", "leaves"))
    preparing = loop.create_task(service.http.load()) if configuration.rest_enabled else None
    await service.ended_event.wait()
    service.leaving.set()
    await announcing_end
    for task in (announcing, preparing):
        if task is not None:
            task.cancel()
    if ready is not None:
        ready.remove()
    closing = asyncio.gather(service.close(CLOSE_TIMEOUT_SECONDS), return_exceptions=True)
    for failed in filter(None, await closing):  # the member has left, and its data is safe
        LOGGER.error("not all connected clients and members could be notified", exc_info=failed)
    return process.end()


def _on_stop_signal(service: MemberService, number: signal.Signals) -> None:
    LOGGER.info("%s: leaving%s", number.name, " at once" if service.node_state == "PASSIVE" else "")
    service.stop()


async def _announce(
    service: MemberService, event: asyncio.Event, state: str, what: str, ready: ReadyFile | None = None
) -> None:
    await event.wait()
    member = service.member
    try:
        if ready is not None:
            ready.write({"label": service.label, "address": member.address, "uuid": member.uuid, "pid": os.getpid()})
        notify_systemd(state)
    except OSError as problem:
        LOGGER.warning("the service manager was not notified that the member %s: %s", what, problem)


class _MemberProcess:
    def __init__(self, configuration: ProcessConfiguration) -> None:
        """Set the member up. Raises `CannotRun`."""
        self.failed_to_join = False
        member = configuration.member
        self._audit_log: AuditLog | None = None
        self._journal = _journal(configuration)
        try:
            self._audit_log = _audit_log(configuration)
        except CannotRun:
            self.close_journal()
            raise
        log = MemberLog(member.address, legacy_lists=member.settings.legacy_list_text)
        try:
            self.service = MemberService(
                configuration,
                SystemRandom(),
                _clock(),
                LiveNetwork({member.label: member.address}, SystemRandom()),
                journal=self._journal,
                audit_log=self._audit_log,
                record_consumers=(log.write, self._watch_join_failure),
                limits=_limits(),
            )
        except BadCertificate as problem:
            self.close_journal()
            raise CannotRun(ExitStatus.BAD_CONFIGURATION, str(problem)) from problem

    def _watch_join_failure(self, record: Record) -> None:
        if isinstance(record.event, JoinFailed):
            self.failed_to_join = True

    def end(self) -> ExitStatus:
        """Close the journal. Return how the process ends."""
        self.close_journal()
        if self.service.crashed:
            return ExitStatus.CRASHED
        return ExitStatus.NEVER_JOINED if self.failed_to_join else ExitStatus.LEFT

    def close_journal(self) -> None:
        """Write the rest of the journal and of the audit log; a failure is logged."""
        if self._audit_log is not None:
            self._audit_log.close()
        if self._journal is not None:
            try:
                self._journal.close()
            except JournalFailed as problem:
                LOGGER.error("the journal is not complete: %s", problem)


async def _start(configuration: ProcessConfiguration) -> _MemberProcess:
    member = configuration.member
    host, first, run = host_of(member.address), port_of(member.address), member.run or file_name(member.cluster_name)
    last = min(first + configuration.ports_tried - 1, HIGHEST_PORT)
    for port in range(first, last + 1):
        if port != last and _is_taken(configuration.bind_host, port):
            continue
        address = make_address(host, port)
        named = msgspec.structs.replace(member, address=address, label=member.label or address, run=run)
        configure_logging(configuration.log_format, configuration.log_level, address, member.cluster_name)
        process = _MemberProcess(replace(configuration, member=named))
        try:
            await process.service.start()
        except OSError as problem:
            process.close_journal()
            if problem.errno == errno.EADDRINUSE and port != last:
                continue
            _fail_to_bind(configuration, first, last, problem)
        LOGGER.info("quarterdeck %s runs as process %d", software_version(), os.getpid())
        for warning in configuration.warnings:
            LOGGER.warning("%s", warning)
        return process
    raise AssertionError("there is always a last port")


def _fail_to_bind(configuration: ProcessConfiguration, first: int, last: int, problem: OSError) -> NoReturn:
    ports = f"port {first} is not" if first == last else f"none of the ports {first} to {last} is"
    rest = configuration.rest_port
    besides = f", or port {rest} for HTTP is not" if rest is not None else ""
    reason = os.strerror(problem.errno) if problem.errno else str(problem)
    raise CannotRun(ExitStatus.NEVER_JOINED, f"{configuration.bind_host}: {ports} free{besides}: {reason}") from problem


def _is_taken(host: str, port: int) -> bool:
    """Return whether another process has this port just now. It may be so a moment later."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as problem:
            return problem.errno == errno.EADDRINUSE
    return False


def _clock() -> RunClock:
    """Return a clock of microseconds since 1970 that never goes backwards.

    Members that know nothing of one another share it as well as can be, and so do the incarnations of one member.
    """
    return RunClock(time.monotonic_ns() - time.time_ns(), 0)


def _limits() -> TransportLimits:
    descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    limits = DEFAULT_LIMITS if descriptors == resource.RLIM_INFINITY else limits_within(descriptors)
    LOGGER.info(
        "of %s open files, %d are for HTTP connections and %d for connections that have not said yet what they are",
        "unlimited" if descriptors == resource.RLIM_INFINITY else descriptors,
        limits.http,
        limits.pending,
    )
    return limits


def _journal(configuration: ProcessConfiguration) -> JournalWriter | None:
    if configuration.journal is None:
        return None
    member = configuration.member
    try:
        writer = JournalWriter(
            configuration.journal, member.run, file_name(member.label, member.address), alone=True, drops=True
        )
    except JournalInUse as problem:
        hint = "give one of the two another name, or another journal"
        raise CannotRun(ExitStatus.BAD_CONFIGURATION, f"{problem}; {hint}") from problem
    except (OSError, ValueError) as problem:
        raise CannotRun(ExitStatus.BAD_CONFIGURATION, f"the journal cannot be written: {problem}") from problem
    for leftover in writer.recovered:
        LOGGER.info("journal: %s: %s", leftover.file, leftover.reason)
    return writer


def _audit_log(configuration: ProcessConfiguration) -> AuditLog | None:
    if configuration.audit_log is None:
        return None
    try:
        return AuditLog(configuration.audit_log, file_name(configuration.member.label, configuration.member.address))
    except OSError as problem:
        raise CannotRun(ExitStatus.BAD_CONFIGURATION, f"the audit log cannot be written: {problem}") from problem


def file_name(text: str, address: str = "") -> str:
    """Return a name of files for a label or a cluster's name: different texts have different names; `address` is no label."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("._-") or "member"
    is_plain = text in (name, address) and re.search(FINISHED, name) is None
    return name if is_plain else f"{name}-{sha256(text.encode()).hexdigest()[:8]}"


class ReadyFile:
    """A file that exists as long as the member has joined and not left. Raises OSError when it cannot be written."""

    def __init__(self, path: Path) -> None:
        """Remove a file that a killed member has left behind."""
        self._path = path
        if not os.access(path.parent, os.W_OK | os.X_OK):
            raise OSError(errno.ENOENT, f"there is no folder {path.parent} to write into")
        path.unlink(missing_ok=True)

    def write(self, content: Mapping[str, object]) -> None:
        """Write it as a whole or not at all, so that its readers find it complete."""
        unfinished = self._path.with_name(f".{self._path.name}.{os.getpid()}")
        unfinished.write_bytes(msgspec.json.encode(content) + b"\n")
        unfinished.replace(self._path)

    def remove(self) -> None:
        """Remove it, because the member has left or is about to."""
        self._path.unlink(missing_ok=True)


def notify_systemd(state: str) -> None:
    """Send ``READY=1`` or the like to the service manager, if there is one. Raises OSError."""
    name = os.environ.get("NOTIFY_SOCKET")
    if name:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
            systemd.sendto(state.encode(), f"\0{name[1:]}" if name.startswith("@") else name)
