"""Whatever ends an export or an import, what is listed is whole, and the next one goes on from there."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest

from quarterdeck.backend.clusters.remote.map_backup import FORM, BadExportFolder, ExportFolder, ExportHead, batches
from quarterdeck.backend.core.operations import PutAll
from quarterdeck.backend.member_api.answers import ExportedEntry

WANTED = ExportHead(FORM, "dev", 3)


def lines(*entries: tuple[str, str, str]) -> bytes:
    made = (ExportedEntry(map, key, 1, 2, 3, 4, 5, value=value) for map, key, value in entries)
    return b"".join(msgspec.json.encode(part) + b"\n" for part in made)


def exported(path: Path) -> ExportFolder:
    folder = ExportFolder.begun(path, WANTED)
    folder.add(0, "a:1", 7, lines(("m", "k", "v"), ("m", "l", "w"), ("n", "k", "x")))
    folder.add(1, "a:1", 7, b"")
    folder.add(2, "b:1", 7, lines(("m", "z", "y")))
    return folder


def test_what_was_exported_is_read_again(tmp_path: Path) -> None:
    exported(tmp_path / "new")
    folder = ExportFolder.opened(tmp_path / "new")
    folder.check()
    stored = [batch for partition in folder.files for batch in batches(folder, partition)]
    first = PutAll("m", (("k", b"v"), ("l", b"w")))
    assert stored == [first, PutAll("n", (("k", b"x"),)), PutAll("m", (("z", b"y"),))]
    assert list(batches(folder, 0, "n")) == [PutAll("n", (("k", b"x"),))]
    assert all(file.stat().st_mode & 0o077 == 0 for file in (tmp_path / "new").iterdir())


@pytest.mark.parametrize("cut", [2, 20, 60])
def test_an_export_that_was_killed_goes_on(tmp_path: Path, cut: int) -> None:
    """Its last line was being written, or its last file."""
    exported(tmp_path)
    (tmp_path / "partition-00002.jsonl").rename(tmp_path / "partition-00002.jsonl.part")
    listed = tmp_path / "files.jsonl"
    os.truncate(listed, listed.stat().st_size - cut)
    folder = ExportFolder.begun(tmp_path, WANTED)
    assert folder.missing == [2]
    with pytest.raises(BadExportFolder, match="1 of 3 partitions are missing"):
        folder.check()
    folder.add(2, "b:1", 8, lines(("m", "z", "y")))
    again = ExportFolder.opened(tmp_path)
    again.check()
    assert sorted(again.files) == [0, 1, 2]


def test_what_is_damaged_or_of_something_else_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadExportFolder, match=r"export\.json is missing"):
        ExportFolder.opened(tmp_path)
    (tmp_path / "notes").touch()
    with pytest.raises(BadExportFolder, match="something else in this folder"):
        ExportFolder.begun(tmp_path, WANTED)
    folder = exported(tmp_path / "new")
    for other in (ExportHead(FORM, "prod", 3), ExportHead(FORM, "dev", 3, "m"), ExportHead(FORM, "dev", 7)):
        with pytest.raises(BadExportFolder, match="something else was begun"):
            ExportFolder.begun(tmp_path / "new", other)
    file = tmp_path / "new" / "partition-00000.jsonl"
    file.write_bytes(file.read_bytes().replace(b'"v"', b'"V"'))
    with pytest.raises(BadExportFolder, match=r"partition-00000\.jsonl.*checksum"):
        folder.check()
    file.unlink()
    with pytest.raises(BadExportFolder, match="missing"):
        folder.check()


def test_an_import_goes_on_only_in_the_cluster_and_with_the_map_that_it_began_with(tmp_path: Path) -> None:
    folder = exported(tmp_path)
    assert folder.imported("", ("u1", "u2")) == set()
    folder.note_imported(0, "", ("u1", "u2"))
    folder.note_imported(1, "", ("u1", "u2"))
    assert folder.imported("", ("u2", "u3")) == {0, 1}
    assert folder.imported("", ("u3", "u4")) == set(), "all members were started anew, and hold nothing"
    folder.note_imported(0, "m", ("u3",))
    assert folder.imported("", ("u3",)) == set(), "only one map was stored"
    folder.note_imported(0, "", ("u3",))
    folder.end_import()
    assert folder.imported("", ("u3",)) == set()
