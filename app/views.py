"""The classes of the views, by name. Each is imported when it is opened first, so that the console is on the screen sooner."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

from app.actions.action import ViewName
from app.key_map import bindings_of
from app.live_screen import LiveScreen

CLASSES: dict[ViewName, tuple[str, str]] = {
    "beliefs": ("app.screens.beliefs", "BeliefsScreen"),
    "members": ("app.screens.members", "MembersScreen"),
    "suspicions": ("app.screens.suspicions", "SuspicionsScreen"),
    "partitions": ("app.screens.partitions", "PartitionsScreen"),
    "migrations": ("app.screens.migrations", "MigrationsScreen"),
    "network": ("app.screens.network", "NetworkScreen"),
    "join-lists": ("app.screens.join_lists", "JoinListsScreen"),
    "events": ("app.screens.events", "EventsScreen"),
    "time": ("app.screens.time", "TimeScreen"),
    "audit": ("app.screens.audit", "AuditScreen"),
    "demos": ("app.screens.demos", "DemosScreen"),
    "member": ("app.screens.member", "MemberScreen"),
}


def view_class(view: ViewName, *, writable: bool, wanted_keys: Mapping[str, str]) -> type[LiveScreen]:
    """The class of a view with its keys bound: those of the registry, or those that the operator wants instead."""
    module, name = CLASSES[view]
    plain: type[LiveScreen] = getattr(import_module(module), name)
    bindings = [*plain.BINDINGS, *bindings_of(view, writable=writable, wanted=wanted_keys)]
    return type(name, (plain,), {"BINDINGS": bindings, "__module__": module})
