"""What actions do: each handler carries out one action on the current view.

Handlers of a single view stand in that view's room.
"""
