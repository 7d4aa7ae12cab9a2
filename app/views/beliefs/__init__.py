"""The first view: the matrix of what each member believes of each other one. It also shows the latest events."""
