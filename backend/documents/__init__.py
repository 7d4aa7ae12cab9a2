"""YAML documents that people write: reading them as plain data. Every error names file, line and field, and has a remedy."""
