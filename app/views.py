"""The classes of the views, by name. Each is imported when it is opened first, so that the console is on the screen sooner."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

from quarterdeck.app.actions.action import ViewName
from quarterdeck.app.key_map import bindings_of
from quarterdeck.app.live_screen import LiveScreen

CLASSES: dict[ViewName, tuple[str, str]] = {
    "beliefs": ("quarterdeck.app.screens.beliefs", "BeliefsScreen"),
    "members": ("quarterdeck.app.screens.members", "MembersScreen"),
    "suspicions": ("quarterdeck.app.screens.suspicions", "SuspicionsScreen"),
    "partitions": ("quarterdeck.app.screens.partitions", "PartitionsScreen"),
    "migrations": ("quarterdeck.app.screens.migrations", "MigrationsScreen"),
    "network": ("quarterdeck.app.screens.network", "NetworkScreen"),
    "join-lists": ("quarterdeck.app.screens.join_lists", "JoinListsScreen"),
    "events": ("quarterdeck.app.screens.events", "EventsScreen"),
    "time": ("quarterdeck.app.screens.time", "TimeScreen"),
    "audit": ("quarterdeck.app.screens.audit", "AuditScreen"),
    "demos": ("quarterdeck.app.screens.demos", "DemosScreen"),
    "member": ("quarterdeck.app.screens.member", "MemberScreen"),
}


def view_class(view: ViewName, *, writable: bool, wanted_keys: Mapping[str, str]) -> type[LiveScreen]:
    """The class of a view with its keys bound: those of the registry, or those that the operator wants instead."""
    module, name = CLASSES[view]
    plain: type[LiveScreen] = getattr(import_module(module), name)
    bindings = [*plain.BINDINGS, *bindings_of(view, writable=writable, wanted=wanted_keys)]
    return type(name, (plain,), {"BINDINGS": bindings, "__module__": module})
