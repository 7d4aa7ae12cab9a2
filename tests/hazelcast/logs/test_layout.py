"""Lines in every layout that members' logs were found in: when, who, and what is said."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quarterdeck.backend.hazelcast.logs.lines.envelope import strip_envelope
from quarterdeck.backend.hazelcast.logs.lines.layout import parse_head, second_half
from quarterdeck.backend.hazelcast.logs.lines.timestamps import LogTime, parse_time, to_utc, with_year, zone_named

SAID = "[10.77.0.4]:5701 [dev] [5.3.8] [10.77.0.4]:5701 is STARTED"
STARTED = "[10.77.0.4]:5701 is STARTED"


def us(*parts: int) -> int:
    return int(datetime(*parts, tzinfo=UTC).timestamp()) * 1_000_000


NOON = us(2026, 11, 21, 12, 15, 50)

LAYOUTS = [
    f"2026-11-21 12:15:50,000 [ INFO] [hz.focused_thompson.cached.thread-2] [c.h.c.LifecycleService]: {SAID}",
    f"2026-11-21 12:15:50.000  INFO 1 --- [cached.thread-2] com.hazelcast.core.LifecycleService      : {SAID}",
    f"2026-11-21 12:15:50,000 INFO  [com.hazelcast.core.LifecycleService] (main) {SAID}",
    f"2026-11-21T12:15:50.000Z INFO com.hazelcast.core.LifecycleService - {SAID}",
    f"2026-11-21T12:15:50.000+0000|INFO|LifecycleService|{SAID}",
    f"2026-11-21T14:15:50.000+02:00 [main] INFO  c.h.c.LifecycleService - {SAID}",
    f"[WARN ] 2026-11-21 12:15:50,000 [cached43.appservices.null] com.hazelcast.core.LifecycleService - {SAID}",
    f"INFO  2026-11-21 12:15:50,000 [main] com.hazelcast.core.LifecycleService - {SAID}",
    f"21-Nov-2026 12:15:50.000 INFO [main] com.hazelcast.core.LifecycleService.log {SAID}",
    f"21 Nov 2026 12:15:50,000 [main] INFO com.hazelcast.core.LifecycleService - {SAID}",
    f"2026/11/21 12:15:50 INFO LifecycleService: {SAID}",
    f"[2026-11-21 12:15:50,000] INFO {SAID} (com.hazelcast.core.LifecycleService)",
    f"[2026-11-21T12:15:50,000][INFO ][c.h.c.LifecycleService   ] {SAID}",
    f"[11/21/26 12:15:50:000 UTC] 00000043 LifecycleService I {SAID}",
    f"1795263350000 INFO [main] LifecycleService {SAID}",
    f"2026-11-21 12:15:50 {SAID}",
    f"21.11.2026 12:15:50 INFO com.hazelcast.core.LifecycleService {SAID}",
    f"\x1b[2m2026-11-21 12:15:50.000\x1b[0;39m \x1b[32m INFO\x1b[0;39m \x1b[35m1\x1b[0;39m --- [main] x : {SAID}\r\n",
    f"Nov 21, 2026 12:15:50 PM com.hazelcast.core.LifecycleService INFO: {SAID}",
    f"2026-11-21T12:15:50.123456789Z stdout F 2026-11-21 12:15:50,000 [ INFO] [main] [c.h.c.LifecycleService]: {SAID}",
    f'{{"log":"2026-11-21 12:15:50,000 [ INFO] [main] [c.h.c.LifecycleService]: {SAID}\\n","stream":"stdout",'
    '"time":"2026-11-21T12:15:50.3Z"}',
    f"Nov 21 12:15:51 host-1 hazelcast[4711]: 2026-11-21 12:15:50,000 [ INFO] [main] [c.h.c.LifecycleService]: {SAID}",
    f"<14>Nov 21 12:15:51 host-1 hazelcast[4711]: 2026-11-21 12:15:50,000 INFO LifecycleService - {SAID}",
    f"<14>1 2026-11-21T12:15:51.003Z host-1 hazelcast 4711 - - 2026-11-21 12:15:50,000 INFO LifecycleService - {SAID}",
    f'<14>1 2026-11-21T12:15:51Z h app 1 ID47 [x@1 a="b\\"]c"][y@2 d="e"] 2026-11-21 12:15:50,000 INFO x - {SAID}',
    f"2026-11-21T12:15:51.1+00:00 host-1 hazelcast[4711]: 2026-11-21 12:15:50,000 INFO LifecycleService - {SAID}",
    f"hazelcast-node3    | 2026-11-21 12:15:50,000 [ INFO] [main] [c.h.c.LifecycleService]: {SAID}",
    f"[pod/hz-0/hazelcast] 2026-11-21 12:15:50,000 [ INFO] [main] [c.h.c.LifecycleService]: {SAID}",
    f"2026-11-21T12:15:50.123456789Z 2026-11-21 12:15:50,000 [ INFO] [main] [c.h.c.LifecycleService]: {SAID}",
    f"INFO   | jvm 1    | 2026/11/21 12:15:51 | 2026-11-21 12:15:50,000 INFO c.h.c.LifecycleService - {SAID}",
    f'{{"@timestamp":"2026-11-21T12:15:50.000+00:00","message":"{SAID}","logger_name":'
    '"com.hazelcast.core.LifecycleService","level":"INFO"}',
    f'{{"instant":{{"epochSecond":1795263350,"nanoOfSecond":0}},"level":"INFO","loggerName":"com.hazelcast.x","message":"{SAID}"}}',
]  # fmt: skip


@pytest.mark.parametrize("line", LAYOUTS)
def test_every_layout_gives_time_member_and_message(line: str) -> None:
    carried = strip_envelope(line)
    head = parse_head(carried)
    assert head is not None and head.stamp is not None
    collected = carried.collected.us if carried.collected and carried.collected.zoned else None
    assert to_utc(head.stamp, None, collected) == NOON
    assert head.member == "10.77.0.4:5701"
    assert head.ours
    assert head.message.removesuffix(" (com.hazelcast.core.LifecycleService)") == STARTED


@pytest.mark.parametrize(
    "first",
    [
        "Nov 21, 2026 12:15:50 PM com.hazelcast.core.LifecycleService",
        "Nov 21, 2026, 12:15:50 PM com.hazelcast.core.LifecycleService log",
        "Nov 21, 2026 12:15:50\u202fPM com.hazelcast.core.LifecycleService",
        "nov. 21, 2026 12:15:50 EM com.hazelcast.core.LifecycleService",
        "11月 21, 2026 12:15:50 午後 com.hazelcast.core.LifecycleService",
    ],
)
@pytest.mark.parametrize("level", ["INFO", "WARNUNG", "SEVERE"])
def test_the_default_layout_is_two_lines_in_any_language(first: str, level: str) -> None:
    head = parse_head(strip_envelope(first))
    assert head is not None and head.awaits_level and head.stamp is not None
    assert head.stamp.us == NOON
    whole = second_half(head, f"{level}: {SAID}")
    assert (whole.member, whole.message, whole.logger) == ("10.77.0.4:5701", STARTED, "LifecycleService")


def test_midnight_and_noon_of_the_twelve_hour_clock() -> None:
    midnight, noon = (parse_time(f"Oct 1, 2026 12:00:01 {half} x") for half in ("AM", "PM"))
    assert midnight is not None and noon is not None
    assert (noon.us - midnight.us) == 12 * 3600 * 1_000_000


@pytest.mark.parametrize(
    ("prefix", "member"),
    [
        ("[fe80:0:0:0:42:acff:fe11:2%eth0]:5701 [dev] [4.2.1]", "[fe80:0:0:0:42:acff:fe11:2%eth0]:5701"),
        ("[fdfb:85ef:26f::1]:5701 [my cluster] [5.1-SNAPSHOT]", "[fdfb:85ef:26f::1]:5701"),
        ("[hz-0.hz.default.svc]:5701 [a.b/c] [3.12.13]", "hz-0.hz.default.svc:5701"),
        ("[127.0.0.1]:16185 [hz:impl] [6.0.0-SNAPSHOT]", "127.0.0.1:16185"),
        ("[LOCAL] [dev] [5.3.8]", None),
    ],
)
def test_the_products_prefix_names_the_member(prefix: str, member: str | None) -> None:
    head = parse_head(strip_envelope(f"2026-11-21 12:15:50 INFO x - {prefix} Using TCP/IP discovery"))
    assert head is not None and head.ours
    assert (head.member, head.message) == (member, "Using TCP/IP discovery")


@pytest.mark.parametrize(
    "line",
    [
        "Members {size:3, ver:3} [",
        "\tMember [10.77.0.1]:5701 - 31a1ee1a-d4cd-42be-8bca-27be5ff3b6c7 this",
        "]",
        "}",
        "",
        "\tat com.hazelcast.spi.impl.operationservice.impl.InvocationFuture.returnOrThrow(InvocationFuture.java:100)",
        "Caused by: java.io.IOException: Connection refused to address /10.77.0.5:5701",
        "java.util.concurrent.ExecutionException: com.hazelcast.core.MemberLeftException: Member [10.77.0.1]:5701 has left",
        "        Member [10.0.75.1]:5701 - 44439093-250f-4477-8df6-558ee6af7c87 this",
        "... 12 more",
    ],
)
def test_these_lines_go_on_with_the_message_before_them(line: str) -> None:
    assert parse_head(strip_envelope(line)) is None


def test_another_librarys_line_is_not_the_products() -> None:
    head = parse_head(
        strip_envelope(
            "2018-10-01 04:02:54.932  INFO 83594 --- [main] o.s.w.s.h.SimpleUrlHandlerMapping : Mapped [10.0.0.1]:80 [x]"
        )
    )
    assert head is not None and not head.ours and head.member is None


def test_a_zone_is_told_by_when_the_line_was_collected() -> None:
    local = parse_time("2026-11-21 14:15:50,000")
    assert local is not None
    assert to_utc(local, None, us(2026, 11, 21, 12, 15, 51)) == NOON
    assert to_utc(local, zone_named("Europe/Athens"), None) == NOON
    assert to_utc(local, zone_named("+02:00"), None) == NOON
    with pytest.raises(ValueError, match="Europe/Nowhere"):
        zone_named("Europe/Nowhere")


def test_a_time_without_a_year_is_of_the_last_year_that_fits() -> None:
    stamp = parse_time("Dec 31 23:59:59")
    assert stamp is not None and stamp.lacks == "year"
    assert with_year(stamp.us, us(2026, 1, 2, 0, 0, 0)) == us(2025, 12, 31, 23, 59, 59)
    leap = parse_time("Feb 29 10:00:00")
    assert leap is not None
    assert with_year(leap.us, us(2027, 1, 1, 0, 0, 0)) == us(2024, 2, 29, 10, 0, 0)


@given(st.text())
def test_no_text_breaks_the_layout(text: str) -> None:
    parse_head(strip_envelope(text))
    parse_head(strip_envelope("2026-11-21 12:15:50,000 " + text))
    parse_head(strip_envelope('{"log":' + text))
    parse_head(strip_envelope("<14>1 2026-11-21T12:15:51Z " + text))
    found = parse_time(text)
    assert found is None or isinstance(found, LogTime)


@given(
    st.from_regex(
        r"\A[\dA-Za-z월月.]{1,9}[ ./-][\d]{1,4}[ ,./-]+\d{1,4}[ T,]\d{1,3}:\d\d:\d\d([.,]\d{1,12})?( ?[AP]M|Z|[+-]\d{4})?"
    )
)
def test_impossible_times_are_no_times(text: str) -> None:
    parse_time(text)


DATES = [
    ("2026-11-21-12:15:50", NOON),
    ("2026-11-21 12.15.50,000", NOON),
    ("20261121 12:15:50.000", NOON),
    ("20261121T121550.000Z", NOON),
    ("21/Nov/2026:12:15:50 +0000", NOON),
    ("21Nov2026 12:15:50", NOON),
    ("21-Nov-26 12:15:50", NOON),
    ("2026-Nov-21 12:15:50", NOON),
    ("Sat Nov 21 12:15:50 UTC 2026", NOON),
    ("Sat Nov 21 12:15:50.000 2026", NOON),
    ("Sat, 21 Nov 2026 12:15:50 GMT", NOON),
    ("Saturday, November 21, 2026 12:15:50 PM", NOON),
    ("Nov 21, 2026 @ 12:15:50.000", NOON),
    ("11/21/26, 12:15:50 PM", NOON),
    ("2026-11-21 12:15:50 PM", NOON),
    ("2026-11-21 07:15:50 EST", NOON),
    ("2026-11-21 13:15:50,000 CET", NOON),
    ("2026-11-21 13:15:50 Europe/Berlin", NOON),
    ("2026-11-21T13:15:50.000+01:00[Europe/Berlin]", NOON),
    ("2026-11-21 14:15:50 UTC+02:00", NOON),
    ("1795263350000000000", NOON),
    ("26/11/21 12:15:50", NOON),
]


@pytest.mark.parametrize(("text", "expected"), DATES)
def test_dates_in_many_forms(text: str, expected: int) -> None:
    stamp = parse_time(text, 0, "year-first" if text[:3] == "26/" else "")
    assert stamp is not None
    assert to_utc(stamp, None, None) == expected
    assert stamp.end >= text.find("[") if "[" in text else stamp.end == len(text)


@pytest.mark.parametrize("zone", ["CST", "IST", "BST", "AST"])
def test_names_of_several_zones_are_kept(zone: str) -> None:
    stamp = parse_time(f"2026-11-21 12:15:50 {zone}")
    assert stamp is not None and not stamp.zoned and stamp.zone == zone


@pytest.mark.parametrize("text", ["11-21 12:15:50.000", "21.11. 12:15:50"])
def test_a_date_may_lack_its_year(text: str) -> None:
    stamp = parse_time(text)
    assert stamp is not None and stamp.lacks == "year"
    assert with_year(stamp.us, us(2026, 12, 1)) == NOON
