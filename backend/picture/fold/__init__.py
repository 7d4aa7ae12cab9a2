"""The fold turns events into the belief of each member: its list, its suspicions, its partition table and its migrations.

Only this room changes a picture; all others read it.
"""
