"""Lines of logs as JSON, held against examples/deploy/log.schema.json: as much of JSON Schema as stands in it."""
import json

from program import ROOT

SCHEMA = json.loads((ROOT / "examples" / "deploy" / "log.schema.json").read_text())
KNOWN = {"description", "type", "pattern", "enum", "maxLength"}


def check(case, line):
    """The members of a line, which the schema admits."""
    said = json.loads(line)
    case.assertIsInstance(said, dict, line)
    case.assertFalse(SCHEMA["additionalProperties"])
    case.assertEqual(set(said), set(SCHEMA["required"]), line)
    for name, rule in SCHEMA["properties"].items():
        case.assertLessEqual(set(rule), KNOWN)
        case.assertIsInstance(said[name], str, line)
        case.assertRegex(said[name], rule.get("pattern", "^"))
        case.assertLessEqual(len(said[name]), rule.get("maxLength", len(said[name])))
        case.assertIn(said[name], rule.get("enum", [said[name]]))
    return said


def check_all(case, text):
    return [check(case, line) for line in text.splitlines()]
