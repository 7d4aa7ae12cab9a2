"""Running one member: in the foreground of its own process, or as a member of a cluster on this machine."""
