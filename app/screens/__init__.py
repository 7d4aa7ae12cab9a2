"""The screens of the console, one a file."""
