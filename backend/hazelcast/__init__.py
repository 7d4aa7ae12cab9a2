"""What is known of the real product, Hazelcast: how its members write their logs.

The readers here are pure, import only `backend.core` and need no Spark.
"""
