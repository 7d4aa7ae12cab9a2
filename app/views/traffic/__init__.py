"""The view of data. One table has keys, bytes and operations a second, by member, map or partition, and backups that lag."""
