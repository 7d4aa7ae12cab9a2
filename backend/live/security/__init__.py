"""Who may talk to a member: TLS with certificates that are reloaded when they change, and proof of the cluster's secret.

What a member demands of others is one value, `WireSecurity`.
"""
