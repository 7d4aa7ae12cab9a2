"""Every event as one line of plain English, for the event tail and for the command line."""

from __future__ import annotations

from quarterdeck.backend.core import events
from quarterdeck.backend.core.data.events import DataEvent
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.links import conditions_by_kind
from quarterdeck.backend.core.membership.split_brain.merge_decision import MergeDirection
from quarterdeck.backend.core.partitions.events import PartitionEvent
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.core.witnessed.events import WitnessEvent
from quarterdeck.backend.picture.text.formatting import NameOf, counted, duration_text, names_text, one_line, with_names
from quarterdeck.backend.picture.text.partition_event_description import describe_partition_or_data
from quarterdeck.backend.picture.text.witness_event_description import describe_witnessed

PartitionOrDataEvent = PartitionEvent | DataEvent

VERDICTS: dict[MergeDirection, str] = {
    "local-merges": "this one merges into it",
    "remote-merges": "it merges into this one",
    "cannot-merge": "the two cannot merge",
}
"""What a verdict on two clusters says, seen from the one that tells it."""


def describe_record(record: Record, name_of: NameOf = str) -> str:
    """When, who, and what happened: one line without control characters."""
    told = describe_event(record.event, name_of)
    if not isinstance(record.event, events.MemberStarted):  # which is where a name's address is told
        told = with_names(told, name_of)
    return one_line(f"{clock_text(record.at)}  {record.member}  {told}")


def clock_text(at_us: int) -> str:
    """Return a moment on the run's clock as seconds with milliseconds, right-aligned up to 99999 s."""
    return f"{at_us / SECOND_US:9.3f}"


def describe_event(event: events.Event, name_of: NameOf = str) -> str:
    """Describe what happened, without when and to whom. It may hold any text of others; `describe_record` makes it one line."""
    if isinstance(event, PartitionOrDataEvent):
        return describe_partition_or_data(event, name_of)
    if isinstance(event, WitnessEvent):
        return describe_witnessed(event, name_of)
    match event:
        case events.MemberStarted(address, lite, join_list, merged_from):
            kind = "lite member" if lite else "member"
            begins = "goes on after the merge" if merged_from else "starts"
            looks = f", looks for its cluster at {names_text(join_list, name_of)}" if join_list else ""
            return f"{begins} as {kind} at {address}{looks}"
        case events.JoinRequested(master, attempt):
            return f"asks {name_of(master)} to let it join (attempt {attempt})"
        case events.JoinFailed(reasons):
            tried = "; ".join(f"{name_of(address)}: {reason}" for address, reason in reasons.items())
            return f"gives up joining: {tried or 'nobody to ask'}"
        case events.MemberStopped(reason):
            return f"stops: {reason}"
        case events.ListInstalled(version, _, master, members, author, cause, reason):
            names = names_text((member.address for member in members), name_of)
            by = "" if author == master else f", sent by {name_of(author)}"
            return (
                f"installs list v{version} of {len(members)}: {names} (master {name_of(master)}{by}): {reason or cause}"
            )
        case events.ListRejected(version, sender, reason):
            return f"rejects list v{version} from {name_of(sender)}: {reason}"
        case events.MasterChanged(master, reason):
            return f"follows {name_of(master)} as master: {reason}"
        case events.MemberAdmitted(address, _, version, acknowledged, expected):
            return f"admits {name_of(address)} with list v{version} ({acknowledged} of {expected} acknowledged it)"
        case events.MemberRemoved(address, _, reason):
            return f"removes {name_of(address)} from the list: {reason}"
        case _:
            return _describe_suspicion_or_claim(event, name_of)


def _describe_suspicion_or_claim(event: events.Event, name_of: NameOf) -> str:
    match event:
        case events.SuspicionRaised(suspect, _, reason):
            return f"suspects {name_of(suspect)}: {reason}"
        case events.SuspicionCleared(suspect, _, reason):
            return f"no longer suspects {name_of(suspect)}: {reason}"
        case events.ExplicitSuspicionSent(to, reason):
            return f"tells {name_of(to)} to suspect it: {reason}"
        case events.ExplicitSuspicionReceived(sender, heeded, reason):
            told = f"is told by {name_of(sender)} to suspect it and {'does' if heeded else 'does not'}"
            return f"{told}: {reason}" if reason else told
        case events.ComplaintSent(master, stranger):
            return f"complains to {name_of(master)} of heartbeats from the stranger {name_of(stranger)}"
        case events.ObserverPaused(gap):
            return f"stood still for {duration_text(gap)} itself, so it accuses nobody"
        case events.HeartbeatLate(address, _, silence, timeout, over):
            if over:
                heard = f"hears {name_of(address)} again after {duration_text(silence)}"
                return heard if silence else f"waits for the heartbeats of {name_of(address)} anew"
            left = duration_text(max(timeout - silence, 0))
            return f"has not heard {name_of(address)} for {duration_text(silence)}, suspects it in {left}"
        case events.ClaimStarted(version, suspected, asked):
            return (
                f"claims mastership from list v{version}: suspects {names_text(suspected, name_of)}, "
                f"asks {names_text(asked, name_of)}"
            )
        case events.ClaimAnswered(by, answer, version, reason):
            why = f": {reason}" if reason else ""
            at = f" at list v{version}" if version else ""  # 0: it told none
            return f"hears {answer} to its claim from {name_of(by)}{at}{why}"
        case events.ClaimFinished(version, _, accepted, left_out):
            return (
                f"is master with list v{version}: accepted by {names_text(accepted, name_of)}, "
                f"leaves out {names_text(left_out, name_of)}"
            )
        case events.ClaimAbandoned(reason):
            return f"abandons its claim: {reason}"
        case _:
            return _describe_disconnection_or_merge(event, name_of)


def _describe_disconnection_or_merge(event: events.Event, name_of: NameOf) -> str:
    match event:
        case events.DisconnectionReported(reporter, suspects):
            if not suspects:
                return f"hears that {name_of(reporter)} reaches everybody again"
            return f"hears from {name_of(reporter)} that it cannot reach {names_text(suspects, name_of)}"
        case events.DisconnectionResolved(keep, remove, exact, why):
            how = "" if exact else " (the best found in time)"
            return f"settles who stays{how}: {names_text(keep, name_of)}; removes {names_text(remove, name_of)}: {why}"
        case events.MemberHeldBack(address, missing):
            return f"holds {name_of(address)} back until its links to {names_text(missing, name_of)} are proven"
        case events.JoinDelayed(master, missing, wait):
            return (
                f"is held back by {name_of(master)}: proves its links to {names_text(missing, name_of)}, "
                f"again in {duration_text(wait)}"
            )
        case events.MergeVerdict(remote, decision, rule, why):
            return f"met the cluster of {name_of(remote)}: {VERDICTS[decision]} ({rule}: {why})"
        case events.NotMerging(reason):
            return f"is not merging: {reason}" if reason else "what kept it from merging is over"
        case events.MergeStarted(target, members):
            return f"begins to merge {names_text(members, name_of)} into the cluster of {name_of(target)}"
        case events.MergeAbandoned(target, reason):
            return f"gives up merging into the cluster of {name_of(target)}: {reason}"
        case events.MemberMerging(target, next_uuid):
            return f"leaves its cluster for that of {name_of(target)}, and goes on as {next_uuid}"
        case _:
            return _describe_cluster_state(event, name_of)


def _describe_cluster_state(event: events.Event, name_of: NameOf) -> str:
    match event:
        case events.AddressUnusable(address, reason):
            return f"looks for others at {name_of(address)} in vain: {reason}"
        case events.SearchPlanned(wait, every):
            return f"looks for other clusters in {duration_text(wait)}, then every {duration_text(every)}"
        case events.AddressesRemembered(addresses, forgotten):
            new = [f"remembers {names_text(addresses, name_of)}, to look for clusters there"] * bool(addresses)
            old = [f"looks for clusters no longer at {names_text(forgotten, name_of)}"] * bool(forgotten)
            return "; ".join((*new, *old))
        case events.JoinListChanged(addresses, edition, author):
            return f"takes edition {edition} of the join list, from {name_of(author)}: {names_text(addresses, name_of)}"
        case events.ClusterStateChanged(state, reason):
            return f"holds the cluster to be {state}: {reason}"
        case events.ClusterStateRefused(wanted, reason):
            return f"gives up changing the cluster to {wanted}: {reason}"
        case events.ProtectionChanged(members, needed, operating):
            return f"{'serves' if operating else 'refuses'} operations: sees {members} of {needed} needed members"
        case _:
            return _describe_fault(event)


def _describe_fault(event: events.Event) -> str:
    match event:
        case events.ProcessKilled(target):
            return f"{target} is killed"
        case events.ProcessPaused(target):
            return f"{target} is paused"
        case events.ProcessResumed(target):
            return f"{target} runs on"
        case events.LinkChanged():
            return f"link {event.source} to {event.target} {condition_text(event)}"
        case events.OperatorAsked(command, role, remote, granted, reason):
            return f"{remote}, as {role}, asks for {command}" + ("" if granted else f"; refused: {reason}")
        case events.SettingsChanged(properties):
            return f"has other settings: {', '.join(f'{name} {value}' for name, value in properties.items())}"
        case events.JournalChanged(target, failure, lost):
            missing = f"; {counted(lost, 'record')} lost so far" if lost else ""
            said = f"cannot be written: {failure}" if failure else "is written again"
            return f"the journal of {target} {said}{missing}"
        case events.StrangerRefused(remote, reason):
            return f"refuses the stranger {remote}: {reason}"
        case _:
            return type(event).__name__  # an event newer than this reader


def condition_text(link: events.LinkChanged) -> str:
    """Describe what a one-way link does to messages, to go on with after its ends: ``is cut (blackhole)``."""
    said = []
    if link.blocked:
        said.append(f"is cut ({link.blocked})")
    for one in conditions_by_kind(link):
        kind = one.kind
        whose = f" of {kind} messages" if kind else ""
        if one.delay or one.delay_up_to:
            up_to = f" to {duration_text(one.delay_up_to)}" if one.delay_up_to > one.delay else ""
            said.append(f"is slower by {duration_text(one.delay)}{up_to}{f' for {kind} messages' if kind else ''}")
        if one.loss:
            said.append(f"loses {one.loss:.0%}{whose}")
        if one.duplicate:
            said.append(f"doubles {one.duplicate:.0%}{whose}")
    if any(of_kind.held for of_kind in link.of_kinds):
        said.append(f"holds {', '.join(of_kind.kind or 'everything' for of_kind in link.of_kinds if of_kind.held)}")
    if link.dropped_kinds:
        said.append(f"drops every {', '.join(link.dropped_kinds)}")
    return " and ".join(said) or "is healed"
