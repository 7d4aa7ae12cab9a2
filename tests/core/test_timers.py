from hypothesis import given
from hypothesis import strategies as st

from quarterdeck.backend.core.timers import NEVER, Timers

names = st.sampled_from("abc")


@given(st.lists(st.tuples(names, st.one_of(st.none(), st.integers(0, 9)))), st.integers(0, 9))
def test_timers_are_a_dictionary_of_deadlines_taken_in_order(steps: list[tuple[str, int | None]], now: int) -> None:
    timers, deadlines = Timers(), dict[str, int]()
    for name, at_us in steps:
        if at_us is None:
            timers.clear(name)
            deadlines.pop(name, None)
        else:
            timers.set(name, at_us)
            deadlines[name] = at_us
        assert timers.earliest == min(deadlines.values(), default=NEVER)
    taken = []
    while timers.earliest <= now:
        taken.append(deadlines.pop(timers.pop_earliest()))
    assert taken == sorted(taken)
    assert all(at_us > now for at_us in deadlines.values())
    assert timers.earliest == min(deadlines.values(), default=NEVER)
