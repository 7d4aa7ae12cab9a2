"""Who is in the cluster: one file per chapter of seeds 000 to 003."""
