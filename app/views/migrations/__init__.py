"""The migrations that are planned, running, done and failed, one a row. It also says what every
master has queued.
"""
