"""The classes of the views, by name. Each is imported when it is opened first, so that the console is on the screen sooner."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

from quarterdeck.app.actions.action import ViewName
from quarterdeck.app.actions.allowed import Allowed
from quarterdeck.app.key_map import bindings_of
from quarterdeck.app.views.view_screen import ViewScreen

CLASSES: dict[ViewName, tuple[str, str]] = {
    "overview": ("quarterdeck.app.views.overview.screen", "OverviewScreen"),
    "beliefs": ("quarterdeck.app.views.beliefs.screen", "BeliefsScreen"),
    "members": ("quarterdeck.app.views.members.screen", "MembersScreen"),
    "suspicions": ("quarterdeck.app.views.suspicions.screen", "SuspicionsScreen"),
    "partitions": ("quarterdeck.app.views.partitions.screen", "PartitionsScreen"),
    "migrations": ("quarterdeck.app.views.migrations.screen", "MigrationsScreen"),
    "network": ("quarterdeck.app.views.network.screen", "NetworkScreen"),
    "join-lists": ("quarterdeck.app.views.join_lists.screen", "JoinListsScreen"),
    "events": ("quarterdeck.app.views.events.screen", "EventsScreen"),
    "time": ("quarterdeck.app.views.time.screen", "TimeScreen"),
    "audit": ("quarterdeck.app.views.audit.screen", "AuditScreen"),
    "demos": ("quarterdeck.app.views.demos.screen", "DemosScreen"),
    "questions": ("quarterdeck.app.views.questions.screen", "QuestionsScreen"),
    "traffic": ("quarterdeck.app.views.traffic.screen", "TrafficScreen"),
    "member": ("quarterdeck.app.views.member.screen", "MemberScreen"),
}


def view_class(view: ViewName, *, allowed: Allowed, configured_keys: Mapping[str, str]) -> type[ViewScreen]:
    """The class of a view with its keys bound: those of the registry, or those that the operator wants instead."""
    module, name = CLASSES[view]
    plain: type[ViewScreen] = getattr(import_module(module), name)
    bindings = [*plain.BINDINGS, *bindings_of(view, allowed=allowed, configured=configured_keys)]
    return type(name, (plain,), {"BINDINGS": bindings, "__module__": module})
