"""Whom a command concerns; where members are; how long to wait for the next try."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quarterdeck.backend.clusters.remote.access import (
    BadUrl,
    MemberCredentials,
    is_unencrypted,
    member_url,
    url_of_other,
)
from quarterdeck.backend.clusters.remote.member_stream import StreamBackoff
from quarterdeck.backend.clusters.remote.remote_commands import CommandTarget, requests_for
from quarterdeck.backend.commands.links import LinkConditions
from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.commands import (
    Command,
    CommandRefused,
    CutLink,
    DelayLink,
    DropMessages,
    DuplicateOnLink,
    HealLink,
    LoseOnLink,
    Partition,
    ResumeMember,
    SetProperties,
    StopMember,
)

LABELS = ("a", "b", "c", "d")
MEMBERS = {label: CommandTarget(label, Address(f"{label}:5701"), f"http://{label}:5701") for label in LABELS}

some = st.lists(st.sampled_from(LABELS), min_size=1, unique=True).map(tuple)
LINK_COMMANDS = st.one_of(
    st.builds(CutLink, some, some, st.booleans(), st.sampled_from(["blackhole", "reset"])),
    st.builds(DelayLink, some, some, st.integers(1, 100), st.booleans()),
    st.builds(LoseOnLink, some, some, st.floats(0.1, 1), st.booleans()),
    st.builds(DuplicateOnLink, some, some, st.floats(0.1, 1), st.booleans()),
    st.builds(DropMessages, some, some, st.just(("heartbeat",))),
    st.builds(HealLink, some, some),
    st.permutations(LABELS).map(lambda order: Partition((tuple(order[:1]), tuple(order[1:3]), tuple(order[3:])))),
)


def addressed(command: Any) -> Any:
    """The same command, said with addresses."""
    import msgspec

    def address(label: str) -> str:
        return MEMBERS[label].address

    if isinstance(command, Partition):
        return Partition(tuple(tuple(map(address, group)) for group in command.groups), command.mode)
    ends = {"sources": tuple(map(address, command.sources)), "targets": tuple(map(address, command.targets))}
    return msgspec.structs.replace(command, **ends)


@given(st.lists(LINK_COMMANDS, max_size=4))
def test_every_member_ends_up_with_its_own_part_of_the_conditions(commands: list[Any]) -> None:
    import msgspec

    decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(
        Partition | CutLink | DelayLink | LoseOnLink | DuplicateOnLink | DropMessages | HealLink
    )
    whole = LinkConditions()
    parts = {label: LinkConditions() for label in LABELS}
    for command in commands:
        try:
            asked = requests_for(command, MEMBERS)
        except CommandRefused:
            continue
        whole.apply(addressed(command))
        for label, ask in asked:
            assert (ask.method, ask.path) == ("POST", "/faults")
            parts[label].apply(decoder.decode(msgspec.json.encode(ask.body)))
    for (source, target), condition in whole.conditions.items():
        assert parts[source[0]].conditions[source, target] == condition
    for label, part in parts.items():
        assert {link for link in part.conditions if link[0][0] == label} == {
            link for link in whole.conditions if link[0][0] == label
        }


@pytest.mark.parametrize("command", [StopMember("b"), ResumeMember("b"), CutLink(("a",), ("b",))])
def test_nothing_is_begun_when_one_of_those_concerned_is_out_of_reach(command: Command) -> None:
    members = MEMBERS | {"b": MEMBERS["b"]._replace(why="no answer in time")}
    with pytest.raises(CommandRefused, match="b is not reached \\(no answer in time\\); nothing was done"):
        requests_for(command, members)
    assert requests_for(command, MEMBERS)


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("localhost", "http://localhost:5701"),
        ("https://a", "https://a:5701"),
        ("10.0.0.1:80/", "http://10.0.0.1:80"),
        ("http://[::1]:5702", "http://[::1]:5702"),
    ],
)
def test_urls_have_one_form(text: str, url: str) -> None:
    assert member_url(text) == url == member_url(url)


@given(st.text(max_size=30))
def test_any_text_is_a_url_or_one_clear_error(text: str) -> None:
    try:
        assert member_url(member_url(text)) == member_url(text)
    except BadUrl as problem:
        assert "\n" not in str(problem).replace(text, "")


def test_others_are_on_their_own_ports_unless_http_has_one_of_its_own() -> None:
    other = Address("h2:5703")
    assert url_of_other(other, "https://h1:5701", Address("h1:5701")) == "https://h2:5703"
    assert url_of_other(other, "http://h1:8080", Address("h1:5701")) == "http://h2:8080"


def test_secrets_stay_out_of_texts_and_tokens_win() -> None:
    access = MemberCredentials("hugo", "geheim", "zutritt")
    assert access.headers() == {"Authorization": "Bearer zutritt"}
    assert MemberCredentials("hugo", "geheim").headers() == {"Authorization": "Basic aHVnbzpnZWhlaW0="}
    assert MemberCredentials().headers() == {}
    assert not {"geheim", "zutritt"} & set(repr(access).split("'"))
    assert is_unencrypted("http://h:1")
    assert not is_unencrypted("http://127.0.0.1:1")
    assert not is_unencrypted("https://h:1")


def test_pauses_double_up_to_a_limit_with_chance_and_begin_anew() -> None:
    backoff = StreamBackoff(0.25, 5.0, Random(3))
    pauses = [backoff.next() for _ in range(2000)]
    wholes = [min(0.25 * 2**number, 5.0) for number in range(12)]
    assert all(whole / 2 <= pause <= whole for pause, whole in zip(pauses, wholes, strict=False))
    assert max(pauses) <= 5.0
    assert len(set(pauses)) > 1900
    backoff.reset()
    assert backoff.next() <= 0.25


def test_properties_are_changed_by_the_member_itself() -> None:
    (request,) = requests_for(SetProperties("b", {"hazelcast.merge.next.run.delay.seconds": 7}), MEMBERS)
    assert (request.label, request.http.method, request.http.path) == ("b", "PATCH", "/properties")
    assert request.http.body == {"properties": {"hazelcast.merge.next.run.delay.seconds": 7}}
