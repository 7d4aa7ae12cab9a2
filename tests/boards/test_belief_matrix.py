"""The matrix of beliefs: cells, disagreement, and the words for both."""

from __future__ import annotations

from quarterdeck.backend.boards.belief_matrix import cells, how_it_differs, observer_facts, summarize_beliefs
from quarterdeck.backend.core.events import ProcessKilled, ProcessPaused
from quarterdeck.backend.core.membership import events
from quarterdeck.backend.judgement.agreement import ListAgreement
from quarterdeck.backend.picture.fold.picture import Picture
from tests.app.fakes.fake_cluster import FIVE, fold, formed


def test_each_state_has_its_glyph_and_word() -> None:
    cluster = formed()
    cluster.suspect("n1", "n5")
    cluster.install("n2", 6, ["n1", "n2", "n3"])
    cluster.labels = (*FIVE, "n6")
    picture = fold(cluster)
    assert seen(picture, "n1", "n1") == "▲ master"
    assert seen(picture, "n1", "n2") == "● member"
    assert seen(picture, "n1", "n5") == "? suspected"
    assert seen(picture, "n2", "n5") == "✕ removed"
    assert seen(picture, "n1", "n6") == "· unknown"
    assert seen(picture, "n6", "n1") == "· unknown"


def test_agreement_in_one_sentence() -> None:
    survey = summarize_beliefs(ListAgreement(fold(formed())))
    assert survey.sentence == "1 list: v5 of 5 members (master n1)"
    assert not survey.dissenters
    assert summarize_beliefs(ListAgreement(Picture())).sentence == "no running member holds a list"


def test_a_split_is_spelt_out_and_the_smaller_half_stands_out() -> None:
    cluster = formed()
    cluster.split(["n1", "n2", "n3"], ["n4", "n5"])
    picture = fold(cluster)
    survey = summarize_beliefs(ListAgreement(picture))
    assert survey.sentence == "2 lineages, one for each mastership: v7 n1,n2,n3 (master n1) / v6 n4,n5 (master n4)"
    assert survey.dissenters == {"n4", "n5"}
    assert picture.masters() == ("n1", "n4")


def test_who_holds_a_list_is_said_when_it_is_not_those_on_it() -> None:
    cluster = formed()
    cluster.install("n1", 6, FIVE[:4])
    survey = summarize_beliefs(ListAgreement(fold(cluster)))
    assert survey.sentence == (
        "2 lists of one mastership: v5 n1,n2,n3,n4,n5 (master n1) held by n2,n3,n4,n5; n1 ahead at v6: without n5"
    )


def test_one_version_with_two_contents_is_two_lists() -> None:
    cluster = formed()
    cluster.install("n5", 5, FIVE[:4])
    assert summarize_beliefs(ListAgreement(fold(cluster))).dissenters == {"n5"}


def test_frozen_and_ended_members_have_no_say_but_keep_their_last_belief() -> None:
    cluster = formed()
    cluster.install("n5", 9, ["n5"])
    cluster.happen("dev", ProcessKilled("n5"))
    cluster.happen("dev", ProcessPaused("n4"))
    cluster.happen("n3", events.MemberStopped("asked to"))
    picture = fold(cluster)
    assert not summarize_beliefs(ListAgreement(picture)).dissenters
    facts = [observer_facts(picture, label) for label in FIVE]
    assert [fact.list_version for fact in facts] == ["v5", "v5", "stopped v5", "paused v5", "killed v9"]
    assert [fact.greyed for fact in facts] == [False, False, True, True, True]
    assert observer_facts(picture, "n9").list_version == "not up"


def test_who_differs_and_how() -> None:
    cluster = formed()
    cluster.install("n1", 6, FIVE[:4])
    cluster.install("n2", 4, ["n1", "n2", "n3", "n4", "n5"])
    cluster.install("n3", 7, ["n3"], lineage="L2")
    picture = fold(cluster)
    survey = summarize_beliefs(ListAgreement(picture))
    assert survey.sentence == (
        "2 lineages, one for each mastership: "
        "v5 n1,n2,n3,n4,n5 (master n1) held by n4,n5; n1 ahead at v6: without n5; 1 more / v7 n3 (master n3)"
    )
    assert how_it_differs(picture, survey, "n5") == ""
    assert how_it_differs(picture, survey, "n1") == "n1 holds v6 where n4, n5 hold v5: without n5"
    assert how_it_differs(picture, survey, "n2") == "n2 holds v4 where n4, n5 hold v5: the same members"
    assert how_it_differs(picture, survey, "n3") == (
        "n3 holds v7 with master n3 where n4, n5 hold v5 with master n1: without n1,n2,n4,n5"
    )


def test_most_are_more_than_half() -> None:
    cluster = formed()
    cluster.install("n1", 6, FIVE[:4])
    picture = fold(cluster)
    assert (
        how_it_differs(picture, summarize_beliefs(ListAgreement(picture)), "n1")
        == "n1 holds v6 where most hold v5: without n5"
    )


def test_lists_may_differ_in_who_is_extra_and_in_lives() -> None:
    cluster = formed()
    for label in ("n1", "n2", "n3"):
        cluster.install(label, 6, FIVE[:3])
    master = cluster.address("n1")
    reborn = (*map(cluster.member, FIVE[:4]), cluster.member("n5", life=2))
    cluster.happen("n5", events.ListInstalled(7, "L1", master, reborn, master, "unknown", "n5 is back"))
    picture = fold(cluster)
    survey = summarize_beliefs(ListAgreement(picture))
    assert survey.sentence == (
        "3 lists of one mastership: v6 n1,n2,n3 (master n1); n4 behind at v5: with n4,n5; n5 ahead at v7: with n4,n5"
    )
    assert how_it_differs(picture, survey, "n4").endswith("with n4,n5")
    cluster = formed()
    cluster.happen("n4", events.ListInstalled(5, "L1", master, reborn, master, "unknown", "n5 is back"))
    picture = fold(cluster)
    assert summarize_beliefs(ListAgreement(picture)).sentence.endswith(
        "; n4 at another v5: with another incarnation of n5"
    )


def test_many_lists_are_counted_not_spelt_out() -> None:
    cluster = formed()
    for place, label in enumerate(FIVE):
        cluster.install(label, 10 + place, [label], lineage=label)
    sentence = summarize_beliefs(ListAgreement(fold(cluster))).sentence
    assert sentence.startswith("5 lineages, one for each mastership: v10 n1 (master n1) / ") and sentence.endswith(
        " / 2 more"
    )


def test_hostile_labels_lose_their_control_characters_only() -> None:
    cluster = formed(["[/]x", "evil\x1b[2J\n"])
    picture = fold(cluster)
    assert observer_facts(picture, "[/]x").label == "[/]x"
    assert observer_facts(picture, "evil\x1b[2J\n").label == "evil\N{REPLACEMENT CHARACTER}[2J\N{REPLACEMENT CHARACTER}"


def seen(picture: Picture, observer: str, member: str) -> str:
    """How the observer sees the member."""
    return next(cells(picture, observer, [member])).text
