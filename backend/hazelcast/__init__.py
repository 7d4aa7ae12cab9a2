"""What is known of the real product, Hazelcast: how its members write their logs, and what they report to clients.

The readers here are pure, import only `backend.core` and need no Spark.
"""

SCHEME = "hazelcast://"
"""The beginning of the URLs of its members."""
