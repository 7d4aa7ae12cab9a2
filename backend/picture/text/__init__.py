"""Amounts, names, events and foreign text become plain words here. Every board and every command line uses the same words."""
