"""One member in full: its beliefs, links and partition table. It is opened from the views that list members."""
