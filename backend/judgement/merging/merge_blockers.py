"""The blockers between two clusters: why they do not merge, and what would take each away.

They are found from what both masters have said, from the merge decision of the core on what the picture knows of the two, from
whom either would look for, and from the links that were cut. See Split-brain Recovery Improvements.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple

from quarterdeck.backend.commands.discovery import JOINER, discovery_hint, discovery_remedies
from quarterdeck.backend.commands.links import conditions_by_kind
from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.cluster_profile import ClusterProfile, ProfiledMember, allows_joins
from quarterdeck.backend.core.commands import ChangeState, Command, HealLink, SearchClusters
from quarterdeck.backend.core.link_condition import LinkChanged
from quarterdeck.backend.core.membership.split_brain.merge_decision import decide_merge
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.judgement.merging.join_list_edit import EditPlan, members_of, plan_edit, spelt
from quarterdeck.backend.picture.events.membership import VERDICTS
from quarterdeck.backend.picture.fold.picture import MemberBelief, Picture
from quarterdeck.backend.picture.text.fact import NOT_REPORTED, not_told
from quarterdeck.backend.picture.text.formatting import age_text, counted, names_text, with_names

FREEZES_TO_MERGE_US = 30 * SECOND_US
"""So long a cluster of Hazelcast that turns FROZEN may be one that merges: it says so in no other way."""

PairState = Literal["merging", "due", "waits", "blocked"]
"""Whether it has begun, only takes time, waits for something to pass, or waits for an operator."""

CONFIGURED = ("cluster-name", "joiner", "partition-groups", "partition-count", "cluster-version")
"""Rules about what a picture does not show: only the masters can say that they differ."""

RETENTION = "hazelcast.tcp.join.previously.joined.member.address.retention.seconds"
"""With 0 s members remember no address."""

MERGING_TAKES = frozenset(
    ("split-brain-probe", "split-brain-answer", "master-is", "prove-links", "links-report", "link-probe", "link-probe-reply",
     "merge-offer", "merge-reply", "merge-clusters", "join-request", "finalize-join")
)  # fmt: skip
"""Messages without which two clusters do not become one."""


class Blocker(NamedTuple):
    """One thing in the way, and what would take it away."""

    rule: str
    sentence: str
    state: PairState = "blocked"
    remedy: str = ""
    commands: tuple[Command, ...] = ()
    edits: tuple[EditPlan, ...] = ()


class PairDiagnosis:
    """One pair, with everything that is asked of it. `blockers` gives what is in the way, the first that decides first."""

    def __init__(
        self,
        picture: Picture,
        smaller: MemberBelief,
        greater: MemberBelief,
        by_size: str,
        now_us: int,
        strangers: Callable[[str], frozenset[Address]],
    ) -> None:
        """`by_size` says why the smaller would merge; `strangers` gives the addresses at which a master looks, by its label."""
        self._picture, self._smaller, self._greater = picture, smaller, greater
        self._by_size, self._now_us, self._strangers = by_size, now_us, strangers
        self._name: Callable[[Address], str] = picture.label_of
        self._pairs = ((smaller, greater), (greater, smaller))

    def blockers(self) -> Iterator[Blocker]:
        """Yield what is in the way now. The last one is that nothing is, but time."""
        lasting = self._merging() or self._configured()
        if lasting is not None:
            yield lasting
            return
        overlap = self._overlap()
        if not (self._smaller.shows("join-list") and self._greater.shows("join-list")):
            yield from filter(None, (self._states(), overlap, self._cut_links(), self._met()))
            return
        # Whom a cluster still lists it does not look for; whether it will is seen when it lists them no more.
        unknown = (self._nobody_looks() or self._one_sided()) if overlap is None else None
        found = [*filter(None, (self._states(), overlap, self._cut_links(), unknown))]
        yield from found
        if not found:
            yield self._given_up() or self._silence() or self._links_unknown() or self._due()

    # What has begun, and what no one can change

    def _merging(self) -> Blocker | None:
        for side, other in self._pairs:
            if side.merging == other.address:
                return Blocker("merging", f"{side.label}'s cluster is on its way into {other.label}'s", "merging")
        for side, _ in self._pairs:
            if side.merging:
                way = f"{side.label}'s cluster is on its way into {self._name(side.merging)}'s first"
                return Blocker("merging-elsewhere", way, "waits")
        return None

    def _configured(self) -> Blocker | None:
        for side, other in self._pairs:
            verdict = side.verdicts.get(other.address)
            if verdict is not None and verdict.rule in CONFIGURED:
                why = with_names(verdict.why, self._name)
                ends = f"{why}; no edit helps: start the members of one side anew with what the other has"
                return Blocker(verdict.rule, ends)
        return None

    def _verdict(self) -> Blocker | None:
        """Return what the two said last of each other, if one met the other since both lead: what was before is over."""
        since_us = max(side.lineage_since_us or 0 for side, _ in self._pairs)
        met = [
            (side, other, verdict)
            for side, other in self._pairs
            if (verdict := side.verdicts.get(other.address)) is not None and verdict.since_us >= since_us
        ]
        if not met:
            return None
        side, other, verdict = max(met, key=lambda found: found[2].since_us)
        ago = age_text(max(self._now_us - verdict.since_us, 0))
        why = with_names(verdict.why, self._name)
        found = f"{VERDICTS[verdict.decision]}, {why}"
        if verdict.decision == "cannot-merge":  # what no later search changes is judged before, by the configurations
            found = f"they could not merge then, {why}; the next search compares them again"
        return Blocker(verdict.rule, f"{side.label} met {other.label} {ago} ago: {found}", "waits")

    def _met(self) -> Blocker:
        """Where it is not known where the two look, what they said of each other is all that is known."""
        verdict = self._verdict()
        if verdict is not None:
            return verdict
        unknown = self._smaller if not self._smaller.shows("join-list") else self._greater
        known = unknown.shows("merge-verdicts")
        met = "neither says that it met the other" if known else "what they found is not reported"
        looks, remedy = not_told("join-list", unknown.witnessed_by), ""
        if unknown.shows("settings"):  # its configuration is known, and has no join list
            looks, joiner = "not a join list, but discovery", (unknown.settings or {}).get(JOINER)
            if joiner:
                looks = f"not a join list, but {joiner}: {discovery_hint(joiner)}"
                remedy = discovery_remedies((joiner,))
        return Blocker("not-told", f"{met}, and where they look for others is {looks}", "waits", remedy)

    # What an operator can change

    def _states(self) -> Blocker | None:
        shut = [belief for belief in (self._smaller, self._greater) if not allows_joins(belief.cluster_state)]
        if not shut:
            return None
        for side in shut:
            seen_us = self._now_us - side.cluster_state_since_us
            if side.witnessed_by and side.cluster_state == "FROZEN" and seen_us < FREEZES_TO_MERGE_US:
                why = "a master freezes its cluster before it merges, and this may be that"
                seen = f"{side.label}'s cluster is FROZEN, seen so for {age_text(seen_us)}: {why}"
                return Blocker("freezes", seen, "waits")
        names = " and ".join(f"{side.label}'s cluster is {side.cluster_state}" for side in shut)
        rule = decide_merge(profile(self._smaller), profile(self._greater)).rule
        return Blocker(
            rule if rule in ("local-state", "remote-state") else "state",
            f"{names}: it admits no member and does not merge",
            remedy=f"make {' and '.join(side.label for side in shut)}'s cluster ACTIVE",
            commands=tuple(ChangeState(side.label, "ACTIVE") for side in shut),
        )

    def _overlap(self) -> Blocker | None:
        for side, other in self._pairs:
            if other.address in side.listed:
                return self._still_listed(side, other)
        common = sorted(self._smaller.listed & self._greater.listed)
        if not common:
            return None
        shared = f"{self._smaller.label} and {self._greater.label} both list {names_text(common, self._name)}"
        ends = "that ends by itself when one of them has heard nothing of it for too long"
        return Blocker("members-intersect", f"{shared}; {ends}", "waits")

    def _still_listed(self, one: MemberBelief, other: MemberBelief) -> Blocker:
        rule = "remote-is-my-member" if one is self._smaller else "i-am-its-member"
        sentence = f"{one.label} still lists {other.label}, which leads a cluster of its own"
        ends = "that ends when it has heard nothing of it for too long"
        if self._cut_between(other.label, one.label):
            return Blocker(rule, f"{sentence}; {ends}", "waits")
        if one.address in self._strangers(other.label):
            ends += f", or when {other.label} shows itself, {self._when(other)}"
            return Blocker(rule, f"{sentence}; {ends}", "waits", *self._search(other))
        sentence += f", and {other.label} neither lists nor remembers {one.label}"
        return Blocker(rule, f"{sentence}; {ends}", "waits", *self._edit(other, one))

    def _cut_links(self) -> Blocker | None:
        cut = self._first_cut()
        if cut is None:
            return None
        smaller, greater = (tuple(members_of(self._picture, belief)) for belief in (self._smaller, self._greater))
        source, target = cut
        return Blocker(
            "link-cut",
            f"links between {self._smaller.label}'s cluster and {self._greater.label}'s are cut, such as that from "
            f"{source} to {target}",
            remedy=f"heal the links between the two ({counted(len(smaller) * len(greater), 'link')} both ways)",
            commands=(HealLink(smaller, greater),),
        )

    def _nobody_looks(self) -> Blocker | None:
        if self._ways(self._smaller, self._greater) or self._ways(self._greater, self._smaller):
            return None
        return Blocker(
            "nobody-looks",
            f"neither {self._smaller.label}'s cluster nor {self._greater.label}'s lists or remembers a member of the other, "
            f"so they never meet; {self._by_size}",
            "blocked",
            *self._edit(self._smaller, self._greater),
        )

    def _one_sided(self) -> Blocker | None:
        """Return that only the greater cluster looks: of Hazelcast the smaller one begins a merge, by its own search."""
        loser, winner = self._smaller, self._greater
        if not loser.witnessed_by or self._ways(loser, winner):
            return None
        forgets = (loser.settings or {}).get(RETENTION) == "0"
        return Blocker(
            "one-sided",
            f"{winner.label}'s cluster looks for {loser.label}'s, which has to begin the merge ({self._by_size}) and lists no "
            f"member of it{'' if forgets else '; whether it remembers one is not reported'}",
            "blocked" if forgets else "waits",
            *self._edit(loser, winner),
        )

    # What time will change

    def _given_up(self) -> Blocker | None:
        loser = self._smaller
        obstacle = loser.obstacles.get(self._greater.address)
        verdict = loser.verdicts.get(self._greater.address)
        if obstacle is None or verdict is None or verdict.decision != "local-merges":
            return self._busy()
        into = f"{loser.label} gave up merging into {self._greater.label}'s cluster"
        text = f"{into}: {with_names(obstacle.reason, self._name)}; it looks again {self._when(loser)}"
        return Blocker("given-up", text, "waits", *self._search(loser))

    def _busy(self) -> Blocker | None:
        loser = self._smaller
        obstacle = loser.obstacles.get(None)
        if obstacle is None or obstacle.cause in ("nobody-answers", "nobody-known", "state"):
            return None
        why = with_names(obstacle.reason, self._name)
        text = f"{loser.label} did not look for other clusters, for {why}; it looks again {self._when(loser)}"
        return Blocker("busy", text, "waits", *self._search(loser))

    def _silence(self) -> Blocker | None:
        asked: list[Address] = []
        for side, other in self._pairs:
            obstacle = side.obstacles.get(None)
            silent = obstacle.silent if obstacle is not None else ()
            ways = self._ways(side, other)
            if any(way not in silent for way in ways):
                return None
            asked += ways
        looking, _ = self._searchers()[0]
        asked_last = f"no answer came from {names_text(dict.fromkeys(asked), self._name)} when asked last"
        text = f"{asked_last}; {looking.label} looks again {self._when(looking)}"
        return Blocker("no-answer", text, "waits", *self._search(looking))

    def _links_unknown(self) -> Blocker | None:
        """Return what is known where members do not report their links: not that nothing is in the way."""
        if self._smaller.shows("links") and self._greater.shows("links"):
            return None
        verdict = self._verdict()
        if verdict is not None:
            return verdict
        looking, other = self._searchers()[0]
        way = self._name(self._ways(looking, other)[0])
        return Blocker(
            "not-told",
            f"whether {looking.label} reaches {way} is {NOT_REPORTED}: members do not report their links; if so, it finds it "
            f"{self._when(looking)}, and {self._by_size}; try that port from its host",
            "waits",
        )

    def _due(self) -> Blocker:
        looking, other = self._searchers()[0]
        way = self._ways(looking, other)[0]
        through = "" if way == other.address else f", which names {other.label}"
        looks = f"{looking.label} looks at {self._name(way)}{through} {self._when(looking)}"
        text = f"nothing is in the way: {looks}; {self._by_size}"
        return Blocker("search-due", text, "due", *self._search(looking))

    # Questions

    def _ways(self, seeker: MemberBelief, other: MemberBelief) -> list[Address]:
        """Addresses at which `seeker` looks and a member of the cluster of `other` answers, the master's first."""
        known = self._strangers(seeker.label)
        ways = [other.address] if other.address in known else []
        slaves = (member.address for member in other.members if member.address != other.address)
        return ways + [address for address in slaves if address in known and self._answers(address, other)]

    def _answers(self, address: Address, master: MemberBelief) -> bool:
        belief = self._picture.members.get(self._picture.label_of(address))
        return belief is None or (belief.running and belief.master == master.address)

    def _searchers(self) -> list[tuple[MemberBelief, MemberBelief]]:
        able = [pair for pair in self._pairs if self._ways(*pair)]
        return sorted(able, key=lambda pair: pair[0].search.next_us(self._now_us) if pair[0].search else self._now_us)

    def _search(self, master: MemberBelief) -> tuple[str, tuple[Command, ...]]:
        """Return the advice to look at once, and its command. A witnessed member looks when it is its time, and no sooner."""
        if master.witnessed_by:
            return "", ()
        return f"let {master.label} look for other clusters now", (SearchClusters(master.label),)

    def _when(self, master: MemberBelief) -> str:
        if master.search is None:
            return "at its next search"
        left_us = master.search.next_us(self._now_us) - self._now_us
        return f"in {age_text(left_us)}" if left_us >= SECOND_US else "at once"

    def _first_cut(self) -> tuple[str, str] | None:
        """One cut link between the two, that between the masters first.

        Where partial disconnections are settled, merging takes proof of all links.
        """
        between = self._cut_between(self._smaller.label, self._greater.label)
        if between is not None or not self._picture.links:
            return between
        side = dict.fromkeys(members_of(self._picture, self._smaller), 0)
        side.update(dict.fromkeys(members_of(self._picture, self._greater), 1))
        for (source, target), link in self._picture.links.items():
            if source in side and target in side and side[source] != side[target] and cuts(link):
                return source, target
        return None

    def _cut_between(self, one: str, other: str) -> tuple[str, str] | None:
        links = self._picture.links
        return next((ends for ends in ((one, other), (other, one)) if ends in links and cuts(links[ends])), None)

    def _edit(
        self, cluster: MemberBelief, other: MemberBelief
    ) -> tuple[str, tuple[Command, ...], tuple[EditPlan, ...]]:
        """Return the advice to list the master of `other`, its command and its plan; what some members list alone is kept."""
        members = [cluster.label, *members_of(self._picture, cluster)]
        known = dict.fromkeys(address for label in members for address in self._picture.members[label].join_list)
        plan = plan_edit(self._picture, cluster, tuple(dict.fromkeys((*known, other.address))))
        text = f"add {spelt(other.address, other.label)} to the join list of {cluster.label}'s cluster"
        return text, (plan.command,), (plan,)


def cuts(link: LinkChanged) -> bool:
    """Whether a link in this condition lets no merge through."""
    stopped = {*link.dropped_kinds, *(part.kind for part in conditions_by_kind(link) if part.loss >= 1 or part.held)}
    return bool(link.blocked) or "" in stopped or not MERGING_TAKES.isdisjoint(stopped)


def profile(master: MemberBelief) -> ClusterProfile:
    """Return what the picture knows of a cluster. What it does not know is the same for all."""
    members = tuple(ProfiledMember(member.address, member.uuid, member.lite) for member in master.members)
    return ClusterProfile(
        master.address,
        master.uuid,
        cluster_name="",
        state=master.cluster_state,
        members=members,
        list_version=master.version,
        data_member_count=sum(not member.lite for member in members),
    )
