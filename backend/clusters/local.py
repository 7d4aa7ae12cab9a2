"""The clusters on this machine, for rooms that reach clusters only through this one."""

from backend.journal.writer import JournalWriter
from backend.live.live_cluster import LiveCluster
from backend.live.local_cluster import LocalCluster
from backend.live.process_cluster import ProcessCluster

__all__ = ["JournalWriter", "LiveCluster", "LocalCluster", "ProcessCluster"]
