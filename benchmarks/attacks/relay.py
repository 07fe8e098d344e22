"""The relay: it carries every file between parties and server, and changes, swaps, renames or keeps what it likes.

It knows every public file and can make keys of its own; it has nobody's private key. Each position that it can play is played
against the real roles, and it is *noticed* if a role refuses what it is given, or if people who compare the fingerprints of
their plans see two.
"""

import base64
import functools
from dataclasses import replace

from vertimrf import Message, PrivateKey, Server, VertiMRFError
from vertimrf.files import sealed
from vertimrf.files.canonical import same_fingerprint
from vertimrf.keys import KeyRing, _file_key, called, seal
from vertimrf.message import KIND
from vertimrf.party.secret import open_envelope, seal_secret

from ..verdict import at_least
from .deployment import deploy, with_ring


def rows():
    """Positions played, and how many of them were noticed."""
    played = dict(play(deploy()))
    noticed = sum(played.values())
    missed = "; ".join(name for name, seen in played.items() if not seen)
    yield at_least("relay: positions played", len(played), 100)
    yield at_least(
        "relay: positions noticed" + (f"; not {missed}" if missed else ""), noticed, len(played)
    )


def play(run):
    """Every position's name, and whether it was noticed."""
    yield from swapped_offers(run)
    yield from rewrapped_secrets(run)
    yield from changed_envelopes(run)
    yield from changed_messages(run)
    yield from kept_and_doubled(run)
    yield from readers(run)


def refused(attempt):
    """Whether a role refuses with an error of the library; any other error is a bug, and is let through."""
    try:
        attempt()
    except VertiMRFError:
        return True
    return False


def swap(ring, key):
    """The ring as somebody sees it to whom the relay has given its own key under that name."""
    if key.party is None:
        return KeyRing(ring.parties, key)
    return KeyRing({**ring.parties, key.party: key}, ring.server)


def seen_apart(one, two):
    """Whether people who compare these plans notice."""
    return not same_fingerprint(one.fingerprint.lower().replace("-", " "), two.fingerprint)


def swapped_offers(run):
    """The relay's key in the plan, under each name in turn, and under all."""
    first = run.plan.party_names[0]
    for key in (*run.ring.parties.values(), run.ring.server):
        whose = called(key.party)
        plan = with_ring(run.plan, swap(run.ring, PrivateKey.new(key.party)))
        public, digest = plan.sealing_keys(), plan.digest()
        # Everybody has the relay's plan: its owner's every step meets its own key.
        if key.party is None:
            sent = run.messages[first]
            stale = replace(sent, plan_digest=digest).seal(plan, run.ring.parties[first])
            steps = [
                lambda plan=plan, stale=stale: Message.unseal(stale, plan, run.ring.server),
                lambda plan=plan: Message.unseal(run.sealed_messages[first], plan, run.ring.server),
            ]
        else:
            sealer = next(name for name in run.plan.party_names if name != key.party)
            envelopes = seal_secret(run.secret, digest, public, run.ring.parties[sealer])
            steps = [
                lambda digest=digest, public=public, key=key: seal_secret(
                    run.secret, digest, public, key
                ),
                lambda e=envelopes, digest=digest, public=public, key=key: open_envelope(
                    e, digest, public, key
                ),
                lambda plan=plan, key=key: replace(
                    run.messages[key.party], plan_digest=plan.digest()
                ).seal(plan, key),
            ]
        for number, step in enumerate(steps, 1):
            yield f"offer of {whose} swapped, one plan for all, step {number}", refused(step)
        # Or its owner is shown the true plan and the others the relay's.
        yield (
            f"offer of {whose} swapped, a plan for its owner and one for the rest",
            seen_apart(plan, run.plan),
        )
    for victim in run.plan.party_names:
        ring = run.ring
        for name in (*run.plan.party_names, None):
            if name != victim:
                ring = swap(ring, PrivateKey.new(name))
        yield (
            f"all offers but that of {victim!r} swapped in its plan",
            seen_apart(with_ring(run.plan, ring), run.plan),
        )


def rewrapped_secrets(run):
    """The relay between two parties: it opens the secret under one plan and seals the same secret on under another, so that
    both secrets have one fingerprint; the plans have not."""
    for sealer in run.plan.party_names:
        for victim in run.plan.party_names:
            if victim == sealer:
                continue
            as_victim, as_sealer = PrivateKey.new(victim), PrivateKey.new(sealer)
            sealers = with_ring(run.plan, swap(run.ring, as_victim))
            victims = with_ring(run.plan, swap(run.ring, as_sealer))
            given = seal_secret(
                run.secret, sealers.digest(), sealers.sealing_keys(), run.ring.parties[sealer]
            )
            _, stolen = open_envelope(given, sealers.digest(), sealers.sealing_keys(), as_victim)
            passed_on = seal_secret(stolen, victims.digest(), victims.sealing_keys(), as_sealer)
            _, taken = open_envelope(
                passed_on, victims.digest(), victims.sealing_keys(), run.ring.parties[victim]
            )
            assert taken.fingerprint == run.secret.fingerprint, "the attack went wrong by itself"
            yield (
                f"the secret of {sealer!r} opened and wrapped again for {victim!r}",
                seen_apart(sealers, victims),
            )


def changed_envelopes(run):
    """The true plan in everybody's hands; the relay even knows the secret, say from an earlier break-in."""
    sealer, *others = run.plan.party_names
    keys, digest = run.plan.sealing_keys(), run.plan.digest()
    liar = PrivateKey.new(sealer)
    lies = swap(run.ring, liar).public
    later = replace(run.plan, nonce="another run")
    replayed = seal_secret(run.secret, later.digest(), keys, run.ring.parties[sealer])
    rewrapped = seal_secret(run.secret, digest, lies, liar)
    for victim in others:
        other = next(name for name in others if name != victim)
        original, other_original = raw(run.envelopes, victim), raw(run.envelopes, other)
        variants = {
            "wrapped again with the same secret": raw(rewrapped, victim),
            "another party's": other_original,
            "another party's, renamed": with_header(other_original, to=victim),
            "of another plan": raw(replayed, victim),
            "of another plan, renamed": with_header(raw(replayed, victim), plan=digest.hex()),
            "in another party's name": with_header(original, **{"from": other}),
            "in its receiver's name": with_header(original, **{"from": victim}),
            "in the server's name": with_header(original, **{"from": None}),
            "cut": original[:-1],
            "with a byte changed": original[:-20] + bytes([original[-20] ^ 1]) + original[-19:],
            "a message instead": run.sealed_messages[sealer],
        }
        for what, data in variants.items():
            envelope = {"kind": "envelopes", "envelopes": {victim: base64.b64encode(data).decode()}}
            victim_key = run.ring.parties[victim]
            yield (
                f"envelope for {victim!r}: {what}",
                refused(lambda e=envelope, k=victim_key: open_envelope(e, digest, keys, k)),
            )
        assert open_envelope(run.envelopes, digest, keys, victim_key) == (sealer, run.secret)


def changed_messages(run):
    """Messages on their way to the server."""
    digest = run.plan.digest()
    files = run.sealed_messages

    def read(data):
        return Message.unseal(data, run.plan, run.ring.server)

    def contents(name):
        return run.messages[name].to_bytes(run.plan)

    def forged(name, sender, plan=digest, kind=KIND):
        # Whose key it is has another in the forger's own plan, for no plan has one key twice.
        others = (
            PrivateKey.new(n) for n, key in run.ring.parties.items() if key.value == sender.value
        )
        ring = swap(functools.reduce(swap, others, run.ring), sender)
        return seal(contents(name), kind, plan, ring.public, sender, None)

    other_digest = replace(run.plan, nonce="another run").digest()
    for name in run.plan.party_names:
        other = next(n for n in run.plan.party_names if n != name)
        file = files[name]
        head, chunks = cut(file)
        _, others_chunks = cut(files[other])
        assert len(chunks) > 2
        middle = sum(map(len, chunks)) // 2
        variants = {
            "in another party's name": with_header(file, **{"from": other}),
            "in a stranger's name": with_header(file, **{"from": "stranger"}),
            "written by a stranger": forged(name, PrivateKey.new(name)),
            "written by another party in its name": forged(
                name, replace(run.ring.parties[other], party=name)
            ),
            "sent by another party as its own": forged(name, run.ring.parties[other]),
            "of another plan": forged(name, run.ring.parties[name], plan=other_digest),
            "of another plan, renamed": with_header(
                forged(name, run.ring.parties[name], plan=other_digest), plan=digest.hex()
            ),
            "of another kind": forged(name, run.ring.parties[name], kind="id sample"),
            "of another kind, renamed": with_header(
                forged(name, run.ring.parties[name], kind="id sample"), kind=KIND
            ),
            "not sealed": contents(name),
            "without its last chunk": head + b"".join(chunks[:-1]),
            "without its first chunk": head + b"".join(chunks[1:]),
            "cut in the middle": file[: len(head) + middle],
            "without its last byte": file[:-1],
            "its first chunks in another order": head
            + b"".join([chunks[1], chunks[0], *chunks[2:]]),
            "a chunk twice": head + b"".join([chunks[0], *chunks]),
            "with its last chunk again": file + chunks[-1],
            "with more bytes": file + bytes(100),
            "a chunk of another party's": head + b"".join([others_chunks[0], *chunks[1:]]),
            "another party's chunks under its header": head + b"".join(others_chunks),
            "with a bit changed": file[:-1000] + bytes([file[-1000] ^ 1]) + file[-999:],
            "with another ephemeral key": with_header(
                file, ephemeral=peeked(files[other])["ephemeral"]
            ),
        }
        for what, data in variants.items():
            yield f"{KIND} of {name!r}: {what}", refused(lambda data=data: read(data))
        assert read(file).party == run.plan.party_names.index(name)


def kept_and_doubled(run):
    """Files held back, or sent twice instead of another's."""
    server = Server(run.plan)
    for name in run.plan.party_names:
        rest = [message for who, message in run.messages.items() if who != name]
        yield f"message of {name!r} held back", refused(lambda rest=rest: server.read(rest))
        yield (
            f"message of {name!r} replaced by another's",
            refused(lambda rest=rest: server.read([*rest, rest[0]])),
        )


def readers(run):
    """Whoever is not the server tries to open a message with every agreement that its keys can make, the sender's included."""
    public = run.ring.server.offer.public
    for name, file in run.sealed_messages.items():
        header, head = sealed.peek(file, "file")
        sender = run.ring.parties[name].offer.public
        others = (base64.b64decode(header["ephemeral"]), sender, public)
        for key in (PrivateKey.new("stranger"), *run.ring.parties.values()):
            shared = [key.agree(other) for other in others]
            opened = [
                sealed.open_chunks(head, _file_key(one, two, sender, public, head), file)
                for one in shared
                for two in shared
            ]
            yield f"message of {name!r} read with the key of {called(key.party)}", not any(opened)


def raw(envelopes, name):
    """A party's envelope."""
    return base64.b64decode(envelopes["envelopes"][name])


def peeked(data):
    """A sealed file's header."""
    return sealed.peek(data, "file")[0]


def with_header(data, **changes):
    """A sealed file under another header; None takes a field out, except from and to."""
    header, head = sealed.peek(data, "file")
    header = {
        k: v for k, v in {**header, **changes}.items() if v is not None or k in ("from", "to")
    }
    return sealed.pack_head(header) + data[len(head) :]


def cut(data):
    """A sealed file's header, and its chunks."""
    _, head = sealed.peek(data, "file")
    body, size = data[len(head) :], sealed.CHUNK + sealed.TAG
    return head, [body[i : i + size] for i in range(0, len(body), size)]
