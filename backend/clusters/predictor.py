"""Predictions for a caller that must not wait for them: computed in a thread, and given up when another one is wanted."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError, Future
from dataclasses import replace

from quarterdeck.backend.clusters.cluster import Cluster, SnapshotSource
from quarterdeck.backend.core.cluster_snapshot import ClusterSnapshot
from quarterdeck.backend.core.commands import Command, CommandRefused
from quarterdeck.backend.judgement.what_if.prediction import FaultPrediction
from quarterdeck.backend.picture.fold.picture import Picture
from quarterdeck.backend.simulation.prediction import future

SNAPSHOT_SECONDS = 10.0
"""How long the predictor waits for the members' states."""


class Predictor:
    """Predicts the outcome of commands, one plan at a time. Only the computing is done in another thread than the caller's."""

    def __init__(self) -> None:
        self._wanted: object = None
        """Stands for the plan that was asked about last; None when nothing is wanted."""
        self.prediction: FaultPrediction | None = None
        """As much as is known so far; it may be known more exactly at the next look."""
        self.problem = ""
        """Why nothing can be predicted; empty while nothing is in the way."""
        self._thread: threading.Thread | None = None

    def ask(self, cluster: Cluster, picture: Picture, commands: Sequence[Command], *, live: bool) -> None:
        """Predict what comes of `commands`, and nothing else any more.

        The members themselves are run forward where they report what they know now; else, and when the moment shown is not
        the present one (`live`), clusters like those of the `picture`.
        """
        wanted = self._wanted = object()
        self.prediction, self.problem = None, ""
        snapshot = cluster.snapshot() if live and isinstance(cluster, SnapshotSource) else None
        arguments = (wanted, snapshot, future.foundation_of(picture), tuple(commands))
        self._thread = threading.Thread(target=self._predict, args=arguments, name="prediction", daemon=True)
        self._thread.start()

    def drop(self) -> None:
        """Want nothing any more."""
        self._wanted = self.prediction = None
        self.problem = ""

    def join(self) -> None:
        """Wait until the prediction that was asked for last is complete, or given up."""
        if self._thread is not None:
            self._thread.join()

    def _predict(
        self,
        wanted: object,
        asked: Future[ClusterSnapshot] | None,
        foundation: future.Foundation,
        commands: Sequence[Command],
    ) -> None:
        try:
            for found in self._predictions(wanted, asked, foundation, commands):
                if self._wanted is wanted:
                    self.prediction = found
        except future.Superseded:
            return
        except (CommandRefused, future.NotFounded) as problem:
            self._fail(wanted, str(problem))
        except Exception as failure:  # noqa: BLE001 - a state that came from elsewhere may be one that cannot be
            self._fail(wanted, f"the members could not be run forward: {failure!r}")

    def _fail(self, wanted: object, problem: str) -> None:
        if self._wanted is wanted:
            self.problem = problem

    def _predictions(
        self,
        wanted: object,
        asked: Future[ClusterSnapshot] | None,
        foundation: future.Foundation,
        commands: Sequence[Command],
    ) -> Iterator[FaultPrediction]:
        snapshot, why = None, ""
        if asked is not None:
            try:
                snapshot = asked.result(SNAPSHOT_SECONDS)
            except (CommandRefused, CancelledError, TimeoutError) as refusal:
                why = str(refusal) or "the members did not answer in time"
        assumed = () if snapshot is not None else (*([why] if why else []), *foundation.assumed)
        begin = snapshot or future.founded(foundation)
        for found in future.predictions(begin, commands, is_wanted=lambda: self._wanted is wanted):
            yield replace(found, assumed=(*found.assumed, *assumed))
