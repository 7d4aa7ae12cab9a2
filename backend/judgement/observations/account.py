"""The account of the logs of a run: the members that log, the time, the events, and the facts that cannot be known.

Each sentence about an event ends with the line that shows the event. Facts that no log shows are unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from quarterdeck.backend.core.membership import events
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.hazelcast.logs.interpretation import InterpretedMessage
from quarterdeck.backend.judgement.observations.observation import LogEnds, Observation
from quarterdeck.backend.judgement.observations.wording import lasted, listed

HAPPENED = 4
"""The number of sentences about events."""
MISSING_LOG = "what it did is known from the others alone"


class RunAccount:
    """Follows the members that log, the listed members, and the changes that the logs of a run show."""

    def __init__(self) -> None:
        self._logged: dict[str, bool] = {}
        """By member, whether its log has a member list."""
        self._listed: dict[str, None] = {}
        self._said: list[tuple[InterpretedMessage, str, str]] = []
        """The first messages of changes, the removed or suspected member, and the sentence."""

    def add(self, message: InterpretedMessage) -> None:
        """Take one more message into account."""
        member = message.member
        self._logged.setdefault(member, False)
        for installed in message.events(events.ListInstalled):
            self._logged[member] = True
            self._listed |= dict.fromkeys(str(listed.address) for listed in installed.members)
        if len(self._said) == HAPPENED:
            return
        for removed in message.events(events.MemberRemoved):
            why = f" ({removed.cause})" if removed.cause != "unknown" else ""
            self._said.append((message, str(removed.address), f"{member} removed {removed.address}{why}"))
        for raised in message.events(events.SuspicionRaised):
            why = f" ({raised.cause})" if raised.cause != "unknown" else ""
            self._said.append((message, str(raised.suspect), f"{member} suspected {raised.suspect}{why}"))
        for merging in message.events(events.MergeStarted):
            self._said.append((message, "", f"{member} began to merge into the cluster of {merging.target}"))
        for stopped in message.events(events.MemberStopped):
            self._said.append((message, "", f"{member} stopped: {stopped.reason}"))
        del self._said[HAPPENED:]

    def sentences(self, began_us: int, ends: LogEnds, observations: Sequence[Observation]) -> tuple[str, ...]:
        """Return the account of a run that began at `began_us`, in microseconds since 1970."""
        if not self._logged:
            return ()
        members = sorted(self._logged)
        until = began_us + ends.end_us
        count = f"{len(members)} member{'s log' if len(members) > 1 else ' logs'} here"
        said = [f"{count}, from {_day(began_us)} to {_day(until)} UTC ({lasted(ends.end_us)}): {listed(members)}"]
        missing = [address for address in self._listed if address not in self._logged]
        if missing:
            which = "The log of" if len(missing) == 1 else "The logs of"
            whose = MISSING_LOG if len(missing) == 1 else MISSING_LOG.replace("it did", "they did")
            said.append(f"{which} {listed(missing)} {'is' if len(missing) == 1 else 'are'} not among these: {whose}")
        said += self._happened(observations)
        said += self._unknown(missing)
        return tuple(said)

    def _happened(self, observations: Sequence[Observation]) -> Iterable[str]:
        found = [
            (seen.start_us, f"{_clock(seen.start_utc)} {seen.headline}", seen.evidence[0].file, seen.evidence[0].line)
            for seen in observations
            if seen.evidence
        ]
        explained = {member for seen in observations for member in seen.members}
        found += [
            (message.at, f"{_clock(message.place.utc)} {words}", message.place.file, message.place.line)
            for message, whom, words in self._said
            if whom not in explained
        ]
        found.sort()
        files = {file for *_, file, _ in found}
        is_ambiguous = len({Path(file).name for file in files}) < len(files)
        for _, words, file, line in found[:HAPPENED]:
            folder = f"{Path(file).parent.name}/" if is_ambiguous else ""
            yield f"{words} ({folder}{Path(file).name}:{line})"
        if (more := len(found) - HAPPENED) > 0:
            yield f"And {more} more, which follow"
        if not found:
            yield "No removal, merge, stop or trouble is in these lines; what stands in none of them is unknown"

    def _unknown(self, missing: Sequence[str]) -> Iterable[str]:
        bare = [member for member, has_list in sorted(self._logged.items()) if not has_list]
        if bare:
            whose = f"the log{'s' if len(bare) > 1 else ''} of {listed(bare)}"
            yield f"Not known: who was on the list of {listed(bare)}; {whose} from {_start(bare)} would tell it"
        if missing:
            yield f"Not known: whether {listed(missing)} ran on meanwhile; {_own(missing)} would tell it"


def _start(members: Sequence[str]) -> str:
    return "their starts on" if len(members) > 1 else "its start on"


def _own(members: Sequence[str]) -> str:
    return "their own logs" if len(members) > 1 else "its own log"


def _day(utc: int) -> str:
    return f"{datetime.fromtimestamp(utc / SECOND_US, UTC):%Y-%m-%d %H:%M:%S}"


def _clock(utc: int) -> str:
    return f"{datetime.fromtimestamp(utc / SECOND_US, UTC):%H:%M:%S}"
