"""Print what changed in this version, for its release.

    python tools/changes.py [v0.2.0]

SystemExit if pyproject.toml, CITATION.cff, the first heading of CHANGELOG.md and the tag, if one is named, speak of different versions.
"""
import re
import sys

import yaml

from publish import ROOT, project

HEADING = re.compile(r"^## ([\d.]+), (\d{4}-\d\d-\d\d)$", re.M)


def newest(changelog):
    """(version, date, text) of the first section of a list of changes."""
    first, *older = HEADING.finditer(changelog)
    return first[1], first[2], changelog[first.end():older[0].start() if older else None].strip()


def main(tag=None):
    version, date, text = newest((ROOT/"CHANGELOG.md").read_text(encoding="utf-8"))
    cited = yaml.safe_load((ROOT/"CITATION.cff").read_text(encoding="utf-8"))
    said = {"pyproject.toml": project()["version"], "CITATION.cff": str(cited["version"]), "CHANGELOG.md": version}
    if tag:
        said["the tag"] = tag.removeprefix("v")
    if len({*said.values()}) > 1:
        raise SystemExit("different versions: " + ", ".join(f"{where} says {what}" for where, what in said.items()))
    if str(cited["date-released"]) != date:
        raise SystemExit(f"CITATION.cff says {cited['date-released']}, CHANGELOG.md {date}")
    print(text)


if __name__ == "__main__":
    main(*sys.argv[1:])
