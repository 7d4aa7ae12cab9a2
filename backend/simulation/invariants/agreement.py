"""View agreement: what a member installs reaches everybody on it, or they part (M2; seed 000, Theory)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from quarterdeck.backend.core.events import ListInstalled, Record
from quarterdeck.backend.simulation.invariants.checker import Checker, Leftover, Rule, Violation
from quarterdeck.backend.simulation.invariants.lives import Life, Lives


class ViewAgreement(Checker):
    """If one life installs a list, then each other life on it installs that one or a later one of its lineage.

    It is excused when a later list of the first does not hold it, or when either of the two ends or merges. As whole lists
    heal whoever missed some, only the present list of each life is owed; so nothing has to be done while the run goes on.
    """

    name = "view agreement"

    def __init__(self, lives: Lives) -> None:
        self._lives = lives

    def rules(self) -> Mapping[type, Rule]:
        return {}

    def leftovers(self) -> Iterator[Leftover]:
        for life in self._lives.by_uuid.values():
            if life.view is not None and life.view_record is not None and not life.ended:
                yield from self._owed_to(life, life.view, life.view_record)

    def _owed_to(self, life: Life, view: ListInstalled, record: Record) -> Iterator[Leftover]:
        for member in view.members:
            other = self._lives.by_uuid.get(member.uuid)
            if other is None or other.ended or other.reached.get(view.lineage, 0) >= view.version:
                continue
            text = f"{life.label} stands at v{view.version} of {view.lineage}, {other.label} on it never came there"
            witnesses = (record,) if other.view_record is None else (record, other.view_record)
            master = self._lives.by_address.get(view.master, life)
            yield Leftover(Violation(self.name, text, witnesses), record.at, (life, other, master))
