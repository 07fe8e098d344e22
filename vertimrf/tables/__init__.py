"""Tables: record ids and integer codes from files and data frames.

Nothing at the server imports this.
"""
