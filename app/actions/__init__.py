"""Everything that an operator can do, and all views, each described once; the key map checks the keys and binds them."""
