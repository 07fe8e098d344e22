"""How people write numbers, dates and times: a file for each notation, which recognises, reads and writes its texts.

:mod:`vertimrf.columns.notations.register` names them. A new notation is a file and a line there.
"""
