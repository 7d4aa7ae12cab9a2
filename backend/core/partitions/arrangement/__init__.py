"""Who should hold which replica: how replicas are spread over members and groups, and the plan that the master makes of it.

Nothing is copied here.
"""
