"""One member as a process: how it is configured, how it runs, and what it serves over HTTP."""
