"""Judges what a suite wrote: every check of every scenario, not its exit code.

A scenario passes when nothing in it failed or warned, when what it skipped or only
noted is allowed by name (allowed.txt), and when every check that is known to succeed
(expected.json) has succeeded again, as often as before. So a scenario that stopped
testing anything is a failure here.
"""

import fnmatch
import json
import re
from dataclasses import dataclass, field
from pathlib import Path

STAMP = re.compile(r"-\d{4}-\d{2}-\d{2}T[\d-]+Z$")
VERDICTS = {"SUCCESS", "FAILURE", "WARNING", "SKIPPED", "INFO"}


@dataclass
class Rule:
    """A line of allowed.txt: what may happen in a run, scenario and check, and why."""

    run: str
    scenario: str
    check: str
    statuses: list[str]
    reason: str
    used: bool = False

    def covers(self, run: str, scenario: str, check: str, status: str) -> bool:
        patterns = ((run, self.run), (scenario, self.scenario), (check, self.check))
        if not all(fnmatch.fnmatchcase(name, pattern) for name, pattern in patterns):
            return False
        if "*" not in self.statuses and status not in self.statuses:
            return False
        self.used = True
        return True

    def is_of(self, run: str) -> bool:
        return fnmatch.fnmatchcase(run, self.run)

    def excuses(self, run: str, scenario: str) -> bool:
        """Whether the whole scenario may do what it likes."""
        return self.check == "*" and self.statuses[0] == "*" and self.covers(run, scenario, "*", "*")


def read_rules(path: Path) -> list[Rule]:
    rules = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        fields = [field.strip() for field in line.split("|")]
        if len(fields) != 5 or not all(fields):
            raise SystemExit(f"{path.name}:{number}: wants run | scenario | check | statuses | reason")
        run, scenario, check, statuses, reason = fields
        rules.append(Rule(run, scenario, check, statuses.split(), reason))
    return rules


def read_checks(folder: Path) -> dict[str, list[dict]]:
    """Scenario -> its checks, from the folders that a suite leaves."""
    found: dict[str, list[dict]] = {}
    for path in sorted(folder.rglob("checks.json")):
        name = STAMP.sub("", str(path.parent.relative_to(folder))).removeprefix("server-")
        found.setdefault(name, []).extend(json.loads(path.read_text()))
    return found


@dataclass
class Verdict:
    run: str
    scenario: str
    problems: list[str] = field(default_factory=list)
    excused: bool = False
    # Excused although nothing but successes and allowed notes came: the excuse must go.
    idle: bool = False
    successes: dict[str, int] = field(default_factory=dict)
    # FAILURE and WARNING: with either, the suite ends with an error for a client.
    failures: int = 0


def judge(run: str, scenario: str, checks: list[dict], expected: dict[str, int] | None, rules: list[Rule]) -> Verdict:
    """One scenario; `expected` is None where everything that succeeds is to be written down."""
    verdict = Verdict(run, scenario)
    excuses = [rule for rule in rules if rule.excuses(run, scenario)]
    verdict.excused = bool(excuses)
    for check in checks:
        status, name = check.get("status"), check.get("id", "?")
        verdict.failures += status in ("FAILURE", "WARNING")
        if status == "SUCCESS":
            verdict.successes[name] = verdict.successes.get(name, 0) + 1
        elif verdict.excused:
            continue
        elif status not in VERDICTS or status in ("FAILURE", "WARNING") or not any(
            [rule.covers(run, scenario, name, status) for rule in rules]
        ):
            words = check.get("errorMessage") or check.get("description") or ""
            verdict.problems.append(f"{status} {name}: {' '.join(str(words).split())[:300]}")
    if verdict.excused:
        always = not any("SOMETIMES" in rule.statuses for rule in excuses)
        verdict.idle = always and bool(verdict.successes) and all(
            check.get("status") == "SUCCESS"
            or check.get("status") == "INFO"
            and any([rule.covers(run, scenario, check.get("id", "?"), "INFO") for rule in rules if rule.check != "*"])
            for check in checks
        )
        return verdict
    if not verdict.successes and not any(
        [rule.covers(run, scenario, check.get("id", "?"), "VACUOUS") for rule in rules for check in checks]
    ):
        verdict.problems.append("no check succeeded: nothing was tested")
    for name, count in (expected or {}).items():
        seen = verdict.successes.get(name, 0)
        if seen < count:
            verdict.problems.append(f"{name} succeeded {seen} times instead of {count}")
    return verdict


def judge_run(
    run: str, folder: Path, listed: list[str], expected: dict[str, dict[str, int]] | None, rules: list[Rule]
) -> list[Verdict]:
    """All scenarios that a run wrote, was to run (`listed`), or is known to run (`expected`)."""
    found = read_checks(folder)
    names = sorted(set(found) | set(listed) | set(expected or {}))
    verdicts = []
    for name in names:
        known = None if expected is None else expected.get(name)
        verdict = judge(run, name, found.get(name, []), known, rules)
        if name not in found:
            verdict.problems = ["did not run"]
            verdict.excused = False
        elif expected is not None and known is None and not verdict.excused:
            verdict.problems.append("not in expected.json: --record it from a server that is known to be right")
        verdicts.append(verdict)
    return verdicts
