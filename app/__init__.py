"""The Textual application: clusters in tabs, and actions on the one in sight. Start with console.py, then session.py."""
