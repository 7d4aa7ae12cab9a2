"""The command line of Quarterdeck, from `main` on. `commands` has the commands, `configuration` what the user has set."""
