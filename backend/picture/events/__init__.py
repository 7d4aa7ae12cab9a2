"""What is known of every kind of event besides its fields, described once: one row for each class."""
