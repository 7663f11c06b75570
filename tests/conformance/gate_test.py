"""python3 -m unittest discover -s tests/conformance -p '*_test.py'"""

import json
import tempfile
import unittest
from pathlib import Path

import gate

HERE = Path(__file__).resolve().parent


def check(name: str, status: str) -> dict:
    return {"id": name, "status": status, "errorMessage": "why\nnot"}


class Judging(unittest.TestCase):
    def judge(self, checks, expected=None, rules=""):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "allowed.txt"
            path.write_text(rules)
            return gate.judge("alpha-all", "ping", checks, expected, gate.read_rules(path))

    def problems(self, *args, **named):
        return self.judge(*args, **named).problems

    def test_success(self):
        self.assertEqual(self.problems([check("a", "SUCCESS")], {"a": 1}), [])

    def test_failure_warning_and_unknown_verdicts(self):
        for status in ("FAILURE", "WARNING", "NEW"):
            found = self.problems([check("a", "SUCCESS"), check("b", status)], {"a": 1}, f"*|*|b|{status}|no\n")
            self.assertEqual(len(found), 1, status)
            self.assertIn("why not", found[0])

    def test_skips_and_notes_need_a_rule(self):
        for status in ("SKIPPED", "INFO"):
            checks = [check("a", "SUCCESS"), check("b", status)]
            self.assertEqual(len(self.problems(checks)), 1)
            self.assertEqual(self.problems(checks, rules="alpha-* | p?ng | b | INFO SKIPPED | because\n"), [])
            self.assertEqual(len(self.problems(checks, rules=f"latest-* | ping | b | {status} | because\n")), 1)

    def test_a_check_that_is_gone(self):
        checks = [check("a", "SUCCESS"), check("a", "SUCCESS")]
        self.assertEqual(self.problems(checks, {"a": 2}), [])
        self.assertEqual(self.problems(checks, {"a": 3}), ["a succeeded 2 times instead of 3"])
        self.assertEqual(self.problems(checks, {"a": 1, "b": 1}), ["b succeeded 0 times instead of 1"])

    def test_nothing_tested(self):
        self.assertEqual(len(self.problems([])), 1)
        skipped = [check("a", "SKIPPED")]
        self.assertEqual(len(self.problems(skipped, rules="*|*|a|SKIPPED|because\n")), 1)
        self.assertEqual(self.problems(skipped, rules="*|*|a|SKIPPED VACUOUS|because\n"), [])

    def test_excused(self):
        verdict = self.judge([check("a", "FAILURE")], {"b": 1}, "*|ping|*|*|not served\n")
        self.assertTrue(verdict.excused)
        self.assertEqual((verdict.problems, verdict.failures), ([], 1))

    def test_an_excuse_that_is_not_needed(self):
        excuse = "*|ping|*|*|not served\n"
        trace = "*|ping|b|INFO|a trace\n"
        good = [check("a", "SUCCESS"), check("b", "INFO")]
        self.assertTrue(self.judge(good, rules=excuse + trace).idle)
        self.assertFalse(self.judge(good, rules=excuse).idle)
        for status in ("FAILURE", "WARNING", "SKIPPED"):
            self.assertFalse(self.judge([*good, check("c", status)], rules=excuse + trace).idle, status)
        self.assertFalse(self.judge([check("a", "SKIPPED")], rules=excuse).idle)
        self.assertFalse(self.judge(good, rules="*|ping|*|* SOMETIMES|load\n" + trace).idle)

    def test_a_rule_without_a_reason(self):
        with self.assertRaises(SystemExit):
            self.judge([], rules="*|ping|*|*|\n")

    def test_the_rules_there_are_can_be_read(self):
        self.assertTrue(gate.read_rules(HERE / "allowed.txt"))

    def test_rules_of_a_role(self):
        rules = gate.read_rules(HERE / "allowed.txt")
        self.assertTrue(any(rule.is_of("client-alpha-all") for rule in rules))
        self.assertFalse(any(rule.is_of("client-alpha-all") and rule.is_of("server-alpha-all") for rule in rules))

    def test_folders_of_clients(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "auth" / "basic-cimd-2026-11-21T02-50-01-256Z"
            path.mkdir(parents=True)
            (path / "checks.json").write_text(json.dumps([check("a", "FAILURE")]))
            excuse = Path(folder) / "allowed.txt"
            excuse.write_text("client-*|auth/*|*|*|to come\n")
            rules = gate.read_rules(excuse)
            (verdict,) = gate.judge_run("client-alpha-all", Path(folder), ["auth/basic-cimd"], {}, rules)
            self.assertEqual((verdict.scenario, verdict.excused, verdict.problems), ("auth/basic-cimd", True, []))
            (verdict,) = gate.judge_run("server-alpha-all", Path(folder), [], {}, rules)
            self.assertFalse(verdict.excused)

    def test_folders(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in ("server-server-sse-polling-2026-11-21T02-50-01-256Z", "server-ping-2026-11-21T02-50-01-256Z"):
                path = Path(folder) / name
                path.mkdir()
                (path / "checks.json").write_text(json.dumps([check("a", "SUCCESS")]))
            names = ["ping", "gone"]
            verdicts = gate.judge_run("r", Path(folder), names, {"ping": {"a": 1}, "lost": {"a": 1}}, [])
            found = {verdict.scenario: verdict.problems for verdict in verdicts}
            self.assertEqual(found["ping"], [])
            self.assertEqual(found["gone"], ["did not run"])
            self.assertEqual(found["lost"], ["did not run"])
            self.assertIn("not in expected.json", found["server-sse-polling"][0])


if __name__ == "__main__":
    unittest.main()
