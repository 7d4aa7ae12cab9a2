"""The first view: the present state at one glance, in panes."""
