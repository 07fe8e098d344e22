"""ZIP archives and spreadsheet files, written down as bytes: no package that writes them is needed."""

import io
import zipfile


def zipped(files):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return out.getvalue()


def workbook(*sheets):
    """A spreadsheet file of sheets of rows."""
    letters = "ABCDEFGH"

    def cell(place, value):
        if isinstance(value, str):
            return f'<c r="{place}" t="inlineStr"><is><t>{value}</t></is></c>'
        return "" if value is None else f'<c r="{place}"><v>{value}</v></c>'

    main = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    package = "http://schemas.openxmlformats.org/package/2006"
    names = "".join(
        f'<sheet name="s{i}" sheetId="{i}" r:id="r{i}"/>' for i in range(1, len(sheets) + 1)
    )
    linked = "".join(
        f'<Relationship Id="r{i}" Type="{office}/worksheet" Target="worksheets/sheet{i}.xml"/>'
        for i in range(1, len(sheets) + 1)
    )
    files = {
        "[Content_Types].xml": f'<Types xmlns="{package}/content-types"><Default Extension="xml" ContentType="application/xml"/></Types>',
        "_rels/.rels": f'<Relationships xmlns="{package}/relationships"><Relationship Id="r1" Type="{office}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook {main} xmlns:r="{office}"><sheets>{names}</sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{package}/relationships">{linked}</Relationships>',
    }
    for i, rows in enumerate(sheets, 1):
        text = "".join(
            f'<row r="{n}">{"".join(cell(f"{letters[c]}{n}", v) for c, v in enumerate(row))}</row>'
            for n, row in enumerate(rows, 1)
        )
        files[f"xl/worksheets/sheet{i}.xml"] = (
            f"<worksheet {main}><sheetData>{text}</sheetData></worksheet>"
        )
    return zipped(files)


def opendocument(rows):
    """A spreadsheet file of OpenDocument."""

    def cell(value):
        if value is None:
            return "<table:table-cell/>"
        kind = "string" if isinstance(value, str) else "float"
        number = "" if kind == "string" else f' office:value="{value}"'
        return f'<table:table-cell office:value-type="{kind}"{number}><text:p>{value}</text:p></table:table-cell>'

    kind = "application/vnd.oasis.opendocument.spreadsheet"
    spaces = " ".join(
        f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"'
        for name in ("office", "table", "text")
    )
    text = "".join(f"<table:table-row>{''.join(map(cell, row))}</table:table-row>" for row in rows)
    sheet = f'<table:table table:name="s">{text}</table:table>'
    body = f"<office:body><office:spreadsheet>{sheet}</office:spreadsheet></office:body>"
    content = f"<office:document-content {spaces}>{body}</office:document-content>"
    manifest = (
        '<manifest:manifest xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0"/>'
    )
    return zipped({"mimetype": kind, "META-INF/manifest.xml": manifest, "content.xml": content})
