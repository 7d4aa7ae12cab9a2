"""Who may talk to a member: TLS with certificates that are reloaded when their files change, and the proof of the
cluster's shared secret. What a member demands of others is one value, `WireSecurity`.
"""
