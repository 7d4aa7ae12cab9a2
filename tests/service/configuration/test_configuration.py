"""One configuration out of file, environment and flags; every mistake is one error that says where it was made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import typer.main
from hypothesis import given
from hypothesis import strategies as st

from quarterdeck.backend.core.properties import PROPERTIES
from quarterdeck.backend.journal.files import checked_name
from quarterdeck.backend.service.configuration.configuration_file import PRODUCT_PROPERTIES
from quarterdeck.backend.service.configuration.process_configuration import (
    GROUPS_BY_DEFAULT,
    OPEN_TO_ALL,
    ProcessConfiguration,
    User,
)
from quarterdeck.backend.service.configuration.sources import (
    BadConfiguration,
    Override,
    is_loopback,
    process_configuration,
)
from quarterdeck.backend.service.process.foreground_member import file_name
from quarterdeck.cli.main import app

NAME = ("hazelcast", "cluster-name")
FULL = """
hazelcast:
  cluster-name: orders
  instance-name: athens
  network:
    port: {port: 5801, auto-increment: false}
    join:
      multicast: {enabled: false}
      tcp-ip: {enabled: true, member-list: ["10.0.0.1", "10.0.0.2:5702, 10.0.0.3"]}
    rest-api:
      enabled: true
      port: 8443
      endpoint-groups:
        CLUSTER_WRITE: {enabled: true}
        HEALTH_CHECK: {enabled: false}
        WAN: {enabled: false}
  lite-member: {enabled: true}
  member-attributes: {zone: rack1}
  properties:
    hazelcast.max.no.heartbeat.seconds: 10
quarterdeck:
  preset: training
  journal: journals
  log: {format: json, level: debug}
  allow-faults: true
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "member.yaml"


def read(
    file: Path, text: str, environment: Mapping[str, str] | None = None, flags: Sequence[Override] = ()
) -> ProcessConfiguration:
    file.write_text(text)
    return process_configuration(file, environment or {}, flags)


def mistake(file: Path, text: str, environment: Mapping[str, str] | None = None, flags: Sequence[Override] = ()) -> str:
    with pytest.raises(BadConfiguration) as caught:
        read(file, text, environment, flags)
    return str(caught.value).replace(str(file), "F")


def test_with_nothing_said_a_member_is_for_this_machine_alone() -> None:
    found = process_configuration(None, {})
    assert (found.member.cluster_name, found.member.address, found.bind_host, found.ports_tried) == (
        "dev",
        "127.0.0.1:5701",
        "127.0.0.1",
        100,
    )
    assert found.join_list == ("127.0.0.1",) and found.endpoint_groups == GROUPS_BY_DEFAULT
    assert not found.allow_faults and found.journal is None


def test_a_whole_file(file: Path) -> None:
    found = read(file, FULL)
    assert (found.member.cluster_name, found.member.label, found.member.address, found.ports_tried) == (
        "orders",
        "athens",
        "127.0.0.1:5801",
        1,
    )
    assert found.join_list == ("10.0.0.1", "10.0.0.2:5702, 10.0.0.3")
    assert found.rest_port == 8443 and found.member.lite and found.member.zone == "rack1" and found.allow_faults
    assert found.endpoint_groups == GROUPS_BY_DEFAULT | {"CLUSTER_WRITE": True, "HEALTH_CHECK": False}
    assert (
        found.member.settings.max_no_heartbeat_us == 10_000_000
        and found.member.settings.heartbeat_interval_us == 1_000_000
    )
    assert found.journal == file.parent / "journals" and found.source == file
    assert (found.log_format, found.log_level) == ("json", "DEBUG")


def test_the_example_in_the_documents_is_one(file: Path, tmp_path: Path) -> None:
    page = (Path(__file__).parents[3] / "docs" / "operators" / "operations.md").read_text()
    for name in ("cluster.secret", "ann.password", "monitoring.token"):
        (tmp_path / name).write_text(name)
    found = read(file, page.partition("```yaml\n")[2].partition("```")[0])
    assert found.bind_host == "10.0.0.7" and found.security.wire.tls.certificate == tmp_path / "athens.pem"
    assert [user.role for user in found.security.users] == ["write", "read"]


def test_a_flag_goes_before_the_environment_and_that_before_the_file(file: Path) -> None:
    text = "hazelcast: {cluster-name: file}"
    environment = {"HZ_CLUSTERNAME": "environment", "PATH": "/bin", "QUARTERDECK_USER": "ann"}
    assert read(file, text).member.cluster_name == "file"
    assert read(file, text, environment).member.cluster_name == "environment"
    assert read(file, text, environment, [Override(NAME, "flag", "--cluster-name")]).member.cluster_name == "flag"


def test_the_environment_names_any_field() -> None:
    found = process_configuration(
        None,
        {
            "HZ_NETWORK_PORT_PORT": "5901",
            "HZ_NETWORK_PORT_AUTOINCREMENT": "false",
            "HZ_NETWORK_JOIN_TCPIP_MEMBERLIST": "10.0.0.1, 10.0.0.2",
            "HZ_NETWORK_RESTAPI_ENDPOINTGROUPS_CLUSTERWRITE_ENABLED": "true",
            "HZ_LITEMEMBER_ENABLED": "true",
            "HZ_PROPERTIES_HAZELCAST_MAX_NO_HEARTBEAT_SECONDS": "9",
            "QUARTERDECK_LOG_FORMAT": "json",
            "QUARTERDECK_ALLOWFAULTS": "yes",
        },
    )
    assert (
        found.member.address == "127.0.0.1:5901" and found.ports_tried == 1 and found.member.lite and found.allow_faults
    )
    assert found.join_list == ("10.0.0.1", "10.0.0.2") and found.endpoint_groups["CLUSTER_WRITE"]
    assert found.member.settings.max_no_heartbeat_us == 9_000_000 and found.log_format == "json"


def test_what_other_commands_read_from_the_environment_is_no_mistake() -> None:
    def variables(command: Any) -> set[str]:
        inner = getattr(command, "commands", {}).values()
        own = {param.envvar for param in command.params if param.envvar}
        return own.union(*map(variables, inner))

    found = variables(typer.main.get_command(app))
    assert found
    process_configuration(None, dict.fromkeys(found, "x"))


def test_a_port_may_stand_alone(file: Path) -> None:
    text = "hazelcast: {network: {port: 5801}}"
    assert read(file, text).member.address == "127.0.0.1:5801"
    assert read(file, text, {"HZ_NETWORK_PORT_PORTCOUNT": "3"}).ports_tried == 3


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "hazelcast:\n  cluster-nam: x",
            "F:2: hazelcast.cluster-nam: there is no such field; did you mean cluster-name?",
        ),
        ("hazelcas: {}", "F:1: hazelcas: there is no such field; did you mean hazelcast?"),
        ("hazelcast:\n  network:\n    port:\n      prt: 1", "F:4: hazelcast.network.port.prt: there is no such field"),
        ("hazelcast:\n  network:\n    port: 70000", "F:3: hazelcast.network.port.port: 70000 does not fit here"),
        (
            "hazelcast:\n  properties:\n    hazelcast.max.no.heartbeat.second: 1",
            "F:3: hazelcast.properties.hazelcast.max.no.heartbeat.second: there is no such property; did you mean",
        ),
        (
            "hazelcast:\n  properties:\n\n    hazelcast.max.no.heartbeat.seconds: soon",
            "F:4: hazelcast.properties.hazelcast.max.no.heartbeat.seconds: 'soon' is not a number of seconds",
        ),
        (
            "hazelcast:\n  network:\n    join:\n      multicast: {enabled: true}",
            "F:3: hazelcast.network.join: members find",
        ),
        (
            "hazelcast:\n  network:\n    join:\n      tcp-ip:\n        member-list: ['a b:c']",
            "F:5: hazelcast.network.join.tcp-ip.member-list: entry 2 of the join list: 'b:c' has the port 'c'",
        ),
        (
            "hazelcast:\n  network:\n    rest-api:\n      endpoint-groups:\n        CLUSTER_WRIT: {enabled: true}",
            "F:5: hazelcast.network.rest-api.endpoint-groups.CLUSTER_WRIT: there is no such field; did you mean CLUSTER_WRITE?",
        ),
        (
            "hazelcast:\n  network:\n    rest-api:\n      endpoint-groups:\n        CP: {enabled: true}",
            "F:4: hazelcast.network.rest-api.endpoint-groups: there are no paths in the endpoint group CP here",
        ),
        ("hazelcast:\n  network:\n    ssl: {enabled: true}", "F:3: hazelcast.network.ssl: needs certificate and key"),
        (
            "hazelcast:\n  network:\n    interfaces: {enabled: true, interfaces: ['10.*.*.*']}",
            "F:3: hazelcast.network.interfaces: name the one address",
        ),
        (
            "hazelcast:\n  network:\n    public-address: 'a:5702'",
            "F:3: hazelcast.network.public-address: a:5702 has another",
        ),
        ("quarterdeck:\n  log: {format: xml}", "F:2: quarterdeck.log.format: 'xml' is not known here; write 'console'"),
        (
            "quarterdeck:\n  security:\n    users:\n    - {name: ann, password-file: none, role: read}",
            "F:4: quarterdeck.security.users[1].password-file: ",
        ),
        (
            'quarterdeck:\n  security: {open-to-all: "I know that anybody can control this member"}\n  bind: 10.0.0.1-5',
            "F:3: quarterdeck.bind: entry 1 of the join list: '10.0.0.1-5' is a range or wildcard",
        ),
        (
            'quarterdeck:\n  security: {open-to-all: "I know that anybody can control this member"}\n'
            "hazelcast:\n  network:\n    interfaces: {enabled: true, interfaces: ['x!y']}",
            "F:5: hazelcast.network.interfaces.interfaces: entry 1 of the join list: 'x!y' has '!'",
        ),
        ("quarterdeck:\n  security: {open-to-all: sure}", "F:2: quarterdeck.security: open-to-all has to say"),
        ("[1]", "F:1: is no configuration"),
        (
            "hazelcast:\n  properties:\n    hazelcast.max.join.seconds: [1]",
            "F:3: hazelcast.properties.hazelcast.max.join.seconds: is neither text nor a number; write one value",
        ),
        ("hazelcast:\n  mpa: {}", "F:2: hazelcast.mpa: there is no such field"),
        ("hazelcast: 3", "F:1: hazelcast: 3 does not fit here; write fields"),
        ("hazelcast: {", "F:1: is not YAML"),
    ],
)
def test_a_mistake_in_the_file_has_file_line_field_and_hint(file: Path, text: str, message: str) -> None:
    assert mistake(file, text).startswith(message)


PRODUCT_FILE = """\
hazelcast:
  cluster-name: orders
  license-key: none
  management-center: {scripting-enabled: false}
  network:
    port: {auto-increment: true, port-count: 100, port: 5701}
    outbound-ports: [0]
    join:
      auto-detection: {enabled: false}
      multicast: {enabled: false, multicast-group: 224.2.2.3, multicast-port: 54327}
      tcp-ip: {enabled: true, connection-timeout-seconds: 5, member-list: [127.0.0.1]}
      aws: {enabled: false, region: us-west-1}
      kubernetes: {enabled: false}
    ssl: {enabled: false, factory-class-name: com.hazelcast.nio.ssl.BasicSSLContextFactory}
    symmetric-encryption: {enabled: false}
  map:
    default: {backup-count: 1}
  properties:
    hazelcast.logging.type: slf4j
    hazelcast.max.join.seconds: 7
  security: {enabled: true}
  cp-subsystem: {cp-member-count: 0}
"""


def test_an_operators_own_file_starts_a_member_and_says_what_it_ignores(file: Path) -> None:
    found = read(file, PRODUCT_FILE)
    assert (found.member.cluster_name, found.join_list) == ("orders", ("127.0.0.1",))
    said = [warning.replace(str(file), "F").replace("hazelcast.", "") for warning in found.warnings]
    ignored = "there is nothing of the kind here; it is ignored"
    assert said == [
        f"F:3: license-key: {ignored}",
        f"F:4: management-center: {ignored}",
        f"F:7: network.outbound-ports: {ignored}",
        f"F:10: network.join.multicast.multicast-group: {ignored}",
        f"F:10: network.join.multicast.multicast-port: {ignored}",
        f"F:11: network.join.tcp-ip.connection-timeout-seconds: {ignored}",
        f"F:14: network.ssl.factory-class-name: {ignored}; give certificate and key, both PEM files",
        f"F:15: network.symmetric-encryption: {ignored}; nothing is encrypted by it: see network.ssl",
        f"F:16: map: {ignored}; limits and eviction of maps are given by quarterdeck.map.limits",
        f"F:19: properties.logging.type: {ignored}",
        f"F:21: security: {ignored}; it keeps no client out: see quarterdeck.security",
        f"F:22: cp-subsystem: {ignored}",
    ]


def test_no_property_that_means_something_here_is_ignored() -> None:
    assert not set(PRODUCT_PROPERTIES) & set(PROPERTIES)


def test_properties_of_the_product_are_known_by_name() -> None:
    written = ("partition.migration.fragments.enabled", "cluster.shutdown.timeout.seconds", "local.localAddress")
    assert {f"hazelcast.{name}" for name in written} <= set(PRODUCT_PROPERTIES)


def test_another_way_to_find_members_is_a_mistake_when_it_is_on(file: Path) -> None:
    text = PRODUCT_FILE.replace("aws: {enabled: false", "aws: {enabled: true")
    assert mistake(file, text).startswith("F:8: hazelcast.network.join: members find one another only by tcp-ip")


def test_what_can_be_read_on_the_way_or_by_everybody_is_warned_of(file: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("s")
    (tmp_path / "password").write_text("p")
    (tmp_path / "secret").chmod(0o644)
    (tmp_path / "password").chmod(0o640)
    user = "{name: ann, password-file: password, role: read}"
    text = f"quarterdeck: {{bind: 10.0.0.7, security: {{secret-file: secret, users: [{user}]}}}}"
    secret, clear = read(file, text).warnings
    assert f"{tmp_path / 'secret'} is a secret, and all users of this machine can read it" in secret
    assert "what is sent to 10.0.0.7 can be read on the way" in clear
    (tmp_path / "secret").chmod(0o600)
    assert read(file, "quarterdeck: {security: {secret-file: secret}}").warnings == ()


def test_a_mistake_elsewhere_names_the_variable_or_the_flag(file: Path) -> None:
    port = ("hazelcast", "network", "port", "port")
    assert mistake(file, "", {"HZ_NETWORK_PORT_PORT": "x"}).startswith(
        "HZ_NETWORK_PORT_PORT: hazelcast.network.port.port"
    )
    assert mistake(file, "", {"HZ_CLUSTER_NAME": "x"}).endswith("did you mean HZ_CLUSTERNAME?")
    assert mistake(file, "", {"QUARTERDECK_BIN": "x"}).endswith("did you mean QUARTERDECK_BIND?")
    assert mistake(file, "", {"HZ_PROPERTIES_HAZELCAST_MAX": "x"}).startswith(
        "HZ_PROPERTIES_HAZELCAST_MAX: there is no"
    )
    assert mistake(file, "", {}, [Override(port, 0, "--port")]).startswith(
        "--port: hazelcast.network.port.port: 0 does not"
    )
    assert mistake(file, FULL, {}, [Override(("quarterdeck", "bind"), "10.0.0.1", "--bind")]).startswith(
        "--bind: quarterdeck"
    )


def test_beyond_loopback_only_with_authentication_or_in_so_many_words(file: Path, tmp_path: Path) -> None:
    (tmp_path / "pw").write_text("open sesame\n")
    bind = [Override(("quarterdeck", "bind"), "10.0.0.1", "--bind")]
    users = "quarterdeck: {security: {users: [{name: ann, password-file: pw, role: write}]}}"
    both = "quarterdeck: {security: {secret-file: pw, tokens: [{file: pw, role: fault}]}}"
    assert "who may use its HTTP face" in mistake(file, "", {}, bind)
    assert "how members prove themselves" in mistake(file, users, {}, bind)
    assert "who may use" not in mistake(file, users, {}, bind)
    assert read(file, both, {}, bind).bind_host == "10.0.0.1"
    words = Override(("quarterdeck", "security", "open-to-all"), OPEN_TO_ALL, "--open-to-all")
    found = read(file, "", {}, [*bind, words])
    assert found.security.open_to_all and found.member.address == "10.0.0.1:5701" and found.join_list == ("10.0.0.1",)


def test_where_nobody_can_call_an_address_to_call_is_needed(file: Path) -> None:
    words = {"QUARTERDECK_SECURITY_OPENTOALL": OPEN_TO_ALL, "QUARTERDECK_BIND": "0.0.0.0"}
    assert "public-address: is missing" in mistake(file, "", words)
    found = read(file, "hazelcast: {network: {public-address: node7}}", words)
    assert (found.bind_host, found.member.address) == ("0.0.0.0", "node7:5701")


def test_secrets_come_from_files_and_show_nowhere(file: Path, tmp_path: Path) -> None:
    (tmp_path / "pw").write_text("open sesame\n")
    (tmp_path / "empty").write_text("\n")
    security = "quarterdeck: {security: {secret-file: pw, users: [{name: ann, password-file: pw, role: read}], tokens: "
    found = read(file, security + "[{file: pw, role: fault, name: ci}]}}")
    assert found.security.wire.secret == "open sesame"
    assert found.security.users == (User("ann", "read", "open sesame"), User("ci", "fault", "", "open sesame"))
    assert "sesame" not in repr(found)
    assert "empty is empty; write the secret into it" in mistake(file, security + "[{file: empty, role: fault}]}}")


def test_the_same_user_twice(file: Path, tmp_path: Path) -> None:
    (tmp_path / "pw").write_text("x")
    one = "{name: ann, password-file: pw, role: read}"
    assert "'ann' stands there twice" in mistake(file, f"quarterdeck: {{security: {{users: [{one}, {one}]}}}}")


@pytest.mark.parametrize(
    ("host", "expected"),
    [("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("localhost", True), ("0.0.0.0", False)],
)
def test_what_loopback_is(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("hazelcast: {instance-name: " + "x" * 400 + "}", "has 400 bytes; the most is 100"),
        ('hazelcast: {cluster-name: "a\u202eb"}', "cannot be shown"),
        ("quarterdeck: {run: ../../x}", "cannot name a run"),
    ],
)
def test_a_name_that_no_record_or_file_could_have_is_refused_before_a_start(file: Path, text: str, told: str) -> None:
    assert told in mistake(file, text)


def test_labels_and_clusters_that_differ_have_files_that_differ() -> None:
    texts = [
        "a b",
        "a-b",
        "a:b",
        "a",
        "a.",
        "é",
        "è",
        "-",
        "a-20260101T000000000000Z",
        "127.0.0.1-5701",
        "127.0.0.1:5701",
        "[::1]:1",
    ]
    names = [file_name(text, "127.0.0.1:5701") for text in texts]
    assert names[1] == "a-b" and names[3] == "a" and names[10] == "127.0.0.1-5701"
    assert all(checked_name("writer", name) for name in names)
    assert len({*names[:9], *names[10:]}) == len(texts) - 1


@given(st.text(), st.text())
def test_no_two_texts_share_a_file(one: str, other: str) -> None:
    assert (file_name(one) == file_name(other)) is (one == other)
