"""What a scenario file may contain, how it is read and written, and the interpreter that leads a cluster through its
steps. Expectations and the right answers to questions are computed here, for simulated and live runs alike.
"""
