"""`quarterdeck web`: the console in a browser on this machine. A one-time token in the first URL decides who may use it."""
