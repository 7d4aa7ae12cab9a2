"""The matrix of who suspects whom. Beside it stands what the master would decide of it."""
