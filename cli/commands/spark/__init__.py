"""The commands that run on Spark: `audit`, `campaign` and `pipeline`. They start Spark only after their options are checked."""
