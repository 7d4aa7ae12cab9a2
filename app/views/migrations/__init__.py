"""The migrations that are planned, running, done and failed, one a row."""
