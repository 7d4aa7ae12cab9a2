"""How an event is shown, wherever it is shown: its fields, its line and its tone. Every view that lists events uses these."""
