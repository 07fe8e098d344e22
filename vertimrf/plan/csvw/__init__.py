"""Metadata of CSV on the Web, with the terms of CSVW-EO for differential privacy, read and written as a schema.

CSVW-EO 0.2.1 (https://github.com/dscc-admin-ch/csvw-eo, the package ``csvw-eo``) adds to the
recommendation of W3C what is public about the rows of a person, keys, partitions and dependencies.
A table is a party, and a group of tables a schema of several.

- :mod:`.columns`: a column and a section of a schema.
- :mod:`.dependencies`: dependencies of columns, rules, and impossible combinations.
- :mod:`.tables`: whole files, and what a schema has no word for, which it keeps for the way back.

Source: https://www.w3.org/TR/tabular-metadata/
"""
