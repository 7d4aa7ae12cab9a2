"""Traffic on a running cluster: as much as was asked for, no more than it answers, and from the same seed the same."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import Future

import pytest

from quarterdeck.backend.clusters.traffic import LAST_ANSWERS_US, MOST_OPEN, Traffic, load_of
from quarterdeck.backend.core.commands import CommandRefused
from quarterdeck.backend.core.operations import Answer, Get, Operation, PutAll
from quarterdeck.backend.core.properties import SECOND_US
from tests.app.fakes.fake_cluster import FakeCluster


class AnsweringCluster(FakeCluster):
    """Keeps what it is asked for; answers at once unless it is `silent`."""

    def __init__(self, *, silent: bool = False, problem: str = "") -> None:
        super().__init__(("a", "b"))
        self.asked: list[tuple[str, Operation]] = []
        self.silent, self.problem = silent, problem

    def call(self, member: str, operation: Operation, *, watched: bool = False) -> Future[Answer]:
        self.asked.append((member, operation))
        future: Future[Answer] = Future()
        if not self.silent:
            future.set_result(Answer(problem=self.problem))
        return future

    @property
    def keys(self) -> list[str]:
        return [
            key
            for _, operation in self.asked
            for key in (
                [operation.key] if isinstance(operation, Get) else [key for key, _ in operation.entries]  # type: ignore[union-attr]
            )
        ]


BOTH = ("a", "b")


def traffic(cluster: AnsweringCluster, text: str) -> Traffic:
    return Traffic(cluster, load_of(text, BOTH), 0)


def test_so_many_operations_a_second_are_asked_of_all_members_until_it_is_over() -> None:
    cluster = AnsweringCluster()
    made = traffic(cluster, "200 keys=50 bytes=300 map=orders for=2s")
    for tick in range(20):
        made.step(tick * SECOND_US // 10, BOTH)
        assert not made.over
    made.step(5 * SECOND_US, BOTH)
    assert made.over
    assert len(cluster.keys) == 400 and {member for member, _ in cluster.asked} == {"a", "b"}
    assert set(cluster.keys) <= {f"k{number}" for number in range(50)}
    stored = [one for _, one in cluster.asked if isinstance(one, PutAll)]
    assert {part.map for part in stored} == {"orders"}
    assert {len(value) for part in stored for _, value in part.entries} == {300}
    assert len(stored) <= 2 * 21  # the puts of a member go together
    assert made.ending == "the load is over: 400 operations done"


def test_with_a_skew_the_first_keys_are_asked_for_most() -> None:
    even, skewed = AnsweringCluster(), AnsweringCluster()
    traffic(even, "1000 keys=100").step(SECOND_US, BOTH)
    traffic(skewed, "1000 keys=100 skew=4").step(SECOND_US, BOTH)
    most = [Counter(cluster.keys).most_common(1)[0] for cluster in (even, skewed)]
    assert most[0][1] < 40 and most[1] == ("k0", most[1][1]) and most[1][1] > 250


def test_equal_loads_ask_for_the_same() -> None:
    one, other = AnsweringCluster(), AnsweringCluster()
    for cluster in (one, other):
        traffic(cluster, "100 skew=1").step(SECOND_US, BOTH)
    assert one.asked == other.asked


def test_what_is_not_answered_is_not_piled_up() -> None:
    cluster = AnsweringCluster(silent=True)
    made = traffic(cluster, "20000")
    for tick in range(1, 11):
        made.step(tick * SECOND_US // 10, BOTH)
    assert len(cluster.keys) == MOST_OPEN and made.left_out == 20_000 - MOST_OPEN
    assert made.text == f"load 20000/s, {20_000 - MOST_OPEN} left out"


def test_what_fails_is_counted_and_told() -> None:
    cluster = AnsweringCluster(problem="no answer in time")
    made = traffic(cluster, "10")
    made.step(SECOND_US, BOTH)
    assert made.failed == 11 and "11 failed (no answer in time)" in made.ending
    refused: Future[Answer] = Future()
    refused.set_exception(CommandRefused("a is down"))
    made._end(1, refused)
    made.step(SECOND_US, BOTH)
    assert made.problem == "a is down"


def test_only_those_that_run_are_asked() -> None:
    cluster = AnsweringCluster()
    made = traffic(cluster, "100")
    made.step(SECOND_US, ["b", "new"])
    assert {member for member, _ in cluster.asked} == {"b", "new"}
    made.step(2 * SECOND_US, [])
    assert made.failed == 100 and made.problem == "no member runs that could be asked"


def test_when_it_is_over_the_last_answers_are_waited_for_but_not_for_ever() -> None:
    cluster = AnsweringCluster(silent=True)
    made = traffic(cluster, "100")
    made.step(SECOND_US, BOTH)
    made.finish(SECOND_US)
    made.step(2 * SECOND_US, BOTH)
    assert not made.over
    answered: Future[Answer] = Future()
    answered.set_result(Answer())
    made._end(100, answered)
    made.step(SECOND_US + LAST_ANSWERS_US, BOTH)
    assert made.over and made.ending == "the load is over: 100 operations done, 1 operation without an answer"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("fast", "rate: Input should be a valid number"),
        ("100 colour=red", "'colour=red' is not understood"),
        ("100 for=long", "for: 'long' is not a duration"),
        ("0", "rate: Input should be greater than 0"),
        ("100 bytes=-1", "bytes: Input should be greater than or equal to 0"),
    ],
)
def test_what_is_wrong_in_the_words_is_told(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        load_of(text, ["a"])


def test_somebody_has_to_run() -> None:
    with pytest.raises(ValueError, match="no member runs"):
        load_of("100", [])
