"""Handlers of the actions that every view knows. Those of a single view stand in its screen."""
