"""Kinds of corruption of a journal: each changes the files of a sound one."""

from __future__ import annotations

import gzip
from collections.abc import Callable

import msgspec

from quarterdeck.backend.core.events import Record
from tests.pipeline.journal_builder import JournalBuilder, clean_story, line

Files = dict[str, bytes]
"""By path below the root of the journal."""

RUN = "clean"
FIRST, SECOND, LATE = (f"run={RUN}/{name}.jsonl" for name in ("a-000001", "a-000002", "b-000001"))
decode, replace = msgspec.json.Decoder(Record).decode, msgspec.structs.replace
HUGE = 2**63 - 1


def sound() -> Files:
    """Return a run in three files of two writers, and a second one."""
    lines = [line(record) for record in clean_story(RUN).records]
    other = b"".join(line(record) for record in clean_story("other").records)
    files = {FIRST: lines[:10], SECOND: lines[10:20], LATE: lines[20:]}
    return {name: b"".join(part) for name, part in files.items()} | {"run=other/a-000001.jsonl": other}


def _changed(name: str, number: int, change: Callable[[bytes], bytes]) -> Files:
    files = sound()
    lines = files[name].splitlines(keepends=True)
    lines[number] = change(lines[number])
    return files | {name: b"".join(lines)}


def _with(**more: bytes) -> Files:
    files = sound()
    return files | {place: files.get(place, b"") + content for place, content in more.items()}


def _record(name: str, number: int, **fields: object) -> bytes:
    """Return the line of a record of the sound journal with other fields."""
    return line(replace(decode(sound()[name].splitlines()[number]), **fields))


def _event(name: str, number: int, **fields: object) -> bytes:
    record = decode(sound()[name].splitlines()[number])
    return line(replace(record, event=replace(record.event, **fields)))


def _installed(name: str, number: int) -> bytes:
    """Return another content of a list that is installed: without the member that installs it."""
    record = decode(sound()[name].splitlines()[number])
    members = tuple(member for member in record.event.members if member.uuid != record.uuid)  # type: ignore[union-attr]
    return line(replace(record, event=replace(record.event, members=members)))


def _earlier(raw: bytes, by_us: int = 500) -> bytes:
    record = decode(raw)
    return line(replace(record, at=record.at - by_us))


def _later(raw: bytes) -> bytes:
    return _earlier(raw, -500)


def _reordered(name: str, order: Callable[[list[bytes]], list[bytes]]) -> Files:
    files = sound()
    return files | {name: b"".join(order(files[name].splitlines(keepends=True)))}


def _all(change: Callable[[bytes], bytes]) -> Files:
    return {name: change(content) for name, content in sound().items()}


def _clock(member: str, by_us: int) -> Files:
    def change(raw: bytes) -> bytes:
        record = decode(raw)
        return line(replace(record, at=record.at + by_us) if record.member == member else record)

    return _all(lambda content: b"".join(map(change, content.splitlines())))


def _skewed() -> Files:
    many = JournalBuilder("many")
    many.installs("a1", "one/1", 1, "a1")
    for _ in range(3_000):
        many.says("a1")
    return sound() | {"run=many/a-000001.jsonl": b"".join(map(line, many.records))}


GAP = b'{"run":"clean","member":"a","uuid":"uuid-a1","seq":99'
UNKNOWN = b'{"run":"clean","member":"a","uuid":"uuid-a1","seq":99,"at":1,"utc":1,"event":{"kind":"moon-landed"}}\n'

CORRUPTIONS: dict[str, Callable[[], Files]] = {
    "none": sound,
    # duplicates of equal content
    "a line twice": lambda: _with(**{FIRST: sound()[FIRST].splitlines(keepends=True)[3]}),
    "a line again in a later file": lambda: _with(**{LATE: _record(FIRST, 3)}),
    "a line again in an earlier file": lambda: _with(**{FIRST: _record(LATE, 3)}),
    "a file twice": lambda: _with(**{f"run={RUN}/c-000001.jsonl": sound()[FIRST]}),
    "a file in the folder of another run": lambda: _with(**{"run=other/z-000001.jsonl": sound()[FIRST]}),
    "a loose copy": lambda: _with(**{"loose.jsonl": sound()[SECOND]}),
    # of other content
    "another content later in the file": lambda: _with(**{FIRST: _installed(FIRST, 3)}),
    "another content at an earlier time": lambda: _with(**{FIRST: _earlier(_installed(FIRST, 3))}),
    "another content at a later time": lambda: _with(**{FIRST: _later(_installed(FIRST, 3))}),
    "another content in a later file": lambda: _with(**{LATE: _earlier(_installed(FIRST, 3))}),
    "another content in an earlier file": lambda: _with(**{FIRST: _later(_installed(LATE, 3))}),
    "another content in an earlier file at the time": lambda: _with(**{FIRST: _installed(LATE, 3)}),
    "another content before it in the file": lambda: _reordered(
        LATE, lambda lines: [_later(_installed(LATE, 3)), *lines]
    ),
    "three contents": lambda: _with(**{LATE: _earlier(_installed(FIRST, 3)) + _event(FIRST, 3, cause="otherwise")}),
    "another content in the folder of another run": lambda: _with(**{"run=other/b-000001.jsonl": _installed(FIRST, 3)}),
    "another content twice": lambda: _with(**{SECOND: 2 * _installed(FIRST, 3)}),
    "another spelling": lambda: _with(**{LATE: sound()[FIRST].splitlines()[3].replace(b'":', b'": ') + b"\n"}),
    "another wall clock": lambda: _with(**{LATE: _record(FIRST, 3, utc=1)}),
    "only a contradiction and its origin swapped": lambda: _reordered(
        FIRST, lambda lines: [*lines[:3], _installed(FIRST, 3), *lines[3:]]
    ),
    # numbers
    "a missing number": lambda: _changed(FIRST, 5, lambda raw: b""),
    "a missing file": lambda: {name: content for name, content in sound().items() if name != SECOND},
    "swapped numbers": lambda: _reordered(FIRST, lambda lines: [*lines[:4], lines[5], lines[4], *lines[6:]]),
    "lines backwards": lambda: _reordered(FIRST, lambda lines: lines[::-1]),
    "files swapped": lambda: sound() | {FIRST: sound()[SECOND], SECOND: sound()[FIRST]},
    "the number 0": lambda: _with(**{LATE: _record(FIRST, 3, seq=0)}),
    "a negative number": lambda: _with(**{LATE: _record(FIRST, 3, seq=-5)}),
    "a great number": lambda: _with(**{LATE: _record(LATE, -1, seq=HUGE)}),
    "the beginning is missing": lambda: _reordered(FIRST, lambda lines: lines[4:]),
    # cut and packed files
    "a cut line": lambda: _with(**{LATE: GAP}),
    "a cut line in the middle": lambda: _changed(FIRST, 5, lambda raw: raw[:40] + b"\n"),
    "two lines in one": lambda: _changed(FIRST, 5, lambda raw: raw.rstrip()),
    "an empty file": lambda: _with(**{f"run={RUN}/c-000001.jsonl": b""}),
    "empty lines": lambda: _with(**{FIRST: b"\n\n"}),
    "no line break at the end": lambda: _all(bytes.rstrip),
    "a packed file": lambda: _with(**{f"run={RUN}/c-000001.jsonl": gzip.compress(sound()[FIRST], mtime=0)}),
    "zeros": lambda: _with(**{LATE: bytes(64)}),
    # forms
    "an unknown kind": lambda: _with(**{LATE: UNKNOWN}),
    "an unknown field": lambda: _changed(
        FIRST, 3, lambda raw: raw.replace(b'"event":{', b'"new":1,"event":{"newer":2,')
    ),
    "a missing field": lambda: _changed(FIRST, 3, lambda raw: raw.replace(b'"lineage"', b'"linage"')),
    "a wrong type": lambda: _changed(FIRST, 3, lambda raw: raw.replace(b'"seq":', b'"seq":"x","was":')),
    "no run": lambda: _changed(FIRST, 3, lambda raw: raw.replace(b'"run":"clean"', b'"run":""')),
    "a list instead of a record": lambda: _with(**{FIRST: b"[1, 2]\n"}),
    # edges of integers
    "a version of 2^40 + 7": lambda: _changed(LATE, -1, lambda raw: _event(LATE, -1, version=2**40 + 7)),
    "a version of 2^63 - 1": lambda: _changed(LATE, -1, lambda raw: _event(LATE, -1, version=HUGE)),
    "a version beyond 64 bits": lambda: _changed(
        LATE, -1, lambda raw: _event(LATE, -1, version=HUGE).replace(b"%d" % HUGE, b"%d" % 2**70)
    ),
    "a time beyond 64 bits": lambda: _changed(LATE, -1, lambda raw: raw.replace(b'"at":', b'"at":9999999999999')),
    # clocks
    "a clock ahead": lambda: _clock("a", 3_600_000_000),
    "a clock behind": lambda: _clock("b", -3_000),
    "a time of 0": lambda: _changed(FIRST, 5, lambda raw: _record(FIRST, 5, at=0)),
    "a time of another age": lambda: _changed(FIRST, 5, lambda raw: _record(FIRST, 5, at=10**17)),
    # encodings
    "a mark of byte order": lambda: sound() | {FIRST: b"\xef\xbb\xbf" + sound()[FIRST]},
    "no UTF-8": lambda: _with(**{LATE: b"\xff\xfe\n"}),
    "line breaks of Windows": lambda: _all(lambda content: content.replace(b"\n", b"\r\n")),
    "a name in other letters": lambda: _changed(
        FIRST, 3, lambda raw: raw.replace(b'"told by a test"', '"ε\\u0000ß"'.encode())
    ),
    # skew
    "one great run": _skewed,
}
