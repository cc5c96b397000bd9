# SPDX-License-Identifier: Apache-2.0
"""examples/fencing/postgresql.sql and column.sql on a real PostgreSQL, through psql."""

import subprocess
import unittest

from guards import ColumnGuard, PostgresGuard, Refused, Stale, guard_file
from claims import NEWER, OLDER, Claims
from fixture import until
from postgres_server import PostgresServer


def setUpModule():
    global SERVER  # pylint: disable=global-variable-undefined
    SERVER = PostgresServer()
    unittest.addModuleCleanup(SERVER.stop)


class Session:
    """One psql that stays; what it was told is done when `say` returns."""

    def __init__(self, guard):
        self.process = subprocess.Popen(["psql", "-XqAt"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, text=True, env=guard.full_environment())

    def say(self, statement):
        self.process.stdin.write(f"{statement}\n\\echo said\n")
        self.process.stdin.flush()
        lines = []
        for line in self.process.stdout:
            if line == "said\n":
                break
            lines.append(line)
        return "".join(lines)

    def close(self):
        self.process.communicate(timeout=30)


class SqlClaims(Claims):
    empty_is_named = '""'

    def session(self):
        session = Session(self.guard)
        self.addCleanup(session.close)
        return session

    def wait_until_somebody_waits_for_a_row(self):
        waiting = "select count(*) from pg_stat_activity where wait_event_type = 'Lock'"
        until(lambda: self.guard.sql(waiting) != "0", "a session waits for the row")

    def raise_statement(self, token):
        raise NotImplementedError

    def test_a_raise_between_comparison_and_write_is_not_possible(self):
        """A raise is on its way, not yet committed: the older write waits for it, and is refused then."""
        self.guard.raise_to(OLDER)
        newer = self.session()
        newer.say("begin;" + self.raise_statement(NEWER))
        late = self.guard.start("write", OLDER, 20)
        self.wait_until_somebody_waits_for_a_row()
        newer.say("commit;")
        with self.assertRaises(Stale) as refused:
            self.guard.end(late)
        self.assertEqual(refused.exception.current, NEWER)
        self.assertEqual(self.guard.read(), 100)

    def test_a_raise_waits_for_a_write_that_has_passed(self):
        """So what is read after the raise has it."""
        older = self.session()
        older.say(f"begin; {self.raise_statement(OLDER)} update account set balance = 20 where id = 7;")
        raising = self.guard.start("raise", NEWER)
        self.wait_until_somebody_waits_for_a_row()
        older.say("commit;")
        self.guard.end(raising)
        self.assertEqual(self.guard.read(), 20)


class PostgresqlTest(SqlClaims, unittest.TestCase):
    def setUp(self):
        self.guard = PostgresGuard(SERVER)

    def raise_statement(self, token):
        return f"select fence_raise('account:7', {token});"

    def test_the_whole_example_runs(self):
        subprocess.run(["psql", "-XqAt", "-v", "ON_ERROR_STOP=1", "-v", f"token={NEWER}", "-f",
                        guard_file("postgresql_use.sql")],
                       env=self.guard.full_environment(), check=True, stdout=subprocess.DEVNULL)
        self.assertEqual(self.guard.read(), 70)

    def test_each_resource_has_its_own_fence(self):
        self.guard.raise_to(NEWER)
        self.guard.sql(f"select fence_raise('account:8', {OLDER})")

    def test_a_stale_write_is_undone_also_by_a_psql_that_goes_on_after_errors(self):
        self.guard.raise_to(NEWER)
        careless = {**self.guard.commands, "write": self.guard.commands["write"].replace(" -v ON_ERROR_STOP=1", "")}
        self.guard.commands = careless
        _, err = self.guard.start("write", OLDER, 20).communicate()
        self.assertIn(f"stale fencing token {OLDER}, current {NEWER}", err)
        self.assertEqual(self.guard.read(), 100)

    def test_under_repeatable_read_a_late_write_is_refused_too(self):
        self.guard.raise_to(OLDER)
        older = self.session()
        older.say("begin isolation level repeatable read; select balance from account;")
        self.guard.raise_to(NEWER)
        self.guard.write(NEWER, 70)
        self.assertIn("could not serialize access", older.say(self.raise_statement(OLDER)))
        older.say("update account set balance = 20 where id = 7; commit;")
        self.assertEqual(self.guard.read(), 70)

    def test_a_crash_does_not_forget_a_raise_whatever_the_session_says_of_commits(self):
        self.guard.environment["PGOPTIONS"] += " -c synchronous_commit=off"
        self.guard.raise_to(NEWER)
        self.guard.sql("update account set balance = 90 where id = 7")
        SERVER.crash()
        self.assertEqual(self.guard.read(), 100, "no crash: what is not guarded is there")
        self.assertRaises(Stale, self.guard.write, OLDER, 20)

    def test_a_raise_does_not_lessen_what_the_session_wants_of_its_standbys(self):
        for wanted, had in (("off", "on"), ("local", "on"), ("on", "on"), ("remote_apply", "remote_apply")):
            session = self.session()
            session.say(f"set synchronous_commit = {wanted}; begin; {self.raise_statement(OLDER)}")
            self.assertEqual(session.say("show synchronous_commit;"), f"{had}\n")
            session.say("commit;")
            self.assertEqual(session.say("show synchronous_commit;"), f"{wanted}\n")

    def test_a_stale_token_is_sqlstate_hf001(self):
        self.guard.raise_to(NEWER)
        self.assertIn("HF001", self.session().say("\\set VERBOSITY verbose\n" + self.raise_statement(OLDER)))

    def test_null_is_no_token(self):
        with self.assertRaisesRegex(Refused, "not a fencing token: null"):
            self.guard.sql("select fence_raise('account:7', null)")

    def test_the_server_ends_a_transaction_whose_holder_was_stopped_in_the_middle(self):
        """Without idle_in_transaction_session_timeout the raise waits for as long as that holder sleeps."""
        older = self.session()
        older.say("set idle_in_transaction_session_timeout = '300ms';")
        older.say(f"begin; {self.raise_statement(OLDER)} update account set balance = 20 where id = 7;")
        self.guard.raise_to(NEWER)
        self.assertEqual(self.guard.read(), 100)


class ColumnTest(SqlClaims, unittest.TestCase):
    def setUp(self):
        self.guard = ColumnGuard(SERVER)

    def raise_statement(self, token):
        return f"update account set fence = {token} where id = 7 and fence <= {token};"

    def test_what_is_no_token_is_an_error_that_names_it_H64(self):
        """Bare statements look at their token with the column's check only; below zero nothing is there to raise."""
        for text in ("9007199254740992", "99999999999999999999", "abc"):
            with self.subTest(token=text), self.assertRaises(Refused) as refused:
                self.guard.write(text, 20)
            self.assertNotIsInstance(refused.exception, Stale)
        self.assertRaises(Stale, self.guard.write, "-1", 20)
        self.assertEqual(self.guard.read(), 100)


if __name__ == "__main__":
    unittest.main()
