"""The screens, one room for each view with its screen, its model and its style sheet. view_screen.py holds what all of
them share.
"""
