"""Members as operating-system processes: the cluster that starts them, and the JSON messages on the pipes between it and them.

A kill is a SIGKILL here and a pause a SIGSTOP.
"""
