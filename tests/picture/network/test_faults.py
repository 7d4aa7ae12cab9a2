"""Faults folded back from what became of single links: the text, the age, and that each undo ends its fault and no other."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from quarterdeck.backend.commands.links import LinkConditions
from quarterdeck.backend.core.commands import (
    Command,
    CutLink,
    DelayLink,
    DropMessages,
    DuplicateOnLink,
    Heal,
    HealLink,
    LoseOnLink,
    Partition,
    ResumeMember,
    StartMember,
)
from quarterdeck.backend.core.events import ProcessKilled, ProcessPaused, ProcessResumed, Record
from quarterdeck.backend.core.membership.events import MemberStarted
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.judgement.what_if.blast_radius import preset
from quarterdeck.backend.picture.events.faults import Impairment, impairments_of
from quarterdeck.backend.picture.fold.picture import Picture
from quarterdeck.backend.picture.network.faults import FaultLedger
from tests.thoroughness import examples

SIX = ("a", "b", "c", "d", "e", "f")


class Operator:
    """Does commands to links, a second apart, and hands the records to a ledger and to a picture."""

    def __init__(self) -> None:
        self.links = LinkConditions()
        self.ledger = FaultLedger(SIX)
        self.picture = Picture()
        self.records: list[Record] = []
        self.at = 0

    def do(self, *commands: Command) -> None:
        self.at += SECOND_US
        for command in commands:
            for change in self.links.apply(command):  # type: ignore[arg-type]
                self.note(change)

    def note(self, event: object, member: str = "") -> None:
        record = Record("r", member, "u", len(self.records) + 1, self.at, self.at, event)  # type: ignore[arg-type]
        self.records.append(record)
        self.ledger.take(record)
        self.picture.apply(record)

    def texts(self) -> list[str]:
        return [fault.text for fault in self.ledger.faults()]


def wrong_links(links: LinkConditions) -> set[tuple[str, str, Impairment]]:
    return {
        (*link, impairment) for link, condition in links.conditions.items() for impairment in impairments_of(condition)
    }


def test_each_command_is_told_as_it_was_given() -> None:
    operator = Operator()
    for command, text in (
        (Partition((("a", "b"), ("c", "d"))), "partition a,b|c,d"),
        (Partition((("a",), ("b", "c"), ("d",))), "partition a|b,c|d"),
        (CutLink(("a",), ("b",)), "cut a b"),
        (CutLink(("a",), ("b", "c"), one_way=True), "cut a b,c one-way"),
        (CutLink(("a",), ("b",), mode="reset"), "cut a b (reset)"),
        (DelayLink(("a",), ("b",), 250_000), "slow by 250 ms: a ↔ b"),
        (LoseOnLink(("a",), ("b", "c"), 0.3, one_way=True), "loses 30%: a → b,c"),
        (DuplicateOnLink(("a", "b"), ("c",), 0.5), "doubles 50%: a,b ↔ c"),
        (DropMessages(("a",), ("b",), ("heartbeat",)), "drops every heartbeat: a → b"),
    ):
        operator.do(command)
        assert operator.texts() == [text]
        assert operator.ledger.faults()[0].since_us == operator.at
        operator.do(Heal())
        assert operator.texts() == []


def test_faults_made_one_after_the_other_stay_apart() -> None:
    operator = Operator()
    operator.do(CutLink(("a",), ("b",)))
    operator.do(CutLink(("a",), ("c",)))
    assert operator.texts() == ["cut a c", "cut a b"]
    assert [fault.age(operator.at + SECOND_US) for fault in operator.ledger.faults()] == ["1 s", "2 s"]
    operator.do(*operator.ledger.faults()[1].undo)
    assert operator.texts() == ["cut a c"]


def test_a_later_partition_takes_the_cut_inside_it_along() -> None:
    operator = Operator()
    operator.do(CutLink(("a",), ("d",)))
    operator.do(Partition((("a", "b"), ("c", "d"))))
    assert operator.texts() == ["partition a,b|c,d"]


def test_undoing_a_cut_leaves_the_same_link_slow() -> None:
    operator = Operator()
    operator.do(DelayLink(("a",), ("b",), 1_000))
    operator.do(CutLink(("a",), ("b",), one_way=True))
    assert [fault.kind for fault in operator.ledger.faults()] == ["one-way", "slow"]
    operator.do(*operator.ledger.faults()[0].undo)
    assert operator.texts() == ["slow by 1 ms: a ↔ b"]


def test_stopped_members_are_faults_too() -> None:
    operator = Operator()
    operator.note(ProcessPaused("a"))
    operator.note(ProcessKilled("b"))
    assert {(fault.text, fault.undo) for fault in operator.ledger.faults()} == {
        ("pause a", (ResumeMember("a"),)),
        ("kill b", (StartMember("b"),)),
    }
    operator.note(ProcessResumed("a"))
    operator.note(MemberStarted("h:1", False, ()), member="b")  # type: ignore[arg-type]
    assert operator.texts() == []


def test_the_age_of_what_was_before_the_records_is_not_known() -> None:
    operator = Operator()
    operator.do(CutLink(("a",), ("b",)))
    operator.do(CutLink(("c",), ("d",)))
    late = FaultLedger.of(operator.picture, operator.records[2:])
    assert [(fault.text, fault.since_us) for fault in late.faults()] == [("cut c d", 2 * SECOND_US), ("cut a b", None)]
    assert late.faults()[1].age(operator.at) == "?"


def test_a_ring_is_undone_as_a_whole() -> None:
    operator = Operator()
    labels = [f"m{place}" for place in range(60)]
    operator.do(*preset("ring", labels).commands)
    assert operator.ledger.faults()
    for fault in operator.ledger.faults():
        operator.do(*fault.undo)
    assert not operator.links.conditions


def test_halves_of_a_thousand_are_one_fault() -> None:
    ledger, labels = FaultLedger(), [f"m{place}" for place in range(400)]
    links = LinkConditions()
    for change in links.apply(Partition((tuple(labels[:200]), tuple(labels[200:])))):
        ledger.take(Record("r", "", "u", 1, 5, 5, change))
    (fault,) = ledger.faults()
    assert fault.links == 80_000 and fault.kind == "partition"
    assert fault.undo == (HealLink(tuple(labels[:200]), tuple(labels[200:])),)


sides = st.lists(st.sampled_from(SIX), min_size=1, max_size=3, unique=True).map(tuple)
flags = st.booleans()
chances = st.sampled_from([0.0, 0.3, 1.0])
commands: st.SearchStrategy[Command] = st.one_of(
    st.permutations(SIX).flatmap(
        lambda order: st.integers(1, 4).map(lambda at: Partition((tuple(order[:at]), tuple(order[at : at + 2]))))
    ),
    st.permutations(SIX).map(lambda order: Partition((tuple(order[:2]), tuple(order[2:3]), tuple(order[3:])))),
    st.builds(CutLink, sides, sides, flags, st.sampled_from(["blackhole", "reset"])),
    st.builds(DelayLink, sides, sides, st.sampled_from([0, 1_000]), flags),
    st.builds(LoseOnLink, sides, sides, chances, flags),
    st.builds(DuplicateOnLink, sides, sides, chances, flags),
    st.builds(DropMessages, sides, sides, st.sampled_from([(), ("heartbeat",), ("heartbeat", "leave")])),
    st.builds(HealLink, sides, sides),
    st.just(Heal()),
)


@settings(max_examples=examples(300))
@given(st.lists(commands, min_size=1, max_size=6), st.integers(0, 20))
def test_every_link_belongs_to_one_fault_and_undoing_it_touches_no_other(given_: list[Command], which: int) -> None:
    operator = Operator()
    for command in given_:
        operator.do(command)
    late = FaultLedger.of(operator.picture, operator.records, SIX)
    assert [(fault.key, fault.text) for fault in late.faults()] == [
        (fault.key, fault.text) for fault in operator.ledger.faults()
    ]
    faults = operator.ledger.faults()
    before = wrong_links(operator.links)
    assert sum(fault.links for fault in faults) == len(before)
    if not faults:
        assert not operator.links.conditions
        return
    chosen = faults[which % len(faults)]
    operator.do(*chosen.undo)
    after = wrong_links(operator.links)
    assert after < before and len(before) - len(after) == chosen.links
    before = after or before
    while left := operator.ledger.faults():
        operator.do(*left[0].undo)
        assert len(wrong_links(operator.links)) < len(before)
        before = wrong_links(operator.links)
    assert not operator.links.conditions
