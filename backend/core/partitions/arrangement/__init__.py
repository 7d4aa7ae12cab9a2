"""Who should hold which replica: the algorithm that spreads the replicas over members and groups, and the plan that the
master makes of it. Nothing is copied here.
"""
