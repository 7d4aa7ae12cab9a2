"""Scripted demos: a tutor leads one trainee through a scenario on a live or a simulated cluster.

A lesson carries out what the tutor orders, and scores keep how it went.
"""
