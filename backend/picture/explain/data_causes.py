"""Why clients did not get what they asked for, and why a backup was out of step: what no member knows by itself."""

from __future__ import annotations

from collections.abc import Mapping

from quarterdeck.backend.core.data import events as data_events
from quarterdeck.backend.core.membership import events
from quarterdeck.backend.core.partitions import events as partition_events
from quarterdeck.backend.picture.explain.event_index import Causes, Effect, Rule, event_of, local_cause
from quarterdeck.backend.picture.explain.suspicion_causes import causes_of_silence


def _call_finished(effect: Effect, event: data_events.CallFinished) -> Causes:
    yield from local_cause(effect.own(data_events.CallStarted, call=event.call), "a client asked for it")
    if event.problem:
        protection = effect.own(events.ProtectionChanged)
        if protection is not None and not event_of(events.ProtectionChanged, protection).operating:
            yield from local_cause(protection, "it sees too few members")
    if event.operation == "get" and not event.found and not event.problem:
        yield from _lost_write(effect, event)


def _lost_write(effect: Effect, event: data_events.CallFinished) -> Causes:
    """Yield what was written under the key, if that was not taken out again, and the loss of its partition."""
    done = ("put", "remove")
    written = effect.anywhere(
        data_events.CallFinished, lambda call: call.operation in done and not call.problem, map=event.map, key=event.key
    )
    lost = effect.anywhere(partition_events.PartitionLost, partition=event.partition)
    if written is not None and event_of(data_events.CallFinished, written).operation == "remove":
        yield from local_cause(written, "the key was taken out")
        return
    if lost is not None and (written is None or lost.at >= written.at):
        yield from local_cause(lost, f"p{event.partition} was lost with all that stood in it")
    yield from local_cause(written, "the key had been written", deeper=False)


def _out_of_step(effect: Effect, event: data_events.BackupOutOfStep) -> Causes:
    yield from causes_of_silence(effect, effect.name(event.owner), "", "unknown")
    partition = event.partition
    changed = effect.own(partition_events.TableChanged, lambda table: any(row[0] == partition for row in table.rows))
    yield from local_cause(changed, "the partition has other holders", deeper=False)


DATA_RULES: Mapping[type, Rule] = {data_events.CallFinished: _call_finished, data_events.BackupOutOfStep: _out_of_step}
"""By class of events, what finds the causes of one."""
