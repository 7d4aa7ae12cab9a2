"""Documents that people write: reading them, and saying where in them something is wrong."""
