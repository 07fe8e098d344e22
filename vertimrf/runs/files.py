"""The files that parties and server send each other in a run: their names and checks.

Each party sends its offer (a public key) and its message. The first party of the plan also sends
the envelopes of the secret. The server sends the plan, and forwards the envelopes. With encrypted
counts, parties also send each other hidden ids, rows and answers, which the server forwards
unopened. No other files are sent. With its result the server sends whether the parties' ids match, which it estimates
from the messages.

Rows and answers are sealed with the keys of the plan, which people compare by its fingerprint, so
that nobody on the way can replace them.
"""

from __future__ import annotations

import hashlib
import string
from dataclasses import dataclass

from ..errors import MessageError, PlanError
from ..files import sealed
from ..files.atomic import parse_json
from ..files.canonical import canonical, json_of
from ..keys import Envelopes, Offer, PrivateKey, called, open_sealed, read_head, seal
from ..plan.plan import Plan
from ..releases.release import AGAIN, ANSWERS, IDS, ROWS

SERVER = "the server"
# Folder of the results in the server's run folder.
RESULT = "result"
OFFER, PLAN, ENVELOPES, MESSAGE = "offer", "plan", "envelopes", "message"
MATCH = "match"
# The step that compares ids with other parties, and what says in a folder that it is done.
SAME_IDS = "same-ids"
# By kind of a file between parties, the steps that its sender needs first.
NEEDS = {
    IDS: (),
    AGAIN: (f"{IDS} of others",),
    ROWS: (SAME_IDS,),
    ANSWERS: (SAME_IDS, f"{ROWS} of others"),
}
# Digests, names and layout of a file of rows or answers, bytes.
BETWEEN_HEADER = 1 << 12
# Longer names of parties are cut and get a digest, because file systems allow 255 bytes.
MAX_LENGTH = 100
# Characters that stay as they are. Some file systems do not distinguish capital letters from small
# ones.
PLAIN = frozenset(string.ascii_lowercase + string.digits + "_-")


def file_name(party: str) -> str:
    """A unique file name for a party's name. It cannot lead out of a folder."""
    name = "".join(
        c if c in PLAIN else "".join(f"%{byte:02X}" for byte in c.encode()) for c in party
    )
    return (
        name
        if len(name) <= MAX_LENGTH
        else f"{name[:MAX_LENGTH]}-{hashlib.sha256(party.encode()).hexdigest()[:32]}"
    )


def read_offer(party: str, data: bytes) -> Offer:
    """Read a party's offer.

    Raises:
        MessageError: the data is no offer, or another party's.
    """
    offer = Offer.from_json(parse_json(data, "The offer", "offer", MessageError))
    if offer.party != party:
        raise MessageError(
            f"The offer is that of {called(offer.party)}, not of {party!r}; each party must send its own."
        )
    return offer


def read_plan(key: PrivateKey, data: bytes) -> Plan:
    """Read a plan that a party may accept.

    Args:
        key: the party's private key.
        data: the plan file.

    Raises:
        PlanError: the data is no plan, the plan lacks this party's key, or its encoder is not
            private.
    """
    plan = Plan.from_json(parse_json(data, "The plan", "plan", PlanError))
    plan.sealing_keys().check(key)
    if plan.sketch.claimed_share:
        raise PlanError(
            "The plan asks for the published encoder, which gives complete records away: do not accept it."
        )
    return plan


def tells_match(plan: Plan) -> bool:
    """Whether the messages of a plan tell how many people parties have in common."""
    return plan.sketch.tells_matches and len(plan.party_names) > 1


def match_of(plan: Plan, few: bool) -> bytes:
    """The file that says whether parties have few people in common."""
    return canonical({"plan": plan.digest().hex(), "few": few})


def read_match(plan: Plan, data: bytes) -> bool:
    """Whether parties have few people in common, by a file of the server.

    Raises:
        MessageError: the data is no such file, or of another plan.
    """
    content = parse_json(data, "The match", "match", MessageError)
    for few in (True, False):
        if content == json_of(match_of(plan, few)):
            return few
    raise MessageError("The match is of another plan, or malformed: it is of another run.")


def match_in_words(few: bool) -> str:
    """Words on whether parties have few people in common, with the remedy."""
    if not few:
        return "by the messages, the ids of the parties match"
    return (
        "by the messages, the parties have FAR FEWER people in common than the plan expects. If they should be the same people, "
        "compare how ids are written (`vertimrf align` at the parties), and run a new plan; both epsilons add up"
    )


def ids_in_words(plan: Plan | None) -> str:
    """Words on the form of ids in a plan; empty if it states none."""
    form = None if plan is None else plan.schema.ids
    return "" if form is None else f", and ids of the form {form!r}"


def check_envelopes(plan: Plan, data: bytes) -> None:
    """Check envelopes without opening them. There must be one for each party but the first.

    Raises:
        MessageError: the data are no envelopes, or those of another plan or party.
    """
    content = parse_json(data, "The file of envelopes", "file of envelopes", MessageError)
    envelopes = Envelopes.from_json(content, ENVELOPES, "The file of envelopes").envelopes
    sender, *others = plan.party_names
    if sorted(envelopes) != sorted(others):
        raise MessageError(
            f"The envelopes are not for {', '.join(others)}: they are of another run."
        )
    for name in others:
        header, _ = read_head(envelopes[name], f"The envelope for {name!r}")
        if (header.plan, header.sender, header.to) != (plan.digest().hex(), sender, name):
            raise MessageError(
                f"The envelope for {name!r} is of another plan or party: it is of another run."
            )


@dataclass(frozen=True)
class Between:
    """A sealed file from one party to another, which the server forwards.

    Attributes:
        kind: "ids", "ids-again", "rows" or "answers".
        name: its name, by which no other file of the run goes.
        sender: name of the party that sends it.
        receiver: name of the party that can open it.
        piece: which piece of the sender's rows it is, from 0 on; 0 for answers.
        max_bytes: largest size, bytes. It follows from the plan.
    """

    kind: str
    name: str
    sender: str
    receiver: str
    piece: int
    max_bytes: int

    def check(self, plan: Plan, data: bytes) -> None:
        """Check the file without opening it.

        Raises:
            MessageError: it is no such file, or one of another plan or party.
        """
        header, _ = read_head(data, f"The {self.name} of {self.sender!r}")
        of = (header.kind, header.plan, header.sender, header.to)
        if of != (self.kind, plan.digest().hex(), self.sender, self.receiver):
            raise MessageError(
                f"The {self.name} of {self.sender!r} is of another plan or party: it is of another run."
            )

    def seal(self, plan: Plan, key: PrivateKey, contents: bytes) -> bytes:
        """The file, from its sender."""
        return seal(contents, self.kind, plan.digest(), plan.sealing_keys(), key, self.receiver)

    def open(self, plan: Plan, key: PrivateKey, data: bytes) -> bytes:
        """The contents, for the receiver.

        Raises:
            MessageError: it is no such file, or cannot be opened.
        """
        self.check(plan, data)
        where = f"The {self.name} of {self.sender!r}"
        return open_sealed(data, self.kind, plan.digest(), plan.sealing_keys(), key, where)[1]


def between(plan: Plan | None) -> list[Between]:
    """The files between parties. A file is called after its sender and receiver by their places in
    the plan, and from the second piece on after its piece.
    """
    if plan is None:
        return []
    names = plan.party_names
    return [
        Between(
            kind,
            f"{kind}-{sender + 1}-{receiver + 1}" + f"-{piece + 1}" * bool(piece),
            names[sender],
            names[receiver],
            piece,
            sealed.most_bytes(size + BETWEEN_HEADER),
        )
        for kind, sender, receiver, piece, size in plan.sketch.files(plan.groups_by_party)
    ]
