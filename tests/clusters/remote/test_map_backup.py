"""Maps go from a member to a folder and back through its HTTP interface, also when it fails in between."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import httpx
import pytest
from msgspec.structs import replace
from starlette.applications import Starlette

from quarterdeck.backend.clusters.remote import map_backup
from quarterdeck.backend.clusters.remote.access import MemberCredentials
from quarterdeck.backend.clusters.remote.map_backup import ExportFolder, export_maps, import_maps
from quarterdeck.backend.clusters.remote.member_client import HttpRequest, MemberClient, Unreachable
from quarterdeck.backend.core.commands import CommandRefused
from quarterdeck.backend.core.inputs import Call
from quarterdeck.backend.core.operations import Put
from quarterdeck.backend.service.application import console_routes
from quarterdeck.backend.service.console_api.maps import LINES_AT_ONCE
from tests.service.single_member import ADDRESS, SingleMemberFace

Result = TypeVar("Result")
URL = f"http://{ADDRESS}"


class ClientOfFace(MemberClient):
    """Asks a member in this process. Each request of a kind in `failing` fails once."""

    def __init__(self, face: SingleMemberFace) -> None:
        super().__init__(MemberCredentials())
        transport = httpx.ASGITransport(Starlette(routes=console_routes(face)))
        self._http = httpx.AsyncClient(transport=transport)
        self.failing: list[str] = []
        self.sent = 0

    async def send(self, url: str, request: HttpRequest) -> bytes:
        self.sent += 1
        if self.failing and self.failing[0] in request.path:
            self.failing.pop(0)
            raise Unreachable(f"{url}: cut")
        return await super().send(url, request)


def done(face: SingleMemberFace, work: Callable[[ClientOfFace], Awaitable[Result]]) -> Result:
    async def run() -> Result:
        async with ClientOfFace(face) as client:
            return await work(client)

    return asyncio.run(run())


def filled(entries: dict[tuple[str, str], bytes]) -> SingleMemberFace:
    face = SingleMemberFace(partition_count=3)
    for number, ((name, key), value) in enumerate(entries.items()):
        face._step(Call(number + 10_000, Put(name, key, value)))
        face.pass_seconds(1)
    return face


def content(face: SingleMemberFace) -> dict[tuple[str, str], bytes]:
    stores = face.member.data.stores.values()
    return {
        (name, key): one.value for store in stores for name, maps in store.maps.items() for key, one in maps.items()
    }


ENTRIES = {
    **{("m", f"k{number}"): str(number).encode() for number in range(20)},
    ("m", "bytes"): b"\xff\x00",
    ("über/all", "ключ\n?&"): b"",
}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(map_backup, "AGAIN_SECONDS", 0.001)


def test_all_comes_back_into_a_new_cluster(tmp_path: Path) -> None:
    face = filled(ENTRIES)
    folder = done(face, lambda client: export_maps(client, [URL], tmp_path, ""))
    assert folder.missing == [] and sum(file.entries for file in folder.files.values()) == len(ENTRIES)
    fresh = filled({("m", "k1"): b"other"})
    assert done(fresh, lambda client: import_maps(client, [URL], ExportFolder.opened(tmp_path), "")) == len(ENTRIES)
    assert content(fresh) == ENTRIES


def test_one_map_alone(tmp_path: Path) -> None:
    face = filled(ENTRIES)
    folder = done(face, lambda client: export_maps(client, [URL], tmp_path / "one", "über/all"))
    assert sum(file.entries for file in folder.files.values()) == 1
    done(face, lambda client: export_maps(client, [URL], tmp_path / "all", ""))
    fresh = filled({})
    done(fresh, lambda client: import_maps(client, [URL], ExportFolder.opened(tmp_path / "all"), "über/all"))
    assert set(content(fresh)) == {("über/all", "ключ\n?&")}


def test_a_large_partition_comes_in_pieces(tmp_path: Path) -> None:
    face = filled({("m", "k"): b"v"})
    partition = next(number for number, store in face.member.data.stores.items() if store.entries)
    store = face.member.data.stores[partition]
    for number in range(2 * LINES_AT_ONCE):
        store.put("m", f"more-{number}", store.maps["m"]["k"])
    folder = done(face, lambda client: export_maps(client, [URL], tmp_path, ""))
    assert folder.files[partition].entries == 2 * LINES_AT_ONCE + 1
    assert len(list(folder.entries(partition))) == 2 * LINES_AT_ONCE + 1


def test_an_owner_that_is_cut_off_is_asked_again(tmp_path: Path) -> None:
    face = filled(ENTRIES)

    async def export(client: ClientOfFace) -> ExportFolder:
        client.failing = ["/partitions/1/", "/member", "/table"]
        return await export_maps(client, [URL], tmp_path, "")

    assert done(face, export).missing == []


def test_both_go_on_where_they_were_ended(tmp_path: Path) -> None:
    face = filled(ENTRIES)
    done(face, lambda client: export_maps(client, [URL], tmp_path, ""))
    fresh = filled({("m", "k"): b""})

    async def ended(client: ClientOfFace) -> None:
        folder = ExportFolder.opened(tmp_path)
        note, folder.note_imported = folder.note_imported, None  # type: ignore[method-assign, assignment]

        def note_one(partition: int, map: str, members: list[str]) -> None:
            note(partition, map, members)
            raise KeyboardInterrupt

        folder.note_imported = note_one  # type: ignore[method-assign, assignment]
        await import_maps(client, [URL], folder, "")

    with pytest.raises(KeyboardInterrupt):
        done(fresh, ended)
    first = ExportFolder.opened(tmp_path).files[0].entries
    stored = done(fresh, lambda client: import_maps(client, [URL], ExportFolder.opened(tmp_path), ""))
    assert stored == len(ENTRIES) - first
    assert content(fresh) == {**ENTRIES, ("m", "k"): b""}


def test_what_a_member_refuses_ends_the_import_and_says_why(tmp_path: Path) -> None:
    face = filled(ENTRIES)
    done(face, lambda client: export_maps(client, [URL], tmp_path, ""))
    full = filled({("m", "k"): b""})
    full.member.apply_settings(replace(full.member.settings, member_most_entries=3))
    with pytest.raises(CommandRefused, match=r"this member is full.*run this again to go on"):
        done(full, lambda client: import_maps(client, [URL], ExportFolder.opened(tmp_path), ""))


def test_nothing_to_export(tmp_path: Path) -> None:
    with pytest.raises(CommandRefused, match="not arranged yet"):
        done(SingleMemberFace(), lambda client: export_maps(client, [URL], tmp_path, ""))
