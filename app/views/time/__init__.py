"""The whole run as a strip with a playhead, and the events around the moment that is shown.

Its handlers move every view through time.
"""
