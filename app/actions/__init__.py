"""Everything that an operator can do, and all views, each described once. The key map checks the keys and binds them."""
