"""Write tables as files of SPSS, Stata, SAS and Excel, of which each has other types.

:mod:`vertimrf.tables.programs.register` names them. A new program is a file and a line there.
"""
