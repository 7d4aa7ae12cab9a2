"""Campaigns: simulations by the hundred thousand, spread over the executors of Spark.

What runs on executors (`attempt`) imports no Spark; the `driver` does.
"""
