import pytest

from quarterdeck.backend.core.properties import PROPERTIES, SECOND_US, BadProperty, PropertyValue, Settings


def test_production_is_the_documented_defaults() -> None:
    shown = Settings.of().as_properties()
    assert shown["hazelcast.heartbeat.interval.seconds"] == 5
    assert shown["hazelcast.max.no.heartbeat.seconds"] == 60
    assert shown["hazelcast.member.list.publish.interval.seconds"] == 60
    assert shown["hazelcast.mastership.claim.timeout.seconds"] == 120
    assert shown["hazelcast.max.join.seconds"] == 300


def test_properties_go_over_the_preset() -> None:
    settings = Settings.of({"hazelcast.heartbeat.interval.seconds": "0.25"}, preset="training")
    assert settings.heartbeat_interval_us == SECOND_US // 4
    assert settings.max_no_heartbeat_us == 4 * SECOND_US


@pytest.mark.parametrize("preset", ["production", "training"])
def test_what_is_shown_can_be_read_again(preset: str) -> None:
    settings = Settings.of(preset=preset)  # type: ignore[arg-type]
    assert Settings.of(settings.as_properties()) == settings


@pytest.mark.parametrize(
    ("name", "value", "hint"),
    [
        ("hazelcast.hartbeat.interval.seconds", 1, "did you mean hazelcast.heartbeat.interval.seconds"),
        ("nonsense", 1, "no such property"),
        ("hazelcast.heartbeat.interval.seconds", "soon", "not a number of seconds"),
        ("hazelcast.heartbeat.interval.seconds", float("nan"), "not a number"),
        ("hazelcast.heartbeat.interval.seconds", True, "not a number"),
        ("hazelcast.heartbeat.interval.seconds", 0, "too small"),
        ("hazelcast.heartbeat.interval.seconds", 60, "not longer than the heartbeat interval"),
    ],
)
def test_a_bad_property_names_itself_and_hints(name: str, value: object, hint: str) -> None:
    with pytest.raises(BadProperty, match=hint) as caught:
        Settings.of({name: value})  # type: ignore[dict-item]
    assert caught.value.name in PROPERTIES or caught.value.name == name


def test_group_patterns_count_only_where_groups_go_by_them() -> None:
    """Two members that differ in patterns which neither uses spread their data alike."""
    patterns: dict[str, PropertyValue] = {"quarterdeck.partition.groups": "rack1=10.0.1.*; rack2=10.0.2.*"}
    assert Settings.of(patterns).partitioning == Settings.of().partitioning
    assert Settings.of(patterns).grouping == Settings.of().grouping == "per-member"
    custom: dict[str, PropertyValue] = {"quarterdeck.partition.group.type": "custom"}
    one, other = (
        Settings.of({**custom, **patterns}),
        Settings.of({**custom, "quarterdeck.partition.groups": "rack1=10.*"}),
    )
    assert one.partitioning != other.partitioning and one.grouping != other.grouping
    spaced: dict[str, PropertyValue] = {"quarterdeck.partition.groups": "rack1 = 10.0.1.*;rack2=10.0.2.*;"}
    assert Settings.of({**custom, **spaced}).partitioning == one.partitioning
