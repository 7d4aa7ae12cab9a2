"""A campaign's folder: what was to be run, and the rows of what has been run, which survive whatever ends the campaign.

``campaign.json``, ``verdicts/chunk-N.parquet``, ``journals/``, ``failures/``. Only whole chunks ever stand under their names.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from msgspec import Struct
from pyspark.sql.pandas.types import to_arrow_schema

from quarterdeck.backend.pipeline.campaign.plan import Campaign, PlannedRun
from quarterdeck.backend.pipeline.campaign.verdicts import VerdictRow
from quarterdeck.backend.pipeline.campaign.waves import ROWS
from quarterdeck.backend.pipeline.spark.package_archive import sources_digest

_BUILDING = ".building-"


class CampaignRefused(ValueError):
    """The folder cannot take this campaign; the message says why and what to do."""


class StoredPlan(Struct, frozen=True):
    """What ``campaign.json`` holds."""

    campaign: Campaign
    code: str
    """Digest of the package that ran it first."""


class CampaignStore:
    """The folder of one campaign, opened with `open_campaign`."""

    def __init__(self, folder: Path, *, code_changed: bool) -> None:
        self.folder = folder
        self.code_changed = code_changed
        """Whether another version of the package has begun this campaign: its rows and new ones may not fit together."""
        self._verdicts = folder / "verdicts"
        self._verdicts.mkdir(exist_ok=True)
        for torn in self._verdicts.glob(f"{_BUILDING}*"):
            torn.unlink()
        self._next = max((int(path.stem.partition("-")[2]) for path in self._chunks()), default=0) + 1

    @property
    def journals(self) -> Path:
        """Where journals of failing runs are written."""
        return self.folder / "journals"

    @property
    def failures(self) -> Path:
        """Where small scenarios that fail are written."""
        return self.folder / "failures"

    def append_rows(self, rows: Sequence[VerdictRow]) -> None:
        """Write the rows as one more chunk: when this returns they survive a kill. Raises OSError."""
        table = pa.Table.from_pylist(msgspec.to_builtins(rows), schema=to_arrow_schema(ROWS))
        building = self._verdicts / f"{_BUILDING}{self._next}"
        with building.open("wb") as file:
            pq.write_table(table, file, compression="zstd")
            file.flush()
            os.fsync(file.fileno())
        building.replace(self._verdicts / f"chunk-{self._next:06d}.parquet")
        self._next += 1

    def done(self) -> set[PlannedRun]:
        """What has been run already."""
        return {
            PlannedRun(*pair)
            for path in self._chunks()
            for pair in zip(*pq.read_table(path, columns=["variant", "seed"]).to_pydict().values(), strict=True)
        }

    def rows(self) -> Iterator[VerdictRow]:
        """All rows, chunk by chunk."""
        for path in self._chunks():
            yield from msgspec.convert(pq.read_table(path).to_pylist(), list[VerdictRow])

    def _chunks(self) -> list[Path]:
        return sorted(self._verdicts.glob("chunk-*.parquet"))


@contextmanager
def open_campaign(folder: Path, campaign: Campaign, *, resume: bool) -> Iterator[CampaignStore]:
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
        elif any(path.name != "lock" and not path.name.startswith(_BUILDING) for path in folder.iterdir()):
            raise CampaignRefused(f"{folder} is not empty and holds no campaign; choose another folder")
        else:
            kept = StoredPlan(campaign, code)
            building = folder / f"{_BUILDING}campaign"
            building.write_bytes(msgspec.json.format(msgspec.json.encode(kept)))
            building.replace(plan)
        yield CampaignStore(folder, code_changed=kept.code != code)


def _read(plan: Path) -> StoredPlan:
    try:
        return msgspec.json.decode(plan.read_bytes(), type=StoredPlan)
    except msgspec.DecodeError as problem:
        raise CampaignRefused(f"{plan}: {problem}; choose another folder") from problem


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Two drivers on one folder would write the same chunks. The system lets go of the lock of a process that dies."""
    with (folder / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as problem:
            raise CampaignRefused(f"{folder}: a campaign is running there") from problem
        yield
