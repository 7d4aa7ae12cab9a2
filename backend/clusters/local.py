"""The clusters on this machine, for rooms that reach clusters only through this one."""

from quarterdeck.backend.journal.writer import JournalWriter
from quarterdeck.backend.live.cluster.live_cluster import LiveCluster, MemberOptions
from quarterdeck.backend.live.cluster.local_clusters import LocalCluster, ProcessCluster

__all__ = ["JournalWriter", "LiveCluster", "LocalCluster", "MemberOptions", "ProcessCluster"]
