from random import Random

from quarterdeck.backend.core.membership.views.identity import Member, fresh_uuid
from quarterdeck.backend.core.membership.views.member_list import MemberList, first_list, member_list_text
from tests.core.stepped_cluster import address_of, names_of


def list_of(names: str, version: int = 3) -> MemberList:
    members = tuple(Member(address_of(name), f"uuid-{name}", place) for place, name in enumerate(names, start=1))
    return MemberList(version, members, "lineage")


def test_a_newcomer_is_the_youngest_and_its_join_version_is_the_new_version() -> None:
    grown = list_of("ABC").joined_by(address_of("D"), "uuid-D", True)
    assert (grown.version, names_of(grown)) == (4, "ABCD")
    assert grown.members[-1] == Member(address_of("D"), "uuid-D", 4, True)


def test_the_version_jumps_above_what_a_newcomer_has_seen() -> None:
    assert list_of("AB").joined_by(address_of("C"), "uuid-C", False, seen_version=8).version == 9
    assert list_of("AB", 9).joined_by(address_of("C"), "uuid-C", False, seen_version=8).version == 10


def test_each_removed_member_is_one_version() -> None:
    left = list_of("ABCDE", 5).without({address_of("B"), address_of("E")})
    assert (left.version, names_of(left), left.lineage) == (7, "ACD", "lineage")


def test_older_and_younger() -> None:
    members = list_of("ABCD")
    assert names_of([member.address for member in members.older_than(address_of("C"))]) == "AB"
    assert names_of([member.address for member in members.from_on(address_of("C"))]) == "CD"
    assert members.older_than(address_of("Z")) == members.members
    assert members.from_on(address_of("Z")) == ()


def test_a_life_is_held_only_with_its_own_uuid() -> None:
    members = list_of("AB")
    assert members.holds(address_of("B"), "uuid-B")
    assert not members.holds(address_of("B"), "another life")


def test_two_clusters_have_two_lineages() -> None:
    draws = Random(1)
    lists = [first_list(address_of("A"), fresh_uuid(draws.getrandbits(128)), False) for _ in range(2)]
    assert lists[0].lineage != lists[1].lineage


def test_fresh_uuids_are_version_4_and_repeat_with_their_seed() -> None:
    one, other = fresh_uuid(Random(7).getrandbits(128)), fresh_uuid(Random(7).getrandbits(128))
    assert one == other
    assert one[14] == "4" and one[19] in "89ab" and len(one) == 36


def test_the_text_of_a_list_in_both_formats() -> None:
    """The forms of Cluster Service Consistency Improvements, User Interaction."""
    members = list_of("AB")
    assert member_list_text(members, "uuid-A") == (
        "Members {size:2, ver:3} [\n\tMember [10.0.0.1]:5701 - uuid-A this\n\tMember [10.0.0.2]:5701 - uuid-B\n]"
    )
    assert member_list_text(members, "uuid-B", legacy=True) == (
        "Members [2] {\n\tMember [10.0.0.1]:5701 - uuid-A\n\tMember [10.0.0.2]:5701 - uuid-B this\n}"
    )
