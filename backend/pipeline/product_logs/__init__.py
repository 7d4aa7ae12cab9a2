"""The product's own member logs, read into the records that our journals are made of.

From the bytes up: `wrapping` (what carries a line), `timestamps`, `layout` (the line itself), `assembly` (lines to messages),
`splits` (byte ranges of files), `sayings` (what a message says), `story` (what a member's sayings make of its lives),
`reading` (files in, records out, in plain Python) and `reader` (the same on Spark).
"""
