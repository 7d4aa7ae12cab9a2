"""What the user has configured: folders, profiles of clusters, and settings of the console.

It also finds the cluster that a command is for, and the credentials for it.
"""
