"""Mutation testing: would the tests notice if the code that keeps the privacy claim were wrong?

Every mutant is one change to one file, in a copy of the package; the tests that are about that file run until one fails. A mutant
that none notices has survived: a test is missing. Mutations are mistakes that somebody could make, or once made, each a piece of
code and what takes its place. Code is compared token by token, whatever its layout. When it no longer stands in its file exactly
once, the run stops and says so: rewrite the mutation along with the code.

The golden file of the encoder takes no part: it notices every change of the hash and says nothing of what is wrong with it.
Processes are forked from one that has the libraries loaded, so that a mutant takes seconds; POSIX only. Tests run in a copy, and
compiled kernels are kept there from mutant to mutant: kernels themselves are not mutated.

    python tests/tools/mutants.py [--only TEXT ...] [--jobs N]
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import functools
import json
import multiprocessing
import os
import re
import shutil
import signal
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from multiprocessing import forkserver
from pathlib import Path
from queue import SimpleQueue

ROOT = Path(__file__).resolve().parents[2]
# Loaded once, before anything is mutated.
LIBRARIES = [
    "numpy",
    "scipy.stats",
    "scipy.signal",
    "scipy.optimize",
    "numba",
    "pandas",
    "pyarrow",
    "opendp.prelude",
    "pytest",
    "hypothesis",
    "networkx",
    "cryptography.hazmat.primitives.ciphers.aead",
    "dp_accounting.pld.pld_pmf",
    "mpmath",
]
# Modules, or folders of them, whose docstrings promise what keeps the privacy claim true. Every mutation of them quotes what it breaks.
PROMISING = (
    "privacy/",
    "party/",
    "columns/private.py",
    "columns/number_range.py",
    "releases/encrypted_counts/counts.py",
    "releases/encrypted_counts/encoding.py",
    "releases/encrypted_counts/packing.py",
    "releases/encrypted_counts/lattice.py",
    "releases/encrypted_counts/positions.py",
    "keys.py",
    "message.py",
    "files/sealed.py",
    "releases/count_sketches/agreement.py",
)
# A mutant that makes the tests run longer than this has been noticed.
SECONDS = 180.0

TOKEN = re.compile(
    r"""(?P<layout>\s+|\#[^\n]*)|[rbfuRBFU]{0,2}(?:\"{3}.*?\"{3}|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')|\w+|.""",
    re.DOTALL | re.VERBOSE,
)


@functools.cache
def lexed(code):
    """Tokens of a piece of Python, each with its begin and end in the text.

    Layout, comments and the kind of quotes are left out, and commas right before a closing bracket.
    """
    tokens = [
        (one[0], one.start(), one.end()) for one in TOKEN.finditer(code) if one.lastgroup is None
    ]
    following = [*(token for token, *_ in tokens[1:]), ""]
    kept = [
        one
        for one, after in zip(tokens, following, strict=True)
        if one[0] != "," or after not in list(")]}")
    ]
    return [
        (token if '"' in token else token.replace("'", '"'), begin, end)
        for token, begin, end in kept
    ]


def places(text, code):
    """Begin and end of every place in a text that has the same tokens as a piece of code, and what stays behind the code.

    The text may have pairs of brackets besides that a formatter puts around what it breaks into lines. Where such a pair begins
    within the code and ends behind it, the place ends with the pair.
    """
    tokens, wanted = lexed(text), [token for token, *_ in lexed(code)]
    for first in (i for i, (token, *_) in enumerate(tokens) if token == wanted[0]):
        i, j, extra = first, 0, 0
        while i < len(tokens) and j < len(wanted):
            token = tokens[i][0]
            if token == wanted[j]:
                j += 1
            elif token == "(" or (token == ")" and extra):
                extra += 1 if token == "(" else -1
            else:
                break
            i += 1
        if j == len(wanted):
            rest, inner = [], 0
            while extra:
                token, begin, end = tokens[i]
                inner += {"(": 1, ")": -1}.get(token, 0)
                if inner < 0:
                    extra, inner = extra - 1, 0
                else:
                    rest.append(text[begin:end])
                i += 1
            yield tokens[first][1], tokens[i - 1][2], " ".join(["", *rest])


@functools.cache
def docstrings(text):
    """Docstrings of a module's text and of all that it defines, each in one line."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    nodes = (node for node in ast.walk(ast.parse(text)) if isinstance(node, documented))
    return [" ".join((ast.get_docstring(node) or "").split()) for node in nodes]


@dataclass(frozen=True)
class Mutation:
    """One change to one file.

    Attributes:
        name: what it does wrong.
        file: below the package.
        before: code of the file, there exactly once, however it is laid out.
        after: what takes its place.
        tests: below ``tests``, in order, the quickest to notice first, with blanks between them; node ids or files.
        promise: words of a docstring of the file that are wrong with it. Every module of :data:`PROMISING` has such a mutation.
    """

    name: str
    file: str
    before: str
    after: str
    tests: str
    promise: str = ""

    def apply(self, text):
        """The file's text, mutated.

        Raises:
            SystemExit: the code is not there, or more than once.
        """
        matches = list(places(text, self.before))
        if len(matches) != 1:
            sys.exit(
                f"Mutation {self.name!r} no longer applies: {self.file} has its code {len(matches)} times, not once."
            )
        ((begin, end, rest),) = matches
        mutated = text[:begin] + self.after.strip() + rest + text[end:]
        ast.parse(mutated)
        return mutated

    def quotes(self, text):
        """Whether the promise that it breaks stands in a docstring of the file's text."""
        return any(self.promise in words for words in docstrings(text))

    @property
    def chosen_tests(self):
        """Tests to run."""
        return self.tests.split()


@dataclass(frozen=True)
class Outcome:
    """What became of a mutant.

    Attributes:
        name: of the mutation.
        by: the first test that failed; "time" when they took too long; empty when it survived.
        seconds: how long it took.
    """

    name: str
    by: str
    seconds: float

    @property
    def killed(self):
        """Whether a test failed, or none came to an end in time."""
        return bool(self.by)


NAMED = (
    Mutation(
        "a party releases before its operator has accepted the plan",
        "runs/party_run.py",
        "return plan if plan is not None and self._is_accepted(plan) else None",
        "return plan",
        "runs/test_runs.py::test_nothing_but_the_offer_leaves_before_the_plan_is_accepted",
    ),
    Mutation(
        "a plan is accepted although nobody said yes to the table",
        "cli/run.py",
        "if not anyway and not _said_yes(",
        "if False and not _said_yes(",
        "runs/test_run_commands.py::test_ids_that_no_other_party_has_are_not_released_without_the_operators_word",
    ),
    Mutation(
        "a party waits for its operator only if a check finds something",
        "cli/run.py",
        "if not anyway and not _said_yes(",
        "if problems and not anyway and not _said_yes(",
        "test_refusals.py::test_no_record_decides_whether_a_run_waits_for_its_operator",
    ),
    Mutation(
        "a table that was written during the check is accepted with it",
        "cli/run.py",
        "click.echo(role.accept(words, as_it_is))",
        "click.echo(role.accept(words))",
        "runs/test_run_commands.py::test_a_table_changed_between_the_check_and_the_answer_is_not_accepted",
    ),
    Mutation(
        "a table that was written after the acceptance is released",
        "runs/party_run.py",
        "done=accepted is not None and self._is_looked_at(accepted)",
        "done=accepted is not None",
        "runs/test_run_commands.py::test_a_table_written_after_the_acceptance_waits_for_another",
    ),
    Mutation(
        "the size of a table, and not its time, says whether it was written",
        "tables/sources.py",
        "part.path.stat().st_mtime_ns for part in parts",
        "part.path.stat().st_size for part in parts",
        "runs/test_run_commands.py::test_a_table_written_after_the_acceptance_waits_for_another",
    ),
    Mutation(
        "with the secret, a message waits for no operator any more",
        "runs/party_run.py",
        'needs=(ACCEPTANCE, SECRET, f"{ANSWERS} of others")',
        'needs=(SECRET, f"{ANSWERS} of others")',
        "runs/test_run_commands.py::test_a_table_written_after_the_acceptance_waits_for_another",
    ),
    Mutation(
        "with the secret, rows and answers wait for no operator any more",
        "runs/party_run.py",
        'needs=(ACCEPTANCE, SECRET, *([] if file.kind == ROWS else [f"{ROWS} of others"]))',
        'needs=(SECRET, *([] if file.kind == ROWS else [f"{ROWS} of others"]))',
        "runs/test_encrypted_runs.py::test_rows_and_answers_wait_for_the_word_on_a_table_written_since",
    ),
    Mutation(
        "a command that waits keeps the settings it began with",
        "runs/party_run.py",
        "return settings_as(PartySettings, read_settings(self.folder), self.folder)",
        "return settings_as(PartySettings, self._folder.settings, self.folder)",
        "runs/test_run_commands.py::test_a_table_written_after_the_acceptance_waits_for_another",
    ),
    Mutation(
        "a run begins without its column of ids",
        "runs/party_run.py",
        "if doubt := check_ids(where, id, read):",
        'if doubt := "":',
        "runs/test_run_commands.py::test_a_wrong_column_of_ids_is_noticed_before_the_offer",
    ),
    Mutation(
        "few ids hold an offer back",
        "runs/party_run.py",
        'LOG.warning("%s", doubt)',
        "raise TableError(doubt)",
        "test_refusals.py::test_no_record_decides_whether_a_run_waits_for_its_operator",
    ),
    Mutation(
        "a party accepts a plan by any fingerprint",
        "runs/party_run.py",
        "if not same_fingerprint(fingerprint, plan.fingerprint):",
        "if False:",
        "runs/test_runs.py::test_nothing_but_the_offer_leaves_before_the_plan_is_accepted",
    ),
    Mutation(
        "a party takes the secret of whoever sealed one",
        "runs/party_run.py",
        "if sender != plan.party_names[0]:",
        "if sender not in plan.party_names:",
        "runs/test_runs.py::test_an_envelope_of_any_other_party_is_refused",
    ),
    Mutation(
        "a party takes a plan with another key in its name",
        "runs/files.py",
        "plan.sealing_keys().check(key)",
        "plan.sealing_keys()",
        "runs/test_runs.py::test_a_plan_without_this_partys_key_or_name_is_refused_and_the_right_one_taken",
    ),
    Mutation(
        "a run writes over what came before",
        "runs/folder.py",
        "if first != data:\n",
        "if self.write(data, RECEIVED, *place) is not None:\n",
        "runs/test_runs.py::test_what_comes_twice_is_ignored_and_what_is_different_refused",
    ),
    Mutation(
        "the server takes the secret's envelopes from any party",
        "runs/steps.py",
        "if step.takes is not None and step.takes.party == party\n",
        "if step.takes is not None\n",
        "runs/test_runs.py::test_only_the_first_party_of_the_plan_draws_the_secret",
    ),
    Mutation(
        "work begins before the steps that it needs are done",
        "runs/steps.py",
        "if set(undone).intersection(self.needs):",
        "if not set(undone).issuperset(self.needs):",
        "runs/test_runs.py",
    ),
    Mutation(
        "the server takes a message in another party's name",
        "runs/server_run.py",
        "if (sender := plan.party_names[message.party]) != party:",
        "if not (sender := plan.party_names[message.party]):",
        "runs/test_runs.py::test_files_of_another_run_are_refused_and_do_not_stop_the_rest",
    ),
    Mutation(
        "an exchange believes an upload that was cut",
        "runs/exchange.py",
        "return data if len(file) >= DIGEST and hashlib.sha256(data).digest() == file[-DIGEST:] else None",
        "return data",
        "runs/test_exchange.py::test_an_upload_that_was_cut_is_not_there_and_is_put_again",
    ),
    Mutation(
        "an upload that was cut is no file, without a word",
        "runs/exchange.py",
        "if content is None:\n            who",
        "if content is None:\n            return None\n            who",
        "runs/test_waiting.py::test_a_file_that_lies_there_cut_is_named_with_its_sender_until_it_is_whole",
    ),
    Mutation(
        "a storage keeps a command waiting",
        "runs/exchange.py",
        "if not wait([work], limit).done:",
        "if not wait([work]).done:",
        "runs/test_waiting.py::test_a_command_ends_though_a_storage_takes_the_question_and_never_answers",
    ),
    Mutation(
        "a process waits for a storage when it ends",
        "__main__.py",
        "_leave_behind(end.code)",
        "pass",
        "runs/test_waiting.py::test_a_command_ends_though_a_storage_takes_the_question_and_never_answers",
    ),
    Mutation(
        "each look asks a storage that does not answer once more",
        "runs/exchange.py",
        "if self._work is not None:",
        "if False:",
        "runs/test_waiting.py::test_a_storage_that_does_not_answer_is_said_and_waited_for_before_the_next_question",
    ),
    Mutation(
        "a refusal of credentials is tried again for ever",
        "runs/exchange.py",
        "if error.errno in LASTING or LASTING_TEXT.search(text):",
        "if error.errno in LASTING:",
        "runs/test_waiting.py::test_a_storage_that_refuses_this_account_ends_a_command_that_waits",
    ),
    Mutation(
        "a folder without rights is tried again for ever",
        "runs/exchange.py",
        "if error.errno in LASTING or LASTING_TEXT.search(text):",
        "if LASTING_TEXT.search(text):",
        "runs/test_waiting.py::test_a_folder_without_rights_ends_a_command_that_waits",
    ),
    Mutation(
        "a file that may not be read holds up all others",
        "runs/exchange.py",
        "except (ObstacleError, PlaceError) as error:",
        "except ObstacleError as error:",
        "runs/test_waiting.py::test_a_file_that_this_account_may_not_read_holds_up_no_other_one",
    ),
    Mutation(
        "an exchange that cannot be reached is not on record",
        "runs/exchange.py",
        "run.note({exchange.place: str(error)})",
        "pass",
        "runs/test_waiting.py::test_a_place_that_cannot_be_reached_is_in_status_since_when_until_it_can",
    ),
    Mutation(
        "what was in the way stays on record",
        "runs/exchange.py",
        "        run.note(troubles)\n",
        "        run.note(troubles) if troubles else None\n",
        "runs/test_waiting.py",
    ),
    Mutation(
        "the credentials in an address are in sentences",
        "runs/exchange.py",
        """self.place = re.sub(r"(://[^/@:]*):[^/]*@", r"\\1:…@", self._address)""",
        "self.place = self._address",
        "runs/test_waiting.py::test_credentials_in_an_address_are_in_no_sentence",
    ),
    Mutation(
        "each look begins the time of a step that waits anew",
        "runs/waiting.py",
        "{step: self.since.get(step, now) for step in steps}",
        "dict.fromkeys(steps, now)",
        "runs/test_waiting.py::test_each_step_that_waits_says_since_when_and_no_other_one",
    ),
    Mutation(
        "trouble begins anew when its sentence changes",
        "runs/waiting.py",
        "first.get(of) or utc(lasted.get(of, 0.0))",
        "utc(lasted.get(of, 0.0))",
        "runs/test_waiting.py::test_trouble_keeps_its_first_time_by_whom_it_concerns",
    ),
    Mutation(
        "a sentence that stays true is said once",
        "runs/waiting.py",
        "(sentence != self._said or now - self._at >= AGAIN)",
        "sentence != self._said",
        "runs/test_waiting.py::test_a_sentence_is_said_when_it_is_new_and_again_after_minutes",
    ),
    Mutation(
        "an exchange reads through a link in the place of a file",
        "files/atomic.py",
        "(0 if links else os.O_NOFOLLOW)",
        "0",
        "files/test_atomic.py runs/test_exchange.py::test_no_link_is_read_through",
    ),
    Mutation(
        "a schema of another party reads through a link beside it",
        "plan/value_files.py",
        "left, links=False",
        "left, links=True",
        "test_new_user.py::test_a_schema_of_another_party_names_no_file_of_its_reader",
    ),
    Mutation(
        "a schema of another party names any file of its reader's folder",
        "plan/value_files.py",
        'not name.startswith(f"{path.stem}.")',
        "False",
        "test_new_user.py::test_a_schema_of_another_party_names_no_file_of_its_reader",
    ),
    Mutation(
        "a form of ids that was read off data needs no sign-off",
        "plan/schema.py",
        "DRAFTED in (self.ids_source, *(",
        "DRAFTED in (None, *(",
        "test_new_user.py::test_ids_written_in_two_ways_are_refused_before_there_is_a_plan",
    ),
    Mutation(
        "an exchange reads and writes through a link in the place of a folder",
        "files/shared_folder.py",
        "        return os.open(name, FOLDER | os.O_NOFOLLOW, dir_fd=at)\n    except",
        "        return os.open(name, FOLDER, dir_fd=at)\n    except",
        "runs/test_exchange.py::test_no_link_is_read_through",
    ),
    Mutation(
        "an exchange waits for a pipe",
        "files/atomic.py",
        "os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY",
        "os.O_RDONLY | os.O_NOCTTY",
        "files/test_atomic.py",
    ),
    Mutation(
        "pipes and devices are read like files",
        "files/atomic.py",
        "if not stat.S_ISREG(mode):",
        "if stat.S_ISDIR(mode):",
        "files/test_atomic.py",
    ),
    Mutation(
        "a result takes the place of a pipe or a device",
        "files/results.py",
        "return stat.S_ISFIFO(mode) or stat.S_ISCHR(mode)",
        "return False",
        "cli/test_outputs.py",
    ),
    Mutation(
        "a result takes the place of a link",
        "files/results.py",
        "elif stat.S_ISLNK(mode):",
        "elif stat.S_ISDIR(mode):",
        "cli/test_outputs.py",
    ),
    Mutation(
        "a result takes the place of a socket",
        "files/results.py",
        "elif not stat.S_ISREG(mode):",
        "elif stat.S_ISDIR(mode):",
        "cli/test_outputs.py",
    ),
    Mutation(
        "a disk is written to like a terminal",
        "files/results.py",
        "return stat.S_ISFIFO(mode) or stat.S_ISCHR(mode)",
        "return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode) and not stat.S_ISSOCK(mode)",
        "cli/test_outputs.py",
    ),
    Mutation(
        "outputs are looked at when the work is done",
        "cli/outputs.py",
        "    for path in named:\n        check_result(path)\n",
        "",
        "cli/test_outputs.py",
    ),
    Mutation(
        "a saved key takes the place of a link",
        "keys.py",
        "        save(path, self.to_text())",
        "        __import__('os').replace(__import__('tempfile').mkstemp(dir=Path(path).parent)[1], path)",
        "cli/test_outputs.py",
        promise="never in place of a link",
    ),
    Mutation(
        "an input is overwritten by another of its names",
        "cli/outputs.py",
        "if path is not None and os.path.realpath(path) in files",
        "if path is not None and os.path.abspath(path) in files",
        "cli/test_outputs.py",
    ),
    Mutation(
        "a delta is composed whose parts are no numbers",
        "privacy/accountant.py",
        "not LEAST_DELTA <= delta < 1",
        "not 0 < delta < 1",
        "test_limits.py",
        promise="it is below 1e-300, or not below 1",
    ),
    Mutation(
        "a message of any number of megabytes is planned",
        "cli/options.py",
        "if not least <= message_mb <= most:",
        "if not 0 < message_mb:",
        "test_limits.py",
    ),
    Mutation(
        "more rows are drawn than there is memory for",
        "model/sample.py",
        "if (needed := 2 * rows * columns) > memory():",
        "if (needed := 2 * rows * columns) < 0:",
        "test_limits.py",
    ),
    Mutation(
        "the budget of a search for domains is looked at only if something is searched for",
        "cli/schema.py",
        "    check_budget(epsilon, delta, records_per_person)\n",
        "",
        "test_limits.py",
    ),
    Mutation(
        "a run whose settings name no role is that of a None",
        "runs/folder.py",
        'if role not in ("party", "server"):',
        "if False:",
        "test_files_of_runs.py",
    ),
    Mutation(
        "a match is a schema",
        "cli/inspect.py",
        'content.keys() == {"plan", "few"}',
        'content.keys() == {"plan"}',
        "test_files_of_runs.py",
    ),
    Mutation(
        "a formula in a table for spreadsheets stays one",
        "tables/csv_safe.py",
        "return pc.if_else(runs, marked, column)",
        "return column",
        "tables/test_csv_safe.py",
    ),
    Mutation(
        "a formula behind a blank stays one",
        "tables/csv_safe.py",
        'FORMULA = r"^[\\s\\p{Z}\\p{C}]*[=+\\-@＝＋－＠]|^[\\t\\r\\n]"',
        'FORMULA = r"^[=+\\-@＝＋－＠]|^[\\t\\r\\n]"',
        "tables/test_csv_safe.py",
    ),
    Mutation(
        "a number in a table for spreadsheets becomes a text",
        "tables/csv_safe.py",
        "runs = pc.and_not(pc.match_substring_regex(column, FORMULA), pc.match_substring_regex(column, NUMBER))",
        "runs = pc.match_substring_regex(column, FORMULA)",
        "tables/test_csv_safe.py",
    ),
    Mutation(
        "a column's name is a formula for a spreadsheet",
        "tables/csv_safe.py",
        "names=names.to_pylist()",
        "names=table.column_names",
        "tables/test_csv_safe.py",
    ),
    Mutation(
        "a damaged file keeps its reader busy for ever",
        "tables/apart.py",
        "timer.start()",
        "pass",
        "tables/test_sources.py::test_a_reader_has_so_much_time_and_memory",
    ),
    Mutation(
        "a damaged file asks for all memory",
        "tables/apart.py",
        "resource.setrlimit(resource.RLIMIT_AS, (most, most))",
        "pass",
        "tables/test_sources.py::test_a_reader_has_so_much_time_and_memory",
    ),
    Mutation(
        "batches of a file without rows never end",
        "tables/apart.py",
        "if 'row_limit' not in given or len(columns[wanted[0]]) < ROWS:",
        "if False:",
        "tables/test_sources.py::test_a_file_without_rows_is_a_table_without_rows",
    ),
    Mutation(
        "a draft is made, and renamed, by names that lead elsewhere by then",
        "files/shared_folder.py",
        "replacing(last, synced=True, dir_fd=folder)",
        "replacing(self._root.joinpath(*parts, last), synced=True)",
        "runs/test_exchange.py::test_a_folder_that_is_swapped_for_a_link_in_the_middle_of_a_write_leads_nowhere",
    ),
    Mutation(
        "a record takes the place of one that another process made",
        "files/atomic.py",
        "        if once:\n",
        "        if once and not target.exists():\n",
        "party/test_releases.py::test_of_several_processes_at_once_one_alone_releases files/test_atomic.py",
    ),
    Mutation(
        "a record has its name before it is on the disk",
        "files/atomic.py",
        "                os.fsync(file.fileno())\n",
        "                pass\n",
        "party/test_releases.py::test_a_full_disk_or_a_file_system_without_links_releases_nothing",
    ),
    Mutation(
        "an exchange reads all that somebody puts there",
        "files/shared_folder.py",
        "file.read(min(os.fstat(file.fileno()).st_size, most) + 1)",
        "file.read()",
        "runs/test_exchange.py::test_no_more_is_read_than_a_file_may_have",
    ),
    Mutation(
        "what is in the way of one party holds up all",
        "runs/exchange.py",
        "except (ObstacleError, PlaceError) as error:",
        "except PlaceError as error:",
        "runs/test_exchange.py::test_a_link_to_the_servers_own_folder_does_not_make_it_write_over_its_plan",
    ),
    Mutation(
        "who writes first under a party's name keeps it",
        "runs/exchange.py",
        "        self._ask(lambda store: store.write(path, data + digest), size)\n",
        "        other or self._ask(lambda store: store.write(path, data + digest), size)\n",
        "runs/test_exchange.py::test_who_writes_first_under_a_name_does_not_block_it",
    ),
    Mutation(
        "a run folder may lie within an exchange",
        "runs/exchange.py",
        "for inner, outer in ((folder, place), (place, folder)):",
        "for inner, outer in ((place, folder),):",
        "runs/test_exchange.py::test_a_place_within_a_run_folder_and_a_run_folder_within_a_place_are_refused",
    ),
    Mutation(
        "a party takes a plan with the published encoder",
        "runs/files.py",
        "if plan.sketch is not None and plan.sketch.claimed_share:",
        "if plan.sketch is None:",
        "runs/test_runs.py::test_a_plan_with_the_published_encoder_is_refused",
    ),
    Mutation(
        "the server passes envelopes for anybody on",
        "runs/files.py",
        "if sorted(envelopes) != sorted(others):",
        "if not envelopes:",
        "runs/test_runs.py::test_envelopes_for_others_than_the_plans_other_parties_are_refused",
    ),
    Mutation(
        "a result has its name before it is on the disk",
        "runs/server_run.py",
        "for path in (*draft.iterdir(), draft):",
        "for path in (draft,):",
        "runs/test_runs.py::test_the_result_is_on_the_disk_before_it_has_its_name",
    ),
    Mutation(
        "parties whose ids have different forms are merged",
        "plan/merge.py",
        "if len(forms) > 1:",
        "if False:",
        "test_new_user.py::test_ids_written_in_two_ways_are_refused_before_there_is_a_plan",
    ),
    Mutation(
        "a form of ids copies a person's characters",
        "plan/id_form.py",
        "and not PARTS.sub('', form)",
        "",
        "plan/test_id_form.py::test_what_is_no_form_is_refused",
    ),
    Mutation(
        "ids without the form are not counted",
        "party/check.py",
        "if not self._unfit:",
        "if True:",
        "test_new_user.py::test_check_says_how_many_ids_do_not_fit",
        promise="A sentence about the ids that do not have the form",
    ),
    Mutation(
        "after a bad match a party is told that ids match",
        "runs/server_run.py",
        "match_of(plan, few=True)",
        "match_of(plan, few=False)",
        "test_new_user.py::test_after_a_bad_match_every_role_says_so_and_names_the_remedy",
    ),
    Mutation(
        "a party believes what a server says of another plan's ids",
        "runs/files.py",
        "if content == json_of(match_of(plan, few)):",
        "if content.get('few') == few:",
        "runs/test_runs.py::test_whether_ids_match_is_believed_of_this_plan_alone",
    ),
    Mutation(
        "a party's run is over before the server has said whether ids match",
        "runs/party_run.py",
        "done=data is not None,",
        "done=self.released,",
        "runs/test_match.py",
    ),
    Mutation(
        "a party believes a match that comes before its message",
        "runs/party_run.py",
        "            name=MATCH,\n            needs=(MESSAGE,),\n",
        "            name=MATCH,\n",
        "runs/test_match.py",
    ),
    Mutation(
        "over Flower a run ends before nodes have the last file",
        "flower/conversation.py",
        "while left := self._untold():",
        "while left := []:",
        "flower/test_conversation.py",
    ),
    Mutation(
        "over Flower nobody is told that ids do not match",
        "flower/conversation.py",
        "        except VertiMRFError:\n            self._tell()\n",
        "        except VertiMRFError:\n",
        "flower/test_conversation.py",
    ),
    Mutation(
        "a node that failed counts as one that has the last file",
        "flower/conversation.py",
        "if MATCH in carried and parcel.word in (DONE, CARRIED):",
        "if MATCH in carried:",
        "flower/test_conversation.py",
    ),
    Mutation(
        "an answer that was lost with an error is waited for",
        "flower/conversation.py",
        "self._questions.clear()",
        "self._questions.keys()",
        "flower/test_conversation.py",
    ),
    Mutation(
        "a node that stays away holds up the end of the app",
        "flower/conversation.py",
        "if self._clock() > end:",
        "if self._clock() > end + 86400:",
        "flower/test_conversation.py",
    ),
    Mutation(
        "a file that could not be put counts as carried",
        "flower/client_app.py",
        "word = word if put else FAILED",
        "word = word if put else CARRIED",
        "flower/test_client_app.py",
    ),
    Mutation(
        "samples of ids are as long as there are people",
        "party/alignment.py",
        "for digest in digests + nobody[len(digests) :])",
        "for digest in digests)",
        "test_lengths.py",
        promise="every list is padded to the same length",
    ),
    Mutation(
        "people can be followed from list to list of a sample, padding cannot",
        "party/alignment.py",
        "person=bytes([number])",
        'person=b""',
        "test_lengths.py::test_nobody_can_be_followed_from_list_to_list",
        promise="no person can be followed from list to list",
    ),
    Mutation(
        "samples of ids are padded anew each time",
        "party/alignment.py",
        "drawn = key.derive(",
        "drawn = PrivateKey.new(None).derive(",
        "test_lengths.py::test_padding_is_the_same_in_every_sample_and_for_every_reader",
        promise="a second sample has the same",
    ),
    Mutation(
        "two processes work on one run",
        "runs/folder.py",
        "fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)",
        "fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)",
        "runs/test_runs.py::test_the_lock_is_held_through_turns_and_let_go",
    ),
    Mutation(
        "what went wrong at a party is told to the network",
        "flower/client_app.py",
        "        answer = Parcel(name, FAILED)\n",
        "        raise\n",
        "flower/test_client_app.py",
    ),
    Mutation(
        "a node that nobody knows is given a party's files",
        "flower/conversation.py",
        "files = self._outgoing.get(party, {})",
        "files = self._outgoing.get(party or self._run.parties[0], {})",
        "flower/test_conversation.py",
    ),
    Mutation(
        "a node registered as one party may speak for another",
        "flower/conversation.py",
        "if node.name and node.name != party:",
        "if False:",
        "flower/test_conversation.py",
    ),
    Mutation(
        "the last node that claims a party speaks for it",
        "flower/conversation.py",
        "elif self._seats.get(party, node.node_id) != node.node_id:",
        "elif False:",
        "flower/test_conversation.py",
    ),
    Mutation(
        "a node that does not answer is not named",
        "flower/conversation.py",
        "elif party in asked:",
        "elif False:",
        "flower/test_conversation.py::test_a_node_that_goes_away_is_named_in_the_log_and_in_status_until_it_is_back",
    ),
    Mutation(
        "a node at work is named as silent between two answers in time",
        "flower/conversation.py",
        "        else:\n            self._since.pop(party, None)\n",
        "",
        "flower/test_conversation.py",
    ),
    Mutation(
        "a node that was told is missed",
        "flower/conversation.py",
        "[party for party in self._run.parties if party not in self._told]",
        "list(self._run.parties)",
        "flower/test_conversation.py",
    ),
    Mutation(
        "a run that goes on keeps what was in its way on record",
        "flower/conversation.py",
        "self._tell()\n        self._run.note({})",
        "self._tell()",
        "flower/test_conversation.py",
    ),
    Mutation(
        "a node whose file does not open keeps its seat",
        "flower/conversation.py",
        "        if left:\n",
        "        if False:\n",
        "flower/test_conversation.py",
    ),
    Mutation(
        "files that the network has for another party are taken",
        "flower/client_app.py",
        "run.advance(asked.files if asked.party == name else {})",
        "run.advance(asked.files)",
        "flower/test_client_app.py",
    ),
    Mutation(
        "names from the network may lead out of a folder",
        "flower/parcel.py",
        'NAME = re.compile(r"[a-z][a-z0-9 -]{0,39}")',
        'NAME = re.compile(r".+")',
        "flower/test_client_app.py",
    ),
    Mutation(
        "histograms of private domains have half of the noise that is priced",
        "columns/private.py",
        "return search.noise.geometrics(counts, scale), scale",
        "return search.noise.geometrics(counts, scale / 2), scale",
        "party/test_private_domains.py",
        promise="Every figure that is read from the data is an event.",
    ),
    Mutation(
        "points of private domains are chosen by their exact counts",
        "columns/private.py",
        "points = self._points(values, noisy, event.threshold)",
        "points = self._points(values, counts, event.threshold)",
        "columns/test_private_points.py party/test_private_domains.py",
        promise="from noisy counts that reach the threshold alone",
    ),
    Mutation(
        "points of private domains are not taken out of the histograms",
        "columns/private.py",
        "rest = cells[~np.isin(cells, points)]",
        "rest = cells",
        "columns/test_private_points.py",
        promise="the points first, then bins of the numbers beside them",
    ),
    Mutation(
        "a drafted bin holds any part of the records",
        "columns/edges.py",
        "np.maximum(share - MOST_IN_BIN, 0.0)",
        "np.maximum(share - 1, 0.0)",
        "columns/test_recognise.py",
        promise="No other bin has more than MOST_IN_BIN of the records",
    ),
    Mutation(
        "records inside wide bins grow along a line",
        "columns/inside.py",
        "bent = ~np.isnan(power[owners])",
        "bent = np.zeros(len(owners), bool)",
        "columns/test_partition.py",
        promise="Records by cell along a straight line, or a power, in each bin",
    ),
    Mutation(
        "corners are emptied where noise hides all records",
        "model/empty_corners.py",
        "spread <= PART * independent[turned][corner].sum()",
        "True",
        "model/test_empty_corners.py",
        promise="at most PART of the records that independent columns have",
    ),
    Mutation(
        "parts of bins lose their shares where two columns depend on each other",
        "columns/places.py",
        "_scale(table, (columns / parts)[:, None], (0, 1))",
        "",
        "columns/test_places.py",
        promise="every part of a bin has the same share",
    ),
    Mutation(
        "doubles of single precision stay as they are",
        "columns/numbers.py",
        "as_decimals(numbers) if self.type == SINGLES else numbers",
        "numbers",
        "columns/test_types.py",
    ),
    Mutation(
        "histograms of private domains spend twice what they may",
        "columns/private.py",
        "scale = search.sensitivity / (part * (1 - POINTS_PART) * search.epsilon)",
        "scale = search.sensitivity / (part * search.epsilon)",
        "party/test_private_domains.py",
        promise="What one search with noise may spend.",
    ),
    Mutation(
        "frequent values are priced for persons with one record",
        "columns/private.py",
        "return ThresholdEvent(scale, least, search.sensitivity)",
        "return ThresholdEvent(scale, ThresholdEvent.least_threshold(scale, search.delta))",
        "party/test_private_domains.py",
        promise="a threshold that one person's records reach with probability delta at most",
    ),
    Mutation(
        "a value of one person shows one count early",
        "privacy/events.py",
        "math.ceil(1 + spare + scale * math.log(sensitivity))",
        "math.ceil(spare + scale * math.log(sensitivity))",
        "privacy/test_threshold_event.py",
        promise="Smallest threshold whose delta is at most ``exposed``.",
    ),
    Mutation(
        "settings that no run has are ignored",
        "runs/folder.py",
        "RunError, known_only=True)",
        "RunError)",
        "runs/test_runs.py::test_settings_that_cannot_be_are_refused",
    ),
    Mutation(
        "the sentence of a value object is lost in another one",
        "files/convert.py",
        "if isinstance(failure.__cause__, VertiMRFError):",
        "if failure is None:",
        "files/test_convert.py",
    ),
    Mutation(
        "a ledger that lacks its reasons is private",
        "privacy/ledger.py",
        'dict.fromkeys(("reasons", "notes", "prior")) | data',
        "data",
        "privacy/test_ledger.py",
        promise="PrivacyError: the data is not a ledger, or was edited.",
    ),
    Mutation(
        "a label that contradicts itself is believed",
        "privacy/standing.py",
        'return label if label.private is data["private"] else UNSTATED',
        "return label",
        "privacy/test_standing.py",
        promise="A file without a label, or with a contradictory one, is treated as not private.",
    ),
    Mutation(
        "plans forget what their domains have cost",
        "plan/plan.py",
        "return (*self.schema.spent, *self.prior)",
        "return self.prior",
        "plan/test_open_schema.py",
    ),
    Mutation(
        "one record more than planned is kept of a person",
        "party/persons.py",
        "places_of(persons, np.lexsort((records, words, persons))) < most",
        "places_of(persons, np.lexsort((records, words, persons))) <= most",
        "party/test_persons.py",
        promise="at most ``most`` records of every person",
    ),
    Mutation(
        "marginals are priced for one record of a person",
        "plan/local_plan.py",
        '"{} one-way marginals", local.one_way_sigma, person',
        '"{} one-way marginals", local.one_way_sigma, 1',
        "party/test_persons.py",
    ),
    Mutation(
        "all records are counted to plan with, however many a person has",
        "trial.py",
        "records = limited(parts[0], several, secrets.token_bytes(16)).records",
        "records = parts[0].records",
        "party/test_persons.py",
    ),
    Mutation(
        "count sketches are priced for one record of a person",
        "privacy/events.py",
        "return person_law(self.groups, self.variance, self.buckets, self.records, rare, self.parties)",
        "return ratio_law(self.groups, self.variance, self.buckets, rare)",
        "privacy/test_person_sketch.py",
        promise="neighbours differ in all of them",
    ),
    Mutation(
        "hashes do not depend on the plan",
        "party/party.py",
        'derive(self._secret, plan.digest(), purpose="sketches")',
        'derive(self._secret, b"", purpose="sketches")',
        "releases/test_independence.py",
        promise="because they have the same hashes",
    ),
    Mutation(
        "digests of ids do not depend on their key",
        "kernels/digest.py",
        'k0, k1 = np.frombuffer(key, "<u8").astype(np.uint64)',
        "k0, k1 = np.zeros(2, np.uint64)",
        "kernels/test_kernels_digest.py",
    ),
    Mutation(
        "what follows an id in memory is part of its digest",
        "kernels/digest.py",
        "return word if remaining >= U64(8) else (word & kept) | (length << U64(56))",
        "return word if remaining >= U64(8) else word ^ (length << U64(56))",
        "kernels/test_kernels_digest.py",
    ),
    Mutation(
        "keys of ids do not depend on the plan",
        "party/secret.py",
        "derive(secret, plan_digest, purpose=purpose)[:16]",
        'derive(secret, b"", purpose=purpose)[:16]',
        "tables/test_ids.py",
        promise="Keys of the digests of ids under a plan",
    ),
    Mutation(
        "keys of ids can be computed by anybody",
        "party/secret.py",
        "records, persons, pairs = (derive(secret, plan_digest, purpose=purpose)[:16]",
        "records, persons, pairs = (derive(Secret(bytes(32)), plan_digest, purpose=purpose)[:16]",
        "tables/test_ids.py",
        promise="equal at all its parties and unknown to others",
    ),
    Mutation(
        "ids of persons are hashed under the key of records",
        "party/secret.py",
        'for purpose in ("record ids", "person ids", "record ids of persons")',
        'for purpose in ("record ids", "record ids", "record ids of persons")',
        "tables/test_ids.py",
        promise="text that separates the uses of the secret",
    ),
    Mutation(
        "a party draws the keys of its ids, so that nobody's meet",
        "party/party.py",
        "keys = id_keys(self._secret, self._plan.digest())",
        "keys = __import__('vertimrf.tables.ids', fromlist=['IdKeys']).IdKeys.drawn()",
        "tables/test_ids.py",
        promise="Encode this party's records",
    ),
    Mutation(
        "the keys of ids that are drawn are always the same",
        "tables/ids.py",
        "return cls(*(secrets.token_bytes(KEY_BYTES) for _ in range(3)))",
        "return cls(*(bytes(KEY_BYTES) for _ in range(3)))",
        "tables/test_ids.py",
    ),
    Mutation(
        "a sketch of a set takes ids under another key",
        "sketch.py",
        "if _mark(key) != self.mark:",
        "if not _mark(key):",
        "test_sketch.py",
    ),
    Mutation(
        "a sketch of a set is as sure of what no key shows as of what all show",
        "sketch.py",
        "np.maximum(counts, least)",
        "np.maximum(counts, 1e-9 * least)",
        "test_sketch.py",
    ),
    Mutation(
        "all pairs share hashes",
        "releases/scheduled_pairs/encoding.py",
        "in enumerate(blocks, first_block):",
        "in enumerate(blocks):",
        "releases/test_independence.py",
    ),
    Mutation(
        "all key blocks of a pair share hashes",
        "releases/scheduled_pairs/encoding.py",
        "row[:, 1:3] = block, keys",
        "row[:, 1:3] = first_block, keys",
        "releases/test_independence.py",
    ),
    Mutation(
        "one pair's last key block and the next pair's first share hashes",
        "releases/scheduled_pairs/encoding.py",
        "first_block += len(blocks)",
        "first_block += max(len(blocks) - 1, 1)",
        "releases/test_independence.py",
    ),
    Mutation(
        "the first phantom byte is the same in every chunk",
        "releases/encoder.py",
        "bytearray(entropy(levels.size))",
        'bytearray(b"\\x90" + entropy(levels.size)[1:])',
        "releases/test_independence.py",
    ),
    Mutation(
        "all chunks share their phantoms",
        "releases/encoder.py",
        "words = np.frombuffer(bytearray(entropy(levels.size)), np.uint8)",
        "words = (words if begin else np.frombuffer(bytearray(entropy(levels.size)), np.uint8))[: levels.size]",
        "releases/test_independence.py",
    ),
    Mutation(
        "phantoms that a byte leaves open share the other bytes",
        "releases/encoder.py",
        "bytearray(entropy(8 * count))",
        "bytearray(entropy(8) * count)",
        "releases/test_independence.py",
    ),
    Mutation(
        "the last chunk goes without phantoms",
        "releases/encoder.py",
        "in range(0, state.size, PHANTOM_CHUNK):",
        "in range(0, max(state.size - PHANTOM_CHUNK, 1), PHANTOM_CHUNK):",
        "releases/test_independence.py",
    ),
    Mutation(
        "half the phantoms",
        "releases/encoder.py",
        "phantom_thresholds(self._plan.phantoms, ",
        "phantom_thresholds(self._plan.phantoms // 2, ",
        "releases/test_independence.py test_leaks.py",
    ),
    Mutation(
        "the ledger prices one sketch a key instead of two",
        "releases/scheduled_pairs/parameters.py",
        "keys, attributes_per_key=2)",
        "keys, attributes_per_key=1)",
        "privacy/test_prices.py test_leaks.py",
    ),
    Mutation(
        "the ledger prices groups with weights as if a record moved their counters by 1",
        "releases/count_sketches/parameters.py",
        "sum(self.weights) or len(self.sizes)",
        "len(self.sizes)",
        "privacy/test_count_sketch_event.py",
    ),
    Mutation(
        "of the parties that may collude the one counts that learns least",
        "privacy/ledger.py",
        "worst = max(worst, prior + later)",
        "worst = min(worst or math.inf, prior + later)",
        "privacy/test_collusion.py",
        promise="Largest epsilon at the same delta if parties collude with the server.",
    ),
    Mutation(
        "against a party that colludes its own part of the sketches counts",
        "privacy/ledger.py",
        "for part in self.parts if part.party not in coalition )\n        return () if",
        "for part in self.parts if part.party in coalition )\n        return () if",
        "privacy/test_collusion.py",
        promise="Entries that reveal something about other parties' records to parties with the secret.",
    ),
    Mutation(
        "against known hashes weights do not count",
        "releases/count_sketches/parameters.py",
        "moved = sum(map(self.weight, groups))",
        "moved = len(groups)",
        "privacy/test_collusion.py",
    ),
    Mutation(
        "against known hashes a person has one record",
        "privacy/events.py",
        "math.sqrt(each * self.variance), self.records * each, times)",
        "math.sqrt(each * self.variance), each, times)",
        "privacy/test_collusion.py",
        promise="K records of a person change the counters most, in Euclidean length, if they share values, buckets and signs.",
    ),
    Mutation(
        "messages are a step larger than the cap on collusion allows",
        "plan/collusion.py",
        "    return best",
        "    return above",
        "plan/test_collusion_cap.py",
    ),
    Mutation(
        "counters with a weight get the noise of those without",
        "releases/count_sketches/encoding.py",
        "noise_table(weight * plan.variance)",
        "noise_table(plan.variance)",
        "releases/count_sketches/test_count_sketch.py",
    ),
    Mutation(
        "weights may be even, so that their noise is not the sum of so many draws",
        "releases/count_sketches/parameters.py",
        "weight % 2 == 0 or ",
        "",
        "releases/count_sketches/test_count_sketch.py",
    ),
    Mutation(
        "groups of three values may be contrasts",
        "releases/release.py",
        "sizes[g] == 2}",
        "sizes[g] in (2, 3)}",
        "plan/test_count_sketch_plan.py",
    ),
    Mutation(
        "a party that has a contrast alone does not tell presence",
        "plan/choice.py",
        "present = presence and alone and sum(lone) > 1",
        "present = False",
        "plan/test_count_sketch_plan.py",
    ),
    Mutation(
        "what closes a circle enters a graph with what it is closed by",
        "server/global_graph.py",
        "if len(joined) > 1:",
        "if len(joined) > 0:",
        "server/test_global_graph.py",
    ),
    Mutation(
        "groups of many values weigh no more than others",
        "releases/count_sketches/weights.py",
        "(each / fewest) ** EXPONENT",
        "1",
        "plan/test_count_sketch_plan.py",
    ),
    Mutation(
        "presence weighs as much as an attribute",
        "releases/count_sketches/weights.py",
        "if group.shows_attribute else 1",
        "if True else 1",
        "plan/test_count_sketch_plan.py",
    ),
    Mutation(
        "values are told apart by contrasts with the signs swapped",
        "releases/release.py",
        "CONTRAST_SIGNS = (1, -1)",
        "CONTRAST_SIGNS = (-1, 1)",
        "releases/count_sketches/test_contrasts.py",
    ),
    Mutation(
        "the ledger drops the other parties' R-scores and larger marginals",
        "plan/plan.py",
        "out.extend(local_entries(name, *measured, local, person))",
        "out.extend(local_entries(name, *measured, local, person)[: 9 if local is self.local[0] else 1])",
        "privacy/test_prices.py test_leaks.py",
    ),
    Mutation(
        "a plan may measure without noise",
        "plan/plan.py",
        "if (local.one_way_sigma == 0) != (not self.schema.varying(name)):",
        "if False:",
        "test_one_value.py",
    ),
    Mutation(
        "the last fit forgets what cannot be",
        "server/server.py",
        "zeros=(*zeros, *empty),",
        "zeros=empty,",
        "test_impossible_runs.py",
    ),
    Mutation(
        "records that the schema calls impossible take part",
        "party/party.py",
        "records.possible(list(schema.combinations_at(name).values())).limited",
        "records.limited",
        "test_impossible_runs.py",
        promise="Records that do not contradict the schema",
    ),
    Mutation(
        "impossible records are not dropped when a table is read",
        "tables/columns.py",
        "fits &= ~marked",
        "pass",
        "test_impossible_runs.py test_refusals.py",
    ),
    Mutation(
        "a table with a record that does not fit is refused",
        "tables/columns.py",
        "    return columns.settled(encoded, pieces)",
        "    out = columns.settled(encoded, pieces)\n    out.dropped.refuse()\n    return out",
        "test_refusals.py",
    ),
    Mutation(
        "a table without records is refused",
        "tables/columns.py",
        "    return columns.settled(encoded, pieces)",
        "    out = columns.settled(encoded, pieces)\n    assert out.records\n    return out",
        "test_refusals.py",
    ),
    Mutation(
        "of an id's rows the first in the table stays",
        "tables/table.py",
        "rows = rows[np.lexsort(keys[::-1])]",
        "rows = rows[np.lexsort((rows, digests[rows]))]",
        "test_refusals.py tables/test_table.py",
    ),
    Mutation(
        "the digest of a person's record is that of its id alone",
        "tables/columns.py",
        "ids, present = of_persons(self.keys.pairs, owners, ids), present & owned",
        "present = present & owned",
        "party/test_person_bound.py",
    ),
    Mutation(
        "rows of one id are made one across persons",
        "tables/ids.py",
        "pairs = np.stack([persons, records], axis=1)",
        "pairs = np.stack([0 * persons, records], axis=1)",
        "party/test_person_bound.py",
    ),
    Mutation(
        "a person and an id are hashed without a key",
        "tables/ids.py",
        "return digest_strings(key, np.arange(len(pairs) + 1) * 16",
        "return digest_strings(bytes(16), np.arange(len(pairs) + 1) * 16",
        "tables/test_ids.py",
    ),
    Mutation(
        "rows without ids are numbered through all persons",
        "tables/columns.py",
        "if self.id is None and persons is not None:",
        "if False:",
        "party/test_person_bound.py",
    ),
    Mutation(
        "ids of persons are not normalised",
        "tables/columns.py",
        "owners, owned = self._digested(self.keys.persons, piece[self.person], self.owners)",
        "owners, owned = digested(self.keys.persons, piece[self.person], self.owners)",
        "tables/test_ids.py",
    ),
    Mutation(
        "a person's records are limited before those that contradict the schema go",
        "party/party.py",
        "return records.possible(list(schema.combinations_at(name).values())).limited(self._plan.records_per_person, key)",
        "return records.limited(self._plan.records_per_person, key).possible(list(schema.combinations_at(name).values()))",
        "party/test_person_bound.py",
        promise="of these at most the plan's number of each person",
    ),
    Mutation(
        "a table may name persons where the plan does not",
        "party/persons.py",
        "if most == 1 and named:",
        "if False:",
        "party/test_persons.py",
        promise="Tables name persons if a plan is for several records of a person, and only then.",
    ),
    Mutation(
        "domains are searched for among all rows of an id",
        "party/persons.py",
        "if column is None:",
        "if read.person is None:",
        "party/test_person_bound.py",
        promise="Keep at most ``most`` rows of every person",
    ),
    Mutation(
        "which rows of a person are searched depends on the rows of others",
        "party/persons.py",
        "records = of_persons(keys.pairs, persons, places_of(persons).astype(np.uint64))",
        "records = of_persons(keys.pairs, persons, rows.astype(np.uint64))",
        "party/test_person_bound.py",
        promise="The choice depends on the key, the person's id, and the number of the person's rows alone.",
    ),
    Mutation(
        "noise of domains does not depend on the rows that count",
        "cli/schema.py",
        'purpose = "noise of " + " ".join(cells_digest(rows[domain.name]) for domain in wanted)',
        'purpose = "noise"',
        "cli/test_cli_domains.py",
    ),
    Mutation(
        "domains found for other persons go into a plan whose persons are record ids",
        "plan/plan.py",
        "if most < records or most > records == 1:",
        "if most < records:",
        "party/test_persons.py",
    ),
    Mutation(
        "ids are compared without whose they are",
        "party/alignment.py",
        "digests, present = of_persons(keys.pairs, persons, digests), present & owned",
        "present = present & owned",
        "test_lengths.py",
        promise="then a person and an id are compared together",
    ),
    Mutation(
        "all parties are priced as if they kept the same records of a person",
        "releases/count_sketches/parameters.py",
        "holders = sum(map(bool, parties.values())) if person > 1 else 1",
        "holders = 1",
        "party/test_persons.py",
    ),
    Mutation(
        "records of a person share buckets at one party only",
        "privacy/person_sketch.py",
        "more = np.minimum(parties * np.cumsum(filled[1:])[::-1], 1.0)",
        "more = np.minimum(np.cumsum(filled[1:])[::-1], 1.0)",
        "privacy/test_person_sketch.py",
        promise="exceeds a number with at most M times the probability",
    ),
    Mutation(
        "three parties never hold each other's records of a person in part",
        "privacy/person_sketch.py",
        "return 3 * records // 2",
        "return records",
        "privacy/test_person_sketch.py",
        promise="3 K / 2 for three",
    ),
    Mutation(
        "the record beside one that is left out goes too",
        "tables/columns.py",
        "            every = bool(fits.all())",
        "            fits[1:] &= fits[:-1]\n            every = bool(fits.all())",
        "tables/test_table.py test_refusals.py",
    ),
    Mutation(
        "of an id with a row that does not fit nothing stays",
        "tables/columns.py",
        "            every = bool(fits.all())",
        "            fits &= ~np.isin(ids, ids[~fits])\n            every = bool(fits.all())",
        "tables/test_table.py test_refusals.py",
    ),
    Mutation(
        "records without an id take part",
        "tables/columns.py",
        'add("no id", self.id, Tally.of(~present, before))\n                fits &= present',
        'add("no id", self.id, Tally.of(~present, before))',
        "tables/test_table.py test_refusals.py",
    ),
    Mutation(
        "records that are nobody's take part",
        "tables/columns.py",
        'add("no person", self.person, Tally.of(~owned, before))\n                fits &= owned',
        'add("no person", self.person, Tally.of(~owned, before))',
        "party/test_persons.py",
    ),
    Mutation(
        "a row of a file with too many cells stops the release",
        "tables/columns.py",
        "pieces.read(self.wanted, report)",
        "pieces.read(self.wanted)",
        "test_refusals.py",
    ),
    Mutation(
        "bytes that are no text stop the release",
        "tables/csv_file.py",
        'getincrementaldecoder(encoding)("backslashreplace")',
        'getincrementaldecoder(encoding)("strict")',
        "test_refusals.py",
    ),
    Mutation(
        "what follows in a row that is too long is a row",
        "tables/csv_file.py",
        "skipping = skipping and not end",
        "skipping = False",
        "tables/test_csv_file.py",
    ),
    Mutation(
        "a row that nothing closes is not counted",
        "tables/csv_file.py",
        "    if carried:\n        unreadable(ENDLESS, _start(carried), 1)",
        "",
        "tables/test_csv_file.py",
    ),
    Mutation(
        "of malformed rows in a block one is counted",
        "tables/csv_file.py",
        "unreadable(CELLS, _start(text[first:last]), count)",
        "unreadable(CELLS, _start(text[first:last]), 1)",
        "tables/test_csv_file.py test_refusals.py",
    ),
    Mutation(
        "surrogates that a codec lets pass stop the release",
        "tables/csv_file.py",
        'text = decoder.decode(data).encode("utf-8", "backslashreplace")',
        "text = decoder.decode(data).encode()",
        "tables/test_csv_file.py",
    ),
    Mutation(
        "an object of any class has a text",
        "tables/objects.py",
        "raise TypeError(type(value).__name__)",
        'return "text", str(value)',
        "tables/test_objects.py",
    ),
    Mutation(
        "a surrogate in a cell refuses the frame",
        "tables/objects.py",
        'str.encode(value, "utf-8", "backslashreplace").decode()',
        "value",
        "tables/test_objects.py",
    ),
    Mutation(
        "an integer of any size is one of 64 bits",
        "tables/objects.py",
        "if -(1 << 63) <= value < 1 << 63:",
        "if True:",
        "tables/test_objects.py",
    ),
    Mutation(
        "one cell of a type that an attribute cannot have refuses the column",
        "columns/cells.py",
        "with contextlib.suppress(SchemaError, TableError):",
        "with contextlib.nullcontext():",
        "tables/test_objects.py",
    ),
    Mutation(
        "a slice of objects has the types of the first",
        "columns/cells.py",
        "part = slice(chunk.offset, chunk.offset + len(chunk))",
        "part = slice(0, len(chunk))",
        "tables/test_objects.py",
    ),
    Mutation(
        "records of which an object is no value are not counted",
        "tables/arrow.py",
        "unreadable(NO_VALUE, unfit[min(unfit)], len(unfit))",
        "pass",
        "tables/test_objects.py",
    ),
    Mutation(
        "a dictionary with bytes that are no text refuses a Parquet file",
        "tables/sources.py",
        "read_dictionary=asked",
        "read_dictionary=[]",
        "tables/test_objects.py",
    ),
    Mutation(
        "a number of 32 bits is read as the double next to its decimal",
        "columns/cell_types.py",
        "return column.cast(pa.string()).cast(pa.float64())",
        "return column.cast(pa.float64())",
        "columns/test_types.py",
    ),
    Mutation(
        "whole numbers beyond 2**53 are rounded to doubles",
        "columns/large.py",
        "near = np.where(np.isnan(exact), near, exact)",
        "pass",
        "columns/test_types.py",
    ),
    Mutation(
        "a chosen text column is read as numbers",
        "tables/infer.py",
        "draft_attribute(name, column, flag, dates, typed)",
        "draft_attribute(name, column, flag, dates)",
        "columns/test_types.py",
    ),
    Mutation(
        "a type that does not hold the values of a column is taken",
        "columns/cell_types.py",
        "not (least <= low and high <= most) or (every and not whole)",
        "every and not whole",
        "columns/test_types.py",
    ),
    Mutation(
        "a comma within an id is one between ids",
        "tables/ids.py",
        'pc.replace_substring_regex(texts, r"([\\\\,])", r"\\\\\\1")',
        "texts",
        "tables/test_joint_ids.py",
    ),
    Mutation(
        "links in a table's folder lead out of it",
        "tables/parts.py",
        "if path.is_symlink():",
        "if False:",
        "tables/test_tables_parts.py",
    ),
    Mutation(
        "far dates wrap around to near ones",
        "columns/cells.py",
        "near = (ticks <= FAR // each) & (ticks >= -FAR // each)",
        "near = np.ones(len(ticks), bool)",
        "tables/test_objects.py",
    ),
    Mutation(
        "a null in one of several dictionaries refuses the column",
        "columns/cells.py",
        "with contextlib.suppress(pa.ArrowException):",
        "with contextlib.nullcontext():",
        "tables/test_objects.py",
    ),
    Mutation(
        "records that repeat an id of their piece are not counted",
        "tables/columns.py",
        "count = before.count + len(again)",
        "count = len(again)",
        "test_refusals.py",
    ),
    Mutation(
        "of an id's rows in a piece all wait in memory",
        "tables/columns.py",
        "            if self.id is not None:\n                again = rows_again",
        "            if False:\n                again = rows_again",
        "test_refusals.py",
    ),
    Mutation(
        "an address of a database keeps its password",
        "tables/databases.py",
        "if PASSWORD.search(place):",
        "if False:",
        "tables/test_databases.py::test_an_address_with_a_password_is_refused_and_not_repeated",
    ),
    Mutation(
        "what a database has yet to enter into its file is not looked at",
        "tables/sources.py",
        'for end in ("", "-wal", ".wal")',
        'for end in ("",)',
        "tables/test_databases.py::test_a_database_that_was_written_later_is_another",
    ),
    Mutation(
        "lines before a header are part of it",
        "tables/csv_file.py",
        'head, skip = head.partition(b"\\n")[2], skip - 1',
        "skip -= 1",
        "tables/test_csv_file.py::test_lines_before_the_header_are_skipped_in_any_blocks",
    ),
    Mutation(
        "the first record of a file without a header is lost",
        "tables/csv_file.py",
        "for i in range(len(names))], head",
        "for i in range(len(names))], head[last:]",
        "tables/test_csv_file.py::test_a_file_without_a_header_has_numbered_columns_and_all_of_its_rows",
    ),
    Mutation(
        "the party's part of the schema wins over options",
        "tables/derived.py",
        "if getattr(read, key) == getattr(DEFAULT, key)",
        "if True",
        "tables/test_read_section.py::test_options_win",
    ),
    Mutation(
        "any codec passes for an encoding of text",
        "tables/read_options.py",
        "io.TextIOWrapper(io.BytesIO(), encoding=self.charset)",
        "codecs.lookup(self.charset)",
        "test_refusals.py",
    ),
    Mutation(
        "comparing ids makes the message",
        "runs/steps.py",
        "if state.status == READY and step.work and (release or not step.releases):",
        "if state.status == READY and step.work:",
        "cli/test_cli.py::test_parties_find_out_that_their_ids_are_written_differently",
    ),
    Mutation(
        "a server looks for room after its work",
        "runs/server_run.py",
        "if short := check_space(self.folder, result_bytes(plan, self.settings.rows)):",
        "if short := check_space(self.folder, 0):",
        "cli/test_cli.py::test_a_disk_without_room_is_told_every_role_before_the_work",
    ),
    Mutation(
        "a run tells the server's side what it left out",
        "runs/party_run.py",
        '            later="accept the plan",\n',
        '            later="accept the plan",\n'
        "            gives=FileOut(LEFT_OUT, partial(self._folder.read, LEFT_OUT)),\n",
        "test_refusals.py",
    ),
    Mutation(
        "a bin counts as impossible if any of it is",
        "columns/column.py",
        "some.append(code)",
        "every.append(code)",
        "plan/test_impossible.py",
    ),
    Mutation(
        "values inside bins do not keep the rules",
        "server/rows.py",
        "            keep_order(orders, attributes, piece, absent[:, rows], drawn, again, rng)",
        "            pass",
        "plan/test_rules.py test_rules_runs.py",
    ),
    Mutation(
        "a chain of rules rules out bins of neighbours alone",
        "plan/rules.py",
        "chains += [(*chain, rule) for rule in rules if rule.low == chain[-1].high]",
        "pass",
        "plan/test_rules.py",
    ),
    Mutation(
        "a chain rules its ends although the value between them is missing",
        "plan/rules.py",
        "if named[rule.low].missing",
        "if False",
        "plan/test_rules.py",
    ),
    Mutation(
        "the ledger drops the sketches of agreement",
        "plan/plan.py",
        "out.append(LedgerEntry(sketch.event, *said, parts=parts, kind=Kind.AGREEMENT, column=column))",
        "pass",
        "server/test_shared_columns.py test_leaks.py",
    ),
    Mutation(
        "sketches of agreement count records by their ids alone",
        "party/records.py",
        "keys, values = keys ^ words[values[0]], np.zeros_like(values)",
        "keys, values = keys, np.zeros_like(values)",
        "party/test_records.py server/test_shared_columns.py",
        promise="a word per value that is combined with the record's digest",
    ),
    Mutation(
        "the ledger drops what was spent before",
        "plan/plan.py",
        "out = list(self._before)",
        "out = []",
        "plan/test_plan.py",
    ),
    Mutation(
        "the R-score's sensitivity is halved",
        "plan/local_plan.py",
        "SCORE_SENSITIVITY = 2 * SCORE_GRID + 1",
        "SCORE_SENSITIVITY = SCORE_GRID + 1",
        "privacy/test_prices.py test_leaks.py",
    ),
    Mutation(
        "fine marginals have half of their noise",
        "party/party.py",
        "noise.gaussian(counts, sigma) for counts in records.marginals([(row,) for row in rows], {})",
        "noise.gaussian(counts, sigma / 2) for counts in records.marginals([(row,) for row in rows], {})",
        "test_fine_marginals.py",
        promise="Everything read from the table is an event of the plan's ledger.",
    ),
    Mutation(
        "fine marginals are released without noise",
        "party/party.py",
        "noise.gaussian(counts, sigma) for counts in records.marginals([(row,) for row in rows], {})",
        "counts for counts in records.marginals([(row,) for row in rows], {})",
        "test_fine_marginals.py",
        promise="Everything read from the table is an event of the plan's ledger.",
    ),
    Mutation(
        "fine marginals are not priced",
        "plan/local_plan.py",
        "fine *= bool(local.fine_sigma)",
        "fine = 0",
        "test_fine_marginals.py",
    ),
    Mutation(
        "fine marginals are priced for one record of a person",
        "plan/local_plan.py",
        '"{} fine marginals", local.fine_sigma, person',
        '"{} fine marginals", local.fine_sigma, 1',
        "test_fine_marginals.py",
    ),
    Mutation(
        "a message may have fine marginals of anybody",
        "message.py",
        "for value, sigma in (*figures, *inside):",
        "for value, sigma in figures:",
        "test_fine_marginals.py",
        promise="Refuse counts that sum to different numbers of records",
    ),
    Mutation(
        "every value is in the first finer cell of all",
        "tables/columns.py",
        "            rows += inside\n",
        "            rows += [0 * row for row in inside]\n",
        "test_fine_marginals.py",
    ),
    Mutation(
        "a one-way marginal is counted once for all attributes",
        "plan/local_plan.py",
        "Kind.ONE_WAY_MARGINALS, attributes,",
        "Kind.ONE_WAY_MARGINALS, 1,",
        "privacy/test_prices.py test_leaks.py",
    ),
    Mutation(
        "a plan is read without a check of what it spends",
        "plan/plan.py",
        "        plan._check_target()\n",
        "",
        "plan/test_plan.py",
    ),
    Mutation(
        "the record count goes out exact",
        "party/party.py",
        "return int(noise.gaussian(np.array([records.count], np.int64), self._plan.count_sigma)[0])",
        "return records.count",
        "test_leaks.py",
        promise="Everything read from the table is an event of the plan's ledger.",
    ),
    Mutation(
        "the second party's one-way marginals have half the noise",
        "party/party.py",
        "plan.local[self._index], noise, self._options.progress,",
        "plan.local[0], noise, self._options.progress,",
        "test_leaks.py",
        promise="Everything read from the table is an event of the plan's ledger.",
    ),
    Mutation(
        "a larger marginal of k units has the noise of one",
        "party/local_model.py",
        "noise.gaussian(units * _contrasts(exact, axes), sigma)",
        "noise.gaussian(units * _contrasts(exact, axes), plan.unit_sigma)",
        "test_leaks.py",
        promise="every query here is an event of the plan's ledger",
    ),
    Mutation(
        "marginals are chosen by the exact count",
        "party/local_model.py",
        "total = max(float(np.mean([m.counts.sum() for m in measured])), 1.0)",
        "total = max(float(sum(table.sum() for table in marginals([(0,)], {}))), 1.0)",
        "test_leaks.py",
        promise="every query here is an event of the plan's ledger",
    ),
    Mutation(
        "values are merged by their exact counts",
        "party/local_model.py",
        "maps = merged_values({m.attributes[0]: m.counts for m in measured},",
        "maps = merged_values(dict(enumerate(marginals([(i,) for i in range(d)], {}))),",
        "party/test_local_model.py",
        promise="attributes with domain compression in all but one-way marginals",
    ),
    Mutation(
        "larger marginals are read in whatever values they have",
        "message.py",
        'counts = _array(arrays, f"marginal{i}", np.int64, kept)',
        'counts = arrays[f"marginal{i}"]',
        "party/test_local_model.py",
        promise="Local marginals, each checked against the plan.",
    ),
    Mutation(
        "a record counts once for every piece that its table is read in",
        "party/records.py",
        "piece = slice(first, first + together)",
        "piece = slice(0, first + together)",
        "party/test_records.py",
        promise="Add records to an encoder, in pieces.",
    ),
    Mutation(
        "tables of the same people pass as the same table",
        "kernels/multiset.py",
        "word = word | (U64(codes[k, i]) << shift)",
        "word = word | (U64(codes[k, 0]) << shift)",
        "kernels/test_kernels_multiset.py party/test_releases.py",
    ),
    Mutation(
        "ids that repeat in another piece pass",
        "tables/ids.py",
        "ordered = np.sort(digests)",
        "ordered = digests",
        "tables/test_table.py",
    ),
    Mutation(
        "ids that repeat in another partition pass",
        "cluster/records.py",
        "if not len(twice) and not earlier:",
        "if True:",
        "cluster/test_cluster.py",
    ),
    Mutation(
        "a cluster counts its last partition for all of them",
        "cluster/records.py",
        "return [functools.reduce(np.add, counts) for counts in zip(*tables, strict=True)]",
        "return list(tables[-1])",
        "cluster/test_cluster.py",
    ),
    Mutation(
        "keys show in the logs of a cluster",
        "cluster/work.py",
        'return "Quiet(...)"',
        'return f"Quiet({self.value!r})"',
        "cluster/test_cluster.py",
    ),
    Mutation(
        "R-scores steer by their exact values",
        "party/local_model.py",
        "for pair, score in zip(pairs, noisy, strict=True)",
        "for pair, score in zip(pairs, exact, strict=True)",
        "test_leaks.py",
        promise="R-scores in records (VertiMRF, equation 2), each with the ledgered noise.",
    ),
    Mutation(
        "fixed noise passes as private",
        "privacy/noise.py",
        "    private = False",
        "    private = True",
        "privacy/test_noise.py",
        promise="Everything made with it is marked as not private.",
    ),
    Mutation(
        "whoever knows the parties' secret can compute a party's noise",
        "party/party.py",
        'return KeyedNoise(self._key.derive(self._plan.digest(), f"noise of the {of}, {known}"))',
        'return KeyedNoise(derive(self._secret, self._plan.digest(), purpose=f"noise of the {of}, {known}"))',
        "party/test_keyed_noise.py",
        promise="Noise is then a function of the key, the plan and the table",
    ),
    Mutation(
        "another table has the same noise where its counts are the same",
        "party/party.py",
        "[table.hex(), *(",
        '["", *(',
        "party/test_keyed_noise.py",
        promise="Different tables have independent noise, also for equal counts.",
    ),
    Mutation(
        "noise does not depend on what it is added to",
        "privacy/noise.py",
        "hashlib.sha256(what).digest() + hashlib.sha256(values.data).digest()",
        "hashlib.sha256(what).digest()",
        "privacy/test_noise.py",
        promise="Different values give independent noise.",
    ),
    Mutation(
        "noise does not depend on the draws before",
        "privacy/noise.py",
        "hmac.digest(self._key, self._draws.digest(), ",
        "hmac.digest(self._key, hashlib.sha256(what + values.tobytes()).digest(), ",
        "privacy/test_noise.py",
        promise="SHA-256 over all draws so far",
    ),
    Mutation(
        "the noise of count sketches does not depend on their counters",
        "releases/count_sketches/encoding.py",
        "side.sizes(), side.noise.stream(counter.digest()))",
        'side.sizes(), side.noise.stream(b""))',
        "party/test_keyed_noise.py",
    ),
    Mutation(
        "phantoms do not depend on the levels that they are joined to",
        "releases/scheduled_pairs/encoding.py",
        "encoder.result(side.noise.stream(encoder.digest()))",
        'encoder.result(side.noise.stream(b""))',
        "party/test_keyed_noise.py",
    ),
    Mutation(
        "wide noise has gaps",
        "privacy/sampler.py",
        "return STEP * wide + _from_table(stream, count, Fraction(FINE**2))",
        "return STEP * wide",
        "privacy/test_noise.py",
        promise="The sum has the right law",
    ),
    Mutation(
        "double precision settles draws at a threshold",
        "privacy/sampler.py",
        "MARGIN = 2.0**-38",
        "MARGIN = 2.0**-60",
        "privacy/test_noise.py",
        promise="a draw depends neither on the floating-point arithmetic of the machine nor on the margin",
    ),
    Mutation(
        "two files of different contents have one key",
        "keys.py",
        "receiver + hashlib.sha256(contents).digest()",
        "receiver",
        "test_keys.py",
        promise="Other contents have another file key.",
    ),
    Mutation(
        "two searches for domains run at once",
        "party/domain_record.py",
        "fcntl.flock(lock, fcntl.LOCK_EX)",
        "pass",
        "party/test_private_domains.py::test_a_second_search_waits_for_the_first_and_finds_its_result",
        promise="one search runs at a time",
    ),
    Mutation(
        "domains of another table are found with the same noise",
        "party/domain_record.py",
        "[_plain(domain.asked), cells[domain.name]]",
        "[_plain(domain.asked)]",
        "party/test_private_domains.py",
        promise="Noise is a function of a key, of the columns' cells and of the request",
    ),
    Mutation(
        "a copy of a table is another table to look for domains in",
        "party/domain_record.py",
        'places = {name: {*files, _keyed(key, "cells", cells[name])} for name in wanted}',
        "places = {name: set(files) for name in wanted}",
        "party/test_private_domains.py",
        promise="a copy of the part or of the table does not cause a new search",
    ),
    Mutation(
        "the sensitivity is left out of a Gaussian's loss",
        "privacy/events.py",
        "loss = self.sensitivity * (2 * noise + self.sensitivity) / (2 * self.sigma**2)",
        "loss = (2 * noise + 1) / (2 * self.sigma**2)",
        "privacy/test_prices.py",
        promise="largest change of one count by one record",
    ),
    Mutation(
        "an entry of a ledger forgets what it released",
        "privacy/ledger.py",
        'return from_json(data, cls, "The ledger entry", REMEDY, PrivacyError)',
        'return from_json(data | {"kind": "other"}, cls, "The ledger entry", REMEDY, PrivacyError)',
        "privacy/test_ledger.py::test_an_entry_keeps_what_it_is_in_a_file",
        promise="``released`` says the same in words",
    ),
    Mutation(
        "a file of another kind is taken for a plan",
        "plan/plan.py",
        'if content.get("kind") != KIND:',
        "if False:",
        "cli/test_inspect.py::test_the_kind_decides_and_no_other_key",
    ),
    Mutation(
        "a report tells an entry by its words",
        "report/words.py",
        "case Kind.R_SCORES, GaussianEvent(sigma=sigma, count=count):",
        "case _, GaussianEvent(sigma=sigma, count=count):",
        "report/test_report_words.py",
    ),
    Mutation(
        "a report takes names for markup",
        "report/page.py",
        "autoescape=True",
        "autoescape=False",
        "report/test_report_page.py::test_no_name_is_taken_for_markup",
    ),
    Mutation(
        "a report that shows the truth claims what its run does",
        "report/page.py",
        "return run.report.standing.because(*EXACT.reasons) if truth else run.report.standing",
        "return run.report.standing",
        "report/test_report_page.py::test_the_truth_is_marked_loudly",
    ),
    Mutation(
        "a report's prediction is shown as the truth",
        "report/page.py",
        "words.errors_in_words(run.report.predicted, content.apart)",
        "words.errors_in_words(run.report.predicted, run.report.predicted)",
        "report/test_report_page.py",
    ),
    Mutation(
        "finer cells of the truth are off by one",
        "report/content.py",
        'np.searchsorted(0.5 * (high[:-1] + low[1:]), numbers, "right")',
        'np.searchsorted(low[1:-1], numbers, "left")',
        "report/test_report_page.py",
    ),
    Mutation(
        "pairs that the model lost count as known",
        "report/page.py",
        "what = words.LOST if pair in lost else words.HIDDEN if hidden else what",
        "what = words.HIDDEN if hidden else what",
        "report/test_report_page.py",
    ),
    Mutation(
        "a plan calls pairs known of which it has a trend alone",
        "plan/verdict.py",
        "kind = 1 if trend else 0 if noise <= DEPENDENCE else 2",
        "kind = 0 if noise <= DEPENDENCE else 2",
        "plan/test_plan_verdict.py",
    ),
    Mutation(
        "a report takes the figures of another run",
        "report/run.py",
        'json.dumps([figures["ledger"], figures["cliques"]], sort_keys=True)',
        'json.dumps([figures["ledger"]], sort_keys=True)',
        "report/test_report_run.py",
    ),
    Mutation(
        "rows are drawn as if there were no factors beyond the tree",
        "model/sample.py",
        "    if not model.off_tree:\n        return propose",
        "    if True:\n        return propose",
        "model/test_sample.py::test_rows_follow_the_factors_beyond_the_tree",
    ),
    Mutation(
        "a parity is whether any of its attributes has the second value",
        "party/records.py",
        "out ^= mapping",
        "out |= mapping",
        "party/test_records.py::test_parities_tell_an_odd_number_of_second_bins_from_an_even_one",
        promise="the parity of the bins of several",
    ),
    Mutation(
        "what a parity says is taken for the whole marginal of its attributes",
        "releases/scheduled_pairs/intersections.py",
        "completed=len(both) == 2",
        "completed=True",
        "server/test_parities.py",
    ),
    Mutation(
        "weights of rows are not raked, so that one-way counts move by many standard errors",
        "model/sample.py",
        "    if known:\n        kernels.rake",
        "    if False:\n        kernels.rake",
        "model/test_sample.py::test_what_the_tree_was_fitted_to_holds_in_rows_that_are_weighed",
    ),
    Mutation(
        "rows are raked to one-way counts alone, and pairs of the tree are off",
        "model/sample.py",
        "[: int(RAKED_LOOKUPS / rows)], *alone]",
        "[: 0 * int(RAKED_LOOKUPS / rows)], *alone]",
        "model/test_sample.py::test_what_the_tree_was_fitted_to_holds_in_rows_that_are_weighed",
    ),
    Mutation(
        "columns that are missing together are drawn apart, and hardly any row is left",
        "model/sample.py",
        "            couple(codes, tree, factor)",
        "            pass",
        "model/test_couple.py",
    ),
    Mutation(
        "of two estimates of one share the last wins",
        "model/sample.py",
        "mean = sum(float(tables[a][code]) for a, code in cells) / 2",
        "mean = float(tables[cells[1][0]][cells[1][1]])",
        "model/test_couple.py",
    ),
    Mutation(
        "the column moves that says when it is missing",
        "model/couple.py",
        "key=lambda each: each[0])",
        "key=lambda each: -each[0])",
        "model/test_couple.py",
    ),
    Mutation(
        "values go to rows at random",
        "model/couple.py",
        "rows[np.lexsort(codes[[kept, *near]][:, rows])]",
        "rows",
        "model/test_couple.py",
    ),
    Mutation(
        "a fit forgets that columns are missing together",
        "model/off_tree.py",
        "            *model.off_tree,\n",
        "",
        "model/test_couple.py",
    ),
    Mutation(
        "columns are missing together where noise hides records with one alone",
        "server/missing.py",
        "apart <= ERRORS * error and error <= PART * count",
        "apart <= ERRORS * error",
        "server/test_missing.py",
    ),
    Mutation(
        "columns are missing together though measured counts differ",
        "server/missing.py",
        "apart <= ERRORS * error and error",
        "error",
        "server/test_missing.py",
    ),
    Mutation(
        "a product has the ends of its terms' ends, as if no number were below 0",
        "plan/equations.py",
        "products = [a * b for a in one for b in other]",
        "products = [one[0] * other[0], one[1] * other[1]]",
        "plan/test_equations.py",
    ),
    Mutation(
        "a product is rounded to the most decimals of a term",
        "plan/equations.py",
        "min(sum(known), DIGITS) if self.product",
        "max(known) if self.product",
        "plan/test_equations.py",
    ),
    Mutation(
        "a draft tries no squares",
        "tables/offers.py",
        "combinations_with_replacement",
        "combinations",
        "test_equations_runs.py::test_a_square_that_a_draft_names_is_exact_in_every_row",
    ),
    Mutation(
        "cells that noise alone fills keep some records in the model of a single holder",
        "server/server.py",
        "zeros=(*zeros, *_noise_alone(schema, local, tree, classes)),",
        "zeros=zeros,",
        "server/test_empty_cells_runs.py",
    ),
    Mutation(
        "cells that noise alone fills keep some records in the model of several parties",
        "server/server.py",
        "zeros=(*zeros, *empty),",
        "zeros=zeros,",
        "server/test_empty_cells_runs.py",
    ),
    Mutation(
        "redrawn models have records where the model has none",
        "model/redraw.py",
        "zeros=(*zeros, *empty_cells(inside, field.tree, field.class_maps)),",
        "zeros=zeros,",
        "server/test_empty_cells_runs.py",
    ),
    Mutation(
        "cells are emptied though noise does not explain the records in all of them",
        "model/empty_cells.py",
        "min(ERRORS * error, PART * independent - error)",
        "PART * independent - error",
        "model/test_empty_cells.py",
    ),
    Mutation(
        "cells are emptied where independent columns would have hardly a record",
        "model/empty_cells.py",
        "min(ERRORS * error, PART * independent - error)",
        "ERRORS * error",
        "model/test_empty_cells.py",
    ),
    Mutation(
        "the sum of counts that were chosen by their noise is taken for the records of their cells",
        "model/empty_cells.py",
        "counts[empty].sum() + errors[near].sum()",
        "counts[empty].sum()",
        "model/test_empty_cells.py",
    ),
    Mutation(
        "rare values of a map are not seen together",
        "model/empty_cells.py",
        "np.where(far.any(axis=1 - axis), np.arange(size), size)",
        "np.arange(size)",
        "model/test_empty_cells.py",
    ),
    Mutation(
        "counts of a pair's own margin are taken for another measurement of them",
        "model/empty_cells.py",
        "        if its.shape == counts.shape:",
        "        if False:",
        "model/test_empty_cells.py",
    ),
    Mutation(
        "cells are emptied in rows of which nothing is known",
        "model/empty_cells.py",
        "    inside = far.any(axis=1, keepdims=True) & far.any(axis=0, keepdims=True)",
        "    inside = np.ones(counts.shape, np.bool_)",
        "model/test_empty_cells.py",
    ),
    Mutation(
        "raking moves cells of too few rows",
        "kernels/rows.py",
        "kept = want[c] < least or sums[c] <= 0.0",
        "kept = sums[c] <= 0.0",
        "kernels/test_kernels_rows.py",
    ),
    Mutation(
        "of all candidates for a row the first is taken, whatever its counts",
        "model/sample.py",
        "return chosen * size + np.arange(size)",
        "return np.arange(size)",
        "model/test_sample.py::test_pairs_are_nearer_to_the_model_than_those_of_rows_that_are_not_evened_out",
    ),
    Mutation(
        "rows on a condition forget the factors beyond the tree",
        "model/markov_random_field.py",
        "self.loss, classes=classes, off_tree=off_tree)",
        "self.loss, classes=classes)",
        "model/test_sample.py::test_conditions_hold_for_the_factors_beyond_the_tree",
    ),
    Mutation(
        "weights follow measurements that say no more than their noise",
        "model/off_tree.py",
        "taken = set(itertools.compress(outside, stand_out(outside, expected)))",
        "taken = set(outside)",
        "model/test_off_tree.py::test_where_nothing_lies_outside_or_stands_out_the_model_is_left_as_it_is",
    ),
    Mutation(
        "weights may move the pairs that the model has",
        "model/off_tree.py",
        "_affordable([*significant, *kept], rows)",
        "_affordable(significant, rows)",
        "model/test_off_tree.py::test_rows_meet_what_is_measured_beyond_the_tree_and_keep_what_it_holds",
    ),
    Mutation(
        "a composed loss is untilted the wrong way",
        "privacy/accountant.py",
        "log_scale = self.log_moment - self.tilt * epsilon",
        "log_scale = self.log_moment + self.tilt * epsilon",
        "privacy/test_accountant.py",
        promise="So the sum is an upper bound for any period",
    ),
    Mutation(
        "what rounding may hide is dropped",
        "privacy/accountant.py",
        "wrong = self.error * (1 / (self.period * wide) + 0.5 / math.sqrt(wide))",
        "wrong = 0.0",
        "privacy/test_accountant.py::test_what_rounding_may_hide_is_added",
        promise="Bounds on the omitted frequencies and on rounding errors are added",
    ),
    Mutation(
        "losses that fold back by a period count with others",
        "privacy/accountant.py",
        "length = math.ceil(period / first.step)",
        "length = math.ceil(0.1 * period / first.step)",
        "privacy/test_accountant.py privacy/test_exact_composition.py",
        promise="the period is chosen so that the bound is tight",
    ),
    Mutation(
        "negative frequencies are forgotten",
        "privacy/accountant.py",
        "out[1:] *= 2",
        "out[1:] *= 1",
        "privacy/test_accountant.py",
        promise="The integral is computed as a sum over w = 2 pi k / period.",
    ),
    Mutation(
        "infinite losses count once, however often an event is repeated",
        "privacy/accountant.py",
        "infinite = sum(loss.count * loss.lost for loss in losses)",
        "infinite = sum(loss.lost for loss in losses)",
        "privacy/test_accountant.py::test_lost_masses_count_as_often_as_an_event_is_repeated",
        promise="probability of an infinite loss, including everything that was cut off",
    ),
    Mutation(
        "the largest losses are cut off and nothing is counted for them",
        "privacy/accountant.py",
        "lost = grid.lost + (float(above[size]) if size < len(above) else 0.0)",
        "lost = grid.lost",
        "privacy/test_accountant.py::test_what_is_cut_off_counts_as_infinite",
        promise="probability of an infinite loss, including everything that was cut off",
    ),
    Mutation(
        "the law of a mean of ratios is untilted the wrong way",
        "privacy/count_sketch.py",
        "log_scale = buckets * (top + math.log(total)) - order * sums",
        "log_scale = buckets * (top + math.log(total)) + order * sums",
        "privacy/test_count_sketch_event.py",
        promise="Each result plus its rounding errors is an upper bound",
    ),
    Mutation(
        "rounding errors of the law of a mean of ratios are dropped",
        "privacy/count_sketch.py",
        "(np.maximum(convolved, 0.0) + error)",
        "np.maximum(convolved, 0.0)",
        "privacy/test_count_sketch_event.py::test_far_out_the_law_is_never_below_sums_without_a_transform",
        promise="Each result plus its rounding errors is an upper bound",
    ),
    Mutation(
        "what a count sketch may lose is dropped",
        "privacy/events.py",
        "return connect_the_dots(loss, mass * ratio, step, lost), connect_the_dots(-loss, mass, step, lost)",
        "return connect_the_dots(loss, mass * ratio, step), connect_the_dots(-loss, mass, step)",
        "privacy/test_accountant.py::test_lost_masses_count_as_often_as_an_event_is_repeated",
        promise="Likelihood ratios of one repetition, their probabilities, and the probability left out.",
    ),
    Mutation(
        "an exposed value costs nothing where events compose",
        "privacy/events.py",
        "replace(grid, lost=grid.lost + self.exposed)",
        "replace(grid, lost=grid.lost)",
        "privacy/test_accountant.py::test_lost_masses_count_as_often_as_an_event_is_repeated",
        promise="Probability that a value that only one person has is released: the delta.",
    ),
    Mutation(
        "what was exposed beforehand weighs the same for a person with several records",
        "privacy/ledger.py",
        "remaining = self.delta - exposed * records * grown",
        "remaining = self.delta - exposed * records",
        "privacy/test_ledger.py::test_what_was_exposed_beforehand_weighs_more_for_a_person_with_several_records",
        promise="Epsilon at this ledger's delta for a person whose records are all added or removed.",
    ),
    Mutation(
        "a message is made from another table than its party's rows",
        "runs/party_run.py",
        "if file.sender == self.name and self._is_made(plan, file.name):",
        "if False:",
        "runs/test_encrypted_runs.py::test_rows_and_message_are_of_one_table",
    ),
    Mutation(
        "the server passes on what a party sealed for another one",
        "runs/files.py",
        "if of != (self.kind, plan.digest().hex(), self.sender, self.receiver):",
        "if False:",
        "runs/test_encrypted_runs.py::test_rows_of_another_run_or_altered_ones_are_refused",
    ),
    Mutation(
        "people are thought to be the same although nobody states it",
        "releases/auto.py",
        "lambda schema, _: not schema.same_people",
        "lambda schema, _: False",
        "releases/test_auto.py",
    ),
    Mutation(
        "encrypted counts are chosen although the result would be useless",
        "plan/planner.py",
        'judged.word == "useless"',
        "False",
        "releases/test_auto.py",
    ),
    Mutation(
        "one party's word on the people is enough",
        "plan/merge.py",
        "same_people=all(",
        "same_people=any(",
        "releases/test_auto.py",
    ),
    Mutation(
        "the selector of encrypted counts forgets its noise",
        "releases/encrypted_counts/encoding.py",
        "sketch.noise(one, other)",
        "1e-3",
        "releases/encrypted_counts/test_encrypted_counts.py::test_both_parties_noise_is_in_the_tables",
        promise="It adds the rows of each earlier party for its own values, with noise of its own.",
    ),
    Mutation(
        "the packer of encrypted counts forgets its noise",
        "releases/encrypted_counts/encoding.py",
        "source.gaussian(table, self.sketch.noise(*pair))",
        "table",
        "releases/encrypted_counts/test_encrypted_counts.py::test_both_parties_noise_is_in_the_tables",
        promise="It opens the later parties' answers and adds noise of its own.",
    ),
    Mutation(
        "the selector of encrypted counts swaps the noises of its tables",
        "releases/encrypted_counts/encoding.py",
        "sketch.noise(one, other)",
        "sketch.noise(other, other)",
        "test_leaks.py::test_a_record_moves_one_number_of_every_table_under_encryption",
        promise="It adds the rows of each earlier party for its own values, with noise of its own.",
    ),
    Mutation(
        "errors of encrypted counts are those of the smallest tables",
        "releases/encrypted_counts/estimation.py",
        "sketch.noise(g, mine)",
        "sketch.sigma",
        "releases/encrypted_counts/test_encrypted_counts.py::test_estimates_are_unbiased_and_their_errors_as_stated",
        promise="Measurements of encrypted counts",
    ),
    Mutation(
        "the ledger has the least noise of encrypted counts for all tables",
        "releases/encrypted_counts/parameters.py",
        "single = GaussianEvent(sigma, 1, tables)",
        "single = GaussianEvent(self.sigma, 1, tables)",
        "test_leaks.py::test_a_record_moves_one_number_of_every_table_under_encryption",
        promise="an entry for every two parties and noise",
    ),
    Mutation(
        "the packer's noise depends on the ciphertexts of answers",
        "releases/encrypted_counts/encoding.py",
        "source = noise(exact.digest())",
        "source = noise(hashlib.sha256(answers[party]).digest())",
        "releases/encrypted_counts/test_encrypted_counts.py::test_the_same_counts_in_other_ciphertexts_get_no_other_noise",
        promise="gives the noise for a digest of the counts in the answers",
    ),
    Mutation(
        "the packer's noise does not depend on the counts",
        "releases/encrypted_counts/encoding.py",
        "exact.update(table.tobytes())",
        "exact.update(bytes(table.shape))",
        "releases/encrypted_counts/test_encrypted_counts.py::test_the_same_counts_in_other_ciphertexts_get_no_other_noise",
        promise="gives the noise for a digest of the counts in the answers",
    ),
    Mutation(
        "an answer's noise does not depend on the rows that are added",
        "releases/encrypted_counts/encoding.py",
        "exact.update(hashlib.sha256(data).digest())",
        "pass",
        "releases/encrypted_counts/test_encrypted_counts.py::test_noise_depends_on_the_rows_and_on_the_table",
        promise="gives the noise for a digest of everything that the sums depend on",
    ),
    Mutation(
        "one piece of rows passes as another",
        "releases/encrypted_counts/encoding.py",
        'if header.get("piece") != piece:',
        "if False:",
        "releases/encrypted_counts/test_encrypted_counts.py::test_rows_in_pieces_give_the_same_tables_and_all_must_be_there",
        promise="not all there, or damaged",
    ),
    Mutation(
        "parties with different people are not noticed",
        "releases/encrypted_counts/encoding.py",
        "if people != self.people:",
        "if people is None:",
        "releases/encrypted_counts/test_encrypted_counts.py::test_files_of_others_are_refused",
        promise="a keyed digest of all ids, by which parties notice that they do not have the same people",
    ),
    Mutation(
        "ciphertexts are added before anybody looked at them",
        "releases/encrypted_counts/encoding.py",
        "check_rows(encrypted, layout, where, piece)",
        "pass",
        "releases/encrypted_counts/test_encrypted_counts.py::test_wrong_ciphertexts_are_refused_when_the_file_is_opened",
        promise="check all but whether both have the same people",
    ),
    Mutation(
        "a coalition is thought to know neither of two noises",
        "privacy/ledger.py",
        "if self.kind is Kind.ENCRYPTED_COUNTS and not any(part.party in coalition for part in self.parts):",
        "if self.kind is Kind.ENCRYPTED_COUNTS:",
        "plan/test_encrypted_plan.py::test_who_knows_one_noise_faces_the_other",
        promise="each is priced against the other, who knows one of the two noises",
    ),
    Mutation(
        "one colluding party is taken for the worst case of encrypted counts",
        "privacy/ledger.py",
        "for size in range(1, len(parties))",
        "for size in range(1, 2)",
        "plan/test_encrypted_plan.py::test_with_many_parties_the_worst_coalition_is_no_single_party",
        promise="So every set is tried.",
    ),
    Mutation(
        "evidence does not count how many marginals were looked at",
        "model/evidence.py",
        "limits = NOISE_AMONG * np.arange(1, len(order) + 1) / max(len(order), 1)",
        "limits = np.full(len(order), NOISE_AMONG)",
        "model/test_evidence.py",
    ),
    Mutation(
        "noise of an estimate across parties has as many directions as cells",
        "model/evidence.py",
        "spread = 2 / (9 * m.directions)",
        "spread = 2 / (9 * m.dimensions)",
        "model/test_evidence.py",
    ),
    Mutation(
        "pairs have the budget however little they depend on each other",
        "party/local_model.py",
        "if dependence > noise.mean():",
        "if True:",
        "party/test_local_model.py",
        promise="If R-scores show little dependence, one-way marginals are measured again with most of the weights.",
    ),
    Mutation(
        "few strong dependences are lost among many scores of noise",
        "party/local_model.py",
        "return max(max(float(scores.mean()), 0.0) ** 2, float(beyond) / chosen)",
        "return max(float(scores.mean()), 0.0) ** 2",
        "party/test_local_model.py",
        promise="The sum of squared scores beyond their noise sees few strong ones",
    ),
    Mutation(
        "what is asked for loses its budget if scores show little dependence",
        "party/local_model.py",
        "seen = {} if wanted.asked_for else scores",
        "seen = scores",
        "party/test_local_model.py",
        promise="marginals with more weight",
    ),
    Mutation(
        "bins are taken as a message states them",
        "message.py",
        "if not np.array_equal(sent, bin_of):",
        "if False:",
        "test_degenerate_messages.py",
        promise="They follow from its one-way marginals.",
    ),
    Mutation(
        "sums of a message's marginals may contradict each other",
        "message.py",
        "if abs(value - records) > SUMS_REACH * sigma:",
        "if False:",
        "test_degenerate_messages.py",
        promise="Refuse counts that sum to different numbers of records",
    ),
    Mutation(
        "pairs may contradict the marginals of single attributes",
        "message.py",
        "wrong |= bool((np.abs(gap) > SUMS_REACH * np.sqrt(variance)).any())",
        "pass",
        "test_degenerate_messages.py",
        promise="Refuse marginals that contradict those of single attributes",
    ),
    Mutation(
        "contrasts may be of more records than there are",
        "message.py",
        "wrong = bool((beyond > SUMS_REACH * math.hypot(m.error, error)).any())",
        "wrong = False",
        "test_degenerate_messages.py",
        promise="contrasts of more records than there are",
    ),
    Mutation(
        "a marginal may come again",
        "message.py",
        "if large or attributes in others:",
        "if large:",
        "test_degenerate_messages.py",
        promise="A party measures no set of attributes twice among these",
    ),
    Mutation(
        "a marginal may have more cells than any clique",
        "message.py",
        "large = len(shape) > 1 and math.prod(shape) > plan.local[party].largest_clique",
        "large = False",
        "test_degenerate_messages.py",
        promise="none that its cliques cannot hold",
    ),
    Mutation(
        "far more records than expected are sampled",
        "message.py",
        "if not -SUMS_REACH * error <= records <= most + SUMS_REACH * error:",
        "if not -SUMS_REACH * error <= records:",
        "test_bad_files.py",
        promise="to fewer than none or to far too many",
    ),
    Mutation(
        "the dimensions of a contrast of one value are divided by",
        "model/evidence.py",
        "if not m.dimensions:",
        "if False:",
        "test_degenerate_messages.py",
    ),
    Mutation(
        "contrasts of one bin are measurements",
        "releases/count_sketches/estimation.py",
        """out.append(named(plan, measured, "count sketches"))
    return tuple(m for m in out if m.dimensions)""",
        """out.append(named(plan, measured, "count sketches"))
    return tuple(out)""",
        "test_degenerate_messages.py",
    ),
    Mutation(
        "sketches may match more records than a party has",
        "server/population.py",
        "if beyond > max(errors * error, NEGLIGIBLE * fewest.records):",
        "if False:",
        "server/test_population.py",
    ),
    Mutation(
        "nobody is named if no model fits the messages",
        "server/server.py",
        'raise ModelError(f"No model fits the messages of {names}. {error}") from error',
        "raise",
        "test_impossible_runs.py",
    ),
    Mutation(
        "a party whose answers cannot be opened is not named",
        "releases/encrypted_counts/encoding.py",
        'raise MessageError(f"{name!r} sent what cannot be opened. {error}") from None',
        "raise",
        "runs/test_encrypted_runs.py",
        promise="The sentence names their party.",
    ),
    Mutation(
        "a party that another's file stopped does not say which file to delete",
        "runs/party_run.py",
        'place = self.folder / RECEIVED / f"{kind}-*"',
        "raise",
        "runs/test_encrypted_runs.py",
    ),
    Mutation(
        "a server that a message stopped does not say which file to delete",
        "runs/server_run.py",
        'place = self.folder / RECEIVED / "PARTY" / MESSAGE',
        "raise",
        "runs/test_runs.py",
    ),
    Mutation(
        "steps of counters follow from the second measurement of an attribute",
        "model/local_marginal.py",
        "out.setdefault(m.attributes[0], m)",
        "out[m.attributes[0]] = m",
        "party/test_local_model.py",
        promise="Bins, merged values and steps of counters follow from these marginals.",
    ),
    Mutation(
        "a table with little signal has the usual shares of the budget",
        "plan/shares.py",
        "if errors.get(usual, math.inf) <= most:",
        "if True:",
        "plan/test_shares.py",
    ),
    Mutation(
        "of shares that are equal in the forecast the one with the least error is taken",
        "plan/shares.py",
        "return min(equal, key=lambda shares: sum(distances(self, shares).one_way ** 2))",
        "return min(equal, key=errors.__getitem__)",
        "plan/test_shares.py",
    ),
    Mutation(
        "a plan that is no better than independent columns is not useless",
        "plan/verdict.py",
        'if errors.three > ROUGH or (hopeless and word != "good"):',
        "if errors.three > 1:",
        "plan/test_plan_verdict.py",
    ),
    Mutation(
        "a regression needs its outcome's pairs alone",
        "plan/analyses.py",
        "itertools.combinations_with_replacement(terms, 2)",
        "((terms[0], other) for other in terms)",
        "plan/test_analyses.py",
    ),
    Mutation(
        "a name between backticks is split",
        "plan/analyses.py",
        'f"{QUOTED}|({at})"',
        'f"({at})"',
        "plan/test_analyses.py",
    ),
    Mutation(
        "what is asked for has no part of the budget for itself",
        "party/local_model.py",
        "if 0 < part < ASKED_SHARE:",
        "if False:",
        "plan/test_workload.py",
        promise="Shares of the budget: by weight, and :data:`ASKED_SHARE` or more for what the workload needs.",
    ),
    Mutation(
        "an asked-for pair that no clique holds is measured where its score is high only",
        "party/local_model.py",
        "if pair in wanted.pairs or score > max(above_noise, SCORE_PART * noise):",
        "if score > max(above_noise, SCORE_PART * noise):",
        "plan/test_workload.py",
        promise="Weights of measured pairs outside the cliques: those asked for, and those of high scores.",
    ),
    Mutation(
        "what is asked for enters the model where it stands out only",
        "server/global_graph.py",
        "for attributes in plan.workload.in_order():",
        "for attributes in ():",
        "plan/test_workload.py",
    ),
    Mutation(
        "columns that are asked for across parties weigh as all others",
        "releases/count_sketches/weights.py",
        "attribute * (ASKED if group.attributes[0] in asked else 1)",
        "attribute",
        "plan/test_workload.py",
    ),
    Mutation(
        "what is most of the records without a value is no half of its own",
        "plan/binning.py",
        "share[-1] < 1 - MISSING_HALF",
        "False",
        "plan/test_binning.py",
    ),
    Mutation(
        "records without a value are cut off as if they were the largest",
        "plan/binning.py",
        "share[: len(share) - missing]",
        "share",
        "plan/test_binning.py",
    ),
    Mutation(
        "bins of a trend cross its halves",
        "plan/binning.py",
        "of_part = half == part",
        "of_part = half >= part",
        "plan/test_binning.py",
    ),
    Mutation(
        "halves of records without a value have an order",
        "plan/binning.py",
        "not ordered or (missing and (half == half[-1]).sum() == 1)",
        "not ordered",
        "plan/test_binning.py",
    ),
    Mutation(
        "halved attributes are cut into bins of like counts",
        "plan/groups.py",
        "count == 2 and attribute in halved",
        "False",
        "plan/test_halved.py",
    ),
    Mutation(
        "what a workload names is halved",
        "plan/planner.py",
        "mergeable(schema) - target.workload.attributes",
        "mergeable(schema)",
        "plan/test_halved.py",
    ),
    Mutation(
        "shared attributes and those in structural zeros are halved",
        "plan/merging.py",
        "len(schema.holders[a]) == 1 and a not in linked",
        "True",
        "plan/test_halved.py",
    ),
    Mutation(
        "attributes are halved for everybody's rows",
        "plan/planner.py",
        "or planning.population == OUTER",
        "or False",
        "plan/test_halved.py",
    ),
    Mutation(
        "nothing is halved where pairs are noise alone",
        "plan/planner.py",
        "a for a in varying & able if schema.sizes[a] > most",
        "a for a in varying & able if False",
        "plan/test_halved.py",
    ),
    Mutation(
        "a plan may halve what several parties hold",
        "plan/plan.py",
        "a in mergeable(self.schema) if self.schema.sizes[a] > 2",
        "a in range(len(self.schema.sizes)) if self.schema.sizes[a] > 2",
        "plan/test_halved.py",
    ),
    Mutation(
        "a group of a halved attribute has any number of bins",
        "plan/plan.py",
        "shown and group.size == self.schema.sizes[group.attributes[0]]",
        "False",
        "plan/test_halved.py",
    ),
    Mutation(
        "parties of several merge their own marginals in halves",
        "plan/plan.py",
        "self.halved if holders == 1 else ()",
        "self.halved",
        "plan/test_halved.py",
    ),
    Mutation(
        "a holder of all columns measures the pairs of its cliques alone",
        "party/local_model.py",
        "plan.contrasts and any(how.halved for how in (long or {}).values())",
        "False",
        "party/test_local_model.py",
        promise="All pairs of attributes, of which halved ones have one number",
    ),
    Mutation(
        "a trend's cells are as precise as if each had been measured",
        "model/trend.py",
        "sigma = max(error * slope, LEAST_ERROR)",
        "sigma = LEAST_ERROR",
        "model/test_trend.py",
    ),
    Mutation(
        "a trend has the correlation that is most likely",
        "model/trend.py",
        "float(chances @ CORRELATIONS)",
        "float(CORRELATIONS[chances.argmax()])",
        "model/test_trend.py",
    ),
    Mutation(
        "correlations near one count as little as others",
        "model/trend.py",
        " * np.gradient(CORRELATIONS)\n",
        "\n",
        "model/test_trend.py",
    ),
    Mutation(
        "Gaussian variables on two sides of their medians are as on one",
        "model/trend.py",
        " - (x * y < 0)",
        "",
        "model/test_trend.py",
    ),
    Mutation(
        "what no trend explains is read as one",
        "model/trend.py",
        "beyond > BEYOND * math.sqrt(2 * m.dimensions)",
        "False",
        "model/test_trend.py",
    ),
    Mutation(
        "what is asked for is read as a trend",
        "model/trend.py",
        "or m.asked or",
        "or",
        "model/test_trend.py",
    ),
    Mutation(
        "the noise of a trend has as many directions as cells",
        "model/measurement.py",
        "return 1 / self.counts.size",
        "return 1.0",
        "model/test_trend.py",
    ),
    Mutation(
        "fits follow trends as all else",
        "model/fit.py",
        "TREND if m.trend else ASKED if m.asked else 1.0",
        "ASKED if m.asked else 1.0",
        "model/test_fit.py",
    ),
    Mutation(
        "fits end by the residuals of all cells, whatever trends lack",
        "model/fit.py",
        "gain = float((before - misfit).max())",
        "gain = float((before - misfit)[0])",
        "model/test_fit.py",
    ),
    Mutation(
        "draws read no trends",
        "model/redraw.py",
        "(out[i],) = as_trends([out[i]], cuts, field.total)",
        "pass",
        "model/test_redraw.py",
    ),
    Mutation(
        "a model's file forgets its trends",
        "model/redraw.py",
        "return cls(tuple(out), trends)",
        "return cls(tuple(out))",
        "model/test_redraw.py",
    ),
    Mutation(
        "fits follow trends that noise may explain",
        "model/trend.py",
        "not m.trend or m.squares(_apart(m)) >= SHOWN**2",
        "True",
        "model/test_trend.py",
    ),
    Mutation(
        "pairs without a halved attribute are read as trends",
        "model/trend.py",
        "cuts[a].halved and number_of_bins(cuts[a].finer) >= (count if count > 2 else 3)\n        for",
        "number_of_bins(cuts[a].finer) >= (count if count > 2 else 3)\n        for",
        "model/test_trend.py",
    ),
    Mutation(
        "columns that are mostly halved may spend their budget on pairs",
        "plan/shares.py",
        "if not self.mostly_halved or self.encrypted:\n            return",
        "if True:\n            return",
        "plan/test_shares.py",
    ),
    Mutation(
        "a single holder halves for one long column",
        "plan/planner.py",
        "target.several or 2 * len(long) >= len(varying)",
        "True",
        "plan/test_halved.py",
    ),
    Mutation(
        "the server leaves halves as they are",
        "server/server.py",
        "known = [as_trends(some, cut, total) for some in (local, crossing)]",
        "known = [list(some) for some in (local, crossing)]",
        "server/test_trends.py",
    ),
    Mutation(
        "trends near 0 are no evidence against what the tree implies",
        "server/server.py",
        "self._off_tree(fitted, [*itertools.chain(*known)])",
        "self._off_tree(fitted, [*local, *crossing])",
        "server/test_trends.py",
    ),
    Mutation(
        "fits do not follow pairs' halves",
        "server/server.py",
        "(*local, *graph.kept, *halved)",
        "(*local, *graph.kept)",
        "server/test_trends.py",
    ),
    Mutation(
        "fits follow halves that noise may explain",
        "server/cells.py",
        "> BEYOND * error",
        "> 0 * error",
        "server/test_cells.py",
    ),
    Mutation(
        "halves are stated twice as precise as they are",
        "server/cells.py",
        "sigma=2 * error",
        "sigma=error",
        "server/test_cells.py",
    ),
    Mutation(
        "the synthesizer of one holder reads no trends",
        "synthesizer.py",
        "server.fit(first, clock)",
        "(first.initial, server.fit(first, clock)[1])",
        "server/test_trends.py",
    ),
    Mutation(
        "remedies have the halves of the plan's columns",
        "plan/verdict.py",
        "other = _halved(other) if plan.halved else other",
        "pass",
        "plan/test_plan_verdict.py",
    ),
    Mutation(
        "a correlation's forecast forgets what a trend leaves out",
        "plan/verdict.py",
        "form.append(np.where(halved, TREND_FORM, BINS_FORM))",
        "form.append(np.where(halved, BINS_FORM, BINS_FORM))",
        "plan/test_halved.py",
    ),
    Mutation(
        "a trend's forecast is that of a cell",
        "plan/shares.py",
        "errors *= np.where(np.logical_or.outer(one[1], other[1]), TREND_ERROR, 1.0)",
        "pass",
        "plan/test_halved.py",
    ),
    Mutation(
        "the verdict does not say what correlations are off by",
        "plan/verdict.py",
        "if not math.isnan(self.errors.correlation):",
        "if False:",
        "plan/test_halved.py",
    ),
    Mutation(
        "numbers that are asked for across parties have all their bins",
        "releases/count_sketches/planning.py",
        "bins=(min(group.size, most),)",
        "bins=(group.size,)",
        "plan/test_workload.py",
    ),
    Mutation(
        "bins of numbers that are asked for do not follow the records",
        "releases/count_sketches/planning.py",
        "(records / error) ** 0.4",
        "20",
        "plan/test_workload.py",
    ),
    Mutation(
        "fits follow what is asked for as all else",
        "model/fit.py",
        "ASKED if m.asked else 1.0",
        "1.0",
        "model/test_fit.py",
    ),
    Mutation(
        "estimates across parties forget that they are asked for",
        "releases/received.py",
        "asked = plan.workload.needs(measured.attributes) and any(",
        "asked = not plan.workload.marginals and any(",
        "plan/test_workload.py",
    ),
    Mutation(
        "shares that are asked for across parties are followed as closely as means",
        "releases/received.py",
        "plan.schema.attributes[a].ordered and plan.schema.sizes[a] > 2 for",
        "True for",
        "plan/test_workload.py",
    ),
    Mutation(
        "draws forget what was asked for",
        "model/redraw.py",
        "replace(blank, asked=i in asked)",
        "blank",
        "model/test_redraw.py",
    ),
    Mutation(
        "errors do not grow by how far a model is from its measurement",
        "model/trust.py",
        "misfit = 2 * max(float(self.distance[i]) - noise, 0.0)",
        "misfit = 0.0",
        "model/test_trust.py",
    ),
    Mutation(
        "draws forget the noise of measurements",
        "model/redraw.py",
        "counts += contrasted",
        "contrasted",
        "model/test_redraw.py",
    ),
    Mutation(
        "draws forget that people are a sample",
        "model/sample.py",
        "codes[:, rng.choice(codes.shape[1], rows, p=weights)]",
        "codes[:, :rows]",
        "model/test_redraw.py",
    ),
    Mutation(
        "draws follow their noise only in part",
        "model/redraw.py",
        "biased, REFIT",
        "biased",
        "model/test_redraw.py",
    ),
    Mutation(
        "draws take the stated errors across parties for the real ones",
        "model/redraw.py",
        "ACROSS if across else 1.0",
        "1.0",
        "model/test_redraw.py",
    ),
    Mutation(
        "intervals forget that there are only m draws",
        "model/intervals.py",
        "1 + 1 / m",
        "1",
        "model/test_intervals.py",
    ),
    Mutation(
        "intervals are not corrected for the bias of the fit",
        "model/intervals.py",
        "2 * _numbers(released) - mean",
        "mean",
        "model/test_intervals.py",
    ),
    Mutation(
        "intervals may be shorter than sampling alone makes them",
        "model/intervals.py",
        "np.maximum((1 + 1 / m) * q.var(axis=0, ddof=1), u.mean(axis=0))",
        "(1 + 1 / m) * q.var(axis=0, ddof=1)",
        "model/test_intervals.py",
    ),
    Mutation(
        "the calibration of encrypted counts looks at the server alone",
        "plan/plan.py",
        "if self.exchanges:\n            views +=",
        "if False:\n            views +=",
        "plan/test_encrypted_plan.py::test_less_noise_in_tables_is_refused_even_where_the_server_alone_would_not_notice",
    ),
    Mutation(
        "a selector forgets its noise",
        "releases/encrypted_counts/counts.py",
        "layout.pack(drawn)",
        "layout.pack(0 * drawn)",
        "releases/encrypted_counts/test_counts.py",
        promise="and its own noise",
    ),
    Mutation(
        "counters have no offset, so that noise below zero borrows from the next counter",
        "releases/encrypted_counts/packing.py",
        "for row in (noise + self.offset).tolist()",
        "for row in noise.tolist()",
        "releases/encrypted_counts/test_packing.py releases/encrypted_counts/test_counts.py",
        promise="so that neither noise nor rows make it negative",
    ),
    Mutation(
        "rows are encrypted again under the same seed",
        "releases/encrypted_counts/counts.py",
        "seed, random = lattice.new_seed(), Randomness()",
        "seed, random = private.seed, Randomness()",
        "releases/encrypted_counts/test_counts.py::test_rows_that_are_encrypted_again_have_nothing_in_common",
        promise="The encrypted rows, under a fresh seed.",
    ),
    Mutation(
        "rows are encrypted without errors",
        "releases/encrypted_counts/counts.py",
        "errors = random.errors(layout.slots, N)\n        words",
        "errors = 0 * random.errors(layout.slots, N)\n        words",
        "releases/encrypted_counts/test_counts.py::test_errors_of_rows_are_centred_binomial_and_independent",
        promise="The selector sees ciphertexts.",
    ),
    Mutation(
        "a selector does not re-randomise its answers",
        "releases/encrypted_counts/counts.py",
        "weights = random.thirds(sum(counted), N)",
        "weights = 0 * random.thirds(sum(counted), N)",
        "releases/encrypted_counts/test_counts.py::test_answers_have_encryptions_of_zero_that_are_all_different",
        promise="what an answer has beside them depends on nothing but chance",
    ),
    Mutation(
        "a selector's encryptions of zero have no errors",
        "releases/encrypted_counts/counts.py",
        "errors = random.errors(sum(counted), N)",
        "errors = 0 * random.errors(sum(counted), N)",
        "releases/encrypted_counts/test_counts.py::test_answers_have_encryptions_of_zero_that_are_all_different",
        promise="what an answer has beside them depends on nothing but chance",
    ),
    Mutation(
        "a selector forgets the flooding",
        "releases/encrypted_counts/counts.py",
        "layout.scale * plaintext + layout.largest_error + flood",
        "layout.scale * plaintext + layout.largest_error + 0 * flood",
        "releases/encrypted_counts/test_counts.py::test_what_an_answer_has_beside_its_plaintext_is_uniform_over_the_whole_flooding",
        promise="what an answer has beside them depends on nothing but chance",
    ),
    Mutation(
        "the flooding is sixteen bits narrower",
        "releases/encrypted_counts/counts.py",
        "random.integers(sums.shape[0] * sums.shape[1], layout.flooding_bits)",
        "random.integers(sums.shape[0] * sums.shape[1], layout.flooding_bits - 16)",
        "releases/encrypted_counts/test_counts.py::test_what_an_answer_has_beside_its_plaintext_is_uniform_over_the_whole_flooding",
        promise="what an answer has beside them depends on nothing but chance",
    ),
    Mutation(
        "answers of one file have their encryption of zero in common",
        "releases/encrypted_counts/counts.py",
        "weights = random.thirds(sum(counted), N)",
        "weights = np.repeat(random.thirds(1, N), sum(counted), axis=0)",
        "releases/encrypted_counts/test_counts.py::test_answers_have_encryptions_of_zero_that_are_all_different",
        promise="what an answer has beside them depends on nothing but chance",
    ),
    Mutation(
        "a file of encrypted counts says how many records there are",
        "releases/encrypted_counts/encoding.py",
        '"people": self.people',
        '"people": self.people, "records": int((self.codes >= 0).all(0).sum())',
        "releases/encrypted_counts/test_encrypted_counts.py::test_a_simulator_writes_what_each_party_receives",
        promise="What a file says about itself",
    ),
    Mutation(
        "a record that does not fit has no row",
        "party/records.py",
        "return np.concatenate([digests, blanks]), values",
        "return digests, values[:, : len(digests)]",
        "test_leaks.py::test_a_record_moves_one_number_of_every_table_under_encryption",
        promise="The values are -1 for an id whose record does not fit.",
    ),
    Mutation(
        "all slots have one secret",
        "releases/encrypted_counts/lattice.py",
        'b"slot %d" % c',
        'b"slot %d" % (0 * c)',
        "releases/encrypted_counts/test_lattice.py::test_secrets_are_of_their_key_and_slot",
        promise="The secrets of so many slots",
    ),
    Mutation(
        "a selector adds the rows of other records",
        "releases/encrypted_counts/counts.py",
        "weights = _weights(codes[:, (block - 1) * N : block * N], counted)",
        "weights = _weights(codes[:, :N], counted)",
        "releases/encrypted_counts/test_counts.py::test_rows_of_several_blocks",
        promise="the rows that have the value",
    ),
    Mutation(
        "a blank counts as a selector's last value",
        "releases/encrypted_counts/counts.py",
        "rows = np.flatnonzero(values >= 0)",
        "rows = np.flatnonzero(values >= -1)",
        "releases/encrypted_counts/test_counts.py::test_tables_are_exact_but_for_the_noise",
        promise="-1 for a blank",
    ),
    Mutation(
        "a blank counts as a packer's first value",
        "releases/encrypted_counts/packing.py",
        "return np.where(codes < 0, -1, moved)",
        "return np.where(codes < 0, np.cumsum(rows)[:, None] - rows, moved)",
        "releases/encrypted_counts/test_packing.py releases/encrypted_counts/test_counts.py",
        promise="-1 for a blank",
    ),
    Mutation(
        "counters have no room for noise",
        "releases/encrypted_counts/packing.py",
        "return (self.capacity + 2 * self.offset).bit_length()",
        "return self.capacity.bit_length()",
        "releases/encrypted_counts/test_packing.py releases/encrypted_counts/test_counts.py",
        promise="it holds the capacity, the offset, and noise as large as the offset",
    ),
    Mutation(
        "polynomials that are one number pass as ciphertexts",
        "releases/encrypted_counts/lattice.py",
        "if ((polynomials[..., 1:] == polynomials[..., :-1]).sum(-1) >= MOST_REPEATED).any():",
        "if False:",
        "releases/encrypted_counts/test_lattice.py::test_polynomials_that_are_no_ciphertexts_are_refused",
        promise="or a polynomial repeats coefficients",
    ),
    Mutation(
        "public polynomials do not depend on their block",
        "releases/encrypted_counts/lattice.py",
        'b"vertimrf a %d %d " % (block, q)',
        'b"vertimrf a %d %d " % (0, q)',
        "releases/encrypted_counts/test_lattice.py::test_public_polynomials_are_uniform_and_follow_from_seed_and_block",
        promise="The uniform polynomial of a block",
    ),
    Mutation(
        "public polynomials are residues modulo the primes of longer words",
        "releases/encrypted_counts/lattice.py",
        "kept, length = words[words < q], 2 * length",
        "kept, length = words % np.uint32(q), 2 * length",
        "releases/encrypted_counts/test_lattice.py::test_residues_are_drawn_by_rejection",
        promise="residues and thirds are drawn by rejection",
    ),
    Mutation(
        "thirds are bytes modulo 3",
        "releases/encrypted_counts/lattice.py",
        "some = some[some < 255][: out.size - done] % 3",
        "some = some[: out.size - done] % 3",
        "releases/encrypted_counts/test_lattice.py::test_bytes_from_255_on_are_no_thirds",
        promise="bytes below 255 modulo 3",
    ),
    Mutation(
        "the flooding may be narrower than errors need",
        "releases/encrypted_counts/packing.py",
        "DISTANCE_BITS = 43",
        "DISTANCE_BITS = 23",
        "releases/encrypted_counts/test_packing.py::test_the_flooding_hides_errors_and_nothing_wraps",
        promise="as many as leave room for the flooding",
    ),
    Mutation(
        "records beyond the capacity are kept by their order in the table",
        "releases/encrypted_counts/positions.py",
        'kept = np.argsort(digests, kind="stable")[:capacity]',
        'kept = np.argsort(digests[:capacity], kind="stable")',
        "releases/encrypted_counts/test_positions.py",
        promise="Of more records than ``capacity``, those with the lowest digests are kept.",
    ),
    Mutation(
        "anybody seals a file in another one's name by public keys alone",
        "keys.py",
        "hkdf(with_ephemeral + with_sender, None",
        "hkdf(with_ephemeral, None",
        "test_keys.py",
        promise="So nobody else can have made the file.",
    ),
    Mutation(
        "a sender's key opens what it has sent",
        "keys.py",
        "hkdf(with_ephemeral + with_sender, None",
        "hkdf(with_sender, None",
        "test_keys.py",
        promise="the sender's key alone cannot open the file later",
    ),
    Mutation(
        "who guesses the contents of a file sees by its ephemeral key that they are right",
        "keys.py",
        'PrivateKey(None, sender.derive(plan, f"ephemeral key of {sealing}"))',
        "PrivateKey(None, hashlib.sha256(sealing.encode()).digest())",
        "test_keys.py",
        promise="The ephemeral key is a function of the sender's private key, the header and the contents",
    ),
    Mutation(
        "what a key derives under one plan is the same under every plan",
        "keys.py",
        'hkdf(self.value, plan, b"vertimrf own " + purpose.encode())',
        'hkdf(self.value, None, b"vertimrf own " + purpose.encode())',
        "party/test_releases.py",
        promise="Secret key material for one purpose under one plan",
    ),
    Mutation(
        "a party seals under a plan that has another key in its name",
        "keys.py",
        "    keys.check(sender)\n    receiver = keys.key_of(to)",
        "    receiver = keys.key_of(to)",
        "test_keys.py",
        promise="PlanError: the plan does not have the sender's key.",
    ),
    Mutation(
        "chunks of a sealed file can be taken out and put in another order",
        "files/sealed.py",
        'return number.to_bytes(11, "big") + bytes([last])',
        "return bytes(11) + bytes([last])",
        "files/test_sealed.py",
        promise="a file that was cut, reordered or extended does not open",
    ),
    Mutation(
        "a sealed file can be cut behind any chunk",
        "files/sealed.py",
        'return number.to_bytes(11, "big") + bytes([last])',
        'return number.to_bytes(11, "big") + bytes(1)',
        "files/test_sealed.py",
        promise="a byte that is 1 for the last chunk only",
    ),
    Mutation(
        "a party's message is taken under another party's key",
        "message.py",
        "if plan.party_names[party] != sealed_by:",
        "if False:",
        "test_message.py",
        promise="Refuse a message that is sealed with another party's key.",
    ),
    Mutation(
        "a message is private whatever it says of itself",
        "message.py",
        'private=Standing.from_json(header.get("standing")) == plan.standing',
        "private=True",
        "test_message.py",
        promise="The run is then marked as not private.",
    ),
    Mutation(
        "a message with fixed noise has the plan's label",
        "message.py",
        "standing = plan.standing if self.private else fixed",
        "standing = plan.standing",
        "test_message.py",
        promise="False if the noise was fixed (tests only)",
    ),
    Mutation(
        "a message of an earlier plan is taken under this plan's envelope",
        "message.py",
        'if header.get("plan") != plan.digest().hex():',
        "if False:",
        "test_message.py",
        promise="of another plan, or not what the plan asks for",
    ),
    Mutation(
        "one-way marginals have whatever noise they state",
        "message.py",
        "m.units == 1 and math.isclose(m.sigma, local.one_way_sigma) for m in first",
        "m.units == 1 for m in first",
        "test_message.py",
        promise="More measurements, or more accurate ones, would void the guarantee.",
    ),
    Mutation(
        "larger marginals have whatever noise they state",
        "message.py",
        "math.isclose(m.sigma, math.sqrt(m.units) * local.unit_sigma) for m in others",
        "True for m in others",
        "test_message.py",
        promise="More measurements, or more accurate ones, would void the guarantee.",
    ),
    Mutation(
        "every party may state a record count",
        "message.py",
        "if (count is None) != (party != 0) or not (",
        "if not (",
        "test_message.py",
        promise="Only the first party sends it.",
    ),
    Mutation(
        "a message has room for more than the plan asks for",
        "message.py",
        "if len(arrays) != expected:",
        "if False:",
        "test_message.py",
        promise="Nothing else leaves it.",
    ),
    Mutation(
        "the better of adding and of removing a record counts",
        "privacy/accountant.py",
        "pld = max((loss.epsilon(delta) for loss in composed), default=math.inf)",
        "pld = min((loss.epsilon(delta) for loss in composed), default=math.inf)",
        "privacy/test_accountant.py",
        promise="when a record is added and removed",
    ),
    Mutation(
        "delta of a person does not grow with the records",
        "privacy/accountant.py",
        "enough = single[log_deltas[:, 0] + growth <= math.log(delta) + 1e-12]",
        "enough = single[log_deltas[:, 0] <= math.log(delta) + 1e-12]",
        "privacy/test_ledger.py",
        promise="d (exp(k e) - 1) / (exp(e) - 1))-private for k records",
    ),
    Mutation(
        "noise that is taken in blocks has the loss of their middle",
        "privacy/events.py",
        "0.5 + 0.25 * (high - low) * (np.maximum(-low, 0.0) + self.spread), 1.0",
        "0.5, 1.0",
        "privacy/test_prices.py",
        promise="in both directions and never optimistic",
    ),
    Mutation(
        "several queries spend what one does",
        "privacy/events.py",
        "return self.count * self.sensitivity / self.scale",
        "return self.sensitivity / self.scale",
        "privacy/test_prices.py",
        promise="Epsilon of all queries together at a delta of 0: the largest possible loss.",
    ),
    Mutation(
        "an odd number of counters is priced by noise that it does not have",
        "privacy/events.py",
        "each += each % 2",
        "each += 0",
        "privacy/test_collusion.py",
        promise="If N is odd, 1 is added to it, which costs more.",
    ),
    Mutation(
        "of two ways to deal records to values the one that shows less counts",
        "privacy/events.py",
        "math.exp(max(one, each)",
        "math.exp(min(one, each)",
        "privacy/test_threshold_event.py",
        promise="it is largest with one value for all records, or with a different value for each",
    ),
    Mutation(
        "rare losses of sketches are left out and nothing is counted for them",
        "privacy/events.py",
        "lost = rare + (lacking if lacking > LACKING else 0.0)",
        "lost = 0.0",
        "privacy/test_prices.py",
        promise="never optimistic",
    ),
    Mutation(
        "losses beyond the longest grid are forgotten",
        "privacy/losses.py",
        "lost += float(mass[~near].sum())",
        "pass",
        "privacy/test_prices.py",
        promise="so that both measures keep their mass",
    ),
    Mutation(
        "a replaced record moves counts no further than a removed one",
        "privacy/events.py",
        "structs.replace(event, sensitivity=2 * event.sensitivity)",
        "structs.replace(event, sensitivity=event.sensitivity)",
        "privacy/test_prices.py",
        promise="so twice the sensitivity",
    ),
    Mutation(
        "what a law leaves out has no loss backwards",
        "privacy/count_sketch.py",
        "loss = np.append(-np.log(ratio[starts]), least)",
        "loss = np.append(-np.log(ratio[starts]), 0.0)",
        "privacy/test_prices.py",
        promise="The lost probability counts as the lowest possible ratio",
    ),
    Mutation(
        "at large orders a divergence does not grow with its order",
        "privacy/count_sketch.py",
        "known = orders * groups / (2 * variance)\n    most",
        "known = groups / (2 * variance)\n    most",
        "privacy/test_count_sketch_event.py",
        promise="the divergence is at most that of a record whose bucket and sign are known",
    ),
    Mutation(
        "moments of a shift go by its length, not by its square",
        "privacy/count_sketch.py",
        "half = weight**2 * groups / (2 * variance)",
        "half = weight * groups / (2 * variance)",
        "privacy/test_person_sketch.py::test_no_adversary_who_knows_how_records_share_buckets_learns_more_than_is_priced",
        promise="Log E l^k of a bucket's ratio l",
    ),
    Mutation(
        "records that share a bucket shift it by the root of their number",
        "privacy/person_sketch.py",
        "return (e + 1) ** 2 + records - e - 1",
        "return (e + 1) + records - e - 1",
        "privacy/test_person_sketch.py::test_no_adversary_who_knows_how_records_share_buckets_learns_more_than_is_priced",
        promise="Largest squared shift, in records, if ``e`` records share buckets beyond the necessary.",
    ),
    Mutation(
        "of records that share a bucket only their first is counted",
        "privacy/person_sketch.py",
        "            if e:\n",
        "            if False:\n",
        "privacy/test_person_sketch.py",
        promise="They shift its counters by a vector of length at most m sqrt(groups), reached when all have the same values and signs.",
    ),
    Mutation(
        "two records that share a bucket are taken for independent ones",
        "privacy/person_sketch.py",
        "bucket_ratio(groups, variance, 2.0, reach)",
        "bucket_ratio(groups, variance, math.sqrt(2), reach)",
        "privacy/test_person_sketch.py::test_no_adversary_who_knows_how_records_share_buckets_learns_more_than_is_priced",
        promise="They shift its counters by a vector of length at most m sqrt(groups), reached when all have the same values and signs.",
    ),
    Mutation(
        "every record of a person has all buckets for itself",
        "privacy/person_sketch.py",
        "return buckets // (records - e)",
        "return buckets",
        "privacy/test_person_sketch.py",
        promise="So the ratio is dominated by one such mean",
    ),
    Mutation(
        "moments of a person's ratios forget that records share buckets",
        "privacy/person_sketch.py",
        "one = (records - 2 * e) * single + e * double",
        "one = (records - 2 * e) * single",
        "privacy/test_person_sketch.py::test_no_adversary_who_knows_how_records_share_buckets_learns_more_than_is_priced",
        promise="Moments of products of independent ratios are products of moments.",
    ),
    Mutation(
        "known buckets cost a person K times as much, not K squared",
        "privacy/person_sketch.py",
        "known = orders * records**2 * groups / (2 * variance)",
        "known = orders * records * groups / (2 * variance)",
        "privacy/test_person_sketch.py::test_no_adversary_who_knows_how_records_share_buckets_learns_more_than_is_priced",
        promise="At all orders the divergence is at most that of records that share their values and a known bucket.",
    ),
    Mutation(
        "delta is spent in every categorical domain again",
        "party/private_domains.py",
        "epsilon / len(wanted), delta / len(wanted), records_per_person, source",
        "epsilon / len(wanted), delta, records_per_person, source",
        "party/test_private_domains.py",
        promise="with an equal part of epsilon and delta for each",
    ),
    Mutation(
        "values are ranked by their exact counts",
        "columns/private.py",
        "(-count, text) for count, text in zip(noisy, texts, strict=True)",
        "(-cells[text], text) for count, text in zip(noisy, texts, strict=True)",
        "party/test_private_domains.py",
        promise="the most frequent values whose noisy count exceeds a threshold",
    ),
    Mutation(
        "domains are shown before they are on the disk",
        "party/domain_record.py",
        "write_text(self.path, text, private=True, synced=True)",
        "write_text(self.path, text, private=True)",
        "party/test_private_domains.py",
        promise="is recorded and synced to disk before anybody sees it",
    ),
    Mutation(
        "a record of domains on a disk that is not there is none",
        "party/domain_record.py",
        "if not os.path.lexists(self.path):",
        "if not os.path.exists(self.path):",
        "party/test_private_domains.py",
        promise="PrivacyError: the record cannot be read or written",
    ),
    Mutation(
        "one key serves noise and all digests of a record of domains",
        "party/domain_record.py",
        'f"vertimrf domains {len(what)} {what} {text}".encode()',
        'f"vertimrf domains {text}".encode()',
        "party/test_private_domains.py",
        promise="A keyed digest of a text for one purpose",
    ),
    Mutation(
        "histograms of private domains with public bounds spend more than all",
        "columns/number_range.py",
        "rest = (1 - part) / (PARTS[1] + PARTS[2])",
        "rest = 1 / (PARTS[1] + PARTS[2])",
        "party/test_private_domains.py",
        promise="with parts of the budget that sum to 1",
    ),
    Mutation(
        "who knows the secret and chooses ids finds two tables of one digest",
        "party/releases.py",
        'records.keyed_sum(key.derive(plan_digest, "records of a table"))',
        'records.keyed_sum(hashlib.sha256(b"records of a table").digest())',
        "party/test_releases.py",
        promise="even if they were chosen by someone who knows the secret and chooses ids, but not the private key",
    ),
    Mutation(
        "a table without records has one digest at everybody",
        "party/releases.py",
        'hashlib.blake2b(key=key.derive(plan_digest, "table"), digest_size=32)',
        'hashlib.blake2b(key=b"table", digest_size=32)',
        "party/test_releases.py",
        promise="A keyed digest of a table's records",
    ),
    Mutation(
        "a second table is released for a plan",
        "party/releases.py",
        "if record.table != release.table:",
        "if False:",
        "party/test_releases.py",
        promise="a plan is never released for twice with different noise",
    ),
    Mutation(
        "a fingerprint is the beginning of the secret",
        "party/secret.py",
        'fingerprint(hashlib.sha256(b"vertimrf fingerprint" + self.value).digest())',
        "fingerprint(self.value)",
        "party/test_secret.py",
        promise="it reveals nothing useful about the secret",
    ),
    Mutation(
        "sketches of agreement on all columns share their hashes",
        "party/party.py",
        'purpose=f"agreement on {plan.schema.names[attribute]}"',
        'purpose="agreement"',
        "server/test_shared_columns.py",
        promise="Agreement sketches of the columns that this party shares with others.",
    ),
    Mutation(
        "the noise of sketches of agreement does not depend on their counters",
        "party/party.py",
        "[np.array([one_way[attribute].sum()])], noise.stream(counter.digest())",
        "[np.array([one_way[attribute].sum()])], noise.stream(b'')",
        "party/test_keyed_noise.py",
        promise="Noise is then a function of the key, the plan and the table",
    ),
    Mutation(
        "encrypted counts with fixed noise are private",
        "party/party.py",
        "private=noise.private",
        "private=True",
        "releases/encrypted_counts/test_encrypted_counts.py::test_counts_with_fixed_noise_are_not_private",
        promise="messages with it are marked as not private",
    ),
    Mutation(
        "a sample of encrypted rows has no reserve for the error of the count",
        "releases/encrypted_counts/parameters.py",
        "COUNT_REACH * sigma + SAMPLE_REACH * math.sqrt(self.capacity)",
        "SAMPLE_REACH * math.sqrt(self.capacity)",
        "plan/test_encrypted_plan.py::test_a_sample_never_has_more_records_than_rows",
        promise="The rest of the capacity is for the error of the count and for the spread of the sample.",
    ),
    Mutation(
        "a release under another secret counts as the first one",
        "party/party.py",
        'key=derive(self._secret, plan, purpose="release record")',
        'key=b"release record"',
        "party/test_keyed_noise.py",
        promise="The same table and plan give the same bytes.",
    ),
    Mutation(
        "all values of a shared column have one word",
        "releases/count_sketches/agreement.py",
        ".digest(8 * values)",
        ".digest(8) * values",
        "releases/count_sketches/test_agreement.py",
        promise="Derive a secret word for each value",
    ),
    Mutation(
        "against a party that colludes all of delta is left after what was exposed",
        "privacy/ledger.py",
        "composed_epsilon(events, self.delta - exposed)",
        "composed_epsilon(events, self.delta)",
        "privacy/test_collusion.py",
        promise="Largest epsilon at the same delta if parties collude with the server.",
    ),
    Mutation(
        "the total of runs that count persons is of records",
        "privacy/ledger.py",
        "            ledgers[0].records_per_person,",
        "            1,",
        "privacy/test_ledger.py",
        promise="Total of several runs over the same people",
    ),
    Mutation(
        "two releases that look alike are paid for once",
        "privacy/ledger.py",
        "if entry not in named or entry not in entries[:i]",
        "if entry not in entries[:i]",
        "plan/test_open_schema.py",
        promise="The entries without repetitions of a named release.",
    ),
    Mutation(
        "runs are added up whose neighbours differ",
        "privacy/ledger.py",
        "if len({ledger.neighbours for ledger in ledgers}) > 1:",
        "if False:",
        "privacy/test_ledger.py",
        promise="there are no ledgers, or their neighbours differ",
    ),
    Mutation(
        "the share of records that are encrypted follows from their exact number",
        "releases/encrypted_counts/encoding.py",
        "count = noisy_count(self.plan, self.derive, len(self.digests))\n        share",
        "count = len(self.digests)\n        share",
        "releases/encrypted_counts/test_encrypted_counts.py::test_a_record_beyond_the_capacity_moves_no_other_one",
        promise="Which records take part depends on keyed digests of ids and on the noisy count alone.",
    ),
    Mutation(
        "a file for one party is taken by another",
        "releases/encrypted_counts/encoding.py",
        'if (header.get("party"), header.get("receiver")) != (sender, None if rows else receiver):',
        'if header.get("party") != sender:',
        "releases/encrypted_counts/test_encrypted_counts.py::test_files_of_others_are_refused",
        promise="MessageError: the file is of another plan or party, or damaged",
    ),
    Mutation(
        "all draws at a threshold share their further bits",
        "privacy/sampler.py",
        'place.to_bytes(8, "little")',
        "bytes(8)",
        "privacy/test_noise.py",
        promise="A word and its 192 further bits (HMAC-SHA256 of its index)",
    ),
    Mutation(
        "two laws of one parameter share their noise",
        "privacy/noise.py",
        "what = repr((law, float(parameter).hex(), exact.shape)).encode()",
        "what = repr((float(parameter).hex(), exact.shape)).encode()",
        "privacy/test_noise.py::test_draws_of_two_laws_are_unrelated",
        promise="Each draw enters with its law, its parameter and SHA-256 of its values.",
    ),
    Mutation(
        "noise of another scale is a multiple of the same draws",
        "privacy/noise.py",
        "what = repr((law, float(parameter).hex(), exact.shape)).encode()",
        "what = repr((law, exact.shape)).encode()",
        "privacy/test_noise.py",
        promise="Each draw enters with its law, its parameter and SHA-256 of its values.",
    ),
    Mutation(
        "the record of domains that were searched for is made anew with another key",
        "party/domain_record.py",
        "if not os.path.lexists(path):",
        "if True:",
        "party/test_private_domains.py",
        promise="If only the record is lost, the same search gives the same edges.",
    ),
    Mutation(
        "a domain is searched for again if it is asked for in another way",
        "party/domain_record.py",
        "                _check_asked(entry.finding.domain, wanted.get(name), self.path)\n",
        "",
        "party/test_private_domains.py",
        promise="has an attribute of the part with a different request",
    ),
    Mutation(
        "a copy of a copy of a table is another one",
        "party/domain_record.py",
        "kept[i] = replace(entry, places=entry.places | places.get(name, set(files)))",
        "kept[i] = entry",
        "party/test_private_domains.py",
        promise="a copy of the part or of the table does not cause a new search",
    ),
    Mutation(
        "a value is listed one below its threshold",
        "columns/private.py",
        "if count >= event.threshold",
        "if count >= event.threshold - 1",
        "party/test_private_domains.py",
        promise="the most frequent values whose noisy count exceeds a threshold",
    ),
    Mutation(
        "anybody reads the records of releases",
        "party/releases.py",
        "replacing(path, private=True, synced=True, once=True)",
        "replacing(path, synced=True, once=True)",
        "party/test_releases.py",
        promise="It writes them to a record and syncs it to disk, *before* anybody sees them.",
    ),
    Mutation(
        "what is derived from the secret for one plan serves for all",
        "party/secret.py",
        'hkdf(secret.value, plan_digest, b"vertimrf " + purpose.encode())',
        'hkdf(secret.value, None, b"vertimrf " + purpose.encode())',
        "party/test_secret.py",
        promise="Derive key material for one purpose and plan, by HKDF-SHA256.",
    ),
    Mutation(
        "what is derived from the secret for one purpose serves for all",
        "party/secret.py",
        'hkdf(secret.value, plan_digest, b"vertimrf " + purpose.encode())',
        'hkdf(secret.value, plan_digest, b"vertimrf ")',
        "party/test_secret.py",
        promise="text that separates the uses of the secret",
    ),
    Mutation(
        "anybody reads the file of the secret",
        "party/secret.py",
        'save(path, text + "\\n", private=True, synced=True)',
        'save(path, text + "\\n", synced=True)',
        "party/test_secret.py",
        promise="Write the secret, readable by its owner alone.",
    ),
    Mutation(
        "a log shows the secret",
        "party/secret.py",
        "value: bytes = field(repr=False)",
        "value: bytes",
        "party/test_secret.py",
        promise="``repr`` hides them",
    ),
    Mutation(
        "a party works under a plan that has another key in its name",
        "party/party.py",
        "            plan.sealing_keys().check(key)\n            if key.party != name:",
        "            if key.party != name:",
        "party/test_keyed_noise.py",
        promise="has another key for it",
    ),
    Mutation(
        "a public key of small order is taken",
        "keys.py",
        "X25519PrivateKey.generate().exchange(X25519PublicKey.from_public_bytes(self.public))",
        "X25519PublicKey.from_public_bytes(self.public)",
        "test_keys.py",
        promise="MessageError: the name or the key is not usable.",
    ),
    Mutation(
        "two parties may have one key",
        "keys.py",
        "<= len(self.parties):",
        "< len(self.parties):",
        "test_keys.py",
        promise="PlanError: a public key is missing, repeated, or of the wrong role.",
    ),
    Mutation(
        "nobody notices that a key was swapped",
        "keys.py",
        "if public != key.offer.public:",
        "if False:",
        "test_keys.py",
        promise="Nothing else shows the owner that its key was swapped.",
    ),
    Mutation(
        "a file that is sealed again has other bytes",
        "keys.py",
        'once = PrivateKey(None, sender.derive(plan, f"ephemeral key of {sealing}"))',
        "once = PrivateKey.new(None)",
        "test_keys.py",
        promise="Sealing the same contents again gives the same bytes",
    ),
    Mutation(
        "anybody reads the file of a private key",
        "keys.py",
        'save(path, _text_of("key", self), private=True, synced=True)',
        'save(path, _text_of("key", self), synced=True)',
        "test_keys.py",
        promise="Write the key to a file that only its owner can read.",
    ),
    Mutation(
        "padding of a sample can be told from people",
        "party/alignment.py",
        'drawn = key.derive(plan.digest(), "padding of id samples")',
        "drawn = plan.digest()",
        "test_lengths.py",
        promise="The padding follows from the party's private key and the plan",
    ),
    Mutation(
        "more units are spent than the ledger has",
        "party/local_model.py",
        "units = 1 + ((plan.units - len(marginals)) * share).astype(int)",
        "units = 1 + np.ceil((plan.units - len(marginals)) * share).astype(int)",
        "party/test_local_model.py",
        promise="the sum of the weights, and their noise",
    ),
    Mutation(
        "records of a person are kept by their order",
        "party/persons.py",
        'k0, k1 = np.frombuffer(key[:16], "<u8").astype(np.uint64)',
        "k0, k1 = np.zeros(2, np.uint64)",
        "party/test_persons.py",
        promise="The choice depends on the key and on the person's records alone",
    ),
    Mutation(
        "rows of a person are sampled by a key that is always the same",
        "party/persons.py",
        "secrets.token_bytes(32) if key is None else key",
        "bytes(32) if key is None else key",
        "party/test_persons.py",
        promise="the choice of rows depends on it [16 bytes or more]; default a fresh one",
    ),
    Mutation(
        "a label without its figures is private",
        "privacy/standing.py",
        "and 0 <= self.delta < 1\n",
        "and 0 <= self.delta\n",
        "privacy/test_standing.py",
        promise="empty if it is private",
    ),
    Mutation(
        "a sum of the same people with other values is the same",
        "party/records.py",
        "record_sum(key, self.table.digests, self.table.codes)",
        "record_sum(key, self.table.digests, self.table.codes[:1])",
        "party/test_releases.py",
        promise="A keyed sum that is equal for tables of the same records",
    ),
    Mutation(
        "numbers of ciphertexts may be too large",
        "releases/encrypted_counts/lattice.py",
        "if (numbers >= ring().moduli).any():",
        "if False:",
        "releases/encrypted_counts/test_counts.py::test_shapes_of_others_files_are_those_of_the_plan",
        promise="Check that numbers are below the primes",
    ),
    Mutation(
        "everybody's ids have one digest under every key",
        "releases/encrypted_counts/positions.py",
        "record_sum(key, digests, np.empty",
        "record_sum(bytes(32), digests, np.empty",
        "releases/encrypted_counts/test_positions.py",
        promise="A keyed digest of a set of ids",
    ),
    Mutation(
        "noise of a counter may run into the next one",
        "releases/encrypted_counts/packing.py",
        "if (np.abs(noise) > self.reach).any():",
        "if False:",
        "releases/encrypted_counts/test_packing.py",
        promise="PrivacyError: noise exceeds its reach, which has a chance below 2^-60.",
    ),
    Mutation(
        "sketches of agreement are cut in steps of the exact number of records",
        "party/party.py",
        "[np.array([one_way[attribute].sum()])]",
        "[np.array([float(records.count)])]",
        "test_leaks.py::test_steps_of_counters_follow_from_released_figures",
        promise="Everything read from the table is an event of the plan's ledger.",
    ),
    Mutation(
        "levels of a sketch may be higher than any",
        "message.py",
        "if levels.max(initial=0) > most:",
        "if False:",
        "test_message.py",
        promise="each checked against the plan",
    ),
    Mutation(
        "epsilons of what was spent beforehand do not add",
        "privacy/ledger.py",
        "epsilon += entry.event.pure_epsilon",
        "epsilon = max(epsilon, entry.event.pure_epsilon)",
        "privacy/test_threshold_event.py",
        promise="Epsilon and delta of prior entries by basic composition.",
    ),
    Mutation(
        "infinite losses do not count where events compose",
        "privacy/accountant.py",
        "            + self.infinite\n",
        "            + 0.0\n",
        "privacy/test_accountant.py::test_lost_masses_count_as_often_as_an_event_is_repeated",
        promise="including everything that was cut off",
    ),
    Mutation(
        "a plan spends a hundredth more than its target",
        "privacy/accountant.py",
        "        if spent <= target:\n",
        "        if spent <= 1.01 * target:\n",
        "privacy/test_accountant.py::test_calibration_meets_the_target_from_below",
        promise="The largest scale whose events spend at most ``target`` at ``delta``.",
    ),
    Mutation(
        "losses are spread over the grid so that their mean alone is kept",
        "privacy/losses.py",
        "above = np.expm1(-offset) / math.expm1(-step)",
        "above = offset / step",
        "privacy/test_accountant.py::test_grids_are_never_optimistic_and_finer_ones_are_tighter",
        promise="so that both measures keep their mass",
    ),
    Mutation(
        "every table has the digest of none",
        "party/party.py",
        "self._digest(self._checked(table)),\n            key=",
        'b"",\n            key=',
        "party/test_many_places.py",
        promise="PrivacyError: the file was made from another table, or the record cannot be written.",
    ),
    Mutation(
        "a log shows a private key",
        "keys.py",
        "    party: str | None\n    value: bytes = field(repr=False)",
        "    party: str | None\n    value: bytes",
        "test_keys.py",
        promise="A private key, which stays with its owner.",
    ),
    Mutation(
        "what was spent on an attribute that is left out by now is forgotten",
        "party/domain_record.py",
        "if files[0] in entry.places or (",
        "if (",
        "party/test_private_domains.py",
        promise="because their budget is spent",
    ),
    Mutation(
        "a callee that changed in another file is not noticed",
        "kernels/cache.py",
        'Path(__file__).parent.glob("*.py")',
        'Path(__file__).parent.glob("cache.py")',
        "kernels/test_kernels_package.py::test_kernels_are_kept_outside_the_package_and_by_the_content_of_all_sources",
        promise="each content of all kernels' sources",
    ),
    Mutation(
        "a sample of ids has those that stand first in the table",
        "party/alignment.py",
        'order = np.argsort(least, kind="stable")[:SAMPLED]',
        "order = np.arange(len(least))[:SAMPLED]",
        "party/test_alignment.py",
        promise="So every party takes the same people.",
    ),
)


def copy_project(folder):
    """A copy of what the tests need, with modification times, so that compiled kernels stay valid."""
    for name in ("vertimrf", "tests", "benchmarks", "examples", "docs"):
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name)
    for name in ("pyproject.toml", "README.md"):
        shutil.copy2(ROOT / name, folder / name)


class FirstFailure:
    """A plugin that remembers the first test that fails."""

    def __init__(self):
        self.name = ""

    def pytest_runtest_logreport(self, report):
        if report.failed and not self.name:
            self.name = report.nodeid

    def pytest_collectreport(self, report):
        if report.failed and not self.name:
            self.name = f"{report.nodeid} (does not import)"


def run_tests(folder, tests, result):
    """In a process of its own: run tests of a copy until one fails; the exit code and its name go to a file."""
    os.setsid()
    out = os.open(os.devnull, os.O_WRONLY)
    os.dup2(out, 1)
    os.dup2(out, 2)
    os.chdir(folder)
    paths = (ROOT, ROOT / "tests", ROOT / "tests" / "tools")
    sys.path[:] = [folder, *(path for path in sys.path if Path(path or ".").resolve() not in paths)]
    sys.modules.pop("tools", None)
    os.environ |= {"PYTHONPATH": folder, "PYTHONDONTWRITEBYTECODE": "1"}
    sys.dont_write_bytecode = True
    import pytest

    import vertimrf

    assert Path(vertimrf.__file__).is_relative_to(folder), vertimrf.__file__
    failure = FirstFailure()
    arguments = ["-x", "-q", "-p", "no:cacheprovider", "--no-header"]
    arguments += [f"tests/{test}" for test in tests]
    code = int(pytest.main(arguments, plugins=[failure]))
    Path(result).write_text(json.dumps([code, failure.name]))


class Field:
    """Copies of the project in which mutants are tried, some at a time.

    Args:
        folder: where the copies go.
        jobs: how many.
    """

    def __init__(self, folder, jobs):
        self._processes = multiprocessing.get_context("forkserver")
        self._processes.set_forkserver_preload(LIBRARIES)
        # One thread each: on a busy machine, threads that wait for one another take many times as long. Numba reads it as it
        # loads; in this process it may have its threads already.
        before = os.environ.get("NUMBA_NUM_THREADS")
        os.environ["NUMBA_NUM_THREADS"] = "1"
        forkserver.ensure_running()
        del os.environ["NUMBA_NUM_THREADS"]
        if before is not None:
            os.environ["NUMBA_NUM_THREADS"] = before
        self._free = SimpleQueue()
        self._jobs = jobs
        for i in range(jobs):
            copy_project(folder / str(i))
            self._free.put(folder / str(i))

    def check(self, tests):
        """The tests pass on the unmutated copies, whose kernels are then compiled.

        Raises:
            SystemExit: one fails.
        """
        copies = [self._free.get() for _ in range(self._jobs)]
        with ThreadPoolExecutor(self._jobs) as threads:
            for by, _ in threads.map(lambda copy: self._run(copy, tests, 20 * SECONDS), copies):
                if by:
                    sys.exit(f"Without any mutation {by} fails: mend that first.")
        for copy in copies:
            self._free.put(copy)

    def try_out(self, mutation):
        """Whether the tests notice a mutation."""
        copy = self._free.get()
        path = copy / "vertimrf" / mutation.file
        text, status = path.read_text(), path.stat()
        try:
            path.write_text(mutation.apply(text))
            # Python goes by size and second of modification.
            for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.cpython*.pyc"):
                compiled.unlink()
            by, seconds = self._run(copy, mutation.chosen_tests, SECONDS)
        finally:
            path.write_text(text)
            os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
            self._free.put(copy)
        return Outcome(mutation.name, by, seconds)

    def _run(self, copy, tests, seconds):
        """Name of the first failing test, or "", and how long it took."""
        start = time.perf_counter()
        result = copy / "result.json"
        result.unlink(missing_ok=True)
        process = self._processes.Process(
            target=run_tests, args=(str(copy), list(tests), str(result))
        )
        process.start()
        process.join(seconds)
        with contextlib.suppress(ProcessLookupError, TypeError):
            # With whatever processes the tests have started: it leads a session of its own.
            os.killpg(process.pid, signal.SIGKILL)
        late = process.is_alive()
        process.join()
        took = time.perf_counter() - start
        if late:
            return "time", took
        if not result.exists():
            return f"the interpreter ended with {process.exitcode}", took
        code, name = json.loads(result.read_text())
        return ("" if code == 0 else name or f"pytest ended with {code}"), took


def chosen(options):
    """The mutations that the command line asks for; all are applied to their files, so that none is stale."""
    for mutation in NAMED:
        mutation.apply((ROOT / "vertimrf" / mutation.file).read_text())
    return [
        mutation
        for mutation in NAMED
        if not options.only or any(text in mutation.name for text in options.only)
    ]


def main():
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--only", action="append", help="mutations whose name has this text; may be repeated"
    )
    parser.add_argument("--jobs", type=int, default=1, help="mutants at a time")
    options = parser.parse_args()
    mutations = chosen(options)
    begun = time.perf_counter()
    outcomes = []

    with tempfile.TemporaryDirectory() as folder:
        field = Field(Path(folder), options.jobs)
        field.check(sorted({test for mutation in mutations for test in mutation.chosen_tests}))
        print(
            f"{len(mutations)} mutants; the tests pass without, after {time.perf_counter() - begun:.0f} s.",
            flush=True,
        )
        with ThreadPoolExecutor(options.jobs) as threads:
            for outcome in threads.map(field.try_out, mutations):
                outcomes.append(outcome)
                said = f"killed by {outcome.by}" if outcome.killed else "SURVIVED"
                print(f"{outcome.seconds:5.1f} s  {said}: {outcome.name}", flush=True)
    survivors = [outcome.name for outcome in outcomes if not outcome.killed]
    print(
        f"{len(outcomes)} tried of {len(mutations)}, {len(outcomes) - len(survivors)} killed, {len(survivors)} survived."
    )
    sys.exit(1 if survivors else 0)


if __name__ == "__main__":
    main()
