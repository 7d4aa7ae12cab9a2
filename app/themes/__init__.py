"""How the console is coloured: five themes of its own, whose texts are readable on every ground that they stand on."""
