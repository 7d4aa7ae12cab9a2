"""The first view: all that streams at one glance, in panes. Each pane opens the view that has the whole of it."""
