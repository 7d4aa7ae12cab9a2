"""Golden transcripts: one run of each protocol, message by message, as it stands in `transcripts/`.

Written anew by ``python -m tests.core.test_transcripts``; a change of a protocol then shows as a change of its transcript.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from quarterdeck.backend.core.membership.messages import Heartbeat, MasterConfirmation, SplitBrainAnswer
from quarterdeck.backend.core.membership.split_brain import cluster_search
from quarterdeck.backend.core.messages import Message
from quarterdeck.backend.core.partitions.messages import TableAnswer, TableUpdate
from tests.core.stepped_cluster import SteppedCluster, address_of, names_of, training_settings
from tests.core.stepped_partitions import SteppedPartitions

FOLDER = Path(__file__).parent / "transcripts"
LEFT_OUT = (Heartbeat, MasterConfirmation)


def said(message: Message) -> str:
    """A message in words: its kind, and what of it matters to a reader."""
    kind = str(message.__struct_config__.tag)
    members = getattr(message, "members", None)
    parts = [f"v{members.version} {names_of(members)}"] if members is not None else []
    for name in ("granted", "retry", "committed", "reason", "problem", "refusal", "missing", "wants_ack"):
        value = getattr(message, name, None)
        if value is True:
            parts.append(name.replace("_", " "))
        elif value:
            parts.append(f"{name}: {names_of(value) if name == 'missing' else value}")
    if isinstance(message, TableUpdate | TableAnswer):
        parts += [f"partition {row[0]} at version {row[1]}" for row in message.rows.rows]
    return " ".join([kind, *parts])


def transcript(world: SteppedCluster, dead: str = "", most: int = 200) -> list[str]:
    """Deliver everything in order, and return a line for each message but heartbeats."""
    lines = []
    while world.sent and len(lines) < most:
        sender, receiver, message = world.sent.pop(0)
        lost = receiver in dead or world.loses(sender, receiver, message)
        if not isinstance(message, LEFT_OUT):
            lines.append(f"{sender} -> {receiver}  {said(message)}{'  (lost)' if lost else ''}")
        if not lost:
            world.receive(receiver, sender, message)
    return lines


def claim() -> list[str]:
    """Seed 000: A has crashed; B missed two lists and suspects C; D missed one; F does not answer."""
    world = SteppedCluster()
    world.with_lists(A=(6, "ABCDEF"), B=(4, "ABCD"), C=(6, "ABCDEF"), D=(5, "ABCDE"), E=(6, "ABCDEF"), F=(6, "ABCDEF"))
    world.suspect("B", "C")
    for name in "CDEF":
        world.suspect(name, "A")
    world.sent.clear()
    world.suspect("B", "A")
    lines = ["B suspects A and C, who are older: it claims", *transcript(world, dead="ACF")]
    for second in range(18):
        world.pass_seconds(0.5, "B", "D", "E")
        later = [
            line for line in transcript(world, dead="ACF") if "split-brain" not in line and "link-probe" not in line
        ]
        lines += [f"-- {(second + 1) / 2} s later", *later] if later else []
    version, names = world.list_of("B")
    return [*lines, f"B leads: v{version} {names}"]


def commit() -> list[str]:
    """Seed 004, 2.1: partition 0 moves from B to D, C is its backup, A is the master."""
    world = SteppedPartitions(2, 1).with_table("ABCD", "BC", "CB")
    world.migrate("A", "DC")
    lines = [f"the row of partition 0 is {world.row('A', 0)}", *transcript(world)]
    world.run(0.2)
    return [*lines, *(f"{name} has the row {world.row(name, 0)}" for name in "ABCD"), f"copies at {world.holders(0)}"]


def recovery() -> list[str]:
    """Seed 004, 1.2: the master A dies; B claims, asks all for their tables, and publishes the latest one."""
    world = SteppedPartitions(2, 1).with_table("ABC", "BC", "CB")
    for name in "BC":
        world.suspect(name, "A")
    lines = ["B and C suspect A", *transcript(world, dead="A")]
    return [*lines, f"B leads {world.list_of('B')[1]} with the rows {' '.join(world.rows('B'))}"]


def merge() -> list[str]:
    """Seed 002: C and D, led by C, merge into the cluster of A and B."""
    world = SteppedCluster(training_settings(disconnection_heartbeats=0))
    for name in "ABCD":
        world.born(name, "A" if name == "C" else "")
    world.settled("AB")
    world.with_lists(**dict.fromkeys("CD", (2, "CD")))
    world.receive("C", "A", SplitBrainAnswer(cluster_search.profile(world.inspect("A"))))
    lines = ["C meets A, which wins by its address", *transcript(world, most=60)]
    return [*lines, f"A lists {world.list_of('A')[1]}"]


def disconnection() -> list[str]:
    """Seed 001: C and D suspect one another; the master A keeps the greatest set without conflicts."""
    world = SteppedCluster().settled("ABCD")
    state = world.inspect("A")
    for reporter, suspect in ("CD", "DC"):
        other = world.inspect(reporter)
        beat = Heartbeat(other.uuid, state.uuid, address_of("A"), 4, (address_of(suspect),))
        world.receive("A", reporter, beat)
    lines = ["C reports D, D reports C, with their heartbeats"]
    for _ in range(60):
        world.pass_seconds(0.1, "A")
        found = [line for line in transcript(world) if "members-update" in line]
        lines += found
        if found:
            break
    return [*lines, f"A keeps {world.list_of('A')[1]}"]


TRANSCRIPTS: dict[str, Callable[[], list[str]]] = {
    "mastership_claim": claim,
    "safe_commit": commit,
    "table_recovery": recovery,
    "merge": merge,
    "partial_disconnection": disconnection,
}


def text(name: str) -> str:
    play = TRANSCRIPTS[name]
    return "\n".join([" ".join((play.__doc__ or "").split()), "", *play(), ""])


@pytest.mark.parametrize("name", TRANSCRIPTS)
def test_a_protocol_goes_message_by_message_as_its_transcript_says(name: str) -> None:
    assert text(name) == (FOLDER / f"{name}.txt").read_text(), "run: python -m tests.core.test_transcripts"


if __name__ == "__main__":
    for each in TRANSCRIPTS:
        (FOLDER / f"{each}.txt").write_text(text(each))
