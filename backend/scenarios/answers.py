"""The right answers to the questions of a scenario, read from what the records have shown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.membership.events import MemberMerging, MemberStarted, MergeStarted
from quarterdeck.backend.core.partitions.events import ALL_LOST, PartitionLost
from quarterdeck.backend.invariants.invariant_checker import InvariantChecker
from quarterdeck.backend.picture.fold.picture import Picture
from quarterdeck.backend.scenarios.expectations import list_labels, running, suspect_labels
from quarterdeck.backend.scenarios.format.questions import AnswerSource, ScenarioQuestion, words_of


@dataclass
class OpenQuestion:
    """A question that waits for its answer, and the facts with which its answer is compared."""

    ask: ScenarioQuestion
    said: str
    """The trainee's answer; empty where the question was left out."""
    list_before: tuple[str, ...]
    """The greatest list of a running member when it was asked."""
    left: int
    """The number of expectations that have to be over before the right answer can be seen."""

    def truth(self, picture: Picture, checker: InvariantChecker, recent: Sequence[Record]) -> RightAnswer:
        """Return the right answer as things stand. `recent` are the records since the last action."""
        if self.ask.right is None:
            return RightAnswer(self.ask, self.ask.answer or "", self.said)
        return RightAnswer(self.ask, self._read(self.ask.right, picture, checker, recent), self.said)

    def _read(self, right: AnswerSource, picture: Picture, checker: InvariantChecker, recent: Sequence[Record]) -> str:
        match right.form:
            case "masters":
                return _names(picture.masters())
            case "master_of":
                belief = picture.members.get(right.of)
                return picture.label_of(belief.master) if belief and belief.master else "nobody"
            case "view_of":
                belief = picture.members.get(right.of)
                return _names(list_labels(picture, belief) if belief else ())
            case "version_of":
                belief = picture.members.get(right.of)
                return str(belief.version if belief else 0)
            case "who_is_removed":
                now = greatest_list(picture)
                return _names(label for label in self.list_before if label not in now)
            case "who_suspects":
                suspecting = {label: suspect_labels(picture, belief) for label, belief in running(picture).items()}
                return _names(label for label, suspects in suspecting.items() if right.of in suspects)
            case "merges":
                return _names(_merged(recent) if right.of == "who" else _merged_into(picture, recent))
            case "holders_of":
                return _names(_holders(picture, checker, right.of))
            case "lost_partitions":
                events = [record.event for record in recent if isinstance(record.event, PartitionLost)]
                return str(len({event.partition for event in events if event.lost_backups == ALL_LOST}))
            case _:
                return str(sum(record.event.__struct_config__.tag == right.of for record in recent))


@dataclass(frozen=True)
class RightAnswer:
    """A right answer, in words, and the trainee's answer."""

    ask: ScenarioQuestion
    text: str
    said: str = ""

    @property
    def choice(self) -> int | None:
        """The place of the choice with this answer; None when the question has no choices, or no choice has the answer."""
        said = words_of(self.text)
        return next((place for place, one in enumerate(self.ask.choices) if words_of(one) == said), None)

    @property
    def in_doubt(self) -> bool:
        """Whether none of the choices was right, as it may be in a run that went otherwise than was thought."""
        return bool(self.ask.choices) and self.choice is None

    def agrees_with(self, answer: str) -> bool:
        """Whether `answer`, the letter of a choice or words, says the same."""
        return words_of(self.ask.text_of_choice(answer)) == words_of(self.text)


def greatest_list(picture: Picture) -> tuple[str, ...]:
    """Return the longest list of a running member; of several the one of the member that started first."""
    return max((list_labels(picture, belief) for belief in running(picture).values()), key=len, default=())


def _merged(recent: Sequence[Record]) -> Iterable[str]:
    return dict.fromkeys(
        record.member for record in recent if isinstance(record.event, MemberStarted) and record.event.merged_from
    )


def _merged_into(picture: Picture, recent: Sequence[Record]) -> Iterable[str]:
    events = (record.event for record in recent)
    return dict.fromkeys(
        picture.label_of(event.target) for event in events if isinstance(event, MergeStarted | MemberMerging)
    )


def _holders(picture: Picture, checker: InvariantChecker, partition: int) -> Sequence[str]:
    for label in picture.masters():
        table = checker.tables.by_incarnation.get(picture.members[label].uuid)
        row = table.rows.get(partition) if table else None
        if row is not None:
            return [checker.tables.label(uuid) for uuid in row.holders if uuid is not None]
    return ()


def _names(labels: Iterable[str]) -> str:
    return ", ".join(labels) or "nobody"
