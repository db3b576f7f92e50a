"""What MkDocs does not do by itself: pages from above docs/, and links that lead out of the site.

The documents are written to be read in the repository, where a link may lead to a source file or a
folder. On the site such a link is plain words, or leads to the repository if REPOSITORY_URL says
where it is.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

ROOT = Path(__file__).parent.parent
ABOVE = {
    "index.md": "README.md",
    "architecture.md": "ARCHITECTURE.md",
    "contributing.md": "CONTRIBUTING.md",
    "changelog.md": "CHANGELOG.md",
    "security.md": "SECURITY.md",
}
"""Pages of the site by what they are made of."""
_PAGES = {source: page for page, source in ABOVE.items()}
_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")


def on_files(files: Any, config: Any) -> Any:
    """The pages from above docs/."""
    for page, source in ABOVE.items():
        files.append(File.generated(config, page, content=(ROOT / source).read_text("utf-8")))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """The page with links that lead somewhere on the site."""
    source = ABOVE.get(page.file.src_uri, f"docs/{page.file.src_uri}")
    repository = (config.repo_url or "").rstrip("/")

    def rewritten(found: re.Match[str]) -> str:
        mark, words, target = found.groups()
        path, _, anchor = target.partition("#")
        if not path or "://" in path:
            return found.group()
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
        there = _PAGES.get(path) or path.removeprefix("docs/")
        if path in _PAGES or (path.startswith("docs/") and files.get_file_from_path(there)):
            return f"{mark}[{words}]({there}{'#' * bool(anchor)}{anchor})"
        return f"[{words}]({repository}/blob/HEAD/{path})" if repository else words

    return _LINK.sub(rewritten, markdown)
