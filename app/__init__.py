"""The Textual application: one console that shows clusters in tabs and acts on the one in sight.

Start with console.py, then session.py.
"""
