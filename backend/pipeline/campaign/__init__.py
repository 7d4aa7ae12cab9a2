"""Campaigns: simulations by the hundred thousand, spread over the executors of Spark.

What runs on executors (`attempt`, `child_process`) imports no Spark; `waves` does.
"""
