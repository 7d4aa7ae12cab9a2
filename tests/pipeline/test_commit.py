"""Putting tables in place: wherever it is interrupted, the tables of a run are all old or all new in the end."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from quarterdeck.backend.pipeline import commit
from quarterdeck.backend.pipeline.commit import Order, StoreRefused, TableManifest
from quarterdeck.backend.pipeline.spark.hadoop_path import HadoopPath
from tests.thoroughness import long_after

TABLES = ("events", "views")
OLD, NEW = TableManifest("f", {"old": (1, 1)}), TableManifest("f", {"new": (2, 2)})


class Killed(BaseException):
    """The process dies here."""


def put(directory: Path, run: str, text: str) -> None:
    place = directory / f"run={run}"
    place.mkdir(parents=True)
    (place / "part-0.parquet").write_text(text)
    (place / "part-1.parquet").write_text(text)


def old_store(store: Path) -> None:
    """Runs x and y; x has a table that the new one will not have, y is not touched by what comes."""
    for table in TABLES:
        put(store / table, "x", "old")
        put(store / table, "y", "old")
    (store / commit.MANIFEST).write_bytes(commit.msgspec.json.encode(OLD))


def build(building: Path) -> Order:
    put(building / "events", "x", "new")
    for table in TABLES:
        put(building / table, "z%3A1", "new")
    return Order(("x", "z:1"), TABLES, NEW)


def content(store: Path) -> dict[str, set[str]]:
    """What each table's directory of each run holds; each is whole: two files alike."""
    found = {}
    for place in sorted(store.glob("*/run=*")):
        parts = [part.read_text() for part in sorted(place.iterdir())]
        assert len(parts) == 2
        found[f"{place.parent.name}/{place.name}"] = set(parts)
    return found


BEFORE = {f"{table}/run={run}": {"old"} for table in TABLES for run in "xy"}
AFTER = {
    "events/run=x": {"new"}, "events/run=y": {"old"}, "events/run=z%3A1": {"new"},
    "views/run=y": {"old"}, "views/run=z%3A1": {"new"},
}  # fmt: skip


@pytest.mark.parametrize("kind", long_after(1, [Path, HadoopPath]))
def test_interrupted_at_every_step(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: type[Path] | type[HadoopPath]
) -> None:
    """Each change of the file system is a place to die at, the second time too."""
    changes = {
        name: getattr(kind, name) for name in ("rename", "write_bytes", "mkdir", "remove") if hasattr(kind, name)
    }
    left = [0]

    def named(path: Path) -> Path | HadoopPath:
        return path if kind is Path else HadoopPath(spark, f"file://{path}")

    def dying(change):  # type: ignore[no-untyped-def]
        def changed(path: Path, *arguments: object, **more: object) -> object:
            if left[0] == 0:
                raise Killed
            left[0] -= 1
            return change(path, *arguments, **more)

        return changed

    reached_the_end = False
    steps = 0
    while not reached_the_end:
        store = tmp_path / f"store-{steps}"
        old_store(store)
        building = store / f"{commit.BUILDING}1"
        order = build(building)
        with monkeypatch.context() as patched:
            for name, change in changes.items():
                patched.setattr(kind, name, dying(change))
            left[0] = steps
            try:
                commit.commit(named(store), named(building), order)
                reached_the_end = True
            except Killed:
                decided = (building / commit.ORDER).exists() or commit.read_manifest(store) == NEW
                content(store)
                for again in (1, 2):  # and the one who finishes it dies as well, a little later each time
                    left[0] = again * 2
                    try:
                        commit.finish(named(store))
                    except Killed:
                        content(store)
        commit.finish(named(store))
        expected = AFTER if reached_the_end or decided else BEFORE
        assert content(store) == expected, steps
        assert commit.read_manifest(store) == (NEW if expected is AFTER else OLD)
        assert not [one for one in store.iterdir() if one.name.startswith(commit.BUILDING)]
        steps += 1
    assert steps > 10


def test_one_writer_at_a_time(tmp_path: Path) -> None:
    with commit.open_for_build(tmp_path / "store", TABLES):
        with pytest.raises(StoreRefused, match="another process"), commit.open_for_build(tmp_path / "store", TABLES):
            pass
    assert not (tmp_path / "store").exists()  # nothing was made, so nothing is left


def test_what_is_no_store_is_left_alone(tmp_path: Path) -> None:
    photo = tmp_path / "mine" / "views" / "photo.jpg"
    photo.parent.mkdir(parents=True)
    photo.touch()
    with (
        pytest.raises(StoreRefused, match="no table of this pipeline"),
        commit.open_for_build(tmp_path / "mine", TABLES),
    ):
        pass
    with pytest.raises(StoreRefused, match="not a directory"), commit.open_for_build(photo, TABLES):
        pass
    assert [path for path in (tmp_path / "mine").rglob("*") if path.is_file()] == [photo]
    (tmp_path / "torn").mkdir()
    (tmp_path / "torn" / commit.MANIFEST).write_text("{")
    with pytest.raises(StoreRefused, match=r"_store\.json"):
        commit.read_manifest(tmp_path / "torn")


def test_a_file_is_no_store(tmp_path: Path) -> None:
    file = tmp_path / "n1-000001.jsonl"
    file.touch()
    assert commit.read_manifest(file) is None
