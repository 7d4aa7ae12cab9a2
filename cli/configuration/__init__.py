"""What the user has configured. It also finds the cluster that a command is for, and the credentials for it."""
