"""The fold turns events into what each member believes: its list, its suspicions, its partition table and its migrations.

Only this room changes a picture; all others read it.
"""
