"""Members that keep no journal of their own. What somebody outside can know of them is told in events of its own."""
