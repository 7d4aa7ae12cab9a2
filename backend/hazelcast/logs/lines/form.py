"""The form of a log file: how its lines are dressed and laid out, as far as its first lines show it (see `form_detection`).

A layout that the generic reading of `layout` does not understand alone is one row of `LAYOUTS`. To add one, write its name, two
example lines, and the expressions for what is special; ``docs/contributors/log-layouts.md`` and a test read the examples.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

DayOrder = Literal["", "day-first", "month-first", "year-first"]


@dataclass(frozen=True)
class LogLayout:
    """A layout of messages."""

    name: str
    examples: tuple[str, str]
    """Two messages, as 10.77.0.4:5701 of version 5.3.8 logs them at 2026-11-21 12:15:50 UTC."""
    begins: str = ""
    """An expression that fits its first lines and no others, where `lead` or `behind` is to hold for these only."""
    lead: str = ""
    """What stands in a first line before its time."""
    behind: str = ""
    """What the layout writes behind a message; the first group, if there is one, is the logger."""


_SAID = "[10.77.0.4]:5701 [dev] [5.3.8] [10.77.0.4]:5701 is STARTED"
_ASKED = "[10.77.0.4]:5701 [dev] [5.3.8] Removing Member [10.77.0.5]:5701 - 31a1ee1a-d4cd-42be-8bca-27be5ff3b6c7"
_ODL = (
    "[2026-11-21T12:15:50.000+0000] [Payara 5.201] [INFO] [] [com.hazelcast.core.LifecycleService] "
    "[tid: _ThreadID=30 _ThreadName=hz.a.cached.thread-2] [timeMillis: 1795263350000] [levelValue: 800] [[\n  {}]]"
)
_UNIFORM = "[#|2026-11-21T12:15:50.000+0000|INFO|Payara 4.1|com.hazelcast.core.LifecycleService|_ThreadID=30;|\n  {}|#]"
_WEBLOGIC = (
    "####<Nov 21, 2026 12:15:50,000 PM UTC> <Info> <com.hazelcast.core.LifecycleService> <host> <AdminServer> "
    "<hz.a.cached.thread-2> <<WLS Kernel>> <> <> <1795263350000> <BEA-000000> <{}>"
)
_CARBON = (
    "TID: [-1234] [] [2026-11-21 12:15:50,000]  INFO {{com.hazelcast.core.LifecycleService}} -  {} "
    "{{com.hazelcast.core.LifecycleService}}"
)


def _twice(line: str) -> tuple[str, str]:
    return line.format(_SAID), line.format(_ASKED)


LAYOUTS = (
    LogLayout(
        "GlassFish and Payara, ODL",
        _twice(_ODL),
        begins=r"\[[^\]]+\] \[[^\]]*\] \[\w*\] \[[^\]]*\] \[[^\]]*\] \[tid:",
        behind=r"\]\]\s*$",
    ),
    LogLayout("GlassFish and Payara, uniform", _twice(_UNIFORM), begins=r"\[#\|", behind=r"\|#\]\s*$"),
    LogLayout("WebLogic", _twice(_WEBLOGIC), begins="####<", behind=r"> *$"),
    LogLayout(
        "WSO2 Carbon",
        _twice(_CARBON),
        begins="TID:",
        lead=r"TID:(?: \[[^\]]*\])*? \[(?=\d)",
        behind=r"\s*\{([\w.$]+)\}\s*$",
    ),
    LogLayout(
        "logger behind, in brackets",
        _twice("2026-11-21 12:15:50:000 INFO  {} [LifecycleService]"),
        behind=r"\s*\[([A-Z]\w*)\]\s*$",
    ),
    LogLayout(
        "logger behind, in braces",
        _twice("2026-11-21 12:15:50,000 INFO  {} {{com.hazelcast.core.LifecycleService}}"),
        behind=r"\s*\{((?:[a-z]\w*\.)+\w+|[A-Z]\w*)\}\s*$",
    ),
    LogLayout(
        "logger behind, in parentheses",
        _twice("[2026-11-21 12:15:50,000] INFO {} (com.hazelcast.core.LifecycleService)"),
        behind=r"\s*\(((?:[a-z]\w*\.)+\w+)\)\s*$",
    ),
    LogLayout(
        "logger and thread behind bars",
        _twice("2026-11-21 12:15:50,000 | INFO | {} | com.hazelcast.core.LifecycleService | hz.a.cached.thread-2"),
        behind=r"\s*\| ((?:[a-z]\w*\.)+\w+|[A-Z]\w*)(?: \| [\w.-]+)?\s*$",
    ),
    LogLayout(
        "log4j2 of the product",
        _twice("2026-11-21 12:15:50,000 [ INFO] [hz.a.cached.thread-2] [c.h.c.LifecycleService]: {}"),
    ),
    LogLayout(
        "Spring Boot",
        _twice("2026-11-21 12:15:50.000  INFO 1 --- [cached.thread-2] com.hazelcast.core.LifecycleService  : {}"),
    ),
    LogLayout(
        "JBoss", _twice("2026-11-21 12:15:50,000 INFO  [com.hazelcast.core.LifecycleService] (hz.a.cached.thread-2) {}")
    ),
    LogLayout("JDK", _twice("Nov 21, 2026 12:15:50 PM com.hazelcast.core.LifecycleService\nINFO: {}")),
    LogLayout("WebSphere", _twice("[11/21/26 12:15:50:000 UTC] 00000043 LifecycleService I {}")),
    LogLayout("Tomcat", _twice("21-Nov-2026 12:15:50.000 INFO [main] com.hazelcast.core.LifecycleService.log {}")),
)
"""The layouts that are known, each by a row. Those without expressions are examples of what the rules of `layout` read."""


@dataclass(frozen=True, slots=True)
class FileForm:
    """How one file is written."""

    dressing: re.Pattern[str] | None = None
    """What a copy or a collector put before every line; the first group, if there is one, names where the line comes from."""
    lead: re.Pattern[str] | None = None
    """What stands in first lines before their time."""
    behind: re.Pattern[str] | None = None
    has_bare_colours: bool = False
    """Colours have lost their escape character, or write it in another way."""
    is_stamped: bool = False
    """Every line has a time before it, as kubectl writes it, beside that of the message."""
    carries_lines: bool = False
    """Each JSON object carries one line that a process has printed, rather than a message."""
    day_order: DayOrder = ""
    ambiguous_zone: str = ""
    """The name of several zones, which its times have."""
    is_falling: bool = False
    """The newest message stands first."""
    is_turned: bool = False
    """So does the newest line: each is carried by itself."""
    columns: int = 0
    """Lines are cut at this column; 0 where they are not."""
    is_read_whole: bool = False
    """Nothing may be passed over: its times have no date, or its JSON objects go over several lines."""
    notes: tuple[str, ...] = ()
    """What was concluded of the file and is to be said."""


PLAIN = FileForm()
