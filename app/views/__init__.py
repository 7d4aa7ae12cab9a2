"""The views of the console, one file each, or a room where one is large. `app/actions/views.py` describes them."""
