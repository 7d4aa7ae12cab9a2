"""The folder of a campaign: its plan, and the rows of its runs, which survive whatever ends the campaign.

``campaign.json``, ``verdicts/chunk-N.parquet``, ``journals/``, ``failures/``. Only whole chunks ever get their names.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from msgspec import Struct

from quarterdeck.backend.pipeline.campaign.plan import Campaign, PlannedRun, VerdictRow
from quarterdeck.backend.pipeline.commit import BUILDING, locked, remove, write_whole
from quarterdeck.backend.pipeline.schemas import arrow_schema, columns_of
from quarterdeck.backend.pipeline.spark.session import sources_digest

COLUMNS = columns_of(VerdictRow)


class CampaignRefused(ValueError):
    """The folder cannot hold this campaign; the message says why and what to do."""


class StoredPlan(Struct, frozen=True):
    """The content of ``campaign.json``."""

    campaign: Campaign
    code: str
    """Digest of the package that ran it first."""


class CampaignStore:
    """The folder of one campaign, opened with `open_campaign`."""

    def __init__(self, folder: Path, *, code_changed: bool) -> None:
        self.folder = folder
        self.code_changed = code_changed
        """Whether another version of the package began this campaign: its rows and new ones may not fit together."""
        self._verdicts = folder / "verdicts"
        self._verdicts.mkdir(exist_ok=True)
        for torn in self._verdicts.glob(f"{BUILDING}*"):
            remove(torn)
        numbers = (int(chunk.name.removesuffix(".parquet").partition("-")[2]) for chunk in self._chunks())
        self._next = max(numbers, default=0) + 1

    def append_rows(self, rows: Sequence[VerdictRow]) -> None:
        """Write the rows as one more chunk, which survives a kill once this returns. Raises OSError."""
        table = pa.Table.from_pylist(msgspec.to_builtins(rows), schema=arrow_schema(COLUMNS))
        content = pa.BufferOutputStream()
        pq.write_table(table, content, compression="zstd")
        write_whole(self._verdicts, f"chunk-{self._next:06d}.parquet", content.getvalue().to_pybytes())
        self._next += 1

    def done(self) -> set[PlannedRun]:
        """Return the runs that have been carried out already."""
        return {
            PlannedRun(*pair)
            for chunk in self._chunks()
            for pair in zip(*_table(chunk, ["variant", "seed"]).to_pydict().values(), strict=True)
        }

    def rows(self) -> Iterator[VerdictRow]:
        """Yield all rows, chunk by chunk."""
        for chunk in self._chunks():
            yield from msgspec.convert(_table(chunk).to_pylist(), list[VerdictRow])

    def _chunks(self) -> list[Path]:
        return sorted(self._verdicts.glob("chunk-*.parquet"))


def _table(chunk: Path, columns: list[str] | None = None) -> pa.Table:
    return pq.ParquetFile(chunk).read(columns)


@contextmanager
def open_campaign(folder: Path, campaign: Campaign, *, resume: bool) -> Iterator[CampaignStore]:
    """Open the folder, or make it, and lock out other drivers. Raises `CampaignRefused` and OSError.

    With `resume` it may hold the same campaign already; its seeds may differ.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder / "lock", CampaignRefused(f"{folder}: a campaign is running there")):
        plan = folder / "campaign.json"
        code = sources_digest()
        if plan.exists():
            try:
                kept = msgspec.json.decode(plan.read_bytes(), type=StoredPlan)
            except msgspec.DecodeError as problem:
                raise CampaignRefused(f"{plan}: {problem}; choose another folder") from problem
            if kept.campaign != campaign:
                raise CampaignRefused(f"{plan}: another campaign, with other options; choose another folder")
            if not resume:
                raise CampaignRefused(f"{folder} holds this campaign already; add --resume, or choose another folder")
        elif any(path.name != "lock" and not path.name.startswith(BUILDING) for path in folder.iterdir()):
            raise CampaignRefused(f"{folder} is not empty and holds no campaign; choose another folder")
        else:
            kept = StoredPlan(campaign, code)
            write_whole(folder, plan.name, msgspec.json.format(msgspec.json.encode(kept)))
        yield CampaignStore(folder, code_changed=kept.code != code)
