"""How the console is coloured. Its five themes have texts that are readable on every ground that they stand on."""
