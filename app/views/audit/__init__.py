"""The view of findings: broken invariants seen while following, findings of the stream, and the audit on Spark."""
