"""What each action and each word of the prompt comes to. A new one is written down here, but for commands to one member."""

from __future__ import annotations

from collections.abc import Callable

from textual.screen import ModalScreen

from quarterdeck.app.actions.action import ViewName
from quarterdeck.app.actions.registry import ACTIONS, TYPED_ACTIONS
from quarterdeck.app.actions.views import VIEW_NAMES
from quarterdeck.app.export import CommandLinesScreen
from quarterdeck.app.help_screen import HelpScreen
from quarterdeck.app.views.events.screen import EventsScreen
from quarterdeck.app.views.join_lists import JoinListEditor
from quarterdeck.app.views.network.screen import NetworkScreen
from quarterdeck.app.views.partitions import PartitionsScreen
from quarterdeck.app.views.suspicions import SuspicionsScreen
from quarterdeck.backend.commands.catalogue import CATALOGUE
from quarterdeck.backend.core import commands as core
from quarterdeck.backend.core.commands import Command
from tests.app.fakes.console_driver import ConsoleDriver
from tests.app.fakes.screen_text import screen_text

Outcome = Callable[[ConsoleDriver], bool]


def asks(*kinds: type[Command]) -> Outcome:
    """The cluster is asked for these, perhaps after a question."""

    def outcome(driver: ConsoleDriver) -> bool:
        return {type(command) for command in driver.cluster.commands} == set(kinds)

    return outcome


def says(text: str) -> Outcome:
    return lambda driver: text in driver.said


def types(line: str) -> Outcome:
    return lambda driver: driver.typed.startswith(line)


def opens(view: ViewName) -> Outcome:
    return lambda driver: driver.app.top.view == view


def covers(kind: type[ModalScreen]) -> Outcome:  # type: ignore[type-arg]
    return lambda driver: isinstance(driver.app.screen, kind)


def either(*outcomes: Outcome) -> Outcome:
    return lambda driver: any(outcome(driver) for outcome in outcomes)


def network(check: Callable[[NetworkScreen], bool]) -> Outcome:
    return lambda driver: isinstance(driver.app.top, NetworkScreen) and check(driver.app.top)


def events(check: Callable[[EventsScreen], bool]) -> Outcome:
    return lambda driver: isinstance(driver.app.top, EventsScreen) and check(driver.app.top)


NO_LESSON = either(says("no demo runs here"), says("nothing is asked here"), says("answers nothing here"))
IN_THE_PAST: Outcome = lambda driver: not driver.app.session.live  # noqa: E731
STILL: Outcome = lambda driver: driver.app.session.live  # noqa: E731
NO_TABLE = says("there is no table")
SORTED = either(says("sorted by "), says("in the original order"), NO_TABLE)

OUTCOMES: dict[str, Outcome] = {
    **{
        action.id: either(types(f":{action.id} byzantium "), types(f":{action.id} "), says("cannot be done by"))
        for action in TYPED_ACTIONS
    },
    "start": asks(core.StartMember),
    "stop": asks(core.StopMember),
    "kill": asks(core.KillMember),
    "stop-all": asks(core.StopMember),
    "owner": types(":owner "),
    "pause": asks(core.PauseMember),
    "may-stop": either(says("may be stopped"), says("may not be stopped")),
    "detail": either(opens("member"), opens("overview")),
    "next-member": lambda driver: driver.app.top.targets() == ("cyrene",),
    "previous-member": lambda driver: driver.app.top.targets() == ("byzantium",),  # which is the oldest
    "cut": asks(core.Partition),
    "link": says("a link has two ends"),
    "worsen": types(":lose "),
    "heal": asks(core.Heal),
    "suspicions-whole": lambda driver: (
        isinstance(driver.app.top, SuspicionsScreen) and driver.app.top._all_members is False
    ),
    "fault-preset": network(lambda view: view._preset == "halves"),
    "fault-side": network(lambda view: "byzantium" in view._sides),
    "fault-mode": network(lambda view: view._mode == "reset"),
    "fault-build": either(says("nothing is planned"), asks(core.Partition)),
    "fault-clear": network(lambda view: view._plan is None),
    "fault-undo": asks(core.StartMember),
    "network-layout": network(lambda view: view._layout == "matrix"),
    "join-list": either(types(":join-list byzantium "), types(":join-list cyrene ")),  # as the cursor stands
    "state": either(types(":state byzantium "), types(":state cyrene ")),
    "search": either(asks(core.SearchClusters), says("cyrene is no master")),
    "operate": asks(core.Operate),
    "arrange": asks(core.ArrangePartitions),
    "data": types(":put "),
    "unblock": asks(core.HealLink),
    "edit-list": covers(JoinListEditor),
    "edit-all-lists": covers(JoinListEditor),
    "map-observer": lambda driver: (
        isinstance(driver.app.top, PartitionsScreen) and driver.app.top._observer == "athens"
    ),
    "map-zoom": lambda driver: isinstance(driver.app.top, PartitionsScreen) and driver.app.top.map.zoom != "wide",
    "map-trouble": lambda driver: (
        isinstance(driver.app.top, PartitionsScreen) and driver.app.top.map.partition is not None
    ),
    "map-trouble-before": opens("partitions"),
    "map-heat": lambda driver: isinstance(driver.app.top, PartitionsScreen) and driver.app.top._shows_heat,
    "traffic": opens("traffic"),
    "load": types(":load "),
    "traffic-by": lambda driver: "data by map" in screen_text(driver.app),
    "map-partition": says("there is no partition ''"),
    "time-back": IN_THE_PAST,
    "time-on": says("there is no later event yet"),
    "time-second-back": IN_THE_PAST,
    "time-second-on": STILL,
    "time-pause": IN_THE_PAST,
    "time-live": STILL,
    "time-at": types(":at "),
    "time-bookmark": says("bookmark "),
    "time-speed": types(":speed "),
    "time-slower": says("speed "),
    "time-faster": says("speed "),
    "time-violation": says("invariants are not watched here"),
    "time-violation-before": says("invariants are not watched here"),
    "time-mark": says("there is no mark after this"),
    "time-mark-before": IN_THE_PAST,
    "time-here": IN_THE_PAST,
    "time-zoom-in": lambda driver: "1/2 of the run in sight" in screen_text(driver.app),
    "time-zoom-out": lambda driver: "the whole run in sight" in screen_text(driver.app),
    "time-whole": lambda driver: "the whole run in sight" in screen_text(driver.app),
    "time-fork": says("fork cannot be done by this cluster"),
    "event-fields": events(lambda view: view.pane.content is view.pane.story),
    "event-level": events(lambda view: view._feed.level == "decision"),
    "event-because": events(lambda view: view.pane.display),
    "event-story": events(lambda view: view.pane.content is view.pane.story),
    "space-time": events(lambda view: bool(view.diagram.display)),
    "event-jump": either(opens("time")),
    "event-follow": events(lambda view: not view._following),
    "event-next": says("type what to look for"),
    "event-previous": says("type what to look for"),
    "event-marking": says("the filter marks what matches"),
    "clock": says("times are UTC"),
    "event-zoom": events(lambda view: view._zoom_us > 0),
    "event-zoom-in": events(lambda view: view._zoom_us == 0),
    "audit-run": says("no journal of this run is known here"),
    "audit-jump": says("there is no finding to go to"),
    "demo-go": lambda driver: len(driver.app._tabs) == 2,
    "demo-simulate": lambda driver: len(driver.app._tabs) == 2,
    **{f"demo-answer-{letter}": NO_LESSON for letter in "abcdef"},
    "demo-answer": NO_LESSON,
    "demo-free": NO_LESSON,
    "demo-restart": NO_LESSON,
    **{view: opens(view) for view in VIEW_NAMES if view != "member"},
    "open-pane": opens("beliefs"),
    "enlarge-pane": lambda driver: driver.app.home._enlarged == "lists",
    "follow": lambda driver: not driver.app.home.happened.tail.following,
    "filter": types("/"),
    "sort": SORTED,
    "reverse": lambda driver: driver.app.top.sort_filter is None or driver.app.top.sort_filter.table_settings.reverse,
    "columns": either(types(":hide "), NO_TABLE),
    "copy": either(says("copied"), says("nothing under the cursor")),
    "copy-json": either(says("copied"), says("nothing under the cursor")),
    "export": types(":export "),
    "screenshot": says("written to "),
    "prompt": types(":"),
    "help": covers(HelpScreen),
    "cli": covers(CommandLinesScreen),
    "cluster": STILL,
    "theme": types(":theme "),
    "suspend": STILL,  # a console without a terminal has nothing to give back
    "back": either(opens("overview"), events(lambda view: not view.pane.display)),
    "quit": says("the console would end here"),
}

LINES: dict[str, tuple[str, Outcome]] = {
    **{action.id: (action.id, OUTCOMES[action.id]) for action in ACTIONS if action.words[0].word == action.id},
    **{
        row.word: (f"{row.word} fez", either(asks(row.command), says("cannot be done by this cluster")))
        for row in CATALOGUE
        if row.meaning and [argument.kind for argument in row.arguments] == ["member"]
    },
    "start": ("start athens", asks(core.StartMember)),
    # Words before have paused the events, zoomed out, and gone from member to member.
    "event-follow": ("event-follow", events(lambda view: view._following)),
    "event-zoom-in": ("event-zoom-in", says("a row is at most ")),
    **{word: (word, opens("member")) for word in ("next-member", "previous-member")},
    "suspect": ("suspect byzantium fez", asks(core.SuspectMember)),
    "set": ("set byzantium hazelcast.heartbeat.interval.seconds=2", asks(core.SetProperties)),
    "kill-at": ("kill-at fez list-installed after", asks(core.KillAt)),
    "stop-all": ("stop-all", asks(core.StopMember)),
    "owner": ("owner map key", either(says(" owns partition "), says("no master reports a table"))),
    "resume": ("resume euphesus", asks(core.ResumeMember)),
    "may-stop": ("may-stop fez", either(says("fez may be stopped"), says("fez may not be stopped"))),
    "look": ("look fez", opens("member")),
    "partition": ("partition athens,fez|cyrene", asks(core.Partition)),
    "cut": ("cut athens fez one-way", asks(core.CutLink)),
    "lose": ("lose athens fez 0.3", asks(core.LoseOnLink)),
    "delay": ("delay athens fez 250ms", asks(core.DelayLink)),
    "duplicate": ("duplicate athens fez 0.3", asks(core.DuplicateOnLink)),
    "drop-messages": ("drop-messages athens fez heartbeat", asks(core.DropMessages)),
    "heal": ("heal athens fez", asks(core.HealLink)),
    "everybody": ("everybody off", opens("suspicions")),
    "preset": ("preset racks 2", opens("network")),
    "cut-mode": ("cut-mode reset", says("planned cuts: reset")),
    "build": ("build", either(says("nothing is planned"), asks(core.Partition))),
    "no-plan": ("no-plan", opens("network")),
    "undo": ("undo 1", lambda driver: len(driver.cluster.commands) > 0),
    "layout": ("layout drawing", opens("network")),
    "join-list": ("join-list fez athens,10.1.2.3:5701", asks(core.SetJoinList)),
    "state": ("state fez FROZEN", asks(core.ChangeState)),
    "expect": ("expect 4 fez", asks(core.ExpectMembers)),
    "promote": ("promote fez", asks(core.PromoteMember)),
    "demote": ("demote fez", asks(core.DemoteMember)),
    "diagnose": ("diagnose fez 10m", asks(core.Diagnose)),
    "search": ("search byzantium", asks(core.SearchClusters)),
    "put": ("put map key value fez", asks(core.CallMap)),
    "get": ("get map key fez", asks(core.CallMap)),
    "remove": ("remove map key fez", asks(core.CallMap)),
    "unblock": ("unblock", asks(core.HealLink)),
    "edit-list": ("edit-list byzantium", covers(JoinListEditor)),
    "edit-all-lists": ("edit-all-lists", covers(JoinListEditor)),
    "table-of": ("table-of fez", opens("partitions")),
    "heat": ("heat on", opens("partitions")),
    "load": ("load off", says("no load was begun here, or it is over")),
    "traffic": ("traffic", opens("traffic")),
    "traffic-by": ("traffic-by map", opens("traffic")),
    "zoom": ("zoom halves", opens("partitions")),
    "show-partition": ("show-partition 7", opens("partitions")),
    "live": ("live", STILL),
    "at": ("at 12.5", IN_THE_PAST),
    "bookmark": ("bookmark here", says("bookmark here is at ")),
    "speed": ("speed 4", says("speed 4")),
    "fork": ("fork kill fez", says("fork cannot be done by this cluster")),
    "because": ("because", opens("events")),
    "why": ("why byzantium", opens("events")),
    "story": ("story fez", opens("events")),
    "space-time": ("space-time", opens("events")),
    "mark": ("mark suspects", opens("events")),
    "level": ("level everything", opens("events")),
    "zoom-rows": ("zoom-rows 10ms", opens("events")),
    "audit-run": ("audit-run", says("no journal of this run is known here")),
    "demo": ("demo nobody-knows-it", either(says("nobody-knows-it"))),
    "answer": ("answer anything", NO_LESSON),
    "restart-demo": ("restart-demo", NO_LESSON),
    **{view: (view, opens(view)) for view in VIEW_NAMES if view != "member"},
    "open": ("open", opens("beliefs")),
    "enlarge": ("enlarge", lambda driver: driver.app.home._enlarged is not None),
    "filter": ("filter byz", lambda driver: driver.app.top.filter_text in ("byz", "")),
    "sort": ("sort member", either(SORTED, says("there is no column"))),
    "hide": ("hide nothing-such", either(NO_TABLE, says("there is no column"))),
    "show": ("show", either(NO_TABLE, lambda driver: not driver.said)),
    "save": ("save", either(NO_TABLE, says("opens like this from now on"))),
    "reset": ("reset", either(NO_TABLE, says("are reset"))),
    "export": ("export x.doc", says("not a format of tables")),
    "screenshot": ("screenshot x.doc", says("not a format of screens")),
    "help": ("help", covers(HelpScreen)),
    "cli": ("cli", covers(CommandLinesScreen)),
    "cluster": ("cluster nowhere", says("there is no cluster 'nowhere'")),
    "close": ("close", says("the console was opened on this cluster")),
    "theme": ("theme plaid", says("plaid")),
    "q": ("q", says("the console would end here")),
    "quit": ("quit", OUTCOMES["quit"]),
}
