#!/usr/bin/env python3
"""sbom.py BINARY FILE: writes the libraries that the program uses, as SPDX 2.3 in JSON.

Libraries and their versions are those of `dtrain version`. The time is SOURCE_DATE_EPOCH, or that of the last commit,
or, without git, that of the binary."""
import datetime
import json
import os
import re
import subprocess
import sys
from pathlib import Path

LICENSES = {
    "OpenBLAS": "BSD-3-Clause", "oneDNN": "Apache-2.0", "jansson": "MIT", "zlib": "Zlib", "zstd": "BSD-3-Clause",
    "libcurl": "curl", "libcrypto": "Apache-2.0", "libssl": "Apache-2.0", "expat": "MIT",
    "libmicrohttpd": "LGPL-2.1-or-later", "libjpeg": "IJG AND BSD-3-Clause AND Zlib", "libpng": "libpng-2.0",
}


def libraries(said):
    """(name, version, is_optional) of each library in what `dtrain version` printed."""
    found = []
    for line in said.splitlines():
        if line.startswith(("arithmetic: ", "libraries: ")):
            for name, version in re.findall(r"(\w+) ([0-9][\w.]*)", line.split(": ", 1)[1]):
                found.append((name, version, False))
        elif line.startswith("    "):
            name, version = line.split()[:2]
            if version[0].isdigit() and name != "CUDA":  # else it says why there is none; of a GPU, its driver's
                found.append((name, version, True))
    return found


def package(name, version, license_):
    return {"SPDXID": f"SPDXRef-{re.sub('[^A-Za-z0-9.-]', '-', name)}", "name": name, "versionInfo": version,
            "downloadLocation": "NOASSERTION", "filesAnalyzed": False, "licenseConcluded": license_,
            "licenseDeclared": license_, "copyrightText": "NOASSERTION"}


def document(said, made):
    version = said.split()[1]
    packages = [package("dtrain", version, "Apache-2.0")]
    relationships = [{"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES",
                      "relatedSpdxElement": "SPDXRef-dtrain"}]
    for name, its_version, is_optional in libraries(said):
        packages.append(package(name, its_version, LICENSES.get(name, "NOASSERTION")))
        relationships.append({"spdxElementId": packages[-1]["SPDXID"],
                              "relationshipType": "OPTIONAL_DEPENDENCY_OF" if is_optional else "RUNTIME_DEPENDENCY_OF",
                              "relatedSpdxElement": "SPDXRef-dtrain"})
    return {"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT",
            "name": f"dtrain-{version}", "documentNamespace": f"https://spdx.org/spdxdocs/dtrain-{version}",
            "creationInfo": {"created": datetime.datetime.fromtimestamp(made, datetime.timezone.utc)
                             .strftime("%Y-%m-%dT%H:%M:%SZ"), "creators": ["Tool: dtrain-sbom"]},
            "packages": packages, "relationships": relationships}


def time_of(binary):
    if "SOURCE_DATE_EPOCH" in os.environ:
        return int(os.environ["SOURCE_DATE_EPOCH"])
    try:
        return int(subprocess.run(["git", "-C", Path(__file__).parent, "log", "-1", "--format=%ct"],
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True).stdout)
    except (OSError, subprocess.CalledProcessError):
        return int(Path(binary).stat().st_mtime)


def main():
    binary, out = sys.argv[1:]
    said = subprocess.run([binary, "version"], stdout=subprocess.PIPE, text=True, check=True).stdout
    Path(out).write_text(json.dumps(document(said, time_of(binary)), indent=2) + "\n")


if __name__ == "__main__":
    main()
