"""The views, each described once: its name, keys, sentence, screen, and the actions that it alone knows.

Names, digits, help, palette, prompt and the tables of the docs derive from these rows. A screen is imported when it is opened
first: so the console is on the screen sooner, and the command line reads the words of the prompt without any screen.
"""

from __future__ import annotations

from functools import cached_property
from importlib import import_module
from typing import Any

from msgspec import Struct
from msgspec.structs import force_setattr, replace

from quarterdeck.app.actions.action import Action, CommandWord, ViewName, one_word
from quarterdeck.backend.boards.data_board import GROUPINGS
from quarterdeck.backend.judgement.what_if.blast_radius import PRESET_NAMES

LETTERS = "abcdef"
"""The letters that answer a question of a demo, one for each of its choices."""

LINK_FAULTS = frozenset({"partition", "cut"})


class View(Struct, frozen=True, dict=True):
    """One view of the console."""

    name: ViewName
    key: str
    """The key that opens it; empty for the view of a single member, which is opened by looking at that member."""
    meaning: str
    """One sentence for help and palette."""
    screen: str
    """Module below `app.views` and class of the screen, separated by a colon."""
    short: str = ""
    """Its name in the bar of views; a view without one is not in the bar."""
    title: str = ""
    """Its name in the palette; the name when it is empty."""
    cli: str = ""
    """The command line that shows the same, see `Action.cli`."""
    points_at_members: bool = False
    """Whether actions on members work here."""
    more_keys: tuple[str, ...] = ()
    hinted: bool = False
    """Whether the footer hints at its key."""
    group: str = ""
    """The heading of its own actions in help."""
    actions: tuple[Action, ...] = ()
    """What only this view can do; its screen has the handlers."""

    def __post_init__(self) -> None:
        group = self.group or self.name.replace("-", " ").capitalize()
        own = (replace(action, group=group, views=action.views or (self.name,)) for action in self.actions)
        force_setattr(self, "actions", tuple(own))

    @cached_property
    def opening(self) -> Action | None:
        """The action that opens the view, or None when it has no key."""
        if not self.key:
            return None
        title, keys = self.title or self.name.replace("-", " "), ",".join((self.key, *self.more_keys))
        return Action(self.name, title, self.meaning, keys, self.key, "Views", shown=self.hinted, cli=self.cli)

    def screen_class(self) -> Any:
        module, _, name = self.screen.partition(":")
        return getattr(import_module(f"quarterdeck.app.views.{module}"), name)


VIEWS: tuple[View, ...] = (
    View(
        "overview", "1", "Show the present state at one glance.", "overview.screen:OverviewScreen", short="over",
        cli="cluster status", points_at_members=True, group="View",
        actions=(
            Action("follow", "follow", "Follow the events, or pause them.", "f", shown=False),
            Action(
                "open-pane", "open", "Open the view that shows the focused pane in full.", "enter",
                words=one_word("open"),
            ),
            Action(
                "enlarge-pane", "enlarge", "Enlarge the focused pane to the whole screen; and back.", "plus",
                key_display="+", words=one_word("enlarge"),
            ),
        ),
    ),
    View(
        "beliefs", "W", "Show which members each member has on its list.", "beliefs:BeliefsScreen", short="list",
        cli="cluster status", points_at_members=True,
    ),
    View(
        "members", "2", "Show the members, one a row.", "members:MembersScreen", short="memb", cli="cluster status",
        points_at_members=True,
    ),
    View(
        "suspicions", "3", "Show who suspects whom, and what the master would decide.", "suspicions:SuspicionsScreen",
        short="susp", cli="cluster suspicions", points_at_members=True,
        actions=(
            Action(
                "suspicions-whole", "all or some", "Show all members, or only those that suspect or are suspected.",
                "z", words=one_word("everybody", "choice", "[on|off]", "on", "off"),
            ),
        ),
    ),
    View(
        "partitions", "4", "Show who holds which replica of which partition.", "partitions:PartitionsScreen",
        short="part", cli="cluster table", points_at_members=True,
        actions=(
            Action(
                "map-observer", "whose table", "Show the table of the next member; the first one is the master's.", "u",
                words=one_word(
                    "table-of", "optional member", "[MEMBER]", meaning="show this member's table; none: the next one's",
                ),
                cli="cluster table",
            ),
            Action(
                "map-zoom", "zoom",
                "Draw the map smaller: letters and marks, one letter or mark, two replicas in one line.", "z",
                words=one_word(
                    "zoom", "choice", "[ZOOM]", "wide", "letters", "halves",
                    meaning="draw the map like this; none: the next way",
                ),
            ),
            Action(
                "map-trouble", "next trouble", "Go to the next partition with something wrong.", "n", key_display="n N",
            ),
            Action(
                "map-trouble-before", "previous trouble", "Go to the previous partition with something wrong.", "N",
                shown=False, handler="map-trouble -",
            ),
            Action(
                "map-heat", "heat", "Show how busy each partition is, from 0 to 9, in place of the letters; and back.",
                "H", words=one_word("heat", "choice", "[on|off]", "on", "off"),
            ),
            Action(
                "map-partition", "partition", "Go to a partition.", "",
                words=one_word("show-partition", "text", "NUMBER"), shown=False,
            ),
        ),
    ),
    View(
        "migrations", "5", "Show what migrates: planned, running, done and failed.", "migrations:MigrationsScreen",
        short="migr", cli="cluster migrations", points_at_members=True, more_keys=("v",),
    ),
    View(
        "network", "6", "Show the links between the members, and cut them.", "network.screen:NetworkScreen",
        short="net", cli="cluster fault --help", points_at_members=True, group="Faults",
        actions=(
            Action(
                "fault-preset", "preset",
                "Plan the next of these faults: halves, isolate, bridge, ring of majorities, racks, none.", "n",
                words=one_word(
                    "preset", "choice", "[halves|isolate M|bridge M|ring|racks N]", *PRESET_NAMES,
                    meaning="plan a fault and show what would come of it",
                ),
            ),
            Action(
                "fault-side", "side",
                "Put the selected members, or the one under the cursor, on the next of four sides, or on none.", "u",
            ),
            Action(
                "fault-mode", "blackhole/reset",
                "Plan cuts that swallow messages, or cuts that break connections at once.", "r",
                words=one_word("cut-mode", "choice", "[blackhole|reset]", "blackhole", "reset"), shown=False,
            ),
            Action(
                "fault-build", "build", "Make the planned fault.", "b", words=one_word("build"), needs=LINK_FAULTS,
                needs_write=True,
            ),
            Action("fault-clear", "no plan", "Drop the planned fault.", "C", words=one_word("no-plan"), shown=False),
            Action(
                "network-layout", "drawing", "Show the drawing and the matrix, the matrix alone, or the drawing alone.",
                "z", words=one_word("layout", "choice", "[both|matrix|drawing]", "both", "matrix", "drawing"),
                shown=False,
            ),
        ),
    ),
    View(
        "join-lists", "7", "Show where members look for others, and why clusters do not merge.",
        "join_lists:JoinListsScreen", short="join", cli="cluster why", points_at_members=True,
        actions=(
            Action(
                "unblock", "unblock",
                "Remove what keeps the two clusters under the cursor apart, as far as that can be done.", "u",
                needs=frozenset({"heal-link", "resume", "set-join-list"}), destructive=True, needs_write=True,
            ),
            Action(
                "edit-list", "edit list",
                "Edit the join list of the cluster of the member under the cursor, one entry a line.", "e",
                words=one_word("edit-list", "optional member", "[MEMBER]"), needs=frozenset({"set-join-list"}),
                needs_write=True,
            ),
            Action(
                "edit-all-lists", "edit all", "Edit the join lists of all clusters at once, one entry a line.", "A",
                needs=frozenset({"set-join-list"}), needs_write=True,
            ),
        ),
    ),
    View(
        "events", "8", "Show what happened, and why.", "events.screen:EventsScreen", short="evts", cli="cluster watch",
        actions=(
            Action(
                "event-fields", "unfold",
                "Unfold the episode under the cursor; of an event, show everything that it says.", "enter,i",
            ),
            Action(
                "event-level", "level",
                "Show events by episodes, by decisions with a line a second for the rest, or each by itself.", "l",
                words=one_word("level", "choice", "[LEVEL]", "episode", "decision", "everything"),
            ),
            Action(
                "event-because", "because",
                "Show why the event under the cursor happened, or why the member under it is as it is: causes, link by link.",
                "b",
                words=tuple(
                    CommandWord(
                        word, "optional member", f"{word} [MEMBER]",
                        "show why a member is as it is, or why the event under the cursor happened",
                    )
                    for word in ("because", "why")
                ),
                views=("events", "overview"),
            ),
            Action(
                "event-story", "story",
                "Show the story of the migration, episode or member that the event belongs to; again: the next of them.",
                "u", words=one_word("story", "optional member", "[MEMBER]"),
            ),
            Action(
                "space-time", "space–time",
                "Draw the events as a space–time diagram, members side by side; and back to the lines.", "z",
            ),
            Action(
                "event-jump", "show in time", "Show the whole picture as it was at the event under the cursor.", "T",
            ),
            Action("event-follow", "follow", "Follow the events, or pause them.", "f"),
            Action("event-next", "next match", "Go to the next event that matches the filter.", "n", key_display="n N"),
            Action(
                "event-previous", "previous match", "Go to the previous event that matches the filter.", "N",
                shown=False, handler="event-next -",
            ),
            Action(
                "event-marking", "hide or mark", "Let the filter mark matches instead of hiding the rest; and back.",
                "H", words=one_word("mark", "text", "[TEXT]"), shown=False,
            ),
            Action(
                "event-zoom", "zoom", "Let a row of the space–time diagram take up more time, or less.", "plus",
                key_display="+ −",
                words=one_word(
                    "zoom-rows", "choice", "[TIME]", "event", "1ms", "10ms", "100ms", "1s", "10s",
                    meaning="how much time a row of the diagram takes up at most",
                ),
                shown=False,
            ),
            Action(
                "event-zoom-in", "zoom in", "Let a row of the space–time diagram take up less time.", "minus",
                key_display="−", shown=False, handler="event-zoom -",
            ),
        ),
    ),
    View(
        "time", "9", "Show the whole run, and go back in it.", "time:TimeScreen", short="time",
        actions=(
            Action(
                "time-slower", "slower", "Let time pass half as fast.", "left_curly_bracket", key_display="{ }",
                handler="time-speed slower",
            ),
            Action(
                "time-faster", "faster", "Let time pass twice as fast.", "right_curly_bracket", key_display="}",
                shown=False, handler="time-speed faster",
            ),
            Action("time-violation", "violation", "Go to the next violation of an invariant.", "n", key_display="n N"),
            Action(
                "time-violation-before", "previous violation", "Go to the previous violation.", "N", shown=False,
                handler="time-violation -",
            ),
            Action(
                "time-mark", "mark", "Go to the next mark: a split, a claim, a fault, a violation or a bookmark.", "m",
                key_display="m M",
            ),
            Action(
                "time-mark-before", "previous mark", "Go to the previous mark.", "M", shown=False,
                handler="time-mark -",
            ),
            Action("time-here", "to the event", "Go to the moment of the event under the cursor.", "enter,i"),
            Action(
                "time-zoom-in", "zoom", "Show half as much time in the strip.", "plus", key_display="+ −",
                handler="time-zoom +1",
            ),
            Action(
                "time-zoom-out", "zoom out", "Show twice as much time in the strip.", "minus", key_display="−",
                shown=False, handler="time-zoom -1",
            ),
            Action(
                "time-whole", "whole run", "Show the whole run in the strip.", "z", shown=False, handler="time-zoom",
            ),
        ),
    ),
    View(
        "audit", "0", "Show what the audit finds in this run.", "audit.screen:AuditScreen", short="audit",
        actions=(
            Action(
                "audit-run", "run the audit",
                "Check the journal of this run, in a process of its own; while it runs: stop it.", "r",
                words=one_word("audit-run", "text", "[PATH]"), cli="audit DIR",
            ),
            Action(
                "audit-jump", "show in time", "Show the whole picture as it was at the finding under the cursor.",
                "enter,T",
            ),
        ),
    ),
    View(
        "demos", "D", "Show the demos, and learn with one.", "demos:DemosScreen", short="demo", cli="demo ls",
        hinted=True,
        actions=(
            Action(
                "demo-go", "go on",
                "Start the demo under the cursor, live; in a demo, do the step, or go on from where it waits.", "enter",
                words=one_word(
                    "demo", "demo", "NAME [SEED]", meaning="learn with a demo, live; with a seed in simulated time",
                ),
            ),
            Action("demo-simulate", "simulated", "Start the demo under the cursor in simulated time.", "u"),
            *(
                Action(
                    f"demo-answer-{letter}", f"answer {letter}", f"Answer the question of a demo with choice {letter}.",
                    letter, shown=False, handler=f"demo-answer-letter {letter}",
                )
                for letter in LETTERS
            ),
            Action(
                "demo-answer", "answer", "Type the answer to the question of a demo; - leaves it out.", "equals_sign",
                key_display="=",
                words=one_word("answer", "text", "TEXT", meaning="answer the question of a demo; - leaves it out"),
                shown=False,
            ),
            Action("demo-free", "free play", "Play freely with the demo's cluster, and back to the step.", "P"),
            Action(
                "demo-restart", "restart", "Restart the demo on a new cluster.", "r", words=one_word("restart-demo"),
            ),
        ),
    ),
    View(
        "questions", "I", "Answer what operators ask first: one cluster, why not, who was removed, what is stuck.",
        "member:QuestionsScreen", cli="cluster why",
    ),
    View(
        "traffic", "V", "Show keys, bytes and operations a second, by member, by map or by partition.",
        "traffic:TrafficScreen", title="data", group="Data",
        actions=(
            Action(
                "traffic-by", "by what", "Show data by member, by map or by partition.", "z",
                words=one_word(
                    "traffic-by", "choice", "[member|map|partition]", *GROUPINGS,
                    meaning="show data by one of these; none: the next",
                ),
            ),
        ),
    ),
    View(
        "member", "", "", "member:MemberScreen", points_at_members=True, group="Members",
        actions=(
            Action("next-member", "other member", "Look at the next member.", "right", key_display="← →"),
            Action(
                "previous-member", "", "Look at the previous member.", "left", key_display="←", shown=False,
                handler="next-member -",
            ),
        ),
    ),
)  # fmt: skip
"""In the order of help and of the bar of views."""

VIEW_NAMES: tuple[ViewName, ...] = tuple(view.name for view in VIEWS)

VIEW_OF: dict[ViewName, View] = {view.name: view for view in VIEWS}
