"""The commands of `quarterdeck`, one thin module each. Heavy imports are inside functions: so completion is instant."""
