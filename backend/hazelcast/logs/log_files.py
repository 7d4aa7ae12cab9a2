"""Which files are read as logs, and why some cannot be: packed in archives, quiet, without times, of another program."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path, PurePath

from quarterdeck.backend.hazelcast.logs.split_parser import LogOptions, SplitSummary

ARCHIVE = "it is an archive, and was not read: unpack it"
MOST_NAMED = 8
_ARCHIVES = (
    ".zip", ".tar", ".tgz", ".tbz2", ".txz", ".tar.gz", ".tar.bz2", ".tar.xz", ".tar.zst", ".bz2", ".xz", ".zst", ".7z", ".rar",
    ".lz4", ".Z",
)  # fmt: skip
_NO_LOGS = (".jsonl", ".parquet", ".crc", ".open", ".xml", ".yaml", ".yml", ".html")
_SHOWN = 160
"""Characters of a line that a refusal shows."""


class NoLogs(ValueError):
    """A path that holds no log. The message names it."""


def log_files(paths: Iterable[Path]) -> list[Path]:
    """Return the files at `paths`; of a directory all files in it and below that may be logs. Raises `NoLogs`."""
    files: list[Path] = []
    for path in paths:
        if path.is_dir():
            found = [file for file in sorted(path.rglob("*")) if file.is_file() and may_be_log(file)]
        else:
            found = [path] if path.is_file() and not is_archive(path) else []
        if not found:
            packed = archives_in([path])
            raise NoLogs(
                f"{packed[0]} is an archive: unpack it, and name the directory"
                if packed
                else f"{path}: no log of a member; name a file, or a directory with files such as member.log"
            )
        files += found
    return list(dict.fromkeys(file.resolve() for file in files))


def archives_in(paths: Iterable[Path]) -> list[Path]:
    """Return the archives at `paths` and below, which are not read."""
    files = (file for path in paths for file in (sorted(path.rglob("*")) if path.is_dir() else [path]))
    return [file for file in files if file.is_file() and is_archive(file)]


def is_archive(file: Path) -> bool:
    """Return whether the name of a file says that it is packed in a way that is not read."""
    return file.name.endswith(_ARCHIVES)


def may_be_log(file: PurePath) -> bool:
    """Return whether a file found in a directory is worth reading: not hidden, no journal, no table, no archive."""
    return not file.name.startswith((".", "_")) and not file.name.endswith((*_NO_LOGS, *_ARCHIVES))


def check_zones(options: LogOptions, files: Iterable[PurePath]) -> None:
    """Raise `NoLogs` where a zone is given for a file that is none of these: its times would be read in another one."""
    names = {file.name for file in files}
    for part in options.zone.split(","):
        name, is_of_file, _ = part.strip().rpartition("=")
        if is_of_file and name not in names:
            some = ", ".join(sorted(names)[:MOST_NAMED]) + ", …" * (len(names) > MOST_NAMED)
            raise NoLogs(f"zone: none of the logs is called {name!r}; they are called {some}")


def refusal(where: str, summaries: Sequence[SplitSummary]) -> str:
    """Say why logs give no record: a quiet log, lines of the product without a time, or lines of something else."""
    lines = sum(summary.lines for summary in summaries)
    members = dict.fromkeys(
        name for summary in summaries for state in summary.streams.values() for name in state.members
    )
    if any(map(is_understood, summaries)):
        ours = sum(
            count
            for summary in summaries
            for kind, (_, count) in summary.counts.items()
            if kind not in ("blank", "foreign", "quarantined")
        )
        named = f" of {', '.join(list(members)[:MOST_NAMED])}" if members else " of a member"
        return f"{where}: {ours} line{'s' * (ours != 1)}{named}, none tells an event (a quiet log)"
    unread = next((summary for summary in summaries if summary.unread_line), None)
    if unread is not None:
        count = sum(summary.unread_count for summary in summaries)
        number, text = unread.unread_line or (0, "")
        return (
            f"{where}: {count} line{'s' * (count != 1)} with a member's prefix, [address]:port [cluster] [version], but no time "
            f"that is known here; the first is {unread.file}:{number + 1}: {text.strip()[:_SHOWN]}"
        )
    first = next(((summary.file, summary.first_line) for summary in summaries if summary.first_line), None)
    shown = f"; {first[0]} begins with: {first[1].strip()[:_SHOWN]}" if first else ""
    return (
        f"{where}: none of {lines} lines is understood as what a member of a Hazelcast cluster logs, and it is not a journal: "
        f"none has the prefix [address]:port [cluster] [version]{shown}"
    )


def is_understood(summary: SplitSummary) -> bool:
    """Return whether something in a split is what a member logs."""
    return bool(summary.counts.keys() - {"blank", "foreign", "quarantined", "unrecognised"})
