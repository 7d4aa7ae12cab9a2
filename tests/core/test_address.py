import pytest
from hypothesis import given
from hypothesis import strategies as st

from quarterdeck.backend.core.address import (
    BadAddress,
    BadJoinList,
    bracketed,
    host_of,
    make_address,
    numeric_order,
    parse_address,
    parse_join_list,
    port_of,
)


@given(st.sampled_from(["athens", "10.0.0.1", "fe80::1", "a-b.example"]), st.integers(1, 65_535))
def test_an_address_is_read_as_it_is_written(host: str, port: int) -> None:
    address = make_address(host, port)
    assert parse_address(address) == address
    assert (host_of(address), port_of(address)) == (host, port)
    assert bracketed(address) == f"[{host}]:{port}"


@given(st.text(max_size=30))
def test_any_text_is_an_address_or_a_bad_address(text: str) -> None:
    try:
        assert parse_address(parse_address(text, 5701)) == parse_address(text, 5701)
    except BadAddress:
        pass


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("", "no host"),
        ("athens", "write it as host:port"),
        ("athens:0", "from 1 to 65535"),
        ("athens:65536", "from 1 to 65535"),
        ("athens:57o1", "57o1"),
        ("[fe80::1:5701", "bracket"),
        ("[fe80::1]5701", "behind the bracket"),
        ("at hens:5701", "' '"),
    ],
)
def test_a_bad_address_says_what_is_wrong(text: str, hint: str) -> None:
    with pytest.raises(BadAddress, match=hint):
        parse_address(text)


def test_ports_are_compared_as_numbers() -> None:
    assert numeric_order(make_address("a", 5701)) < numeric_order(make_address("a", 15701))


def test_a_join_list_takes_any_separators_drops_duplicates_and_expands_ports() -> None:
    assert parse_join_list("a:1, b:2;b:2\n c", port_try_count=2) == ("a:1", "b:2", "c:5701", "c:5702")
    assert parse_join_list(["a:1,b:2", "", "fe80::1"], base_port=7, port_try_count=1) == ("a:1", "b:2", "[fe80::1]:7")


@pytest.mark.parametrize("nonsense", ["a:1, b:x", "a:1,[b", "a:1,10.0.0.1-9:5701", "a:1,10.0.0.*"])
def test_nonsense_in_a_join_list_names_the_entry(nonsense: str) -> None:
    with pytest.raises(BadJoinList, match="entry 2"):
        parse_join_list(nonsense)
