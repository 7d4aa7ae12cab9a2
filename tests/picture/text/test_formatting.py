"""Names in little room: however short, no two read the same."""

from __future__ import annotations

from quarterdeck.backend.picture.text.formatting import distinguishable


def test_names_that_fit_stay_as_they_are() -> None:
    assert distinguishable(["athens", "fez"], 6) == ["athens", "fez"]


def test_names_are_cut_at_their_end_as_long_as_that_tells_them_apart() -> None:
    assert distinguishable(["athens", "byzantium"], 5) == ["athe…", "byza…"]


def test_addresses_lose_the_port_that_all_have_and_then_their_beginning() -> None:
    addresses = [f"10.78.0.{host}:5701" for host in (1, 2, 13)]
    assert distinguishable(addresses, 10) == ["10.78.0.1", "10.78.0.2", "10.78.0.13"]
    assert distinguishable(addresses, 9) == ["10.78.0.1", "10.78.0.2", "….78.0.13"]
    assert distinguishable(addresses, 4) == ["…0.1", "…0.2", "….13"]
    assert distinguishable(["10.0.0.1:5701", "10.0.0.1:5702"], 5) == ["…5701", "…5702"]


def test_what_takes_more_room_gets_it() -> None:
    assert distinguishable(["a1xxxx", "a2xxxx"], 2) == ["a1…", "a2…"]
