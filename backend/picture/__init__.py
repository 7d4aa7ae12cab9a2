"""The picture holds the beliefs of all members, folded from events.

The rooms inside fold it, replay it, explain it, and lay it out for screens; nothing here asks a cluster or paints
anything.
"""
