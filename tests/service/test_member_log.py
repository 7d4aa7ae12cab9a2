"""A member's log, for people and for programs."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.events import OperatorAsked, Record
from quarterdeck.backend.core.membership.events import ClaimAnswered, ListInstalled, MasterChanged, SuspicionRaised
from quarterdeck.backend.core.membership.views.identity import Member
from quarterdeck.backend.core.partitions.events import MigrationStarted, PartitionLost
from quarterdeck.backend.picture.events.catalogue import ROWS
from quarterdeck.backend.service.member_log import LEVEL_LOGGER, LOGGER, MemberLog, configure_logging

ADDRESS = Address("10.0.0.1:5701")
OTHER = Address("10.0.0.2:5701")
LIST = ListInstalled(3, "x/1", ADDRESS, (Member(ADDRESS, "u-1", 1), Member(OTHER, "u-2", 2, True)), ADDRESS, "joined")


@pytest.fixture(autouse=True)
def quiet_again() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    logging.getLogger(LEVEL_LOGGER).setLevel(logging.NOTSET)


def logged(form: str, *events: object, level: str = "INFO", legacy: bool = False) -> str:
    stream = io.StringIO()
    configure_logging(form, level, ADDRESS, "dev", stream)  # type: ignore[arg-type]
    log = MemberLog(ADDRESS, legacy_lists=legacy)
    for seq, event in enumerate(events, 1):
        log.write(Record("run", "n1", "u-1", seq, 0, 0, event))  # type: ignore[arg-type]
    return stream.getvalue()


def test_lines_for_people_begin_as_the_products_do() -> None:
    line = logged("console", SuspicionRaised(OTHER, "u-2", "silent for 4 s"))
    _, _, rest = line.partition("WARNING ")
    assert rest.startswith("[10.0.0.1]:5701 [dev] [")
    assert rest.endswith("] [10.0.0.2]:5701 - u-2 is suspected to be dead for reason: silent for 4 s\n")


def test_lists_stand_there_in_the_text_people_know() -> None:
    text = (
        "\n\nMembers {size:2, ver:3} [\n\tMember [10.0.0.1]:5701 - u-1 this\n\tMember [10.0.0.2]:5701 - u-2 lite\n]\n\n"
    )
    assert text in logged("console", LIST)
    assert "Members [2] {" in logged("console", LIST, legacy=True)


def test_a_line_for_programs_is_one_object_with_its_event() -> None:
    lines = logged("json", MasterChanged(OTHER, "it\nsays so"), LIST).splitlines()
    first, second = map(json.loads, lines)
    assert (
        first["level"] == "INFO"
        and first["member"] == ADDRESS
        and first["cluster"] == "dev"
        and first["ts"].endswith("Z")
    )
    assert first["event"] == {
        "kind": "master-changed",
        "master": OTHER,
        "reason": "it\nsays so",
        "cause": "unknown",
        "named_by": None,
    }
    assert second["message"].startswith("Members {size:2, ver:3} [")


def test_what_others_say_never_breaks_a_line() -> None:
    asked = OperatorAsked("stop\n2026-01-01 fake", "write", "1.2.3.4:5", False, "no\x1b[31m")
    assert logged("console", asked).count("\n") == 1


@pytest.mark.parametrize("form", ["console", "json"])
def test_what_the_rest_of_the_program_logs_steers_no_terminal(form: str) -> None:
    stream = io.StringIO()
    configure_logging(form, "INFO", ADDRESS, "dev", stream)  # type: ignore[arg-type]
    LOGGER.warning("it says %s", "\u202eno\x9b31m\r")
    assert stream.getvalue().rstrip("\n").isprintable() and "no" in stream.getvalue()


def test_the_level_can_change_while_it_runs() -> None:
    detail = ClaimAnswered(OTHER, "accepted", 3, "")
    assert logged("console", detail) == ""
    assert "accepted" in logged("console", detail, level="DEBUG")
    logging.getLogger(LEVEL_LOGGER).setLevel(logging.ERROR)
    assert not LOGGER.isEnabledFor(logging.WARNING)


def test_what_is_lost_is_loud_and_single_migrations_are_not() -> None:
    levels = {kind: ROWS[kind].level for kind in (PartitionLost, SuspicionRaised, MigrationStarted, ListInstalled)}
    assert list(levels.values()) == [logging.WARNING, logging.WARNING, logging.DEBUG, logging.INFO]


def test_exceptions_are_part_of_the_object() -> None:
    stream = io.StringIO()
    configure_logging("json", "INFO", ADDRESS, "dev", stream)
    try:
        raise ValueError("broken")
    except ValueError:
        LOGGER.exception("oh")
    assert "ValueError: broken" in json.loads(stream.getvalue())["exception"]
