"""A campaign's folder: what was to be run, and the rows of what has been run, which survive whatever ends the campaign.

``campaign.json``, ``verdicts/chunk-N.parquet``, ``journals/``, ``failures/``. Only whole chunks ever stand under their names.

At an address, such as ``s3a://…``, there is no lock: two drivers with one folder would spoil each other's work.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from msgspec import Struct
from pyspark.sql.pandas.types import to_arrow_schema

from quarterdeck.backend.pipeline import commit
from quarterdeck.backend.pipeline.campaign.plan import Campaign, PlannedRun
from quarterdeck.backend.pipeline.campaign.verdicts import VerdictRow
from quarterdeck.backend.pipeline.campaign.waves import ROWS
from quarterdeck.backend.pipeline.commit import Place
from quarterdeck.backend.pipeline.spark.package_archive import sources_digest

_BUILDING = ".building-"
MADE_OF_FAILURES = ("journals", "failures")
"""The directories of what is written about runs that failed: journals, and small scenarios that fail alike."""


class CampaignRefused(ValueError):
    """The folder cannot take this campaign; the message says why and what to do."""


class StoredPlan(Struct, frozen=True):
    """What ``campaign.json`` holds."""

    campaign: Campaign
    code: str
    """Digest of the package that ran it first."""


class CampaignStore:
    """The folder of one campaign, opened with `open_campaign`."""

    def __init__(self, folder: Place, *, code_changed: bool) -> None:
        self.folder = folder
        self.code_changed = code_changed
        """Whether another version of the package has begun this campaign: its rows and new ones may not fit together."""
        self._verdicts = folder / "verdicts"
        self._verdicts.mkdir(exist_ok=True)
        for torn in self._verdicts.glob(f"{_BUILDING}*"):
            _remove(torn)
        self._next = max((_number(path) for path in self._chunks()), default=0) + 1

    @contextmanager
    def here(self) -> Iterator[Path]:
        """A folder of this machine for ``journals`` and ``failures``: this one, or, for an address, one that is copied there."""
        if isinstance(self.folder, Path):
            yield self.folder
            return
        with TemporaryDirectory(prefix="quarterdeck-campaign-") as there:
            for name in MADE_OF_FAILURES:
                _copy(self.folder / name, Path(there) / name)
            yield Path(there)
            for name in MADE_OF_FAILURES:
                _copy(Path(there) / name, self.folder / name)

    def kept(self, path: str, here: Path) -> str:
        """Where something is kept that was written in `here`."""
        return path.replace(str(here), str(self.folder), 1)

    def append_rows(self, rows: Sequence[VerdictRow]) -> None:
        """Write the rows as one more chunk: when this returns they survive a kill. Raises OSError."""
        table = pa.Table.from_pylist(msgspec.to_builtins(rows), schema=to_arrow_schema(ROWS))
        content = pa.BufferOutputStream()
        pq.write_table(table, content, compression="zstd")
        write_whole(self._verdicts, f"chunk-{self._next:06d}.parquet", content.getvalue().to_pybytes())
        self._next += 1

    def done(self) -> set[PlannedRun]:
        """What has been run already."""
        return {
            PlannedRun(*pair)
            for path in self._chunks()
            for pair in zip(*_table(path, ["variant", "seed"]).to_pydict().values(), strict=True)
        }

    def rows(self) -> Iterator[VerdictRow]:
        """All rows, chunk by chunk."""
        for path in self._chunks():
            yield from msgspec.convert(_table(path).to_pylist(), list[VerdictRow])

    def _chunks(self) -> list[Place]:
        return sorted([*self._verdicts.glob("chunk-*.parquet")], key=str)


def _number(chunk: Place) -> int:
    return int(chunk.name.removesuffix(".parquet").partition("-")[2])


def _table(chunk: Place, columns: list[str] | None = None) -> pa.Table:
    return pq.read_table(pa.BufferReader(chunk.read_bytes()), columns=columns)


def write_whole(folder: Place, name: str, content: bytes) -> None:
    """Write a file that is there whole or not at all, and when this returns survives a kill. Raises OSError."""
    building = folder / f"{_BUILDING}{name}"
    building.write_bytes(content)
    if isinstance(building, Path):
        with building.open("rb") as file:
            os.fsync(file.fileno())
    commit.rename(building, folder / name)


def _remove(place: Place) -> None:
    place.unlink() if isinstance(place, Path) else place.remove()


def _copy(one: Place, other: Place) -> None:
    """Copy what is in a directory, where there is one, and what lies below."""
    for found in one.glob("*"):
        if found.is_dir():
            _copy(found, other / found.name)
        else:
            other.mkdir(parents=True, exist_ok=True)
            (other / found.name).write_bytes(found.read_bytes())


@contextmanager
def open_campaign(folder: Place, campaign: Campaign, *, resume: bool) -> Iterator[CampaignStore]:
    """The folder, made when it is not there, and nobody else's meanwhile. Raises `CampaignRefused` and OSError.

    With `resume` it may hold the same campaign already; its seeds may be others now.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with _alone(folder):
        plan = folder / "campaign.json"
        code = sources_digest()
        if plan.exists():
            kept = _read(plan)
            if kept.campaign != campaign:
                raise CampaignRefused(f"{plan}: another campaign, with other options; choose another folder")
            if not resume:
                raise CampaignRefused(f"{folder} holds this campaign already; add --resume, or choose another folder")
        elif any(path.name != "lock" and not path.name.startswith(_BUILDING) for path in folder.glob("*")):
            raise CampaignRefused(f"{folder} is not empty and holds no campaign; choose another folder")
        else:
            kept = StoredPlan(campaign, code)
            write_whole(folder, plan.name, msgspec.json.format(msgspec.json.encode(kept)))
        yield CampaignStore(folder, code_changed=kept.code != code)


def _read(plan: Place) -> StoredPlan:
    try:
        return msgspec.json.decode(plan.read_bytes(), type=StoredPlan)
    except msgspec.DecodeError as problem:
        raise CampaignRefused(f"{plan}: {problem}; choose another folder") from problem


@contextmanager
def _alone(folder: Place) -> Iterator[None]:
    """Two drivers on one folder would write the same chunks. The system lets go of the lock of a process that dies."""
    if not isinstance(folder, Path):
        yield
        return
    with (folder / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as problem:
            raise CampaignRefused(f"{folder}: a campaign is running there") from problem
        yield
