"""The view of data. One table has keys, bytes and operations a second, by member, by map or by partition, and backups that lag."""
