"""The network: its links as a drawing and a matrix, the faults in force, and a planned fault with what would come of it."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, get_args

from textual.containers import Horizontal
from textual.widget import Widget

from quarterdeck.app.console_interface import ConsoleInterface, choice_of
from quarterdeck.app.screen.columns import SortFilterModel
from quarterdeck.app.screen.view_screen import COLUMNS_BESIDE_PICTURES, ViewScreen, show_if
from quarterdeck.app.session import ConsoleSession
from quarterdeck.app.views.network.model import FaultModel, LinkModel, fault_facts, undo_text
from quarterdeck.backend.boards.network_board import (
    MOST_DRAWN,
    LinkWord,
    by_age,
    drawing,
    link_sentence,
    network_sentence,
    planned_links,
    zones_of,
)
from quarterdeck.backend.core.commands import BlockMode
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.link_condition import LinkChanged
from quarterdeck.backend.judgement.what_if.blast_radius import (
    MEANINGS,
    MOST_SIDES,
    PRESET_NAMES,
    FaultPlan,
    NoSuchFault,
    PresetName,
    custom_fault,
    preset,
)
from quarterdeck.backend.judgement.what_if.prediction import FaultPrediction, prediction_facts, with_present_table
from quarterdeck.backend.picture.network.faults import FaultLedger, undo_commands
from quarterdeck.backend.picture.text.fact import NOT_REPORTED, Fact
from quarterdeck.backend.picture.text.formatting import Refusal, one_line
from quarterdeck.widgets.fact_sheet import FactSheet
from quarterdeck.widgets.line_table import LineTable, TableCell
from quarterdeck.widgets.topology import Topology

if TYPE_CHECKING:
    from quarterdeck.backend.clusters.predictor import Predictor

Layout = Literal["both", "matrix", "drawing"]

LAYOUTS: tuple[Layout, ...] = get_args(Layout)


class NetworkScreen(ViewScreen):
    """The network. A plan is only simulated until it is built."""

    view = "network"
    detailed = True
    DEFAULT_CSS = """
    NetworkScreen #network-body { height: 1fr; min-height: 6; }
    NetworkScreen #topology { width: 1fr; height: 1fr; }
    NetworkScreen #links { width: 1fr; height: 1fr; scrollbar-size: 1 1; }
    NetworkScreen #plan { height: auto; max-height: 45%; min-height: 4; display: none; scrollbar-size: 1 1; }
    NetworkScreen #faults { height: auto; max-height: 8; min-height: 2; display: none; scrollbar-size: 0 1; }
    """
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (COLUMNS_BESIDE_PICTURES, "-wide")]

    def __init__(self, session: ConsoleSession, console: ConsoleInterface) -> None:
        super().__init__(session, console)
        self._ledger = FaultLedger()
        self._plan: FaultPlan | None = None
        self._preset: PresetName | None = None
        self._sides: dict[str, int] = {}
        self._mode: BlockMode = "blackhole"
        self._building = False
        self._layout: Layout | None = None
        """None: both while there are few members."""
        self._predictor: Predictor | None = None
        """Made for the first plan: until then nothing of the simulator is imported."""
        self._predicted_for: object = None
        self._shown_prediction: FaultPrediction | None = None
        self._counted: object = None
        self._sentence = ""
        self._words: tuple[LinkWord, ...] = ()
        self._links = LinkModel()
        self._fault_model = FaultModel()
        self.topology = Topology(id="topology")
        self.main = self.matrix = LineTable(SortFilterModel(self._links), id="links")
        self.plan_sheet = FactSheet(id="plan")
        self.faults = LineTable(SortFilterModel(self._fault_model), id="faults")

    def body(self) -> Iterable[Widget]:
        return self.title_line, Horizontal(self.topology, self.matrix, id="network-body"), self.plan_sheet, self.faults

    @property
    def focused_first(self) -> Widget:
        return self.matrix if self.matrix.display else self.faults

    def receive(self, records: Sequence[Record]) -> None:
        if self._epoch is None:
            return  # the ledger starts from the picture at the first paint
        for record in records:
            self._ledger.take(record)
            if self._building and isinstance(record.event, LinkChanged):
                self.do_fault_clear()

    def restart(self, records: Sequence[Record]) -> None:
        self._ledger = FaultLedger.of(self.session.picture, records, self.session.cluster.labels)

    def paint(self) -> None:
        session, picture, now_us = self.session, self.session.picture, self.session.now_us()
        self._count()
        faults = self._ledger.faults()
        self._show_title(len(faults))
        labels = session.labels
        self._lay_out(len(labels))
        if self.matrix.display:
            self._links.update(picture, labels, self._words, self._sides, self.matrix.size.width)
            self.matrix.show()
        self._draw()
        self._fault_model.update(faults, now_us)
        self.faults.show()
        show_if(self.faults, bool(faults))
        self._predict()

    def tick(self, *, news: bool) -> None:
        predictor = self._predictor
        news = news or (self.matrix.display and self.matrix.size.width != self._links.width)
        super().tick(news=news or (predictor is not None and predictor.prediction is not self._shown_prediction))

    def sentence(self) -> Sequence[TableCell]:
        if self.faults.has_focus:
            fault = self._fault_model.row(self.faults.cursor_key)
            if fault is not None:
                return [TableCell(f"{fault.text}: undone by {undo_text(fault)}", "faint")]
        member = self.matrix.cursor_key
        return [TableCell(link_sentence(self.session.picture, member), "faint")] if member is not None else ()

    def row_pointed(self) -> Hashable:
        return (self.faults.has_focus, self.faults.cursor_key if self.faults.has_focus else self.matrix.cursor_key)

    def row_facts(self) -> Sequence[Fact]:
        fault = self._fault_model.row(self.faults.cursor_key) if self.faults.has_focus else None
        return fault_facts(fault, self.session.now_us()) if fault is not None else super().row_facts()

    def on_descendant_focus(self) -> None:
        self._say_below()  # it is about the table that has the focus

    def on_line_table_selected(self) -> None:
        self._draw()

    # What is shown

    def _count(self) -> None:
        picture = self.session.picture
        running = sum(belief.status in ("joining", "member") for belief in picture.members.values())
        measured_us = sum(it.metrics_us for it in picture.members.values()) if picture.without("links") else 0
        moment = (self._ledger.revision, self._epoch, running, measured_us)
        if moment != self._counted:
            self._counted = moment
            self._sentence = network_sentence(picture, self._ledger)
            self._words = tuple(self._ledger.link_counts())

    def _show_title(self, faults: int) -> None:
        unknown = self.session.picture.without("links")
        calm = "no fault is in force" if unknown is None else f"faults are {NOT_REPORTED}"
        said = calm if not faults else f"{faults} fault{'s' if faults > 1 else ''} in force"
        planned = f"planned: {self._plan.title} ({self._mode})" if self._plan is not None else ""
        if self._sides and self._plan is None:
            planned = "one side is no partition: put other members on another side with u"
        self.title_line.show(
            TableCell("network", "strong"),
            TableCell(said, "bad" if faults else "good"),
            TableCell(planned, "warning"),
            TableCell(self._sentence, "faint"),
        )

    def _lay_out(self, members: int) -> None:
        layout = self._layout or ("both" if members <= MOST_DRAWN else "matrix")
        for widget, wanted in (
            (self.topology, layout != "matrix" and members <= MOST_DRAWN),
            (self.matrix, layout != "drawing" or members > MOST_DRAWN),
        ):
            show_if(widget, wanted)

    def _draw(self) -> None:
        if not self.topology.display:
            return
        plan = planned_links(self._plan.commands) if self._plan is not None else frozenset()
        labels = self.session.labels
        if len(labels) <= MOST_DRAWN:
            picture, selected = self.session.picture, self.matrix.selection
            self.topology.show(drawing(picture, labels, sides=self._sides, selected=selected, planned=plan))

    def _predict(self) -> None:
        """Simulate what the plan would do, again when the plan, or what it is applied to, has changed."""
        show_if(self.plan_sheet, self._plan is not None)
        if self._plan is None:
            self._predicted_for = None
            if self._predictor is not None:
                self._predictor.drop()
            return
        if self._predictor is None:
            from quarterdeck.backend.clusters.predictor import Predictor

            self._predictor = Predictor()
        session, picture = self.session, self.session.picture
        lists = [(master.label, master.version, master.lineage) for master in session.judge.masters]
        depends_on = (self._plan, self._ledger.revision, self._epoch, lists)
        if depends_on != self._predicted_for:
            self._predicted_for = depends_on
            self._predictor.ask(session.cluster, picture, self._plan.commands, live=session.live)
        self._show_prediction(self._predictor)

    def _show_prediction(self, predictor: Predictor) -> None:
        assert self._plan is not None
        meaning = MEANINGS[self._preset] if self._preset else "sides chosen by hand"
        facts = [Fact("planned", f"{self._plan.title}: {meaning}; b builds it, C drops it", "strong")]
        found = self._shown_prediction = predictor.prediction
        if found is not None:
            facts += prediction_facts(with_present_table(found, self.session.picture))
        elif predictor.problem:
            facts.append(Fact("predicted", f"nothing: {one_line(predictor.problem)}", "warning"))
        else:
            facts.append(Fact("predicted", "a copy of the members is being simulated …", "faint"))
        self.plan_sheet.show(tuple(facts))

    # Planning

    def do_fault_preset(self, text: str) -> None:
        """Plan the named preset; by key the next one, and after the last one none."""
        if not text and self._preset == PRESET_NAMES[-1]:
            self.do_fault_clear()
            return
        word, _, argument = text.partition(" ")
        name = choice_of(word, PRESET_NAMES, self._preset or PRESET_NAMES[-1], "preset")
        if name == "racks" and argument and not argument.isdecimal():
            raise Refusal(f"{argument!r} is not a number of racks; write racks 3")
        if argument and name not in ("isolate", "bridge", "racks"):
            raise Refusal(f"{name} stands alone; {argument!r} is too much")
        member, racks = ("", int(argument or 0)) if name == "racks" else (argument or self._pointed_at(), 0)
        picture = self.session.picture
        self._preset = name  # also if it cannot be made: the key goes on to the next one
        plan = preset(name, by_age(picture), member=member, racks=racks, zones=zones_of(picture), mode=self._mode)
        self._set_plan(plan, {label: place for place, side in enumerate(plan.sides, start=1) for label in side})

    def _pointed_at(self) -> str:
        member = self.matrix.cursor_key or ""
        belief = self.session.picture.members.get(member)
        return member if belief is not None and belief.running else ""

    def do_fault_side(self, _: str) -> None:
        members = self.targets()
        if not members:
            raise Refusal("no member is selected or under the cursor here")
        sides = dict(self._sides)
        side = (sides.get(members[0], 0) + 1) % (MOST_SIDES + 1)
        for member in members:
            if side:
                sides[member] = side
            else:
                sides.pop(member, None)
        self._preset = None
        self._set_plan(self._by_hand(sides), sides)

    def _by_hand(self, sides: Mapping[str, int]) -> FaultPlan | None:
        groups = [
            [label for label in self.session.cluster.labels if sides.get(label) == side]
            for side in range(1, max(sides.values(), default=0) + 1)
        ]
        try:
            return custom_fault(groups, self._mode)
        except NoSuchFault:
            return None  # the title says what is missing

    def _set_plan(self, plan: FaultPlan | None, sides: dict[str, int]) -> None:
        self._plan, self._sides, self._building = plan, sides, False
        self.repaint()

    def do_fault_clear(self, _: str = "") -> None:
        self._plan, self._preset, self._sides, self._building = None, None, {}, False
        if self.is_current:
            self.repaint()

    def do_fault_mode(self, text: str) -> None:
        self._mode = choice_of(text, get_args(BlockMode), self._mode, "way to cut")
        if self._plan is not None:
            self._plan = self._plan.cutting_by(self._mode)
        self.console.show_message(f"planned cuts: {self._mode}")
        self.repaint()

    # Doing

    def do_fault_build(self, _: str) -> None:
        if self._plan is None:
            raise Refusal("nothing is planned; n plans a fault, u puts members on sides")
        self._building = True
        self.console.request("fault-build", self._plan.commands)

    def do_fault_undo(self, text: str) -> None:
        chosen = self._fault_model.row(self.faults.cursor_key)
        self.console.request("fault-undo", undo_commands(self._ledger.faults(), text, chosen))

    def works(self, action_id: str) -> bool:
        match action_id:
            case "fault-build" | "fault-clear":
                return self._plan is not None
            case "fault-undo":
                return bool(self._fault_model.keys)
            case _:
                return super().works(action_id)

    def do_network_layout(self, text: str) -> None:
        layout = choice_of(text, LAYOUTS, self._layout or "both", "layout")
        if (members := len(self.session.cluster.labels)) > MOST_DRAWN:
            raise Refusal(f"{members} members are too many to draw; up to {MOST_DRAWN} are")
        self._layout = layout
        self.repaint()
        self.focus_body()
