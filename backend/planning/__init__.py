"""What a master would decide, worked out from what somebody hands in: no cluster is asked (design 5.2)."""
