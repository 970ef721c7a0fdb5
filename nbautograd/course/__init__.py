"""The course: exercises, their checks, the release of notebooks and their hand-out.

Nothing here knows of IPython: a grader runs the same checks in a process of its own.
"""
