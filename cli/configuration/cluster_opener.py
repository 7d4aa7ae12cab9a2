"""The ways from a console to the clusters of the user's configuration. What reads that is imported when somebody asks for it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from quarterdeck.app.console_interface import ClusterUnavailable, OpenedCluster
from quarterdeck.cli.configuration.connection import profile_of
from quarterdeck.cli.configuration.paths import configuration_file
from quarterdeck.cli.exits import CommandFailed


class ProfileClusterOpener:
    """Opens the clusters that have a profile: for changes if the console was started with `write` and the profile lets it."""

    def __init__(self, *, write: bool) -> None:
        self._write = write

    @cached_property
    def names(self) -> Sequence[str]:
        """As they were when they were asked for first: completion asks at every letter."""
        if not configuration_file().exists():
            return ()
        from quarterdeck.backend.documents.yaml_document import BadDocument
        from quarterdeck.cli.configuration.user_configuration import UserConfiguration

        try:
            return tuple(UserConfiguration().profiles)
        except BadDocument:
            return ()  # told when one of them is opened

    def open(self, name: str) -> OpenedCluster:
        try:
            connection = profile_of(name)
            return OpenedCluster(connection.open(write=self._write and not connection.read_only))
        except CommandFailed as failed:
            raise ClusterUnavailable(str(failed)) from failed
