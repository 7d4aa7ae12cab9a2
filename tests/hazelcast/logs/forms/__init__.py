"""Recordings in the forms in which people have them: written, read, and compared."""
