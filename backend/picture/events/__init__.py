"""Every class of events is described here once, by a row: its words and tone, its place in diagrams, logs, episodes and stories.

Whatever shows, logs or explains events derives from these rows.
"""
