"""A store of tables at an address, of Delta Lake: made, kept up to date, audited and measured there as on this machine."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from pyspark.sql import DataFrame, SparkSession

from quarterdeck import spark as quarterdeck_spark
from quarterdeck.backend.journal.files import NoJournal
from quarterdeck.backend.pipeline.address import address_of
from quarterdeck.backend.pipeline.audit import audit
from quarterdeck.backend.pipeline.commit import StoreRefused
from quarterdeck.backend.pipeline.delta_snapshot import newest
from quarterdeck.backend.pipeline.metrics.measuring import measure
from quarterdeck.backend.pipeline.tables.batches import SCHEMAS
from quarterdeck.backend.pipeline.tables.store import read_table, update_store
from tests.pipeline.journal_builder import JournalBuilder, clean_story, line, write


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    broken = JournalBuilder("broken")
    broken.installs("a1", "one/1", 2, "a1 b1")
    broken.installs("b1", "one/1", 2, "a1 b1 c1")
    root = write(tmp_path_factory.mktemp("near") / "journal", broken, clean_story("calm"))
    (root / "loose-000001.jsonl").write_bytes(b"torn\n")
    return root


@pytest.fixture(scope="module")
def there(journal: Path) -> str:
    update_store([f"file://{journal}"], f"file://{journal.parent}/there")
    return f"file://{journal.parent}/there"


@pytest.fixture(scope="module")
def here(spark: SparkSession, journal: Path) -> Path:
    update_store([journal], journal.parent / "here")
    return journal.parent / "here"


def rows(table: DataFrame) -> list[str]:
    return sorted(map(str, table.collect()))


def assert_alike(spark: SparkSession, there: str, here: Path, *names: str) -> None:
    state = newest(address_of(there))
    assert state is not None
    for name in names:
        assert rows(read_table(spark, state, name)) == rows(read_table(spark, here, name)), name


def test_tables_at_an_address_are_those_on_this_machine(
    spark: SparkSession, journal: Path, here: Path, there: str
) -> None:
    assert_alike(spark, there, here, "events", "quarantine", "views")
    again = update_store([f"file://{journal}"], there)
    assert (again.files_read, again.files_known, again.runs) == (0, 3, ())


@pytest.mark.long
def test_tables_at_an_address_grow(spark: SparkSession, tmp_path: Path) -> None:
    root = write(tmp_path / "journal", clean_story("calm"), clean_story("other"))
    here, there = tmp_path / "here", f"file://{tmp_path}/there"
    for part in range(2):
        more = [msgspec.structs.replace(record, seq=record.seq + 100 * part) for record in clean_story("calm").records]
        (root / "run=calm" / f"more-00000{part + 1}.jsonl").write_bytes(b"".join(map(line, more)))
        near = update_store([root], here)
        far = update_store([f"file://{root}"], there)
        assert far == near
        assert_alike(spark, there, here, *SCHEMAS)


def test_a_store_at_an_address_is_audited_and_measured(spark: SparkSession, here: Path, there: str) -> None:
    near, far = audit([here]), audit([there])
    assert (far.findings, far.counts, far.problems) == (near.findings, near.counts, near.problems)
    assert far.findings and far.counts["quarantined"] == 1
    assert measure([there], "all", "splits") == measure([here], "all", "splits")
    names = quarterdeck_spark.register(spark, there, prefix="far_")
    assert spark.table(names[0]).count() == far.counts["records"]


def test_a_journal_at_an_address_becomes_views(spark: SparkSession, journal: Path, here: Path) -> None:
    quarterdeck_spark.register(spark, f"file://{journal}", prefix="far_")
    for name in ("events", "views"):
        kept = read_table(spark, here, name)
        assert rows(spark.table(f"far_{name}").drop("date")) == rows(kept.drop("raw")) != []


@pytest.mark.long
def test_an_audit_writes_its_tables_at_an_address(spark: SparkSession, journal: Path, tmp_path: Path) -> None:
    for out in (tmp_path / "here", f"file://{tmp_path}/there"):
        audit([journal], out)
        audit([journal], out)
    for name in ("views", "suspicions", "findings"):
        near, far = (spark.read.parquet(f"{tmp_path}/{place}/{name}") for place in ("here", "there"))
        assert rows(near) == rows(far) != []
    mine = tmp_path / "mine" / "views"
    mine.mkdir(parents=True)
    with pytest.raises(ValueError, match="no table of this pipeline"):
        audit([journal], f"file://{mine.parent}")


def test_what_is_no_place_for_tables_is_told(journal: Path, here: Path, there: str, tmp_path: Path) -> None:
    with pytest.raises(NoJournal, match="holds tables"):
        update_store([there], tmp_path / "other")
    with pytest.raises(StoreRefused, match="other format"):
        update_store([journal], there.removeprefix("file://"), "parquet")
    with pytest.raises(StoreRefused, match="other format"):
        update_store([journal], here, "delta")
    with pytest.raises(StoreRefused, match="are Delta's"):
        update_store([journal], there, "parquet")
    with pytest.raises(StoreRefused, match="no table of Delta Lake"):
        update_store([journal], f"file://{here}")
    with pytest.raises(OSError, match="nowhere"):
        update_store([journal], "nowhere://bucket/store")
    (tmp_path / "file").touch()
    with pytest.raises(StoreRefused, match="not a directory"):
        update_store([journal], f"file://{tmp_path}/file")


@pytest.mark.parametrize("end", ["", "/"])
def test_tables_are_not_made_in_the_journal_that_they_are_made_of(journal: Path, end: str) -> None:
    place = f"file://{journal}{end}"
    with pytest.raises(StoreRefused, match="holds a journal, which tables would hide"):
        update_store([f"file://{journal}"], place)
    assert newest(address_of(place)) is None
