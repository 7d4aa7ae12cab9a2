"""What the user has configured, and the cluster that a command is for, with the credentials for it."""
