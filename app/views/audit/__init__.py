"""The view of findings: seen while following, of the stream, and of the audit. The audit is a process of its own."""
