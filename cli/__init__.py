"""The command line: `main` is the entry point, `commands` has the commands, `configuration` reads what users configured."""
