"""The periodic publication of the member list (Cluster Service Consistency Improvements, Membership Update Process)."""

from quarterdeck.backend.core.membership.messages import MembersUpdate
from quarterdeck.backend.core.messages import Message
from quarterdeck.backend.core.properties import SECOND_US
from tests.core.stepped_cluster import SteppedCluster


def test_the_list_is_published_again_and_again() -> None:
    world = SteppedCluster().settled("AB")
    published: list[str] = []

    def watch(sender: str, receiver: str, message: Message) -> bool:
        if isinstance(message, MembersUpdate) and sender == "A":
            published.append(receiver)
        return False

    world.loses = watch
    world.live(3.1 * world.settings.list_publish_interval_us / SECOND_US)
    assert published == ["B"] * 3
