"""Members that keep no journal of their own. What an observer outside can know of them stands in events of its own."""
