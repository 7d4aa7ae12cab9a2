"""This room predicts what a command or a network fault would do before it is given: which clusters result, which data
is lost, what a master would decide. It also says how strongly the operator has to confirm it.
"""
