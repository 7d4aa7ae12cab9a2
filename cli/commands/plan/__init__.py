"""`quarterdeck plan`: what a master would decide. It is computed from a description on standard input."""
