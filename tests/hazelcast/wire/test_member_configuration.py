"""What a member's reported configuration says of how it finds others."""

import pytest

from quarterdeck.backend.hazelcast.wire.member_configuration import read_configuration


@pytest.mark.parametrize(
    ("options", "service"),
    [
        ("<service-dns>hz.orders.svc</service-dns>", "hz.orders.svc:5701"),
        ("<service-dns>hz.orders.svc</service-dns><service-port>5710</service-port>", "hz.orders.svc:5710"),
        ("<namespace>orders</namespace><service-name>hz</service-name>", "hz.orders.svc.cluster.local:5701"),
        ("<namespace>orders</namespace>", ""),
    ],
)
def test_a_kubernetes_joiner_names_its_service(options: str, service: str) -> None:
    join = f"<join><kubernetes enabled='true'>{options}</kubernetes></join>"
    read = read_configuration(f"<hazelcast><network>{join}</network></hazelcast>")
    assert read is not None and read.joiner == "kubernetes" and not read.uses_join_list
    assert read.services == ((service,) if service else ())
