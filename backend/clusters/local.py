"""The cluster on this machine, for rooms that reach clusters only through this one."""

from backend.journal.writer import JournalWriter
from backend.live.local_cluster import LocalCluster

__all__ = ["JournalWriter", "LocalCluster"]
