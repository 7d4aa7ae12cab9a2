"""The first view: the present state at one glance, in panes. Each opens the view that shows it in full."""
