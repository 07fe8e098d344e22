"""Ways to damage files that know how these are made: trees of JSON or TOML, containers, sealed files, and plain bytes.

Checksums are computed again and seals made with the right keys, so that the damage gets past them to whoever reads the contents.
"""

import copy
import datetime
import hashlib
import json
import string
import struct

import numpy as np
import tomli_w

from vertimrf.files import container, sealed

Rng = np.random.Generator

# Texts that stand for what no writer would write; put in after writing.
RAW = {
    "@deep100@": "[" * 100 + "]" * 100,
    "@deep900@": "[" * 900 + "]" * 900,
    "@deep20000@": "[" * 20_000 + "]" * 20_000,
    "@deepmaps@": '{"a":' * 3000 + "1" + "}" * 3000,
    "@digits@": "9" * 4299,
    "@moredigits@": "9" * 6000,
    "@huge@": "1e400",
    "@numbers@": "[" + ",".join(map(str, range(30_000))) + "]",
    "@texts@": "[" + ",".join(f'"v{i}"' for i in range(20_000)) + "]",
    "@lists@": "[" + "[]," * 20_000 + "[]]",
}
WHOLE = [
    0,
    1,
    -1,
    2,
    3,
    16,
    40,
    41,
    64,
    255,
    256,
    4096,
    65_534,
    65_535,
    65_536,
    10**6,
    2**26,
    2**26 + 1,
    2**31 - 1,
    2**31,
]
WHOLE += [2**32]
WHOLE += [
    2**53 + 1,
    2**62,
    2**63 - 1,
    2**63,
    2**64,
    -(2**31),
    -(2**63),
    -(2**63) - 1,
    10**30,
    -(10**30),
    10**400,
]
DECIMAL = [
    0.0,
    -0.0,
    0.1,
    0.5,
    1.5,
    -1.5,
    1e-12,
    1e-300,
    5e-324,
    1e16,
    1e30,
    1e150,
    1e300,
    1.7e308,
    -1e300,
]
DECIMAL += [float("nan"), float("inf"), float("-inf")]
TEXT = [
    "",
    " ",
    "x",
    "0",
    "1",
    "-1",
    "nan",
    "private",
    "missing",
    "other",
    "date",
    "time",
    "timestamp",
    "month",
    "hour",
    "id",
]
TEXT += [
    "\ud800",
    "\x00",
    "a\nb",
    "\x1b[31m",
    "é" * 20,
    "\u202e",
    "../x",
    "a/b",
    "x" * 100_000,
    "held_by",
]
TEXT += ["add or remove one record"]
TEXT += [
    "2013-05-31",
    "0001-01-01",
    "9999-12-31",
    "23:59:59",
    "2013-05-31T10:00:00+14:00",
    "Europe/Vienna",
    "NaN",
]
TEXT += [
    "day",
    "count-sketch",
    "scheduled-pairs",
    "published",
    "grr",
    "outer",
    "inner",
    "gaussian",
    "sketches",
]
TEXT += ["threshold", "geometric"]
DAYS = [
    datetime.date.min,
    datetime.date.max,
    datetime.datetime.max,
    datetime.time(23, 59, 59, 999_999),
]


def picked(rng, options):
    """One of them, as it is."""
    return options[int(rng.integers(len(options)))]


def hostile(rng):
    """A value that hardly anything should be."""
    match int(rng.integers(12)):
        case 0 | 1 | 2 | 3:
            return picked(rng, WHOLE)
        case 4 | 5:
            return picked(rng, DECIMAL)
        case 6 | 7:
            return picked(rng, TEXT)
        case 8:
            return picked(rng, list(RAW))
        case 9:
            return picked(rng, [True, False, None])
        case 10:
            return copy.deepcopy(
                picked(
                    rng,
                    [[], {}, [[]], {"": None}, [None], [[[]]], [0] * 300, {"a": {"b": []}}, [{}]],
                )
            )
    return picked(rng, DAYS)


def number_near(rng, value):
    """A number made from another, or the other as something that it is not."""
    changes = [
        lambda: value + 1,
        lambda: value - 1,
        lambda: -value,
        lambda: value * 2,
        lambda: value * 1000,
        lambda: value / 1000,
        lambda: value * 10**9,
        lambda: float(value),
        lambda: int(value),
        lambda: str(value),
        lambda: [value],
        lambda: bool(value),
    ]
    try:
        return picked(rng, changes)()
    except (OverflowError, ValueError):
        return 0


def text_near(rng, text):
    """A text made from another: digests, keys and base64 keep their letters where that is what they are made of."""
    if not text:
        return "x"
    at = int(rng.integers(len(text)))
    letters = (
        "0123456789abcdef"
        if set(text) <= set(string.hexdigits)
        else string.ascii_letters + string.digits + "+/="
    )
    match int(rng.integers(7)):
        case 0:
            return text[:at] + picked(rng, letters) + text[at + 1 :]
        case 1:
            return text[:at]
        case 2:
            return text + text
        case 3:
            return text[:at] + picked(rng, TEXT) + text[at:]
        case 4:
            return text.upper()
        case 5:
            return text[::-1]
    return "".join(rng.choice(list(letters), len(text)))


def nodes(tree):
    """Every place in a tree, by what holds it and under which key or index."""
    out = []
    waiting = [tree]
    while waiting:
        at = waiting.pop()
        keys = list(at) if isinstance(at, dict) else range(len(at)) if isinstance(at, list) else ()
        for key in keys:
            out.append((at, key))
            waiting.append(at[key])
    return out


def place(rng, tree):
    """Some place in a tree: by a walk from the root, so that long lists do not draw everything to themselves."""
    if rng.random() < 0.3:
        every = nodes(tree)
        return picked(rng, every) if every else None
    at, chosen = tree, None
    while isinstance(at, dict | list) and at:
        key = picked(rng, list(at) if isinstance(at, dict) else range(len(at)))
        chosen = (at, key)
        at = at[key]
        if rng.random() < 0.2:
            break
    return chosen


def damaged_tree(rng, tree, others=()):
    """A tree of JSON with some places changed.

    Args:
        rng: decides.
        tree: as ``json.loads`` gives it; left as it is.
        others: trees of the same kind, parts of which are put in.
    """
    tree = copy.deepcopy(tree)
    for _ in range(1 + int(rng.geometric(0.6)) if rng.random() < 0.4 else 1):
        chosen = place(rng, tree)
        if chosen is None:
            return hostile(rng)
        at, key = chosen
        match int(rng.integers(13)):
            case 0 | 1 | 2 | 3:
                at[key] = hostile(rng)
            case 4 | 5 | 6:
                old = at[key]
                if isinstance(old, bool) or old is None:
                    at[key] = picked(rng, [True, False, None, 0, 1, "true"])
                elif isinstance(old, int | float):
                    at[key] = number_near(rng, old)
                elif isinstance(old, str):
                    at[key] = text_near(rng, old)
                elif isinstance(old, list):
                    at[key] = list_near(rng, old)
                else:
                    at[key] = hostile(rng)
            case 7:
                del at[key]
            case 8:
                # Something from elsewhere in it, or from a file of the same kind.
                source = place(rng, picked(rng, [tree, *others]))
                at[key] = copy.deepcopy(source[0][source[1]]) if source else None
            case 9:
                second = place(rng, tree)
                if second is not None:
                    other, its = second
                    one, two = copy.deepcopy(at[key]), copy.deepcopy(other[its])
                    at[key] = two
                    if its in other if isinstance(other, dict) else its < len(other):
                        other[its] = one
            case 10:
                if isinstance(at, dict):
                    at[picked(rng, TEXT) if rng.random() < 0.5 else f"{key}x"] = copy.deepcopy(
                        at[key]
                    )
                else:
                    at.insert(int(rng.integers(len(at) + 1)), copy.deepcopy(at[key]))
            case 11 if isinstance(at, dict):
                at[text_near(rng, key) if isinstance(key, str) else "x"] = at.pop(key)
            case _:
                at[key] = [at[key]] if rng.random() < 0.5 else {"x": at[key]}
    return tree


def list_near(rng, values):
    """A list made from another."""
    out = list(values)
    match int(rng.integers(7)):
        case 0:
            return []
        case 1:
            rng.shuffle(out)
        case 2:
            return out[: int(rng.integers(len(out) + 1))]
        case 3:
            return out * int(rng.integers(2, 5))
        case 4:
            return (out * (20_000 // max(len(json.dumps(out, default=str)), 1) + 1))[:20_000]
        case 5:
            return out[::-1]
        case 6:
            return [*out, hostile(rng)]
    return out


def with_raw(text):
    """The text with what no writer would write."""
    for mark, raw in RAW.items():
        text = text.replace(f'"{mark}"', raw)
    return text


def written(tree):
    """A tree as JSON, whatever stands in it."""
    return with_raw(json.dumps(tree, default=str)).encode(errors="surrogatepass")


def doubled_key(rng, data):
    """JSON or the like with a key twice in one object."""
    starts = [i for i in range(len(data)) if data[i : i + 1] == b"{"]
    if not starts:
        return data
    at = picked(rng, starts) + 1
    end = data.find(b":", at)
    name = data[at:end] if 0 < end - at < 40 and data[at : at + 1] == b'"' else b'"x"'
    return data[:at] + name + b": " + written(hostile(rng)) + b", " + data[at:]


def damaged_json(rng, data, others=()):
    """A JSON file, damaged in its content; sometimes in its bytes or keys."""
    choice = rng.random()
    if choice < 0.08:
        return damaged_bytes(rng, data, others)
    if choice < 0.14:
        return doubled_key(rng, data)
    return written(damaged_tree(rng, json.loads(data), [json.loads(other) for other in others]))


def damaged_toml(rng, data, tree):
    """A TOML file, damaged in its content or its bytes."""
    if rng.random() < 0.15:
        return damaged_bytes(rng, data)
    try:
        return with_raw(tomli_w.dumps(without_none(damaged_tree(rng, tree)))).encode(
            errors="surrogatepass"
        )
    except (TypeError, AttributeError, ValueError, RecursionError):
        # What TOML has no form for.
        return damaged_bytes(rng, data)


def without_none(tree):
    """A tree without null, which TOML lacks."""
    if isinstance(tree, dict):
        return {str(key): without_none(value) for key, value in tree.items() if value is not None}
    return (
        [without_none(value) for value in tree if value is not None]
        if isinstance(tree, list)
        else tree
    )


def damaged_bytes(rng, data, others=()):
    """Bits flipped, bytes cut, doubled, put in, or taken from another file."""
    out = bytearray(data)
    for _ in range(int(rng.geometric(0.6))):
        at = int(rng.integers(len(out) + 1))
        length = int(rng.integers(1, 1 + max(min(len(out) - at, 64), 1)))
        match int(rng.integers(9)):
            case 0 | 1 if out:
                out[min(at, len(out) - 1)] ^= 1 << int(rng.integers(8))
            case 2 if out:
                out[min(at, len(out) - 1)] = int(rng.integers(256))
            case 3:
                del out[at:]
            case 4:
                del out[at : at + length]
            case 5:
                out[at:at] = out[at : at + length]
            case 6:
                out[at:at] = rng.bytes(length)
            case 7:
                other = picked(rng, others) if others else data
                start = int(rng.integers(len(other) + 1))
                out[at : at + length] = other[start : start + length]
            case 8:
                # A number of four or eight bytes that is far from what was there.
                form = picked(rng, ["<I", "<q", "<i", ">I"])
                number = (
                    picked(rng, [0, -1, 1, 2**31 - 1, -(2**31)])
                    if form != "<q"
                    else picked(rng, [2**62, -1, -(2**63)])
                )
                packed = struct.pack(form, number & 0xFFFFFFFF if form[1] == "I" else number)
                out[at : at + len(packed)] = packed
    return bytes(out)


def contents(data):
    """Description and arrays of a sound container."""
    kind, header, arrays = container.peek(data, "seed")
    listing = [[name, array.dtype.name, list(array.shape)] for name, array in arrays.items()]
    return {"kind": kind, "header": header, "arrays": listing}, arrays


def extreme(rng, array):
    """A value that an array's type has, and hardly any array should."""
    if array.dtype.kind == "f":
        return picked(rng, [*DECIMAL, 1e10, 700.0, -800.0])
    info = np.iinfo(array.dtype)
    more = [2**62, 2**40, -(2**62), -1] if info.max > 65_535 else [7, 8, 15]
    return picked(rng, [info.min, info.max, 0, 1, info.max // 2, info.max - 1, *more])


def damaged_array(rng, array):
    """An array with other values, or another shape or type."""
    out = array.copy()
    flat = out.reshape(-1)
    match int(rng.integers(9)):
        case 0 | 1 | 2 if flat.size:
            flat[rng.integers(0, flat.size, int(rng.integers(1, 4)))] = extreme(rng, out)
        case 3:
            out[...] = extreme(rng, out)
        case 4:
            return out.reshape(-1)[: int(rng.integers(flat.size + 1))].copy()
        case 5:
            return np.concatenate([flat, flat, flat])[
                : int(rng.integers(flat.size, 3 * flat.size + 1))
            ]
        case 6:
            return (
                flat.reshape(picked(rng, [(-1,), (1, -1), (-1, 1), (1,) * 30 + (-1,)]))
                if flat.size
                else out
            )
        case 7:
            with np.errstate(all="ignore"):
                return out.astype(picked(rng, ["uint8", "uint16", "int64", "float64"]))
        case 8 if out.dtype.kind != "f":
            flat[:] = rng.integers(
                np.iinfo(out.dtype).min,
                np.iinfo(out.dtype).max,
                flat.size,
                dtype=out.dtype,
                endpoint=True,
            )
    return out


def damaged_container(rng, data, others=()):
    """A container, damaged in its header, its arrays or what it says of them; its checksum is right, nearly always."""
    description, arrays = contents(data)
    choice = rng.random()
    if choice < 0.04:
        return damaged_bytes(rng, data, others)
    if choice < 0.50:
        description["header"] = damaged_tree(
            rng, description["header"], [contents(other)[0]["header"] for other in others]
        )
    if choice > 0.45 and arrays:
        for _ in range(int(rng.geometric(0.7))):
            name = picked(rng, list(arrays))
            match int(rng.integers(8)):
                case 0 if len(arrays) > 1:
                    del arrays[name]
                    break
                case 1:
                    arrays[picked(rng, ["x", name + "0", "marginal99", "logs99"])] = arrays[name]
                case 2:
                    other = picked(rng, list(arrays))
                    arrays[name], arrays[other] = arrays[other], arrays[name]
                case _:
                    arrays[name] = damaged_array(rng, arrays[name])
        description["arrays"] = [
            [name, array.dtype.name, list(array.shape)] for name, array in arrays.items()
        ]
    if choice > 0.93:
        description["arrays"] = damaged_tree(rng, description["arrays"])
    body = b"".join(np.ascontiguousarray(array).tobytes() for array in arrays.values())
    if choice > 0.97:
        description = damaged_tree(rng, description)
    text = written(description)
    if 0.38 < choice < 0.42:
        text = doubled_key(rng, text)
    length = len(text) if rng.random() > 0.02 else int(rng.integers(1 << 32))
    whole = container.PREFIX.pack(container.MAGIC, container.VERSION, length) + text + body
    if rng.random() < 0.02:
        whole = damaged_bytes(rng, whole)
    return whole + hashlib.sha256(whole).digest()


def damaged_head(rng, header):
    """The beginning of a sealed file with a damaged header."""
    text = written(damaged_tree(rng, header))
    length = (
        len(text)
        if rng.random() > 0.1
        else picked(rng, [0, 1, len(text) - 1, 1 << 16, (1 << 16) + 1, (1 << 32) - 1])
    )
    return sealed.PREFIX.pack(sealed.MAGIC, sealed.VERSION, length) + text
