"""Putting tables in place: wherever it is interrupted, all tables are old or all new in the end."""

from pathlib import Path

import msgspec
import pytest

from quarterdeck.backend.pipeline import commit
from quarterdeck.backend.pipeline.audit import audit
from quarterdeck.backend.pipeline.commit import StoreRefused, TableManifest
from quarterdeck.backend.pipeline.tables.store import TableFormat, update_store
from tests.pipeline.journal_builder import clean_story, write

TABLES = ("events", "views")
OLD, NEW = TableManifest("f", {"old": (1, 1)}), TableManifest("f", {"new": (2, 2)})
KEPT = {"events": ["kept.parquet"], "views": []}
BEFORE = {"events": {"kept", "gone"}, "views": {"gone"}}
AFTER = {"events": {"kept", "new"}, "views": {"new"}}


class Killed(BaseException):
    """The process dies here."""


def put(directory: Path, *names: str) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    for name in names:
        (directory / f"{name}.parquet").write_text(name)


def old_form(store: Path) -> None:
    """A store as earlier versions made it: the tables are directories of their own."""
    put(store / "events", "kept", "gone")
    put(store / "views", "gone")
    (store / commit.MANIFEST).write_bytes(msgspec.json.encode(OLD))


def new_form(store: Path) -> None:
    with commit.open_for_build(store, TABLES) as building:
        assert isinstance(building, Path)
        put(building / "events", "kept", "gone")
        put(building / "views", "gone")
        commit.commit(store, building, OLD, {"events": [], "views": []})


def is_new(store: Path) -> bool:
    manifest = commit.read_manifest(store)
    assert manifest is not None and manifest.files in (OLD.files, NEW.files)
    return manifest.files == NEW.files


def content(store: Path) -> dict[str, set[str]]:
    return {table: {part.read_text() for part in (store / table).iterdir()} for table in TABLES}


def test_interrupted_at_every_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each change of the file system is a place to die at, the second time too. All tables are whole at any moment."""
    names = ("rename", "write_bytes", "mkdir", "symlink_to", "hardlink_to")
    changes = {name: getattr(Path, name) for name in names}
    left = [0]

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
        new_form(store)
        building = store / f"{commit.BUILDING}1"
        for table in TABLES:
            put(building / table, "new")
        with monkeypatch.context() as patched:
            for name, change in changes.items():
                patched.setattr(Path, name, dying(change))
            left[0] = steps
            try:
                commit.commit(store, building, NEW, KEPT)
                reached_the_end = True
            except Killed:
                decided = is_new(store)
                assert content(store) == (AFTER if decided else BEFORE)
                for again in (1, 2):  # and the one who finishes it dies as well, a little later each time
                    left[0] = again * 2
                    try:
                        commit.finish(store)
                    except Killed:
                        pass
        commit.finish(store)
        expected = AFTER if reached_the_end or decided else BEFORE
        assert content(store) == expected, steps
        assert is_new(store) == (expected is AFTER)
        assert not [path for path in store.iterdir() if path.name.startswith(commit.BUILDING)]
        steps += 1
    assert steps > 8


def test_a_store_of_an_earlier_form_is_replaced(tmp_path: Path) -> None:
    old_form(tmp_path)
    with commit.open_for_build(tmp_path, TABLES) as building:
        assert isinstance(building, Path)
        for table in TABLES:
            put(building / table, "new")
        commit.commit(tmp_path, building, NEW, KEPT)
    assert content(tmp_path) == AFTER
    commit.finish(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir() if not path.name.startswith(commit.STATE)) == [
        commit.CURRENT, ".lock", commit.MANIFEST, *TABLES,
    ]  # fmt: skip


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


@pytest.mark.parametrize("table_format", ["", "delta"])
def test_a_journal_is_not_made_a_store_which_would_hide_it(tmp_path: Path, table_format: TableFormat) -> None:
    root = write(tmp_path / "journal", clean_story("one"))
    before = sorted(root.rglob("*"))
    for place in (root, root / "run=one"):
        with pytest.raises(StoreRefused, match="holds a journal, which tables would hide"):
            update_store([root], place, table_format)
        with pytest.raises(StoreRefused, match="holds a journal"):
            audit([root], place)
    assert sorted(root.rglob("*")) == before


def test_a_file_is_no_store(tmp_path: Path) -> None:
    file = tmp_path / "n1-000001.jsonl"
    file.touch()
    assert commit.read_manifest(file) is None
