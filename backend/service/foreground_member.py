"""A member as the whole of a process: from its configuration until it is told to leave (design 5.4).

The first SIGTERM or SIGINT lets it give away what only it holds, and say goodbye; the second only say goodbye.
"""

from __future__ import annotations

import asyncio
import errno
import os
import re
import signal
import socket
import time
from dataclasses import replace
from enum import IntEnum
from pathlib import Path
from random import SystemRandom
from typing import NoReturn

from quarterdeck.backend.core.address import HIGHEST_PORT, host_of, make_address, port_of
from quarterdeck.backend.core.events import JoinFailed, Record
from quarterdeck.backend.core.join_list import parse_join_list
from quarterdeck.backend.core.member import Birth
from quarterdeck.backend.journal.writer import JournalFailed, JournalWriter
from quarterdeck.backend.live.clock import RunClock
from quarterdeck.backend.live.network import Network
from quarterdeck.backend.live.tls import BadCertificate
from quarterdeck.backend.service.configuration import MemberConfiguration
from quarterdeck.backend.service.member_service import MemberService
from quarterdeck.backend.service.readiness import ReadyFile, tell_systemd
from quarterdeck.backend.service.software import software_version
from quarterdeck.backend.service.structured_log import LOGGER, MemberLog, begin_log

PARTING_SECONDS = 2.0
"""How long a member that has left waits for its last words and answers to be under way."""


class End(IntEnum):
    """How it ended, as the status of the process."""

    LEFT = 0
    CRASHED = 1
    BAD_CONFIGURATION = 2
    NEVER_JOINED = 3
    """Its port was taken, or no cluster was found that would have it."""


class CannotRun(Exception):
    """The member could not even begin. `end` says how its process ends; the message why."""

    def __init__(self, end: End, reason: str) -> None:
        super().__init__(reason)
        self.end = end


def run_member(configuration: MemberConfiguration, ready_file: Path | None = None) -> End:
    """Lead the life of one member in this process. Raises `CannotRun`."""
    return asyncio.run(_live(configuration, ready_file))


async def _live(configuration: MemberConfiguration, ready_file: Path | None) -> End:
    try:
        ready = None if ready_file is None else ReadyFile(ready_file)
    except OSError as problem:
        raise CannotRun(End.BAD_CONFIGURATION, f"--ready-file {ready_file}: {problem.strerror}") from problem
    life = await _begin(configuration)
    service = life.service
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, _leave, service, number)
    telling = loop.create_task(_tell_when_joined(service, ready))
    preparing = loop.create_task(service.http.load()) if configuration.rest_enabled else None
    await service.over.wait()
    for task in (telling, preparing):
        if task is not None:
            task.cancel()
    if ready is not None:
        ready.remove()
    await service.closed(PARTING_SECONDS)
    return life.end()


def _leave(service: MemberService, number: signal.Signals) -> None:
    LOGGER.info("%s: leaving%s", number.name, " at once" if service.node_state == "PASSIVE" else "")
    service.stop()


async def _tell_when_joined(service: MemberService, ready: ReadyFile | None) -> None:
    await service.joined.wait()
    try:
        if ready is not None:
            ready.write({"label": service.label, "address": service.address, "uuid": service.uuid, "pid": os.getpid()})
        tell_systemd("READY=1")
    except OSError as problem:
        LOGGER.warning("nobody can be told that the member has joined: %s", problem)


class _Life:
    """One life, with what is to be tidied up after it."""

    def __init__(self, configuration: MemberConfiguration, base_port: int) -> None:
        """`base_port` is the first port of those that an entry of the join list without one stands for. Raises `CannotRun`."""
        self.failed_to_join = False
        address = configuration.address
        label = configuration.label or address
        run = configuration.run or _file_name(configuration.cluster_name)
        self._journal = _journal(configuration, run, label)
        log = MemberLog(address, legacy_lists=configuration.settings.legacy_list_text)
        birth = Birth(
            run=run,
            label=label,
            address=address,
            join_list=parse_join_list(
                configuration.join_list if configuration.tcp_ip_enabled else (),
                base_port=base_port,
                port_try_count=configuration.settings.join_port_try_count,
            ),
            settings=configuration.settings,
            lite=configuration.lite,
            cluster_name=configuration.cluster_name,
            zone=configuration.zone,
        )
        try:
            self.service = MemberService(
                configuration,
                birth,
                SystemRandom(),
                _clock(),
                Network({label: address}, SystemRandom()),
                journal=self._journal,
                takers=(log.take, self._watch),
            )
        except BadCertificate as problem:
            self.close_journal()
            raise CannotRun(End.BAD_CONFIGURATION, str(problem)) from problem

    def _watch(self, record: Record) -> None:
        if isinstance(record.event, JoinFailed):
            self.failed_to_join = True

    def end(self) -> End:
        self.close_journal()
        if self.service.crashed:
            return End.CRASHED
        return End.NEVER_JOINED if self.failed_to_join else End.LEFT

    def close_journal(self) -> None:
        if self._journal is not None:
            try:
                self._journal.close()
            except JournalFailed as problem:
                LOGGER.error("the journal is not complete: %s", problem)


async def _begin(configuration: MemberConfiguration) -> _Life:
    """Begin at the first port that is free, of those it may take. Raises `CannotRun`."""
    host, first = host_of(configuration.address), port_of(configuration.address)
    last = min(first + configuration.ports_tried - 1, HIGHEST_PORT)
    for port in range(first, last + 1):
        if port != last and _is_taken(configuration.bind_host, port):
            continue
        here = replace(configuration, address=make_address(host, port))
        begin_log(here.log_format, here.log_level, here.address, here.cluster_name)
        life = _Life(here, first)
        try:
            await life.service.start()
        except OSError as problem:
            life.close_journal()
            if problem.errno == errno.EADDRINUSE and port != last:
                continue
            _fail_to_bind(configuration, first, last, problem)
        LOGGER.info("quarterdeck %s runs as process %d", software_version(), os.getpid())
        return life
    raise AssertionError("there is always a last port")


def _fail_to_bind(configuration: MemberConfiguration, first: int, last: int, problem: OSError) -> NoReturn:
    ports = f"port {first} is not" if first == last else f"none of the ports {first} to {last} is"
    rest = configuration.rest_port
    besides = f", or port {rest} for HTTP is not" if rest is not None else ""
    reason = os.strerror(problem.errno) if problem.errno else str(problem)
    raise CannotRun(End.NEVER_JOINED, f"{configuration.bind_host}: {ports} to be had{besides}: {reason}") from problem


def _is_taken(host: str, port: int) -> bool:
    """Whether somebody has this port just now. Only a look: it may be so a moment later."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as problem:
            return problem.errno == errno.EADDRINUSE
    return False


def _clock() -> RunClock:
    """Microseconds since 1970, but never backwards: members that know nothing of one another share it as well as can be,
    and so do the lives of one member."""
    return RunClock(time.monotonic_ns() - time.time_ns(), 0)


def _journal(configuration: MemberConfiguration, run: str, label: str) -> JournalWriter | None:
    if configuration.journal is None:
        return None
    try:
        writer = JournalWriter(configuration.journal, run, _file_name(label))
    except (OSError, ValueError) as problem:
        raise CannotRun(End.BAD_CONFIGURATION, f"the journal cannot be written: {problem}") from problem
    for leftover in writer.recovered:
        LOGGER.info("journal: %s: %s", leftover.file, leftover.reason)
    return writer


def _file_name(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("._-") or "member"
