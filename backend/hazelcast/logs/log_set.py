"""All log files together: line numbers, members and times that are known only when every split has been parsed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC
from os.path import commonpath
from pathlib import Path
from statistics import median

from msgspec import Struct

from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.hazelcast.logs.lines.file_splits import SplitCounts
from quarterdeck.backend.hazelcast.logs.lines.form_detection import DATELESS
from quarterdeck.backend.hazelcast.logs.lines.timestamps import DAY_US, LogTime, parse_time, to_utc
from quarterdeck.backend.hazelcast.logs.parsed_messages import LoggedMemberList, ParsedMessage
from quarterdeck.backend.hazelcast.logs.patterns.matching import match_message
from quarterdeck.backend.hazelcast.logs.patterns.membership import is_cut_list
from quarterdeck.backend.hazelcast.logs.split_parser import EventMessage, LogOptions, SplitSummary, StreamState, zone_of

QUARTER_US = 900 * SECOND_US
TOLERANCE_US = 90 * SECOND_US
"""By how much clocks of one zone may differ, and a list may come late."""
APART_US = 1800 * SECOND_US
"""Logs of one run that have nothing in common lie no further apart than this."""


class ClockReading(Struct):
    """What one member's logs show of its clock."""

    zoned: bool = False
    first_us: int | None = None
    last_us: int | None = None
    lists: dict[str, tuple[int, str, int]] = {}
    """By the name of a list: when it was logged first, the file and the line."""


class AlignedClock(Struct, frozen=True):
    """A member whose clock was read in another zone than it was written in.

    `ahead_us` is None for one that may have been.
    """

    run: str
    member: str
    ahead_us: int | None
    """By how much its times were ahead of those of the others, before they were corrected."""
    lists: int
    file: str
    line: int
    first_us: int
    last_us: int


def align_clocks(run: str, readings: Mapping[str, ClockReading]) -> list[AlignedClock]:
    """Return the members whose clocks are ahead of most clocks of the run, or of those whose zone is known."""
    ahead = _relative(readings)
    zoned = [member for member in ahead if readings[member].zoned]
    common = ahead[zoned[0]] if zoned else Counter(ahead.values()).most_common(1)[0][0] if ahead else 0
    wrong = {member: us for member, us in ahead.items() if us != common and not readings[member].zoned}
    aligned = [_aligned(run, member, readings, us - common) for member, us in wrong.items()]
    shifts = {clock.member: clock.ahead_us or 0 for clock in aligned}
    spans = [
        (reading.first_us - shifts.get(member, 0), (reading.last_us or reading.first_us) - shifts.get(member, 0))
        for member, reading in readings.items()
        if member in ahead and reading.first_us is not None
    ]
    for member, reading in readings.items():
        if member in ahead or reading.zoned or reading.first_us is None or not spans:
            continue
        begins, ends = min(span[0] for span in spans), max(span[1] for span in spans)
        if reading.first_us > ends + APART_US or (reading.last_us or reading.first_us) < begins - APART_US:
            aligned.append(_aligned(run, member, readings, None))
    return aligned


def _relative(readings: Mapping[str, ClockReading]) -> dict[str, int]:
    """Return by how much each member's clock is ahead of the first one's, for members that have lists in common."""
    members = sorted(
        (name for name in readings if readings[name].lists), key=lambda name: (not readings[name].zoned, name)
    )
    found = members[:1]
    ahead = dict.fromkeys(found, 0)
    for known in found:
        for member in [name for name in members if name not in ahead]:
            if (quarters := _difference(readings[known], readings[member])) is not None:
                ahead[member] = ahead[known] + quarters
                found.append(member)
    return ahead


def _difference(reading: ClockReading, other: ClockReading) -> int | None:
    """Return how far the other clock is ahead, in quarters of an hour (as microseconds); None without common lists."""
    common = reading.lists.keys() & other.lists.keys()
    if not common:
        return None
    apart_us = round(median(other.lists[name][0] - reading.lists[name][0] for name in common))
    quarters = round(apart_us / QUARTER_US) * QUARTER_US
    return quarters if abs(apart_us - quarters) <= TOLERANCE_US else 0


def _aligned(run: str, member: str, readings: Mapping[str, ClockReading], ahead_us: int | None) -> AlignedClock:
    reading = readings[member]
    _, file, line = min(reading.lists.values(), default=(0, "", 0))
    first = reading.first_us or 0
    return AlignedClock(run, member, ahead_us, len(reading.lists), file, line, first, reading.last_us or first)


SUMMER_TIME = "as at the end of summer time: later times are read an hour later"
AMBIGUOUS_MEMBER = "it does not say which member speaks, and several speak in this file"


class MemberMessage(Struct, frozen=True, gc=False):
    """A message of one member of one run, with all that gives it its place among the others."""

    run: str
    member: str
    at_us: int
    utc: int
    file_us: int
    file: str
    offset: int
    logger: str
    text: str
    thread: str
    line: int
    """Its number in the file, from 1."""
    parsed: ParsedMessage | None = None
    """What it means, as far as that was found when its file was read."""
    rank: int = 0
    """Its place among the messages of its file that have its time."""


class LogSet:
    """The summaries of all splits together: line numbers, members, and times without a date completed.

    Raises `ValueError` for an option that is wrong.
    """

    def __init__(self, summaries: Sequence[SplitSummary], options: LogOptions) -> None:
        self._options = options
        zone_of(options)  # one that is wrong is an error here, not later
        self._first_day_us = _first_day_us(options)
        self._offsets: dict[tuple[str, int], SplitOffset] = {}
        self._highs: dict[tuple[str, int, str, str], int] = {}
        self._members: dict[tuple[str, str | None], str | None] = {}
        self._file_us: dict[str, int] = {}
        self._falling: set[str] = set()
        self._turned: dict[str, int] = {}
        """Files whose lines were turned round, and how many lines each has."""
        self._run_us: dict[str, int] = {}
        self._run_ended_us: dict[str, int] = {}
        self._ahead_us: dict[str, int] = {}
        self._clocks: dict[str, dict[str, ClockReading]] = {}
        self._lasts_us: dict[str, dict[str, int]] = {}
        """By run and member, when it logged last."""
        self.aligned_clocks: list[AlignedClock] = []
        self._notes: dict[str, dict[str, None]] = {}
        """By file, what is to be said of how it was read."""
        self._runs = runs_of_folders(summaries) if not options.run else {}
        by_file: dict[str, list[SplitSummary]] = {}
        for summary in sorted(summaries, key=lambda split: (split.file, split.index)):
            by_file.setdefault(summary.file, []).append(summary)
        self._torn: dict[str, list[SplitSummary]] = {}
        """By folder, the files that begin inside a message."""
        self._joined: set[tuple[str, int, int]] = set()
        """Lines of lists that go on in another file: file, split and number in that."""
        for file, parts in by_file.items():
            if parts[0].ambiguous_zone and zone_of(options, file) is None:
                raise ValueError(
                    f"{file}: its times are in {parts[0].ambiguous_zone}, which is the name of several zones; say which with "
                    f"--zone, as in --zone {Path(file).name}=America/Chicago"
                )
            self._add_file(file, parts)
            self._note(file, parts)
            if parts[0].torn_start:
                self._torn.setdefault(str(Path(file).parent), []).append(parts[0])
        self._align()

    def _add_file(self, file: str, parts: list[SplitSummary]) -> None:
        day = LogTime(0)
        counts = [SplitCounts(part.lines, part.first_dateless, part.last_dateless) for part in parts]
        if parts[0].is_falling:
            self._falling.add(file)
            counts = [SplitCounts(part.lines, part.last_dateless, part.first_dateless) for part in parts]
        if parts[0].is_turned:
            self._turned[file] = sum(part.lines for part in parts)
        zone = zone_of(self._options, file) or UTC
        local_us = parts[0].modified_us - (to_utc(day, zone, None) - day.us)
        for part, offset in zip(parts, split_offsets(counts, self._first_day_us, local_us), strict=True):
            self._offsets[file, part.index] = offset
        firsts: list[int] = []
        streams: dict[str, StreamState] = {}
        for part in parts:
            if part.first_dateless is not None:
                firsts.append(self._dated(file, part.first_dateless, self._offsets[file, part.index]))
            for stream, state in part.streams.items():
                known = streams.setdefault(stream, StreamState())
                for member, last_us in known.lasts_us.items():
                    self._highs[file, part.index, stream, member] = last_us
                known.add(state)
        firsts += [state.first_us for state in streams.values() if state.first_us is not None]
        self._file_us[file] = min(firsts, default=0)
        whole = StreamState()
        for stream, state in streams.items():
            self._members[file, stream] = state.only_name
            whole.add(state)
        names_no_member = not whole.members and not whole.self_addresses
        label = Path(file).name.removesuffix(".gz")
        self._members[file, None] = (label.partition(".")[0] or label) if names_no_member else whole.only_name
        self._read_clock(file, parts, whole)

    def _note(self, file: str, parts: list[SplitSummary]) -> None:
        notes = self._notes.setdefault(file, {})
        notes |= dict.fromkeys(note for note in parts[0].notes if not (note == DATELESS and self._options.date))
        if cut := sum(part.cut_lists for part in parts):
            notes[f"{cut} member lists have lost their lines: who was on them is not known"] = None
        for part in parts:
            for state in part.streams.values():
                for number in state.set_back.values():
                    line = self.line_number(file, part.index, number)
                    notes[f"its times fall by about an hour in line {line} ({SUMMER_TIME})"] = None

    def notes(self, run: str) -> list[str]:
        """Return what is to be said of how the files of a run were read, each with its file."""
        return [
            f"{Path(file).name}: {note}"
            for file, notes in self._notes.items()
            if self.run_of(file) == run
            for note in notes
        ]

    def _read_clock(self, file: str, parts: list[SplitSummary], whole: StreamState) -> None:
        reading = self._clocks.setdefault(self.run_of(file), {}).setdefault(self._clock_of(file), ClockReading())
        reading.zoned |= whole.zoned
        times = (whole.first_us, *whole.lasts_us.values(), reading.first_us, reading.last_us)
        known = [us for us in times if us is not None]
        lasts_us = self._lasts_us.setdefault(self.run_of(file), {})
        for member, last_us in whole.lasts_us.items():
            member = member or self._clock_of(file)
            lasts_us[member] = max(last_us, lasts_us.get(member, last_us))
        reading.first_us, reading.last_us = min(known, default=None), max(known, default=None)
        for part in parts:
            for state in part.streams.values():
                for name, (us, number) in state.lists.items():
                    seen = (us, file, self.line_number(file, part.index, number))
                    reading.lists[name] = min(seen, reading.lists.get(name, seen))

    def _clock_of(self, file: str) -> str:
        """Return whose clock wrote the times of a file: its member's, or that of all who log there."""
        return self._members[file, None] or file

    def _align(self) -> None:
        """Put the times of a run on one clock, and find when each run begins and ends."""
        for run, readings in self._clocks.items():
            self.aligned_clocks += align_clocks(run, readings)
        ahead = {(clock.run, clock.member): clock.ahead_us or 0 for clock in self.aligned_clocks}
        for file, us in self._file_us.items():
            run = self.run_of(file)
            self._ahead_us[file] = ahead.get((run, self._clock_of(file)), 0)
            self._file_us[file] = us = us - self._ahead_us[file]
            self._run_us[run] = min(self._run_us.get(run, us), us)
        for run, readings in self._clocks.items():
            lasts = [clock.last_us - ahead.get((run, member), 0) for member, clock in readings.items() if clock.last_us]
            self._run_ended_us[run] = max(lasts, default=0)

    def _dated(self, file: str, us: int, offset: SplitOffset) -> int:
        return to_utc(LogTime(us + offset.dateless_us), zone_of(self._options, file) or UTC, None)

    def run_of(self, file: str) -> str:
        folder = str(Path(file).parent)
        return self._options.run or self._runs.get(folder) or Path(folder).name or "logs"

    def run_began_us(self, run: str) -> int:
        """Return the earliest time in the run: where its clock begins."""
        return self._run_us.get(run, 0)

    def run_ended_us(self, run: str) -> int:
        """Return when the logs of the run end, in microseconds on its clock."""
        return max(0, self._run_ended_us.get(run, 0) - self.run_began_us(run))

    def last_logged_us(self, run: str) -> dict[str, int]:
        """Return when each member of the run logged last, on the run's clock, as far as times with a date show."""
        ahead = {clock.member: clock.ahead_us or 0 for clock in self.aligned_clocks if clock.run == run}
        began = self.run_began_us(run)
        return {
            member: last_us - ahead.get(member, 0) - began for member, last_us in self._lasts_us.get(run, {}).items()
        }

    def line_number(self, file: str, index: int, number: int) -> int:
        """Return the number of a line in its file, from 1."""
        from_first = self._offsets[file, index].lines + number + 1
        return self._turned[file] + 1 - from_first if file in self._turned else from_first

    def knows(self, file: str, index: int) -> bool:
        return (file, index) in self._offsets

    def place(self, file: str, index: int, message: EventMessage) -> MemberMessage | None:
        """Place a message; None when its line does not name the member and several members log to the file."""
        member = message.member or self._members.get((file, message.stream)) or self._members.get((file, None))
        if not member:
            return None
        if message.dateless:
            utc = at = self._dated(file, message.utc, self._offsets[file, index])
        else:
            utc = at = message.utc
        is_falling = file in self._falling
        if not (message.dateless or is_falling):
            at = max(message.high, self._highs.get((file, index, message.stream, message.member), message.high))
        ahead_us, text = self._ahead_us.get(file, 0), self._text(file, index, member, message)
        return MemberMessage(
            self.run_of(file), member, at - ahead_us, utc - ahead_us, self._file_us[file], file, message.offset,
            message.logger, text, message.thread, self.line_number(file, index, message.number),
            message.parsed if text is message.text else None, -message.offset if is_falling else message.offset,
        )  # fmt: skip

    def _text(self, file: str, index: int, member: str, message: EventMessage) -> str:
        """Return the text of a message; a member list that is cut off at the end of a file goes on in the member's next one."""
        if not is_cut_list(message.text):
            return message.text
        torn = self._torn.get(str(Path(file).parent), ())
        others = (part for part in torn if part.file != file and self._members.get((part.file, None)) == member)
        texts = ((part, "\n".join((message.text.rstrip("\n"), *part.torn_start))) for part in others)
        matches = ((part, text, match_message(text, message.logger)) for part, text in texts)
        whole = [(part, text) for part, text, it in matches if it and isinstance(it.parsed, LoggedMemberList)]
        if len(whole) != 1:
            return message.text
        part, text = whole[0]
        self._joined |= {(file, index, message.number), *((part.file, 0, line) for line in range(len(part.torn_start)))}
        return text

    def is_joined(self, file: str, index: int, number: int) -> bool:
        """Return whether a line belongs to a list that goes on in another file; known when all messages are placed."""
        return (file, index, number) in self._joined


def runs_of_folders(summaries: Sequence[SplitSummary]) -> dict[str, str]:
    """Return the name of the run in each folder.

    Folders in which members of one cluster log, each in one of them, are one run, which has the name of the folder above. Where a
    member logs in several folders, each is a run.
    """
    members: dict[str, set[str]] = {}
    clusters: dict[str, set[str]] = {}
    for summary in summaries:
        folder = str(Path(summary.file).parent)
        for state in summary.streams.values():
            members.setdefault(folder, set()).update(state.members or state.self_addresses)
            clusters.setdefault(folder, set()).update(state.clusters)
    folders = [folder for folder, names in members.items() if names]
    if sum(len(members[folder]) for folder in folders) > len(set().union(*(members[folder] for folder in folders))):
        return {}
    together: dict[frozenset[str], list[str]] = {}
    for folder in folders:
        key = next((key for key in together if key & clusters[folder]), frozenset(clusters[folder]))
        together.setdefault(key, []).append(folder)
    return {folder: Path(commonpath(group)).name for group in together.values() if len(group) > 1 for folder in group}


class SplitOffset(Struct, frozen=True):
    """What comes before a split: `lines` lines, and what completes its times without a date."""

    lines: int
    dateless_us: int


def split_offsets(splits: Sequence[SplitCounts], first_day_us: int | None, modified_us: int) -> list[SplitOffset]:
    """Return, for the splits of one file in order, what each has to add to its numbers and times.

    `first_day_us` is the midnight before the first message; where it is None, the last message counts as logged on the day on
    which the file was last written.
    """
    lines = 0
    last: int | None = None
    shifts: list[tuple[int, int]] = []
    shift = 0
    for counts in splits:
        if counts.first_dateless is not None and last is not None:
            shift = -((counts.first_dateless - (last - DAY_US // 2)) // DAY_US) * DAY_US
        shifts.append((lines, shift))
        lines += counts.lines
        if counts.last_dateless is not None:
            last = counts.last_dateless + shift
    if first_day_us is None:
        first_day_us = (modified_us - (last or 0)) // DAY_US * DAY_US if last is not None else 0
    return [SplitOffset(before, first_day_us + us) for before, us in shifts]


def _first_day_us(options: LogOptions) -> int | None:
    if not options.date:
        return None
    stamp = parse_time(f"{options.date} 00:00:00")
    if stamp is None or stamp.lacks:
        raise ValueError(f"date: {options.date!r} is no date; write 2026-11-21")
    return stamp.us


def total_counts(summaries: Sequence[SplitSummary]) -> Mapping[str, dict[str, tuple[int, int]]]:
    """Return by file, for each kind of message, how many there are and how many lines they fill."""
    totals: dict[str, dict[str, tuple[int, int]]] = {}
    for summary in summaries:
        counts = totals.setdefault(summary.file, {})
        for what, (messages, lines) in summary.counts.items():
            before = counts.get(what, (0, 0))
            counts[what] = (before[0] + messages, before[1] + lines)
    return totals
