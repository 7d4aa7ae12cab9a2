"""Whether a cluster that is left alone becomes one again, for many states at little cost.

From a state on, what happens in calm is always the same, so it is computed once, a stretch of time after the other: states
that lead to one another share what follows. A cluster that does not become one quickly, with nothing owed, is left to
`schedule.repeated`.
"""

from __future__ import annotations

from collections.abc import Callable

from quarterdeck.backend.core.commands import CallMap
from quarterdeck.backend.core.operations import Get, Put
from quarterdeck.backend.invariants.convergence import convergence_bound_us
from quarterdeck.backend.simulation.model_checking.histories import Histories
from quarterdeck.backend.simulation.model_checking.incarnations import FrozenIncarnations, KnownRecords
from quarterdeck.backend.simulation.model_checking.model import DOWN, Spent, State
from quarterdeck.backend.simulation.model_checking.transitions import Transitions, recorded

QUIET_TIMEOUTS = 3
"""The number of heartbeat timeouts without a relevant record after which a cluster counts as settled."""

MOST_STRETCHES = 200_000
"""The number of remembered stretches."""

Stretch = tuple[State, tuple[int, ...]]
"""The end of a stretch of calm, and the records in it."""


class Calm:
    """Leaves the states of one model alone."""

    def __init__(
        self, transitions: Transitions, incarnations: FrozenIncarnations, records: KnownRecords, histories: Histories
    ) -> None:
        self._transitions, self._incarnations = transitions, incarnations
        self._records, self._histories = records, histories
        settings, members = transitions.settings, len(transitions.model.labels)
        self._stretch_us = settings.heartbeat_interval_us
        self._quiet_us = QUIET_TIMEOUTS * settings.max_no_heartbeat_us
        self._bound_us = convergence_bound_us(settings, members)
        self._stretches: dict[State, Stretch] = {}
        self._is_sound: dict[int, bool] = {}
        """Of every history that ended in a cluster at rest."""
        self._reads = reads_of_everything(transitions)

    def settles(self, state: State, history: int) -> bool:
        """Whether the members become one cluster, whatever was written can be read, and nothing is owed.

        False means that it was not seen here, and has to be looked at more closely.
        """
        state, happened = self._left_alone(state)
        until_us, quiet_since_us = state.now_us + 2 * self._bound_us, state.now_us
        while state.now_us - quiet_since_us < self._quiet_us or not self._is_one_cluster(state):
            if state.now_us >= until_us:
                return False
            state, more = self._stretch(state)
            happened += more
            if any(map(self._records.is_relevant, more)):
                quiet_since_us = state.now_us
        for place, member in enumerate(state.members):
            if member != DOWN:
                state, more = self._read_everything(state, place)
                happened += more
                break
        return self._concluded(self._histories.after(history, happened), state.now_us)

    def _left_alone(self, state: State) -> Stretch:
        def leave_alone() -> State:
            healed = self._transitions.healed(state)
            return healed._replace(spent=Spent(commands=healed.spent.commands))

        return self._numbered(leave_alone)

    def _stretch(self, state: State) -> Stretch:
        known = self._stretches.get(state)
        if known is None:
            until_us = (state.now_us // self._stretch_us + 1) * self._stretch_us
            known = self._numbered(lambda: self._transitions.calm(state, until_us))
            if len(self._stretches) >= MOST_STRETCHES:
                self._stretches.clear()
            self._stretches[state] = known
        return known

    def _read_everything(self, state: State, place: int) -> Stretch:
        if not self._reads:
            return state, ()
        key = state._replace(starts=(place,))  # they say nothing here: no member is started any more
        known = self._stretches.get(key)
        if known is None:
            known = self._numbered(lambda: self._transitions.read(state, place, self._reads))
            self._stretches[key] = known
        return known

    def _numbered(self, run: Callable[[], State]) -> Stretch:
        records, state = recorded(self._transitions, run)
        return state, tuple(map(self._records.number, records))

    def _is_one_cluster(self, state: State) -> bool:
        configurations = self._transitions.configurations
        running = [place for place, member in enumerate(state.members) if member != DOWN]
        followed = {self._incarnations.known[state.members[place]].members for place in running}
        if len(followed) != 1 or (members := followed.pop()) is None:
            return not running
        return set(members.addresses) == {configurations[place].address for place in running}

    def _concluded(self, history: int, now_us: int) -> bool:
        is_sound = self._is_sound.get(history)
        if is_sound is None:
            conclusion = self._histories.shown(history).conclude(now_us, self._bound_us)
            is_sound = self._is_sound[history] = conclusion.verdict == "ok"
        return is_sound


def reads_of_everything(transitions: Transitions) -> tuple[Get, ...]:
    """Return the operations that read every key that a command of the model writes."""
    calls = [command.operation for command in transitions.sequence if isinstance(command, CallMap)]
    return tuple(Get(*key) for key in dict.fromkeys((call.map, call.key) for call in calls if isinstance(call, Put)))
