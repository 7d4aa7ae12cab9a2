"""What every view is built from: the screen that all share, and tables of declared columns. The first line is here, too."""
