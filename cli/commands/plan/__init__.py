"""`quarterdeck plan`: what a master would decide, computed from a description on standard input."""
