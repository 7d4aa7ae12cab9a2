"""What one look at a cluster waits for."""

from __future__ import annotations

import pytest

from quarterdeck.backend.clusters.follower import Follower
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.core.witnessed.events import MemberWitnessed, OwnersTold
from quarterdeck.backend.judgement.table_agreement import LASTING_US, is_unsettled
from quarterdeck.cli.commands.cluster import observation
from tests.app.fakes.fake_cluster import FakeCluster


class Migrating(FakeCluster):
    """Two witnessed members. The second reports the table of the first when it has been looked at so many times."""

    def __init__(self, agrees_after: int) -> None:
        super().__init__(("n1", "n2"))
        self.looks, self._agrees_after = 0, agrees_after
        for label in self.labels:
            self.happen(label, MemberWitnessed(("client-protocol",), ("owners",)))
            self.install(label, 2, self.labels)
            self.owns(label, label)

    def owns(self, label: str, owner: str) -> None:
        self.happen(label, OwnersTold((self.holder(owner),), (0, 0), f"table of {owner}"))

    def now_us(self) -> int:
        self._at += SECOND_US
        self.looks += 1
        if self.looks == self._agrees_after:
            self.owns("n2", "n1")
        return self._at


@pytest.mark.parametrize(("agrees_after", "agreed"), [(3, True), (1_000, False)])
def test_tables_that_still_change_are_looked_at_again(
    monkeypatch: pytest.MonkeyPatch, agrees_after: int, agreed: bool
) -> None:
    monkeypatch.setattr(observation, "POLL_SECONDS", 0)
    cluster = Migrating(agrees_after)
    followed = Follower(cluster)
    followed.follow()
    observation.await_tables(followed)
    picture = followed.picture
    assert not is_unsettled(picture, cluster.now_us())
    digests = {belief.table.digest for belief in picture.members.values() if belief.table is not None}
    assert (len(digests) == 1) is agreed
    assert cluster.looks <= LASTING_US // SECOND_US + 3
