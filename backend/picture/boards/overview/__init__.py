"""What the overview shows beside the matrix of beliefs: suspicions, tables and migrations, a row each, and how much happens.

All of it is made of a picture, or of records, and knows nothing of how it is painted.
"""
