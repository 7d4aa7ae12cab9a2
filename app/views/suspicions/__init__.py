"""The matrix of who suspects whom, and what the master would decide of it."""
