"""The state of a run so far, fed record by record: expectations, questions and the outcome are read from it."""

from __future__ import annotations

from typing import Protocol

from quarterdeck.backend.core.commands import CallMap
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.operations import Get
from quarterdeck.backend.invariants import InvariantChecker
from quarterdeck.backend.picture.fold.picture import MemberBelief, Picture
from quarterdeck.backend.scenarios.answers import OpenQuestion, RightAnswer, greatest_list
from quarterdeck.backend.scenarios.data_expectations import data_missing, why_not_balanced, why_not_safe, writes_missing
from quarterdeck.backend.scenarios.event_patterns import forbidden_event
from quarterdeck.backend.scenarios.expectations import list_labels, members_missing, running, suspect_labels
from quarterdeck.backend.scenarios.format.scenario import Expect, ScenarioQuestion
from quarterdeck.backend.scenarios.outcome import MemberOutcome

ONE_CLUSTER = Expect.model_validate({"one-cluster": True})


class RecordSink(Protocol):
    """Where the records of a run are written, if anywhere."""

    def append(self, record: Record) -> None: ...


class RunState:
    """The state of a run so far: the picture, the broken invariants, the records since the last action."""

    def __init__(self, journal: RecordSink | None = None) -> None:
        self.picture = Picture()
        self.refusal: str | None = None
        """Why the last command was refused; None when it was done."""
        self.invariant_checker = InvariantChecker()
        self.recent: list[Record] = []
        self.records = 0
        self._counted_from = 0
        """Place among `recent` from which on records count for the present expectation."""
        self._journal = journal
        self._questions: list[OpenQuestion] = []

    def observe(self, record: Record) -> None:
        self.records += 1
        self.picture.apply(record)
        self.invariant_checker.observe(record)
        self.recent.append(record)
        if self._journal is not None:
            self._journal.append(record)

    def has_joined(self, label: str) -> bool:
        """Whether the member is on a list and has not left it."""
        belief = self.picture.members.get(label)
        return belief is not None and belief.status == "member"

    def is_running(self, label: str) -> bool:
        belief = self.picture.members.get(label)
        return belief is not None and belief.status not in ("stopped", "killed")

    def begin_action(self) -> None:
        """From now on `recent` and `refusal` are those of the next action."""
        self.recent.clear()
        self.refusal = None

    def begin_expectation(self, expect: Expect) -> None:
        """From now on `missing` and `is_violated` are asked about `expect`."""
        self._counted_from = len(self.recent) if expect.since == "here" else 0

    def missing(self, expect: Expect) -> str:
        """Return the unmet parts of `expect`, in words; empty when all hold.

        It reads no keys: see `writes_missing`.
        """
        records = self.recent[self._counted_from :]
        of_members = members_missing(expect, self.picture, records, self.refusal)
        of_data = data_missing(expect, self.picture, self.invariant_checker, records)
        return "; ".join(filter(None, (of_members, of_data)))

    def is_violated(self, expect: Expect) -> bool:
        """Whether something happened that `expect` forbids: waiting longer cannot change that."""
        return bool(forbidden_event(expect.never, self.picture, self.recent[self._counted_from :]))

    def ask(self, ask: ScenarioQuestion, said: str = "") -> None:
        """Keep a question, and the answer to it, until `answers` gives the right one."""
        self._questions.append(OpenQuestion(ask, said, greatest_list(self.picture), ask.after))

    def answers(self) -> list[RightAnswer]:
        """Return the right answers that can be seen now that another expectation is over."""
        for question in self._questions:
            question.left -= 1
        due = [question for question in self._questions if not question.left]
        self._questions = [question for question in self._questions if question.left]
        return [question.truth(self.picture, self.invariant_checker, self.recent) for question in due]

    def writes_missing(self) -> str:
        """Return why it cannot be said that no acknowledged write is lost, after every key was read; empty when none is."""
        return writes_missing(self.invariant_checker)

    def reader(self) -> MemberBelief | None:
        """Return the incarnation to read everything through; None while no member can be asked."""
        return next((belief for belief in running(self.picture).values() if belief.status == "member"), None)

    def reads_of_everything(self, reader: MemberBelief) -> list[CallMap]:
        return [CallMap(reader.label, Get(name, key)) for name, key in self.invariant_checker.writes.written()]

    def is_reading(self, reader: MemberBelief) -> bool:
        return bool(self.invariant_checker.writes.reads_under_way(reader.uuid))

    def is_settled(self) -> bool:
        return not self.why_not_settled()

    def why_not_settled(self) -> str:
        """Return why the members are not one cluster with safe and evenly spread data; empty when they are."""
        tables = self.invariant_checker.tables
        return (
            members_missing(ONE_CLUSTER, self.picture, ())
            or next((words for _, words in why_not_safe(self.picture, tables)), "")
            or (why_not_balanced(tables, leniently=True) if tables.in_use else "")
        )

    def table_version(self) -> int:
        """Return the greatest table version that a running member has; 0 when none has a table."""
        tables = self.invariant_checker.tables.by_incarnation
        uuids = (belief.uuid for belief in running(self.picture).values())
        return max((tables[uuid].version for uuid in uuids if uuid in tables), default=0)

    def beliefs(self) -> dict[str, MemberOutcome]:
        return {
            label: MemberOutcome(
                self.picture.label_of(belief.master) if belief.master else None,
                belief.version,
                list_labels(self.picture, belief),
                suspect_labels(self.picture, belief),
            )
            for label, belief in running(self.picture).items()
        }
