"""The texts that the program shows of members, each cut into its parts: sentence of the status, questions, merges, migrations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from quarterdeck.backend.boards.migration_board import migration_board
from quarterdeck.backend.boards.operator_questions import operator_questions
from quarterdeck.backend.clusters.cluster import ConnectionStatus, watcher_of
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.judgement.judge import Judge
from quarterdeck.backend.picture.fold.picture import Picture
from tests.hazelcast.real.judges import Statement


def texts(
    picture: Picture,
    connections: Mapping[str, ConnectionStatus],
    recent: Sequence[Record],
    now_us: int,
    at_us: int,
) -> Iterator[Statement]:
    """Yield every text that is shown now; `now_us` is on the program's clock, `at_us` on that of the members' logs."""
    watcher = watcher_of(connections)
    unreached = frozenset(watcher.missed)
    judge = Judge(picture, watcher, now_us)
    health = judge.health
    for part in health.sentence.split(" · "):
        yield Statement(at_us, "status", (), part, health.sentence, unreached=unreached)
    heading, remembered_us = "", recent[0].utc if recent else 0
    for fact in operator_questions(judge, recent):
        heading = fact.heading or heading
        yield Statement(at_us, "question", (), f"{heading}: {fact.text}", "", remembered_us, unreached)
    for head in migration_board(judge, now_us).heads:
        for part in head.text.split("; "):
            yield Statement(at_us, "migrations", (), part, head.text)
